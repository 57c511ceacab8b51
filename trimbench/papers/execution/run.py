"""Run what is missing of a set of jobs."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from trimbench.papers.execution.executors import Executor
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import JobStore, Record, Stamp

CACHE_MODES = ("default", "ignore", "only")


def run_jobs(
    jobs: Sequence[Job],
    store: JobStore,
    executor: Executor,
    *,
    cache_mode: str = "default",
    progress: bool = True,
    label: str = "",
) -> list[Record]:
    """Return one record for each job, in order, after running those that are not stored; a repeated job runs once.

    Each record is stored the moment it arrives, so that stopping the program at any time loses only the jobs that were
    running. Programs that run jobs for the same store take turns; a record that another one wrote meanwhile is taken,
    success or failure. An OSError for a store that cannot be written is raised before the first job starts.

    Parameters
    ----------
    cache_mode : {"default", "ignore", "only"}
        "default": stored successes are taken and the rest runs, including earlier failures. "ignore": all jobs run
        again. "only": nothing runs; a job gives its stored record, success or failure, or one with status "missing".
    progress : bool
        Whether to report on stderr: a bar on a terminal, else one line at the start and one at the end.
    label : str
        What the report calls the jobs.
    """
    if cache_mode not in CACHE_MODES:
        raise ValueError(f"cache_mode must be one of {', '.join(CACHE_MODES)}, got {cache_mode!r}")
    wanted = {job.key: job for job in jobs}
    before = {key: store.stamp(job) for key, job in wanted.items()}
    records = _without_running(wanted, store, cache_mode)
    to_run = [job for key, job in wanted.items() if key not in records]
    with closing(_Report(label or "jobs", len(records), len(to_run), progress and cache_mode != "only")) as report:
        if to_run:
            store.ensure_writable()
            with store.turn(report.wait):
                report.begin()
                records |= _run(to_run, before, store, executor, report)
    return [records[job.key] for job in jobs]


def _run(
    to_run: Sequence[Job], before: Mapping[str, Stamp], store: JobStore, executor: Executor, report: "_Report"
) -> dict[str, Record]:
    """Run jobs, except those whose record has changed since `before`: another program ran them."""
    records: dict[str, Record] = {}

    def on_record(record: Record) -> None:
        if not record.cached:
            store.put(record)
        records[record.job.key] = record
        report.tell(record)

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


class _Report:
    """What a run says on stderr: a bar on a terminal, else lines."""

    def __init__(self, label: str, n_stored: int, n_to_run: int, wanted: bool) -> None:
        from tqdm import tqdm

        on_terminal = sys.stderr.isatty()
        self._label, self._n_to_run, self._in_lines = label, n_to_run, wanted and not on_terminal
        self._n_done = self._n_failed = 0
        self._started = time.perf_counter()
        self._say(f"{n_stored} stored, {n_to_run} to run")
        shown = wanted and on_terminal and n_to_run
        self._bar = tqdm(total=n_to_run, desc=label, unit="job", file=sys.stderr, dynamic_ncols=True, disable=not shown)

    def begin(self) -> None:
        """Start the clock: it is this program's turn."""
        self._started = time.perf_counter()

    def tell(self, record: Record) -> None:
        """Count a record."""
        self._n_done += not record.cached  # another program ran those
        self._n_failed += not record.ok
        self._bar.set_description(self._label, refresh=False)
        self._bar.set_postfix(failed=self._n_failed, refresh=False)
        self._bar.update()

    def wait(self) -> None:
        """Say that another program has its turn."""
        self._say("waiting for another program that runs jobs for this folder of results")
        self._bar.set_description(f"{self._label} (waiting for another program)")

    def close(self) -> None:
        """End the bar, or say how the run went."""
        self._bar.close()
        if self._n_to_run:
            seconds = time.perf_counter() - self._started
            self._say(f"{self._n_done} of {self._n_to_run} run in {seconds:.1f} s, {self._n_failed} failed")

    def _say(self, text: str) -> None:
        if self._in_lines:
            sys.stderr.write(f"{self._label}: {text}\n")
            sys.stderr.flush()
