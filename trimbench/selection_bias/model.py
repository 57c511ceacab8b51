"""What the classifiers share that average their predictions over the posterior of alpha."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from trimbench.networks.values import in_order
from trimbench.selection_bias.binary import ClassCounts, Marginals
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import DependenceSelection, Selection


@dataclass(frozen=True, eq=False)
class AveragedClassifier(ABC):
    """Posterior of alpha, and the predictions that follow from the scores of the classes.

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
        Its error.
    log_likelihood : ndarray of shape (n_alpha,)
        Of the selected features.
    column_names : tuple of str, optional
        Of the data frame that it was fitted to: other frames are matched by name.
    """

    prior: Prior
    class_sizes: NDArray[np.int64]
    alpha_grid: NDArray[np.float64]
    log_adjustment: NDArray[np.float64]
    log_adjustment_error: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    column_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    @abstractmethod
    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y | x), of shape (n_cases, n_classes), up to a number for each case."""

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
        """Return the same classifier, on the same features, without correction."""
        none = np.zeros_like(self.log_adjustment)
        return dataclasses.replace(self, log_adjustment=none, log_adjustment_error=none)

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
        """Return the most probable class of each case; class 1 where two are equally probable, the first of several."""
        if len(self.class_sizes) == 2:
            return (self.log_odds(X) >= 0).astype(np.int64)
        found: NDArray[np.int64] = self._scores(in_order(X, self.column_names)).argmax(axis=1)
        return found

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate that the predictions expect: the mean of 1 - max P(y | x)."""
        ordered = np.sort(self.predict_proba(X), axis=1)
        return float(ordered[:, :-1].sum(axis=1).mean())

    def log_odds(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y = 1 | x) - log P(y = 0 | x) of two classes, of shape (n_cases,)."""
        if len(self.class_sizes) != 2:
            raise ValueError(f"log_odds needs two classes, got {len(self.class_sizes)}; use log_probabilities")
        scores = self._scores(in_order(X, self.column_names))
        found: NDArray[np.float64] = scores[:, 1] - scores[:, 0]
        return found

    def log_probabilities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y | x), of shape (n_cases, n_classes)."""
        scores = self._scores(in_order(X, self.column_names))
        result: NDArray[np.float64] = scores - logsumexp(scores, axis=1, keepdims=True)
        return result


# The fitted naive Bayes classifier with correction for feature selection.

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
