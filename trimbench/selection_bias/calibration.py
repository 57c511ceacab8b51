"""One scale of what features say about the classes, and an offset of each, from cases that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

# Prior variance of the offsets: that of the difference of two is 1.
_OFFSET_VARIANCE = 0.5
_LARGEST_LOG_SCALE = 5.0


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What log odds are multiplied by, and what is added then.

    The score of class y is log P(y) + offset_y + scale log(P(y | x) / P(y)), where P(y) is its probability without
    features: a scale below 1 divides evidence that dependent features repeat, and a scale of 0 leaves the shares.

    Attributes
    ----------
    scale : float
    offsets : ndarray of shape (n_classes,)
        They sum to 0.
    gain : float
        By how much the logarithm of the likelihood of the classes that were held out rises.
    """

    scale: float
    offsets: NDArray[np.float64]
    gain: float

    @classmethod
    def of(
        cls, added: NDArray[np.float64], log_shares: NDArray[np.float64], classes: NDArray[np.int64]
    ) -> Recalibration:
        """Return the calibration that makes the held-out classes most likely.

        A priori log(scale) ~ Normal(0, 1) and the difference of two offsets ~ Normal(0, 1). The targets are Platt's:
        (n_y + 1) / (n_y + 2) instead of 1 for each of the n_y cases of class y, and the rest for the other classes.

        Parameters
        ----------
        added : ndarray of shape (n_cases, n_classes)
            log(P(y | x) / P(y)) by a classifier that has not seen the case, up to a constant for each case.
        log_shares : ndarray of shape (n_classes,)
            log P(y).
        classes : ndarray of int, shape (n_cases,)
            All classes occur.

        References
        ----------
        Platt (1999), Probabilistic outputs for support vector machines and comparisons to regularized likelihood
        methods, section 2.2.
        """
        from scipy.optimize import minimize

        n_classes = len(log_shares)
        counts = np.bincount(classes, minlength=n_classes)[classes][:, None]
        is_class = np.eye(n_classes, dtype=bool)[classes]
        targets = np.where(is_class, counts + 1, 1 / (n_classes - 1)) / (counts + 2)

        def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            log_scale, offsets = parameters[0], parameters[1:]
            scores = log_shares + offsets + np.exp(log_scale) * added
            value = (logsumexp(scores, axis=1) - (targets * scores).sum(axis=1)).sum()
            rest = softmax(scores, axis=1) - targets
            slopes = np.r_[np.exp(log_scale) * (rest * added).sum(), rest.sum(axis=0)]
            penalty = 0.5 * log_scale**2 + 0.5 * (offsets**2).sum() / _OFFSET_VARIANCE
            return float(value + penalty), slopes + np.r_[log_scale, offsets / _OFFSET_VARIANCE]

        bounds = [(-_LARGEST_LOG_SCALE, _LARGEST_LOG_SCALE), *[(None, None)] * n_classes]
        found = minimize(loss, np.zeros(n_classes + 1), jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-12).x
        scale, offsets = float(np.exp(found[0])), found[1:] - found[1:].mean()
        identity = cls(1.0, np.zeros(n_classes), 0.0)
        before, after = (one.scores(log_shares + added, log_shares) for one in (identity, cls(scale, offsets, 0.0)))
        rows = np.arange(len(classes))
        gains = (after[rows, classes] - logsumexp(after, axis=1)) - (before[rows, classes] - logsumexp(before, axis=1))
        return cls(scale, offsets, float(gains.sum()))

    def scores(self, scores: NDArray[np.float64], log_shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated scores of shape (n_cases, n_classes), up to a constant for each case."""
        found: NDArray[np.float64] = log_shares + self.offsets + self.scale * (scores - log_shares)
        return found
