"""Losses of naive Bayes trimmings on a lattice: weights are rounded to multiples of a step, probabilities are not.

The loss of a subset is 1 minus its maximum potential agreement. An instance is classified as positive iff the sum of
its weights reaches a bound; on the lattice, iff the sum of their cells reaches `Lattice.reached`. The two decisions
differ with probability `Lattice.error` at most, so the loss of *every* subset differs by no more than that. The sums of
kept instances that share a cell differ by no more than their rounding errors, which bounds what merging them costs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import FloatArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import TIE_TOLERANCE, log_odds
from trimbench.trimming.problem import REMOVED

# Rounding error of sums of probabilities, by a transform of at most 2^20 numbers or as many additions.
ROUNDING = 1e-12
# Exponential tilts of the distribution of rounding errors, in units of 1 / their standard deviation.
_TILTS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)
# Offsets, in steps, that may be added to the weights of a feature of several values before they are rounded.
_OFFSETS = np.arange(-8, 9) / 17
# Pairs of half sums that are compared at once.
_PAIRS = 2**20


@dataclass(frozen=True)
class Weights:
    """A naive Bayes classifier as sums of weights.

    Attributes
    ----------
    weights : list of ndarrays of shape (n_values,)
        Of each feature, those of its values that are possible in both classes; the smallest is 0.
    positive, negative : lists of ndarrays of shape (n_values,)
        P(value | class) of these values.
    certain : ndarray of shape (n_features,)
        P(value that is possible in the positive class alone | positive class).
    prior : tuple of float
        Of the positive and of the negative class.
    needed : float
        An instance of possible values is positive iff its weights add up to at least this.
    """

    weights: list[FloatArray]
    positive: list[FloatArray]
    negative: list[FloatArray]
    certain: FloatArray
    prior: tuple[float, float]
    needed: float

    @classmethod
    def of(cls, classifier: BayesianClassifier) -> Weights:
        """Return the weights of a naive Bayes classifier; its threshold is not 0, nor is any prior."""
        weights, positive, negative, certain = [], [], [], []
        prior = (float(classifier.prior[0]), float(classifier.prior[1]))
        needed = math.log(prior[1]) - math.log(prior[0]) + log_odds(classifier.threshold) - TIE_TOLERANCE
        for table in classifier.tables:
            both = (table[0] > 0) & (table[1] > 0)
            weight = np.log(table[0][both]) - np.log(table[1][both])
            lowest = float(weight.min()) if weight.size else 0.0
            needed -= lowest
            weights.append(weight - lowest)
            positive.append(table[0][both])
            negative.append(table[1][both])
            certain.append(float(table[0][~both].sum()))
        return cls(weights, positive, negative, np.array(certain), prior, needed)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.weights)


@dataclass(frozen=True, eq=False)
class Lattice:
    """The weights of a classifier as multiples of a step.

    Attributes
    ----------
    cells : list of int arrays of shape (n_values,)
        Of each feature, its weights in steps.
    spread : ndarray of shape (n_features,)
        Range of the rounding errors of each feature's values.
    reached : int
        Lowest sum of cells of a positive instance.
    error : float
        Bound on the probability that this differs from the classifier's decision.
    """

    weights: Weights
    step: float
    cells: list[NDArray[np.int64]]
    spread: FloatArray
    reached: int = 0
    error: float = 1.0

    @classmethod
    def of(cls, weights: Weights, step: float) -> Lattice:
        """Return the lattice with a step; its decision, `reached`, is still open."""
        sides = zip(weights.weights, weights.positive, weights.negative, strict=True)
        cells = [_rounded(one / step, positive + negative) for one, positive, negative in sides]
        errors = [one - step * cell for one, cell in zip(weights.weights, cells, strict=True)]
        return cls(weights, step, cells, np.array([np.ptp(one) if one.size else 0.0 for one in errors]))

    @cached_property
    def tops(self) -> list[int]:
        """The highest cell of each feature."""
        return [int(cell.max(initial=0)) for cell in self.cells]

    @property
    def length(self) -> int:
        """Number of cells that sums of all features can have."""
        return 1 + sum(self.tops)

    @cached_property
    def probabilities(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Probabilities of the values of each feature, in the positive and the negative class."""
        return self.weights.positive, self.weights.negative

    def law(self, features: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the distribution of the sum of some features under each class, of shape (n_cells,) each.

        Values that are possible in one class only are left out.
        """
        length = 1 + sum(self.tops[i] for i in features)
        positive, negative = (self._summed(side, features, length) for side in self.probabilities)
        return positive, negative

    def _summed(self, side: list[FloatArray], features: Sequence[int], length: int) -> FloatArray:
        law, room = np.zeros(length), np.empty(length)
        law[0], end = 1.0, 1
        for i in features:
            room[: end + self.tops[i]] = 0.0
            for cell, probability in zip(self.cells[i].tolist(), side[i].tolist(), strict=True):
                room[cell : cell + end] += probability * law[:end]
            end += self.tops[i]
            law, room = room, law
        return law

    def loss(self, kept: Sequence[int], removed: Sequence[int]) -> tuple[float, float]:
        """Return bounds on the loss of the subset `kept`; the features of `removed` are the others."""
        laws = [np.stack(self.law(features)) for features in (kept, removed)]
        certain = 1.0 - float(np.prod(1.0 - self.weights.certain[list(removed)]))
        spread = float(self.spread[list(kept)].sum())
        low, high = losses(
            laws[0][None], laws[1][None], self.reached, self.weights.prior, np.array([[certain], [spread]])
        )
        return float(low[0]) - self.error - ROUNDING, float(high[0]) + self.error + ROUNDING


def _rounded(steps: FloatArray, masses: FloatArray) -> NDArray[np.int64]:
    """Round weights, the smallest 0, after the offset with which rounding errors vary least; two need none."""
    if steps.size <= 2:
        return np.rint(steps).astype(np.int64)
    cells = np.rint(steps + _OFFSETS[:, None])
    errors = steps - cells
    errors -= (errors @ masses / masses.sum())[:, None]
    return np.asarray(cells[np.argmin(errors**2 @ masses)].astype(np.int64))


def losses(
    kept: FloatArray, removed: FloatArray, reached: int, prior: tuple[float, float], more: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on losses on a lattice, for several subsets.

    Parameters
    ----------
    kept, removed : ndarrays of shape (n_subsets, 2, n_cells)
        The distributions of the sums of the features that are kept, and of the others, under each class.
    reached : int
        Lowest sum of cells of a positive instance.
    prior : tuple of float
    more : ndarray of shape (2, n_subsets)
        The probability in the positive class that a removed value makes an instance positive for certain, and the range
        of the rounding errors of sums of kept features.

    Returns
    -------
    low, high : ndarrays of shape (n_subsets,)
    """
    below = np.zeros((*removed.shape[:2], removed.shape[2] + 1))
    np.cumsum(removed, axis=2, out=below[:, :, 1:])
    at = np.clip(reached - np.arange(kept.shape[2]), 0, removed.shape[2])
    # Twice the probability that the removed features lift a kept sum over the bound, minus 1.
    lifted = 2.0 * (below[:, :, -1:] - np.take(below, at, axis=2)) - 1.0
    lifted[:, 0] += 2.0 * more[0][:, None]
    mass = kept * np.array(prior)[:, None]
    signed = mass * lifted
    high = 0.5 * (mass.sum(axis=(1, 2)) - np.abs(signed.sum(axis=1)).sum(axis=1))
    return high - _merged(signed, more[1]), high


def _merged(signed: FloatArray, spread: FloatArray) -> FloatArray:
    """Return by how much losses may be lower when kept sums that share a cell are told apart."""
    opposed = signed[:, 0] * signed[:, 1] < 0
    size = np.where(opposed[:, None], np.abs(signed), 0.0)
    low, high = np.sqrt(size.min(axis=1)), np.sqrt(size.max(axis=1))
    half = np.exp(0.5 * spread)[:, None]
    excess = np.maximum(half * low - high, 0.0) ** 2
    return np.asarray(excess.sum(axis=1) / np.maximum(np.expm1(spread), 1e-300))


def decided_exactly(lattice: Lattice, *, compiled: bool) -> Lattice:
    """Return a lattice with the decision that differs from the classifier's with the lowest probability.

    Meets in the middle: of all pairs of half sums, only those near the bound are examined.
    """
    weights, step = lattice.weights, lattice.step
    if math.isinf(weights.needed):
        return replace(lattice, reached=lattice.length, error=0.0)
    lowest, highest = _range_of_errors(lattice)
    first = math.ceil((weights.needed - highest) / step)
    masses = np.zeros((2, max(0, math.floor((weights.needed - lowest) / step) - first + 1)))
    if masses.size and compiled:
        _compiled_masses(lattice, first, masses)
    elif masses.size:
        one, other = (_half(lattice, half) for half in _halves(lattice))
        other = _Half(other.sums, other.cells - first, other.masses * np.array(weights.prior)[:, None])
        _add_masses(one, other, weights.needed, highest - lowest + step, masses)
    return _best_decision(lattice, first, masses)


def decided_roughly(lattice: Lattice) -> Lattice:
    """Return a lattice with a decision, also for too many features to meet in the middle.

    In each doubtful cell x the mass of positive instances, whose errors E add up to at least some r, is at most
    ``exp(-t r) E[exp(t E); cell x]`` for all t >= 0, and that of negative ones for all t <= 0 (Chernoff).
    """
    weights, step = lattice.weights, lattice.step
    if math.isinf(weights.needed):
        return replace(lattice, reached=lattice.length, error=0.0)
    lowest, highest = _range_of_errors(lattice)
    first = math.ceil((weights.needed - highest) / step)
    cells = np.arange(first, math.floor((weights.needed - lowest) / step) + 1)
    errors = [one - step * cell for one, cell in zip(weights.weights, lattice.cells, strict=True)]
    masses, inside = np.zeros((2, cells.size)), (cells >= 0) & (cells < lattice.length)
    deviation = max(math.sqrt((lattice.spread**2).sum() / 12.0), 1e-9)
    for side, prior in zip(lattice.probabilities, weights.prior, strict=True):
        bounds = np.where(inside, math.inf, np.zeros((2, 1)))
        for tilt in np.array(_TILTS) / deviation:
            tilted = [one * np.exp(tilt * error) for one, error in zip(side, errors, strict=True)]
            law = lattice._summed(tilted, range(weights.n_features), lattice.length)[cells[inside]]
            # Rounding errors are far below the last factor.
            bound = law * np.exp(-tilt * (weights.needed - step * cells[inside])) * (1.0 + 1e-6)
            if tilt <= 0:
                bounds[0, inside] = np.minimum(bounds[0, inside], bound)
            if tilt >= 0:
                bounds[1, inside] = np.minimum(bounds[1, inside], bound)
        masses += prior * bounds
    return _best_decision(lattice, first, masses)


def _add_masses(one: _Half, other: _Half, needed: float, width: float, masses: FloatArray) -> None:
    """Add up the masses of negative and of positive instances in each doubtful cell, a part of the pairs at a time."""
    begin = np.searchsorted(one.sums, needed - other.sums - width)
    count = np.searchsorted(one.sums, needed - other.sums + width) - begin
    ends = np.cumsum(count)
    start, done = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS)))
        at = np.repeat(np.arange(start, stop), count[start:stop])
        to = np.arange(done, ends[stop - 1]) + np.repeat((begin - ends + count)[start:stop], count[start:stop])
        cell = one.cells[to] + other.cells[at]
        mass = (one.masses[:, to] * other.masses[:, at]).sum(axis=0)
        positive = one.sums[to] + other.sums[at] >= needed
        inside = (cell >= 0) & (cell < masses.shape[1])
        for side in (0, 1):
            chosen = inside & (positive == bool(side))
            masses[side] += np.bincount(cell[chosen], mass[chosen], masses.shape[1])
        start, done = stop, int(ends[stop - 1])


def _compiled_masses(lattice: Lattice, first: int, masses: FloatArray) -> None:
    from trimbench.trimming.kernels import window_masses

    parts: list[Any] = []
    for features in _halves(lattice):
        half = _half(lattice, features, by_cell=True)
        parts += [half.sums, np.cumsum([0, *np.bincount(half.cells)]), half.masses]
    parts[-1] *= np.array(lattice.weights.prior)[:, None]
    window: Any = window_masses
    window(*parts, lattice.weights.needed, first, masses)


def decided_by_finer(lattice: Lattice, finer: Lattice) -> Lattice:
    """Return a lattice with the decision that differs least from that of a finer one, whose step divides its own."""
    if math.isinf(lattice.weights.needed):
        return replace(lattice, reached=lattice.length, error=0.0)
    ratio = round(lattice.step / finer.step)
    rest = [fine - ratio * cell for fine, cell in zip(finer.cells, lattice.cells, strict=True)]
    lowest = sum(int(one.min(initial=0)) for one in rest)
    highest = sum(int(one.max(initial=0)) for one in rest)
    first = -((highest - finer.reached) // ratio)
    n_cells = (finer.reached - lowest) // ratio - first + 1
    masses = np.zeros((2, max(n_cells, 0)))
    if n_cells <= 0:
        return replace(lattice, reached=first, error=finer.error)
    for side, prior in zip(lattice.probabilities, lattice.weights.prior, strict=True):
        # The distributions of two halves of the features take less time, and a quarter of the memory.
        one, other = (_joint_law(lattice.cells[half::2], rest[half::2], side[half::2]) for half in (0, 1))
        mass, other_mass = one.sum(axis=1), other.sum(axis=1)
        above = np.cumsum(other[:, ::-1], axis=1)[:, ::-1]
        for place in range(n_cells):
            cell = first + place
            begin, end = max(0, cell + 1 - len(other)), min(len(one), cell + 1)
            if begin >= end:
                continue
            mine, others = slice(begin, end), slice(cell + 1 - end, cell + 1 - begin)
            # The rest from which on the finer sum is positive; the rest of one half alone may reach it.
            split = max(finer.reached - ratio * cell - lowest, 0)
            low, high = max(0, split + 1 - one.shape[1]), min(split + 1, other.shape[1])
            positive = one[mine, split + 1 :].sum(axis=1) @ other_mass[others][::-1] if low == 0 else 0.0
            if low < high:
                own = one[mine, split + 1 - high : split + 1 - low]
                positive += np.einsum("ij,ij", own, above[others, low:high][::-1, ::-1])
            masses[0, place] += prior * max(0.0, mass[mine] @ other_mass[others][::-1] - positive)  # type: ignore[operator, unused-ignore]
            masses[1, place] += prior * positive
    return _best_decision(lattice, first, masses, finer.error)


def _joint_law(cells: list[NDArray[np.int64]], rest: list[NDArray[np.int64]], side: list[FloatArray]) -> FloatArray:
    """Return the joint distribution of two sums; the second begins at its lowest value."""
    law = np.ones((1, 1))
    for cell, more, probability in zip(cells, rest, side, strict=True):
        shift = more - more.min(initial=0)
        grown = np.zeros((law.shape[0] + int(cell.max(initial=0)), law.shape[1] + int(shift.max(initial=0))))
        for i, j, p in zip(cell.tolist(), shift.tolist(), probability.tolist(), strict=True):
            grown[i : i + law.shape[0], j : j + law.shape[1]] += p * law
        law = grown
    return law


def _best_decision(lattice: Lattice, first: int, masses: FloatArray, error: float = 0.0) -> Lattice:
    """Return a lattice with the best decision, by the masses of negative and positive instances in doubtful cells."""
    wrong = np.concatenate([[0.0], np.cumsum(masses[1])]) + np.concatenate([np.cumsum(masses[0][::-1])[::-1], [0.0]])
    best = int(wrong.argmin())
    return replace(lattice, reached=first + best, error=error + float(wrong[best]) + ROUNDING)


def _range_of_errors(lattice: Lattice) -> tuple[float, float]:
    errors = [one - lattice.step * cell for one, cell in zip(lattice.weights.weights, lattice.cells, strict=True)]
    return sum(float(one.min(initial=0.0)) for one in errors), sum(float(one.max(initial=0.0)) for one in errors)


@dataclass(frozen=True, eq=False)
class _Half:
    """All instances of some features in order: their sums, cells, and probabilities under each class."""

    sums: FloatArray
    cells: NDArray[np.int32]
    masses: FloatArray


def _halves(lattice: Lattice) -> tuple[list[int], list[int]]:
    """Return the features in two parts with about equally many instances."""
    halves: tuple[list[int], list[int]] = ([], [])
    sizes = [1, 1]
    for i in sorted(range(len(lattice.cells)), key=lambda i: -len(lattice.cells[i])):
        smaller = int(sizes[1] < sizes[0])
        halves[smaller].append(i)
        sizes[smaller] *= max(1, len(lattice.cells[i]))
    return halves


def _half(lattice: Lattice, features: list[int], *, by_cell: bool = False) -> _Half:
    """Return the instances of some features by increasing sum, or by cell and then by increasing sum."""
    sums, cells, masses = np.zeros(1), np.zeros(1, dtype=np.int32), np.ones((2, 1))
    for i in features:
        sums = np.add.outer(sums, lattice.weights.weights[i]).ravel()
        cells = np.add.outer(cells, lattice.cells[i].astype(np.int32)).ravel()
        masses = (masses[:, :, None] * np.stack([side[i] for side in lattice.probabilities])[:, None]).reshape(2, -1)
    order = np.lexsort((sums, cells)) if by_cell else np.argsort(sums)
    sums, cells = sums[order], cells[order]
    for one in masses:  # less memory than both at once
        one[:] = one[order]
    return _Half(sums, cells, masses)


# Losses of many similar subsets on one lattice.


def _products_of_others(factors: NDArray[Any]) -> NDArray[Any]:
    """Return for each entry along the first axis the product of all others, without division, as some may be 0."""
    before, after = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[:-1], axis=0, out=before[1:])
    np.cumprod(factors[:0:-1], axis=0, out=after[:-1][::-1])
    products: NDArray[Any] = before * after
    return products


class Limited(NamedTuple):
    """What units may cost together, the loss at which a branch is closed, and how many evaluations are allowed."""

    left: float
    level: float
    n_evaluations: float


class Below(NamedTuple):
    """What a node of a search does with each unit, one byte per unit, and bounds on its loss."""

    state: bytes
    low: float
    high: float


class Spectra:
    """Bounds on losses from products of discrete Fourier transforms of the units' distributions: nothing to compile.

    Parameters
    ----------
    lattice : Lattice
    units : sequence of tuples of int
        The features of each unit, of which subsets keep all or none.
    kept, removed : sequence of int
        Features besides those of the units, which every subset keeps or lacks.
    """

    def __init__(
        self, lattice: Lattice, units: Sequence[tuple[int, ...]], kept: Sequence[int], removed: Sequence[int]
    ) -> None:
        self._lattice, self._slack = lattice, lattice.error + ROUNDING
        certain = lattice.weights.certain
        # At the end of each, the entry of the features outside of the units.
        self._uncertain = np.array([np.prod(1.0 - certain[list(unit)]) for unit in (*units, removed)])
        self._spread = np.array([lattice.spread[list(unit)].sum() for unit in (*units, kept)])
        self._size = _fast_length(lattice.length + 1)
        laws = np.zeros((lattice.weights.n_features, 2, self._size))
        for law, cells, *sides in zip(laws, lattice.cells, *lattice.probabilities, strict=True):
            for row, side in zip(law, sides, strict=True):
                np.add.at(row, cells, side)
        transforms = np.fft.rfft(laws)
        self._units = np.stack([transforms[list(unit)].prod(axis=0) for unit in (*units, kept, removed)])

    def loss(self, kept: Sequence[int], removed: Sequence[int]) -> tuple[float, float]:
        """Return bounds on the loss of the subset of units `kept`; the units of `removed` are the others."""
        spectra = [self._units[[*units, place - 2]].prod(axis=0)[None] for place, units in enumerate((kept, removed))]
        uncertain = self._uncertain[-1] * self._uncertain[list(removed)].prod()
        spread = self._spread[-1] + self._spread[list(kept)].sum()
        low, high = self._bounds(spectra, np.array([[1.0 - uncertain], [spread]]))
        return float(low[0]), float(high[0])

    def losses_without_each(
        self, kept: Sequence[int], removed: Sequence[int], candidates: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the losses without each candidate, which is one of the kept."""
        chosen = self._units[list(candidates)]
        others = set(kept).difference(candidates)
        spectra = [
            _products_of_others(chosen) * self._units[[*others, -2]].prod(axis=0),
            chosen * self._units[[*removed, -1]].prod(axis=0),
        ]
        uncertain = self._uncertain[-1] * self._uncertain[list(removed)].prod() * self._uncertain[list(candidates)]
        spread = self._spread[-1] + self._spread[list(kept)].sum() - self._spread[list(candidates)]
        return self._bounds(spectra, np.stack([1.0 - uncertain, np.maximum(spread, 0.0)]))

    def _bounds(self, spectra: list[NDArray[Any]], more: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = np.maximum(np.fft.irfft(np.stack(spectra), self._size), 0.0)
        low, high = losses(found[0], found[1], self._lattice.reached, self._lattice.weights.prior, more)
        return low - self._slack, high + self._slack


def _fast_length(least: int) -> int:
    """Return the length of a fast transform that is at least this."""
    lengths = (int(2**i * 3**j) for i in range(1, 25) for j in range(4))
    return min(length for length in lengths if length >= least)


class Polynomials:
    """Bounds on losses as from `Spectra`, but by compiled loops that multiply polynomials."""

    def __init__(
        self, lattice: Lattice, units: Sequence[tuple[int, ...]], kept: Sequence[int], removed: Sequence[int]
    ) -> None:
        from trimbench.trimming import kernels

        self._kernels = kernels
        offsets: list[int] = [0]
        cells: list[NDArray[np.int64]] = []
        factors: list[FloatArray] = []
        for own, positive, negative in zip(lattice.cells, *lattice.probabilities, strict=True):
            distinct, places = np.unique(own, return_inverse=True)
            merged = [np.zeros(distinct.size), np.zeros(distinct.size)]
            for total, side in zip(merged, (positive, negative), strict=True):
                np.add.at(total, places, side)
            if not own.size:  # no value is possible in both classes
                distinct, merged = np.zeros(1, dtype=np.int64), [np.zeros(1), np.zeros(1)]
            cells.append(distinct)
            factors.append(np.stack(merged))
            offsets.append(offsets[-1] + distinct.size)
        n_features, weights = len(lattice.cells), lattice.weights
        rooms = [np.array([*beside, *[0] * n_features], dtype=np.int64) for beside in (kept, removed)]
        self._count = np.zeros(1, dtype=np.int64)
        self._members = units
        self._others: Any = (*rooms, np.array([len(kept), len(removed)]), self._count)
        self.prepare(range(len(units)), np.zeros(len(units)), range(len(units)))
        table = (np.array(offsets), np.concatenate(cells), np.ascontiguousarray(np.concatenate(factors, axis=1)))
        is_certain = bool(table[2].sum() < 2 * n_features - ROUNDING)
        room = int(np.cumsum([1, 1, *sorted(lattice.tops, reverse=True)]).sum()) + n_features
        chains = [
            (np.zeros(n_features + 1, dtype=np.int64), np.arange(n_features + 2), np.ones((2, room))) for _ in range(2)
        ]
        where = (np.array(weights.prior), lattice.reached, is_certain, lattice.error + ROUNDING)
        self._lattice: Any = (
            table,
            1.0 - weights.certain,
            lattice.spread,
            *where,
            *chains,
            np.zeros((2, lattice.length)),
        )

    def loss(self, kept: Sequence[int], removed: Sequence[int]) -> tuple[float, float]:
        """Return bounds on the loss of the subset of units `kept`; the units of `removed` are the others."""
        bounds: tuple[float, float] = self._kernels.node_loss(self._state(removed), self._units, self._lattice)
        return bounds

    def losses_without_each(
        self, kept: Sequence[int], removed: Sequence[int], candidates: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the losses without each candidate, which is one of the kept."""
        out = np.empty((len(candidates), 2))
        chosen = self._places[list(candidates)]
        self._kernels.losses_without_each(chosen, self._state(removed), self._units, self._lattice, out)
        return out[:, 0], out[:, 1]

    def _state(self, removed: Iterable[int]) -> NDArray[np.int8]:
        state = np.zeros(len(self._members), dtype=np.int8)
        state[self._places[list(removed)]] = REMOVED
        return state

    def prepare(self, order: Sequence[int], costs: FloatArray, copies: Sequence[int]) -> None:
        """Set what `explore` needs: the order of the units, their costs, and the first unit with the same tables."""
        self._order = np.array(order, dtype=np.int64)
        self._places = np.argsort(self._order)
        self._prices = costs[self._order], np.array(copies, dtype=np.int64)[self._order]
        units = [self._members[u] for u in order]
        begins = np.cumsum([0, *(len(unit) for unit in units)])
        self._units: Any = (begins, np.array([i for unit in units for i in unit], dtype=np.int64), *self._others)

    def explore(
        self, finer: Polynomials, lowest: float, state: bytes, limits: Limited
    ) -> tuple[list[tuple[float, bytes]], list[bytes], int]:
        """Search below a node, depth first; a finer lattice decides what this one cannot.

        Returns
        -------
        nodes : list of (float, bytes)
            Those still open: their bounds, and what they do with each unit.
        found : list of bytes
            Subsets that use up the budget and may lose less than the level.
        n_evaluations : int
        """
        n_units = len(self._members)
        states = np.empty((n_units * (n_units + 2), n_units), dtype=np.int8)
        bounds, found = np.empty(len(states)), np.empty((8 * n_units, n_units), dtype=np.int8)
        bounds[0], states[0] = lowest, np.frombuffer(state, dtype=np.int8)[self._order]
        self._count[0] = 0
        problem: Any = (*self._prices, self._units, (self._lattice, finer._lattice))
        n_open, n_found = self._kernels.explore(*limits, problem, states, bounds, found)
        nodes = zip(bounds[:n_open].tolist(), states[:n_open, self._places], strict=True)
        subsets = [one.tobytes() for one in found[:n_found, self._places]]
        return [(bound, one.tobytes()) for bound, one in nodes], subsets, int(self._count[0])
