"""The naive Bayes classifier with correction for feature selection, for Gaussian features."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from trimbench.selection_bias.averaged import AveragedClassifier
from trimbench.selection_bias.features import checked_classes, checked_rows, checked_table
from trimbench.selection_bias.gaussian_factor import log_gaussian_adjustment
from trimbench.selection_bias.gaussian_marginals import (
    GaussianPredictive,
    gaussian_log_likelihood,
    gaussian_predictive,
)
from trimbench.selection_bias.gaussian_moments import GaussianMoments, standardised
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import checked_k, too_many_selected

# Numbers of a block of cases, classes and alphas, which stays in the cache of the processor.
_BLOCK_ENTRIES = 2**15
# A factor is at most 1e213, so that a product up to this has room for one more.
_LARGE = 1e90


@dataclass(frozen=True, eq=False)
class GaussianSelectionCorrectedModel(AveragedClassifier):
    """A fitted classifier; `fit_gaussian_selection_corrected` makes it.

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
        A bound on the terms that it leaves out; 0 with two classes.
    log_likelihood : ndarray of shape (n_alpha,)
        sum_j log M_{alpha j} over the selected features, relative to that of an infinite alpha.
    selected : ndarray of shape (k,)
        Numbers of the selected features, from the largest F statistic to the smallest.
    gamma : float
        Smallest correlation ratio eta of a selected feature, F = (n - C) eta^2 / ((C - 1) (1 - eta^2)); with two
        classes the absolute correlation.
    n_features : int
    moments : GaussianMoments
        Of the selected features that vary.
    varying : ndarray of int
        Their numbers.
    """

    selected: NDArray[np.int64]
    gamma: float
    n_features: int
    moments: GaussianMoments
    varying: NDArray[np.int64]

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        values = checked_table("X", X, allow_missing=True)
        if values.shape[1] != self.n_features:
            raise ValueError(
                f"X must have the {self.n_features} features of the training cases, got {values.shape[1]} features"
            )
        pseudo_counts = self.class_sizes + self.prior.pseudo_counts(len(self.class_sizes))
        base = self.log_adjustment + self.log_likelihood
        offset = np.log(pseudo_counts)[:, None] + (base - base.max())
        predictive = gaussian_predictive(self.alpha_grid, self.moments)
        result = np.empty((len(values), len(self.class_sizes)))
        step = max(1, _BLOCK_ENTRIES // offset.size)
        for start in range(0, len(values), step):
            cases = values[start : start + step][:, self.varying]
            z = standardised(cases, self.moments.centres, self.moments.scales)
            result[start : start + step] = logsumexp(offset + _log_densities(predictive, z), axis=2)
        return result


def fit_gaussian_selection_corrected(
    X: ArrayLike,
    y: ArrayLike,
    k: int,
    correct: bool = True,
    n_alpha: int = 100,
    shape: float = 0.5,
    rate: float = 5.0,
    *,
    f0: float = 1.0,
    f1: float = 1.0,
    selection_rows: ArrayLike | None = None,
) -> GaussianSelectionCorrectedModel:
    """Select the k features with the largest F statistic, and fit a classifier that accounts for the selection.

    In class c a feature is Gaussian with mean mu_cj and variance sigma_j^2, mu_cj ~ N(nu_j, sigma_j^2 / alpha). The
    prior of nu_j and sigma_j is flat, with density 1 / sigma_j: location and scale of a feature change nothing.

    Parameters
    ----------
    X : array of shape (n_cases, n_features)
        Real values. Values may be missing (NaN, masked, None or the missing value of pandas), see Notes.
    y : array of shape (n_cases,)
        Classes 0, 1, ..., at least one case of each, and more cases than classes.
    k : int
        Number of features to select, from 1 to n_features; n_features keeps all and corrects nothing.
    correct : bool
        Whether predictions condition on the small F statistics of the discarded features.
    n_alpha : int
        Number of values of alpha.
    shape, rate : float
        alpha ~ Inverse-Gamma(shape, rate), so that 1 / alpha, the variance between the classes over that within, is
        Gamma(shape, rate).
    f0, f1 : float
        P(y = 1) ~ Beta(f1, f0); they must be equal if there are more classes.
    selection_rows : array of int or bool, optional
        Rows on which features are selected; default: all. The classifier learns from all rows.

    Returns
    -------
    GaussianSelectionCorrectedModel

    Raises
    ------
    ValueError
        When an argument is out of range, or a selected feature does not depend on y at all.

    Notes
    -----
    Everything is in closed form, but for the factor of three or more classes, a series with a bound on what it leaves
    out (`log_adjustment_error`). Two values of F are equal with probability 0, so that nothing is to be said of ties.

    A feature with missing values is ranked by eta over the cases in which it was observed, and enters the likelihood
    with these; a discarded one has the probability of a smaller eta over its own. This is exact if whether a value is
    missing depends on nothing but the class. Constant features, and those that were observed in one class only or in no
    more cases than classes, say nothing of alpha: they rank last, and the factor leaves them out.

    The model takes the variance of a feature for the same in all classes, and the features of a class for independent.

    Examples
    --------
    >>> import trimbench as tb
    >>> X = [[1.2, 0.3, 0.5], [1.9, 0.1, 0.4], [1.4, 0.9, 0.8], [0.3, 0.2, 0.7], [0.1, 0.8, 0.3], [0.7, 0.4, 0.4]]
    >>> model = tb.fit_gaussian_selection_corrected(X, [1, 1, 1, 0, 0, 0], k=1)
    >>> model.selected.tolist(), round(model.gamma, 3)
    ([0], 0.901)
    >>> model.expected_error(X) > model.uncorrected().expected_error(X)
    True

    References
    ----------
    Li, Zhang and Neal (2008), whose models are of discrete features.
    """
    table = checked_table("X", X, allow_missing=True)
    response, n_classes = checked_classes(y, len(table))
    prior = Prior(shape=shape, rate=rate, f0=f0, f1=f1, n_alpha=n_alpha)
    prior.pseudo_counts(n_classes)
    n_selected = checked_k(k, table.shape[1])
    rows = checked_rows("selection_rows", selection_rows, response)
    if len(rows) <= n_classes:
        raise ValueError(
            f"y must have more cases than its {n_classes} classes for a variance within, got {len(rows)}; add cases"
        )
    ranked = GaussianMoments.of(table, response, n_classes, rows)
    ratios = ranked.squared_ratios
    order = np.argsort(-ratios, kind="stable")
    selected, discarded = order[:n_selected], order[n_selected:]
    cut = float(ratios[selected[-1]])
    if cut == 0.0 and len(discarded):
        raise too_many_selected(n_selected, int((ratios > 0.0).sum()), len(order))
    alphas = prior.alphas()
    log_factor, error = np.zeros((2, n_alpha))
    if correct:
        counted = discarded[ranked.informative[discarded]]
        log_factor, error = log_gaussian_adjustment(alphas, ranked.sizes[:, counted], cut)
    if len(rows) < len(table):
        kept = GaussianMoments.of(table[:, selected], response, n_classes, np.arange(len(table)))
    else:
        kept = ranked.of_features(selected)
    varying = np.flatnonzero(kept.scales > 0.0)
    moments = kept.of_features(varying)
    return GaussianSelectionCorrectedModel(
        prior=prior,
        class_sizes=np.bincount(response),
        alpha_grid=alphas,
        log_adjustment=log_factor,
        log_adjustment_error=error,
        log_likelihood=gaussian_log_likelihood(alphas, moments).sum(axis=0),
        selected=selected,
        gamma=float(np.sqrt(cut)),
        n_features=table.shape[1],
        moments=moments,
        varying=selected[varying],
    )


def _log_densities(predictive: GaussianPredictive, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of log p(z | c, alpha) over the features, of shape (n_cases, n_classes, n_alpha)."""
    n_features, *shape = predictive.location.shape
    seen = ~np.isnan(z)
    log_widths = predictive.log_width.reshape(n_features, math.prod(shape))
    widths = np.exp(0.5 * log_widths)
    locations = predictive.location.reshape(n_features, math.prod(shape)) / widths
    result = -0.5 * (seen.astype(np.float64) @ log_widths)
    for n_cases in np.unique(predictive.n_cases):
        members = np.flatnonzero(predictive.n_cases == n_cases)
        result -= 0.5 * n_cases * _log_product(z[:, members], widths[members], locations[members])
    return result.reshape(len(z), *shape)


def _log_product(
    z: NDArray[np.float64], widths: NDArray[np.float64], locations: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log of prod_j (1 + (z_j / width_j - location_j)^2): few logarithms, which take most of the time."""
    product = np.ones((len(z), widths.shape[1]))
    terms, result = np.empty_like(product), np.zeros_like(product)
    for j, column in enumerate(z.T):
        missing = np.isnan(column)
        np.multiply.outer(column, 1.0 / widths[j], out=terms)
        terms -= locations[j]
        terms *= terms
        terms += 1.0
        if missing.any():
            terms[missing] = 1.0
        product *= terms
        if product.max() > _LARGE:
            result += np.log(product)
            product.fill(1.0)
    return result + np.log(product)
