"""Features of several categories: their counts, marginal likelihoods and adjustment factor."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from trimbench.selection_bias.factors import (
    MAX_CATEGORIES,
    Simulation,
    Ties,
    can_enumerate,
    enumerated_categories,
    log_rising,
    simplex_nodes,
    simulated_categories,
)
from trimbench.selection_bias.features import checked_cases
from trimbench.selection_bias.model import DiscreteFeatures
from trimbench.selection_bias.selection import Selection, select


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories 0, 1, ... of features.

    Attributes
    ----------
    numbers : ndarray of shape (n_features,)
        How many categories each feature has.
    """

    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, table: NDArray[Any], n_categories: ArrayLike | None) -> Categories:
        """Check given numbers of categories, or take one more than the largest category of each feature."""
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
        return cls(found.astype(np.int64))

    def codes(self, X: ArrayLike, columns: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int8]:
        """Return some features, -1 where a category is missing; raise ValueError for what is no category."""
        table = checked_cases(X, len(self.numbers))
        missing = np.isnan(table)
        if ((table != np.floor(table)) | (table < 0) | (table >= self.numbers))[~missing].any():
            raise ValueError(
                "X must hold categories 0, 1, ..., each below the number of categories of its feature, "
                f"got values from {np.nanmin(table)} to {np.nanmax(table)}; encode the labels, or give n_categories"
            )
        found: NDArray[np.int8] = np.where(missing, -1, table)[:, columns].astype(np.int8)
        return found


def category_counts(
    codes: NDArray[np.int8], response: NDArray[np.int64], numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cases of each class in each category, of shape (2, most categories, n_features); 0 beyond a feature's.

    Parameters
    ----------
    codes : ndarray of shape (n_cases, n_features)
    response : ndarray of shape (n_cases,)
        Zeros and ones.
    numbers : ndarray of shape (n_features,)
        How many categories each feature has.
    """
    values = range(int(numbers.max()))
    return np.array([[(codes[response == y] == v).sum(axis=0) for v in values] for y in (0, 1)], dtype=np.int64)


def select_categorical(
    counts: NDArray[np.int64], numbers: NDArray[np.int64], k: int, *, allow_fewer: bool = False
) -> Selection:
    """Select the k features with the largest Cramer's V."""
    sizes = counts.sum(axis=1)
    return select(counts[1], counts.sum(axis=0), k, np.vstack([sizes, numbers]), allow_fewer=allow_fewer)


def log_category_adjustment(
    alphas: NDArray[np.float64], selection: Selection, ties: Ties, simulation: Simulation
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the adjustment factor and its standard error, each of shape (n_alpha,)."""
    log_factor, error = np.zeros((2, len(alphas)))
    rng = np.random.default_rng(simulation.random_state)
    for group in selection.groups:
        n0, n1 = group.sizes
        feature = (alphas, group.n_categories, n0, n1, Fraction(selection.cut))
        possible = can_enumerate(group.n_categories, n0, n1, len(alphas))
        if simulation.enumerates(possible, f"{group.n_categories} categories and {n0 + n1} cases"):
            weakness = enumerated_categories(*feature)
        else:
            weakness = simulated_categories(*feature, simulation.n_simulations, rng)
        log_factor += weakness.log_factor(group.n_discarded, group.n_tied, ties)
        error = np.hypot(error, group.n_discarded * weakness.log_error)
    return log_factor, error


def learn_categorical(
    alphas: NDArray[np.float64],
    coding: Categories,
    features: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.float64], DiscreteFeatures]:
    """Return the log-likelihood of some features, of shape (n_alpha,), and what predictions need of them.

    Parameters
    ----------
    features : ndarray of shape (k,)
        Their numbers.
    counts : ndarray of shape (2, most categories, k)
        See `category_counts`.
    """
    sizes = counts[:, :, 0].sum(axis=1)
    tables = [counts[:, :number, j] for j, number in enumerate(coding.numbers[features].tolist())]
    distinct = {table.tobytes(): table for table in tables}
    places = {key: place for place, key in enumerate(distinct)}
    found = [_marginal(alphas, table, sizes) for table in distinct.values()]
    starts = np.cumsum([0, *(table.shape[1] for table in distinct.values())])
    of_feature = [places[table.tobytes()] for table in tables]
    values = np.concatenate(list(distinct.values()), axis=1)
    return sum((found[place][0] for place in of_feature), np.zeros(len(alphas))), DiscreteFeatures(
        coding,
        features,
        alphas,
        values,
        np.repeat(sizes[:, None], values.shape[1], axis=1),
        np.concatenate([theta for _, theta in found], axis=1),
        starts[of_feature],
        coding.numbers[features],
    )


def _marginal(
    alphas: NDArray[np.float64], counts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log M, of shape (n_alpha,), and the means of theta, of shape (n_alpha, n_categories), of one feature."""
    nodes, weights = simplex_nodes(counts.shape[1], int(sizes.sum()))
    log_mass, theta = np.empty(len(alphas)), np.empty((len(alphas), counts.shape[1]))
    for place, alpha in enumerate(alphas):
        terms = np.log(weights)
        for n_y, c in zip(sizes, counts, strict=True):
            terms = terms + log_rising(alpha * nodes, c).sum(axis=1) - log_rising(alpha, n_y)
        log_mass[place] = logsumexp(terms)
        theta[place] = np.exp(terms - log_mass[place]) @ nodes
    return log_mass, theta
