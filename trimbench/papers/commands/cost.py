"""How much processor time the jobs of an experiment that are still to run will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from trimbench.papers.configuration import Catalogue
from trimbench.papers.execution.store import Record

GROUP = "cost"


def measured(catalogue: Catalogue, profile: str) -> Mapping[str, float]:
    """Return the mean seconds of one job of each experiment, measured by an earlier run of the profile, if any."""
    if profile not in catalogue.names(GROUP):
        return {}
    return {name: float(seconds) for name, seconds in catalogue.mapping(GROUP, profile).items()}


def estimate(records: Sequence[Record | None], typical: float | None) -> float | None:
    """Estimate the processor time, in seconds, of the jobs without a stored success; None if there is no basis for it.

    While no job of this run is stored, it is taken from `typical`, the seconds of one job in an earlier run.
    """
    done = [record.seconds for record in records if record is not None and record.ok]
    n_to_run = len(records) - len(done)
    per_job = fmean(done) if done else typical
    if not n_to_run:
        return 0.0
    return None if per_job is None else n_to_run * per_job
