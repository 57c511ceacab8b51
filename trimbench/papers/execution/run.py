"""Run what is missing of a set of jobs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from trimbench.papers.execution.executors import Executor, n_workers
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.progress import Report, Work
from trimbench.papers.execution.remembered_arrays import read_earlier_arrays
from trimbench.papers.execution.store import JobStore, Record, Stamp
from trimbench.papers.execution.temporary import remove_temporary_folders

CACHE_MODES = ("default", "ignore", "only")


def run_jobs(
    jobs: Sequence[Job],
    store: JobStore,
    executor: Executor,
    *,
    cache_mode: str = "default",
    progress: bool = True,
    label: str = "",
    expected: Mapping[str, float] | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Return one record for each job, in order, after running those that are not stored; a repeated job runs once.

    Each record is stored the moment it arrives, so that stopping the program at any time loses only the jobs that were
    running. Programs that run jobs for the same store take turns; a record that another one wrote meanwhile is taken,
    success or failure. An OSError for a store that cannot be written is raised before the first job starts.

    Parameters
    ----------
    cache_mode : {"default", "ignore", "only"}
        "default": stored successes are taken and the rest runs, including earlier failures. "ignore": all jobs run
        again, and take no arrays that earlier runs kept. "only": nothing runs; a job gives its stored record, success
        or failure, or one with status "missing".
    progress : bool
        Whether to report on stderr: a bar on a terminal, else a line at the start, one at the end, and in between one
        every half minute.
    label : str
        What the report calls the jobs.
    expected : mapping from the key of a job to seconds, optional
        How long jobs will take on one processor, as far as it is known; the report then says how much time is left.
    on_record : function of a Record, optional
        Called in this thread with each record as soon as it is known: first with those that are stored, in order, then
        with the others as they arrive. What it raises ends the run.
    """
    if cache_mode not in CACHE_MODES:
        raise ValueError(f"cache_mode must be one of {', '.join(CACHE_MODES)}, got {cache_mode!r}")
    read_earlier_arrays(cache_mode != "ignore")
    wanted = {job.key: job for job in jobs}
    before = {key: store.stamp(job) for key, job in wanted.items()}
    records = _without_running(wanted, store, cache_mode)
    to_run = [job for key, job in wanted.items() if key not in records]
    work = Work([job.key for job in to_run], expected or {}, n_workers(executor))
    with closing(Report(label or "jobs", len(records), work, progress and cache_mode != "only")) as report:
        if on_record:
            for record in records.values():
                on_record(record)
        # Left by a program that was killed; an executor without workers makes none, so it would not look for them.
        remove_temporary_folders()
        if to_run:
            store.ensure_writable()
            with store.turn(report.wait):
                report.begin()
                tellers = (report.tell, on_record) if on_record else (report.tell,)
                records |= _run(to_run, before, store, executor, tellers)
    return [records[job.key] for job in jobs]


def _run(
    to_run: Sequence[Job],
    before: Mapping[str, Stamp],
    store: JobStore,
    executor: Executor,
    tellers: Sequence[Callable[[Record], object]],
) -> dict[str, Record]:
    """Run jobs, except those whose record has changed since `before`: another program ran them."""
    records: dict[str, Record] = {}

    def on_record(record: Record) -> None:
        if not record.cached:
            store.put(record)
        records[record.job.key] = record
        for tell in tellers:
            tell(record)

    for job in to_run:
        found = store.get(job) if store.stamp(job) != before[job.key] else None
        if found:
            on_record(replace(found, cached=True))
    mine = [job for job in to_run if job.key not in records]
    if mine:
        executor.run(mine, on_record)
    lost = [job.key for job in mine if job.key not in records]
    if lost:
        raise RuntimeError(f"executor must give a record for every job, got none for {len(lost)}: {lost[0]} ...")
    return records


def _without_running(wanted: Mapping[str, Job], store: JobStore, cache_mode: str) -> dict[str, Record]:
    """Return the records, by key, of the jobs that do not run in this cache mode."""
    if cache_mode == "ignore":
        return {}
    stored = {key: store.get(job) for key, job in wanted.items()}
    if cache_mode == "default":
        return {key: replace(found, cached=True) for key, found in stored.items() if found and found.ok}
    advice = "no stored result; run the job with cache_mode='default'"
    return {
        key: replace(found, cached=True) if found else Record(wanted[key], "missing", None, advice, 0.0, {})
        for key, found in stored.items()
    }
