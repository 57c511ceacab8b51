"""What all executors share: one job with its log and its memory, jobs in this process, the choice by configuration."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from trimbench.papers.execution.code_hash import code_version, resolve
from trimbench.papers.execution.job import LOG_BYTES, Job, JobLimits, run_job_function, size_in_bytes
from trimbench.papers.execution.store import Record, provenance_of, usable_cpus
from trimbench.papers.files import without_homes
from trimbench.papers.validation import DataUnavailable, FactsMismatch, Json, settings, unknown, validated

OnRecord = Callable[[Record], None]
Files = Mapping[str, Path]

_ROOM = "trimbench.papers.execution"
# The only classes that a configuration can name: a file from elsewhere must not make the program call anything else.
TARGETS = (
    f"{_ROOM}.workers.SerialExecutor",
    f"{_ROOM}.here.ProcessExecutor",
    f"{_ROOM}.remote.RayExecutor",
    f"{_ROOM}.remote.SlurmExecutor",
)


class ExecutorError(RuntimeError):
    """The executor itself cannot run jobs here: there is no cluster, or workers die before they take a job."""


class Executor(Protocol):
    """Runs jobs and hands over one record for each."""

    def run(self, jobs: Sequence[Job], on_record: OnRecord, files: Files | None = None) -> None:
        """Run all jobs and call `on_record` in this thread with each record as soon as there is one.

        `files` are those that the jobs read, by their names in a folder of the cache, for machines without them.

        Whatever a job does, nothing is raised here, except ExecutorError when no job can run. An exception from
        `on_record` ends the run, and so does Ctrl-C: the workers are killed, and the records of finished jobs have
        already been handed over.
        """
        ...


@settings
class WorkerSettings:
    """The options that all executors have.

    `workers` jobs run at the same time, by default one for each processor. One job may run `timeout` seconds, and hold
    `memory` of a size such as ``"4GB"`` in its worker and the processes that this one starts; by default both have no
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

    It can neither limit the time and memory of a job nor survive one that kills the process. It has the options of the
    other executors only to refuse them.
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
        """Run all jobs in the given order, as `Executor.run`, each with one thread as in a worker."""
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
    """Make the executor that a configuration describes: ``_target_``, one of `TARGETS`, and options of that class.

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
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

# What a job fails with for want of data, disk, memory or an import, on one machine and not on another.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM)
# SQLite and NumPy say so in words alone.
_FULL_DISK = re.compile(r"database or disk is full|\d+ requested and \d+ written")
_NO_DATA = (DataUnavailable, FactsMismatch, FileNotFoundError, PermissionError)
_LACKING = (*_NO_DATA, MemoryError, ImportError)

# Set once by `prepare_worker`: shared memory can only be handed over when a process starts, not with each job.
_starts: ContextVar[MutableSequence[float]] = ContextVar("_starts")
# What this worker held before its first job.
_fresh: ContextVar[int] = ContextVar("_fresh")


def execute(job: Job) -> Record:
    """Run one job in this process; its record is "ok" or "failed". Ctrl-C ends the program, not only the job."""
    said = BoundedText()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        record = _attempt(job, (Exception, SystemExit))
    return replace(record, log=without_homes(said.shortened()))


def _attempt(job: Job, caught: tuple[type[BaseException], ...]) -> Record:
    """Run one job; an exception of these types is its failure. The import of its module does not count as its time."""
    started = time.perf_counter()
    try:
        # Python shows a warning once for each place in the code: within this block, once in each job.
        with warnings.catch_warnings():
            resolve(job.function)
            code_version(job.function)
            started = time.perf_counter()
            result = run_job_function(job)
    except caught as error:  # a failing job is a row of the report, whatever it raised
        return failure(job, "failed", describe(error), time.perf_counter() - started, lacking=_is_lacking(error))
    return Record(job, "ok", result, None, time.perf_counter() - started, provenance_of(job))


def failure(job: Job, status: str, error: str, seconds: float, log: str = "", *, lacking: bool = False) -> Record:
    """Make the record of a job without a result; no home folder is in it."""
    return Record(job, status, None, without_homes(error), seconds, provenance_of(job), without_homes(log), lacking)


def _is_lacking(error: BaseException | None) -> bool:
    """Tell whether an error, or one behind it, says that this machine lacks what another may have."""
    if isinstance(error, _LACKING) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return True
    said = "".join(traceback.format_exception_only(error))
    return error is not None and (bool(_FULL_DISK.search(said)) or _is_lacking(error.__cause__))


def describe(error: BaseException) -> str:
    """Write the traceback of an exception, cut to its last frames and to a length that fits a table.

    Text survives where the exception itself does not: many exceptions cannot be pickled or unpickled.
    """
    text = "".join(traceback.format_exception(error, limit=-_TRACEBACK_FRAMES)).strip()
    return text if len(text) <= TRACEBACK_CHARACTERS else f"...{text[-TRACEBACK_CHARACTERS:]}"


def prepare_worker(starts: MutableSequence[float], temporary: Path) -> None:
    """Set up a new worker process: one thread for linear algebra, its temporary files, and an end with its parent.

    The shared array `starts` has the numbers of `watch.Running` for each job in hand, which `work` fills in. The owner
    of the folder `temporary` removes it, even if the worker is killed.
    """
    import threadpoolctl

    _starts.set(starts)
    with contextlib.suppress(OSError, AttributeError):
        os.setsid()
    # With a thread for each processor, several workers would be slower than one. The variables reach the libraries that
    # a job loads later, threadpoolctl those that are loaded already.
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    threadpoolctl.threadpool_limits(1)
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    _fresh.set(memory_held(os.getpid()))
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def work(job: Job, place: int, log: Path) -> Record:
    """Run one job in a worker that `prepare_worker` set up. Nothing is raised.

    `place` is where in the shared array to write what `watch.Running` has; the file `log` keeps what the job, C code
    and child processes write, until there is a record.
    """
    starts = _starts.get()
    starts[4 * place] = started = time.monotonic()
    starts[4 * place + 1] = memory_held(os.getpid()) - _fresh.get()
    starts[4 * place + 2] = os.getpid()  # last: a reader takes a process number as the sign that all are there
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have tidied up
        with written_to(log):
            record = _attempt(job, (BaseException,))  # workers ignore Ctrl-C, so the job itself must have raised it
        return replace(record, log=without_homes(take(log)))
    except BaseException as error:  # noqa: BLE001  (a log that cannot be written, or a job that broke its streams)
        return failure(job, "failed", describe(error), time.monotonic() - started, lacking=_is_lacking(error))
    finally:
        starts[4 * place + 3] = time.monotonic()


def _end_with_parent() -> None:
    """Wait for the parent to die by ``kill -9`` or the like, which leaves it no time to stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        end_group(os.getpid())
        os._exit(1)


def end_group(pid: int) -> None:
    """Kill a worker and all that it started, even if it has ended: each worker leads a group of processes."""
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(pid, signal.SIGKILL)


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
    # Of bytes that are no text, each has become four characters.
    return text if len(text) <= LONGEST_LOG else _shortened(text)


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
        # The job goes on writing at the end of the file: what came meanwhile moves up, and only then the rest is cut.
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


# A watch on running jobs: those that hold too much memory are ended, and logs that grow too long are cut.

_PROC = Path("/proc")
# A process can fill some 100 MB between two looks. Without a limit of memory, only the logs are looked at.
_LOOK_SECONDS, _LOG_SECONDS = 0.05, 0.5
_KIBI = 1024


class Running(NamedTuple):
    """What a worker writes into shared memory when it takes a job.

    `started` and `ended` (0 until then) are on the monotonic clock, `left` has the bytes that earlier jobs have left in
    the worker, and `pid` is its process number, 0 until the others are there.
    """

    started: float
    left: float
    pid: int
    ended: float


def can_measure() -> bool:
    """Tell whether the memory of a process can be measured here, as on Linux."""
    return (_PROC / "self/status").is_file()


def memory_held(pid: int) -> int:
    """Return the bytes that a process and those that it started hold, in memory or swapped out; 0 if it has ended.

    Of files that are only mapped, what is in memory counts too. Pages that several of them share count once.
    """
    tree = process_tree(pid)
    shared = len(tree) > 1
    return sum(_held_by(one, shared) for one in tree) * _KIBI


def process_tree(pid: int) -> list[int]:
    """Return a process and all that it started and the system knows of; parents come first."""
    tree = [pid]
    for one in tree:  # which grows meanwhile
        # A process or thread that has ended meanwhile has no children.
        with contextlib.suppress(OSError):
            for thread in list((_PROC / str(one) / "task").iterdir()):
                with contextlib.suppress(OSError):
                    tree += map(int, (thread / "children").read_text().split())
    return tree


class Watch:
    """A thread that looks at the workers of this process.

    `running` returns what the workers say of their jobs, `logs` the files of the jobs that may be running. `over` has
    the job that each worker was ended for, by its process number, with the bytes that were held.
    """

    def __init__(
        self,
        limit: int | None,
        running: Callable[[], Sequence[Running]],
        logs: Callable[[], Collection[Path]],
    ) -> None:
        self.over: dict[int, tuple[Running, int]] = {}
        self._limit, self._running, self._logs = limit, running, logs
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch-jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        n_looks, looks_for_logs = 0, 1 if self._limit is None else round(_LOG_SECONDS / _LOOK_SECONDS)
        while not self._end.wait(_LOG_SECONDS if self._limit is None else _LOOK_SECONDS):
            if self._limit is not None:
                self._end_large(self._limit)
            if n_looks % looks_for_logs == 0:
                for log in self._logs():
                    with contextlib.suppress(OSError):  # the job has ended
                        shorten_file(log, 2 * LOG_BYTES)
            n_looks += 1

    def _end_large(self, limit: int) -> None:
        # Of the jobs that a worker took, the last is running, or has just ended.
        for job in {one.pid: one for one in sorted(self._running()) if one.pid and one.pid not in self.over}.values():
            # The number of a worker that has ended may be another's.
            is_child = _kibibytes(_PROC / str(job.pid) / "status", ("PPid:",)) == [os.getpid()]
            held = memory_held(job.pid) if is_child else 0
            if held > limit:
                self.over[job.pid] = job, held
                for pid in process_tree(job.pid):  # also those that left the group
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                end_group(job.pid)


def _held_by(pid: int, shared: bool) -> int:
    """Return the kibibytes that one process holds, with its part of the pages that are `shared`, if they are."""
    parts = _kibibytes(_PROC / str(pid) / "smaps_rollup", ("Pss:", "SwapPss:")) if shared else []
    return sum(parts or _kibibytes(_PROC / str(pid) / "status", ("VmRSS:", "VmSwap:")))


def _kibibytes(path: Path, names: Collection[str]) -> list[int]:
    """Return the numbers after some names in a file of the system; none if the process has ended."""
    try:
        lines = [line.split() for line in path.read_text(errors="replace").splitlines()]
    except OSError:
        return []
    return [int(words[1]) for words in lines if words and words[0] in names]
