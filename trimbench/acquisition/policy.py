"""Policies of asking: each row is asked what is worth most, until the budget is spent or the decision is stable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import is_number
from trimbench._typing import Matrix, Vector
from trimbench.acquisition.beliefs import Beliefs, Objective
from trimbench.acquisition.questions import (
    Askable,
    NextFeature,
    Options,
    Questions,
    affordable,
    check_options,
    gains_of_features,
    gains_of_questions,
    next_feature,
    parts_of,
    parts_of_beliefs,
    rates_of,
    rows_by_pattern,
    rows_of,
)

# A row is certain of its class below this entropy; gains this close are equal up to rounding.
_CERTAIN, _TIE = 1e-12, 1e-12
# Joint answers to the questions of one visit.
_MOST_OUTCOMES = 256


@dataclass(frozen=True, eq=False)
class Acquisition:
    """The rows after a policy of asking.

    Attributes
    ----------
    rows : array or data frame of shape (n_rows, n_columns)
        With the answers filled in.
    asked : tuple of tuple
        The questions to each row, in their order: names of features and groups, or positions.
    costs : ndarray of shape (n_rows,)
        What the answers to each row cost, with the fees of its visits.
    n_visits : ndarray of int, shape (n_rows,)
    predictions : ndarray of shape (n_rows,)
        Labels.
    probabilities : ndarray of shape (n_rows, n_classes)
    stability : ndarray of shape (n_rows,) or None
        Probability that the prediction would stay if the rest were known; only with `stop_at`.
    """

    rows: Any
    asked: tuple[tuple[Any, ...], ...]
    costs: Vector
    n_visits: NDArray[np.intp]
    predictions: NDArray[Any]
    probabilities: Matrix
    stability: Vector | None


class Asking(ABC):
    """The methods `next_feature` and `acquire` of a classifier of rows with gaps."""

    @abstractmethod
    def _asker(self) -> Askable:
        """Return what policies need of the classifier."""

    def next_feature(
        self,
        X: Any,
        costs: Any = None,
        groups: Any = None,
        *,
        objective: Objective = "information",
        look_ahead: Literal[1, 2] = 1,
    ) -> NextFeature:
        """Return for each row the unknown feature whose value is worth most for its cost.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
            NaN, None or NA where a value is not known yet.
        costs : mapping, Series or sequence, optional
            Cost of each feature, or of each group and feature outside of groups. Default: 1.
        groups : mapping from name to features, optional
            Features whose values come together for one cost, such as those of one blood sample. The gain of a group
            with very many joint values is a lower bound, that of its most informative features.
        objective : {"information", "stability"}
            What to gain: information about the class, H(C | known) - E H(C | known, answer) in nats, or a higher
            probability that the decision stays once everything is known.
        look_ahead : {1, 2}
            Steps to look ahead. With 2, a question counts with the best one after each of its answers, which finds
            features that tell nothing by themselves but which others to ask for; it takes as many times longer as
            there are answers.

        Returns
        -------
        NextFeature

        Raises
        ------
        ValueError
            When `X` has other columns or values than the model, or an argument is not allowed.

        References
        ----------
        Heckerman, Horvitz and Middleton (1993), "An approximate nonmyopic computation for value of information"; Ma et
        al. (2019), "EDDI: efficient dynamic discovery of high-value information with partial VAE"; for the stability
        Chen, Choi and Darwiche (2015), "Value of information based on decision robustness".
        """
        return next_feature(self._asker(), X, costs, groups, objective=objective, look_ahead=look_ahead)

    def acquire(
        self,
        X: Any,
        ask: Any,
        costs: Any = None,
        *,
        budget: float | None = None,
        stop_at: float | None = None,
        min_gain: float | None = None,
        groups: Any = None,
        fee: float = 0.0,
        objective: Objective = "information",
        look_ahead: Literal[1, 2] = 1,
    ) -> Acquisition:
        """Ask each row for the feature that is worth most, again and again, until it is enough.

        A row stops when nothing that it lacks is affordable, when its decision is stable enough, when no answer gains
        enough, or when its class is certain.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
            What is known at first; may be all NaN.
        ask : callable, array or data frame
            ``ask(rows, feature)`` returns the values of a feature, or of a group in the order of its columns, for the
            rows at some positions, shape (n_asked,) or (n_asked, n_columns); NaN for a value that cannot be had, which
            is paid for but not asked for again. A table of the shape of `X` holds the answers to all questions.
        costs, groups, objective, look_ahead
            As in `next_feature`.
        budget : float, optional
            The most that each row may cost.
        stop_at : float, optional
            The stability, the probability that the decision stays once everything is known, that is enough; above 0.
        min_gain : float, optional
            The least gain for each unit of cost that is worth asking for.
        fee : float
            Cost of each visit. With a fee, several questions are asked in one visit while that gains more for its cost.

        Returns
        -------
        Acquisition

        Raises
        ------
        ValueError
            When neither `budget`, `stop_at` nor `min_gain` is given, an argument is not allowed, or answers have the
            wrong shape.
        """
        return acquire(
            self._asker(),
            X,
            ask,
            costs,
            limits=Limits.of(budget, stop_at, min_gain),
            groups=groups,
            fee=fee,
            objective=objective,
            look_ahead=look_ahead,
        )


@dataclass(frozen=True)
class Limits:
    """When a row has enough: what it may cost, how stable its decision is, what an answer must gain per cost."""

    budget: float
    stop_at: float | None
    min_gain: float

    @classmethod
    def of(cls, budget: Any, stop_at: Any, min_gain: Any) -> Limits:
        """Return checked limits; None for those that there are not. Raises ValueError if there are none."""
        if budget is None and stop_at is None and min_gain is None:
            raise ValueError(
                "one of budget, stop_at and min_gain must say when to stop, got none; for example budget=3 or "
                "stop_at=0.95"
            )
        if budget is not None and not (is_number(budget) and budget >= 0):
            raise ValueError(f"budget must be a number, 0 or more, got {str(budget)[:80]!r}")
        if stop_at is not None and not (is_number(stop_at) and 0 < stop_at <= 1):
            raise ValueError(
                "stop_at must be the stability that is enough, a probability above 0 and up to 1, got "
                f"{str(stop_at)[:80]!r}"
            )
        if min_gain is not None and not (is_number(min_gain) and 0 <= min_gain < math.inf):
            raise ValueError(f"min_gain must be a gain for each unit of cost, 0 or more, got {str(min_gain)[:80]!r}")
        return cls(
            math.inf if budget is None else float(budget), stop_at, -math.inf if min_gain is None else float(min_gain)
        )


def acquire(
    asker: Askable,
    rows: Any,
    ask: Any,
    costs: Any = None,
    *,
    limits: Limits,
    groups: Any = None,
    fee: float = 0.0,
    objective: Objective = "information",
    look_ahead: Literal[1, 2] = 1,
) -> Acquisition:
    """Return the rows after a policy of asking, see `Asking.acquire`."""
    check_options(objective, look_ahead)
    questions = Questions.of(asker, costs, groups, fee)
    table = asker.table(rows)
    answers = ask
    if not callable(ask):
        answers = asker.table(ask)
        if len(answers) != len(table):
            raise ValueError(f"ask must answer for each of the {len(table)} rows of X, got {len(answers)} rows")
    run = _Run(asker, table, answers, questions, limits, objective, look_ahead)
    while len(run.active):
        run.visit()
    return Acquisition(
        run.table,
        tuple(map(tuple, run.asked)),
        run.spent,
        run.n_visits,
        asker.predict(run.table),
        asker.predict_proba(run.table),
        None if limits.stop_at is None else asker.stability(run.table),
    )


class _Run:
    """The state of a policy: the rows with the answers so far, and what they cost."""

    def __init__(
        self,
        asker: Askable,
        table: Any,
        answers: Any,
        questions: Questions,
        limits: Limits,
        objective: Objective,
        look_ahead: int,
    ) -> None:
        self.asker, self.answers, self.questions = asker, answers, questions
        self.limits, self.objective, self.look_ahead = limits, objective, look_ahead
        self.table = table.copy()
        self.closed = asker.known(table).copy()  # known, or asked for in vain
        self.asked: list[list[Any]] = [[] for _ in range(len(table))]
        self.spent, self.n_visits = np.zeros(len(table)), np.zeros(len(table), dtype=np.intp)
        self.active = np.flatnonzero(questions.open_to(self.closed).any(axis=1))

    def visit(self) -> None:
        """Ask each active row its next questions, and leave out those that have enough."""
        if self.limits.stop_at is not None and len(self.active):
            stable = self.asker.stability(rows_of(self.table, self.active)) >= self.limits.stop_at
            self.active = self.active[~stable]
        going_on, batches = [], []
        for part in parts_of(self.active, self.asker.rows_at_once(self.objective)):
            rows, of_rows = self._planned(part)
            going_on.append(rows)
            batches += of_rows
        self.active = np.concatenate(going_on) if going_on else self.active
        if len(self.active):
            self._ask(batches)
            self.active = self.active[self.questions.open_to(self.closed[self.active]).any(axis=1)]

    def _planned(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], list[tuple[int, ...]]]:
        """Return those of the rows that are asked something, and the questions of their visits."""
        beliefs = self.asker.beliefs(rows_of(self.table, rows), self.objective)
        known, left = self.closed[rows], self.limits.budget - self.spent[rows]
        options = Options.of(beliefs, known, self.questions, self.look_ahead, left)
        chosen = options.best()
        goes_on = (chosen >= 0) & (options.rates.max(axis=1) >= self.limits.min_gain)
        if self.objective == "information":
            goes_on &= beliefs.uncertainty() > _CERTAIN
        places = np.flatnonzero(goes_on)
        batches: list[tuple[int, ...]] = [(int(question),) for question in chosen[places]]
        if self.questions.fee > 0 and len(places):
            batches = _filled(beliefs.take(places), known[places], self.questions, left[places], batches)
        return rows[places], batches

    def _ask(self, batches: Sequence[tuple[int, ...]]) -> None:
        """Ask each active row the questions of its visit, and fill the answers in."""
        questions = self.questions
        self.n_visits[self.active] += 1
        self.spent[self.active] += questions.fee
        for q in sorted({q for batch in batches for q in batch}):
            rows = self.active[[q in batch for batch in batches]]
            members = np.array(questions.members[q], dtype=np.intp)
            columns = [list(self.asker.columns(feature)) for feature in members.tolist()]
            values = self._values(rows, q, [column for of_feature in columns for column in of_feature])
            unknown = ~np.repeat(self.closed[np.ix_(rows, members)], list(map(len, columns)), axis=1)
            for place, column in enumerate(column for of_feature in columns for column in of_feature):
                wanted = unknown[:, place]
                if wanted.any():
                    self.table = _with_values(self.table, rows[wanted], column, values[wanted, place])
            self.spent[rows] += questions.costs[q]
            self.closed[np.ix_(rows, members)] = True
        for row, batch in zip(self.active.tolist(), batches, strict=True):
            self.asked[row] += [questions.labels[q] for q in batch]

    def _values(self, rows: NDArray[np.intp], question: int, columns: list[int]) -> NDArray[Any]:
        """Return the answers of some rows to a question, shape (n_rows, n_columns)."""
        if not callable(self.answers):
            part = rows_of(self.answers, rows)
            return np.asarray(part.iloc[:, columns], dtype=object) if hasattr(part, "iloc") else part[:, columns]
        label = self.questions.labels[question]
        values = np.asarray(self.answers(rows, label))
        if len(columns) == 1 and values.shape == (len(rows),):
            values = values[:, None]
        if values.shape != (len(rows), len(columns)):
            raise ValueError(
                f"ask must return values of shape {(len(rows), len(columns))} for {len(rows)} rows and {label!r}, got "
                f"shape {values.shape}"
            )
        return values


def _with_values(table: Any, rows: NDArray[np.intp], column: int, values: NDArray[Any]) -> Any:
    """Return a table, which may be changed, with other values of some rows in a column, of its type if it has them."""
    if not hasattr(table, "iloc"):
        if table.dtype.kind not in "fO":
            table = table.astype(object)
        try:
            table[rows, column] = values
        except (TypeError, ValueError) as error:
            raise ValueError(f"ask must return numbers for column {column}, got {str(values[0])[:80]!r}") from error
        return table
    before = table.iloc[:, column]
    filled = before.astype(object)
    filled.iloc[rows] = values
    try:
        typed = filled.astype(before.dtype)
        same = bool((typed.isna() == filled.isna()).all())
    except (TypeError, ValueError):
        same = False
    table.isetitem(column, typed if same else filled.infer_objects())
    return table


# Visits with several questions, which do not wait for one another's answers.


def _filled(
    beliefs: Beliefs, known: NDArray[np.bool_], questions: Questions, left: Vector, batches: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the questions of a visit to each row: more are added while the gain for each unit of cost rises."""
    filled, growing = list(batches), list(range(len(batches)))
    while growing:
        longer = []
        for batch in sorted({filled[row] for row in growing}):
            rows = np.array([row for row in growing if filled[row] == batch])
            more = _one_more(beliefs.take(rows), known[rows], questions, left[rows], batch)
            for row, question in zip(rows.tolist(), more.tolist(), strict=True):
                if question >= 0:
                    filled[row] = (*batch, question)
                    longer.append(row)
        growing = longer
    return filled


def _one_more(
    beliefs: Beliefs, known: NDArray[np.bool_], questions: Questions, left: Vector, batch: tuple[int, ...]
) -> NDArray[np.intp]:
    """Return the question that a visit with some others should have, too, for each row; -1 for none."""
    more = np.full(len(beliefs), -1)
    members = [feature for q in batch for feature in questions.members[q]]
    paid = questions.fee + float(questions.costs[list(batch)].sum())
    for rows, unknown in rows_by_pattern(np.arange(len(beliefs)), ~known[:, members], members):
        n_outcomes = math.prod(map(beliefs.n_outcomes, unknown))
        if n_outcomes > min(_MOST_OUTCOMES, beliefs.most_outcomes):
            continue
        for part in parts_of_beliefs(len(rows), n_outcomes):
            now = beliefs.take(rows[part])
            chances, after = now.after(unknown)
            shown = known[rows[part]].copy()
            shown[:, members] = True
            prices = paid + questions.costs
            possible = questions.open_to(shown) & affordable(prices, left[rows[part]][:, None])
            repeated, wide = (np.repeat(flags, n_outcomes, axis=0) for flags in (shown, possible))
            single = gains_of_features(after, repeated, questions, wide)
            of_answers = gains_of_questions(after, repeated, questions, wide, single)
            gains = (chances[:, :, None] * of_answers.reshape(*chances.shape, -1)).sum(axis=1)
            so_far = now.uncertainty() - (chances * after.uncertainty().reshape(chances.shape)).sum(axis=1)
            rates = np.where(possible, rates_of(so_far[:, None] + gains, prices), -np.inf)
            better = rates.max(axis=1) > rates_of(so_far, np.full(len(part), paid)) + _TIE
            more[rows[part]] = np.where(better, rates.argmax(axis=1), -1)
    return more
