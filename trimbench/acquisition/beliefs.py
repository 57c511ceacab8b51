"""What is believed of the classes of rows, and how it would change with the answers to questions.

Three kinds of beliefs answer the same calls: `StateBeliefs`, for models in which all features are independent given a
hidden state, and `DrawnBeliefs`, for any classifier with completions of its rows, are here; those of general networks
are in `trimbench.trimming.asking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray, Matrix, Vector

Objective = Literal["information", "stability"]
# Numbers of a block of rows that are computed at once; they stay in the processor's cache.
_BLOCK = 2**16
_TINY = 1e-300
# Cells into which the drawn values of a number are cut, and the most categories that have a cell each.
_CELLS, _MOST_CATEGORIES = 8, 16
# Draws that a cell of a group of features has on average, at least.
_DRAWS_OF_A_CELL = 12


class Beliefs(Protocol):
    """What is believed of some rows: how uncertain it is, now and after the answers to questions."""

    @property
    def most_outcomes(self) -> int:
        """Number of joint answers that are told apart at most."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def uncertainty(self) -> Vector:
        """Return how uncertain each row is, shape (n_rows,): the entropy of its class in nats, or 1 - stability."""

    def expected(self, features: Sequence[int]) -> Matrix:
        """Return the expected uncertainty once a feature is known, for each of several, (n_rows, n_features).

        Means nothing for a feature that is already known.
        """

    def n_outcomes(self, feature: int) -> int:
        """Return how many answers are told apart for a feature."""

    def after(self, members: Sequence[int]) -> tuple[Matrix, Self]:
        """Return the probability of each joint answer, (n_rows, n_outcomes), and the beliefs after it.

        Those of the first row come first. No row may know any of the features.
        """

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the beliefs of some rows."""

    def key(self) -> Matrix:
        """Return numbers that are the same for two rows only if the same is believed of them, (n_rows, n_numbers)."""


def entropy(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy in nats along the last axis."""
    return np.asarray(-_xlogx(chances).sum(axis=-1))


def _xlogx(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    logs = np.maximum(chances, _TINY)
    np.log(logs, out=logs)
    logs *= chances
    return logs


# Models in which the features are independent given a state: naive Bayes, mixtures, conformant models.


@dataclass(frozen=True, eq=False)
class StateModel:
    """Features that are independent given a hidden state, which has a class.

    Attributes
    ----------
    tables : sequence of ndarray of shape (n_values, n_states)
        P(value | state) of each feature; the values of a number are bins.
    class_of : ndarray of int, shape (n_states,)
        The class of each state.
    n_classes : int
    """

    tables: Sequence[Matrix]
    class_of: NDArray[np.intp]
    n_classes: int
    _joint: dict[tuple[int, ...], Matrix] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def states(self) -> list[NDArray[np.intp]]:
        """The states of each class."""
        return [np.flatnonzero(self.class_of == label) for label in range(self.n_classes)]

    @cached_property
    def all_but_last(self) -> tuple[Matrix, NDArray[np.intp]]:
        """P(value | state) of all values but the last of each feature, and where those of each feature start."""
        starts = np.cumsum([0, *(max(len(table) - 1, 1) for table in self.tables)])[:-1]
        # A feature with one value has a second one that never occurs.
        parts = [table[:-1] if len(table) > 1 else table for table in self.tables]
        return np.concatenate(parts) if parts else np.empty((0, len(self.class_of))), starts.astype(np.intp)

    def joint_table(self, members: tuple[int, ...]) -> Matrix:
        """Return P(joint values of some features | state), shape (n_outcomes, n_states), the last changing fastest."""
        if members not in self._joint:
            table = np.ones((1, len(self.class_of)))
            for feature in members:
                table = (table[:, None] * self.tables[feature][None]).reshape(-1, len(self.class_of))
            self._joint[members] = table
        return self._joint[members]


@dataclass(frozen=True, eq=False)
class StateBeliefs:
    """Beliefs of rows under a `StateModel`; they are exact.

    Attributes
    ----------
    model : StateModel
    shares : ndarray of shape (n_rows, n_states)
        P(state | what is known).
    """

    model: StateModel
    shares: Matrix
    most_outcomes: int = 1024

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def classes(self) -> Matrix:
        """P(class | what is known), shape (n_rows, n_classes)."""
        return np.stack([self.shares[:, states].sum(axis=1) for states in self.model.states], axis=1)

    def uncertainty(self) -> Vector:
        """Return the entropy of the class of each row."""
        return entropy(self.classes)

    def n_outcomes(self, feature: int) -> int:
        """Return the number of values of a feature."""
        return len(self.model.tables[feature])

    def expected(self, features: Sequence[int]) -> Matrix:
        """Return the expected entropy of the class once a feature is known, shape (n_rows, n_features)."""
        table, starts = self.model.all_but_last
        wanted = np.asarray(features, dtype=np.intp)
        if len(wanted) < len(starts):
            part = StateModel([self.model.tables[j] for j in wanted], self.model.class_of, self.model.n_classes)  # type: ignore[call-overload, unused-ignore]
            return StateBeliefs(part, self.shares).expected(range(len(wanted)))
        result = np.empty((len(self), len(starts)))
        step = max(_BLOCK // max(len(table), 1), 1)
        of_classes = [np.ascontiguousarray(table[:, states].T) for states in self.model.states]
        for begin in range(0, len(self), step):
            rows = slice(begin, begin + step)
            result[rows] = self._expected(self.shares[rows], of_classes, starts)
        return result[:, wanted]

    def _expected(self, shares: Matrix, of_classes: Sequence[Matrix], starts: NDArray[np.intp]) -> Matrix:
        n_first = of_classes[0].shape[1] if of_classes else 0
        single = n_first == len(starts)

        def per_feature(values: Matrix) -> Matrix:
            return values if single else np.asarray(np.add.reduceat(values, starts, axis=1))

        gained = np.zeros((len(shares), len(starts)))
        total, rest_total = np.zeros((len(shares), n_first)), np.zeros((len(shares), len(starts)))
        for states, table in zip(self.model.states, of_classes, strict=True):
            part = np.ascontiguousarray(shares[:, states])
            joint = part @ table
            rest = np.maximum(part.sum(axis=1)[:, None] - per_feature(joint), 0.0)
            total += joint
            rest_total += rest
            gained += per_feature(_xlogx(joint))
            gained += _xlogx(rest)
        gained -= per_feature(_xlogx(total))
        gained -= _xlogx(rest_total)
        return np.maximum(-gained, 0.0)

    def after(self, members: Sequence[int]) -> tuple[Matrix, StateBeliefs]:
        """Return the probability of each joint answer, and the beliefs after it."""
        table = self.model.joint_table(tuple(members))
        joint = self.shares[:, None, :] * table[None]
        chances = joint.sum(axis=2)
        possible = np.where(chances[:, :, None] > 0, joint, self.shares[:, None, :])
        possible /= possible.sum(axis=2, keepdims=True)
        return chances, StateBeliefs(self.model, possible.reshape(-1, self.shares.shape[1]))

    def take(self, rows: NDArray[np.intp]) -> StateBeliefs:
        """Return the beliefs of some rows."""
        return StateBeliefs(self.model, self.shares[rows])

    def key(self) -> Matrix:
        """Return the shares of the states."""
        return self.shares


# Any classifier, with draws of what is hidden.


# From mean probabilities of the classes, and their shares of the decisions, along the first axis, to the decision.
Decide = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class DrawnAnswers:
    """Completions of rows, and what a classifier says of them.

    Attributes
    ----------
    drawn : ndarray of shape (n_rows, n_draws, n_features)
        Coded values.
    probabilities : ndarray of shape (n_rows, n_draws, n_classes)
    decisions : ndarray of int, shape (n_rows, n_draws)
    """

    drawn: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    decisions: IntegerArray


@dataclass(frozen=True, eq=False)
class DrawnBeliefs:
    """Beliefs of rows from completions of them; a probability of cells is the share of their draws.

    The entropy of a mean of n draws is too small by about half the sum over the classes of variance / (n mean), which
    is added (Miller, 1955; for probabilities in place of classes).

    Attributes
    ----------
    weights : ndarray of shape (n_rows, n_draws)
        0 for a draw that contradicts the answers so far, 1 otherwise.
    cells : ndarray of int, shape (n_drawn_rows, n_draws, n_features)
        The cell of each drawn value.
    probabilities : ndarray of shape (n_drawn_rows, n_draws, n_classes)
        What the classifier says of each completed row.
    decisions : ndarray of int, shape (n_drawn_rows, n_draws)
        The class that it decides on.
    sources : ndarray of int, shape (n_rows,)
        Which of the drawn rows each row is.
    objective : {"information", "stability"}
    decide : callable, optional
        How rows with gaps are decided; by default for the largest mean probability.
    """

    weights: Matrix
    cells: IntegerArray
    probabilities: NDArray[np.float64]
    decisions: IntegerArray
    sources: NDArray[np.intp]
    objective: Objective = "information"
    decide: Decide | None = None

    @classmethod
    def of(
        cls, answers: DrawnAnswers, categorical: NDArray[np.bool_], objective: Objective, decide: Decide | None = None
    ) -> DrawnBeliefs:
        """Return the beliefs for answers to completed rows, of which some features have codes of categories."""
        weights, cells = np.ones(answers.decisions.shape), cells_of(answers.drawn, categorical)
        sources = np.arange(len(weights))
        return cls(weights, cells, answers.probabilities, answers.decisions, sources, objective, decide)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def n_draws(self) -> int:
        """Number of draws of each row."""
        return int(self.weights.shape[1])

    @property
    def most_outcomes(self) -> int:
        """Number of cells that are told apart at most."""
        return max(self.n_draws // _DRAWS_OF_A_CELL, 2)

    def n_outcomes(self, feature: int) -> int:
        """Return the number of cells of a feature."""
        return int(self.cells[:, :, feature].max(initial=0)) + 1

    def uncertainty(self) -> Vector:
        """Return the entropy of the class of each row, or the probability that its decision changes."""
        counts, values = self._sums(np.zeros(self.weights.shape, dtype=np.intp), 1)
        return np.asarray(self._uncertainties(counts, values)[:, 0])

    def expected(self, features: Sequence[int]) -> Matrix:
        """Return the expected uncertainty once a feature is known, shape (n_rows, n_features)."""
        result = np.empty((len(self), len(features)))
        for place, feature in enumerate(features):
            counts, sums = self._sums(self.cells[self.sources, :, feature], self.n_outcomes(feature))
            shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), _TINY)
            result[:, place] = (shares * self._uncertainties(counts, sums)).sum(axis=1)
        return result

    def _sums(self, cells: IntegerArray, n_cells: int) -> tuple[Matrix, Callable[[NDArray[np.float64]], Matrix]]:
        """Return the weight in each cell, (n_rows, n_cells), and a function that adds up values of draws there."""
        places = (np.arange(len(self))[:, None] * n_cells + cells).ravel()
        size = len(self) * n_cells

        def sums(values: NDArray[np.float64]) -> Matrix:
            of_cells = np.bincount(places, (self.weights * values).ravel(), minlength=size)
            return np.asarray(of_cells.reshape(len(self), n_cells))

        return sums(np.ones_like(self.weights)), sums

    def _uncertainties(self, counts: Matrix, sums: Callable[[NDArray[np.float64]], Matrix]) -> Matrix:
        """Return the uncertainty in each cell, shape (n_rows, n_cells)."""
        n_classes = self.probabilities.shape[2]
        filled = np.maximum(counts, _TINY)
        means = [sums(self.probabilities[self.sources, :, label]) / filled for label in range(n_classes)]
        if self.objective == "stability":
            decided = [sums((self.decisions[self.sources] == label).astype(np.float64)) for label in range(n_classes)]
            shares = np.stack(decided) / filled
            chosen = np.argmax(means, axis=0) if self.decide is None else self.decide(np.stack(means), shares)
            return np.asarray(1.0 - np.take_along_axis(shares, chosen[None], axis=0)[0])
        result = entropy(np.stack(means, axis=2))
        for label, mean in enumerate(means):
            squares = sums(self.probabilities[self.sources, :, label] ** 2) / filled
            variances = np.maximum(squares - mean**2, 0.0)
            # One draw shows no variance: it counts like two.
            shown = np.maximum(counts - 1.0, 1.0)
            result += np.where(mean > _TINY, 0.5 * variances / (shown * np.maximum(mean, _TINY)), 0.0)
        return np.asarray(np.minimum(result, math.log(n_classes)))

    def after(self, members: Sequence[int]) -> tuple[Matrix, DrawnBeliefs]:
        """Return the share of draws in each joint cell, and the beliefs after it."""
        sizes = [self.n_outcomes(feature) for feature in members]
        cells = np.zeros(self.weights.shape, dtype=np.intp)
        for feature, size in zip(members, sizes, strict=True):
            cells = cells * size + self.cells[self.sources, :, feature]
        n_cells = math.prod(sizes)
        inside = (cells[:, None, :] == np.arange(n_cells)[None, :, None]) * self.weights[:, None, :]
        counts = inside.sum(axis=2)
        # What never occurs has probability 0, whatever is believed then.
        inside = np.where(counts[:, :, None] > 0, inside, self.weights[:, None, :])
        repeated = DrawnBeliefs(
            inside.reshape(-1, self.n_draws),
            self.cells,
            self.probabilities,
            self.decisions,
            np.repeat(self.sources, n_cells),
            self.objective,
            self.decide,
        )
        return counts / counts.sum(axis=1, keepdims=True), repeated

    def take(self, rows: NDArray[np.intp]) -> DrawnBeliefs:
        """Return the beliefs of some rows."""
        return replace(self, weights=self.weights[rows], sources=self.sources[rows])

    def key(self) -> Matrix:
        """Return the drawn rows with the weights of their draws."""
        return np.column_stack([self.sources, self.weights])


def cells_of(drawn: NDArray[np.float64], categorical: NDArray[np.bool_]) -> IntegerArray:
    """Return the cell of each drawn value: a category or one of few numbers, else one of eight equal shares of them.

    The numbers are those drawn for the same row; equal ones share a cell.

    Parameters
    ----------
    drawn : ndarray of shape (n_rows, n_draws, n_features)
    categorical : ndarray of bool, shape (n_features,)
        Features whose values are codes from 0 on.
    """
    n_draws = drawn.shape[1]
    order = np.argsort(drawn, axis=1, kind="stable")
    ascending = np.take_along_axis(drawn, order, axis=1)
    is_new = np.ones(drawn.shape, dtype=bool)
    is_new[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    distinct = np.cumsum(is_new, axis=1) - 1
    lowest = np.maximum.accumulate(np.where(is_new, np.arange(n_draws)[None, :, None], 0), axis=1)
    few = distinct[:, -1:] < _CELLS
    cells: IntegerArray = np.empty(drawn.shape, dtype=np.int16)
    np.put_along_axis(
        cells, order, np.where(few, distinct, lowest * _CELLS // max(n_draws, 1)).astype(np.int16), axis=1
    )
    for feature in np.flatnonzero(categorical).tolist():
        codes = np.maximum(drawn[:, :, feature], 0.0).astype(np.intp)
        if codes.max(initial=0) < _MOST_CATEGORIES:
            cells[:, :, feature] = codes
    return cells


# Draws of rows from models with states.

N_DRAWS = 400


def spread_numbers(n_columns: int, n_draws: int = N_DRAWS, seed: int = 0) -> Matrix:
    """Return numbers between 0 and 1, one for each draw and column, evenly spread in each column.

    They are the same in every call, so that the draws of all rows have them in common.
    """
    even = np.tile((np.arange(n_draws) + 0.5)[:, None] / n_draws, (1, n_columns))
    return np.asarray(np.random.default_rng(seed).permuted(even, axis=0))


def chosen_states(shares: Matrix, numbers: Vector) -> NDArray[np.intp]:
    """Return the state of each draw for shares of shape (n_rows, n_states), shape (n_rows, n_draws)."""
    cumulative = np.cumsum(shares, axis=1)
    rows = np.arange(len(shares))[:, None]
    # One search in all rows at once: the ends of row i lie between i and i + 1.
    ends = (cumulative / cumulative[:, -1:] + rows).ravel()
    places = np.searchsorted(ends, (numbers[None] + rows).ravel(), side="right").reshape(len(shares), -1)
    chosen: NDArray[np.intp] = np.clip(places - rows * shares.shape[1], 0, shares.shape[1] - 1)
    return chosen


def drawn_codes(table: Matrix, states: NDArray[np.intp], numbers: Vector) -> NDArray[np.intp]:
    """Return the value of a feature for each draw, of which the state is known, shape (n_rows, n_draws).

    Parameters
    ----------
    table : ndarray of shape (n_values, n_states)
    states : ndarray of int, shape (n_rows, n_draws)
    numbers : ndarray of shape (n_draws,)
    """
    below = np.cumsum(table, axis=0)[:-1]
    codes: NDArray[np.intp] = (below[:, states] <= numbers).sum(axis=0)
    return codes


def share_of_decision(decisions: IntegerArray, wanted: NDArray[np.intp]) -> Vector:
    """Return the share of draws that decide as each row does, shape (n_rows,)."""
    return np.asarray((decisions == wanted[:, None]).mean(axis=1))
