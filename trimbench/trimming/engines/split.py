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
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.dense import separation
from trimbench.trimming.engines.halves import Feature, Half, padded, sums_of
from trimbench.trimming.engines.weight_sums import FloatArray
from trimbench.trimming.kernels import removals
from trimbench.trimming.kernels.sorted_sums import Sums
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
            began = time.perf_counter()
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
            longest = max(longest, time.perf_counter() - began)
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
        return _Call(functools.partial(removals.agreements_without_tabulated, *arguments), out, work)

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
            return _Call(functools.partial(removals.norms_without, *norms), out, work)
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
        return _Call(functools.partial(removals.agreements_without, *arguments), out, work)


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
