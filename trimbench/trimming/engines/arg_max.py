"""The measures d_k(f') of a classifier of several classes, as arrays over all instances of its features.

Let ``d_k(f')`` be the probability of an instance f' together with the original classifier giving class k. With
``k(f')`` the most probable class given f',

- the agreement of the subset is ``sum_f' d_k(f')(f')``,
- its maximum potential agreement is ``sum_f' max_k d_k(f')``.

The second bounds the first, and the agreement of every smaller subset too: a maximum of sums is at most the sum of the
maxima, so that the second only falls when a feature is removed. With two classes it is Definition 4 of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.arg_max import ArgMaxClassifier, most_probable
from trimbench.trimming.engines.dense import MAX_ENTRIES

# Instances that are compared at a time, so that a temporary table stays in the cache of the processor.
_BLOCK = 2**14


@dataclass(frozen=True, eq=False)
class ClassMeasures:
    """d_k(f') over all instances of a feature subset.

    Attributes
    ----------
    classifier : ArgMaxClassifier
    features : tuple of int
        Which of its features are left, outermost axis first.
    shape : tuple of int
        Their cardinalities.
    values : ndarray of shape (n_channels, prod(shape))
        d_k of each class. A network that is not naive Bayes has as many channels more: Pr(k, f') of each class.
    """

    classifier: ArgMaxClassifier
    features: tuple[int, ...]
    shape: tuple[int, ...]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, classifier: ArgMaxClassifier, features: Iterable[int] | None = None) -> ClassMeasures:
        """Make the table of some features, by default all.

        The original classifier uses all of its features, so the table is made for all and summed out.

        Raises ValueError if the table of all features would have more than `MAX_ENTRIES` entries.
        """
        entries = n_entries(classifier)
        if entries > MAX_ENTRIES:
            raise ValueError(
                f"classifier must have at most 2^{math.log2(MAX_ENTRIES):.0f} combinations of class and feature values "
                f"for an exact trimming, got 2^{math.log2(entries):.1f} ({classifier.n_classes} classes, "
                f"{classifier.n_features} features); pass rows= to search on a table of rows, or give the classifier "
                "fewer features"
            )
        order = tuple(range(classifier.n_features))
        joint = classifier.joint(order)
        decided = np.zeros_like(joint)
        np.put_along_axis(decided, most_probable(joint)[None], joint.sum(axis=0)[None], axis=0)
        channels = decided if classifier.is_naive_bayes else np.concatenate([decided, joint])
        whole = cls(classifier, order, classifier.cardinalities, channels)
        return whole if features is None else whole.without(set(order) - set(features))

    def without(self, removed: Iterable[int]) -> ClassMeasures:
        """Return the measures with some features removed."""
        features, shape, values = list(self.features), list(self.shape), self.values
        for feature in removed:
            axis = features.index(feature)
            values = _without_axis(values, shape, axis)
            del features[axis], shape[axis]
        return ClassMeasures(self.classifier, tuple(features), tuple(shape), values)

    def potential_agreement(self) -> float:
        """Return the bound on the agreement of this subset and of all smaller ones."""
        return _sum_of_maxima(self.values[: self.classifier.n_classes])

    def potential_agreement_without(self, removed: Iterable[int]) -> float:
        """Return the potential agreement after removing some features."""
        only_classes = self.values[: self.classifier.n_classes]
        return ClassMeasures(self.classifier, self.features, self.shape, only_classes).without(removed)._potential

    @property
    def _potential(self) -> float:
        return _sum_of_maxima(self.values)

    def agreement(self) -> float:
        """Return the probability that the most probable class given the subset is the one given all features."""
        n_classes = self.classifier.n_classes
        joint = self.classifier.joint(self.features) if self.classifier.is_naive_bayes else self.values[n_classes:]
        chosen = np.take_along_axis(self.values[:n_classes], most_probable(joint)[None], axis=0)
        return min(1.0, float(chosen.sum()))


def n_entries(classifier: ArgMaxClassifier) -> int:
    """Return the number of combinations of class and feature values."""
    return math.prod(classifier.cardinalities) * classifier.n_classes


def _without_axis(values: NDArray[np.float64], shape: list[int], axis: int) -> NDArray[np.float64]:
    table = values.reshape(len(values), math.prod(shape[:axis]), shape[axis], -1)
    # Adding slices is several times faster than a reduction over a short axis.
    total = table[:, :, 0].copy() if shape[axis] == 1 else table[:, :, 0] + table[:, :, 1]
    for value in range(2, shape[axis]):
        total += table[:, :, value]
    return total.reshape(len(values), -1)


def _sum_of_maxima(values: NDArray[np.float64]) -> float:
    starts = range(0, values.shape[1], _BLOCK)
    return min(1.0, math.fsum(float(values[:, start : start + _BLOCK].max(axis=0).sum()) for start in starts))
