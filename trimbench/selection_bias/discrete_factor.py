"""Adjustment factor for features with several categories, by enumeration or simulation.

The dependence of a feature on the response is measured by Cramer's V of their table,
V^2 = chi^2 / n = sum_v d_v^2 / (n n0 n1 m_v), d_v = n0 c_1v - n1 c_0v, m_v = c_0v + c_1v. For two categories it is the
absolute correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trimbench.selection_bias.adjustment import WeaknessProbabilities
from trimbench.selection_bias.simplex import compositions, log_count_probabilities, simplex_nodes

# Multiplications of an enumeration that takes about ten seconds, and pairs of counts that fit into 64 MB.
_MOST_WORK = 1e11
_MOST_PAIRS = 4e6
_BLOCK = 20_000


@dataclass(frozen=True, eq=False)
class DiscreteWeakness:
    """Probability that a feature of several categories is as weak as the cut-off, for each alpha.

    Attributes
    ----------
    log_errors : ndarray of shape (n_alpha,)
        Standard error of log P(V < gamma): 0 where it was enumerated.
    """

    probabilities: WeaknessProbabilities
    log_errors: NDArray[np.float64]


def strength(counts0: NDArray[np.int64], counts1: NDArray[np.int64]) -> Fraction:
    """Return n n0 n1 times the square of Cramer's V, exactly.

    Parameters
    ----------
    counts0, counts1 : ndarray of shape (n_categories,)
        Cases of each category in each class.
    """
    first, second = [int(c) for c in counts0], [int(c) for c in counts1]
    n0, n1 = sum(first), sum(second)
    return sum(
        (Fraction((n0 * b - n1 * a) ** 2, a + b) for a, b in zip(first, second, strict=True) if a + b), Fraction(0)
    )


def strengths(counts0: NDArray[np.int64], counts1: NDArray[np.int64], n0: int, n1: int) -> NDArray[np.float64]:
    """Return `strength` in floating point, for counts with the categories in the last axis; the others broadcast."""
    difference = (n0 * counts1 - n1 * counts0).astype(float)
    result: NDArray[np.float64] = (difference**2 / np.maximum(counts0 + counts1, 1)).sum(axis=-1)
    return result


def can_enumerate(n_categories: int, n0: int, n1: int, n_alpha: int) -> bool:
    """Tell whether all counts of a feature can be enumerated in seconds."""
    pairs = math.comb(n0 + n_categories - 1, n0) * math.comb(n1 + n_categories - 1, n1)
    nodes = len(simplex_nodes(n_categories, n0 + n1)[1])
    return pairs <= _MOST_PAIRS and pairs * nodes * n_alpha <= _MOST_WORK


def enumerated_weakness(
    alphas: NDArray[np.float64], n_categories: int, n0: int, n1: int, cut: Fraction
) -> DiscreteWeakness:
    """Sum the probabilities of all pairs of counts that are weaker than the cut-off, and that equal it.

    Parameters
    ----------
    alphas : ndarray of shape (n_alpha,)
    cut : Fraction
        `strength` of the feature at the cut-off.
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
    weaker, same, stronger = masses
    with np.errstate(divide="ignore"):
        probabilities = WeaknessProbabilities(
            _log_share(weaker, same + stronger), np.log(same), _log_share(weaker + same, stronger)
        )
    return DiscreteWeakness(probabilities, np.zeros(len(alphas)))


def _log_share(mass: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of a probability from it and its complement, whichever keeps more digits."""
    return np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(mass))


def simulated_weakness(
    alphas: NDArray[np.float64],
    n_categories: int,
    n0: int,
    n1: int,
    cut: Fraction,
    n_simulations: int,
    rng: np.random.Generator,
) -> DiscreteWeakness:
    """Estimate the probabilities of `enumerated_weakness` from features drawn from the model.

    Parameters
    ----------
    alphas, n_categories, n0, n1, cut
        As for `enumerated_weakness`.
    n_simulations : int
        Features drawn for each alpha.
    """
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
            relative = strengths(counts[0], counts[1], n0, n1) / float(cut) - 1.0
            less += int((relative < -1e-10).sum())
            equal += int((np.abs(relative) <= 1e-10).sum())
        # Half a case more keeps the log finite if none was seen.
        log_less[place] = math.log((less + 0.5) / (n_simulations + 1.0))
        log_equal[place] = math.log((equal + 0.5) / (n_simulations + 1.0))
    share = np.exp(log_less)
    errors = np.sqrt((1.0 - share) / (share * n_simulations))
    probabilities = WeaknessProbabilities(log_less, log_equal, np.minimum(np.logaddexp(log_less, log_equal), 0.0))
    return DiscreteWeakness(probabilities, errors)


def _compare(
    ways0: NDArray[np.int64], ways1: NDArray[np.int64], n0: int, n1: int, cut: Fraction
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pairs of counts are weaker than the cut-off, and which equal it, decided exactly."""
    less = np.empty((len(ways0), len(ways1)), dtype=bool)
    equal = np.zeros_like(less)
    for row, counts0 in enumerate(ways0):
        values = strengths(counts0, ways1, n0, n1)
        less[row] = values < float(cut)
        # Rounding can matter only this close to the cut.
        for column in np.flatnonzero(np.abs(values - float(cut)) <= 1e-9 * float(cut)):
            exact = strength(counts0, ways1[column])
            less[row, column], equal[row, column] = exact < cut, exact == cut
    return less, equal
