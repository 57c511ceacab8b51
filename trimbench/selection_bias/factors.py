"""The adjustment factor of binary features: the probability that the discarded ones are as weak as observed."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from trimbench._checks import check_one_of, check_whole
from trimbench.selection_bias.binary import MOST_TABLED, count_tables, grid_marginals, half_grid
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import DiscardedGroup, Selection, strong_bounds, weak_counts, weak_squares

Ties = Literal["exact", "less", "less_equal"]
TIES: tuple[Ties, ...] = ("exact", "less", "less_equal")
Factor = Literal["auto", "enumerate", "simulate"]
FACTORS: tuple[Factor, ...] = ("auto", "enumerate", "simulate")
# A difference of cumulative sums below this has lost digits that the adjustment factor needs.
_LEAST_DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Simulation:
    """How the probability that a feature is discarded is computed where its exact sum may take too long.

    Attributes
    ----------
    factor : {"auto", "enumerate", "simulate"}
        "auto" enumerates where that takes seconds.
    n_simulations : int
        Features drawn for each alpha where the probability is simulated.
    random_state : int

    Raises
    ------
    ValueError
        When a value is out of range.
    """

    factor: Factor = "auto"
    n_simulations: int = 100_000
    random_state: int = 0

    def __post_init__(self) -> None:
        check_one_of("factor", self.factor, FACTORS)
        check_whole("n_simulations", self.n_simulations, 1)
        check_whole("random_state", self.random_state, 0)

    def enumerates(self, possible: bool, what: str) -> bool:
        """Return whether to enumerate; raise ValueError if that was asked for but is not possible."""
        if self.factor == "enumerate" and not possible:
            raise ValueError(
                f"factor='enumerate' would take too long for {what}; use factor='simulate', or a smaller n_alpha"
            )
        return possible and self.factor != "simulate"


@dataclass(frozen=True, eq=False)
class DiscardProbabilities:
    r"""How probable it is that one feature is weak enough to be discarded, for each alpha.

    Attributes
    ----------
    log_below : ndarray of shape (n_alpha,)
        log P(eta < gamma | alpha, y).
    log_tied : ndarray of shape (n_alpha,)
        log P(eta = gamma | alpha, y).
    log_at_most : ndarray of shape (n_alpha,)
        log P(eta <= gamma | alpha, y).
    log_error : ndarray of shape (n_alpha,)
        Standard error of `log_below`: 0 where it was enumerated.
    """

    log_below: NDArray[np.float64]
    log_tied: NDArray[np.float64]
    log_at_most: NDArray[np.float64]
    log_error: NDArray[np.float64]

    @classmethod
    def of_shares(
        cls, below: NDArray[np.float64], tied: NDArray[np.float64], above: NDArray[np.float64]
    ) -> DiscardProbabilities:
        """Return them, without error, from three that sum to 1, each the more accurate the smaller it is."""
        with np.errstate(divide="ignore"):
            log_below, log_at_most = _log_share(below, above + tied), _log_share(below + tied, above)
            return cls(log_below, np.log(tied), log_at_most, np.zeros_like(below))

    def log_factor(self, n_discarded: int, n_tied: int, ties: Ties) -> NDArray[np.float64]:
        """Return the log of the probability of the discarded features, `n_tied` of which equal the cut-off."""
        if ties == "less_equal":
            return n_discarded * self.log_at_most
        n_equal = n_tied if ties == "exact" else 0
        result = np.zeros_like(self.log_below)
        for count, log_probability in ((n_discarded - n_equal, self.log_below), (n_equal, self.log_tied)):
            if count:  # 0 times minus infinity is 0 here
                result += count * log_probability
        return result


def _log_share(mass: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of a probability from it and its complement, whichever keeps more digits."""
    return np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(mass))


def log_adjustment(
    prior: Prior, selection: Selection, ties: Ties, simulation: Simulation
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the adjustment factor A_alpha of binary features and its standard error, for each alpha.

    Raises ValueError if what was discarded has probability 0 at every alpha.

    Parameters
    ----------
    ties : {"exact", "less", "less_equal"}
        What is known about a discarded feature: whether it is weaker than the cut-off or exactly as strong ("exact");
        that it is weaker ("less"); that it is not stronger ("less_equal").
    """
    log_factor, error = np.zeros((2, prior.n_alpha))
    for group in merged(selection.groups, prior):
        with_ties = ties == "less_equal" or (ties == "exact" and group.n_tied > 0)
        probabilities = discard_probabilities(prior, group.sizes, Fraction(selection.cut), simulation, with_ties)
        log_factor += probabilities.log_factor(group.n_discarded, group.n_tied, ties)
        error = np.hypot(error, group.n_discarded * probabilities.log_error)
    check_selection_possible(log_factor, prior)
    return log_factor, error


def check_selection_possible(log_factor: NDArray[np.float64], prior: Prior) -> None:
    """Raise ValueError if what was discarded has probability 0 at every alpha."""
    if not np.isfinite(log_factor).any():
        raise ValueError(
            "the discarded features have probability 0 under the prior at every alpha; set theta0=0 or a wider prior "
            f"of alpha, got theta0={prior.theta0}, shape={prior.shape}, rate={prior.rate}"
        )


def check_ties(ties: str) -> None:
    """Raise ValueError unless `ties` is one of the ways to treat ties at the cut-off."""
    check_one_of("ties", ties, TIES, "; 'exact' suits almost every use")


# Adjustment factor of binary features: enumerated by tables or walks of counts, or sampled.

_DEFAULT = Simulation()
# Counts of one side that fit into memory at all nodes; additions for pairs of states, and steps of compiled loops, that
# take about ten seconds; tables of bounds of 160 MB.
_MOST_COUNTS = 2e5
_MOST_ADDITIONS = 2e10
_MOST_STEPS = 4e9
_MOST_BOUNDS = 1e7
_FEW_GROUPS = 16
# Products of probabilities, and nodes, that are summed at once: rows of a power of two share parts of the cache.
_PART, _NODES = 2**18, 100
# Independent shifts of the lattice, whose scatter gives the standard error.
_N_SHIFTS = 16


def discard_probabilities(
    prior: Prior, sizes: tuple[int, ...], cut: Fraction, simulation: Simulation = _DEFAULT, with_ties: bool = True
) -> DiscardProbabilities:
    """Return the probabilities that a feature is weaker than the cut-off, and that it equals it.

    Parameters
    ----------
    sizes : tuple of int
        Cases of each class, of two or more.
    with_ties : bool
        Whether the probability of equality is needed; if not, it may be set to 0.

    Notes
    -----
    Given alpha and theta the counts of the classes are independent. As x -> 1 - x maps weak counts to weak ones and
    theta to 1 - theta, half of the grid over theta is enough.

    References
    ----------
    Li, Zhang and Neal (2008), "Computation of the adjustment factor (I)" to "(IV)".
    """
    ordered = tuple(sorted(sizes, reverse=True))
    if len(sizes) == 2 and sum(sizes) <= MOST_TABLED:
        return tabled_probabilities(prior, (ordered[0], ordered[1]), cut)
    if len(sizes) > 2 and simulation.factor != "simulate" and (halves := Halves.of(prior, ordered, cut)):
        return halves.probabilities(prior)
    steps, n_bounds = enumeration_cost(prior, ordered)
    possible = steps <= _MOST_STEPS and n_bounds <= _MOST_BOUNDS
    if simulation.enumerates(possible, f"{len(sizes)} classes and {sum(sizes)} cases"):
        return walked_probabilities(prior, ordered, cut, with_ties)
    return _sampled(prior, ordered, cut, simulation)


def tabled_probabilities(prior: Prior, sizes: tuple[int, int], cut: Fraction) -> DiscardProbabilities:
    """Return the probabilities of features of two classes from tables of all counts.

    P(cor > gamma | alpha, theta) is the sum over I_1 of P(I_1) P(I_0 <= r(I_1)); P(cor < -gamma) is the same sum over
    zeros in place of ones.
    """
    n0, n1 = sizes
    grid, (class0, class1) = count_tables(prior, sizes, n0 + n1)
    weak = weak_counts(sizes, cut)
    _, above = strong_bounds(weak, n0, n1)
    first = int(np.searchsorted(above, 0))
    strong, tied = np.zeros((2, prior.n_alpha))
    for here0, here1 in ((class0, class1), (class0[::-1], class1[::-1])) if first < len(above) else ():
        sums = np.cumsum(here0[: above[-1] + 1], axis=0)
        strong += 2.0 * grid.integrals(np.einsum("in,in->n", sums[above[first:]], here1[first:]))
    for i0, i1 in weak.equal.T:
        tied += 2.0 * grid.integrals(class0[i0] * class1[i1])
    below = 1.0 - strong - tied
    for place in np.flatnonzero(below < _LEAST_DIFFERENCE):
        nodes = grid.parts[place]
        ends = enumerate(zip(weak.low, weak.high + 1, strict=True))
        cells = [class1[i1, nodes] * class0[low:end, nodes].sum(axis=0) for i1, (low, end) in ends]
        below[place] = 2.0 * sum(cells) @ grid.weights[nodes]
    return DiscardProbabilities.of_shares(below, tied, strong)


@dataclass(frozen=True, eq=False)
class Halves:
    """Three or more classes, dealt out to two sides: which sums of both sides are weak, for any alpha and theta.

    Whether counts are weak depends on s and Q alone, see `weak_squares`, and both are sums over the two sides. So each
    side is a list of its distinct states (s, Q), in this order. With a state of the first side, which has fewer, those
    of the second with the same s are weak if their Q is below a bound. These are consecutive: their probability is a
    difference of two cumulative sums. The comparisons are of integers, and hold for every alpha and theta.

    Attributes
    ----------
    sizes : tuple of tuple of int
        n_y of the classes of each side.
    members : tuple of tuple of csr_array
        For each class of a side but its first: which pairs of a state of the classes before it and a count of its own
        (running fastest) make up each state of them all.
    weak : csr_array of shape (n_states of the first side, n_states of the second + 1)
        Coefficients of the cumulative sums.
    origins : ndarray of shape (n_states of the second side + 1,)
        For each cumulative sum the one that is subtracted from it, where its s begins.
    equal : csr_array of shape (n_states of the first side, n_states of the second)
    """

    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    members: tuple[tuple[Any, ...], tuple[Any, ...]]
    weak: Any
    origins: NDArray[np.int64]
    equal: Any

    @classmethod
    def of(cls, prior: Prior, sizes: tuple[int, ...], cut: Fraction) -> Halves | None:
        """Compare all pairs of states; None where that, or what follows, takes too long or too large numbers."""
        n, (scale, least, ties) = sum(sizes), weak_squares(sizes, cut)
        sides, base = (sizes[1::2], sizes[::2]), n * scale + 2
        if (n + 1) * base >= 2**62:
            return None
        first, second = (_states(side, scale, base) for side in sides)
        if first is None or second is None:
            return None
        (codes0, members0), (codes1, members1) = first, second
        n_pairs = len(codes0) * (sum(sides[1]) + 1)
        if 4 * n_pairs > _MOST_BOUNDS or n_pairs * len(half_grid(prior, n).theta) > _MOST_ADDITIONS:
            return None
        ones0, squares0 = np.divmod(codes0, base)
        ones1 = np.arange(sum(sides[1]) + 1)
        # A row for each state of the first side, a column for each s of the second.
        at, total = ones1 * base, ones0[:, None] + ones1
        begin = np.searchsorted(codes1, at)
        end = np.searchsorted(codes1, at + np.clip(least[total] - squares0[:, None], 0, base - 1))
        weights = np.ones(total.shape)
        if sides[0] == sides[1]:  # a pair is as probable the other way round: only s of fewer states are summed over
            rank = np.argsort(np.argsort(np.bincount(ones0), kind="stable"))
            weights = 1.0 + np.sign(rank - rank[ones0][:, None])
        weak = _marks(end, (end > begin) * weights, len(codes1) + 1)
        origins = np.append(0, np.searchsorted(codes1, codes1 // base * base))
        lacking = ties[total] - squares0[:, None]
        places = np.minimum(np.searchsorted(codes1, at + np.maximum(lacking, 0)), len(codes1) - 1)
        equal = _marks(places, ((lacking >= 0) & (codes1[places] == at + lacking)) * weights, len(codes1))
        return cls(sides, (members0, members1), weak, origins, equal)

    def probabilities(self, prior: Prior) -> DiscardProbabilities:
        """Return the probabilities that a feature is weaker than the cut-off, and that it equals it."""
        sizes = self.sizes[0] + self.sizes[1]
        grid, tables = count_tables(prior, sizes, sum(sizes))
        first = len(self.sizes[0])
        values = np.empty((2, len(grid.theta)))
        step = min(_NODES, max(8, _PART // max(member.shape[1] for side in self.members for member in side)))
        for start in range(0, len(grid.theta), step):
            nodes = slice(start, start + step)
            other = _chances(self.members[1], [table[:, nodes] for table in tables[first:]])
            one = other
            if self.sizes[0] != self.sizes[1]:
                one = _chances(self.members[0], [table[:, nodes] for table in tables[:first]])
            sums = np.zeros((len(other) + 1, other.shape[1]))
            np.cumsum(other, axis=0, out=sums[1:])
            values[0, nodes] = np.einsum("in,in->n", one, self.weak @ (sums - sums[self.origins]))
            values[1, nodes] = np.einsum("in,in->n", one, self.equal @ other)
        below, tied = 2.0 * grid.integrals(values)
        return DiscardProbabilities.of_shares(np.minimum(below, 1.0), tied, np.maximum(1.0 - below - tied, 0.0))


def _states(sizes: tuple[int, ...], scale: int, base: int) -> tuple[NDArray[np.int64], tuple[Any, ...]] | None:
    """Return base s + Q of each distinct (s, Q) of some classes, ascending, and `Halves.members`; None for too many."""
    states, members = np.zeros(1, dtype=np.int64), []
    for n_y in sizes:
        if len(states) * (n_y + 1) > _MOST_COUNTS:
            return None
        counts = np.arange(n_y + 1)
        codes = np.add.outer(states, base * counts + scale // n_y * counts**2).ravel()
        states, places = np.unique(codes, return_inverse=True)
        members.append(csr_array((np.ones(len(codes)), (places, np.arange(len(codes)))), (len(states), len(codes))))
    return states, tuple(members[1:])


def _chances(members: tuple[Any, ...], tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the probability of each state of some classes, at each node."""
    found = tables[0]
    for member, table in zip(members, tables[1:], strict=True):
        found = member @ (found[:, None] * table).reshape(-1, table.shape[1])
    return found


def _marks(places: NDArray[np.int64], weights: NDArray[np.float64], n_columns: int) -> Any:
    """Return a sparse matrix with the non-zero weights, each in the column that `places` gives."""
    rows, columns = np.nonzero(weights)
    return csr_array((weights[rows, columns], (rows, places[rows, columns])), (len(weights), n_columns))


def enumeration_cost(prior: Prior, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Return about how many steps an enumeration takes, and the number of bounds it keeps."""
    steps = 0.0
    for alpha in prior.alphas():
        n_nodes = len(prior.theta_nodes(sum(sizes), float(alpha))[0]) / 2
        widths = [min(n_y + 1.0, 8.0 * n_y * math.sqrt(1.0 / (alpha + 1.0) + 1.0 / n_y)) for n_y in sizes]
        steps += n_nodes * (math.prod(widths[1:]) + 3.0 * sum(widths) + 50.0)
    return steps, float(math.prod(n_y + 1 for n_y in sizes[1:]))


def merged(groups: tuple[DiscardedGroup, ...], prior: Prior) -> list[DiscardedGroup]:
    """Return the groups, or fewer of them if all would take minutes.

    Those without ties are then merged with groups of about the same sizes: within 1/64, 1/32, ... of each class, until
    they are few enough. A merged group has their mean sizes.
    """
    if len(groups) <= _FEW_GROUPS:
        return list(groups)
    largest = max((g.sizes for g in groups), key=sum)
    most = max(_FEW_GROUPS, _MOST_STEPS / max(enumeration_cost(prior, largest)[0], 1.0))
    parts = 64
    while len(groups) > most and parts:
        near: dict[tuple[int, ...], list[DiscardedGroup]] = defaultdict(list)
        for group in groups:
            scaled = tuple(math.floor(parts * n_y / (top + 1)) for n_y, top in zip(group.sizes, largest, strict=False))
            near[group.sizes if group.n_tied else (-len(group.sizes), *scaled)].append(group)
        groups = tuple(_merge(members) for members in near.values())
        parts //= 2
    return list(groups)


def _merge(groups: list[DiscardedGroup]) -> DiscardedGroup:
    weights = np.array([group.n_discarded for group in groups])
    means = np.average([group.sizes for group in groups], axis=0, weights=weights)
    return DiscardedGroup(
        tuple(max(1, round(mean)) for mean in means.tolist()), int(weights.sum()), sum(g.n_tied for g in groups)
    )


def walked_probabilities(
    prior: Prior, sizes: tuple[int, ...], cut: Fraction, with_ties: bool = True
) -> DiscardProbabilities:
    """Return the probabilities by walks through the counts of each class, leaving out 1e-16 at each end.

    Given I_1, ..., I_C-1 the weak I_0 are all between two numbers.
    """
    from trimbench.selection_bias import kernels

    weak = weak_counts(sizes, cut)
    numbers, low, high = np.array(sizes), weak.low.ravel(), weak.high.ravel()
    below = np.empty(prior.n_alpha)
    grid = half_grid(prior, sum(sizes))
    for place, (alpha, nodes) in enumerate(zip(prior.alphas().tolist(), grid.parts, strict=True)):
        weights = 2.0 * grid.weights[nodes]
        below[place] = kernels.weak_probability(alpha, grid.theta[nodes], weights, numbers, low, high)
    log_tied = _log_tied(prior, numbers, weak.equal[:, : None if with_ties else 0])
    with np.errstate(divide="ignore"):
        log_below, log_at_most = (np.log(np.minimum(p, 1.0)) for p in (below, below + np.exp(log_tied)))
    return DiscardProbabilities(log_below, log_tied, log_at_most, np.zeros(prior.n_alpha))


def _log_tied(prior: Prior, sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log of the probability of some counts, of shape (n_alpha,)."""
    if not counts.size:
        return np.full(prior.n_alpha, -np.inf)
    numbers = np.repeat(sizes[:, None], counts.shape[1], axis=1)
    choices = (gammaln(numbers + 1) - gammaln(counts + 1) - gammaln(numbers - counts + 1)).sum(axis=0)
    found: NDArray[np.float64] = logsumexp(grid_marginals(prior, counts, numbers).log_likelihood + choices, axis=1)
    return found


def _sampled(prior: Prior, sizes: tuple[int, ...], cut: Fraction, simulation: Simulation) -> DiscardProbabilities:
    from trimbench.selection_bias import kernels

    rng = np.random.default_rng([simulation.random_state, *sizes])
    grid = half_grid(prior, sum(sizes))
    shifts = rng.random((_N_SHIFTS, max(part.stop - part.start for part in grid.parts), len(sizes) - 1))
    estimates = np.empty((prior.n_alpha, 2, _N_SHIFTS))
    for place, (alpha, part) in enumerate(zip(prior.alphas().tolist(), grid.parts, strict=True)):
        theta, weights = grid.theta[part], 2.0 * grid.weights[part]
        n_points = math.ceil(simulation.n_simulations / (_N_SHIFTS * len(theta)))
        estimates[place] = kernels.sampled_weakness(
            alpha, theta, weights, np.array(sizes), float(cut), shifts, n_points
        )
    below, tied = estimates.mean(axis=2).T
    scatter = estimates[:, 0].std(axis=1, ddof=1) / math.sqrt(_N_SHIFTS)
    # Too rare to be seen at every alpha: then a feature that equals the cut-off counts as weaker.
    is_seen = bool((tied > 0.0).all())
    log_at_most = np.log(np.minimum(below + tied, 1.0))
    return DiscardProbabilities(np.log(below), np.log(tied if is_seen else below), log_at_most, scatter / below)
