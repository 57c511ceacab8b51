"""Adjustment factor for several classes, many cases or missing values: enumerated by walks, or sampled."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from trimbench.selection_bias.adjustment import Simulation, Ties, WeaknessProbabilities, check_possible
from trimbench.selection_bias.class_marginals import grid_marginals
from trimbench.selection_bias.dependence import SizeGroup, weak_counts
from trimbench.selection_bias.discrete_factor import DiscreteWeakness
from trimbench.selection_bias.prior import Prior

_DEFAULT = Simulation()
# Steps of compiled loops that take about ten seconds, and tables of bounds of 160 MB.
_MOST_STEPS = 4e9
_MOST_BOUNDS = 1e7
# Independent shifts of the lattice, whose scatter gives the standard error.
_N_SHIFTS = 16


def log_class_adjustment(
    prior: Prior,
    groups: tuple[SizeGroup, ...],
    cut: Fraction,
    ties: Ties,
    simulation: Simulation,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the adjustment factor and its standard error, each of shape (n_alpha,).

    Parameters
    ----------
    groups : tuple of SizeGroup
        The discarded features.
    cut : Fraction
        eta^2 of the last selected feature.
    """
    log_factor, error = np.zeros(prior.n_alpha), np.zeros(prior.n_alpha)
    for group in merged(groups, prior):
        with_ties = ties == "less_equal" or (ties == "exact" and group.n_tied > 0)
        weakness = class_weakness(prior, group.sizes, cut, simulation, with_ties)
        log_factor += weakness.probabilities.log_factor(group.n_discarded, group.n_tied, ties)
        error = np.hypot(error, group.n_discarded * weakness.log_errors)
    check_possible(log_factor, prior)
    return log_factor, error


def class_weakness(
    prior: Prior,
    sizes: tuple[int, ...],
    cut: Fraction,
    simulation: Simulation = _DEFAULT,
    with_ties: bool = True,
) -> DiscreteWeakness:
    """Return the probabilities that a feature is weaker than the cut-off, and that it equals it.

    Parameters
    ----------
    sizes : tuple of int
        Cases of each class, of two or more.
    with_ties : bool
        Whether the probability of equality is needed; if not, it may be set to 0.

    Notes
    -----
    Given I_1, ..., I_C-1 the weak I_0 are all between two numbers, found without rounding; the sum over the others is a
    walk through counts that have all but 1e-16 of the probability, at each end of each class. As x -> 1 - x maps weak
    counts to weak ones and theta to 1 - theta, half of the grid over theta is enough.
    """
    ordered = tuple(sorted(sizes, reverse=True))
    steps, n_bounds = work(prior, ordered)
    possible = steps <= _MOST_STEPS and n_bounds <= _MOST_BOUNDS
    if simulation.enumerates(possible, f"{len(sizes)} classes and {sum(sizes)} cases"):
        return _enumerated(prior, ordered, cut, with_ties)
    return _sampled(prior, ordered, cut, simulation)


def work(prior: Prior, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Return about how many steps an enumeration takes, and the number of bounds it keeps."""
    steps = 0.0
    for alpha in prior.alphas():
        n_nodes = len(prior.theta_nodes(sum(sizes), float(alpha))[0]) / 2
        widths = [min(n_y + 1.0, 8.0 * n_y * math.sqrt(1.0 / (alpha + 1.0) + 1.0 / n_y)) for n_y in sizes]
        steps += n_nodes * (math.prod(widths[1:]) + 3.0 * sum(widths) + 50.0)
    return steps, float(math.prod(n_y + 1 for n_y in sizes[1:]))


def merged(groups: tuple[SizeGroup, ...], prior: Prior) -> list[SizeGroup]:
    """Return the groups, or fewer of them where all would take minutes.

    Those without ties are then merged with groups of about the same sizes, within one part in 8, 4, ... of a class; the
    merged group has their mean sizes.
    """
    largest = max((g.sizes for g in groups), key=sum, default=())
    most = max(16.0, _MOST_STEPS / max(work(prior, largest)[0], 1.0)) if groups else 0.0
    parts = 64
    while len(groups) > most and parts:
        near: dict[tuple[int, ...], list[SizeGroup]] = defaultdict(list)
        for group in groups:
            scaled = tuple(math.floor(parts * n_y / (top + 1)) for n_y, top in zip(group.sizes, largest, strict=False))
            near[group.sizes if group.n_tied else (-len(group.sizes), *scaled)].append(group)
        groups = tuple(_merge(members) for members in near.values())
        parts //= 2
    return list(groups)


def _merge(groups: list[SizeGroup]) -> SizeGroup:
    weights = np.array([group.n_discarded for group in groups])
    means = np.average([group.sizes for group in groups], axis=0, weights=weights)
    return SizeGroup(
        tuple(max(1, round(mean)) for mean in means.tolist()), int(weights.sum()), sum(g.n_tied for g in groups)
    )


def _half_grid(prior: Prior, n_cases: int, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes of theta up to 1/2, with the weights of both halves."""
    theta, weights = prior.theta_nodes(n_cases, alpha)
    half = (len(theta) + 1) // 2
    doubled = 2.0 * weights[:half]
    if len(theta) % 2:
        doubled[-1] = weights[half - 1]
    return theta[:half], doubled


def _enumerated(prior: Prior, sizes: tuple[int, ...], cut: Fraction, with_ties: bool) -> DiscreteWeakness:
    from trimbench.selection_bias import kernels

    weak = weak_counts(sizes, cut)
    numbers, low, high = np.array(sizes), weak.low.ravel(), weak.high.ravel()
    less = np.empty(prior.n_alpha)
    for place, alpha in enumerate(prior.alphas().tolist()):
        theta, weights = _half_grid(prior, sum(sizes), alpha)
        less[place] = kernels.weak_probability(alpha, theta, weights, numbers, low, high)
    log_equal = _log_equal(prior, numbers, weak.equal[:, : None if with_ties else 0])
    with np.errstate(divide="ignore"):
        log_less = np.log(np.minimum(less, 1.0))
        log_less_equal = np.log(np.minimum(less + np.exp(log_equal), 1.0))
    return DiscreteWeakness(WeaknessProbabilities(log_less, log_equal, log_less_equal), np.zeros(prior.n_alpha))


def _log_equal(prior: Prior, sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log of the probability of some counts, of shape (n_alpha,)."""
    if not counts.size:
        return np.full(prior.n_alpha, -np.inf)
    numbers = np.repeat(sizes[:, None], counts.shape[1], axis=1)
    choices = (gammaln(numbers + 1) - gammaln(counts + 1) - gammaln(numbers - counts + 1)).sum(axis=0)
    found: NDArray[np.float64] = logsumexp(grid_marginals(prior, counts, numbers).log_likelihood + choices, axis=1)
    return found


def _sampled(prior: Prior, sizes: tuple[int, ...], cut: Fraction, simulation: Simulation) -> DiscreteWeakness:
    from trimbench.selection_bias import kernels

    rng = np.random.default_rng([simulation.seed, *sizes])
    grids = [_half_grid(prior, sum(sizes), alpha) for alpha in prior.alphas().tolist()]
    shifts = rng.random((_N_SHIFTS, max(len(theta) for theta, _ in grids), len(sizes) - 1))
    estimates = np.empty((prior.n_alpha, 2, _N_SHIFTS))
    for place, (alpha, (theta, weights)) in enumerate(zip(prior.alphas().tolist(), grids, strict=True)):
        n_points = math.ceil(simulation.n_simulations / (_N_SHIFTS * len(theta)))
        estimates[place] = kernels.sampled_weakness(
            alpha, theta, weights, np.array(sizes), float(cut), shifts, n_points
        )
    less, equal = estimates.mean(axis=2).T
    scatter = estimates[:, 0].std(axis=1, ddof=1) / math.sqrt(_N_SHIFTS)
    # Too rare to be seen at every alpha: then a feature that equals the cut-off counts as weaker.
    log_equal = np.log(equal if (equal > 0.0).all() else less)
    log_less = np.log(less)
    probabilities = WeaknessProbabilities(log_less, log_equal, np.log(np.minimum(less + equal, 1.0)))
    return DiscreteWeakness(probabilities, scatter / less)
