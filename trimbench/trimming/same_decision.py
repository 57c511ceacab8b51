"""Feature selection by expected same-decision probability: the threshold stays, every subset is tried.

The baseline FS-SDD of the trimming paper's Table 6 (Choi, Darwiche and Van den Broeck, 2017). All subsets within the
budget share the work: features are decided one after the other, and a table in which the undecided features are still
open serves all subsets that agree on the decided ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.budget import checked_budget, checked_costs, highest_cost
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.dense import DenseEngine
from trimbench.trimming.search import AGREEMENT_TOLERANCE
from trimbench.trimming.thresholds import is_positive

# A level of the lattice with more entries than this is split and finished part by part.
_MAX_LEVEL_ENTRIES = 2**24


@dataclass(frozen=True)
class SameDecisionSelection:
    """The subset that FS-SDD selects.

    Attributes
    ----------
    features : tuple of str
        In the order of the classifier. Of several best subsets the smallest, then the first in lexical order of the
        positions of its features.
    agreement : float
        Expected same-decision probability: the expected agreement with the threshold kept (Proposition 4).
    n_evaluations : int
        Number of non-empty subsets within the budget, all of which were evaluated.
    """

    features: tuple[str, ...]
    agreement: float
    n_evaluations: int


@dataclass(frozen=True, eq=False)
class _Batch:
    """Subsets whose kept features have the same cardinalities, position by position.

    Attributes
    ----------
    kept : ndarray of int, shape (n_subsets, n_kept)
        Kept features, in the order they were decided.
    shape : tuple of int
        Their cardinalities.
    costs : ndarray of shape (n_subsets,)
    values : ndarray of shape (n_subsets, prod(shape), n_undecided_instances)
        The signed measure.
    """

    kept: NDArray[np.int64]
    shape: tuple[int, ...]
    costs: NDArray[np.float64]
    values: NDArray[np.float64]

    def rows(self, chosen: NDArray[np.bool_] | slice) -> _Batch:
        """Return the batch of some of the subsets."""
        return _Batch(self.kept[chosen], self.shape, self.costs[chosen], self.values[chosen])


def select_by_same_decision(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | None = None,
) -> SameDecisionSelection:
    """Select the features within a budget that keep the most decisions, at the original threshold.

    Parameters
    ----------
    classifier : BayesianClassifier
        Small enough for the dense engine.
    budget : float
        Largest sum of costs, 0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.

    Returns
    -------
    SameDecisionSelection
        Without features where none is affordable.

    Raises
    ------
    ValueError
        When an argument is out of range or there are too many features for the dense engine.
    """
    price = checked_costs(classifier, costs)
    limit = highest_cost(checked_budget(budget))
    root = DenseEngine.build(classifier).root
    start = _Batch(np.empty((1, 0), dtype=np.int64), (), np.zeros(1), root.values.reshape(1, 1, -1))
    n_evaluations, highest = 0, 0.0
    leaders: list[tuple[float, tuple[int, ...]]] = []
    for batch in _lattice([start], root.features, root.shape, price, limit):
        n_evaluations += len(batch.kept) if batch.shape else 0
        agreements = _same_decision(classifier, batch)
        highest = max(highest, float(np.max(agreements)))
        for row in np.flatnonzero(agreements >= highest - AGREEMENT_TOLERANCE):
            leaders.append((float(agreements[row]), tuple(sorted(batch.kept[row].tolist()))))
    best = min((kept for value, kept in leaders if value >= highest - AGREEMENT_TOLERANCE), key=_smallest_first)
    return SameDecisionSelection(tuple(classifier.features[i] for i in best), highest, n_evaluations)


def _smallest_first(kept: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return len(kept), kept


def _lattice(
    batches: list[_Batch],
    undecided: Sequence[int],
    shape: Sequence[int],
    costs: Sequence[float],
    limit: float,
) -> Iterator[_Batch]:
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


def _parts(batches: list[_Batch]) -> Iterator[_Batch]:
    """Yield the batches one by one; a single one is cut in two."""
    if len(batches) > 1:
        yield from batches
    else:
        middle = len(batches[0].kept) // 2
        yield batches[0].rows(slice(None, middle))
        yield batches[0].rows(slice(middle, None))


def _decide(batches: list[_Batch], feature: int, cardinality: int, cost: float, limit: float) -> list[_Batch]:
    """Return the batches in which one more feature is either summed out or kept."""
    grown: dict[tuple[int, ...], list[_Batch]] = {}
    for batch in batches:
        n_subsets, n_instances, _ = batch.values.shape
        table = batch.values.reshape(n_subsets, n_instances, cardinality, -1)
        removed = table[:, :, 0].copy()
        for value in range(1, cardinality):
            removed += table[:, :, value]
        grown.setdefault(batch.shape, []).append(_Batch(batch.kept, batch.shape, batch.costs, removed))
        fitting = batch.rows(batch.costs + cost <= limit)
        n_fitting = len(fitting.kept)
        if n_fitting:
            shape = (*batch.shape, cardinality)
            kept = np.column_stack([fitting.kept, np.full(n_fitting, feature)])
            values = fitting.values.reshape(n_fitting, n_instances * cardinality, -1)
            grown.setdefault(shape, []).append(_Batch(kept, shape, fitting.costs + cost, values))
    return [_concatenate(group) for group in grown.values()]


def _concatenate(group: list[_Batch]) -> _Batch:
    if len(group) == 1:
        return group[0]
    return _Batch(
        np.concatenate([batch.kept for batch in group]),
        group[0].shape,
        np.concatenate([batch.costs for batch in group]),
        np.concatenate([batch.values for batch in group]),
    )


def _same_decision(classifier: BayesianClassifier, batch: _Batch) -> NDArray[np.float64]:
    """Return the expected same-decision probability of each subset of a finished batch."""
    n_subsets = len(batch.kept)
    joint = [np.full((n_subsets, 1), classifier.prior[side]) for side in (0, 1)]
    for place, cardinality in enumerate(batch.shape):
        # Padding is never read: all features at this place have the same cardinality.
        tables = np.zeros((classifier.n_features, 2, cardinality))
        for feature in np.unique(batch.kept[:, place]):
            tables[feature] = classifier.tables[feature]
        for side in (0, 1):
            factor = tables[batch.kept[:, place], side]
            joint[side] = (joint[side][:, :, None] * factor[:, None, :]).reshape(n_subsets, -1)
    signed = batch.values[:, :, 0]
    positive = is_positive(joint[0], joint[1], classifier.threshold)
    return np.asarray(0.5 * (1.0 + np.where(positive, signed, -signed).sum(axis=1)))
