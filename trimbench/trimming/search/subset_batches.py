"""All feature subsets within a budget, with the signed measure of each.

Features are decided one after the other, and one table over the undecided features serves all subsets that agree on the
decided ones. So all subsets, and all budgets, cost little more than one table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import highest_cost
from trimbench.trimming.engines.dense import DenseMeasure

# A level of the lattice with more entries than this is split and finished part by part.
_MAX_LEVEL_ENTRIES = 2**24


@dataclass(frozen=True, eq=False)
class SubsetBatch:
    """Subsets whose kept features have the same cardinalities, position by position.

    Attributes
    ----------
    kept : ndarray of int, shape (n_subsets, n_kept)
        Kept features, in the order they were decided.
    shape : tuple of int
        Their cardinalities.
    costs : ndarray of shape (n_subsets,)
    values : ndarray of shape (n_subsets, n_channels * prod(shape), n_undecided_instances)
        The channels of the measure, outermost.
    """

    kept: NDArray[np.int64]
    shape: tuple[int, ...]
    costs: NDArray[np.float64]
    values: NDArray[np.float64]

    def rows(self, chosen: NDArray[np.bool_] | slice) -> SubsetBatch:
        """Return the batch of some of the subsets."""
        return SubsetBatch(self.kept[chosen], self.shape, self.costs[chosen], self.values[chosen])

    def instances(
        self, classifier: BayesianClassifier
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return Pr(c, f'), Pr(not c, f') and d(f') of a batch without undecided features.

        Returns
        -------
        positive, negative, signed : ndarrays of shape (n_subsets, prod(shape))
        """
        n_subsets, n_instances = len(self.kept), math.prod(self.shape)
        channels = self.values.reshape(n_subsets, -1, n_instances)
        if not classifier.is_naive_bayes:
            return channels[:, 1], channels[:, 2], channels[:, 0]
        joint = [np.full((n_subsets, 1), classifier.prior[side]) for side in (0, 1)]
        for place, cardinality in enumerate(self.shape):
            # Padding is never read: all features at this place have the same cardinality.
            tables = np.zeros((classifier.n_features, 2, cardinality))
            for feature in np.unique(self.kept[:, place]):
                tables[feature] = classifier.tables[feature]
            for side in (0, 1):
                factor = tables[self.kept[:, place], side]
                joint[side] = (joint[side][:, :, None] * factor[:, None, :]).reshape(n_subsets, -1)
        return joint[0], joint[1], channels[:, 0]


def subset_batches(root: DenseMeasure, costs: Sequence[float], budget: float) -> Iterator[SubsetBatch]:
    """Yield all subsets within the budget, the empty one too, in batches without undecided features.

    Parameters
    ----------
    root : DenseMeasure
        Over all features.
    costs : sequence of float
        Cost of each feature.
    """
    n_channels = len(root.values)
    start = SubsetBatch(np.empty((1, 0), dtype=np.int64), (), np.zeros(1), root.values.reshape(1, n_channels, -1))
    yield from _lattice([start], root.features, root.shape, costs, highest_cost(budget))


def _lattice(
    batches: list[SubsetBatch],
    undecided: Sequence[int],
    shape: Sequence[int],
    costs: Sequence[float],
    limit: float,
) -> Iterator[SubsetBatch]:
    """Yield all subsets within the budget, in batches whose measure has no undecided features left."""
    while undecided:
        entries = sum(batch.values.size for batch in batches)
        if entries > _MAX_LEVEL_ENTRIES and sum(len(batch.kept) for batch in batches) > 1:
            for part in _parts(batches):
                yield from _lattice([part], undecided, shape, costs, limit)
            return
        batches = _decide(batches, undecided[0], shape[0], costs[undecided[0]], limit)
        undecided, shape = undecided[1:], shape[1:]
    yield from batches


def _parts(batches: list[SubsetBatch]) -> Iterator[SubsetBatch]:
    """Yield the batches one by one; a single one is cut in two."""
    if len(batches) > 1:
        yield from batches
    else:
        middle = len(batches[0].kept) // 2
        yield batches[0].rows(slice(None, middle))
        yield batches[0].rows(slice(middle, None))


def _decide(batches: list[SubsetBatch], feature: int, cardinality: int, cost: float, limit: float) -> list[SubsetBatch]:
    """Return the batches in which one more feature is either summed out or kept."""
    grown: dict[tuple[int, ...], list[SubsetBatch]] = {}
    for batch in batches:
        n_subsets, n_instances, _ = batch.values.shape
        table = batch.values.reshape(n_subsets, n_instances, cardinality, -1)
        removed = table[:, :, 0].copy()
        for value in range(1, cardinality):
            removed += table[:, :, value]
        grown.setdefault(batch.shape, []).append(SubsetBatch(batch.kept, batch.shape, batch.costs, removed))
        fitting = batch.rows(batch.costs + cost <= limit)
        n_fitting = len(fitting.kept)
        if n_fitting:
            shape = (*batch.shape, cardinality)
            kept = np.column_stack([fitting.kept, np.full(n_fitting, feature)])
            values = fitting.values.reshape(n_fitting, n_instances * cardinality, -1)
            grown.setdefault(shape, []).append(SubsetBatch(kept, shape, fitting.costs + cost, values))
    return [_concatenate(group) for group in grown.values()]


def _concatenate(group: list[SubsetBatch]) -> SubsetBatch:
    if len(group) == 1:
        return group[0]
    return SubsetBatch(
        np.concatenate([batch.kept for batch in group]),
        group[0].shape,
        np.concatenate([batch.costs for batch in group]),
        np.concatenate([batch.values for batch in group]),
    )
