"""What limits a search: its time, evaluations and threads, and the costs, groups and budget of what it chooses."""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trimbench._numba import clock
from trimbench.networks.costs import checked_costs as checked_costs
from trimbench.networks.costs import checked_groups, feature_indices, is_real_number

if TYPE_CHECKING:
    import pandas as pd

# What a node of a search does with a unit: nothing yet, keep it, remove it.
FREE, KEPT, REMOVED = 0, 1, 2

# This many seconds or more are no limit.
_FOREVER = 2**31
# Seconds between two reports of progress.
_PAUSE = 0.1


@dataclass(frozen=True)
class Progress:
    """How far a search has come.

    Attributes
    ----------
    agreement : float
        Of the best trimming so far; 0 before there is one.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    n_evaluations : int
        Evaluations of the criterion so far.
    seconds : float
        Since the search began.
    """

    agreement: float
    upper_bound: float
    n_evaluations: int
    seconds: float


class PieceExecutor(Protocol):
    """Runs the pieces of a proof: an executor of `concurrent.futures`, or anything else with this method."""

    def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
        """Run a function, which may be pickled, with some bytes; the future raises an error if that is lost."""


class Limits:
    """The limits of one search; its clock starts when they are made, and stands still while kernels are loaded.

    Parameters
    ----------
    time_limit, evaluation_limit, n_jobs, progress, executor
        As in `trim`.

    Raises
    ------
    ValueError
        When a limit is not a positive number, `progress` cannot be called, or `executor` submits nothing.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        evaluation_limit: int | None = None,
        *,
        n_jobs: int = 1,
        progress: Callable[[Progress], object] | None = None,
        executor: PieceExecutor | None = None,
    ) -> None:
        if time_limit is not None and (
            isinstance(time_limit, bool) or not isinstance(time_limit, int | float | np.number) or not time_limit > 0
        ):
            raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
        if evaluation_limit is not None and not _is_count(evaluation_limit):
            raise ValueError(f"evaluation_limit must be a whole number, 1 or more, or None, got {evaluation_limit!r}")
        if not _is_count(n_jobs):
            raise ValueError(f"n_jobs must be a number of threads or processes, 1 or more, got {n_jobs!r}")
        if progress is not None and not callable(progress):
            raise ValueError(f"progress must be a function that takes a Progress, or None, got {progress!r}")
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise ValueError(
                "executor must have a method submit, as those of concurrent.futures have, or be None, got "
                f"{str(executor)[:80]!r}; n_jobs alone starts processes on this machine"
            )
        self.time_limit = None if time_limit is None or time_limit >= _FOREVER else float(time_limit)
        self.n_jobs = int(n_jobs)
        self.executor = executor
        self.evaluation_limit = evaluation_limit
        self._evaluation_limit = math.inf if evaluation_limit is None else evaluation_limit
        self._progress = progress
        self._start = clock()
        self._deadline = math.inf if self.time_limit is None else self._start + self.time_limit
        self._reported = -math.inf

    def in_time(self, seconds: float = 0.0) -> bool:
        """Return whether there is time left for something that takes `seconds`."""
        return math.isinf(self._deadline) or clock() + seconds < self._deadline

    def allows(self, n_evaluations: int) -> bool:
        """Return whether this total number of evaluations is allowed."""
        return n_evaluations <= self._evaluation_limit

    def evaluations_left(self, n_evaluations: int) -> float:
        """Return how many evaluations a search may make after this many."""
        return self._evaluation_limit - n_evaluations

    def may_go_on(self, n_evaluations: int) -> bool:
        """Return whether a search may make another evaluation after this many."""
        return n_evaluations < self._evaluation_limit and self.in_time()

    def seconds_left(self) -> float | None:
        """Return the seconds that are left, more than 0; None without a time limit."""
        return None if math.isinf(self._deadline) else max(self._deadline - clock(), 1e-9)

    def part(self, share: float) -> Limits:
        """Return limits with this share of the time that is left; they report no progress."""
        left = self.seconds_left()
        seconds = None if left is None else share * left
        return Limits(seconds, self.evaluation_limit, n_jobs=self.n_jobs, executor=self.executor)

    def ending_earlier(self, seconds: float) -> Limits:
        """Return limits that leave these seconds, but at most half of the time left, for what follows."""
        left = self.seconds_left()
        if left is None:
            return self
        earlier = copy.copy(self)
        earlier._deadline -= min(seconds, 0.5 * left)
        return earlier

    def up_to(self, n_evaluations: int) -> Limits:
        """Return limits with at most this many evaluations."""
        fewer = copy.copy(self)
        fewer._evaluation_limit = min(self._evaluation_limit, n_evaluations)
        return fewer

    def report(
        self, agreement: float, upper_bound: Callable[[], float], n_evaluations: int, *, last: bool = False
    ) -> None:
        """Report progress, unless the last report was a moment ago."""
        if self._progress is None:
            return
        now = clock()
        if last or now >= self._reported + _PAUSE:
            self._reported = now
            self._progress(Progress(max(agreement, 0.0), upper_bound(), n_evaluations, now - self._start))


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


# What features cost, which are bought together, and the budget for what is bought.

# Costs and budgets are decimal fractions to their users: 0.1 + 0.2 fits into 0.3.
_TOLERANCE = 1e-9


def is_affordable(costs: Iterable[float], budget: float) -> bool:
    """Return whether the costs add up to at most the budget, apart from rounding."""
    return math.fsum(costs) <= highest_cost(budget)


def highest_cost(budget: float) -> float:
    """Return the highest sum of costs that fits into the budget, apart from rounding."""
    return budget * (1 + _TOLERANCE)


@dataclass(frozen=True)
class Choice:
    """Which feature subsets are allowed: units that are bought whole, their costs, and the budget.

    Attributes
    ----------
    units : tuple of tuples of int
        Positions of the features of each unit. Each feature that is not forbidden is in exactly one unit.
    costs : tuple of float
        Cost of each unit, 0 or more.
    budget : float
        Largest sum of costs.
    required : frozenset of int
        Positions of the features that every allowed subset has.
    forbidden : tuple of int
        Positions of the features that no allowed subset has.
    """

    units: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    budget: float
    required: frozenset[int] = frozenset()
    forbidden: tuple[int, ...] = ()

    @cached_property
    def unit_of(self) -> dict[int, int]:
        """Position of the unit of each feature that is not forbidden."""
        return {feature: place for place, unit in enumerate(self.units) for feature in unit}

    @property
    def required_units(self) -> frozenset[int]:
        """Positions of the units that are always bought."""
        return frozenset(self.unit_of[feature] for feature in self.required)

    def cost(self, features: Iterable[int]) -> float:
        """Return the cost of a feature subset: the sum over all units of which it contains a feature."""
        return math.fsum(self.costs[unit] for unit in {self.unit_of[feature] for feature in features})

    def is_affordable(self, features: Iterable[int]) -> bool:
        """Return whether a feature subset is within the budget."""
        return self.cost(features) <= highest_cost(self.budget)

    def open_units(self, bought: Collection[int]) -> list[int]:
        """Return the units that can still be afforded, in order."""
        left = highest_cost(self.budget) - math.fsum(self.costs[unit] for unit in bought)
        return [unit for unit, cost in enumerate(self.costs) if unit not in bought and cost <= left]

    def n_affordable(self, units: Iterable[int]) -> int:
        """Return how many of some units can be afforded at most."""
        cheapest = sorted(self.costs[unit] for unit in units)
        # The exact sum of the n cheapest grows with n.
        sizes = range(1, len(cheapest) + 1)
        return bisect.bisect_left(sizes, True, key=lambda n: not is_affordable(cheapest[:n], self.budget))

    def highest_gain(self, gains: Sequence[float]) -> float:
        """Return the highest sum of the gains of features within the budget if one unit may be bought in part."""
        left = max(0.0, highest_cost(self.budget) - math.fsum(self.costs[unit] for unit in self.required_units))
        items = []
        for unit, members in enumerate(self.units):
            gain, cost = sum(gains[i] for i in members), 0.0 if unit in self.required_units else self.costs[unit]
            items.append((-gain / cost if cost > 0 else -math.inf, cost, gain))
        total = 0.0
        # What costs nothing comes first: it is always bought.
        for _, cost, gain in sorted(items, key=lambda item: item[:2]):
            if cost > left:
                return total + (gain * left / cost if left > 0 and gain > 0 else 0.0)
            total, left = total + gain, left - cost
        return total

    def filled(self, units: Iterable[int], order: Iterable[int]) -> tuple[int, ...]:
        """Return some units and, while the budget lasts, more of them in the given order."""
        chosen = list(units)
        spent = [self.costs[unit] for unit in chosen]
        for unit in order:
            if unit not in chosen and is_affordable([*spent, self.costs[unit]], self.budget):
                chosen.append(unit)
                spent.append(self.costs[unit])
        return tuple(chosen)

    def features(self, units: Iterable[int]) -> tuple[int, ...]:
        """Return the features of some units, in the order of the classifier."""
        return tuple(sorted(feature for unit in units for feature in self.units[unit]))


def checked_choice(
    features: Sequence[str],
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    required: Sequence[str] | None = None,
    forbidden: Sequence[str] | None = None,
) -> Choice:
    """Return which subsets of the features are allowed.

    Parameters
    ----------
    features : sequence of str
        All features of the classifier.
    budget, costs, groups, required, forbidden
        As in `trim`.

    Raises
    ------
    ValueError
        When an argument is out of range, a feature or group is unknown, or what is required is not affordable.
    """
    grouped = checked_groups(features, groups)
    barred = feature_indices(features, () if forbidden is None else forbidden, what="forbidden")
    wanted = feature_indices(features, () if required is None else required, what="required")
    for place in wanted:
        if place in barred:
            raise ValueError(f"required and forbidden must not share a feature, got {features[place]!r} in both")
    in_group = {place for members in grouped.values() for place in members}
    names = [*grouped, *(name for place, name in enumerate(features) if place not in in_group)]
    members = [*grouped.values(), *((place,) for place in range(len(features)) if place not in in_group)]
    price = checked_costs(names, costs, grouped=bool(grouped))
    # A group whose features are all forbidden is never bought.
    gone = set(barred)
    units = [tuple(place for place in unit if place not in gone) for unit in members]
    kept = [i for i, unit in enumerate(units) if unit]
    choice = Choice(
        tuple(units[i] for i in kept), tuple(price[i] for i in kept), checked_budget(budget), frozenset(wanted), barred
    )
    if not choice.is_affordable(wanted):
        raise ValueError(
            f"budget must be at least the cost of what is required, {choice.cost(wanted):g}, got {budget!r}; "
            "raise the budget or require fewer features"
        )
    return choice


def checked_budget(budget: float) -> float:
    """Return `budget` as a float; raise ValueError if it is negative or not a number."""
    if not is_real_number(budget) or not budget >= 0:
        raise ValueError(f"budget must be a number >= 0, got {budget!r}; 0 keeps only features that cost nothing")
    try:
        return float(budget)
    except OverflowError:
        return math.inf
