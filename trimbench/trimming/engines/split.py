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
from trimbench.trimming.thresholds import TIE_TOLERANCE

_CACHE_BYTES = 2**29
_BUCKETS_PER_ENTRY = 2


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


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sorted sums of a group of features, and codes that tell the values of each instance."""

    weight: FloatArray
    positive: FloatArray
    negative: FloatArray


@dataclass(frozen=True, eq=False)
class _State:
    """A table over some features of a half, and how likely it lifts each enumerated instance over the threshold.

    Attributes
    ----------
    table : tuple
        Weights, tails, bounds of the finite weights, buckets and their scale, as the kernels take them.
    left_out : ndarray of shape (n_left_out, 2)
        P(instance | class) of the features of the half that are not in the table.
    reached : ndarray of shape (n_left_out, n_enumerated, 2)
    """

    table: tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64], float]
    left_out: FloatArray
    reached: FloatArray

    @property
    def nbytes(self) -> int:
        return self.reached.nbytes + 6 * self.table[0].nbytes


class _Half:
    """One way to split the features: those that may be tabulated, and those that are enumerated."""

    def __init__(
        self, features: Sequence[_Feature], tabulated: Sequence[int], prior: FloatArray, needed: float
    ) -> None:
        self.tabulated = tuple(tabulated)
        self.enumerated = tuple(i for i in range(len(features)) if i not in set(tabulated))
        self._features = features
        self._needed = needed
        self.cardinalities = np.array([features[i].weights.size for i in self.enumerated], dtype=np.int64)
        width = max(self.cardinalities, default=1)
        self.values = np.zeros((len(self.enumerated), width))
        weight, positive, negative = np.zeros(1), prior[:1], prior[1:]
        for place, i in enumerate(self.enumerated):
            feature = features[i]
            self.values[place, : feature.weights.size] = feature.weights
            with np.errstate(invalid="ignore"):
                weight = np.add.outer(weight, feature.weights).ravel()
            positive = np.multiply.outer(positive, feature.positive).ravel()
            negative = np.multiply.outer(negative, feature.negative).ravel()
        self.mass = np.stack([positive, negative], axis=1)
        self._weight = weight
        self._states: OrderedDict[frozenset[int], _State] = OrderedDict()
        self._bytes = 0

    def work(self, left_out: frozenset[int]) -> int:
        """Return how many instances are enumerated where some tabulated features are left out of the table."""
        return len(self.mass) * math.prod(self._features[i].weights.size for i in left_out)

    def state(self, left_out: frozenset[int]) -> _State:
        """Return the table without some features."""
        found = self._states.pop(left_out, None)
        if found is None:
            found = self._make(left_out)
            self._bytes += found.nbytes
        self._states[left_out] = found
        while self._bytes > _CACHE_BYTES and len(self._states) > 1:
            _, oldest = self._states.popitem(last=False)
            self._bytes -= oldest.nbytes
        return found

    def _make(self, left_out: frozenset[int]) -> _State:
        weight, positive, negative = self.sums([i for i in self.tabulated if i not in left_out])
        first, last = np.searchsorted(weight, [-math.inf, math.inf], side="right")
        last = int(np.searchsorted(weight, math.inf, side="left"))
        tails = np.stack([kernels.tails_of(positive), kernels.tails_of(negative)], axis=1)
        buckets = np.empty(_BUCKETS_PER_ENTRY * weight.size + 2, dtype=np.int64)
        scale = kernels.fill_buckets(weight, int(first), last, buckets)
        bounds = np.array([first, last], dtype=np.int64)
        table = (weight, tails, bounds, buckets, scale)
        out_weight, out_positive, out_negative = self.sums(sorted(left_out))
        reached = np.empty((out_weight.size, len(self.mass), 2))
        kernels.reach(*table, self._needed, self._weight, out_weight, reached)
        return _State(table, np.stack([out_positive, out_negative], axis=1), reached)

    def sums(self, group: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sorted sums of a group of features."""
        weight, positive, negative = np.zeros(1), np.ones(1), np.ones(1)
        for i in group:
            feature = self._features[i]
            weight, positive, negative = kernels.add_feature(
                weight, positive, negative, feature.weights, feature.positive, feature.negative
            )
        return weight, positive, negative

    def gone(self, removed: frozenset[int]) -> NDArray[np.bool_]:
        """Return which of the enumerated features are removed."""
        return np.array([i in removed for i in self.enumerated], dtype=np.bool_)


class SplitSums:
    """Maximum potential agreements of feature subsets of a naive Bayes classifier.

    Parameters
    ----------
    classifier : BayesianClassifier
        Naive Bayes, with a threshold strictly between 0 and 1 and a prior that rules out no class.
    """

    def __init__(self, classifier: BayesianClassifier) -> None:
        prior = classifier.prior
        self._offset = math.log(prior[0]) - math.log(prior[1])
        threshold = classifier.threshold
        self._needed = math.log(threshold) - math.log1p(-threshold) - TIE_TOLERANCE
        self._features = [_Feature.of(table) for table in classifier.tables]
        order = sorted(range(len(self._features)), key=lambda i: -separation(classifier.tables[i]))
        sizes = [self._features[i].weights.size for i in order]
        half = math.prod(sizes) ** 0.5
        n_strong = next(n for n in range(len(order) + 1) if math.prod(sizes[:n]) >= half)
        needed = self._needed - self._offset
        self._strong = _Half(self._features, order[:n_strong], prior, needed)
        self._weak = _Half(self._features, order[n_strong:], prior, needed)

    def potential_agreement(self, kept: frozenset[int], removed: frozenset[int]) -> float:
        """Return the maximum potential agreement of a feature subset."""
        halves = (self._strong, self._weak)
        work, place, keeps = min(
            (half.work(frozenset(half.tabulated) & (removed if keeps else kept)), place, keeps)
            for place, half in enumerate(halves)
            for keeps in (True, False)
        )
        half = halves[place]
        if keeps:
            state = half.state(frozenset(half.tabulated) & removed)
            cut = kernels.sign_change(self._needed, *half.sums(sorted(removed)))
            return 1.0 - kernels.disagreement(
                *state.table,
                cut - self._offset,
                half.values,
                half.cardinalities,
                half.gone(removed),
                half.mass,
                state.left_out,
                state.reached,
            )
        state = half.state(frozenset(half.tabulated) & kept)
        norm = kernels.signed_norm(
            half.values, half.cardinalities, half.gone(removed), half.mass, state.left_out, state.reached
        )
        return 0.5 * (1.0 + norm)
