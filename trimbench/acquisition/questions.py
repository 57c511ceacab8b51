"""What to ask of each row next: questions with their costs, and what they gain, for any kind of beliefs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_one_of, is_number
from trimbench._typing import Matrix, Vector
from trimbench.acquisition.beliefs import Beliefs, Objective
from trimbench.networks.costs import checked_costs, checked_groups

OBJECTIVES: tuple[Objective, ...] = ("information", "stability")
# Costs and budgets are decimal fractions to their users; gains this close are equal up to rounding.
_TOLERANCE, _TIE = 1e-9, 1e-12
# Rows times outcomes that are looked at together.
_AHEAD = 2**13
# Answers that are less likely are not looked behind: together they change no gain by more than about 1e-6.
_UNLIKELY = 1e-9
_NEVER = "a feature that cannot be asked for gets the cost 1e300"


class NextFeature(NamedTuple):
    """What to ask of each row next.

    Attributes
    ----------
    feature : ndarray of object, shape (n_rows,)
        Name of the feature or of the group of features, a position where the columns have no names; None for a row of
        which everything is known.
    gain : ndarray of shape (n_rows,)
        The expected information of the answer about the class in nats, or the expected rise of the stability; 0 where
        nothing is left to ask.
    gains : ndarray of shape (n_rows, n_questions)
        That of every question; 0 for what is known.
    questions : tuple
        Names or positions of the questions, in the order of the columns of `gains`.
    """

    feature: NDArray[Any]
    gain: Vector
    gains: Matrix
    questions: tuple[Any, ...]


class Askable(Protocol):
    """What policies need of a classifier of rows with gaps."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""

    @property
    def labels(self) -> tuple[Any, ...]:
        """What results call each feature: its name, or its position where the columns have no names."""

    def table(self, rows: Any) -> Any:
        """Return checked rows, as an array or data frame of which `columns` says what belongs to which feature."""

    def columns(self, feature: int) -> Sequence[int]:
        """Return the positions of the columns of a feature."""

    def named(self, costs: Any, groups: Any) -> tuple[Any, Any]:
        """Return costs and groups by the names of features."""

    def rows_at_once(self, objective: Objective) -> int:
        """Return for how many rows beliefs fit into memory."""

    def known(self, table: Any) -> NDArray[np.bool_]:
        """Return which features are known, shape (n_rows, n_features)."""

    def beliefs(self, table: Any, objective: Objective) -> Beliefs:
        """Return what is believed of the rows."""

    def stability(self, table: Any) -> Vector:
        """Return the probability that each prediction stays once everything is known."""

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the predicted label of each row."""

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return the probability of each class of each row."""


@dataclass(frozen=True, eq=False)
class Questions:
    """What may be asked: features, alone or in groups whose values come together.

    Attributes
    ----------
    labels : tuple
    members : tuple of tuple of int
        Positions of the features of each question.
    costs : ndarray of shape (n_questions,)
    fee : float
        Cost of a visit, whatever is asked.
    """

    labels: tuple[Any, ...]
    members: tuple[tuple[int, ...], ...]
    costs: Vector
    fee: float = 0.0

    @classmethod
    def of(cls, asker: Askable, costs: Any, groups: Any, fee: float = 0.0) -> Questions:
        """Return the questions about all features, with groups first; ValueError if an argument is not allowed."""
        if not is_number(fee) or not 0 <= fee < math.inf:
            raise ValueError(f"fee must be a number, 0 or more, got {str(fee)[:80]!r}")
        costs, groups = asker.named(costs, groups)
        grouped = checked_groups(asker.names, groups)
        inside = {place for members in grouped.values() for place in members}
        alone = [place for place in range(len(asker.names)) if place not in inside]
        price = checked_costs(
            [*grouped, *(asker.names[place] for place in alone)], costs, grouped=bool(grouped), never=_NEVER
        )
        labels = (*grouped, *(asker.labels[place] for place in alone))
        return cls(labels, (*grouped.values(), *((place,) for place in alone)), np.array(price), float(fee))

    def __len__(self) -> int:
        return len(self.labels)

    def open_to(self, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which questions may tell each row something, shape (n_rows, n_questions)."""
        parts = [~known[:, list(members)].all(axis=1) for members in self.members]
        return np.stack(parts, axis=1) if parts else np.zeros((len(known), 0), dtype=bool)


def next_feature(
    asker: Askable,
    rows: Any,
    costs: Any = None,
    groups: Any = None,
    *,
    objective: Objective = "information",
    look_ahead: Literal[1, 2] = 1,
) -> NextFeature:
    """Return for each row the question with the largest expected gain for its cost."""
    check_options(objective, look_ahead)
    questions = Questions.of(asker, costs, groups)
    table = asker.table(rows)
    known = asker.known(table)
    n_rows = len(known)
    chosen, gains = np.full(n_rows, -1), np.zeros((n_rows, len(questions)))
    for waiting in parts_of(np.flatnonzero(~known.all(axis=1)), asker.rows_at_once(objective)):
        beliefs = asker.beliefs(rows_of(table, waiting), objective)
        options = Options.of(beliefs, known[waiting], questions, look_ahead)
        chosen[waiting] = options.best()
        gains[waiting] = np.where(options.open, options.gains, 0.0)
    labels, gain = np.full(n_rows, None, dtype=object), np.zeros(n_rows)
    for row in np.flatnonzero(chosen >= 0).tolist():
        labels[row], gain[row] = questions.labels[chosen[row]], gains[row, chosen[row]]
    return NextFeature(labels, gain, gains, questions.labels)


def check_options(objective: Objective, look_ahead: int) -> None:
    """Raise a ValueError unless there are such an objective and look-ahead."""
    check_one_of("objective", objective, OBJECTIVES)
    if isinstance(look_ahead, bool) or look_ahead not in (1, 2):
        raise ValueError(f"look_ahead must be 1 or 2 steps, got {str(look_ahead)[:80]!r}")


# The gain of each question, and of the best one after it.


@dataclass(frozen=True, eq=False)
class Options:
    """The questions that some rows may be asked next.

    Attributes
    ----------
    questions : Questions
    open : ndarray of bool, shape (n_rows, n_questions)
        Which of them tell something and are affordable.
    gains : ndarray of shape (n_rows, n_questions)
        Expected fall of the uncertainty.
    rates : ndarray of shape (n_rows, n_questions)
        Gain per cost, of two steps if they look ahead; minus infinity for what is not open.
    """

    questions: Questions
    open: NDArray[np.bool_]
    gains: Matrix
    rates: Matrix

    @classmethod
    def of(
        cls,
        beliefs: Beliefs,
        known: NDArray[np.bool_],
        questions: Questions,
        look_ahead: int = 1,
        budgets: Vector | None = None,
    ) -> Options:
        """Return the options of rows, which have some money left if `budgets` says how much, shape (n_rows,)."""
        prices = np.broadcast_to(questions.costs + questions.fee, (len(known), len(questions)))
        possible = questions.open_to(known)
        if budgets is not None:
            possible = possible & affordable(prices, budgets[:, None])
        single = gains_of_features(beliefs, known, questions, possible)
        gains = gains_of_questions(beliefs, known, questions, possible, single)
        worth, paid = gains, prices
        if look_ahead == 2:
            # Many rows are alike at first.
            left = np.zeros(len(known)) if budgets is None else budgets
            _, first, of_rows = np.unique(
                np.column_stack([known, left, beliefs.key()]), axis=0, return_index=True, return_inverse=True
            )
            ahead = _LookAhead(beliefs.take(first), known[first], questions, possible[first], single[first])
            worth, paid = ahead.totals(gains[first], None if budgets is None else budgets[first])
            worth, paid = worth[of_rows.ravel()], paid[of_rows.ravel()]
        return cls(questions, possible, gains, np.where(possible, rates_of(worth, paid), -np.inf))

    def best(self) -> NDArray[np.intp]:
        """Return the question with the highest rate for each row, the first of equal ones; -1 if none is open."""
        top = self.rates.max(axis=1, keepdims=True, initial=-np.inf)
        ties = self.rates >= top - _TIE * np.maximum(np.abs(np.where(np.isfinite(top), top, 0.0)), 1.0)
        chosen: NDArray[np.intp] = np.where(self.open.any(axis=1), (ties & self.open).argmax(axis=1), -1)
        return chosen


def affordable(prices: NDArray[np.float64], budgets: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which prices are within the budgets, up to rounding of decimal fractions."""
    return np.asarray(prices <= budgets + _TOLERANCE * np.maximum(np.abs(budgets), 1.0))


def rates_of(gains: Matrix, prices: Matrix) -> Matrix:
    """Return gains per price; what is free comes before everything else."""
    return np.asarray(gains / np.maximum(prices, 1e-300))


def gains_of_features(
    beliefs: Beliefs, known: NDArray[np.bool_], questions: Questions, possible: NDArray[np.bool_]
) -> Matrix:
    """Return by how much each feature by itself lowers the uncertainty, shape (n_rows, n_features).

    0 for features that are known or of which no question is possible.
    """
    asked = np.flatnonzero(possible.any(axis=0)).tolist()
    wanted = sorted({feature for q in asked for feature in questions.members[q]})
    single = np.zeros(known.shape)
    if wanted:
        single[:, wanted] = beliefs.uncertainty()[:, None] - beliefs.expected(wanted)
    return np.where(known, 0.0, single)


def gains_of_questions(
    beliefs: Beliefs, known: NDArray[np.bool_], questions: Questions, possible: NDArray[np.bool_], single: Matrix
) -> Matrix:
    """Return by how much the answer to each open question lowers the uncertainty, shape (n_rows, n_questions).

    A group with more joint answers than beliefs can tell apart counts with those of its features that tell most by
    themselves: a lower bound.
    """
    gains = np.zeros(possible.shape)
    for q in np.flatnonzero(possible.any(axis=0)).tolist():
        members = questions.members[q]
        if len(members) == 1:
            gains[:, q] = single[:, members[0]]
            continue
        for rows, unknown in rows_by_pattern(np.flatnonzero(possible[:, q]), ~known[:, list(members)], members):
            kept, there = _kept(beliefs, unknown, single), beliefs.take(rows)
            gains[rows, q] = there.uncertainty() - _expected(there, kept)
    return gains


def _kept(beliefs: Beliefs, unknown: Sequence[int], single: Matrix) -> tuple[int, ...]:
    """Return the features of a group whose joint answers are told apart."""
    order = sorted(unknown, key=lambda feature: -float(single[:, feature].mean()))
    kept, outcomes = [order[0]], beliefs.n_outcomes(order[0])
    for feature in order[1:]:
        outcomes *= beliefs.n_outcomes(feature)
        if outcomes > beliefs.most_outcomes:
            break
        kept.append(feature)
    return tuple(sorted(kept))


def rows_by_pattern(
    rows: NDArray[np.intp], unknown: NDArray[np.bool_], members: Sequence[int]
) -> Iterator[tuple[NDArray[np.intp], tuple[int, ...]]]:
    """Yield rows that lack the same features of a group, and these features."""
    patterns, of_rows = np.unique(unknown[rows], axis=0, return_inverse=True)
    for place, pattern in enumerate(patterns):
        yield rows[of_rows.ravel() == place], tuple(itertools.compress(members, pattern.tolist()))


def parts_of_beliefs(n_rows: int, n_outcomes: int) -> Iterator[NDArray[np.intp]]:
    """Yield the positions of rows whose outcomes fit into memory together."""
    return parts_of(np.arange(n_rows), max(_AHEAD // max(n_outcomes, 1), 1))


def _expected(beliefs: Beliefs, members: Sequence[int]) -> Vector:
    """Return the expected uncertainty once several features are known together, shape (n_rows,)."""
    result = np.empty(len(beliefs))
    for rows in parts_of_beliefs(len(beliefs), math.prod(map(beliefs.n_outcomes, members))):
        chances, after = beliefs.take(rows).after(members)
        result[rows] = (chances * after.uncertainty().reshape(chances.shape)).sum(axis=1)
    return result


@dataclass(frozen=True, eq=False)
class _LookAhead:
    """Two steps: each question together with the best one after each of its answers.

    The second question is that with the highest rate, as far as it is affordable.
    """

    beliefs: Beliefs
    known: NDArray[np.bool_]
    questions: Questions
    possible: NDArray[np.bool_]
    single: Matrix

    def totals(self, gains: Matrix, budgets: Vector | None) -> tuple[Matrix, Matrix]:
        """Return the expected gain and cost of both steps, shape (n_rows, n_questions)."""
        prices = self.questions.costs + self.questions.fee
        worth, paid = gains.copy(), np.broadcast_to(prices, gains.shape).copy()
        for q in np.flatnonzero(self.possible.any(axis=0)).tolist():
            members = list(self.questions.members[q])
            there = np.flatnonzero(self.possible[:, q])
            left = None if budgets is None else budgets - prices[q]
            for rows, unknown in rows_by_pattern(there, ~self.known[:, members], members):
                kept = _kept(self.beliefs, unknown, self.single)
                for part in parts_of_beliefs(len(rows), math.prod(map(self.beliefs.n_outcomes, kept))):
                    more, cost = self._second(rows[part], kept, members, left)
                    worth[rows[part], q] += more
                    paid[rows[part], q] += cost
        return worth, paid

    def _second(
        self, rows: NDArray[np.intp], kept: Sequence[int], members: Sequence[int], left: Vector | None
    ) -> tuple[Vector, Vector]:
        """Return the expected gain and cost of the question after the answer to some features."""
        prices = self.questions.costs + self.questions.fee
        chances, after = self.beliefs.take(rows).after(kept)
        of_rows, outcomes = np.nonzero(chances > _UNLIKELY)
        known = self.known[rows[of_rows]]
        known[:, list(members)] = True
        second = Options.of(
            after.take(of_rows * chances.shape[1] + outcomes),
            known,
            self.questions,
            budgets=None if left is None else left[rows[of_rows]],
        )
        chosen = second.best()
        asked = chosen >= 0
        weights = chances[of_rows, outcomes]
        of_second = np.where(asked, second.gains[np.arange(len(chosen)), chosen], 0.0)
        cost = np.where(asked, prices[chosen], 0.0)
        gained, spent = (np.bincount(of_rows, weights * values, len(rows)) for values in (of_second, cost))
        return np.asarray(gained, dtype=np.float64), np.asarray(spent, dtype=np.float64)


def parts_of(rows: NDArray[np.intp], size: int) -> Iterator[NDArray[np.intp]]:
    """Yield rows, at most `size` at once."""
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]


def rows_of(table: Any, places: NDArray[np.intp]) -> Any:
    """Return some rows of an array or data frame."""
    return table.iloc[places] if hasattr(table, "iloc") else table[places]
