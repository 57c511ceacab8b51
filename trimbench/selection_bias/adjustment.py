"""The adjustment factor: the probability that the discarded features are as weak as observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.selection_bias.count_tables import CountTables, count_tables
from trimbench.selection_bias.prior import Prior, check_whole
from trimbench.selection_bias.selection import Selection, region_bounds

Ties = Literal["exact", "less", "less_equal"]
TIES: tuple[Ties, ...] = ("exact", "less", "less_equal")
Factor = Literal["auto", "enumerate", "simulate"]
FACTORS: tuple[Factor, ...] = ("auto", "enumerate", "simulate")
# Below this a difference from 1 has lost digits that the adjustment factor needs.
_LEAST_DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Simulation:
    """How the probability of weakness is computed where its exact sum may take too long.

    Attributes
    ----------
    factor : {"auto", "enumerate", "simulate"}
        "auto" enumerates where that takes seconds.
    n_simulations : int
        Features drawn for each alpha, where they are.
    seed : int

    Raises
    ------
    ValueError
        When a value is out of range.
    """

    factor: Factor = "auto"
    n_simulations: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.factor not in FACTORS:
            raise ValueError(f"factor must be one of {', '.join(FACTORS)}, got {self.factor!r}")
        check_whole("n_simulations", self.n_simulations, 1)
        check_whole("seed", self.seed, 0)

    def enumerates(self, possible: bool, what: str) -> bool:
        """Return whether to enumerate; raise ValueError if that was asked for but is not possible."""
        if self.factor == "enumerate" and not possible:
            raise ValueError(
                f"factor='enumerate' would take too long for {what}; use factor='simulate', or a smaller n_alpha"
            )
        return possible and self.factor != "simulate"


@dataclass(frozen=True, eq=False)
class WeaknessProbabilities:
    r"""How probable it is that one feature is as weak as the cut-off, for each alpha.

    Attributes
    ----------
    log_less : ndarray of shape (n_alpha,)
        log P(\|cor\| < gamma | alpha, y).
    log_equal : ndarray of shape (n_alpha,)
        log P(\|cor\| = gamma | alpha, y).
    log_less_equal : ndarray of shape (n_alpha,)
        log P(\|cor\| <= gamma | alpha, y).
    """

    log_less: NDArray[np.float64]
    log_equal: NDArray[np.float64]
    log_less_equal: NDArray[np.float64]

    def log_factor(self, n_discarded: int, n_tied: int, ties: Ties) -> NDArray[np.float64]:
        """Return the log of the probability of the discarded features, `n_tied` of which equal the cut-off."""
        if ties == "less_equal":
            return n_discarded * self.log_less_equal
        n_equal = n_tied if ties == "exact" else 0
        result = np.zeros_like(self.log_less)
        for count, log_probability in ((n_discarded - n_equal, self.log_less), (n_equal, self.log_equal)):
            if count:  # 0 times minus infinity is 0 here
                result += count * log_probability
        return result


def weakness_probabilities(prior: Prior, n0: int, n1: int, cut_ones: tuple[int, int]) -> WeaknessProbabilities:
    """Return the probabilities that a feature is weaker than the cut-off, and that it equals it.

    Parameters
    ----------
    n0, n1 : int
        Cases in each class.
    cut_ones : tuple of int
        (I_0, I_1) of a feature at the cut-off gamma > 0.

    Notes
    -----
    P(H+ | alpha, theta) = sum over I_1 of P(I_1) P(I_0 <= r(I_1)), as I_0 and I_1 are independent given theta. The
    region of negative correlations has the same probability whatever n0 and n1 are: x -> 1 - x maps one to the other
    and theta to 1 - theta, about which prior and grid are symmetric.

    References
    ----------
    Li, Zhang and Neal (2008), "Computation of the adjustment factor (I)" to "(IV)".
    """
    sums = WeaknessSums(prior, n0, n1, cut_ones)
    for tables in count_tables(prior, n0, n1, n0 + n1):
        sums.add(tables)
    return sums.result()


class WeaknessSums:
    """The sums of `weakness_probabilities`, part by part, for callers that go through the tables anyway."""

    def __init__(self, prior: Prior, n0: int, n1: int, cut_ones: tuple[int, int]) -> None:
        self._at_least, self._above = region_bounds(cut_ones, n0, n1)
        self._log_less, self._log_equal, self._log_less_equal = np.empty((3, prior.n_alpha))

    def add(self, tables: CountTables) -> None:
        """Add the tables of some of the alphas."""
        stronger = 2.0 * _region_probability(tables, self._above)
        equal = 2.0 * _edge_probability(tables, self._above, self._at_least)
        with np.errstate(divide="ignore"):
            self._log_equal[tables.alphas] = np.log(equal)
        self._log_less[tables.alphas] = _log_complement(stronger + equal, tables, self._at_least)
        self._log_less_equal[tables.alphas] = _log_complement(stronger, tables, self._above)

    def result(self) -> WeaknessProbabilities:
        """Return the probabilities, once all parts have been added."""
        return WeaknessProbabilities(self._log_less, self._log_equal, self._log_less_equal)


def log_adjustment(
    prior: Prior, selection: Selection, ties: Ties, weakness: WeaknessProbabilities | None = None
) -> NDArray[np.float64]:
    """Return the log of the adjustment factor A_alpha.

    Raises ValueError if `ties` is unknown, or what was discarded has probability 0 at every alpha.

    Parameters
    ----------
    ties : {"exact", "less", "less_equal"}
        What is known about a discarded feature: that it is weaker than the cut-off, or exactly as strong if it is
        ("exact"); that it is weaker ("less"); that it is not stronger ("less_equal").
    weakness : WeaknessProbabilities, optional
        Of the cut-off, if they have been computed already.

    Returns
    -------
    ndarray of shape (n_alpha,)
        (p - k) log q, and 0 where nothing was discarded.
    """
    check_ties(ties)
    if selection.n_discarded == 0:
        return np.zeros(prior.n_alpha)
    weakness = weakness or weakness_probabilities(prior, selection.n0, selection.n1, selection.cut_ones)
    result = weakness.log_factor(selection.n_discarded, selection.n_tied, ties)
    check_possible(result, prior)
    return result


def check_possible(log_factor: NDArray[np.float64], prior: Prior) -> None:
    """Raise an error if what was discarded has probability 0 at every alpha."""
    if not np.isfinite(log_factor).any():
        raise ValueError(
            "the discarded features have probability 0 under the prior at every alpha; set theta0=0 or a wider prior "
            f"of alpha, got theta0={prior.theta0}, shape={prior.shape}, rate={prior.rate}"
        )


def check_ties(ties: str) -> None:
    """Raise an error unless a name is one of the ways to treat ties at the cut-off."""
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}, got {ties!r}; 'exact' suits almost every use")


def _region_probability(tables: CountTables, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P(I_0 <= bound(I_1) | alpha), integrated over theta."""
    first = int(np.searchsorted(bounds, 0))
    if first == len(bounds):
        return np.zeros(len(tables.class0))
    below = np.cumsum(tables.class0[:, :, : bounds[-1] + 1], axis=2).take(bounds[first:], axis=2)
    result: NDArray[np.float64] = np.einsum("aki,aki->ak", below, tables.class1[:, :, first:]) @ tables.weights
    return result


def _log_complement(
    probability: NDArray[np.float64], tables: CountTables, bounds: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return log(1 - P(H | alpha)) for the region H = H+ or H- of `bounds`.

    Where almost nothing is left, the difference would be rounding error, so the cells outside the region are summed.
    """
    left = 1.0 - probability
    for place in np.flatnonzero(left < _LEAST_DIFFERENCE):
        left[place] = _outside(tables, bounds, int(place))
    with np.errstate(divide="ignore"):
        return np.where(left < _LEAST_DIFFERENCE, np.log(left), np.log1p(-np.minimum(probability, 1.0)))


def _outside(tables: CountTables, bounds: NDArray[np.int64], place: int) -> float:
    """Return P(bound(I_1) < I_0 < n_0 - bound(n_1 - I_1)) at one alpha: neither in H+ nor in H-, its mirror image."""
    class0, class1 = tables.class0[place], tables.class1[place]
    inside = np.zeros(len(class0))
    for i1, bound in enumerate(bounds):
        end = class0.shape[1] - 1 - bounds[len(bounds) - 1 - i1]
        inside += class1[:, i1] * class0[:, bound + 1 : max(end, bound + 1)].sum(axis=1)
    return float(inside @ tables.weights)


def _edge_probability(
    tables: CountTables, above: NDArray[np.int64], at_least: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return P(above(I_1) < I_0 <= at_least(I_1) | alpha), cell by cell: there are few."""
    result = np.zeros(len(tables.class0))
    for i1 in np.flatnonzero(at_least > above):
        for i0 in range(above[i1] + 1, at_least[i1] + 1):
            result += (tables.class0[:, :, i0] * tables.class1[:, :, i1]) @ tables.weights
    return result
