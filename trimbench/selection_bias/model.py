"""The fitted naive Bayes classifier with correction for feature selection."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from trimbench.networks.values import in_order
from trimbench.selection_bias.calibration import Recalibration
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.prior import Prior, log_shares
from trimbench.selection_bias.selection import Selection

# Number of values that are converted to floating point at once.
_BLOCK_ENTRIES = 2**21


class Features(Protocol):
    """The selected features of a fitted model."""

    def log_scores(self, X: ArrayLike, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log of sum over alpha of exp(offset) prod_j P(x_j | y, alpha), of shape (n_cases, n_classes).

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
        offsets : ndarray of shape (n_classes, n_alpha)
        """


@dataclass(frozen=True, eq=False)
class SelectionCorrectedModel:
    """A fitted naive Bayes classifier with correction for feature selection, made by `fit_selection_corrected`.

    Attributes
    ----------
    prior : Prior
    class_sizes : ndarray of shape (n_classes,)
        Training cases in each class.
    alpha_grid : ndarray of shape (n_alpha,)
        Values of alpha, increasing; equally probable a priori.
    log_adjustment : ndarray of shape (n_alpha,)
        log A_alpha; zeros without correction or without selection.
    log_adjustment_error : ndarray of shape (n_alpha,)
        Its standard error where it was simulated, a bound on the terms that a series leaves out (Gaussian features,
        three classes or more), otherwise 0.
    log_likelihood : ndarray of shape (n_alpha,)
        sum_j log M_{alpha j} over the selected features; for Gaussian ones relative to that of an infinite alpha.
    selection : Selection
    features : Features
        The selected features, as predictions need them.
    column_names : tuple of str, optional
        Columns of the data frame that it was fitted to: other frames are matched by name.
    calibration : Recalibration, optional
        One scale of what the features say, and an offset of each class, see `fit_selection_corrected`.

    Examples
    --------
    >>> import numpy as np, trimbench as tb
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(2, size=(40, 100)), rng.integers(2, size=40)
    >>> model = tb.fit_selection_corrected(X, y, k=3)
    >>> model.predict_proba(X[:1]).round(2), model.uncorrected().predict_proba(X[:1]).round(2)
    (array([[0.49, 0.51]]), array([[0.43, 0.57]]))
    """

    prior: Prior
    class_sizes: NDArray[np.int64]
    alpha_grid: NDArray[np.float64]
    log_adjustment: NDArray[np.float64]
    log_adjustment_error: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    selection: Selection
    features: Features
    column_names: tuple[str, ...] | None = None
    calibration: Recalibration | None = None

    def __repr__(self) -> str:
        corrected = "corrected" if self.log_adjustment.any() else "not corrected"
        calibrated = "" if self.calibration is None else ", calibrated"
        cases = f"{self.class_sizes.sum():,} cases of {len(self.class_sizes)} classes"
        return f"{type(self).__name__}({self.selection.in_words}, {cases}, {corrected}{calibrated})"

    @property
    def selected(self) -> NDArray[np.int64]:
        """Numbers of the selected features, from the strongest to the weakest."""
        return self.selection.features

    @property
    def gamma(self) -> float:
        """Smallest eta of a selected feature: with two classes its absolute correlation, for categories Cramer's V."""
        return self.selection.gamma

    @property
    def cuts(self) -> NDArray[np.float64] | None:
        """Cut of each of the p features, at which real values become 0 and 1; None where nothing is cut."""
        coding = getattr(self.features, "coding", None)
        return coding.cuts if isinstance(coding, Binariser) else None

    @property
    def alpha_posterior(self) -> NDArray[np.float64]:
        """Posterior probability of each value of `alpha_grid`, of shape (n_alpha,)."""
        log_posterior = self.log_adjustment + self.log_likelihood
        posterior: NDArray[np.float64] = np.exp(log_posterior - logsumexp(log_posterior))
        return posterior

    @property
    def log_alpha_density(self) -> NDArray[np.float64]:
        """Log of the posterior density of log(alpha) at `alpha_grid`, up to a constant, of shape (n_alpha,)."""
        density = self.prior.log_density_of_log_alpha(self.alpha_grid)
        result: NDArray[np.float64] = self.log_adjustment + self.log_likelihood + density
        return result

    def uncorrected(self) -> Self:
        """Return the same classifier, on the same features, without correction and not calibrated."""
        none = np.zeros_like(self.log_adjustment)
        return dataclasses.replace(self, log_adjustment=none, log_adjustment_error=none, calibration=None)

    @property
    def log_shares(self) -> NDArray[np.float64]:
        """Log of the probability of each class where no feature is known, of shape (n_classes,)."""
        return log_shares(self.prior, self.class_sizes)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predictive probabilities of the classes.

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
            All features of the training cases; only the selected ones are used. A missing value (NaN, masked, None or
            the missing value of pandas) drops out of the product over the features.

        Returns
        -------
        ndarray of shape (n_cases, n_classes)
            P(y | x).

        References
        ----------
        Li, Zhang and Neal (2008), "Predictions for test cases (I)" and "(II)".
        """
        if len(self.class_sizes) == 2:
            log_odds = self.log_odds(X)
            return np.stack([expit(-log_odds), expit(log_odds)], axis=1)
        found: NDArray[np.float64] = np.exp(self.log_probabilities(X))
        return found

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the most probable class of each case; ties go to class 1 of two classes, to the first of several."""
        if len(self.class_sizes) == 2:
            return (self.log_odds(X) >= 0).astype(np.int64)
        found: NDArray[np.int64] = self._scores(X).argmax(axis=1)
        return found

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate that the predictions imply: the mean of 1 - max P(y | x)."""
        ordered = np.sort(self.predict_proba(X), axis=1)
        return float(ordered[:, :-1].sum(axis=1).mean())

    def log_odds(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y = 1 | x) - log P(y = 0 | x), of shape (n_cases,); ValueError for more than two classes."""
        if len(self.class_sizes) != 2:
            raise ValueError(f"log_odds needs two classes, got {len(self.class_sizes)}; use log_probabilities")
        scores = self._scores(X)
        found: NDArray[np.float64] = scores[:, 1] - scores[:, 0]
        return found

    def log_probabilities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y | x), of shape (n_cases, n_classes)."""
        scores = self._scores(X)
        result: NDArray[np.float64] = scores - logsumexp(scores, axis=1, keepdims=True)
        return result

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y | x), of shape (n_cases, n_classes), up to a constant for each case."""
        of_alpha = self.log_adjustment + self.log_likelihood
        pseudo_counts = self.prior.pseudo_counts(len(self.class_sizes))
        offsets = np.log(self.class_sizes + pseudo_counts)[:, None] + (of_alpha - of_alpha.max())
        scores = self.features.log_scores(in_order(X, self.column_names), offsets)
        return scores if self.calibration is None else self.calibration.scores(scores, self.log_shares)


# Features with a few values each.


class Coding(Protocol):
    """How the values of features become 0, 1, ...."""

    def codes(self, X: ArrayLike, columns: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the values of some features, of shape (n_cases, n_columns); -1 where one is missing."""


@dataclass(frozen=True, eq=False)
class DiscreteFeatures:
    """Selected features with two values or more.

    Attributes
    ----------
    coding : Coding
    columns : ndarray of shape (k,)
        Numbers of the features.
    alphas : ndarray of shape (n_alpha,)
    counts, sizes : ndarray of shape (n_classes, n_values)
        Training cases of each class with a value, and with any value of the feature.
    theta : ndarray of shape (n_alpha, n_values)
        Posterior means of the probabilities of the values.
    starts, n_values : ndarray of shape (k,)
        Where the values of each feature begin in these tables, and how many it has; equal features share theirs.
    """

    coding: Coding
    columns: NDArray[np.int64]
    alphas: NDArray[np.float64]
    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    theta: NDArray[np.float64]
    starts: NDArray[np.int64]
    n_values: NDArray[np.int64]

    @cached_property
    def _owners(self) -> NDArray[np.int64]:
        """The feature of each value but the first."""
        return np.repeat(np.arange(len(self.columns)), self.n_values - 1)

    @cached_property
    def _values(self) -> NDArray[np.int64]:
        """The values of each feature but the first."""
        return np.concatenate([np.arange(1, n) for n in self.n_values])

    @cached_property
    def _log_predictive(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log P(x = 0 | y, alpha) of each feature, and what each other value adds, for all classes and alphas."""
        alphas = self.alphas[:, None]
        table = np.log(self.counts[:, None] + alphas * self.theta) - np.log(alphas + self.sizes[:, None])
        by_value = table.reshape(-1, table.shape[2]).T
        first = by_value[self.starts]
        return first, by_value[self.starts[self._owners] + self._values] - first[self._owners]

    def log_scores(self, X: ArrayLike, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Features`."""
        codes = self.coding.codes(X, self.columns)
        of_first, of_more = self._log_predictive
        of_no_value = of_first.sum(axis=0) + offsets.ravel()
        result = np.empty((len(codes), len(offsets)))
        step = max(1, _BLOCK_ENTRIES // max(1, len(of_more)))
        for start in range(0, len(codes), step):
            here = codes[start : start + step]
            scores = (here[:, self._owners] == self._values).astype(np.float64) @ of_more + of_no_value
            missing = here < 0
            if missing.any():
                scores -= missing.astype(np.float64) @ of_first
            # Written out, as a call of SciPy's logsumexp takes as long for one row as all of this.
            by_alpha = scores.reshape(len(here), *offsets.shape)
            top = by_alpha.max(axis=2)
            by_alpha -= top[:, :, None]
            result[start : start + step] = top + np.log(np.exp(by_alpha, out=by_alpha).sum(axis=2))
        return result
