"""The dense engine: the signed measure as an array over all instances of the features.

The array has one axis for each feature. Removing a feature sums its axis out, so a search that removes features one by
one does geometrically less work with depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dasum

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.thresholds import Instances, agreement_of, is_positive

MAX_ENTRIES = 2**26
# BLAS adds up in one stream: blocks keep the rounding error of a long sum that of a short one.
_BLOCK = 2**16


@dataclass(frozen=True, eq=False)
class DenseMeasure:
    """d(f') over all instances of a feature subset, axes in the order of `features`.

    Attributes
    ----------
    features : tuple of int
        Which features of the classifier are left, outermost axis first.
    shape : tuple of int
        Their cardinalities.
    values : ndarray of shape (prod(shape),)
    scratch : ndarray
        Room for any measure below this one. Only what is read at once is written there: fresh memory for each
        evaluation would cost more than the sums.
    """

    features: tuple[int, ...]
    shape: tuple[int, ...]
    values: NDArray[np.float64]
    scratch: NDArray[np.float64]

    def _split(self, feature: int) -> tuple[int, NDArray[np.float64]]:
        axis = self.features.index(feature)
        outer, cardinality = math.prod(self.shape[:axis]), self.shape[axis]
        return axis, self.values.reshape(outer, cardinality, -1)

    def _sum_out(self, feature: int, out: NDArray[np.float64]) -> NDArray[np.float64]:
        _, table = self._split(feature)
        total = out[: table.size // table.shape[1]].reshape(len(table), -1)
        # Adding slices is several times faster than a reduction over a short axis.
        if table.shape[1] == 1:
            total[:] = table[:, 0]
        else:
            np.add(table[:, 0], table[:, 1], out=total)
        for value in range(2, table.shape[1]):
            total += table[:, value]
        return total.reshape(-1)

    def without(self, feature: int) -> DenseMeasure:
        """Return the measure with one feature removed."""
        axis, _ = self._split(feature)
        return DenseMeasure(
            self.features[:axis] + self.features[axis + 1 :],
            self.shape[:axis] + self.shape[axis + 1 :],
            self._sum_out(feature, np.empty(self.values.size // self.shape[axis])),
            self.scratch,
        )

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement of the subset, (1 + |d|_1) / 2 (Definition 4)."""
        return agreement_of(_l1_norm(self.values))

    def potential_agreement_without(self, feature: int) -> float:
        """Return the maximum potential agreement after removing one feature."""
        return agreement_of(_l1_norm(self._sum_out(feature, self.scratch)))


def _l1_norm(values: NDArray[np.float64]) -> float:
    return float(sum(dasum(values[start : start + _BLOCK]) for start in range(0, values.size, _BLOCK)))


@dataclass(frozen=True, eq=False)
class DenseEngine:
    """Agreement measures of a naive Bayes classifier from the table of all instances.

    Parameters
    ----------
    classifier : BayesianClassifier
        At most `MAX_ENTRIES` instances.
    root : DenseMeasure
        The measure over all features.
    """

    classifier: BayesianClassifier
    root: DenseMeasure

    @classmethod
    def build(cls, classifier: BayesianClassifier) -> DenseEngine:
        """Make the table.

        Raises
        ------
        ValueError
            When it would have more than `MAX_ENTRIES` entries.
        """
        entries = math.prod(classifier.cardinalities)
        if entries > MAX_ENTRIES:
            raise ValueError(
                f"engine 'dense' must have at most 2^{math.log2(MAX_ENTRIES):.0f} instances of the features, got "
                f"2^{math.log2(entries):.1f} for {classifier.n_features} features ({entries * 8 / 2**30:.1f} GiB); "
                "use engine='log_odds' (or 'auto'), or give the classifier fewer features"
            )
        # Weak features outermost: they are removed most often, and summing out an outer axis adds long runs.
        order = tuple(sorted(range(classifier.n_features), key=lambda i: separation(classifier.tables[i])))
        positive, negative = joint(classifier, order)
        mass = positive + negative
        signed = np.where(is_positive(positive, negative, classifier.threshold), mass, -mass)
        shape = tuple(classifier.cardinalities[i] for i in order)
        return cls(classifier, DenseMeasure(order, shape, signed, np.empty(entries)))

    def instances(self, features: Sequence[int]) -> Instances:
        """Return the instances of a feature subset (given by position)."""
        measure = self.root
        for feature in set(self.root.features) - set(features):
            measure = measure.without(feature)
        positive, negative = joint(self.classifier, measure.features)
        return Instances(positive, negative, measure.values)


def separation(table: NDArray[np.float64]) -> float:
    """Return the total variation distance between the two rows of a likelihood table."""
    return 0.5 * float(np.abs(table[0] - table[1]).sum())


def joint(classifier: BayesianClassifier, features: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr(c, f') and Pr(not c, f') over all instances of a feature subset, the first feature outermost."""
    half = len(features) // 2

    def outer(side: int, part: Sequence[int]) -> NDArray[np.float64]:
        rows = (classifier.tables[i][side] for i in part)
        start: NDArray[np.float64] = np.ones(1)
        return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), rows, start)

    def both(side: int) -> NDArray[np.float64]:
        # Two halves first: one pass over the full table instead of one for each feature.
        left = classifier.prior[side] * outer(side, features[:half])
        return np.asarray(np.multiply.outer(left, outer(side, features[half:])).reshape(-1))

    return both(0), both(1)
