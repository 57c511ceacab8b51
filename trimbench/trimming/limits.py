"""When a search has to stop, how many threads it has, and who hears of its progress."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trimbench._numba import clock

# What a node of a search does with a unit: nothing yet, keep it, remove it.
FREE, KEPT, REMOVED = 0, 1, 2

# Seconds between two reports of progress.
_PAUSE = 0.1


@dataclass(frozen=True)
class Progress:
    """How far a search is.

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


class Limits:
    """The limits of one search; its time begins when they are made, and stands still while kernels are loaded.

    Parameters
    ----------
    time_limit, evaluation_limit, n_jobs, progress
        As in `trim`.

    Raises
    ------
    ValueError
        When a limit is not a positive number, or `progress` cannot be called.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        evaluation_limit: int | None = None,
        *,
        n_jobs: int = 1,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        if time_limit is not None and (
            isinstance(time_limit, bool) or not isinstance(time_limit, int | float | np.number) or not time_limit > 0
        ):
            raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
        if evaluation_limit is not None and not _is_count(evaluation_limit):
            raise ValueError(f"evaluation_limit must be a whole number, 1 or more, or None, got {evaluation_limit!r}")
        if not _is_count(n_jobs):
            raise ValueError(f"n_jobs must be a number of threads, 1 or more, got {n_jobs!r}")
        if progress is not None and not callable(progress):
            raise ValueError(f"progress must be a function that takes a Progress, or None, got {progress!r}")
        self.time_limit = time_limit
        self.n_jobs = int(n_jobs)
        self.evaluation_limit = evaluation_limit
        self._evaluation_limit = math.inf if evaluation_limit is None else evaluation_limit
        self._progress = progress
        self._start = clock()
        self._deadline = math.inf if time_limit is None else self._start + float(time_limit)
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
        """Return limits whose time ends when this share of what is left is over; its reports go nowhere."""
        left = self.seconds_left()
        return Limits(None if left is None else share * left, self.evaluation_limit, n_jobs=self.n_jobs)

    def ending_earlier(self, seconds: float) -> Limits:
        """Return limits that leave these seconds, but at most half of the time, for what follows."""
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
