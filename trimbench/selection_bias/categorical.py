"""Features of several categories: their counts, marginal likelihoods and adjustment factor."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, roots_jacobi

from trimbench.selection_bias.factors import DiscardProbabilities, Simulation, Ties
from trimbench.selection_bias.features import checked_cases
from trimbench.selection_bias.model import DiscreteFeatures
from trimbench.selection_bias.selection import Selection, squared_ratio


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
        """Return some features, -1 where a category is missing; raise ValueError for what is not a category."""
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
    alphas: NDArray[np.float64], coding: Categories, features: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], DiscreteFeatures]:
    """Return the log-likelihood of some features, of shape (n_alpha,), and the features as predictions need them.

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


# The probability that a feature of several categories is discarded, by enumeration or simulation.

# Number of multiplications that take about ten seconds, and of pairs of counts that fit into 64 MB.
_MOST_WORK = 1e11
_MOST_PAIRS = 4e6
_BLOCK = 20_000


def strengths(counts0: NDArray[np.int64], counts1: NDArray[np.int64], n0: int, n1: int) -> NDArray[np.float64]:
    """Return n n0 n1 times the square of Cramer's V, for counts with the categories in the last axis, which broadcast.

    Parameters
    ----------
    counts0, counts1 : ndarray of int
        Cases of each category in each class.
    """
    difference = (n0 * counts1 - n1 * counts0).astype(float)
    result: NDArray[np.float64] = (difference**2 / np.maximum(counts0 + counts1, 1)).sum(axis=-1)
    return result


def can_enumerate(n_categories: int, n0: int, n1: int, n_alpha: int) -> bool:
    """Tell whether all counts of a feature can be enumerated in seconds."""
    pairs = math.comb(n0 + n_categories - 1, n0) * math.comb(n1 + n_categories - 1, n1)
    nodes = len(simplex_nodes(n_categories, n0 + n1)[1])
    return pairs <= _MOST_PAIRS and pairs * nodes * n_alpha <= _MOST_WORK


def enumerated_categories(
    alphas: NDArray[np.float64], n_categories: int, n0: int, n1: int, cut: Fraction
) -> DiscardProbabilities:
    """Sum the probabilities of all pairs of counts below the cut-off, and of those that equal it.

    Parameters
    ----------
    alphas : ndarray of shape (n_alpha,)
    cut : Fraction
        Squared Cramer's V of the last selected feature.
    """
    ways0, ways1 = compositions(n0, n_categories), compositions(n1, n_categories)
    less, equal = _compare(ways0, ways1, n0, n1, cut)
    theta, weights = simplex_nodes(n_categories, n0 + n1)
    # Probabilities of weaker, equal and stronger counts, each a sum of positive terms.
    masses = np.empty((3, len(alphas)))
    regions = [region.astype(np.float64) for region in (less, ~(less | equal))]
    edge0, edge1 = np.nonzero(equal)
    for place, alpha in enumerate(alphas):
        table0 = np.exp(log_count_probabilities(float(alpha), theta, ways0, n0))
        table1 = np.exp(log_count_probabilities(float(alpha), theta, ways1, n1))
        masses[0, place], masses[2, place] = (
            weights @ np.einsum("ki,ki->k", table0 @ region, table1) for region in regions
        )
        masses[1, place] = weights @ (table0[:, edge0] * table1[:, edge1]).sum(axis=1)
    return DiscardProbabilities.of_shares(*masses)


def simulated_categories(
    alphas: NDArray[np.float64],
    n_categories: int,
    n0: int,
    n1: int,
    cut: Fraction,
    n_simulations: int,
    rng: np.random.Generator,
) -> DiscardProbabilities:
    """Estimate the probabilities of `enumerated_categories` from features drawn from the model.

    Parameters
    ----------
    alphas, n_categories, n0, n1, cut
        As for `enumerated_categories`.
    n_simulations : int
        Features drawn for each alpha.
    """
    scale = float(cut * n0 * n1 * (n0 + n1))
    log_less, log_equal = np.empty(len(alphas)), np.empty(len(alphas))
    for place, alpha in enumerate(alphas):
        less = equal = 0
        for start in range(0, n_simulations, _BLOCK):
            size = min(_BLOCK, n_simulations - start)
            theta = rng.dirichlet(np.ones(n_categories), size=size)
            counts = []
            for n_y in (n0, n1):
                drawn = np.maximum(rng.standard_gamma(alpha * theta), 1e-300)
                phi = drawn / drawn.sum(axis=1, keepdims=True)
                counts.append(rng.multinomial(n_y, phi))
            relative = strengths(counts[0], counts[1], n0, n1) / scale - 1.0
            less += int((relative < -1e-10).sum())
            equal += int((np.abs(relative) <= 1e-10).sum())
        # Half a case more keeps the log finite if none was seen.
        log_less[place] = math.log((less + 0.5) / (n_simulations + 1.0))
        log_equal[place] = math.log((equal + 0.5) / (n_simulations + 1.0))
    share = np.exp(log_less)
    errors = np.sqrt((1.0 - share) / (share * n_simulations))
    return DiscardProbabilities(log_less, log_equal, np.minimum(np.logaddexp(log_less, log_equal), 0.0), errors)


def _compare(
    ways0: NDArray[np.int64], ways1: NDArray[np.int64], n0: int, n1: int, cut: Fraction
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pairs of counts are weaker than the cut-off, and which equal it, decided exactly."""
    less = np.empty((len(ways0), len(ways1)), dtype=bool)
    equal, scale = np.zeros_like(less), float(cut * n0 * n1 * (n0 + n1))
    for row, counts0 in enumerate(ways0):
        values = strengths(counts0, ways1, n0, n1)
        less[row] = values < scale
        # Rounding can matter only this close to the cut.
        for column in np.flatnonzero(np.abs(values - scale) <= 1e-9 * scale):
            exact = squared_ratio(ways1[column].tolist(), (counts0 + ways1[column]).tolist())
            less[row, column], equal[row, column] = exact < cut, exact == cut
    return less, equal


# Integration over the probabilities of several categories, and counts of several categories.

MAX_CATEGORIES = 5
# Maximum number of nodes in each direction: their product has to fit into memory.
_MOST_NODES = {2: 400, 3: 120, 4: 40, 5: 18}
_FAR = 1e3


@functools.lru_cache(maxsize=8)
def simplex_nodes(n_categories: int, n_cases: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a grid over theta ~ Dirichlet(1, ..., 1) and its weights.

    Parameters
    ----------
    n_categories : int
        V, from 2 to 5.
    n_cases : int
        The integrands are polynomials of degree n_cases + 1 at most, for which n_cases / 2 + 1 nodes in each direction
        are exact; 4.5 sqrt(n_cases) resolve them. At most 120 (V = 3), 40 (V = 4) or 18 (V = 5) are taken.

    Returns
    -------
    theta : ndarray of shape (n_nodes, V)
        Rows sum to 1.
    weights : ndarray of shape (n_nodes,)
        They sum to 1.

    Notes
    -----
    theta_1 = t_1, theta_2 = (1 - t_1) t_2, ... with independent t_i ~ Beta(1, V - i): a product of Gauss and Jacobi
    rules.
    """
    n_nodes = min(n_cases // 2 + 2, max(20, math.ceil(4.5 * math.sqrt(n_cases))), _MOST_NODES[n_categories])
    rules = []
    for left in range(n_categories - 1, 0, -1):
        roots, weights = roots_jacobi(n_nodes, left - 1, 0.0)
        rules.append((0.5 * (1.0 + roots), weights / weights.sum()))
    grids = np.meshgrid(*(t for t, _ in rules), indexing="ij")
    theta = np.empty((grids[0].size, n_categories))
    rest = np.ones(grids[0].size)
    for place, t in enumerate(grids):
        theta[:, place] = rest * t.ravel()
        rest = rest * (1.0 - t.ravel())
    theta[:, -1] = rest
    weights = functools.reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    theta.flags.writeable = weights.flags.writeable = False
    return theta, weights


def compositions(n: int, n_categories: int) -> NDArray[np.int64]:
    """Return all ways to distribute n cases over the categories, of shape (n_ways, n_categories)."""
    bars = np.array(list(itertools.combinations(range(n + n_categories - 1), n_categories - 1)), dtype=np.int64)
    bars = bars.reshape(-1, n_categories - 1)
    ends = np.full((len(bars), 1), n + n_categories - 1)
    return np.diff(np.hstack([np.full((len(bars), 1), -1), bars, ends]), axis=1) - 1


def log_rising(a: NDArray[np.float64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log of a (a + 1) ... (a + c - 1) = log Gamma(a + c) - log Gamma(a), without loss of digits for large a.

    Parameters
    ----------
    count : ndarray of int
        c >= 0; broadcasts with `a`.
    """
    # Stirling's series of both, where the two logs of Gamma would be large and nearly equal.
    large = np.maximum(a, _FAR)
    end = large + count
    far = (end - 0.5) * np.log1p(count / large) + count * (np.log(large) - 1.0)
    far += (1.0 / end - 1.0 / large) / 12.0 - (1.0 / end**3 - 1.0 / large**3) / 360.0
    small = np.minimum(a, _FAR)
    return np.where(a > _FAR, far, gammaln(small + count) - gammaln(small))


def log_count_probabilities(
    alpha: float, theta: NDArray[np.float64], counts: NDArray[np.int64], n: int
) -> NDArray[np.float64]:
    """Return log P(c | alpha, theta) of counts in one class, Dirichlet-multinomial with parameter alpha theta.

    Parameters
    ----------
    theta : ndarray of shape (n_nodes, n_categories)
    counts : ndarray of shape (n_ways, n_categories)
        Rows sum to n.

    Returns
    -------
    ndarray of shape (n_nodes, n_ways)
    """
    result = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1) - log_rising(np.array(alpha), np.array(n))
    possible = np.arange(n + 1)
    for category in range(theta.shape[1]):
        rising = log_rising(alpha * theta[:, category, None], possible)
        result = result + rising[:, counts[:, category]]
    return np.asarray(result, dtype=np.float64)
