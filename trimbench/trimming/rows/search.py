"""Search for the subset of the highest agreement on weighted rows: every subset, or greedy and exchanges."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np

from trimbench.trimming.costs import Choice, highest_cost
from trimbench.trimming.rows.objective import Objective

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

    `may_go_on` is asked before each step, with the number of evaluations so far; once it returns False, the best subset
    so far is returned.
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
