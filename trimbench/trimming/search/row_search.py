"""Search for the subset with the highest agreement on weighted rows: all subsets, or greedily with exchanges."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import FloatArray, IntegerArray
from trimbench.trimming.decisions import Cut, Instances, agreement_of, best_cut, most_probable
from trimbench.trimming.problem import Choice, highest_cost
from trimbench.trimming.search.row_scores import (
    AdditiveScores,
    Cells,
    CodedRows,
    Codes,
    Columns,
    Scores,
    WeightedRows,
    agreement_with,
    balances_with_each,
    capped,
    cells_of,
    decisive,
    encoded_rows,
    highest_balance,
    masses,
    scores_of,
    small_codes,
)

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.trimming.classifier import BayesianClassifier


# Agreements closer than this are equal; the cheaper subset, or the one found first, is then kept.
TOLERANCE = 1e-12
# With at most this many subsets, and this many pairs of a subset and a distinct row, every subset is tried.
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
    """Return the best subset within the budget: of all if there are few, else by greedy selection and exchanges.

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
        if not self.finished and (additions := self._choice.open_units(self._best)):
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
        while additions := self._choice.open_units(chosen):
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
            if additions := [unit for unit in self._choice.open_units(others) if unit != out]:
                self.values_with(others, additions)
        if self._choice.open_units(self._best):
            self.add_greedily(self._best, per_cost=False)
        return self._value > before + TOLERANCE

    def goes_on(self) -> bool:
        """Return whether another step is allowed."""
        self.finished = self.finished and self._may_go_on(self._n_evaluations)
        return self.finished

    def _note(self, units: Collection[int], value: float) -> None:
        gain = value - self._value
        cheaper = self.cost(units) < self.cost(self._best) - TOLERANCE
        if gain > TOLERANCE or (gain >= -TOLERANCE and cheaper):
            self._best, self._value = frozenset(units), value


# What trimming on rows needs of a classifier: its decisions on rows, rows of its model, and agreements.

# A model with at most this many instances is enumerated; from others, this many rows are drawn.
MAX_INSTANCES = 2**12
N_DRAWN = 10_000


class WholeClassifier(NamedTuple):
    """A classifier, and the positions in it of the features of a smaller one."""

    classifier: BayesianClassifier
    places: Sequence[int]


class RowProblem:
    """A classifier as trimming on rows sees it. Decisions are positions of classes; 1 and 0 with a positive class.

    Rows are drawn from the `whole` classifier, so that features of a single value change nothing if they are left out.
    """

    def __init__(self, classifier: BayesianClassifier, whole: WholeClassifier | None = None) -> None:
        self.classifier = classifier
        self._whole = whole or WholeClassifier(classifier, range(classifier.n_features))
        self.threshold: float | None = classifier.threshold
        self._scores = scores_of(classifier)

    def rows(self, frame: pd.DataFrame | CodedRows) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""
        classifier = self.classifier
        codes = encoded_rows(frame, dict(zip(classifier.features, classifier.value_names, strict=True)))
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return all instances with their probabilities if there are few, else rows drawn from the model."""
        cardinalities = self.classifier.cardinalities
        if self._are_drawn:
            codes = self._whole.classifier.draw(N_DRAWN, rng, self._whole.places)
            return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))
        joint = self.classifier.joint(range(len(cardinalities)))
        mass = joint.sum(axis=0)
        possible = np.flatnonzero(mass > 0)
        # Features with a single value get no axis: there may be more of them than an array can have axes.
        open_ = [place for place, number in enumerate(cardinalities) if number > 1]
        codes = np.zeros((len(possible), len(cardinalities)), dtype=np.int64)
        if open_:
            codes[:, open_] = np.stack(np.unravel_index(possible, [cardinalities[place] for place in open_]), axis=1)
        codes = small_codes(codes, cardinalities)
        decided = self.classifier.decided(joint[:, possible]).astype(np.int64)
        return WeightedRows(codes, decided, mass[possible] / mass.sum())

    def skip_model_rows(self, rng: np.random.Generator) -> None:
        """Leave a generator as `model_rows` does, without the rows: drawing them takes longest in wide tables."""
        if self._are_drawn:
            self._whole.classifier.skip(N_DRAWN, rng)

    @property
    def _are_drawn(self) -> bool:
        return math.prod(self.classifier.cardinalities) > MAX_INSTANCES

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""
        return Objective(rows, self._scores, self.threshold)

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return what the classifier trimmed to some features decides on complete rows."""
        trimmed = self.classifier.with_features([self.classifier.features[i] for i in kept], threshold)
        return trimmed.decide(codes[:, list(kept)]).astype(np.int64)

    def _decided(self, codes: IntegerArray, weights: FloatArray) -> WeightedRows:
        small = small_codes(codes, self.classifier.cardinalities)
        return WeightedRows(small, self.classifier.decide(small).astype(np.int64), weights)


class Objective:
    """Agreement of a trimmed classifier with the original on weighted rows; features are given by their position.

    Parameters
    ----------
    rows : WeightedRows
    scores : Scores
        Log-odds of the trimmed classifiers if there is a threshold, else log Pr(c, f') of each class.
    threshold : float or None
        That of the original, which is kept if it is among the best; None for the most probable class.
    """

    def __init__(self, rows: WeightedRows, scores: Scores, threshold: float | None) -> None:
        self._rows = rows.merged()
        self._signed = np.where(self._rows.decisions == 1, self._rows.weights, -self._rows.weights)
        self._scores = scores
        self._threshold = threshold

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(self._rows)

    @cached_property
    def _columns(self) -> Columns | None:
        if self._threshold is None or not isinstance(self._scores, AdditiveScores):
            return None
        scores = self._scores
        return Columns(self._rows.codes, scores.cardinalities, scores.weights, self._signed, scores.prior)

    def value(self, kept: Sequence[int]) -> float:
        """Return the highest agreement of a feature subset, over all thresholds if there is one."""
        places, scores = self._decisive_cells(kept)
        if self._threshold is not None:
            return agreement_of(highest_balance(scores, masses(places, self._signed, len(scores))))
        decided = most_probable(scores.T, logarithms=True)[places]
        return min(1.0, float(self._rows.weights[decided == self._rows.decisions].sum()))

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the highest agreement of the subset with each addition, which may be several features."""
        found = np.empty(len(additions))
        single = [i for i, unit in enumerate(additions) if len(unit) == 1]
        if single and isinstance(self._scores, AdditiveScores):
            found[single] = self._values_with_each(kept, [additions[i][0] for i in single], self._scores.weights)
        else:
            single = []
        for i in sorted(set(range(len(additions))) - set(single)):
            found[i] = self.value(sorted([*kept, *additions[i]]))
        return found

    def cut(self, kept: Sequence[int]) -> Cut | None:
        """Return the threshold interval with the highest agreement; None for the most probable class."""
        from scipy.special import expit

        if self._threshold is None:
            return None
        places, scores = self._decisive_cells(kept)
        log_odds, mass = capped(scores), masses(places, self._signed, len(scores))
        return best_cut(Instances(expit(log_odds), expit(-log_odds), mass), self._threshold)

    def _cells(self, kept: Sequence[int]) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the cell of each row, and the scores of each cell."""
        places, codes = cells_of(self._rows.codes, kept, self._scores.cardinalities)
        return places, self._scores.of_rows(kept, codes)

    def _decisive_cells(self, kept: Sequence[int]) -> tuple[NDArray[np.int64], FloatArray]:
        places, scores = self._cells(kept)
        return places, decisive(scores, self._scores.prior)

    def _values_with_each(
        self, kept: Sequence[int], features: Sequence[int], weights: Sequence[FloatArray]
    ) -> FloatArray | list[float]:
        places, scores = self._cells(kept)
        if self._columns is not None:
            balances = balances_with_each(self._columns, Cells.sorted(places, scores), features)
            return np.clip(0.5 * (1.0 + balances), 0.0, 1.0)
        prior = self._scores.prior
        agreed = (agreement_with(self._rows, i, weights[i], places, scores, prior) for i in features)
        return [min(1.0, value) for value in agreed]
