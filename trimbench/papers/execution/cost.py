"""What jobs cost: the processor time that each is expected to take, and how long all of them will run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from trimbench.papers.configuration import Catalogue
from trimbench.papers.execution.job import Job

GROUP = "cost"
# How much of the expected cost must have run before what it took counts as much as what was expected.
_TRUST = 0.1


def measured(catalogue: Catalogue, profile: str) -> dict[str, dict[str, float]]:
    """Return the mean seconds of a job by experiment and function, as an earlier run of the profile measured them.

    Empty for a profile that was never measured.
    """
    if profile not in catalogue.names(GROUP):
        return {}
    found = catalogue.mapping(GROUP, profile)
    return {name: {one: float(seconds) for one, seconds in costs.items()} for name, costs in found.items()}


def function_name(job: Job) -> str:
    """Return the name by which the costs of an experiment list the function of a job."""
    return job.function.rpartition(":")[2]


def expected_seconds(
    jobs: Iterable[Job], done: Mapping[str, float], typical: Mapping[str, float]
) -> dict[str, float | None]:
    """Return the processor seconds that each job which is still to run is expected to take, by key.

    None where there is no basis for it.

    Parameters
    ----------
    jobs : iterable of Job
        All jobs of an experiment, stored or not.
    done : mapping from key to seconds
        The stored successes among them. A job is expected to take what those of the same function took.
    typical : mapping from name of a function to seconds
        What a job takes where none of its function is stored: `measured` for this experiment.
    """
    found = {job.key: job for job in jobs}
    by_function: dict[str, list[float]] = defaultdict(list)
    for key, job in found.items():
        if key in done:
            by_function[job.function].append(done[key])
    means = {function: fmean(seconds) for function, seconds in by_function.items()}
    return {
        key: means.get(job.function, typical.get(function_name(job))) for key, job in found.items() if key not in done
    }


def total(expected: Collection[float | None]) -> float | None:
    """Add expected seconds; None if one of them is unknown."""
    known = [seconds for seconds in expected if seconds is not None]
    return sum(known) if len(known) == len(expected) else None


def wall_seconds(expected: Collection[float | None], n_workers: int) -> float | None:
    """Return how long workers are busy with jobs that take these processor seconds; None if one of them is unknown.

    No job is shared by two workers, so that the longest is a lower limit.
    """
    found = total(expected)
    return None if found is None else max([found / n_workers, *(seconds or 0.0 for seconds in expected)])


def longest_first(jobs: Sequence[Job], expected: Mapping[str, float | None]) -> list[Job]:
    """Return jobs in the order in which workers end at about the same time; those of equal or unknown cost stay."""
    return sorted(jobs, key=lambda job: -(expected.get(job.key) or 0.0))


class Forecast:
    """How long the jobs of a run take, told anew with each that ends.

    Jobs without an expectation count like the average of the others. The more of the expected cost has run, the more
    the time that it took decides about the rest: this machine may be slower than the one that was measured.

    Parameters
    ----------
    expected : mapping from key to seconds, or None
        The jobs that are to run.
    n_workers : int
        How many run at the same time.
    """

    def __init__(self, expected: Mapping[str, float | None], n_workers: int) -> None:
        self._rest = dict(expected)
        self._n_workers = n_workers
        known = [seconds for seconds in expected.values() if seconds is not None]
        self._average = fmean(known) if known else None
        self._whole = (self._average or 0.0) * len(expected)
        self._expected_so_far = self._taken = 0.0
        self._n_ended = 0

    def note(self, key: str, seconds: float) -> None:
        """Note that a job has ended, after so many seconds."""
        expected = self._rest.pop(key, 0.0)
        self._expected_so_far += self._or_average(expected)
        self._taken += seconds
        self._n_ended += 1

    def drop(self, key: str) -> None:
        """Note that a job need not run, because another program ran it."""
        self._rest.pop(key, None)

    def seconds_left(self) -> float | None:
        """Return for how long the workers are still busy; None if nothing is known of the jobs."""
        if not self._rest:
            return 0.0
        if self._average is None:
            if not self._n_ended:
                return None
            costs = [self._taken / self._n_ended] * len(self._rest)
        else:
            prior = _TRUST * self._whole
            pace = (self._taken + prior) / (self._expected_so_far + prior) if prior else 1.0
            costs = [pace * self._or_average(seconds) for seconds in self._rest.values()]
        return wall_seconds(costs, self._n_workers)

    def _or_average(self, seconds: float | None) -> float:
        return (self._average or 0.0) if seconds is None else seconds


def duration(seconds: float | None) -> str:
    """Return a time in seconds, minutes or hours, with two digits; a dash if it is unknown."""
    if seconds is None:
        return "–"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or not seconds else f"{seconds:.1g} s"
