"""The log-odds engine: a naive Bayes instance matters only through the sum of its features' weights.

With ``w_i(v) = log P(v | c) - log P(v | not c)`` an instance is classified as positive iff its prior log-odds plus
the sum of its weights reach ``logit(T)``. So all that the agreement of a subset S with the rest R needs is the
distribution, under each class, of two independent sums of independent weights. One of them is written out instance
by instance; of the other, tail probabilities are found by meeting in the middle: it is split in two groups, one
written out, one sorted with its cumulative probabilities. Exact for any subset, at a cost of about the square root of
the number of instances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.thresholds import TIE_TOLERANCE, Instances

MAX_ENTRIES = 2**44
# Instances of the subset that is asked about; their number is bounded by memory.
MAX_INSTANCES = 2**24

_Array = NDArray[np.float64]


class _Sums(NamedTuple):
    """Sums of weights in increasing order, one for each instance of a group, with its probability under each class."""

    weight: _Array
    positive: _Array
    negative: _Array


@dataclass(frozen=True, eq=False)
class LogOddsEngine:
    """Agreement measures of a naive Bayes classifier with more features than a table could hold.

    Parameters
    ----------
    classifier : BayesianClassifier
        At most `MAX_ENTRIES` instances.
    """

    classifier: BayesianClassifier

    def __post_init__(self) -> None:
        entries = math.prod(self.classifier.cardinalities)
        if entries > MAX_ENTRIES:
            raise ValueError(
                f"engine 'log_odds' must have at most 2^{math.log2(MAX_ENTRIES):.0f} instances of the features, got "
                f"2^{math.log2(entries):.1f} for {self.classifier.n_features} features; give the classifier fewer "
                "features, for example those with the highest separation between the classes"
            )

    @property
    def root(self) -> LogOddsMeasure:
        """The measure over all features."""
        return LogOddsMeasure(self, tuple(range(self.classifier.n_features)))

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset (given by position).

        Raises
        ------
        ValueError
            When they are more than `MAX_INSTANCES`.
        """
        entries = math.prod(self.classifier.cardinalities[i] for i in features)
        if entries > MAX_INSTANCES:
            raise ValueError(
                f"features must have at most 2^{math.log2(MAX_INSTANCES):.0f} instances to find their best threshold, "
                f"got 2^{math.log2(entries):.1f} for {len(features)} features; use a smaller budget"
            )
        rest = [i for i in range(self.classifier.n_features) if i not in set(features)]
        prior = self.classifier.prior
        sums = self._enumerate(features, self._offset(), prior[0], prior[1])
        with np.errstate(invalid="ignore"):
            queries = _reached(self._needed() - sums.weight)
        above = self._tails(rest, queries)
        signed = sums.positive * (2.0 * above[0] - 1.0) + sums.negative * (2.0 * above[1] - 1.0)
        return Instances(sums.positive, sums.negative, signed)

    def potential_agreement(self, features: Sequence[int]) -> float:
        """Return the maximum potential agreement of a feature subset (given by position)."""
        rest = [i for i in range(self.classifier.n_features) if i not in set(features)]
        cardinalities = self.classifier.cardinalities
        small = math.prod(cardinalities[i] for i in features) <= math.prod(cardinalities[i] for i in rest)
        if small:
            return 0.5 * (1.0 + float(np.abs(self.instances(features).signed).sum()))
        return self._agreement_at_sign_change(features, rest)

    def _offset(self) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(self.classifier.prior[0]) - np.log(self.classifier.prior[1]))

    def _needed(self) -> float:
        """Return the log-odds from which an instance is positive, lowered by the tolerance for ties."""
        threshold = self.classifier.threshold
        if threshold in (0.0, 1.0):
            return math.inf if threshold else -math.inf
        return math.log(threshold) - math.log1p(-threshold) - TIE_TOLERANCE

    def _enumerate(
        self, features: Sequence[int], offset: float = 0.0, positive: float = 1.0, negative: float = 1.0
    ) -> _Sums:
        """Return the sums of all instances of `features` that have a positive probability under some class."""
        sums = _Sums(np.array([offset]), np.array([positive]), np.array([negative]))
        for feature in features:
            table = self.classifier.tables[feature]
            with np.errstate(divide="ignore", invalid="ignore"):
                added = np.add.outer(np.log(table[0]) - np.log(table[1]), sums.weight).reshape(-1)
            first = np.multiply.outer(table[0], sums.positive).reshape(-1)
            second = np.multiply.outer(table[1], sums.negative).reshape(-1)
            # One sorted run for each value of the feature: a stable sort merges them in linear time.
            order = np.argsort(added, kind="stable")
            order = order[((first > 0) | (second > 0))[order]]
            sums = _Sums(added[order], first[order], second[order])
        return sums

    def _tails(self, group: Sequence[int], queries: _Array) -> tuple[_Array, _Array]:
        """Return P(sum of the group's weights >= query) under each class, one entry for each query."""
        cardinalities = self.classifier.cardinalities
        # Write out as many features as keep (queries x written out) below the size of the sorted rest.
        written, budget = 0, math.prod(cardinalities[i] for i in group)
        size = queries.size
        while written < len(group) and size * cardinalities[group[written]] ** 2 <= budget:
            size *= cardinalities[group[written]]
            budget //= cardinalities[group[written]]
            written += 1
        table = self._enumerate(group[written:])
        positive = np.concatenate([np.cumsum(table.positive[::-1])[::-1], [0.0]])
        negative = np.concatenate([np.cumsum(table.negative[::-1])[::-1], [0.0]])
        other = self._enumerate(group[:written])
        with np.errstate(invalid="ignore"):
            # One row for each instance written out: its queries are sorted, which makes the look-ups local.
            remaining = np.subtract.outer(-other.weight, -queries)
        places = np.searchsorted(table.weight, _reached(remaining).reshape(-1)).reshape(remaining.shape)
        return other.positive @ positive[places], other.negative @ negative[places]

    def _agreement_at_sign_change(self, features: Sequence[int], rest: Sequence[int]) -> float:
        """Return the maximum potential agreement of a subset whose complement is the smaller side.

        By Proposition 3 the sign of d(f') changes once along the log-odds s of f', so it is enough to find that point.
        Below, ``start[j]`` is the s from which the j-th instance of the rest (by decreasing weight) lifts f' over the
        threshold; between two starts ``d(s)`` is proportional to ``exp(s) * a_j + b_j``.
        """
        sums = self._enumerate(rest)
        with np.errstate(invalid="ignore"):
            start = _reached(self._needed() - sums.weight[::-1])
        positive, negative = sums.positive[::-1], sums.negative[::-1]
        a = 2.0 * np.cumsum(positive) - 1.0
        b = 2.0 * np.cumsum(negative) - 1.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            at_start = np.where(a == 0, 0.0, np.exp(start) * a) + b
            favours_positive = np.flatnonzero(at_start >= 0)
            first = int(favours_positive[0]) if favours_positive.size else start.size
            change = start[first] if first < start.size else math.inf
            if first > 0 and a[first - 1] > 0 and b[first - 1] < 0:
                change = min(change, math.log(-b[first - 1]) - math.log(a[first - 1]))
        queries = np.append(start, change) - self._offset()
        tails = self._tails(features, queries)
        prior = self.classifier.prior
        total = 0.0
        for side, probability in ((0, positive), (1, negative)):
            reached, kept = tails[side][:-1], tails[side][-1]
            agree = np.where(start <= change, kept + 1.0 - reached, reached + 1.0 - kept)
            total += float(prior[side] * (probability * agree).sum())
        return total


def _reached(distance: _Array) -> _Array:
    """Return the distance to a threshold, with inf - inf read as reached.

    It arises from a threshold of 1 against a value that makes the class certain, or a threshold of 0 against one that
    rules it out: both are classified as positive. (Against finite thresholds it belongs to instances of probability
    zero.)
    """
    distance[np.isnan(distance)] = -np.inf
    return distance


@dataclass(frozen=True, eq=False)
class LogOddsMeasure:
    """The signed measure of a feature subset, evaluated when asked."""

    engine: LogOddsEngine
    features: tuple[int, ...]

    def without(self, feature: int) -> LogOddsMeasure:
        """Return the measure with one feature removed."""
        return LogOddsMeasure(self.engine, tuple(i for i in self.features if i != feature))

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement of the subset (Definition 4)."""
        return self.engine.potential_agreement(self.features)

    def potential_agreement_without(self, feature: int) -> float:
        """Return the maximum potential agreement after removing one feature."""
        return self.without(feature).potential_agreement()
