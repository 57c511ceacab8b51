"""Run the jobs of a set that are missing, and show progress; what all executors share, and the serial one."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from trimbench.reproduction.data.errors import DataUnavailable, FactsMismatch
from trimbench.reproduction.execution.code_hash import code_version, resolve
from trimbench.reproduction.execution.job import LOG_BYTES, Job, JobLimits, run_job_function, size_in_bytes
from trimbench.reproduction.execution.provenance import provenance_of, usable_cpus
from trimbench.reproduction.execution.store import JobStore, Record, Stamp, read_earlier_arrays
from trimbench.reproduction.files import remove_temporary_folders, user_cache, without_homes
from trimbench.reproduction.messages import controllable, visible
from trimbench.reproduction.settings import Json, settings, unknown, validated
from trimbench.reproduction.world import world

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
        again, without the arrays that earlier runs kept. "only": nothing runs; a job has its stored record, success or
        failure, or one with status "missing".
    progress : bool
        Whether to report on stderr: a bar on a terminal, otherwise a line at the start, one at the end, and one every
        half minute in between.
    label : str
        How the report calls the jobs.
    expected : mapping from the key of a job to seconds, optional
        How long jobs will take on one processor, where that is known; the report then says how much time is left.
    on_record : function of a Record, optional
        Called in this thread with each record as soon as it is known: first with those that are stored, in order, then
        with the others as they arrive. If it raises, the run ends.
    files : mapping from the name of a file in a folder of the cache to its path, optional
        What the jobs read; it is sent to machines that do not have it.
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
        # Left by programs that were killed; an executor without workers makes none, so it would never remove them.
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

# Without a terminal, the seconds between two lines of progress.
_LINE_SECONDS = 30.0


class Work:
    """The jobs that are to run, and how long the rest of them will take.

    `expected` has the seconds of jobs on one processor, by key; jobs that are not in it are taken to need the mean of
    the others. Once jobs have ended, the time that they took corrects the expectation, or replaces a missing one.
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
        label = visible(label)
        self._label, self._work, self._in_lines = label, work, wanted and not on_terminal
        self._n_done = self._n_failed = 0
        self._n_open = work.size
        self._started = self._said = world().seconds()
        self._say(f"{n_stored} stored, {work.size} to run{self._time_left()}")
        shown = wanted and on_terminal and work.size
        self._bar = tqdm(
            total=work.size,
            desc=f"{label}: ",
            unit="job",
            file=controllable(sys.stderr),
            dynamic_ncols=True,
            disable=not shown,
            bar_format="{desc}{percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt} jobs, {elapsed}{postfix}",
        )
        self._bar.set_postfix_str(self._time_left().removeprefix(", "))

    def begin(self) -> None:
        """Start the clock: it is this program's turn."""
        self._started = self._said = world().seconds()

    def tell(self, record: Record) -> None:
        """Count a record; the last one ends the report, before anything is said of the results."""
        self._n_open -= 1
        self._n_done += not record.cached  # another program ran those
        self._n_failed += not record.ok
        now = world().seconds()
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
        """End the bar, or say how the run went, unless that has been done."""
        self._bar.close()
        if self._n_open >= 0 and self._work.size:
            self._n_open = -1
            seconds = world().seconds() - self._started
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


# What all executors share: jobs in this process, the choice by configuration.

OnRecord = Callable[[Record], None]
Files = Mapping[str, Path]

_ROOM = __package__
# The only classes that a configuration can name: a file from elsewhere must not make the program call anything else.
TARGETS = (
    f"{_ROOM}.executors.SerialExecutor",
    f"{_ROOM}.processes.ProcessExecutor",
    f"{_ROOM}.ray_executor.RayExecutor",
    f"{_ROOM}.slurm_executor.SlurmExecutor",
)


class ExecutorError(RuntimeError):
    """The executor itself cannot run jobs here: there is no cluster, or workers die before they finish a job."""


class Executor(Protocol):
    """Runs jobs and hands over one record for each."""

    def run(self, jobs: Sequence[Job], on_record: OnRecord, files: Files | None = None) -> None:
        """Run all jobs and call `on_record` in this thread with each record as soon as there is one.

        `files` are those that the jobs read, by their names in a folder of the cache, for machines without them.

        Whatever a job does, nothing is raised here, except ExecutorError if no job can run. An exception from
        `on_record` ends the run, and so does Ctrl-C: the workers are killed, and the records of finished jobs have
        already been handed over.
        """
        ...


@settings
class WorkerSettings:
    """The options that all executors have.

    `workers` jobs run at the same time, by default one for each processor. One job may run for `timeout` seconds and
    hold as much `memory`, for example ``"4GB"``, in its worker and the processes that it starts; by default there is no
    limit.
    """

    workers: int | None = None
    timeout: float | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be a positive int or null, got {self.workers!r}; null takes all processors")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout must be positive seconds or null, got {self.timeout!r}; null sets no limit")
        _ = self.limits

    @property
    def limits(self) -> JobLimits:
        """What one job may take."""
        return JobLimits(self.timeout, None if self.memory is None else size_in_bytes(self.memory))


@settings
class SerialExecutor(WorkerSettings):
    """Runs the jobs one after another in this process: for debugging, and for jobs of a millisecond.

    It can neither limit the time and memory of a job nor survive one that kills the process. It has the options of
    other executors only to refuse them with a helpful message.
    """

    def __post_init__(self) -> None:
        if self.workers not in (None, 1):
            raise ValueError(
                f"workers must be None or 1 for the serial executor, got {self.workers!r}; use executor=processes"
            )
        for name, value in (("timeout", self.timeout), ("memory", self.memory)):
            if value is not None:
                raise ValueError(
                    f"{name} must be None for the serial executor, which cannot stop a job, got {value!r}; "
                    "use executor=processes"
                )

    def run(self, jobs: Sequence[Job], on_record: OnRecord, files: Files | None = None) -> None:
        """Run all jobs in the given order, as described in `Executor.run`, each with one thread as in a worker."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            for job in jobs:
                on_record(execute(job))


def n_workers(executor: Executor) -> int:
    """Return how many jobs an executor runs at the same time, by its settings."""
    if isinstance(executor, SerialExecutor) or not isinstance(executor, WorkerSettings):
        return 1
    return executor.workers or usable_cpus()


def executor_of(values: Mapping[str, Json]) -> Executor:
    """Make the executor that a configuration describes: ``_target_``, one of `TARGETS`, and options for that class.

    Raises ConfigurationError if the target is not allowed, or an option is unknown or not valid.
    """
    from hydra.utils import get_class

    options = dict(values)
    target = str(options.pop("_target_", None))
    if target not in TARGETS:
        raise unknown("executor: _target_", TARGETS, target)
    executor: Executor = validated(get_class(target), options, "executor")
    return executor


# What happens around one job, in a worker process or in the calling one.

_TRACEBACK_FRAMES = 5
TRACEBACK_CHARACTERS = 4000

# How a job fails for want of data, disk, memory or an import, on one machine and not on another.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM)
# SQLite and NumPy report it in words alone.
_FULL_DISK = re.compile(r"database or disk is full|\d+ requested and \d+ written")
_NO_DATA = (DataUnavailable, FactsMismatch, FileNotFoundError, PermissionError)
_LACKING = (*_NO_DATA, MemoryError, ImportError)


def execute(job: Job) -> Record:
    """Run one job in this process; its record is "ok" or "failed". Ctrl-C ends the program, not only the job."""
    said = BoundedText()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        record = attempt(job, (Exception, SystemExit))
    return replace(record, log=without_homes(said.shortened()))


def attempt(job: Job, caught: tuple[type[BaseException], ...]) -> Record:
    """Run one job; an exception of these types is its failure. Importing its module does not count towards its time."""
    started = world().seconds()
    try:
        # Python shows a warning once for each place in the code; in this block, it does so once in each job.
        with warnings.catch_warnings():
            resolve(job.function)
            code_version(job.function)
            started = world().seconds()
            result = run_job_function(job)
    except caught as error:  # a failing job is a row of the report, whatever it raised
        return failure(job, "failed", describe(error), world().seconds() - started, lacking=is_lacking(error))
    return Record(job, "ok", result, None, world().seconds() - started, provenance_of(job))


def failure(job: Job, status: str, error: str, seconds: float, log: str = "", *, lacking: bool = False) -> Record:
    """Make the record of a job without a result; home folders are taken out of its texts."""
    return Record(job, status, None, without_homes(error), seconds, provenance_of(job), without_homes(log), lacking)


def is_lacking(error: BaseException | None) -> bool:
    """Tell whether an error, or one behind it, says that this machine lacks what another may have."""
    if isinstance(error, _LACKING) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return True
    said = "".join(traceback.format_exception_only(error))
    return error is not None and (bool(_FULL_DISK.search(said)) or is_lacking(error.__cause__))


def describe(error: BaseException) -> str:
    """Return the traceback of an exception as text, cut to its last frames and to a length that fits a table.

    Text survives where the exception itself does not: many exceptions cannot be pickled or unpickled.
    """
    text = "".join(traceback.format_exception(error, limit=-_TRACEBACK_FRAMES)).strip()
    text = visible(text)
    return text if len(text) <= TRACEBACK_CHARACTERS else f"...{text[-TRACEBACK_CHARACTERS:]}"


# What a job writes, kept in a file as it is written, so that it outlives a worker that is killed.

_OUT, _ERR = 1, 2
_CUT = "\n[... {} bytes are cut here: of a log, the first and last {} MB are kept ...]\n"
# Characters, with a line that says what was cut.
LONGEST_LOG = LOG_BYTES + 1000
_CUT_BEFORE = re.compile(rb"\n\[\.\.\. (\d+) bytes are cut here: [^\]]*\]\n")


@contextmanager
def written_to(path: Path) -> Iterator[None]:
    """Send what this process and its children write to standard output and error into a file, without a buffer.

    The file descriptors are redirected, not only the streams of Python, so that C code, child processes and log
    handlers that hold an earlier stream are caught too.
    """
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    streams = sys.stdout, sys.stderr
    _flush()
    before = os.dup(_OUT), os.dup(_ERR)
    try:
        os.dup2(target, _OUT)
        os.dup2(target, _ERR)
        sys.stdout, sys.stderr = _unbuffered(_OUT), _unbuffered(_ERR)
        yield
    finally:
        _flush()
        sys.stdout, sys.stderr = streams
        for old, descriptor in zip(before, (_OUT, _ERR), strict=True):
            os.dup2(old, descriptor)
            os.close(old)
        os.close(target)


def take(path: Path) -> str:
    """Return what was written to a file, without the middle if it is long, and remove it; empty if there is none."""
    try:
        shorten_file(path, LOG_BYTES)
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
        path.unlink()
    except FileNotFoundError:
        return ""
    # Each byte that is not text has become four characters.
    return text if len(text := visible(text)) <= LONGEST_LOG else _shortened(text)


def shorten_file(path: Path, longest: int) -> None:
    """Cut the middle out of a file that is longer than a limit in bytes, even while a job appends to it."""
    half = LOG_BYTES // 2
    with path.open("r+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if size <= max(longest, 2 * half):
            return
        stream.seek(half)
        before = _CUT_BEFORE.match(stream.read(200))
        stream.seek(size - half)
        tail = stream.read()[-half:]
        n_read = stream.tell()
        n_cut = n_read - half - len(tail) + (int(before[1]) - len(before[0]) if before else 0)
        stream.seek(half)
        stream.write(_CUT.format(n_cut, half // 10**6).encode() + tail)
        end = stream.tell()
        # The job goes on writing at the end of the file: what it wrote meanwhile moves up before the rest is cut.
        stream.seek(n_read)
        while end < n_read and (more := stream.read()):
            n_read, end = stream.tell(), end + os.pwrite(stream.fileno(), more, end)
        stream.truncate(end)


class BoundedText(io.StringIO):
    """A text in memory that loses its middle when it grows too long."""

    def write(self, text: str) -> int:
        """Add a text."""
        super().write(text)
        if self.tell() > 2 * LOG_BYTES:
            kept = self.shortened()
            self.seek(0)
            self.truncate()
            super().write(kept)
        return len(text)

    def shortened(self) -> str:
        """Return what is kept, with a line that says how much is not."""
        return _shortened(self.getvalue())


def _shortened(text: str) -> str:
    half = LOG_BYTES // 2
    before = _CUT_BEFORE.match(text[half : half + 200].encode(errors="replace"))
    n_cut = len(text) - 2 * half - (len(before[0]) if before else 0)
    if n_cut <= 0:
        return text
    return f"{text[:half]}{_CUT.format(n_cut + (int(before[1]) if before else 0), half // 10**6)}{text[-half:]}"


def _unbuffered(descriptor: int) -> io.TextIOWrapper:
    # A log handler that a job makes holds on to this stream: it must not close what later jobs write to.
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # None, closed, or connected to nothing
            stream.flush()
