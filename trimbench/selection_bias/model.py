"""The naive Bayes classifier with correction for feature selection."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from trimbench.selection_bias.adjustment import Ties, WeaknessSums, check_ties, log_adjustment
from trimbench.selection_bias.features import (
    Binariser,
    checked_cuts,
    checked_more_cases,
    checked_response,
    checked_rows,
    checked_table,
)
from trimbench.selection_bias.marginals import Marginals, marginals
from trimbench.selection_bias.prior import Prior, Rule
from trimbench.selection_bias.selection import Selection, checked_k, class_counts, select_features

# Cases whose features are made floating-point at once.
_BLOCK_ENTRIES = 2**21


@dataclass(frozen=True, eq=False)
class SelectionCorrectedModel:
    """A fitted naive Bayes classifier; `fit_selection_corrected` makes it.

    Attributes
    ----------
    prior : Prior
    selection : Selection
    binariser : Binariser
        How real values become zeros and ones; it keeps the medians of the training cases.
    n0, n1 : int
        Training cases in each class.
    ones0, ones1 : ndarray of shape (k,)
        I_0j and I_1j of the selected features.
    alpha_grid : ndarray of shape (n_alpha,)
        Values of alpha, increasing; equally probable a priori.
    log_adjustment : ndarray of shape (n_alpha,)
        log A_alpha; zeros without correction or without selection.
    log_likelihood : ndarray of shape (n_alpha,)
        sum_j log M_{alpha j} over the selected features.
    features : Marginals
        Of the distinct (I_0, I_1) among the selected features.
    pair_of_feature : ndarray of shape (k,)
        Column of each selected feature in `features`.
    """

    prior: Prior
    selection: Selection
    binariser: Binariser
    n0: int
    n1: int
    ones0: NDArray[np.int64]
    ones1: NDArray[np.int64]
    alpha_grid: NDArray[np.float64]
    log_adjustment: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    features: Marginals
    pair_of_feature: NDArray[np.int64]

    @property
    def selected(self) -> NDArray[np.int64]:
        """Numbers of the selected features, from the largest absolute correlation to the smallest."""
        return self.selection.features

    @property
    def gamma(self) -> float:
        """Smallest absolute correlation of a selected feature."""
        return self.selection.gamma

    @property
    def cuts(self) -> NDArray[np.float64] | None:
        """Cut of each of the p features, at which real values become 0 and 1; None for binary features."""
        return self.binariser.cuts

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

    def uncorrected(self) -> SelectionCorrectedModel:
        """Return the same classifier, on the same features, without correction."""
        return dataclasses.replace(self, log_adjustment=np.zeros_like(self.log_adjustment))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predictive probabilities of both classes.

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
            All features of the training cases; only the selected ones are used.

        Returns
        -------
        ndarray of shape (n_cases, 2)
            P(y = 0 | x) and P(y = 1 | x).

        References
        ----------
        Li, Zhang and Neal (2008), "Predictions for test cases (I)" and "(II)".
        """
        log_odds = self.log_odds(X)
        return np.stack([expit(-log_odds), expit(log_odds)], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the more probable class of each case; class 1 where both are equally probable."""
        return (self.log_odds(X) >= 0).astype(np.int64)

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate at threshold 1/2 that the predictions expect: the mean of min(p, 1 - p)."""
        return float(self.predict_proba(X).min(axis=1).mean())

    def log_odds(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y = 1 | x) - log P(y = 0 | x), of shape (n_cases,)."""
        binary = self.binariser.transform(X, self.selected)
        table, offset = self._score_table()
        result = np.empty(len(binary))
        step = max(1, _BLOCK_ENTRIES // binary.shape[1])
        for start in range(0, len(binary), step):
            scores = binary[start : start + step].astype(np.float64) @ table + offset
            log0, log1 = logsumexp(scores.reshape(len(scores), 2, -1), axis=2).T
            result[start : start + step] = log1 - log0
        return result

    def _score_table(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what a one of each selected feature adds to the scores (k x 2 n_alpha), and the scores of no ones."""
        alphas = self.alpha_grid[:, None]
        pairs = np.empty((self.features.theta_mean.shape[1], 2), dtype=np.int64)
        pairs[self.pair_of_feature] = np.stack([self.ones0, self.ones1], axis=1)
        repeats = np.bincount(self.pair_of_feature, minlength=len(pairs))
        tables, offsets = [], []
        base = self.log_adjustment + self.log_likelihood
        sizes, pseudo_counts = (self.n0, self.n1), (self.prior.f0, self.prior.f1)
        for y, (n_y, f_y) in enumerate(zip(sizes, pseudo_counts, strict=True)):
            log_one = np.log(pairs[:, y] + alphas * self.features.theta_mean)
            log_zero = np.log(n_y - pairs[:, y] + alphas * self.features.theta_rest)
            tables.append((log_one - log_zero).T)
            log_none = (log_zero - np.log(alphas + n_y)) @ repeats
            offsets.append(base + log_none + np.log(n_y + f_y))
        offset = np.concatenate(offsets)
        return np.concatenate(tables, axis=1)[self.pair_of_feature], offset - offset.max()


def fit_selection_corrected(
    X: ArrayLike,
    y: ArrayLike,
    k: int,
    correct: bool = True,
    ties: Ties = "exact",
    n_alpha: int = 100,
    n_theta: int = 20,
    n_theta_adjust: int = 100,
    shape: float = 0.5,
    rate: float = 5.0,
    theta0: float = 0.0,
    *,
    f0: float = 1.0,
    f1: float = 1.0,
    rule: Rule = "gauss",
    selection_rows: ArrayLike | None = None,
    unlabelled: ArrayLike | None = None,
    cuts: ArrayLike | None = None,
) -> SelectionCorrectedModel:
    """Select the k features that correlate most with the response, and fit a classifier that accounts for it.

    Parameters
    ----------
    X : array of shape (n_cases, n_features)
        Zeros and ones, or real values: a feature with two values is cut between them, any other at its median.
    y : array of shape (n_cases,)
        Zeros and ones, at least one of each.
    k : int
        Number of features to select, from 1 to n_features; n_features keeps all and corrects nothing.
    correct : bool
        Whether predictions condition on the weak correlations of the discarded features.
    ties : {"exact", "less", "less_equal"}
        What is known about a discarded feature: its correlation is below gamma, or equals it if it does ("exact"), is
        below it ("less", which the R package predbayescor assumes), or is not above it ("less_equal").
    n_alpha : int
        Number of values of alpha.
    n_theta, n_theta_adjust : int
        Grids over theta, see `Prior`; n_theta is used by the rule "simpson" only.
    shape, rate : float
        alpha ~ Inverse-Gamma(shape, rate).
    theta0 : float
        theta_j ~ Uniform(theta0, 1 - theta0).
    f0, f1 : float
        P(y = 1) ~ Beta(f1, f0).
    rule : {"gauss", "simpson"}
        Integration over theta, see `Prior`.
    selection_rows : array of int or bool, optional
        Rows on which features are selected; default: all. The classifier learns from all rows.
    unlabelled : array of shape (n_more_cases, n_features), optional
        Cases without response whose values count towards the medians, for example the test cases, as in the slides.
    cuts : array of shape (n_features,), optional
        Where to cut each feature, NaN for its median. A feature that looks binary in some rows may be real in others:
        `trimbench.selection_bias.features.known_cuts` on all data finds the binary features.

    Returns
    -------
    SelectionCorrectedModel

    Raises
    ------
    ValueError
        When an argument is out of range, or a selected feature has no correlation with y at all.

    Examples
    --------
    >>> import trimbench as tb
    >>> X = [[1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    >>> model = tb.fit_selection_corrected(X, [1, 1, 1, 0, 0, 0], k=1)
    >>> model.selected.tolist(), round(model.gamma, 3)
    ([0], 0.707)
    >>> model.expected_error(X) > model.uncorrected().expected_error(X)
    True

    References
    ----------
    Li, Zhang and Neal (2008).
    """
    table = checked_table("X", X)
    response = checked_response(y, len(table))
    check_ties(ties)
    prior = Prior(shape, rate, theta0, f0, f1, n_alpha, n_theta, n_theta_adjust, rule)
    n_selected = checked_k(k, table.shape[1])
    rows = checked_rows("selection_rows", selection_rows, response)
    more = None if unlabelled is None else checked_more_cases(unlabelled, table.shape[1])
    binariser = Binariser.fit(table, more, checked_cuts(cuts, table.shape[1]))
    binary = binariser.transform(table)
    ones0, ones1 = class_counts(binary[rows], response[rows])
    n1 = int(response[rows].sum())
    selection = select_features(ones0, ones1, len(rows) - n1, n1, n_selected)
    if len(rows) < len(response):
        ones0, ones1 = class_counts(binary, response)
    return fit_selected(prior, selection, ones0, ones1, response, binariser, correct=correct, ties=ties)


def fit_selected(
    prior: Prior,
    selection: Selection,
    ones0: NDArray[np.int64],
    ones1: NDArray[np.int64],
    response: NDArray[np.int64],
    binariser: Binariser,
    *,
    correct: bool,
    ties: Ties,
) -> SelectionCorrectedModel:
    """Fit the classifier to features that have been selected.

    Parameters
    ----------
    ones0, ones1 : ndarray of shape (n_features,)
        Ones of all features in each class, over all training cases.
    response : ndarray of shape (n_cases,)
    """
    n1 = int(response.sum())
    n0 = len(response) - n1
    kept0, kept1 = ones0[selection.features], ones1[selection.features]
    codes, pair_of_feature = np.unique(kept0 * (n1 + 1) + kept1, return_inverse=True)
    pairs = np.stack(np.divmod(codes, n1 + 1), axis=1)
    if correct and selection.n_discarded and (selection.n0, selection.n1) == (n0, n1):
        # Factor and marginals are sums over the same tables.
        sums = WeaknessSums(prior, n0, n1, selection.cut_ones)
        features = marginals(prior, pairs, n0, n1, sums.add)
        factor = log_adjustment(prior, selection, ties, sums.result())
    else:
        features = marginals(prior, pairs, n0, n1)
        factor = log_adjustment(prior, selection, ties) if correct else np.zeros(prior.n_alpha)
    log_likelihood = features.log_likelihood @ np.bincount(pair_of_feature)
    return SelectionCorrectedModel(
        prior=prior,
        selection=selection,
        binariser=binariser,
        n0=n0,
        n1=n1,
        ones0=kept0,
        ones1=kept1,
        alpha_grid=prior.alphas(),
        log_adjustment=factor,
        log_likelihood=log_likelihood,
        features=features,
        pair_of_feature=pair_of_feature,
    )
