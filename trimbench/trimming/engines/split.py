"""Agreements of many similar feature subsets of a naive Bayes classifier, computed by compiled kernels.

The features are split in two halves by how well they separate the classes. One half is tabulated: its sorted sums of
weights, with tail probabilities under both classes. Of every instance of the other half it is looked up once how likely
the tabulated features lift it over the threshold. These probabilities serve all subsets that keep, or that remove, the
same tabulated features; each takes one pass over the enumerated instances.

A subset that keeps most strong features is computed with these in the table, one that removes most weak features with
the weak ones in the table.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.dense import separation
from trimbench.trimming.engines.weight_sums import FloatArray
from trimbench.trimming.kernels import split_sums as kernels
from trimbench.trimming.limits import Limits, in_threads
from trimbench.trimming.thresholds import TIE_TOLERANCE

# Tables of a split that are kept for the next subsets.
_CACHE_BYTES = 2**28
_BUCKETS_PER_ENTRY = 2
# Layouts of the enumerated instances, so that mostly this many neighbours (a power of 2) have all features removed or
# kept alike: reading them one after the other is several times faster.
_RUN, _MAX_LAYOUTS = 16, 6
# A split is added where the others would enumerate this many times the square root of all instances.
_MUCH_WORK, _MAX_HALVES = 8, 6
# Instances enumerated between two looks at the clock (some 20 ms), and that are worth a thread.
_UNINTERRUPTED, _WORTH_A_THREAD = 2**22, 2**15


_Table = tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64], float]
# Weights, and probabilities under both classes.
_Sums = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class _Feature:
    """Weights of a feature's possible values, and their probabilities under both classes."""

    weights: FloatArray
    positive: FloatArray
    negative: FloatArray

    @classmethod
    def of(cls, table: FloatArray) -> _Feature:
        possible = table.sum(axis=0) > 0
        positive, negative = table[0][possible], table[1][possible]
        with np.errstate(divide="ignore"):
            return cls(np.log(positive) - np.log(negative), positive, negative)


class _State:
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

    def reached(self, layouts: Sequence[_Layout], place: int) -> FloatArray:
        """Return the probabilities in one of the layouts, shape (2, n_left_out, n_enumerated)."""
        while len(self._reached) <= place:
            layout = layouts[len(self._reached)]
            shape = (2, len(self.left_out), *layouts[0].features[3])
            axes = [layouts[0].place[feature] for feature in layout.order]
            moved = self._reached[0].reshape(shape).transpose(0, 1, *(2 + axis for axis in axes))
            self._reached.append(np.ascontiguousarray(moved).reshape(2, len(self.left_out), -1))
            self.nbytes += moved.nbytes
        return self._reached[place]


class _Layout:
    """An order of the enumerated features, the last one varying fastest."""

    def __init__(self, features: Sequence[_Feature], order: Sequence[int]) -> None:
        self.order = tuple(order)
        self.place = {feature: place for place, feature in enumerate(order)}
        cardinalities = np.array([features[i].weights.size for i in order], dtype=np.int64)
        shape = (len(order), max(cardinalities, default=1))
        padded = (np.zeros(shape), np.zeros(shape), np.zeros(shape))
        for place, i in enumerate(order):
            one = features[i]
            for rows, values in zip(padded, (one.weights, one.positive, one.negative), strict=True):
                rows[place, : values.size] = values
        self.features = (*padded, cardinalities)

    def gone(self, removed: frozenset[int]) -> NDArray[np.bool_]:
        """Return which of the features are removed."""
        return np.array([i in removed for i in self.order], dtype=np.bool_)

    def run(self, removed: frozenset[int]) -> int:
        """Return how many instances the innermost features have that are kept."""
        n_instances = 1
        for place in range(len(self.order) - 1, -1, -1):
            if self.order[place] in removed:
                break
            n_instances *= int(self.features[3][place])
        return n_instances


class _Half:
    """One way to split the features: those that may be tabulated, and those that are enumerated."""

    def __init__(self, features: Sequence[_Feature], tabulated: Sequence[int], needed: float) -> None:
        self.tabulated = frozenset(tabulated)
        self.enumerated = frozenset(range(len(features))) - self.tabulated
        self._table_order = tuple(tabulated)
        self._features = features
        self._needed = needed
        self.layouts = [_Layout(features, sorted(self.enumerated))]
        weight = np.zeros(1)
        for i in self.layouts[0].order:
            with np.errstate(invalid="ignore"):
                weight = np.add.outer(weight, features[i].weights).ravel()
        self._weight = weight
        self._states: OrderedDict[frozenset[int], _State] = OrderedDict()

    @property
    def size(self) -> int:
        """Number of enumerated instances."""
        return self._weight.size

    def work(self, left_out: frozenset[int]) -> int:
        """Return how many instances are enumerated where some tabulated features are left out of the table."""
        return self.size * math.prod(self._features[i].weights.size for i in left_out)

    def state(self, left_out: frozenset[int]) -> _State:
        """Return the table without some features; those used last are kept."""
        found = self._states.pop(left_out, None) or self._make(left_out)
        self._states[left_out] = found
        while len(self._states) > 1 and sum(state.nbytes for state in self._states.values()) > _CACHE_BYTES:
            self._states.popitem(last=False)
        return found

    def layout(self, removed: frozenset[int]) -> int:
        """Return the position of the layout whose innermost features are kept, making one if none has enough."""
        runs = [layout.run(removed) for layout in self.layouts]
        best = max(range(len(runs)), key=lambda place: runs[place])
        kept = [i for i in self.layouts[0].order if i not in removed]
        if runs[best] >= _RUN or len(self.layouts) >= _MAX_LAYOUTS or len(kept) < _RUN.bit_length():
            return best
        # A different choice each time, so that few layouts suit many subsets.
        inner = (kept * 2)[len(self.layouts) :][: _RUN.bit_length() - 1]
        self.layouts.append(_Layout(self._features, [*(i for i in self.layouts[0].order if i not in inner), *inner]))
        return len(self.layouts) - 1

    def _make(self, left_out: frozenset[int]) -> _State:
        weight, positive, negative = sums_of(self._features, [i for i in self._table_order if i not in left_out])
        first = int(np.searchsorted(weight, -math.inf, side="right"))
        last = int(np.searchsorted(weight, math.inf, side="left"))
        tails = np.stack([kernels.tails_of(positive), kernels.tails_of(negative)], axis=1)
        buckets = np.empty(_BUCKETS_PER_ENTRY * weight.size + 2, dtype=np.int64)
        scale = kernels.fill_buckets(weight, first, last, buckets)
        table = (weight, tails, np.array([first, last], dtype=np.int64), buckets, scale)
        out_weight, out_positive, out_negative = sums_of(self._features, sorted(left_out))
        reached = np.empty((2, out_weight.size, self.size))
        kernels.reach(*table, self._needed, self._weight, out_weight, reached)
        return _State(table, np.stack([out_positive, out_negative], axis=1), reached)


def sums_of(features: Sequence[_Feature], group: Sequence[int], start: _Sums | None = None) -> _Sums:
    """Return the sorted sums of a group of features, added to those of `start`, and their probabilities."""
    sums = (np.zeros(1), np.ones(1), np.ones(1)) if start is None else start
    for i in group:
        sums = kernels.add_feature(*sums, features[i].weights, features[i].positive, features[i].negative)
    return sums


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
        self._features = [_Feature.of(table) for table in classifier.tables]
        self._strongest = sorted(range(len(self._features)), key=lambda i: -separation(classifier.tables[i]))
        self._half = math.prod(one.weights.size for one in self._features) ** 0.5
        weak = self._about_half(self._strongest[::-1])
        self._halves = [self._split(weak), self._split([i for i in self._strongest if i not in set(weak)])]

    def _about_half(self, order: Sequence[int]) -> list[int]:
        """Return the first features that have about the square root of all instances."""
        n_instances, chosen = 1, []
        for i in order:
            size = self._features[i].weights.size
            if n_instances * size**0.5 > self._half:
                break
            n_instances *= size
            chosen.append(i)
        return chosen

    def _split(self, tabulated: Sequence[int]) -> _Half:
        return _Half(self._features, tabulated, self._needed - self._offset)

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
        half, keeps = self._best_half(kept, removed)
        sums = sums_of(self._features, sorted(removed)) if len(removed) <= len(kept) else None
        within = [i for i in candidates if i is None or i in half.enumerated]
        together: dict[int | None, float] = {}
        found: list[float] = []
        for i in candidates:
            if found and not limits.in_time():
                break
            if i is None or i in half.enumerated:
                if i not in together:
                    batch = within[len(together) : len(together) + self._batch_size(half, limits)]
                    values = self._batch(half, keeps, removed, sums, batch, limits.n_jobs)
                    together |= zip(batch, values, strict=True)
                found.append(together[i])
            else:
                below, below_keeps = self._best_half(kept - {i}, removed | {i})
                more = None if sums is None else sums_of(self._features, [i], sums)
                found += self._batch(below, below_keeps, removed | {i}, more, [None], 1)
        return found

    def _best_half(self, kept: frozenset[int], removed: frozenset[int]) -> tuple[_Half, bool]:
        """Return the split with the least work, and whether its table holds kept (or removed) features.

        A split that suits the subset is added if all others take much more work than it.
        """
        work, place, keeps = min(
            (half.work(half.tabulated & (removed if keeps else kept)), place, keeps)
            for place, half in enumerate(self._halves)
            for keeps in (True, False)
        )
        if work <= _MUCH_WORK * self._half:
            return self._halves[place], keeps
        side = kept if len(kept) >= len(removed) else removed
        suited = self._split(self._about_half([i for i in reversed(self._strongest) if i in side]))
        if suited.work(frozenset()) >= work:
            return self._halves[place], keeps
        if len(self._halves) >= _MAX_HALVES:
            del self._halves[2]
        self._halves.append(suited)
        return suited, side is kept

    def _batch_size(self, half: _Half, limits: Limits) -> int:
        """Return for how many candidates no look at the clock is needed."""
        return max(limits.n_jobs, _UNINTERRUPTED // half.size)

    def _batch(
        self,
        half: _Half,
        keeps: bool,
        removed: frozenset[int],
        sums: _Sums | None,
        candidates: Sequence[int | None],
        n_jobs: int,
    ) -> list[float]:
        state = half.state(half.tabulated & removed if keeps else half.tabulated - removed)
        number = half.layout(removed)
        layout = half.layouts[number]
        reached = state.reached(half.layouts, number)
        places = np.array([-1 if i is None else layout.place[i] for i in candidates], dtype=np.int64)
        out = np.empty(len(places))
        if keeps and sums is None:
            sums = sums_of(self._features, sorted(removed))

        def evaluate(part: slice) -> None:
            gone = layout.gone(removed)
            if keeps and sums is not None:
                kernels.agreements_without(
                    *state.table,
                    state.left_out,
                    reached,
                    (self._needed, self._offset),
                    layout.features,
                    self._prior,
                    gone,
                    sums,
                    places[part],
                    out[part],
                )
            else:
                kernels.norms_without(
                    state.left_out, reached, layout.features, self._prior, gone, places[part], out[part]
                )

        work = len(places) * half.size * len(state.left_out)
        in_threads(evaluate, len(places), n_jobs, worth_it=work >= _WORTH_A_THREAD)
        return [float(value) for value in out]
