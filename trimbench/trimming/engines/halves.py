"""One split of the features of a naive Bayes classifier: a part that is tabulated, and one that is enumerated."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.engines.weight_sums import FloatArray
from trimbench.trimming.kernels import sorted_sums as kernels
from trimbench.trimming.kernels.sorted_sums import Padded, Sums

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
