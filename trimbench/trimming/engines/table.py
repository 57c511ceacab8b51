"""Engines on tables over all instances of the features: of the signed measure, of the classes, of all subsets.

A table has one axis for each feature. Removing a feature sums its axis out, so a search that removes features one by
one does geometrically less work with depth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut, Instances, agreement_of, best_cut, is_positive
from trimbench.trimming.problem import Choice, highest_cost

MAX_ENTRIES = 2**26
# BLAS adds up in one stream: blocks keep the rounding error of a long sum as small as that of a short one.
_BLOCK = 2**16


@dataclass(frozen=True, eq=False)
class Table:
    """Values for each instance of a feature subset, which are summed over the features that are removed.

    Attributes
    ----------
    features : tuple of int
        Positions of the features that are left, outermost axis first.
    shape : tuple of int
        Their cardinalities.
    values : ndarray of shape (n_channels, prod(shape))
    """

    features: tuple[int, ...]
    shape: tuple[int, ...]
    values: NDArray[np.float64]

    def without(self, *features: int) -> Self:
        """Return the table with some features removed."""
        table = self
        for feature in features:
            table = table._without_one(feature)
        return table

    def _without_one(self, feature: int) -> Self:
        axis = self.features.index(feature)
        size = self.values.shape[1] // self.shape[axis]
        values = np.empty((len(self.values), size))
        self._sum_out(self.values, axis, values)
        return replace(
            self,
            features=self.features[:axis] + self.features[axis + 1 :],
            shape=self.shape[:axis] + self.shape[axis + 1 :],
            values=values,
        )

    def _sum_out(self, channels: NDArray[np.float64], axis: int, out: NDArray[np.float64]) -> None:
        """Write one channel, or all of them, summed over an axis."""
        cardinality, inner = self.shape[axis], math.prod(self.shape[axis + 1 :])
        table, total = channels.reshape(-1, cardinality, inner), out.reshape(-1, inner)
        # Adding slices is several times faster than a reduction over a short axis.
        if cardinality == 1:
            total[:] = table[:, 0]
        else:
            np.add(table[:, 0], table[:, 1], out=total)
        for value in range(2, cardinality):
            total += table[:, value]


@dataclass(frozen=True, eq=False)
class DenseMeasure(Table):
    """d(f') over all instances of a feature subset, and for networks the probabilities of these.

    Attributes
    ----------
    values : ndarray of shape (n_channels, prod(shape))
        First the signed measure. A network that is not naive Bayes has two more channels: Pr(c, f') and Pr(not c, f').
    scratch : ndarray
        Room for any measure below this one. Only results that are read at once are written there: new memory for each
        evaluation would cost more than the sums.
    """

    scratch: NDArray[np.float64]

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement of the subset, (1 + |d|_1) / 2 (Definition 4)."""
        return agreement_of(_l1_norm(self.values[0]))

    def potential_agreement_without(self, group: Sequence[int]) -> float:
        """Return the maximum potential agreement after removing some features."""
        if len(group) > 1:
            return self.without(*group).potential_agreement()
        axis = self.features.index(group[0])
        out = self.scratch[: self.values.shape[1] // self.shape[axis]]
        self._sum_out(self.values[0], axis, out)
        return agreement_of(_l1_norm(out))


def _l1_norm(values: NDArray[np.float64]) -> float:
    if values.size < _BLOCK:
        return float(np.abs(values).sum())
    from scipy.linalg.blas import dasum

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
    def build(cls, classifier: BayesianClassifier) -> DenseEngine:
        """Compute the table of a classifier.

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
        return cls(classifier, DenseMeasure(order, shape, channels, np.empty(entries)))

    def with_threshold(self, threshold: float) -> DenseEngine:
        """Return the engine of the same classifier with another threshold; a network is not contracted again."""
        classifier = self.classifier.with_threshold(threshold)
        if classifier.is_naive_bayes:
            return DenseEngine.build(classifier)
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


# The measures d_k(f') of a classifier of several classes, as arrays over all instances of its features.

# Instances that are compared at a time, so that a temporary table stays in the cache of the processor.
_BLOCK_ARG_MAX = 2**14


@dataclass(frozen=True, eq=False)
class ClassMeasures(Table):
    """d_k(f'), the probability of f' together with the original decision k, over all instances of a feature subset.

    Attributes
    ----------
    values : ndarray of shape (n_channels, prod(shape))
        d_k of each class. A network that is not naive Bayes has as many more channels: Pr(k, f') of each class.
    classifier : BayesianClassifier
        For the most probable class.
    """

    classifier: BayesianClassifier

    @classmethod
    def of(cls, classifier: BayesianClassifier, features: Iterable[int] | None = None) -> ClassMeasures:
        """Compute the table of some features, by default all.

        The original decides by all of its features, so the table is computed for all of them and then summed out.

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
        np.put_along_axis(decided, classifier.decided(joint)[None], joint.sum(axis=0)[None], axis=0)
        channels = decided if classifier.is_naive_bayes else np.concatenate([decided, joint])
        whole = cls(order, classifier.cardinalities, channels, classifier)
        return whole if features is None else whole.without(*(set(order) - set(features)))

    def potential_agreement(self) -> float:
        """Return an upper bound on the agreement of this subset and of all subsets of it."""
        return _sum_of_maxima(self.values[: self.classifier.n_classes])

    def potential_agreement_without(self, group: Sequence[int]) -> float:
        """Return the potential agreement after removing some features."""
        only_classes = replace(self, values=self.values[: self.classifier.n_classes])
        return only_classes.without(*group).potential_agreement()

    def agreement(self) -> float:
        """Return the probability that the most probable class given the subset is that given all features."""
        n_classes = self.classifier.n_classes
        joint = self.classifier.joint(self.features) if self.classifier.is_naive_bayes else self.values[n_classes:]
        chosen = np.take_along_axis(self.values[:n_classes], self.classifier.decided(joint)[None], axis=0)
        return min(1.0, float(chosen.sum()))

    def agreement_of(self, features: Iterable[int]) -> float:
        """Return the agreement of some of the features."""
        return self.without(*(set(self.features) - set(features))).agreement()


def n_entries(classifier: BayesianClassifier) -> int:
    """Return the number of combinations of class and feature values."""
    return math.prod(classifier.cardinalities) * classifier.n_classes


def _sum_of_maxima(values: NDArray[np.float64]) -> float:
    starts = range(0, values.shape[1], _BLOCK_ARG_MAX)
    return min(1.0, math.fsum(float(values[:, start : start + _BLOCK_ARG_MAX].max(axis=0).sum()) for start in starts))


# All feature subsets within a budget, with the signed measure of each.

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
        channels = self.values.reshape(len(self.kept), -1, math.prod(self.shape))
        if not classifier.is_naive_bayes:
            return channels[:, 1], channels[:, 2], channels[:, 0]
        positive, negative = _joint_of(classifier.prior, classifier.tables, self.kept, self.shape)
        return positive, negative, channels[:, 0]


def _joint_of(
    prior: NDArray[np.float64], tables: Sequence[NDArray[np.float64]], kept: NDArray[np.int64], shape: Sequence[int]
) -> NDArray[np.float64]:
    """Return Pr(class, instance) of subsets of one shape, shape (n_classes, n_subsets, prod(shape))."""
    joint = np.broadcast_to(prior[:, None, None], (len(prior), len(kept), 1))
    for place, cardinality in enumerate(shape):
        # Padding is never read: all features at this place have the same cardinality.
        padded = np.zeros((len(prior), len(tables), cardinality))
        for feature in np.unique(kept[:, place]):
            padded[:, feature] = tables[feature]
        factor = padded[:, kept[:, place]]
        joint = (joint[:, :, :, None] * factor[:, :, None, :]).reshape(len(prior), len(kept), -1)
    return joint


def subset_batches(root: DenseMeasure, costs: Sequence[float], budget: float) -> Iterator[SubsetBatch]:
    """Yield all subsets within the budget, including the empty one, in batches without undecided features.

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
    batches: list[SubsetBatch], undecided: Sequence[int], shape: Sequence[int], costs: Sequence[float], limit: float
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
    """Yield the batches one by one; a single one is split in two."""
    if len(batches) > 1:
        yield from batches
    else:
        middle = len(batches[0].kept) // 2
        yield batches[0].rows(slice(None, middle))
        yield batches[0].rows(slice(middle, None))


def _decide(
    batches: list[SubsetBatch], feature: int, cardinality: int, cost: float, limit: float, *, first: int = 0
) -> list[SubsetBatch]:
    """Return the batches after deciding one more feature: it is summed out, or kept with its values from `first` on."""
    grown: dict[tuple[int, ...], list[SubsetBatch]] = {}
    for batch in batches:
        n_subsets, n_instances, _ = batch.values.shape
        table = batch.values.reshape(n_subsets, n_instances, cardinality, -1)
        removed = table[:, :, 0].copy()
        for value in range(1, cardinality):
            removed += table[:, :, value]
        grown.setdefault(batch.shape, []).append(SubsetBatch(batch.kept, batch.shape, batch.costs, removed))
        fitting = batch.costs + cost <= limit
        n_fitting = int(fitting.sum())
        if n_fitting:
            shape = (*batch.shape, cardinality)
            kept = np.column_stack([batch.kept[fitting], np.full(n_fitting, feature)])
            values = table[fitting, :, first:].reshape(n_fitting, n_instances * (cardinality - first), -1)
            grown.setdefault(shape, []).append(SubsetBatch(kept, shape, batch.costs[fitting] + cost, values))
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


# All sets of units within a budget, with the agreement of each: the most probable class of a naive Bayes classifier.

# Instances of the table, and of the sets, that are held at a time.
_MOST_INSTANCES = 2**20


def agreements_within(
    classifier: BayesianClassifier, choice: Choice
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Yield all allowed sets of units that have more than one value, and the agreement of each set.

    The measures d_k of a set follow from sums in which some of its units have a value other than their first, and all
    else is summed out: the sum over all values of a unit less these is that of its first value. Units of two values
    need one such sum for each set, so one pass over all instances, a block at a time, serves every set.

    Yields
    ------
    units : ndarray of int, shape (n_sets, n_units)
        Positions of the units; the sets of one batch have units of the same sizes.
    agreements : ndarray of shape (n_sets,)
    """
    sizes = [math.prod(classifier.cardinalities[i] for i in unit) for unit in choice.units]
    axes = [place for place, size in enumerate(sizes) if size > 1]
    tables = [_products([classifier.tables[i] for i in choice.units[at]], classifier.n_classes) for at in axes]
    constant = [choice.costs[place] for place in choice.required_units if sizes[place] == 1]
    start = SubsetBatch(np.empty((1, 0), np.int64), (), np.array([math.fsum(constant)]), np.empty(0))
    batches = _sums_within(classifier, choice, axes, tables, start)
    required = [axis for axis, place in enumerate(axes) if place in choice.required_units]
    known = {}
    for batch in batches:
        codes = _codes(batch.kept)
        order = np.argsort(codes)
        known[batch.shape] = codes[order], batch.values.reshape(len(codes), classifier.n_classes - 1, -1)[order]
    for batch in batches:
        has_required = np.array([np.isin(required, kept).all() for kept in batch.kept]) if required else slice(None)
        kept = batch.kept[has_required]
        step = max(1, _MOST_INSTANCES // math.prod(batch.shape))
        for part in (kept[begin : begin + step] for begin in range(0, len(kept), step)):
            yield np.array(axes, np.int64)[part], _agreements(classifier, tables, part, batch.shape, known)


def _sums_within(
    classifier: BayesianClassifier,
    choice: Choice,
    axes: Sequence[int],
    tables: Sequence[NDArray[np.float64]],
    start: SubsetBatch,
) -> list[SubsetBatch]:
    """Return sums of d_k, for all classes but the last, over instances where no kept unit has its first value."""
    prior, limit = classifier.prior, highest_cost(choice.budget)
    costs = [choice.costs[place] for place in axes]
    half = len(axes) // 2
    outer = prior[:, None] * _products(tables[:half], len(prior))
    forbidden = [classifier.tables[i] for i in choice.forbidden]
    inner = _products([*tables[half:], *forbidden], len(prior))
    step = max(1, _MOST_INSTANCES // outer.shape[1])
    blocks = []
    for begin in range(0, inner.shape[1], step):
        joint = (outer[:, :, None] * inner[:, None, begin : begin + step]).reshape(len(prior), -1)
        decided = classifier.decided(joint)
        measures = np.where(decided == np.arange(len(prior) - 1)[:, None], joint.sum(axis=0), 0.0)
        batches = [replace(start, values=measures.reshape(1, len(measures), -1))]
        for axis in range(half):
            batches = _decide(batches, axis, tables[axis].shape[1], costs[axis], limit, first=1)
        blocks.append(batches)
    batches = [
        replace(parts[0], values=np.concatenate([part.values for part in parts], axis=2))
        for parts in zip(*blocks, strict=True)
    ]
    for axis in range(half, len(axes)):
        batches = _decide(batches, axis, tables[axis].shape[1], costs[axis], limit, first=1)
    return [replace(batch, values=batch.values.sum(axis=2)) for batch in batches]


def _agreements(
    classifier: BayesianClassifier,
    tables: Sequence[NDArray[np.float64]],
    kept: NDArray[np.int64],
    shape: tuple[int, ...],
    known: Mapping[tuple[int, ...], tuple[NDArray[np.int64], NDArray[np.float64]]],
) -> NDArray[np.float64]:
    """Return the agreements of sets of one shape, from the sums of these and of all their subsets."""
    n_sets, n_classes = len(kept), classifier.n_classes
    measures = np.empty((n_sets, n_classes - 1, *shape))
    for has_other in itertools.product((False, True), repeat=len(shape)):
        others = np.flatnonzero(has_other)
        codes, sums = known[tuple(shape[i] for i in others)]
        values = sums[np.searchsorted(codes, _codes(kept[:, others]))]
        where = tuple(slice(1, None) if one else 0 for one in has_other)
        measures[:, :, *where] = values.reshape(n_sets, n_classes - 1, *(shape[i] - 1 for i in others))
    for axis in range(2, measures.ndim):
        values = np.moveaxis(measures, axis, 0)
        values[0] -= values[1:].sum(axis=0)
    measures = measures.reshape(n_sets, n_classes - 1, -1)
    joint = _joint_of(classifier.prior, tables, kept, shape)
    last = joint.sum(axis=0) - measures.sum(axis=1)
    decided = classifier.decided(joint.reshape(n_classes, -1)).reshape(n_sets, 1, -1)
    chosen = np.take_along_axis(np.concatenate([measures, last[:, None]], axis=1), decided, axis=1)
    return np.asarray(np.minimum(1.0, chosen.sum(axis=(1, 2))))


def _products(tables: Sequence[NDArray[np.float64]], n_classes: int) -> NDArray[np.float64]:
    """Return Pr(instance | class) over all instances of some tables, the first outermost."""
    found = np.ones((n_classes, 1))
    for table in tables:
        found = (found[:, :, None] * table[:, None, :]).reshape(n_classes, -1)
    return found


def _codes(kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each set of axes, of which there are at most 26, as a number."""
    return np.asarray(np.left_shift(1, kept).sum(axis=1, dtype=np.int64))
