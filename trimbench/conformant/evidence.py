"""What rows say about models that share a coding: their statistics, and their scores under each component."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.coding import Coding
from trimbench.conformant.covariance import Conditionals, Normals
from trimbench.conformant.layout import Block, FeatureLayout, blocks

# Rows of a block whose matrices are large.
_FEWEST_ROWS = 8
# NumPy takes a turn for each sum of a short axis: where there are many of them, whole slices are added.
_FEW_TERMS, _MANY_TERMS = 7, 1024


@dataclass(frozen=True, eq=False)
class Evidence:
    """The sufficient statistics of rows for one coding of the columns.

    ``log P(observed features) = logsumexp of the scores of the classes + t . statistics - A(t) + base`` for every model
    with parameters t.
    """

    layout: FeatureLayout
    coding: Coding
    _real: list[int] = field(init=False)
    _always: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        known = {*self.coding.free.tolist(), *self.coding.unseen.tolist(), *self.coding.joint_columns}
        always = [column for column in self.layout.binary.tolist() if column not in known]
        real = self.layout.first_columns[list(self.coding.real)].tolist()
        object.__setattr__(self, "_real", [*real, *self.coding.joint_columns])
        object.__setattr__(self, "_always", np.array(always, dtype=np.intp))

    @property
    def features(self) -> NDArray[np.intp]:
        """Position in the layout of each feature with parameters, in their order."""
        return np.array([*self.coding.discrete, *self.coding.real], dtype=np.intp)

    def statistics(self, block: Block) -> Matrix:
        """Return the statistic of each parameter, shape (n_rows, n_parameters); 0 where the feature is missing."""
        coding = self.coding
        n_free = len(coding.free)
        whole = n_free == self.layout.n_columns  # all columns, in order
        discrete = block.values if whole else block.values[:, coding.free]
        if not coding.real:
            return discrete
        values = (block.values[:, self._real] - coding.means) / coding.scales
        values[block.absent[:, list(coding.real)]] = 0.0
        # Columns are side by side, so that each is written at once.
        found = np.empty((len(values), n_free + 2 * len(coding.real)), order="F")
        found[:, :n_free] = discrete
        found[:, n_free::2] = values
        np.multiply(values, values, out=found[:, n_free + 1 :: 2])
        return found

    def joint_values(self, block: Block) -> Matrix:
        """Return the standardised values of the jointly normal features, shape (n_rows, n_joint); 0 where missing."""
        coding = self.coding
        if not coding.joint:
            return np.empty((len(block.values), 0))
        values = (block.values[:, self._real] - coding.means) / coding.scales
        return np.where(block.absent[:, list(coding.joint)], 0.0, values)

    def blocks(self, rows: NDArray[Any], width: int, *, checked: bool = False) -> Iterator[Block]:
        """Yield blocks of rows, as many at a time as the matrices of jointly normal features leave room for."""
        n_joint = len(self.coding.joint)
        wide, least = (max(width, n_joint**2), _FEWEST_ROWS) if n_joint else (width, 128)
        return blocks(rows, self.layout, wide, checked=checked, least=least)

    def base(self, block: Block) -> Vector:
        """Return the part of the log-density without parameters: -inf for a value that has probability 0."""
        coding = self.coding
        total = np.zeros(len(block.values))
        if self._real:
            total -= (~block.absent[:, [*coding.real, *coding.joint]]) @ np.log(coding.scales)
        never = (block.values[:, coding.unseen] > 0).any(axis=1)
        if len(self._always):
            owners = self.layout.feature_of_column[self._always]
            never |= ((block.values[:, self._always] == 0) & ~block.absent[:, owners]).any(axis=1)
        total[never] = -np.inf
        return total


def nearest_values(layout: FeatureLayout, coding: Coding, place: int, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the values of a discrete feature that jointly normal numbers, of shape (..., n_joint), are nearest to.

    That of the largest number, where the number of the reference value is the remainder, 1 minus the others: the
    position of a category's column, or 0 and 1.
    """
    columns = layout.features[place]
    own = [number for number, owner in enumerate(coding.joint) if owner == place]
    chances = np.repeat(1 - numbers[..., own].sum(axis=-1, keepdims=True), max(len(columns), 2), axis=-1)
    of_values = columns if len(columns) > 1 else (-1, *columns)
    chances[..., [of_values.index(coding.joint_columns[number]) for number in own]] = numbers[..., own]
    return np.asarray(chances.argmax(axis=-1))


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """What some rows say that is the same under each component.

    Attributes
    ----------
    block : Block
    statistics : ndarray of shape (n_rows, n_parameters)
    whole : ndarray of shape (n_rows, n_classes)
        Scores of the classifier, with zeros for what is missing.
    gaps, complete : ndarray of int
        Rows with and without missing features.
    absent : ndarray of shape (n_gaps, n_features)
        1 where a feature of these rows is missing.
    values : ndarray of shape (n_rows, n_joint)
        The features that are jointly normal, standardised; 0 where they are missing.
    """

    block: Block
    statistics: Matrix
    whole: Matrix
    gaps: NDArray[np.intp]
    complete: NDArray[np.intp]
    absent: Matrix
    values: Matrix
    hidden: NDArray[np.bool_]

    @classmethod
    def of(cls, evidence: Evidence, block: Block, weights: Matrix, biases: Vector) -> ObservedRows:
        """Return what the rows of a block say."""
        has_gaps = block.absent.any(axis=1)
        gaps = np.flatnonzero(has_gaps)
        return cls(
            block,
            evidence.statistics(block),
            block.values @ weights + biases,
            gaps,
            np.flatnonzero(~has_gaps),
            block.absent[gaps].astype(np.float64),
            evidence.joint_values(block),
            block.absent[gaps][:, list(evidence.coding.joint)],
        )

    @cached_property
    def evidence_of_whole(self) -> Vector:
        """Log-sum-exp of the scores of the classes, shape (n_rows,)."""
        return logsumexp(self.whole)


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """The scores of some rows under each component of a mixture.

    Attributes
    ----------
    observed : ObservedRows
    levels : ndarray of shape (n_rows, n_components)
        What a component adds to the score of each class.
    of_absent : ndarray of shape (n_gaps, n_components, n_classes)
        What the missing features of rows with gaps add to the score of each class in each component.
    conditionals : Conditionals, optional
        The distributions of missing features that are jointly normal.
    """

    observed: ObservedRows
    levels: Matrix
    of_absent: NDArray[np.float64]
    conditionals: Conditionals | None = None

    @cached_property
    def of_gaps(self) -> NDArray[np.float64]:
        """Scores of the classes of rows with gaps, without the level, shape (n_gaps, n_components, n_classes)."""
        scores: NDArray[np.float64] = self.of_absent + self.observed.whole[self.observed.gaps][:, None]
        return scores

    @cached_property
    def evidence_of_gaps(self) -> Matrix:
        """Log-sum-exp of the scores of the classes of rows with missing features, shape (n_gaps, n_components)."""
        return logsumexp(self.of_gaps, axis=2)

    @cached_property
    def posterior(self) -> Posterior:
        """What the rows say about components and classes."""
        observed, of_gaps = self.observed, self.of_gaps + self.levels[self.observed.gaps][:, :, None]
        likely, shares = np.empty(len(self.levels)), np.empty(self.levels.shape)
        of_complete = self.levels[observed.complete]
        likely[observed.complete], shares[observed.complete] = softmax(of_complete)
        likely[observed.complete] += observed.evidence_of_whole[observed.complete]
        n_gaps, n_components, n_classes = of_gaps.shape
        likely[observed.gaps], of_classes = softmax(of_gaps.reshape(n_gaps, n_components * n_classes))
        by_class = of_classes.reshape(of_gaps.shape)
        shares[observed.gaps] = by_class @ np.ones(n_classes)
        return Posterior(likely, shares, by_class)

    @property
    def joint(self) -> Matrix:
        """Log P(component, observed features), shape (n_rows, n_components), up to `Evidence.base`."""
        joint = self.levels + self.observed.evidence_of_whole[:, None]
        joint[self.observed.gaps] = self.levels[self.observed.gaps] + self.evidence_of_gaps
        return joint


class Posterior(NamedTuple):
    """What some rows say.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_rows,)
        Log P(observed features), up to `Evidence.base`.
    shares : ndarray of shape (n_rows, n_components)
        P(component | observed features).
    of_classes : ndarray of shape (n_gaps, n_components, n_classes)
        P(component, class | observed features) of rows with missing features.
    """

    log_likelihood: Vector
    shares: Matrix
    of_classes: NDArray[np.float64]


def component_scores(
    observed: ObservedRows,
    parameters: Matrix,
    levels: Vector,
    missing: Matrix,
    normals: Normals | None,
    *,
    only_gaps: bool = False,
) -> ComponentScores:
    """Return the scores of some rows under each component of a mixture.

    Parameters
    ----------
    observed : ObservedRows
    parameters : ndarray of shape (n_parameters, n_components)
    levels : ndarray of shape (n_components,)
    missing : ndarray of shape (n_features, n_components * n_classes)
        What each feature adds to the scores while it is missing.
    normals : Normals or None
    only_gaps : bool
        Whether neither the levels of complete rows nor the distributions of missing features are needed.
    """
    of_rows = observed.statistics @ parameters + levels
    n_gaps, n_components = len(observed.gaps), len(levels)
    of_absent = (observed.absent @ missing).reshape(n_gaps, n_components, observed.whole.shape[1])
    if normals is None:
        return ComponentScores(observed, of_rows, of_absent)
    if only_gaps and n_gaps:
        density, of_joint = normals.gap_scores(observed.values[observed.gaps], observed.hidden)
        of_rows[observed.gaps] += density
        return ComponentScores(observed, of_rows, of_absent + of_joint)
    if not only_gaps:
        of_rows[observed.complete] += normals.log_density(observed.values[observed.complete])
    if not n_gaps:
        return ComponentScores(observed, of_rows, of_absent)
    conditionals = normals.given(observed.values[observed.gaps], observed.hidden)
    of_rows[observed.gaps] += conditionals.log_density
    return ComponentScores(observed, of_rows, of_absent + conditionals.scores, conditionals)


def logsumexp(scores: NDArray[np.float64], axis: int = 1) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exponentials along an axis."""
    n_terms = scores.shape[axis]
    if 1 < n_terms <= _FEW_TERMS and scores.size >= _MANY_TERMS:
        first, *others = np.moveaxis(scores, axis, 0)
        highest = functools.reduce(np.maximum, others, first)
        total: NDArray[np.float64] = sum((np.exp(one - highest) for one in others), np.exp(first - highest))
        return np.asarray(highest + np.log(total))
    top = scores.max(axis=axis, keepdims=True)
    shifted = scores - top
    result: NDArray[np.float64] = top.squeeze(axis) + np.log(np.exp(shifted, out=shifted).sum(axis=axis))
    return result


def softmax(scores: Matrix) -> tuple[Vector, Matrix]:
    """Return the logarithm of the sum of exponentials of each row, and the share of each of them."""
    top = scores.max(axis=1, keepdims=True)
    shares = np.exp(scores - top)
    total = shares.sum(axis=1)
    shares /= total[:, None]
    return top[:, 0] + np.log(total), shares
