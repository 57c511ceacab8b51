"""What jobs are expected to cost: the processor time of each, from stored records or from an earlier run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from statistics import fmean

from trimbench.papers.configuration import Catalogue
from trimbench.papers.execution.job import Job

GROUP = "cost"


def measured(catalogue: Catalogue, profile: str) -> dict[str, dict[str, float]]:
    """Return the mean seconds of a job by experiment and function, as an earlier run of the profile measured them.

    Empty for a profile that was never measured.
    """
    if profile not in catalogue.names(GROUP):
        return {}
    found = catalogue.mapping(GROUP, profile)
    return {name: {one: float(seconds) for one, seconds in costs.items()} for name, costs in found.items()}


def function_name(job: Job) -> str:
    """Return the name under which `measured` has the function of a job."""
    return job.function.rpartition(":")[2]


def expected_seconds(jobs: Iterable[Job], done: Mapping[str, float], typical: Mapping[str, float]) -> dict[str, float]:
    """Return the processor seconds that jobs are expected to take, by key, as far as there is a basis for it.

    Parameters
    ----------
    jobs : iterable of Job
        All jobs of an experiment, stored or not.
    done : mapping from key to seconds
        What those that are stored took. A job that is not stored takes the mean of those of the same function.
    typical : mapping from name of a function to seconds
        What a job takes if none of its function is stored: `measured`, for this experiment.
    """
    function_of = {job.key: function_name(job) for job in jobs}
    stored: dict[str, list[float]] = defaultdict(list)
    for key, function in function_of.items():
        if key in done:
            stored[function].append(done[key])
    means = {**typical, **{function: fmean(seconds) for function, seconds in stored.items()}}
    return {
        key: done.get(key, means[function]) for key, function in function_of.items() if key in done or function in means
    }


def total(keys: Collection[str], expected: Mapping[str, float]) -> float | None:
    """Add the expected seconds of some jobs; None if those of one are unknown."""
    return sum(expected[key] for key in keys) if all(key in expected for key in keys) else None


def wall_seconds(keys: Collection[str], expected: Mapping[str, float], n_workers: int) -> float | None:
    """Return how long so many workers are busy with some jobs; None if the cost of one is unknown.

    Two workers cannot share a job: the longest is a lower limit.
    """
    found = total(keys, expected)
    return None if found is None else max([found / n_workers, *(expected[key] for key in keys)])
