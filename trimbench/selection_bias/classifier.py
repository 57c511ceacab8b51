"""The fitted naive Bayes classifier with correction for feature selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from trimbench.selection_bias.averaged import AveragedClassifier
from trimbench.selection_bias.class_counts import ClassCounts
from trimbench.selection_bias.dependence import DependenceSelection
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.marginals import Marginals
from trimbench.selection_bias.selection import Selection

# Cases whose features are made floating-point at once.
_BLOCK_ENTRIES = 2**21


@dataclass(frozen=True, eq=False)
class SelectionCorrectedModel(AveragedClassifier):
    """A fitted naive Bayes classifier; `fit_selection_corrected` makes it.

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
        Its standard error: 0 where it was not simulated.
    log_likelihood : ndarray of shape (n_alpha,)
        sum_j log M_{alpha j} over the selected features.
    selection : Selection or DependenceSelection
    binariser : Binariser
        How real values become zeros and ones; it keeps the medians of the training cases.
    counts : ClassCounts
        Ones I_yj of the selected features, and the cases n_yj in which they were observed, of shape (n_classes, k).
    features : Marginals
        Of the distinct counts among the selected features.
    pair_of_feature : ndarray of shape (k,)
        Column of each selected feature in `features`.
    """

    selection: Selection | DependenceSelection
    binariser: Binariser
    counts: ClassCounts
    features: Marginals
    pair_of_feature: NDArray[np.int64]

    @property
    def selected(self) -> NDArray[np.int64]:
        """Numbers of the selected features, from the largest absolute correlation (or eta) to the smallest."""
        return self.selection.features

    @property
    def n0(self) -> int:
        """Training cases of class 0."""
        return int(self.class_sizes[0])

    @property
    def n1(self) -> int:
        """Training cases of class 1."""
        return int(self.class_sizes[1])

    @property
    def ones0(self) -> NDArray[np.int64]:
        """Ones of the selected features in class 0, of shape (k,)."""
        found: NDArray[np.int64] = self.counts.ones[0]
        return found

    @property
    def ones1(self) -> NDArray[np.int64]:
        """Ones of the selected features in class 1, of shape (k,)."""
        found: NDArray[np.int64] = self.counts.ones[1]
        return found

    @property
    def gamma(self) -> float:
        """Smallest absolute correlation (with several classes, or missing values: eta) of a selected feature."""
        return self.selection.gamma

    @property
    def cuts(self) -> NDArray[np.float64] | None:
        """Cut of each of the p features, at which real values become 0 and 1; None for binary features."""
        return self.binariser.cuts

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        values = self.binariser.checked(X, allow_missing=True)
        binary = self.binariser.transform(values, self.selected, allow_missing=True)
        tables = self._score_tables()
        n_classes = len(self.class_sizes)
        result = np.empty((len(binary), n_classes))
        step = max(1, _BLOCK_ENTRIES // binary.shape[1])
        for start in range(0, len(binary), step):
            rows = slice(start, start + step)
            scores = binary[rows].astype(np.float64) @ tables.ones + tables.offset
            if values.dtype.kind == "f":
                missing = np.isnan(values[rows][:, self.selected])
                if missing.any():
                    scores -= missing.astype(np.float64) @ tables.none
            result[rows] = logsumexp(scores.reshape(len(scores), n_classes, -1), axis=2)
        return result

    def _score_tables(self) -> _ScoreTables:
        alphas = self.alpha_grid[:, None]
        n_distinct = self.features.theta_mean.shape[1]
        ones, sizes = np.empty((2, len(self.class_sizes), n_distinct), dtype=np.int64)
        ones[:, self.pair_of_feature], sizes[:, self.pair_of_feature] = self.counts.ones, self.counts.sizes
        repeats = np.bincount(self.pair_of_feature, minlength=n_distinct)
        tables, none, offsets = [], [], []
        base = self.log_adjustment + self.log_likelihood
        for y, f_y in enumerate(self.prior.pseudo_counts(len(self.class_sizes))):
            log_one = np.log(ones[y] + alphas * self.features.theta_mean)
            log_zero = np.log(sizes[y] - ones[y] + alphas * self.features.theta_rest)
            log_none = log_zero - np.log(alphas + sizes[y])
            tables.append((log_one - log_zero).T)
            none.append(log_none.T)
            offsets.append(base + log_none @ repeats + np.log(self.class_sizes[y] + f_y))
        offset = np.concatenate(offsets)
        return _ScoreTables(
            np.concatenate(tables, axis=1)[self.pair_of_feature],
            np.concatenate(none, axis=1)[self.pair_of_feature],
            offset - offset.max(),
        )


@dataclass(frozen=True, eq=False)
class _ScoreTables:
    """Summands of the scores, for each class and within it each alpha.

    Attributes
    ----------
    ones : ndarray of shape (k, n_classes * n_alpha)
        What a one of each selected feature adds to a zero.
    none : ndarray of the same shape
        What a zero of each selected feature adds.
    offset : ndarray of shape (n_classes * n_alpha,)
        Scores of no ones.
    """

    ones: NDArray[np.float64]
    none: NDArray[np.float64]
    offset: NDArray[np.float64]
