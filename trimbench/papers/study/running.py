"""Run the jobs of experiments as one set, and conclude each experiment when its last job has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import Record
from trimbench.papers.study.planning import Plan, Surroundings


def run_plans(
    plans: Sequence[Plan],
    where: Surroundings,
    conclude: Callable[[Plan, Mapping[str, Record]], None],
    *,
    label: str,
    expected: Mapping[str, float] | None = None,
) -> None:
    """Run the jobs of several experiments that are not stored, as one set: no worker waits for the end of another's.

    `conclude` is called with each plan and the records of its jobs, by key, as soon as the last of them is known; while
    it works, the workers go on. `label` names the whole in the report of its progress, and `expected` has the seconds
    that jobs are expected to take, by key.
    """
    records: dict[str, Record] = {}
    open_keys = [{job.key for job in plan.jobs} for plan in plans]
    waiting: dict[str, list[int]] = {}
    for place, keys in enumerate(open_keys):
        for key in keys:
            waiting.setdefault(key, []).append(place)

    def on_record(record: Record) -> None:
        records[record.job.key] = record
        for place in waiting[record.job.key]:
            open_keys[place].discard(record.job.key)
            if not open_keys[place]:
                conclude(plans[place], records)

    for plan in plans:
        if not plan.jobs:
            conclude(plan, records)
    run_jobs(
        [job for plan in plans for job in plan.jobs],
        where.store,
        where.executor,
        cache_mode=where.cache_mode,
        label=label,
        expected=expected,
        on_record=on_record,
    )
