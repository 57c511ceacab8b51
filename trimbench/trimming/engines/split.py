"""Agreements of many similar feature subsets of a naive Bayes classifier, computed by compiled kernels.

The features are split in two halves by how well they separate the classes. One half is tabulated: its sorted sums of
weights, with tail probabilities under both classes. Of every instance of the other half it is looked up once how likely
the tabulated features lift it over the threshold. These probabilities serve all subsets that keep, or that remove, the
same tabulated features; each takes one pass over the enumerated instances.

A subset that keeps most strong features is computed with these in the table, one that removes most weak features with
the weak ones in the table.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import clock
from trimbench._typing import FloatArray
from trimbench.trimming import kernels
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.table import separation
from trimbench.trimming.kernels import Padded, Sums, cells_of, grid_losses
from trimbench.trimming.limits import Limits, in_threads
from trimbench.trimming.thresholds import TIE_TOLERANCE

# Instances left out of a table up to which it is kept in several layouts.
_FEW_LEFT_OUT = 2
# How many times the square root of all instances is tabulated: in large problems memory decides, in small ones the
# number of calls.
_TABULATED, _TABULATED_IF_SMALL, _SMALL = 4.0, 1.0, 2**22
# A split is added where the others would enumerate this many times the square root of all instances.
_MUCH_WORK, _MAX_HALVES = 8, 6
# Sums over removed features that are kept: of so many instances, for so many sets of features.
_FEW_SUMS, _MANY_SUMS = 2**10, 2**12
# Instances enumerated between two looks at the clock (some 20 ms), and that are worth a thread.
_UNINTERRUPTED, _WORTH_A_THREAD = 2**22, 2**15


class SplitSums:
    """Maximum potential agreements of feature subsets of a naive Bayes classifier.

    Parameters
    ----------
    classifier : BayesianClassifier
        Naive Bayes, with a threshold strictly between 0 and 1 and a prior that rules out no class.
    """

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._prior = classifier.prior
        self._offset = math.log(self._prior[0]) - math.log(self._prior[1])
        threshold = classifier.threshold
        self._needed = math.log(threshold) - math.log1p(-threshold) - TIE_TOLERANCE
        self._features = [Feature.of(table) for table in classifier.tables]
        self._padded = padded(self._features, range(len(self._features)))
        self._strongest = sorted(range(len(self._features)), key=lambda i: -separation(classifier.tables[i]))
        self._half = math.prod(one.weights.size for one in self._features) ** 0.5
        weak = self._about_half(self._strongest[::-1])
        self._halves = [self._split(weak), self._split(self._about_half(self._strongest))]
        self._sums: dict[frozenset[int], Sums] = {}

    def _about_half(self, order: Sequence[int]) -> list[int]:
        """Return the first features that have about the square root of all instances."""
        tabulated = _TABULATED_IF_SMALL if self._half**2 <= _SMALL else _TABULATED
        n_instances, chosen = 1, []
        for i in order:
            size = self._features[i].weights.size
            if n_instances * size**0.5 > self._half * tabulated:
                break
            n_instances *= size
            chosen.append(i)
        return chosen

    def _split(self, tabulated: Sequence[int]) -> Half:
        return Half(self._features, tabulated, self._needed - self._offset)

    def potential_agreements(
        self, kept: frozenset[int], removed: frozenset[int], candidates: Sequence[int | None], limits: Limits
    ) -> list[float]:
        """Return the maximum potential agreement of a subset after removing each candidate, or nothing for None.

        Parameters
        ----------
        kept, removed : frozenset of int
            Together all features.
        candidates : sequence of int or None
            Among the kept features.
        limits : Limits
            When time is over, fewer values are returned, but at least one.
        """
        node = self._node(*self._best_half(kept, removed), removed)
        if len(removed) <= len(kept):
            node.sums = self._sums_over(removed)
        found: dict[int | None, float] = {}
        open_, longest = list(candidates), 0.0
        while open_ and (not found or limits.in_time(longest)):
            began = clock()
            chosen = self._some(open_, node.half, limits)
            within = [i for i in chosen if i is None or i in node.half.enumerated]
            outside = [i for i in chosen if i is not None and i not in node.half.enumerated]
            evaluated: list[list[int | None]] = []
            calls: list[_Call] = []
            for part in _dealt(within, limits.n_jobs):
                calls.append(self._call(node, node.left_out, part))
                evaluated.append(part)
            stacked = node.keeps and not node.left_out and node.half.can_stack
            for part in _dealt(outside, limits.n_jobs if stacked else len(outside)):
                calls.append(self._call_stacked(node, part) if stacked else self._call_without(node, kept, part[0]))
                evaluated.append(part)
            worth_it = sum(call.work for call in calls) >= _WORTH_A_THREAD
            in_threads(functools.partial(_run, calls), len(calls), limits.n_jobs, worth_it=worth_it)
            for part, call in zip(evaluated, calls, strict=True):
                found.update(zip(part, call.out.tolist(), strict=True))
            open_ = open_[len(chosen) :]
            longest = max(longest, clock() - began)
        return [found[i] for i in candidates[: len(candidates) - len(open_)]]

    def _sums_over(self, removed: frozenset[int]) -> Sums:
        """Return the sums over removed features; those of few features are kept, for subsets that lack one more."""
        if removed not in self._sums:
            known = next((i for i in removed if removed - {i} in self._sums), None)
            if known is None:
                sums = sums_of(self._padded, sorted(removed))
            else:
                sums = sums_of(self._padded, [known], self._sums[removed - {known}])
            if len(sums[0]) > _FEW_SUMS:
                return sums
            if len(self._sums) >= _MANY_SUMS:
                self._sums.clear()
            self._sums[removed] = sums
        return self._sums[removed]

    def _node(self, half: Half, keeps: bool, removed: frozenset[int]) -> _Node:
        left_out = half.tabulated & removed if keeps else half.tabulated - removed
        layout = half.layout(removed)
        return _Node(half, keeps, removed, left_out, layout, half.layouts[layout].gone(removed))

    def _some(self, candidates: Sequence[int | None], half: Half, limits: Limits) -> Sequence[int | None]:
        """Return the first candidates, as many as are evaluated before the next look at the clock."""
        # Each may need a table of its own.
        entries = half.size if limits.seconds_left() is None else max(half.size, half.n_entries)
        return candidates[: max(limits.n_jobs, _UNINTERRUPTED // entries)]

    def _best_half(self, kept: frozenset[int], removed: frozenset[int]) -> tuple[Half, bool]:
        """Return the split with the least work, and whether its table holds kept (or removed) features.

        A split that suits the subset is added if all others take much more work than it.
        """
        work, best, keeps = math.inf, self._halves[0], False
        for half in self._halves:
            for holds_kept, left_out in ((False, kept), (True, removed)):
                one = half.work(half.tabulated & left_out)
                if one < work:
                    work, best, keeps = one, half, holds_kept
        if work <= _MUCH_WORK * self._half:
            return best, keeps
        side = kept if len(kept) >= len(removed) else removed
        suited = self._split(self._about_half([i for i in reversed(self._strongest) if i in side]))
        if suited.work(frozenset()) >= work:
            return best, keeps
        if len(self._halves) >= _MAX_HALVES:
            del self._halves[2]
        self._halves.append(suited)
        return suited, side is kept

    def _call_stacked(self, node: _Node, candidates: Sequence[int | None]) -> _Call:
        """Prepare the evaluation of a subset without each of some tabulated features; the table lacks no others."""
        half, layout = node.half, node.half.layouts[node.layout]
        rows = np.array([half.row[i] for i in candidates if i is not None], dtype=np.int64)
        out = np.empty(len(rows))
        arguments = (
            half.stack(node.layout),
            half.table_features,
            (self._needed, self._offset),
            layout.features,
            self._prior,
            node.gone.copy(),
            sums_of(self._padded, sorted(node.removed)) if node.sums is None else node.sums,
            rows,
            out,
        )
        work = 2 * len(rows) * half.size
        return _Call(functools.partial(kernels.agreements_without_tabulated, *arguments), out, work)

    def _call_without(self, node: _Node, kept: frozenset[int], feature: int | None) -> _Call:
        """Prepare the evaluation of a subset without one of the tabulated features."""
        if feature is None:
            raise TypeError("a subset without another feature removed is enumerated")
        left_out = node.left_out | {feature} if node.keeps else node.left_out - {feature}
        sums = None if node.sums is None else sums_of(self._padded, [feature], node.sums)
        if node.half.work(left_out) <= _MUCH_WORK * self._half:
            below = _Node(node.half, node.keeps, node.removed | {feature}, left_out, node.layout, node.gone, sums)
            return self._call(below, left_out, [None])
        below = self._node(*self._best_half(kept - {feature}, node.removed | {feature}), node.removed | {feature})
        below.sums = sums
        return self._call(below, below.left_out, [None])

    def _call(self, node: _Node, left_out: frozenset[int], candidates: Sequence[int | None]) -> _Call:
        """Prepare the evaluation of a subset without each candidate, all of them enumerated (None: without another)."""
        half, state = node.half, node.half.state(left_out)
        # A large state stays in the layout in which it is made.
        number, gone = node.layout, node.gone.copy()
        if len(state.left_out) > _FEW_LEFT_OUT:
            number, gone = 0, half.layouts[0].gone(node.removed)
        layout = half.layouts[number]
        reached = state.reached(half.layouts, number)
        places = np.array([-1 if i is None else layout.place[i] for i in candidates], dtype=np.int64)
        out = np.empty(len(places))
        work = len(places) * half.size * len(state.left_out)
        if not node.keeps:
            norms = (state.left_out, reached, layout.features, self._prior, gone, places, out)
            return _Call(functools.partial(kernels.norms_without, *norms), out, work)
        arguments = (
            *state.table,
            state.left_out,
            reached,
            (self._needed, self._offset),
            layout.features,
            self._prior,
            gone,
            sums_of(self._padded, sorted(node.removed)) if node.sums is None else node.sums,
            places,
            out,
        )
        return _Call(functools.partial(kernels.agreements_without, *arguments), out, work)


@dataclass(eq=False)
class _Node:
    """A subset, the split that suits it, and what all candidates for removal share.

    Attributes
    ----------
    keeps : bool
        Whether the table holds kept features (or removed ones).
    left_out : frozenset of int
        Tabulated features of the half that the table must not hold.
    layout : int
        Position of the layout, and which of its features are gone.
    sums : tuple of arrays or None
        The sorted sums over the removed features, if they are few.
    """

    half: Half
    keeps: bool
    removed: frozenset[int]
    left_out: frozenset[int]
    layout: int
    gone: NDArray[np.bool_]
    sums: Sums | None = None


@dataclass(frozen=True, eq=False)
class _Call:
    """A prepared call of a kernel: it writes `out`; `work` is how many instances it reads."""

    run: Callable[[], None]
    out: FloatArray
    work: int


def _run(calls: Sequence[_Call], part: slice) -> None:
    for call in calls[part]:
        call.run()


def _dealt(items: Sequence[int | None], n_parts: int) -> list[list[int | None]]:
    """Deal items to some parts, none of them empty."""
    return [list(items[start::n_parts]) for start in range(min(n_parts, len(items)))]


# One split of the features of a naive Bayes classifier: a part that is tabulated, and one that is enumerated.

# Tables of a split that are kept for the next subsets.
_CACHE_BYTES = 2**29
_STACK_BYTES = 2**26
# Layouts of the enumerated instances, so that mostly this many neighbours (a power of 2) have all features removed or
# kept alike: reading them one after the other is several times faster.
_RUN, _MAX_LAYOUTS = 16, 4
# Of so few instances, making another layout takes longer than it saves.
_FEW_INSTANCES = 2**11

_Table = tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64], float]
# Weights, tails, bounds, buckets, scales, probabilities of what is left out, and what is reached, of several tables.
Stack = tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Feature:
    """Weights of a feature's possible values, and their probabilities under both classes."""

    weights: FloatArray
    positive: FloatArray
    negative: FloatArray

    @classmethod
    def of(cls, table: FloatArray) -> Feature:
        """Return the values of a likelihood table that some class allows."""
        possible = table.sum(axis=0) > 0
        positive, negative = table[0][possible], table[1][possible]
        with np.errstate(divide="ignore"):
            return cls(np.log(positive) - np.log(negative), positive, negative)


class State:
    """A table over some features of a half, and how likely it lifts each enumerated instance over the threshold.

    Attributes
    ----------
    table : tuple
        Weights, tails, bounds of the finite weights, buckets and their scale, as the kernels take them.
    left_out : ndarray of shape (n_left_out, 2)
        P(instance | class) of the features of the half that are not in the table.
    """

    def __init__(self, table: _Table, left_out: FloatArray, reached: FloatArray) -> None:
        self.table = table
        self.left_out = left_out
        self._reached = [reached]
        self.nbytes = reached.nbytes + 6 * table[0].nbytes

    def reached(self, layouts: Sequence[Layout], place: int) -> FloatArray:
        """Return the probabilities in one of the layouts, shape (2, n_left_out, n_enumerated)."""
        while len(self._reached) <= place:
            layout = layouts[len(self._reached)]
            shape = (2, len(self.left_out), *layouts[0].features[3])
            axes = [layouts[0].place[feature] for feature in layout.order]
            moved = self._reached[0].reshape(shape).transpose(0, 1, *(2 + axis for axis in axes))
            self._reached.append(np.ascontiguousarray(moved).reshape(2, len(self.left_out), -1))
            self.nbytes += moved.nbytes
        return self._reached[place]


class Layout:
    """An order of the enumerated features, the last one varying fastest."""

    def __init__(self, features: Sequence[Feature], order: Sequence[int]) -> None:
        self.order = tuple(order)
        self.place = {feature: place for place, feature in enumerate(order)}
        self.features = padded(features, order)
        self._sizes = [features[i].weights.size for i in order]

    def gone(self, removed: frozenset[int]) -> NDArray[np.bool_]:
        """Return which of the features are removed."""
        return np.array([i in removed for i in self.order], dtype=np.bool_)

    def run(self, removed: frozenset[int]) -> int:
        """Return how many instances the innermost features have that are kept."""
        n_instances = 1
        for feature, size in zip(reversed(self.order), reversed(self._sizes), strict=True):
            if feature in removed:
                break
            n_instances *= size
        return n_instances


def padded(features: Sequence[Feature], order: Sequence[int]) -> Padded:
    """Return weights and probabilities of features as rows of one length, and their numbers of values."""
    cardinalities = np.array([features[i].weights.size for i in order], dtype=np.int64)
    shape = (len(order), max(cardinalities, default=1))
    rows = (np.zeros(shape), np.zeros(shape), np.zeros(shape))
    for place, i in enumerate(order):
        one = features[i]
        for row, values in zip(rows, (one.weights, one.positive, one.negative), strict=True):
            row[place, : values.size] = values
    return (*rows, cardinalities)


class Half:
    """One way to split the features: those that may be tabulated, and those that are enumerated."""

    def __init__(self, features: Sequence[Feature], tabulated: Sequence[int], needed: float) -> None:
        self.tabulated = frozenset(tabulated)
        self.enumerated = frozenset(range(len(features))) - self.tabulated
        self._table_order = tuple(tabulated)
        self._features = features
        self._padded = padded(features, range(len(features)))
        self._sizes = [feature.weights.size for feature in features]
        self._needed = needed
        self.layouts = [Layout(features, sorted(self.enumerated))]
        weight = np.zeros(1)
        for i in self.layouts[0].order:
            with np.errstate(invalid="ignore"):
                weight = np.add.outer(weight, features[i].weights).ravel()
        self._weight = weight
        # Number of enumerated instances.
        self.size = weight.size
        self._states: OrderedDict[frozenset[int], State] = OrderedDict()
        self._stacks: dict[int, Stack] = {}
        self.row = {feature: place for place, feature in enumerate(tabulated)}
        self.table_features = padded(features, tabulated)

    @cached_property
    def n_entries(self) -> int:
        """Number of entries of a table that leaves out nothing."""
        return math.prod(int(size) for size in self.table_features[3])

    def work(self, left_out: frozenset[int]) -> int:
        """Return how many instances are enumerated where some tabulated features are left out of the table."""
        n_instances = self.size
        for i in left_out:
            n_instances *= self._sizes[i]
        return n_instances

    def state(self, left_out: frozenset[int]) -> State:
        """Return the table without some features; those used last are kept."""
        found = self._states.get(left_out)
        if found is None:
            found = self._states[left_out] = self._make(left_out)
            n_bytes = sum(state.nbytes for state in self._states.values())
            while len(self._states) > 1 and n_bytes > _CACHE_BYTES:
                n_bytes -= self._states.popitem(last=False)[1].nbytes
        else:
            self._states.move_to_end(left_out)
        return found

    @cached_property
    def can_stack(self) -> bool:
        """Whether the tables without one feature each take little enough memory to be kept in one piece."""
        width = self.table_features[0].shape[1]
        return bool(16 * len(self.row) * (width * self.size + 4 * self.n_entries) <= _STACK_BYTES)

    def stack(self, layout: int) -> Stack:
        """Return the tables without one feature each, in one of the layouts."""
        if layout not in self._stacks:
            states = [self.state(frozenset([feature])) for feature in self.row]
            self._stacks[layout] = _stacked(states, [state.reached(self.layouts, layout) for state in states])
        return self._stacks[layout]

    def layout(self, removed: frozenset[int]) -> int:
        """Return the position of the layout whose innermost features are kept, making one if none has enough."""
        if self.size <= _FEW_INSTANCES:
            return 0
        runs = [layout.run(removed) for layout in self.layouts]
        best = max(range(len(runs)), key=lambda place: runs[place])
        kept = [i for i in self.layouts[0].order if i not in removed]
        if runs[best] >= _RUN or len(self.layouts) >= _MAX_LAYOUTS or len(kept) < _RUN.bit_length():
            return best
        # A different choice each time, so that few layouts suit many subsets.
        inner = (kept * 2)[len(self.layouts) :][: _RUN.bit_length() - 1]
        self.layouts.append(Layout(self._features, [*(i for i in self.layouts[0].order if i not in inner), *inner]))
        return len(self.layouts) - 1

    def _make(self, left_out: frozenset[int]) -> State:
        held = np.array([i for i in self._table_order if i not in left_out], dtype=np.int64)
        missing = np.array(sorted(left_out), dtype=np.int64)
        made = kernels.state_of(self._padded, held, missing, self._needed, self._weight)
        weight, tails, bounds, buckets, scale, chances, reached = made
        return State((weight, tails, bounds, buckets, scale), chances, reached)


def _stacked(states: Sequence[State], reached: Sequence[FloatArray]) -> Stack:
    """Return the tables of some states as arrays, padded along all axes but the first."""
    weights, tails, bounds, buckets, scales = zip(*(state.table for state in states), strict=True)
    left_out = [state.left_out for state in states]
    return (
        _piled(weights),
        _piled(tails),
        np.stack(bounds),
        _piled(buckets),
        np.array(scales),
        _piled(left_out),
        _piled([part.transpose(1, 0, 2) for part in reached]).transpose(0, 2, 1, 3).copy(),
    )


def _piled(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays that differ in the length of their first axis as one, zeros at the end of the shorter ones."""
    length = max(len(part) for part in parts)
    out = np.zeros((len(parts), length, *parts[0].shape[1:]), dtype=parts[0].dtype)
    for place, part in enumerate(parts):
        out[place, : len(part)] = part
    return out


def sums_of(features: Padded, group: Iterable[int], start: Sums | None = None) -> Sums:
    """Return the sorted sums of a group of features, added to those of `start`, and their probabilities."""
    sums = (np.zeros(1), np.ones(1), np.ones(1)) if start is None else start
    return kernels.add_features(features, np.array([*group], dtype=np.int64), sums)


# Bounds on agreements of naive Bayes trimmings that take a fraction of the time of the agreements themselves.

# Cells for each feature: where those of a coarse grid leave it open whether a value is high enough, finer ones decide.
_CELLS = (25, 100, 400)
# Exact values of subsets of fewer instances than this are as cheap.
_MANY_INSTANCES = 2**23
# Rounding of sums of probabilities, and of sums of weights beyond the tolerance for ties.
_ROUNDING, _SUM_ROUNDING = 1e-10, 1e-9
# Beyond, everything is doubtful, and `exp` still finite.
_MOST_LOG_RATIO = 700.0
# Steps that are tried.
_STEPS = np.geomspace(0.8, 1.25, 25)


class GridBounds:
    """Bounds on the maximum potential agreements of feature subsets of a naive Bayes classifier.

    Parameters
    ----------
    classifier : BayesianClassifier
        Without zeros, and with a threshold strictly between 0 and 1.
    n_cells : int
        About the size of the grid: more cells, narrower bounds.
    """

    def __init__(self, classifier: BayesianClassifier, n_cells: int) -> None:
        weights = [np.log(table[0]) - np.log(table[1]) for table in classifier.tables]
        n_features, n_values = len(weights), max(weight.size for weight in weights)
        # Rows that are too short are filled up with their first entry.
        padded = np.repeat([weight[:1] for weight in weights], n_values, axis=1)
        chances = np.zeros((n_features, 2, n_values))
        for i, weight in enumerate(weights):
            padded[i, : weight.size] = weight
            chances[i, :, : weight.size] = classifier.tables[i]
        above = padded - padded.min(axis=1, keepdims=True)
        # With some steps, weights are rounded by less than with others.
        steps = (float(above.max(axis=1).sum()) / n_cells or 1.0) * _STEPS
        left = above - np.rint(above / steps[:, None, None]) * steps[:, None, None]
        spreads = 0.5 * np.ptp(left, axis=2).sum(axis=1)
        best = int(np.argmin(spreads / np.sqrt(steps)))
        step, self._spread = float(steps[best]), float(spreads[best])
        shifts = np.rint(above / step).astype(np.int64)
        cardinalities = np.array([weight.size for weight in weights], dtype=np.int64)
        self._steps = (shifts, chances, cardinalities, shifts.max(axis=1))
        self._prior = prior = classifier.prior
        start = float((padded - shifts * step).max(axis=1).sum()) - self._spread
        threshold = classifier.threshold
        needed = math.log(threshold) - math.log1p(-threshold) - (math.log(prior[0]) - math.log(prior[1]))
        self._place_threshold((needed - start) / step, (self._spread + TIE_TOLERANCE + _SUM_ROUNDING) / step)

    def _place_threshold(self, place: float, reach: float) -> None:
        """Find from how many steps on instances are positive, and how likely those are for which that may be wrong."""
        n_cells = int(self._steps[3].sum()) + 1
        # An original that is always, or never, positive is not far from one that hardly ever differs.
        self._needed = min(max(1, math.ceil(place)), n_cells)
        everything = np.arange(len(self._steps[2]))
        probabilities = self._prior @ cells_of(self._steps, everything, n_cells)
        cells = np.arange(n_cells)
        first, last = min(place - reach, self._needed), max(place + reach, self._needed - 1)
        self._moved = float(probabilities[(cells >= first) & (cells <= last)].sum())

    def bounds(
        self, kept: Collection[int], removed: Collection[int], candidates: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds on the values of a subset after removing each candidate.

        Parameters
        ----------
        kept, removed : collections of int
            Together all features.
        candidates : sequence of int
            Among the kept features.
        """
        out = np.empty((2, len(candidates)))
        fixed = sorted(set(kept).difference(candidates))
        staying, gone, tried = (np.array(group, dtype=np.int64) for group in (fixed, sorted(removed), candidates))
        ratio = math.exp(min(2.0 * self._spread, _MOST_LOG_RATIO))
        grid_losses(self._steps, staying, gone, tried, self._needed, self._prior, ratio, out)
        margin = self._moved + _ROUNDING
        gained = math.tanh(0.5 * self._spread) * out[1]
        return 1.0 - out[0] - margin, np.minimum(1.0, 1.0 - out[0] + gained + margin)


def grids_of(classifier: BayesianClassifier) -> list[GridBounds]:
    """Return grids for a classifier, the coarsest first; none of a small one, and where a value rules out a class."""
    is_small = math.prod(classifier.cardinalities) < _MANY_INSTANCES
    if is_small or any((table == 0).any() for table in classifier.tables):
        return []
    return [GridBounds(classifier, n_cells * classifier.n_features) for n_cells in _CELLS]
