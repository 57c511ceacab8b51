"""The naive Bayes classifier with correction for feature selection, for features with several categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from trimbench.networks.values import names_of
from trimbench.selection_bias.factors import (
    MAX_CATEGORIES,
    DiscreteWeakness,
    Factor,
    Simulation,
    Ties,
    can_enumerate,
    check_ties,
    enumerated_weakness,
    log_rising,
    simplex_nodes,
    simulated_weakness,
    strength,
)
from trimbench.selection_bias.features import checked_response, checked_table
from trimbench.selection_bias.model import AveragedClassifier
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import checked_k, too_many_selected


@dataclass(frozen=True, eq=False)
class DiscreteSelectionCorrectedModel(AveragedClassifier):
    """A fitted classifier; `fit_discrete_selection_corrected` makes it.

    Attributes
    ----------
    prior : Prior
    class_sizes : ndarray of shape (2,)
        Training cases with y = 0 and y = 1.
    alpha_grid : ndarray of shape (n_alpha,)
    log_adjustment : ndarray of shape (n_alpha,)
        log A_alpha; zeros without correction.
    log_adjustment_error : ndarray of shape (n_alpha,)
        Its standard error: 0 where the factor was enumerated.
    log_likelihood : ndarray of shape (n_alpha,)
    selected : ndarray of shape (k,)
        Numbers of the selected features, from the strongest to the weakest.
    gamma : float
        Smallest Cramer's V of a selected feature.
    n_categories : ndarray of shape (n_features,)
        Categories of each feature.
    log_predictive : tuple of ndarray of shape (2, n_alpha, n_categories)
        For each selected feature log P(x* = v | y*, alpha, training cases).
    """

    selected: NDArray[np.int64]
    gamma: float
    n_categories: NDArray[np.int64]
    log_predictive: tuple[NDArray[np.float64], ...]

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        cases = _checked_categories(X, self.n_categories, allow_missing=True)
        base = self.log_adjustment + self.log_likelihood
        pseudo_counts = np.log(np.add(self.class_sizes, (self.prior.f0, self.prior.f1)))
        scores = np.tile(base + pseudo_counts[:, None], (len(cases), 1, 1))
        for column, table in zip(self.selected, self.log_predictive, strict=True):
            seen = cases[:, column] >= 0
            scores[seen] += table[:, :, cases[seen, column]].transpose(2, 0, 1)
        found: NDArray[np.float64] = logsumexp(scores, axis=2)
        return found


def fit_discrete_selection_corrected(
    X: ArrayLike,
    y: ArrayLike,
    k: int,
    correct: bool = True,
    ties: Ties = "exact",
    *,
    n_categories: ArrayLike | None = None,
    factor: Factor = "auto",
    n_simulations: int = 100_000,
    seed: int = 0,
    n_alpha: int = 100,
    shape: float = 0.5,
    rate: float = 5.0,
    f0: float = 1.0,
    f1: float = 1.0,
) -> DiscreteSelectionCorrectedModel:
    """Select the k features with the largest Cramer's V, and fit a classifier that accounts for the selection.

    The model is that of `fit_selection_corrected` with Dirichlet in place of Beta: phi_yj ~ Dirichlet(alpha theta_j),
    theta_j ~ Dirichlet(1, ..., 1). With two categories it is the same.

    Parameters
    ----------
    X : array of int of shape (n_cases, n_features)
        Categories 0, 1, ...; at most five for each feature. Missing values are refused: make them a category.
    y : array of shape (n_cases,)
        Zeros and ones, at least one of each.
    k : int
    correct : bool
    ties : {"exact", "less", "less_equal"}
    n_categories : array of int of shape (n_features,), optional
        Number of categories of each feature; default: one more than the largest that occurs, at least two.
    factor : {"auto", "enumerate", "simulate"}
        How the probability of weakness is computed: exactly, from all counts that a feature can have (three categories:
        up to about 100 cases), or from features drawn from the model. "auto" enumerates where that takes seconds.
    n_simulations : int
        Features drawn for each alpha and number of categories. The error of log A is p - k times that of the logarithm
        of a frequency, see `log_adjustment_error`.
    seed : int
        Of the simulation.
    n_alpha, shape, rate, f0, f1
        As for `fit_selection_corrected`.

    Returns
    -------
    DiscreteSelectionCorrectedModel

    Raises
    ------
    ValueError
        When an argument is out of range, a feature has more than five categories, or a selected feature does not depend
        on y at all.

    References
    ----------
    Li, Zhang and Neal (2008), "Conclusion and discussion".
    """
    table = checked_table("X", X)
    response = checked_response(y, len(table))
    check_ties(ties)
    prior = Prior(shape=shape, rate=rate, f0=f0, f1=f1, n_alpha=n_alpha)
    n_selected = checked_k(k, table.shape[1])
    simulation = Simulation(factor, n_simulations, seed)
    categories = _checked_numbers(table, n_categories)
    cases = _checked_categories(table, categories)
    sizes = (int((response == 0).sum()), int(response.sum()))
    counts = [_counts(cases[:, j], response, int(v)) for j, v in enumerate(categories)]
    values = [strength(c[0], c[1]) for c in counts]
    order = sorted(range(len(values)), key=lambda j: (-values[j], j))
    cut = values[order[n_selected - 1]]
    if cut == 0 and n_selected < len(values):
        raise too_many_selected(n_selected, sum(value > 0 for value in values), len(values))
    alphas = prior.alphas()
    log_factor, error = np.zeros(n_alpha), np.zeros(n_alpha)
    if correct:
        rng = np.random.default_rng(seed)
        discarded = order[n_selected:]
        for v in sorted({int(categories[j]) for j in discarded}):
            group = [j for j in discarded if categories[j] == v]
            n_tied = sum(values[j] == cut for j in group)
            weakness = _weakness(alphas, v, sizes, cut, simulation, rng)
            log_factor += weakness.probabilities.log_factor(len(group), n_tied, ties)
            error = np.hypot(error, len(group) * weakness.log_errors)
    log_likelihood, predictive = _marginals(alphas, [counts[j] for j in order[:n_selected]], sizes)
    gamma = (float(cut) / (sizes[0] * sizes[1] * sum(sizes))) ** 0.5
    return DiscreteSelectionCorrectedModel(
        selected=np.array(order[:n_selected]),
        gamma=gamma,
        n_categories=categories,
        column_names=names_of(X),
        class_sizes=np.array(sizes),
        prior=prior,
        alpha_grid=alphas,
        log_adjustment=log_factor,
        log_adjustment_error=error,
        log_likelihood=log_likelihood,
        log_predictive=predictive,
    )


def _weakness(
    alphas: NDArray[np.float64],
    n_categories: int,
    sizes: tuple[int, int],
    cut: Fraction,
    simulation: Simulation,
    rng: np.random.Generator,
) -> DiscreteWeakness:
    possible = can_enumerate(n_categories, *sizes, len(alphas))
    if simulation.enumerates(possible, f"{n_categories} categories and {sum(sizes)} cases"):
        return enumerated_weakness(alphas, n_categories, *sizes, cut)
    return simulated_weakness(alphas, n_categories, *sizes, cut, simulation.n_simulations, rng)


def _marginals(
    alphas: NDArray[np.float64], counts: Sequence[NDArray[np.int64]], sizes: tuple[int, int]
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...]]:
    """Return the sum of log M over the features, and log P(x* = v | y*) of each; equal counts are computed once."""
    distinct = {c.tobytes(): c for c in counts}
    known = {key: _marginal(alphas, c, sizes) for key, c in distinct.items()}
    found = [known[c.tobytes()] for c in counts]
    return sum((log_mass for log_mass, _ in found), np.zeros(len(alphas))), tuple(table for _, table in found)


def _marginal(
    alphas: NDArray[np.float64], counts: NDArray[np.int64], sizes: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log M and log P(x* = v | y*) of one feature, for each alpha."""
    n_categories = counts.shape[1]
    theta, weights = simplex_nodes(n_categories, sum(sizes))
    log_mass = np.empty(len(alphas))
    log_predictive = np.empty((2, len(alphas), n_categories))
    for place, alpha in enumerate(alphas):
        terms = np.log(weights)
        for n_y, c in zip(sizes, counts, strict=True):
            terms = terms + log_rising(alpha * theta, c).sum(axis=1) - log_rising(alpha, np.array(n_y))
        log_mass[place] = logsumexp(terms)
        theta_mean = np.exp(terms - log_mass[place]) @ theta
        for y, n_y in enumerate(sizes):
            log_predictive[y, place] = np.log((counts[y] + alpha * theta_mean) / (alpha + n_y))
    return log_mass, log_predictive


def _counts(column: NDArray[np.int64], response: NDArray[np.int64], n_categories: int) -> NDArray[np.int64]:
    counts = np.empty((2, n_categories), dtype=np.int64)
    for y in (0, 1):
        counts[y] = np.bincount(column[response == y], minlength=n_categories)
    return counts


def _checked_numbers(table: NDArray[np.float64], n_categories: ArrayLike | None) -> NDArray[np.int64]:
    if n_categories is None:
        found = np.maximum(table.max(axis=0), 1).astype(np.int64) + 1
    else:
        found = np.asarray(n_categories)
        if found.shape != (table.shape[1],) or found.dtype.kind not in "iu" or found.min() < 2:
            raise ValueError(
                f"n_categories must be a whole number, 2 or more, for each of the {table.shape[1]} features, "
                f"got {n_categories!r}"
            )
    if found.max() > MAX_CATEGORIES:
        raise ValueError(
            f"features must have at most {MAX_CATEGORIES} categories, got {found.max()}; merge rare categories"
        )
    numbers: NDArray[np.int64] = found.astype(np.int64)
    return numbers


def _checked_categories(
    X: ArrayLike, n_categories: NDArray[np.int64], *, allow_missing: bool = False
) -> NDArray[np.int64]:
    """Return the categories, -1 where one is missing."""
    table = checked_table("X", X, allow_missing=allow_missing)
    if table.shape[1] != len(n_categories):
        raise ValueError(f"X must have the {len(n_categories)} features of the training cases, got {table.shape[1]}")
    missing = np.isnan(table)
    if ((table != np.floor(table)) | (table < 0) | (table >= n_categories))[~missing].any():
        raise ValueError(
            "X must hold categories 0, 1, ..., each below the number of categories of its feature, "
            f"got values from {np.nanmin(table)} to {np.nanmax(table)}; encode the labels, or give n_categories"
        )
    categories: NDArray[np.int64] = np.where(missing, -1, table).astype(np.int64)
    return categories
