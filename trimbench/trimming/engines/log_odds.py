"""The log-odds engine: a naive Bayes instance matters only through the sum of its features' weights.

An instance is classified as positive iff its prior log-odds plus the sum of its weights reach ``logit(T)``. So the
agreement of a subset S with the rest R needs only the distribution, under each class, of two independent sums of
independent weights. One of them is written out instance by instance; of the other, tail probabilities are found by
meeting in the middle. Exact for any subset, at a cost of about the square root of the number of instances.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimbench._typing import FloatArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import (
    TIE_TOLERANCE,
    TIED_LOG_ODDS,
    Cut,
    Instances,
    agreement_of,
    best_cut,
    cumulated,
    log_odds,
    thresholds_between,
)
from trimbench.trimming.engines.table import separation

MAX_ENTRIES = 2**44
# Of a subset whose instances are written out; memory is the limit.
MAX_INSTANCES = 2**24
# For a classifier with more instances: most seconds for an exact value, the seconds of one step of it, and the most
# instances that meet in the middle.
_MOST_SECONDS, _SECONDS_OF_STEP, _MOST_MEETING = 10.0, 2.4e-9, 2.0**40
# Entries of a table of sums, and how many sums are looked up in it at once.
_MOST_TABULATED, _AT_ONCE = 2**19, 2**18
# Where there are many sums to look up, a look-up takes as long as this many steps through two halves in compiled loops.
_MANY_LOOKUPS, _STEPS_OF_LOOKUP = 2**20, 2**5
# Up to this many instances are sorted to find the best threshold; of more, only those next to it are looked for.
_MOST_SORTED = 2**18
# Most terms of a sum that are added up in any order; of more, in an order with small errors.
_MOST_ADDED = 2**10


@dataclass(frozen=True, eq=False)
class LogOddsEngine:
    """Agreement measures of a naive Bayes classifier without a table of all instances.

    Parameters
    ----------
    classifier : BayesianClassifier
        At most `MAX_ENTRIES` instances.
    of_any_size : bool
        Whether to allow more instances, for subsets whose `seconds` are finite.
    """

    classifier: BayesianClassifier
    of_any_size: bool = False

    def __post_init__(self) -> None:
        entries = math.prod(self.classifier.cardinalities)
        if entries > MAX_ENTRIES and not self.of_any_size:
            raise ValueError(
                f"engine 'log_odds' must have at most 2^{math.log2(MAX_ENTRIES):.0f} instances of the features, got "
                f"2^{math.log2(entries):.1f} for {self.classifier.n_features} features; trim() and "
                "expected_agreement(interval=True) give certified bounds for any number, or give it fewer features"
            )

    @cached_property
    def _sums(self) -> WeightSums:
        return WeightSums(self.classifier.tables)

    def with_threshold(self, threshold: float) -> LogOddsEngine:
        """Return the engine of the same classifier with another threshold."""
        return LogOddsEngine(self.classifier.with_threshold(threshold))

    @property
    def root(self) -> LogOddsMeasure:
        """The measure over all features."""
        # The strongest features first: they are kept longest, so their tables serve many subsets.
        tables = self.classifier.tables
        order = sorted(range(self.classifier.n_features), key=lambda i: -separation(tables[i]))
        return LogOddsMeasure(self, tuple(order), ())

    def seconds(self, features: Sequence[int]) -> float:
        """Return about how long the exact agreement of a feature subset (given by position) takes; inf if too long."""
        cardinalities = self.classifier.cardinalities
        sides = [math.prod(cardinalities[i] for i in side) for side in (features, self._others(features))]
        found = _SECONDS_OF_STEP * min(sides) * math.sqrt(max(sides))
        return found if max(sides) <= _MOST_MEETING and found <= _MOST_SECONDS else math.inf

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset (given by position).

        Raises ValueError if there are more than `MAX_INSTANCES`.
        """
        if self._is_large(features):
            raise ValueError(
                f"features must have at most 2^{math.log2(MAX_INSTANCES):.0f} instances to be written out, got "
                f"{len(features)} features"
            )
        return self._instances(tuple(features), self._others(features))

    def agreement(self, features: Sequence[int], threshold: float) -> float:
        """Return the expected classification agreement of a feature subset with a threshold."""
        if not self._is_large(features):
            return self.instances(features).agreement(threshold)
        return self._agreement_at(tuple(features), self._others(features), log_odds(threshold) - TIE_TOLERANCE)

    def best_cut(self, features: Sequence[int]) -> Cut:
        """Return a threshold interval of a feature subset with the highest agreement.

        Of several, it is the one that holds the classifier's own threshold, if any does.
        """
        if math.prod(self.classifier.cardinalities[i] for i in features) <= _MOST_SORTED:
            return best_cut(self.instances(features), self.classifier.threshold)
        kept, removed = tuple(features), self._others(features)
        change = self._sign_change(removed)
        cuts = [
            self._cut_around(kept, removed, cut)
            for cut in (change - TIED_LOG_ODDS, change + TIED_LOG_ODDS, self._needed)
        ]
        best = max(cut.agreement for cut in cuts)
        best_cuts = [cut for cut in cuts if cut.agreement >= best - TIE_TOLERANCE]
        return best_cuts[-1] if best_cuts[-1] is cuts[-1] else best_cuts[0]

    def _cut_around(self, kept: tuple[int, ...], removed: tuple[int, ...], cut: float) -> Cut:
        """Return the thresholds around some log-odds that no instance of the kept features lies between."""
        below, above = (self._offset + weight for weight in self._sums.neighbours(kept, cut - self._offset))
        low, high = thresholds_between(below, above)
        return Cut(self._agreement_at(kept, removed, cut), low, high)

    def _is_large(self, features: Sequence[int]) -> bool:
        return math.prod(self.classifier.cardinalities[i] for i in features) > MAX_INSTANCES

    def _others(self, features: Sequence[int]) -> tuple[int, ...]:
        kept = set(features)
        return tuple(i for i in range(self.classifier.n_features) if i not in kept)

    def potential_agreement(self, kept: tuple[int, ...], removed: tuple[int, ...]) -> float:
        """Return the maximum potential agreement of a feature subset.

        Parameters
        ----------
        kept, removed : tuple of int
            Together all features. Subsets with a common beginning share work.
        """
        cardinalities = self.classifier.cardinalities
        if math.prod(cardinalities[i] for i in kept) <= math.prod(cardinalities[i] for i in removed):
            return agreement_of(float(np.abs(self._instances(kept, removed).signed).sum()))
        return self._agreement_at(kept, removed, self._sign_change(removed))

    def potential_agreement_of(self, features: Sequence[int]) -> float:
        """Return the maximum potential agreement of a feature subset (given by position)."""
        return self.potential_agreement(tuple(features), self._others(features))

    @property
    def _offset(self) -> float:
        return float(self.classifier.log_prior[0] - self.classifier.log_prior[1])

    @property
    def _needed(self) -> float:
        """Log-odds from which an instance is positive, lowered by the tolerance for ties."""
        return log_odds(self.classifier.threshold) - TIE_TOLERANCE

    def _instances(self, kept: tuple[int, ...], removed: tuple[int, ...]) -> Instances:
        sums = self._sums.sums(kept)
        with np.errstate(invalid="ignore"):
            above = self._sums.tails(removed, reached(self._needed - (self._offset + sums.weight)))
        positive, negative = self.classifier.prior[0] * sums.positive, self.classifier.prior[1] * sums.negative
        for lifted, probability in zip(above, (positive, negative), strict=True):  # in place, as there may be millions
            lifted *= 2.0
            lifted -= 1.0
            lifted *= probability
        return Instances(positive, negative, np.add(*above, out=above[0]))

    def _starts(self, removed: tuple[int, ...]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log-odds of f' from which on each instance of the removed features lifts it over the threshold.

        Returns
        -------
        start, positive, negative : ndarrays of shape (n_instances,)
            By increasing start.
        """
        sums = self._sums.sums(removed)
        with np.errstate(invalid="ignore"):
            start = reached(self._needed - sums.weight[::-1])
        return start, sums.positive[::-1], sums.negative[::-1]

    def _sign_change(self, removed: tuple[int, ...]) -> float:
        """Return the log-odds of f' from which on d(f') is positive."""
        return sign_change(*self._starts(removed))

    def _agreement_at(self, kept: tuple[int, ...], removed: tuple[int, ...], cut: float) -> float:
        """Return the agreement when f' is positive from the log-odds `cut` on; the removed side is written out."""
        start, positive, negative = self._starts(removed)
        with np.errstate(invalid="ignore"):
            above = self._sums.tails(kept, reached(np.append(start, cut) - self._offset))
        total, early = 0.0, start <= cut
        for side, probability in ((0, positive), (1, negative)):
            agree, beyond = above[side][:-1], float(above[side][-1])
            np.subtract(beyond + 1.0, agree, out=agree, where=early)
            np.add(agree, 1.0, out=agree, where=~early)
            np.subtract(agree, beyond, out=agree, where=~early)
            agree *= probability
            total += float(self.classifier.prior[side] * agree.sum())
        return min(1.0, max(0.0, total))


def sign_change(start: FloatArray, positive: FloatArray, negative: FloatArray) -> float:
    """Return the log-odds of f' from which on d(f') is positive.

    By Proposition 3 its sign changes once. Between two starts ``d(s)`` is proportional to ``exp(s) * a + b``, a and
    b depending on how many instances of the removed features lift f' over the threshold.

    Parameters
    ----------
    start, positive, negative : ndarrays of shape (n_instances,)
        The log-odds of f' from which on an instance of the removed features lifts it over the threshold, in increasing
        order, and P(instance | class).
    """
    a = 2.0 * cumulated(positive) - 1.0
    b = 2.0 * cumulated(negative) - 1.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        at_start = np.where(a == 0, 0.0, np.exp(start) * a) + b
    favours_positive = np.flatnonzero(at_start >= 0)
    first = int(favours_positive[0]) if favours_positive.size else start.size
    change = float(start[first]) if first < start.size else math.inf
    if first > 0 and a[first - 1] > 0 and b[first - 1] < 0:
        change = min(change, math.log(-b[first - 1]) - math.log(a[first - 1]))
    return change


@dataclass(frozen=True, eq=False)
class LogOddsMeasure:
    """The signed measure of a feature subset, evaluated on demand.

    Attributes
    ----------
    features : tuple of int
        The features that are left.
    removed : tuple of int
        The other features, in the order of their removal.
    """

    engine: LogOddsEngine
    features: tuple[int, ...]
    removed: tuple[int, ...]

    def without(self, *features: int) -> LogOddsMeasure:
        """Return the measure with some features removed."""
        left = tuple([i for i in self.features if i not in features])
        return LogOddsMeasure(self.engine, left, (*self.removed, *features))

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement of the subset (Definition 4)."""
        return self.engine.potential_agreement(self.features, self.removed)

    def potential_agreement_without(self, group: Sequence[int]) -> float:
        """Return the maximum potential agreement after removing some features."""
        return self.without(*group).potential_agreement()


# Distributions of sums of independent weights, exact, by meeting in the middle.

# Tables of sums are kept for the next subset, which usually differs in one feature.
_CACHE_BYTES = 2**23


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of all instances of a group of features, in increasing order.

    Instances that are impossible under both classes are left out.

    Attributes
    ----------
    weight, positive, negative : ndarrays of shape (n_instances,)
        The sum, and the probability of the instance under each class.
    """

    weight: FloatArray
    positive: FloatArray
    negative: FloatArray

    @cached_property
    def tails(self) -> tuple[FloatArray, FloatArray]:
        """Probability of this and all higher sums under each class, shape (n_instances + 1,)."""
        positive, negative = np.zeros((2, self.weight.size + 1))
        for tails, side in ((positive, self.positive), (negative, self.negative)):
            tails[-2::-1] = cumulated(side[::-1])
        return positive, negative

    @property
    def nbytes(self) -> int:
        """Memory, with that of the tails."""
        return 5 * self.weight.nbytes

    def plus(self, other: Sums) -> Sums:
        """Return the sums of the two groups together."""
        with np.errstate(invalid="ignore"):
            weight = np.add.outer(other.weight, self.weight).reshape(-1)
        # One sorted run for each instance of the other group: a stable sort merges them in linear time.
        order = np.argsort(weight, kind="stable")
        weight = weight[order]
        positive = np.multiply.outer(other.positive, self.positive).reshape(-1)[order]
        negative = np.multiply.outer(other.negative, self.negative).reshape(-1)[order]
        if not (possible := (positive > 0) | (negative > 0)).all():
            weight, positive, negative = weight[possible], positive[possible], negative[possible]
        return Sums(weight, positive, negative)


class WeightSums:
    """The weights of a model's features, and the distribution of their sums over any group of features.

    Parameters
    ----------
    tables : sequence of ndarrays of shape (2, cardinality)
        P(value | c) and P(value | not c) of each feature.
    """

    def __init__(self, tables: Sequence[FloatArray]) -> None:
        self.cardinalities = [table.shape[1] for table in tables]
        nothing = Sums(np.zeros(1), np.ones(1), np.ones(1))
        self._single = []
        for positive, negative in tables:
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = np.log(positive) - np.log(negative)
            order = np.argsort(weight, kind="stable")
            order = order[((positive > 0) | (negative > 0))[order]]
            self._single.append(Sums(weight[order], positive[order], negative[order]))
        self._nothing = nothing
        self._kept: OrderedDict[tuple[int, ...], Sums] = OrderedDict()
        self._bytes = 0

    def sums(self, group: tuple[int, ...]) -> Sums:
        """Return the sums over a group. Groups with a common beginning share work."""
        n_known = len(group)
        while n_known and group[:n_known] not in self._kept:
            n_known -= 1
        found = self._kept.pop(group[:n_known], self._nothing)
        # The most recently used stay, and this one always.
        for length in range(max(n_known, 1), len(group) + 1):
            if length > n_known:
                found = found.plus(self._single[group[length - 1]])
                self._bytes += found.nbytes
            self._kept[group[:length]] = found
            while self._bytes > _CACHE_BYTES and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.nbytes
        return found

    def tails(self, group: tuple[int, ...], queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(sum over the group >= query) under each class.

        Parameters
        ----------
        group : tuple of int
            The first ones make a sorted table, which is kept; the others are written out.
        queries : ndarray of shape (n_queries,)
            In decreasing or increasing order, which makes the look-ups local.

        Returns
        -------
        positive, negative : ndarrays of shape (n_queries,)
        """
        tabulated, written = self._split(group, queries.size)
        n_lookups = queries.size * self._n_instances(written)
        n_steps = queries.size * math.sqrt(self._n_instances(group))
        if n_lookups >= _MANY_LOOKUPS and n_steps < _STEPS_OF_LOOKUP * n_lookups:
            return self._tails_of_halves(*self._split(group, 1), queries)
        table, other = self.sums(tabulated), self.sums(written)
        found = np.empty((2, queries.size))
        width = max(1, _AT_ONCE // other.weight.size)
        for start in range(0, queries.size, width):
            part = slice(start, start + width)
            with np.errstate(invalid="ignore"):
                remaining = reached(np.subtract.outer(-other.weight, -queries[part]))
            places = np.searchsorted(table.weight, remaining)
            for side, (chances, tails) in enumerate(zip((other.positive, other.negative), table.tails, strict=True)):
                looked_up = tails[places]
                if chances.size <= _MOST_ADDED:
                    found[side, part] = chances @ looked_up
                else:  # NumPy adds up a contiguous row in pairs
                    terms = np.ascontiguousarray(looked_up.T)
                    terms *= chances
                    found[side, part] = terms.sum(axis=1)
        return found[0], found[1]

    def _tails_of_halves(
        self, half: tuple[int, ...], rest: tuple[int, ...], queries: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what `tails` does, by going through both halves for each query, in little memory."""
        from trimbench.trimming.kernels import tails_of_halves

        table, other = self.sums(half), self.sums(rest)
        found = np.empty((2, queries.size))
        masses = np.stack([other.positive, other.negative])
        tails_of_halves(table.weight, np.stack(table.tails), other.weight, masses, queries, found)
        return found[0], found[1]

    def neighbours(self, group: tuple[int, ...], weight: float) -> tuple[float, float]:
        """Return the highest sum over the group below a weight, and the lowest not below it; infinite if none is."""
        tabulated, written = self._split(group, 1)
        table, other = self.sums(tabulated).weight, self.sums(written).weight
        with np.errstate(invalid="ignore"):
            places = np.searchsorted(table, reached(weight - other))
            below, above = (np.full(other.size, sign * math.inf) for sign in (-1, 1))
            has_below, has_above = places > 0, places < table.size
            below[has_below] = table[places[has_below] - 1] + other[has_below]
            above[has_above] = table[places[has_above]] + other[has_above]
        return float(np.fmax.reduce(below)), float(np.fmin.reduce(above))

    def _n_instances(self, group: tuple[int, ...]) -> int:
        return math.prod(self.cardinalities[i] for i in group)

    def _split(self, group: tuple[int, ...], n_queries: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Split off features to write out while queries x combinations stay below the table size, or that is large."""
        size, entries, place = n_queries, self._n_instances(group), len(group)
        while place and (size * self.cardinalities[group[place - 1]] ** 2 <= entries or entries > _MOST_TABULATED):
            place -= 1
            size *= self.cardinalities[group[place]]
            entries //= self.cardinalities[group[place]]
        return group[:place], group[place:]


def reached(distance: FloatArray) -> FloatArray:
    """Return the distance to a threshold (changed in place), with inf - inf read as reached.

    It arises from a threshold of 1 against a value that makes the class certain, or a threshold of 0 against one that
    rules it out: both are classified as positive. (Against finite thresholds it belongs to instances of probability
    zero.)
    """
    distance[np.isnan(distance)] = -np.inf
    return distance
