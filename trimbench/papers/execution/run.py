"""Run what is missing of a set of jobs, and show how far they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import JobStore, Record, Stamp, read_earlier_arrays
from trimbench.papers.execution.workers import Executor, Files, n_workers
from trimbench.papers.files import remove_temporary_folders, user_cache

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
    files: Files | None = None,
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
        How long jobs will take on one processor, where that is known; the report then says how much time is left.
    on_record : function of a Record, optional
        Called in this thread with each record as soon as it is known: first with those that are stored, in order, then
        with the others as they arrive. What it raises ends the run.
    files : mapping from the name of a file in a folder of the cache to its path, optional
        What the jobs read, which is sent to machines that have it not.
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
        remove_temporary_folders(user_cache() / "derived", "writing")
        if to_run:
            store.ensure_writable()
            with store.turn(report.wait):
                report.begin()
                tellers = (report.tell, on_record) if on_record else (report.tell,)
                records |= _run(to_run, before, store, executor, tellers, files)
    return [records[job.key] for job in jobs]


def _run(
    to_run: Sequence[Job],
    before: Mapping[str, Stamp],
    store: JobStore,
    executor: Executor,
    tellers: Sequence[Callable[[Record], object]],
    files: Files | None,
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
        executor.run(mine, on_record, files)
    lost = [job.key for job in mine if job.key not in records]
    if lost:
        raise RuntimeError(f"executor must give a record for every job, got none for {len(lost)}: {lost[0]} ...")
    return records


def _without_running(wanted: Mapping[str, Job], store: JobStore, cache_mode: str) -> dict[str, Record]:
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


# What a run says on stderr while its jobs run: how many have ended, and how long the rest will take.

# Without a terminal, one line of progress every so often, in seconds.
_LINE_SECONDS = 30.0


class Work:
    """The jobs that are to run, and how long the rest of them will take.

    `expected` has the seconds of jobs on one processor, by key; jobs that are not in it count like the mean of the
    others. Once jobs have ended, the time that they took corrects the expectation, or is it where there was none.
    """

    def __init__(self, keys: Sequence[str], expected: Mapping[str, float], n_workers: int) -> None:
        known = [expected[key] for key in keys if key in expected]
        mean = sum(known) / len(known) if known else 1.0
        self._left = {key: expected.get(key, mean) for key in keys}
        self._seconds = self._seconds_left = sum(self._left.values())
        # Wall time for one expected second; from experience as soon as there is some. Two workers cannot share a job.
        longest = max(self._left.values(), default=0.0) / (self._seconds or 1.0)
        self._rate = max(1 / n_workers, longest) if known else None
        self.size = len(keys)

    def end(self, key: str, elapsed: float) -> None:
        """Take note that a job has ended, `elapsed` seconds after the start."""
        if key not in self._left:
            return
        self._seconds_left -= self._left.pop(key)
        ended = self._seconds - self._seconds_left
        # One job in twenty is experience enough; the first ones also pay for the start of the workers.
        if ended and len(self._left) <= 0.95 * self.size:
            self._rate = elapsed / ended

    @property
    def seconds_left(self) -> float | None:
        """Wall time of the jobs that have not ended; None if nothing is known of them."""
        return None if self._rate is None else self._rate * max(self._seconds_left, 0.0)


class Report:
    """Reports the progress of jobs: by a bar on a terminal, else in lines."""

    def __init__(self, label: str, n_stored: int, work: Work, wanted: bool) -> None:
        from tqdm import tqdm

        on_terminal = sys.stderr.isatty()
        self._label, self._work, self._in_lines = label, work, wanted and not on_terminal
        self._n_done = self._n_failed = 0
        self._n_open = work.size
        self._started = self._said = time.perf_counter()
        self._say(f"{n_stored} stored, {work.size} to run{self._time_left()}")
        shown = wanted and on_terminal and work.size
        self._bar = tqdm(
            total=work.size,
            desc=f"{label}: ",
            unit="job",
            file=sys.stderr,
            dynamic_ncols=True,
            disable=not shown,
            bar_format="{desc}{percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt} jobs, {elapsed}{postfix}",
        )
        self._bar.set_postfix_str(self._time_left().removeprefix(", "))

    def begin(self) -> None:
        """Start the clock: it is this program's turn."""
        self._started = self._said = time.perf_counter()

    def tell(self, record: Record) -> None:
        """Count a record; the last one ends the report, before anything is said of the results."""
        self._n_open -= 1
        self._n_done += not record.cached  # another program ran those
        self._n_failed += not record.ok
        now = time.perf_counter()
        self._work.end(record.job.key, now - self._started)
        failed = f"{self._n_failed} failed" if self._n_failed else ""
        self._bar.set_description(self._label, refresh=False)
        self._bar.set_postfix_str(f"{failed}{self._time_left()}".removeprefix(", "), refresh=False)
        self._bar.update()
        if not self._n_open:
            self.close()
        elif now > self._said + _LINE_SECONDS:
            self._said = now
            self._say(f"{self._n_done} of {self._work.size} run, {self._n_failed} failed{self._time_left()}")

    def wait(self) -> None:
        """Say that another program has its turn."""
        self._say("waiting for another program that runs jobs for this folder of results")
        self._bar.set_description(f"{self._label} (waiting for another program)")

    def close(self) -> None:
        """End the bar, or say how the run went, unless that is done."""
        self._bar.close()
        if self._n_open >= 0 and self._work.size:
            self._n_open = -1
            seconds = time.perf_counter() - self._started
            self._say(f"{self._n_done} of {self._work.size} run in {seconds:.1f} s, {self._n_failed} failed")

    def _time_left(self) -> str:
        seconds = self._work.seconds_left
        return "" if seconds is None or seconds < 1 else f", about {duration(seconds)} left"

    def _say(self, text: str) -> None:
        if self._in_lines:
            sys.stderr.write(f"{self._label}: {text}\n")
            sys.stderr.flush()


def duration(seconds: float | None) -> str:
    """Return a time in seconds, minutes or hours, with two digits; a dash if it is unknown."""
    if seconds is None:
        return "–"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 9.5 or not seconds else f"{seconds:.1g} s"
