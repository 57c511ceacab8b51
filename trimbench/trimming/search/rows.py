"""Search for the subset of the highest agreement on weighted rows: every subset, or greedy and exchanges."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray
from trimbench.trimming.classifier import ArgMaxClassifier, most_probable
from trimbench.trimming.costs import Choice, highest_cost
from trimbench.trimming.search.row_scores import (
    AdditiveScores,
    Cells,
    Codes,
    Columns,
    Scores,
    WeightedRows,
    agreement_with,
    balances_with_each,
    capped,
    cells_of,
    encoded_rows,
    highest_balance,
    masses,
    scores_of,
    small_codes,
)
from trimbench.trimming.thresholds import Cut, Instances, agreement_of, best_cut, is_positive

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.trimming.classifier import BayesianClassifier


# Agreements closer than this are equal; the cheaper subset, or the one found first, is then kept.
TOLERANCE = 1e-12
# Up to so many subsets, and so many pairs of a subset and a distinct row, every subset is tried.
MAX_SUBSETS, _MAX_WORK = 20_000, 5e6
# The first pass of exchanges brings nearly all of the gain.
_PASSES = 2


@dataclass(frozen=True)
class Selection:
    """Units that were selected.

    Attributes
    ----------
    units : frozenset of int
    value : float
        Agreement on the weighted rows.
    n_evaluations : int
        Subsets whose agreement was computed.
    finished : bool
        Whether the search ended by itself.
    """

    units: frozenset[int]
    value: float
    n_evaluations: int
    finished: bool


def select(objective: Objective, choice: Choice, may_go_on: Callable[[int], bool]) -> Selection:
    """Return the best subset within the budget: of all where they are few, else by greedy selection and exchanges.

    `may_go_on` is asked before each step, with the number of evaluations so far; once it returns False, the units that
    add most to the best subset so far fill the rest of the budget.
    """
    n_subsets = count_subsets(choice)
    if n_subsets <= MAX_SUBSETS and n_subsets * objective.n_rows <= _MAX_WORK:
        return select_exhaustively(objective, choice, may_go_on)
    return select_greedily(objective, choice, may_go_on)


def select_exhaustively(objective: Objective, choice: Choice, may_go_on: Callable[[int], bool]) -> Selection:
    """Try every affordable subset; of equally good ones the cheapest, then the first in order of units."""
    search = _Search(objective, choice, may_go_on)
    open_ = [unit for unit in range(len(choice.units)) if unit not in choice.required_units]
    stack: list[tuple[frozenset[int], int]] = [(choice.required_units, 0)]
    while stack:
        units, start = stack.pop()
        spent = search.cost(units)
        additions = [
            (place, open_[place])
            for place in range(start, len(open_))
            if spent + choice.costs[open_[place]] <= highest_cost(choice.budget)
        ]
        if not additions:
            continue
        if not search.goes_on():
            break
        search.values_with(units, [unit for _, unit in additions])
        stack += [(units | {unit}, place + 1) for place, unit in reversed(additions)]
    return search.selection()


def select_greedily(objective: Objective, choice: Choice, may_go_on: Callable[[int], bool]) -> Selection:
    """Select units one by one, by gain and by gain per cost, and exchange them while that helps."""
    search = _Search(objective, choice, may_go_on)
    search.add_greedily(choice.required_units, per_cost=False)
    if len({cost for unit, cost in enumerate(choice.costs) if unit not in choice.required_units}) > 1:
        search.add_greedily(choice.required_units, per_cost=True)
    for _ in range(_PASSES):
        if not search.exchange():
            break
    return search.selection()


def count_subsets(choice: Choice, most: int = MAX_SUBSETS) -> int:
    """Return the number of subsets of units within the budget, or a number above `most` if there are more."""
    limit = highest_cost(choice.budget)
    spent = [math.fsum(choice.costs[unit] for unit in choice.required_units)]
    for unit, cost in enumerate(choice.costs):
        if unit not in choice.required_units:
            spent += [total + cost for total in spent if total + cost <= limit]
            if len(spent) > most:
                break
    return len(spent)


class _Search:
    """The best units so far, and the steps that improve them."""

    def __init__(self, objective: Objective, choice: Choice, may_go_on: Callable[[int], bool]) -> None:
        self._objective = objective
        self._choice = choice
        self._may_go_on = may_go_on
        self._best = frozenset(choice.required_units)
        self._value = objective.value(choice.features(self._best))
        self._n_evaluations = 1
        self.finished = True

    def selection(self) -> Selection:
        if not self.finished and (additions := self._additions(self._best)):
            before = self._best
            gains = dict(zip(additions, self.values_with(before, additions), strict=True))
            filled = frozenset(self._choice.filled(before, sorted(gains, key=gains.__getitem__, reverse=True)))
            value = self._objective.value(self._choice.features(filled))
            if value >= self._value - TOLERANCE:
                self._best, self._value = filled, value
        return Selection(self._best, self._value, self._n_evaluations, self.finished)

    def cost(self, units: Iterable[int]) -> float:
        return math.fsum(self._choice.costs[unit] for unit in units)

    def values_with(self, units: Collection[int], additions: list[int]) -> np.ndarray:
        """Return the agreement with each unit added, and note the best."""
        values = self._objective.values_with(
            self._choice.features(units), [self._choice.units[unit] for unit in additions]
        )
        self._n_evaluations += len(additions)
        for place in np.flatnonzero(values >= values.max() - TOLERANCE):
            self._note({*units, additions[place]}, float(values[place]))
        return values

    def add_greedily(self, units: Collection[int], *, per_cost: bool) -> None:
        """Add the unit that gains most, or most for its cost, until nothing more is affordable."""
        chosen = frozenset(units)
        value = self._objective.value(self._choice.features(chosen))
        while additions := self._additions(chosen):
            if not self.goes_on():
                return
            values = self.values_with(chosen, additions)
            gains = values - value
            if per_cost and gains.max() > TOLERANCE:
                gains /= np.maximum([self._choice.costs[unit] for unit in additions], TOLERANCE)
            place = int(np.flatnonzero(gains >= gains.max() - TOLERANCE)[0])
            chosen, value = chosen | {additions[place]}, float(values[place])

    def exchange(self) -> bool:
        """Exchange each unit in turn for the best one in its place, or drop it; return whether that helped."""
        before = self._value
        for out in sorted(self._best - self._choice.required_units):
            if out not in self._best:
                continue
            if not self.goes_on():
                return False
            others = self._best - {out}
            self._note(others, self._objective.value(self._choice.features(others)))
            self._n_evaluations += 1
            if additions := [unit for unit in self._additions(others) if unit != out]:
                self.values_with(others, additions)
        if self._additions(self._best):
            self.add_greedily(self._best, per_cost=False)
        return self._value > before + TOLERANCE

    def goes_on(self) -> bool:
        """Return whether another step is allowed."""
        self.finished = self.finished and self._may_go_on(self._n_evaluations)
        return self.finished

    def _additions(self, units: Collection[int]) -> list[int]:
        spent = self.cost(units)
        limit = highest_cost(self._choice.budget)
        return [unit for unit, cost in enumerate(self._choice.costs) if unit not in units and spent + cost <= limit]

    def _note(self, units: Collection[int], value: float) -> None:
        gain = value - self._value
        cheaper = self.cost(units) < self.cost(self._best) - TOLERANCE
        if gain > TOLERANCE or (gain >= -TOLERANCE and cheaper):
            self._best, self._value = frozenset(units), value


# What trimming on rows needs of a classifier: its decisions on rows, rows of its model, and agreements.

# A model with at most so many instances of its features stands for itself; of others so many rows are drawn.
MAX_INSTANCES = 2**12
N_DRAWN = 10_000


class Problem(Protocol):
    """A classifier as trimming on rows sees it. Decisions are positions of classes; two classes: 1 is positive."""

    def rows(self, frame: pd.DataFrame) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return the distribution of the model over complete rows, or rows drawn from it."""

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return what the classifier trimmed to some features decides on complete rows."""


class ThresholdProblem:
    """A classifier of two classes with a threshold."""

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._classifier = classifier
        self._scores = scores_of(classifier)

    def rows(self, frame: pd.DataFrame) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""
        classifier = self._classifier
        codes = encoded_rows(frame, dict(zip(classifier.features, classifier.value_names, strict=True)))
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return all instances with their probabilities where they are few, else rows drawn from the model."""
        cardinalities = self._scores.cardinalities
        n_instances = math.prod(cardinalities)
        if n_instances > MAX_INSTANCES:
            codes = self._classifier.draw(N_DRAWN, rng)
            return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))
        positive, negative = self._classifier.joint(range(len(cardinalities)))
        possible = np.flatnonzero(positive + negative > 0)
        codes = np.stack(np.unravel_index(possible, cardinalities), axis=1)
        mass = (positive + negative)[possible]
        decided = is_positive(positive[possible], negative[possible], self._classifier.threshold)
        return WeightedRows(small_codes(codes, cardinalities), decided.astype(np.int64), mass / mass.sum())

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""
        return ThresholdObjective(rows, self._scores, self._classifier.threshold)

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return what the classifier trimmed to some features decides on complete rows: 1 for positive, else 0."""
        positive, negative = odds_as_joint(self._scores.log_odds(kept, codes[:, list(kept)]))
        level = self._classifier.threshold if threshold is None else threshold
        return is_positive(positive, negative, level).astype(np.int64)

    def _decided(self, codes: IntegerArray, weights: NDArray[np.float64]) -> WeightedRows:
        small = small_codes(codes, self._scores.cardinalities)
        return WeightedRows(small, self._classifier.decide(small).astype(np.int64), weights)


# Agreement of trimmed classifiers with the original on weighted rows.


class Objective(Protocol):
    """What a search on rows needs; features are given by their position."""

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""

    def value(self, kept: Sequence[int]) -> float:
        """Return the highest agreement of a feature subset, over all thresholds if there is one."""

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the highest agreement of the subset with each addition (of one feature or several)."""

    def cut(self, kept: Sequence[int]) -> Cut | None:
        """Return the threshold interval with the highest agreement; None for classifiers without threshold."""


class ThresholdObjective:
    """Agreement of a classifier with a threshold.

    Parameters
    ----------
    rows : WeightedRows
        With decisions 0 and 1.
    scores : Scores
        Log-odds of the trimmed classifiers.
    threshold : float
        That of the original, which is kept where it is among the best.
    """

    def __init__(self, rows: WeightedRows, scores: Scores, threshold: float) -> None:
        distinct = rows.merged()
        self._codes = distinct.codes
        self._signed = np.where(distinct.decisions == 1, distinct.weights, -distinct.weights)
        self._scores = scores
        self._threshold = threshold

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(self._codes)

    @cached_property
    def _columns(self) -> Columns | None:
        if not isinstance(self._scores, AdditiveScores):
            return None
        return Columns(self._codes, self._scores.cardinalities, self._scores.weights, self._signed)

    def value(self, kept: Sequence[int]) -> float:
        """Return the highest agreement of a feature subset over all thresholds."""
        log_odds, mass = self._parts(kept)
        return agreement_of(highest_balance(log_odds, mass))

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the highest agreement of the subset with each addition."""
        found = np.empty(len(additions))
        single = [i for i, unit in enumerate(additions) if len(unit) == 1 and self._columns is not None]
        if single and self._columns is not None:
            places, codes = cells_of(self._codes, kept, self._scores.cardinalities)
            cells = Cells.sorted(places, self._scores.log_odds(kept, codes))
            balances = balances_with_each(self._columns, cells, [additions[i][0] for i in single])
            found[single] = np.clip(0.5 * (1.0 + balances), 0.0, 1.0)
        for i in sorted(set(range(len(additions))) - set(single)):
            found[i] = self.value(sorted([*kept, *additions[i]]))
        return found

    def cut(self, kept: Sequence[int]) -> Cut:
        """Return the threshold interval with the highest agreement."""
        log_odds, mass = self._parts(kept)
        positive, negative = odds_as_joint(capped(log_odds))
        return best_cut(Instances(positive, negative, mass), self._threshold)

    def _parts(self, kept: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the log-odds of each cell and its signed mass."""
        places, codes = cells_of(self._codes, kept, self._scores.cardinalities)
        mass = masses(places, self._signed, len(codes))
        return self._scores.log_odds(kept, codes), mass


def odds_as_joint(log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Pr(c | f) and Pr(not c | f) of log-odds."""
    from scipy.special import expit

    positive: NDArray[np.float64] = expit(log_odds)
    negative: NDArray[np.float64] = expit(-log_odds)
    return positive, negative


# Agreement on rows of classifiers that give the most probable of several classes.

FloatArray = NDArray[np.float64]


class LogJoint(Protocol):
    """log Pr(c, f') of a classifier of several classes."""

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return log Pr(c, f') of rows of value indices, shape (n_rows, n_classes).

        Parameters
        ----------
        kept : sequence of int
            Positions of the kept features.
        codes : ndarray of int, shape (n_rows, len(kept))
        """


class NaiveBayesLogJoint:
    """log Pr(c, f') as a sum over the kept features."""

    def __init__(self, prior: FloatArray, likelihoods: Sequence[FloatArray]) -> None:
        with np.errstate(divide="ignore"):
            self._prior = np.log(prior)
            self._tables = [np.ascontiguousarray(np.log(table).T) for table in likelihoods]

    def weights(self, feature: int) -> FloatArray:
        """Return log Pr(value | c) of a feature, shape (cardinality, n_classes)."""
        return self._tables[feature]

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return log Pr(c, f') of rows of value indices, shape (n_rows, n_classes)."""
        total = np.tile(self._prior, (len(codes), 1))
        for feature, column in zip(kept, codes.T, strict=True):
            total += self._tables[feature][column]
        return total


class GeneralLogJoint:
    """log Pr(c, f') of any other model: what is not kept is summed out for the rows alone."""

    def __init__(self, classifier: ArgMaxClassifier) -> None:
        self._classifier = classifier

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return log Pr(c, f') of rows of value indices, shape (n_rows, n_classes), up to a constant of the row."""
        trimmed = self._classifier.with_features([self._classifier.features[feature] for feature in kept])
        return trimmed.log_weights(codes)


class ArgMaxObjective:
    """Agreement of a classifier that gives the most probable class; there is no threshold.

    Parameters
    ----------
    rows : WeightedRows
    logs : LogJoint
    cardinalities : sequence of int
        Number of values of each feature.
    """

    def __init__(self, rows: WeightedRows, logs: LogJoint, cardinalities: Sequence[int]) -> None:
        self._rows = rows.merged()
        self._logs = logs
        self._cardinalities = cardinalities

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(self._rows)

    def value(self, kept: Sequence[int]) -> float:
        """Return the agreement of a feature subset."""
        places, cells = cells_of(self._rows.codes, kept, self._cardinalities)
        return self._agreement(places, self._logs.of_rows(kept, cells))

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the agreement of the subset with each addition."""
        places, cells = cells_of(self._rows.codes, kept, self._cardinalities)
        found = np.empty(len(additions))
        logs = self._logs.of_rows(kept, cells) if isinstance(self._logs, NaiveBayesLogJoint) else None
        for i, unit in enumerate(additions):
            if logs is None or not isinstance(self._logs, NaiveBayesLogJoint) or len(unit) > 1:
                found[i] = self.value(sorted([*kept, *unit]))
                continue
            rows, weights = self._rows, self._logs.weights(unit[0])
            agreed = agreement_with(logs, places, rows.codes[:, unit[0]], weights, rows.decisions, rows.weights)
            found[i] = min(1.0, agreed)
        return found

    def cut(self, kept: Sequence[int]) -> None:
        """Return None: there is no threshold."""

    def _agreement(self, places: NDArray[np.int64], logs: FloatArray) -> float:
        decided = most_probable(logs.T, logarithms=True)[places]
        return min(1.0, float(self._rows.weights[decided == self._rows.decisions].sum()))


class ArgMaxProblem:
    """A classifier of several classes, for `trim_on_rows`: it has no threshold.

    The model's part of the blend is all instances with their probabilities where they are few, else rows drawn from it.
    """

    def __init__(self, classifier: ArgMaxClassifier) -> None:
        self._classifier = classifier
        self._cardinalities = tuple(len(values) for values in classifier.value_names)
        self._logs: LogJoint = (
            NaiveBayesLogJoint(classifier.prior, classifier.likelihoods)
            if classifier.is_naive_bayes
            else GeneralLogJoint(classifier)
        )

    def rows(self, frame: pd.DataFrame) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""
        codes = encoded_rows(frame, self._values)
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return all instances with their probabilities where they are few, else rows drawn from the model."""
        classifier = self._classifier
        if math.prod(self._cardinalities) <= MAX_INSTANCES:
            mass = classifier.joint(range(len(self._cardinalities))).sum(axis=0)
            possible = np.flatnonzero(mass > 0)
            codes = np.stack(np.unravel_index(possible, self._cardinalities), axis=1)
            return self._decided(codes, mass[possible] / mass.sum())
        codes = classifier.draw(N_DRAWN, rng).astype(np.int64)
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""
        return ArgMaxObjective(rows, self._logs, self._cardinalities)

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return the position of the class that the classifier trimmed to some features gives to complete rows."""
        logs = self._logs.of_rows(kept, codes[:, list(kept)])
        return most_probable(logs.T, logarithms=True).astype(np.int64)

    @property
    def _values(self) -> Mapping[str, Sequence[str]]:
        return dict(zip(self._classifier.features, self._classifier.value_names, strict=True))

    def _decided(self, codes: NDArray[np.int64], weights: FloatArray) -> WeightedRows:
        small = small_codes(codes, self._cardinalities)
        return WeightedRows(small, self.decisions(range(codes.shape[1]), None, small), weights)
