"""The dense engine: the signed measure as an array over all instances of the features.

The array has one axis for each feature. Removing a feature sums its axis out, so a search that removes features one by
one does geometrically less work with depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dasum

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.limits import Limits, in_threads, one_by_one
from trimbench.trimming.thresholds import Cut, Instances, agreement_of, best_cut, is_positive

MAX_ENTRIES = 2**26
# BLAS adds up in one stream: blocks keep the rounding error of a long sum that of a short one.
_BLOCK = 2**16
# Entries of a table for which a kernel, and for which threads, take less time than NumPy.
_WORTH_A_KERNEL, _WORTH_A_THREAD = 2**10, 2**17
# Entries that are summed between two looks at the clock (some 20 ms).
_UNINTERRUPTED = 2**24


@dataclass(frozen=True, eq=False)
class DenseMeasure:
    """d(f') over all instances of a feature subset, and for networks their probabilities.

    Attributes
    ----------
    features : tuple of int
        Which features of the classifier are left, outermost axis first.
    shape : tuple of int
        Their cardinalities.
    values : ndarray of shape (n_channels, prod(shape))
        First the signed measure. A network that is not naive Bayes has two channels more: Pr(c, f') and Pr(not c, f').
    scratch : ndarray
        Room for any measure below this one. Only what is read immediately is written there: new memory for each
        evaluation would cost more than the sums.
    compiled : bool
        Whether large tables are summed by compiled kernels.
    """

    features: tuple[int, ...]
    shape: tuple[int, ...]
    values: NDArray[np.float64]
    scratch: NDArray[np.float64]
    compiled: bool = False

    def without(self, *features: int) -> DenseMeasure:
        """Return the measure with some features removed."""
        measure = self
        for feature in features:
            measure = measure._without_one(feature)
        return measure

    def _without_one(self, feature: int) -> DenseMeasure:
        axis = self.features.index(feature)
        size = self.values.shape[1] // self.shape[axis]
        values = np.empty((len(self.values), size))
        for channel, out in zip(self.values, values, strict=True):
            self._sum_out(channel, axis, out)
        return replace(
            self,
            features=self.features[:axis] + self.features[axis + 1 :],
            shape=self.shape[:axis] + self.shape[axis + 1 :],
            values=values,
        )

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement of the subset, (1 + |d|_1) / 2 (Definition 4)."""
        return agreement_of(_l1_norm(self.values[0]))

    def potential_agreements_without(
        self, groups: Sequence[tuple[int, ...]], limits: Limits, level: float | None = None
    ) -> list[float]:
        """Return the maximum potential agreement after removing each group, as long as there is time."""
        if self.compiled and self.values.shape[1] >= _WORTH_A_KERNEL and all(len(group) == 1 for group in groups):
            return self._all_at_once([group[0] for group in groups], limits)
        return one_by_one(self._potential_agreement_without, groups, limits)

    def _potential_agreement_without(self, group: tuple[int, ...]) -> float:
        if len(group) > 1:
            return self.without(*group).potential_agreement()
        axis = self.features.index(group[0])
        out = self.scratch[: self.values.shape[1] // self.shape[axis]]
        self._sum_out(self.values[0], axis, out)
        return agreement_of(_l1_norm(out))

    def _all_at_once(self, features: Sequence[int], limits: Limits) -> list[float]:
        from trimbench.trimming.kernels.axis_norms import axis_norms

        shape = np.array(self.shape, dtype=np.int64)
        axes = np.array([self.features.index(feature) for feature in features], dtype=np.int64)
        # Between two looks at the clock, about so many axes of the table; and as many for each thread.
        size = max(limits.n_jobs, _UNINTERRUPTED // self.values.shape[1])
        found: list[float] = []
        while not found or (len(found) < len(axes) and limits.in_time()):
            batch = axes[len(found) : len(found) + size]
            norms = np.empty(len(batch))

            def evaluate(part: slice, batch: NDArray[np.int64] = batch, norms: NDArray[np.float64] = norms) -> None:
                axis_norms(self.values[0], shape, batch[part], norms[part])

            in_threads(evaluate, len(batch), limits.n_jobs, worth_it=self.values.shape[1] >= _WORTH_A_THREAD)
            found += [agreement_of(norm) for norm in norms.tolist()]
        return found

    def _sum_out(self, channel: NDArray[np.float64], axis: int, out: NDArray[np.float64]) -> None:
        outer, cardinality = math.prod(self.shape[:axis]), self.shape[axis]
        table, total = channel.reshape(outer, cardinality, -1), out.reshape(outer, -1)
        # Adding slices is several times faster than a reduction over a short axis.
        if cardinality == 1:
            total[:] = table[:, 0]
        else:
            np.add(table[:, 0], table[:, 1], out=total)
        for value in range(2, cardinality):
            total += table[:, value]


def _l1_norm(values: NDArray[np.float64]) -> float:
    return float(sum(dasum(values[start : start + _BLOCK]) for start in range(0, values.size, _BLOCK)))


@dataclass(frozen=True, eq=False)
class DenseEngine:
    """Agreement measures of a classifier from the table of all instances.

    Attributes
    ----------
    classifier : BayesianClassifier
        At most `MAX_ENTRIES` instances.
    root : DenseMeasure
        The measure over all features.
    """

    classifier: BayesianClassifier
    root: DenseMeasure

    @classmethod
    def build(cls, classifier: BayesianClassifier, *, compiled: bool = False) -> DenseEngine:
        """Make the table; searches use compiled kernels where asked to.

        Raises ValueError if it would have more than `MAX_ENTRIES` entries, or cannot be computed from the network.
        """
        entries = math.prod(classifier.cardinalities)
        if entries > MAX_ENTRIES:
            raise ValueError(
                f"engine 'dense' must have at most 2^{math.log2(MAX_ENTRIES):.0f} instances of the features, got "
                f"2^{math.log2(entries):.1f} for {classifier.n_features} features ({entries * 8 / 2**30:.1f} GiB); "
                f"use engine={'log_odds' if classifier.is_naive_bayes else 'auto'!r}, or give the classifier fewer "
                "features"
            )
        order = tuple(range(classifier.n_features))
        if classifier.is_naive_bayes:
            # Weak features outermost: they are removed most often, and summing out an outer axis adds long runs.
            order = tuple(sorted(order, key=lambda i: separation(classifier.tables[i])))
        shape = tuple(classifier.cardinalities[i] for i in order)
        positive, negative = classifier.joint(order)
        signed = _signed(positive, negative, classifier.threshold)
        channels = signed[None] if classifier.is_naive_bayes else np.stack([signed, positive, negative])
        return cls(classifier, DenseMeasure(order, shape, channels, np.empty(entries), compiled))

    def with_threshold(self, threshold: float) -> DenseEngine:
        """Return the engine of the same classifier with another threshold; a network is not contracted again."""
        classifier = self.classifier.with_threshold(threshold)
        if classifier.is_naive_bayes:
            return DenseEngine.build(classifier, compiled=self.root.compiled)
        _, positive, negative = self.root.values
        channels = np.stack([_signed(positive, negative, threshold), positive, negative])
        return DenseEngine(classifier, replace(self.root, values=channels))

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset (given by position)."""
        measure = self.root
        for feature in set(self.root.features) - set(features):
            measure = measure.without(feature)
        if self.classifier.is_naive_bayes:
            positive, negative = self.classifier.joint(measure.features)
        else:
            positive, negative = measure.values[1], measure.values[2]
        return Instances(positive, negative, measure.values[0])

    def agreement(self, features: Sequence[int], threshold: float) -> float:
        """Return the expected classification agreement of a feature subset with a threshold."""
        return self.instances(features).agreement(threshold)

    def best_cut(self, features: Sequence[int]) -> Cut:
        """Return the threshold interval of a feature subset with the highest agreement."""
        return best_cut(self.instances(features), self.classifier.threshold)


def _signed(positive: NDArray[np.float64], negative: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    mass = positive + negative
    return np.where(is_positive(positive, negative, threshold), mass, -mass)


def separation(table: NDArray[np.float64]) -> float:
    """Return the total variation distance between the two rows of a likelihood table."""
    return 0.5 * float(np.abs(table[0] - table[1]).sum())
