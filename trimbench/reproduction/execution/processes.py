"""Run jobs in processes of this machine, and handle Ctrl-C meanwhile."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, MutableSequence, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from trimbench.reproduction.children import starting
from trimbench.reproduction.execution.executors import (
    ExecutorError,
    Files,
    OnRecord,
    WorkerSettings,
    attempt,
    describe,
    failure,
    is_lacking,
    shorten_file,
    take,
    written_to,
)
from trimbench.reproduction.execution.job import LOG_BYTES, Job, JobLimits, in_megabytes
from trimbench.reproduction.execution.provenance import usable_cpus
from trimbench.reproduction.execution.store import TERMINAL, Record
from trimbench.reproduction.files import make_temporary_folder, remove_temporary_folder, without_homes
from trimbench.reproduction.project import project
from trimbench.reproduction.project_folder import take_up
from trimbench.reproduction.settings import settings


class HeldInterrupts:
    """Holds back Ctrl-C, and SIGTERM where it has the same handler, in a ``with`` block, except within `allowed`.

    A signal that has come is raised, as KeyboardInterrupt, at the next `allowed` or, if none follows, at the end of the
    block, unless that ends with an error of its own. Outside the main thread, which alone gets Ctrl-C, and where a
    program has a handler of its own, nothing is held back.
    """

    def __init__(self) -> None:
        self._has_come = False
        self._holds: list[signal.Signals] = []

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        both = (signal.SIGINT, signal.SIGTERM)
        self._holds = [one for one in both if main and signal.getsignal(one) is signal.default_int_handler]
        self._handle_by(self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._handle_by(signal.default_int_handler)
        if kind is None:
            self._raise_if_come()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C through in a ``with`` block, which must not take a lock that others wait for."""
        self._handle_by(signal.default_int_handler)
        try:
            self._raise_if_come()
            yield
        finally:
            self._handle_by(self._note)

    def _handle_by(self, handler: Callable[..., Any]) -> None:
        for one in self._holds:
            signal.signal(one, handler)

    def _note(self, *_: object) -> None:
        self._has_come = True

    def _raise_if_come(self) -> None:
        if self._has_come:
            self._has_come = False
            raise KeyboardInterrupt


@contextmanager
def kept_from_children() -> Iterator[None]:
    """Keep Ctrl-C from threads and processes that start in a ``with`` block, even while they import what they need."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # If it started later, that would let signals through again.
    _start_resource_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# Worker processes of this machine: a job that fails, hangs or kills its process costs one job.

# One job runs and some wait in the pipe, so that no worker idles while the parent stores a record or writes tables.
# pebble counts the time of a job from the moment that a worker takes it, so those that wait lose nothing.
_JOBS_PER_WORKER = 8
_IDLE_SECONDS = 0.5
# Workers take turns at the pipe for milliseconds. If one is killed in its turn, the others wait for twice this long and
# are then replaced.
_TURN_SECONDS = 10.0
_MAX_USELESS_POOLS = 3


@settings
class ProcessExecutor(WorkerSettings):
    """Runs the jobs in worker processes, each with one thread for linear algebra.

    An exception, a job over a limit and a worker that dies each cost one job. Limits are checked about ten times per
    second, memory twenty times and on Linux only; the first job of a worker includes the import of its module.
    """

    def run(self, jobs: Sequence[Job], on_record: OnRecord, files: Files | None = None) -> None:
        """Run all jobs, as described in `Executor.run`, with records in the order in which the jobs end."""
        with closing(Workers(min(self.workers or usable_cpus(), len(jobs)), self.limits)) as workers:
            workers.run(jobs, on_record)


class Workers:
    """Worker processes that start with the first job and stay until `close`.

    A new worker takes the place of a dead one. Workers are started afresh ("spawn"), leave Ctrl-C to this process, and
    end with it, however it ends.

    The folder `logs` has the temporary files of jobs and, until a job has a record, what it writes, in a file named
    after its key. By default, or if it does not exist, a temporary folder of this machine is used.
    """

    def __init__(self, n_workers: int, limits: JobLimits, logs: Path | None = None) -> None:
        if limits.memory is not None and not can_measure():
            raise ExecutorError(
                "memory can be limited on Linux only, where /proc says what a process holds; leave it out"
            )
        self._n_workers, self._limits = n_workers, limits
        self._own_logs = None if logs and logs.is_dir() else make_temporary_folder()
        self._logs = self._own_logs or Path(str(logs))
        self._pool: _Pool | None = None

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs; raise ExecutorError if workers die again and again before they finish one."""
        with HeldInterrupts() as interrupts:
            self._run(deque(jobs), on_record, interrupts)

    def _run(self, waiting: deque[Job], on_record: OnRecord, interrupts: HeldInterrupts) -> None:
        n_useless = 0
        suspects: deque[Job] = deque()  # were running when a pool broke, so each runs again alone
        while waiting or suspects:
            n_before = len(waiting) + len(suspects)
            try:
                self._pool = self._pool or _Pool(self._n_workers, self._limits, self._logs)
            except OSError as error:  # nothing to share with them: no /dev/shm, no more processes or open files
                raise ExecutorError(
                    f"worker processes cannot be started here: {error}; run with executor=serial, which needs none"
                ) from error
            try:
                if suspects:
                    self._pool.run(deque([suspects.popleft()]), on_record, interrupts)
                else:
                    self._pool.run(waiting, on_record, interrupts, suspects)
            finally:
                if not self._pool.is_idle:
                    self._stop_pool()
            n_useless = 0 if len(waiting) + len(suspects) < n_before else n_useless + 1
            if n_useless == _MAX_USELESS_POOLS:
                raise ExecutorError(
                    f"worker processes died in {n_useless} pools in a row before they finished a job; see "
                    "their messages above, or run with executor=serial, which needs no workers"
                )

    def close(self) -> None:
        """Kill the workers and remove the temporary folder."""
        with HeldInterrupts():
            self._stop_pool()
            if self._own_logs:
                remove_temporary_folder(self._own_logs)

    def _stop_pool(self) -> None:
        if self._pool:
            self._pool.stop()
            self._pool = None


class _Pool:
    """A pool of pebble and the jobs that it has in hand, each with a place in shared memory.

    There the worker writes the fields of `Running`. pebble by itself would wait forever for the job of a worker that
    ended with exit code 0 (``os._exit(0)``, or C code that calls ``exit``), and does not say which job was lost when a
    whole pool breaks.
    """

    def __init__(self, n_workers: int, limits: JobLimits, logs: Path) -> None:
        from pebble import ProcessPool

        context = _safe_context()
        self._limits, self._logs = limits, logs
        self._jobs: dict[Future[Record], tuple[Job, int]] = {}
        self._free = list(range(_JOBS_PER_WORKER * n_workers))
        self._maybe_lost: set[Future[Record]] = set()
        self._pids: set[int | None] = set()
        self._starts = context.RawArray("d", 4 * len(self._free))
        given = (_TURN_SECONDS, self._starts, logs, project().reference)
        self._pool = ProcessPool(max_workers=n_workers, initializer=_prepare, initargs=given, context=context)
        with kept_from_children():
            self.broken = not self._pool.active  # starts it
            self._watch = Watch(
                limits.memory,
                lambda: [self._running(place) for place in range(len(self._starts) // 4)],
                lambda: [logs / job.key for job, _ in list(self._jobs.values())],
            )

    def run(
        self, waiting: deque[Job], on_record: OnRecord, interrupts: HeldInterrupts, suspects: deque[Job] | None = None
    ) -> None:
        """Run the waiting jobs; if the pool breaks, those without a record go back to `waiting`.

        Those that had started, any of which may have broken it, go to `suspects`; without `suspects`, they crashed.
        """
        while (waiting or self._jobs) and not self.broken:
            while waiting and self._launch(waiting[0]):
                waiting.popleft()
            landed = self._land()
            with interrupts.allowed():
                for job, record, has_started in landed:
                    if record is not None:
                        on_record(record)
                    elif not has_started:
                        waiting.append(job)
                    elif suspects is not None:
                        suspects.append(job)
                    else:
                        on_record(failure(job, "crashed", "its worker process could not be understood any more", 0.0))

    @property
    def is_idle(self) -> bool:
        """Whether the pool is fit for another run."""
        return not self.broken and not self._jobs

    def stop(self) -> None:
        """Kill the workers, whatever they do."""
        self._watch.stop()
        self._pids |= {self._running(place).pid for _, place in self._jobs.values()}
        pids = self._pids & _children()
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()
        for pid in filter(None, pids):
            end_group(pid)

    def _launch(self, job: Job) -> bool:
        """Give a job to the pool; False if all places are taken or the pool just broke."""
        if not self._free:
            return False
        place = self._free[-1]
        self._starts[4 * place : 4 * place + 4] = [0.0] * 4
        try:
            future = self._pool.schedule(work, args=(job, place, self._logs / job.key), timeout=self._limits.seconds)
        except RuntimeError:
            self.broken = True
            return False
        self._jobs[future] = (job, self._free.pop())
        return True

    def _land(self) -> list[tuple[Job, Record | None, bool]]:
        """Wait a moment for jobs to end and take them out, with records and whether they have started.

        None as a record asks to run the job again.
        """
        done, _ = concurrent.futures.wait(self._jobs, _IDLE_SECONDS, concurrent.futures.FIRST_COMPLETED)
        self.broken = self.broken or not self._pool.active
        landed = []
        lost = set() if self.broken or done else self._find_lost()
        for future in list(self._jobs) if self.broken else done or lost:
            job, place = self._jobs.pop(future)
            self._free.append(place)
            pid = self._running(place).pid
            landed.append((job, self._outcome(future, job, place), self.broken and pid != 0))
            future.cancel()  # tells pebble to forget a lost job; nothing happens to one that is done
        return landed

    def _find_lost(self) -> set[Future[Record]]:
        """Return the jobs whose worker was gone twice in a row, though pebble has not noticed.

        If a job has ended and its record does not arrive, its worker can no longer be understood: the pool is broken.
        """
        alive, late = _children(), time.monotonic() - _TURN_SECONDS
        running = {future: self._running(place) for future, (_, place) in self._jobs.items()}
        gone = {future for future, one in running.items() if one.pid not in alive | {0} or 0 < one.ended < late}
        lost = {future for future in gone & self._maybe_lost if not future.done()}
        self._maybe_lost = gone
        self.broken = any(running[future].pid in alive for future in lost)
        return lost

    def _outcome(self, future: Future[Record], job: Job, place: int) -> Record | None:
        from pebble import ProcessExpired

        running = self._running(place)
        pid = running.pid
        seconds = time.monotonic() - running.started if pid else 0.0
        error = future.exception() if future.done() else BrokenProcessPool()
        self._pids.add(pid)
        if error is None:
            return future.result()
        if pid and pid not in _children():
            end_group(pid)
        log = take(self._logs / job.key)
        if pid in self._watch.over:
            return self._over_memory(job, running, seconds, log)
        if isinstance(error, BrokenProcessPool):
            if pid and pid not in _children():
                return failure(job, "crashed", "the worker process ended without a result", seconds, log)
            return None
        if isinstance(error, TimeoutError):
            text = f"stopped at the limit of {self._limits.seconds:g} seconds per job"
            return failure(job, "timeout", text, seconds, log)
        if isinstance(error, ProcessExpired):
            text, killed = f"the worker process died with exit code {error.exitcode}", error.exitcode == -signal.SIGKILL
            return failure(job, "crashed", text, seconds, log, lacking=killed)  # by the system, for want of memory
        return failure(job, "failed", describe(error), seconds, log)

    def _over_memory(self, job: Job, running: Running, seconds: float, log: str) -> Record | None:
        """Return the record of a job whose worker held too much; None if that may be the fault of earlier jobs."""
        blamed, held = self._watch.over[running.pid]
        limit = self._limits.memory or 0
        if blamed.started != running.started or held - running.left <= limit:
            return None
        text = f"stopped at the limit of {in_megabytes(limit)} of memory per job, when it held {in_megabytes(held)}"
        return failure(job, "memory", text, seconds, log)

    def _running(self, place: int) -> Running:
        started, left, pid, ended = self._starts[4 * place : 4 * place + 4]
        return Running(started, left, int(pid), ended)


class _SafeProcess(SpawnProcess):
    """A worker whose interpreter takes no module from the current folder."""

    def start(self) -> None:
        """Start the process."""
        with starting():
            super().start()


class _SafeContext(SpawnContext):
    Process = _SafeProcess


def _safe_context() -> SpawnContext:
    _start_resource_tracker()
    return _SafeContext()


def _start_resource_tracker() -> None:
    """Start the process that the first lock of a context would start."""
    with starting():
        resource_tracker.ensure_running()


def _children() -> set[int | None]:
    return {process.pid for process in multiprocessing.active_children()}


# What happens in a worker process.

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

# Set once by `_prepare`: shared memory can be passed only when a process starts, not with each job.
_starts: ContextVar[MutableSequence[float]] = ContextVar("_starts")
# What this worker held before its first job.
_fresh: ContextVar[int] = ContextVar("_fresh")


def _prepare(turn_seconds: float, starts: MutableSequence[float], temporary: Path, reference: str) -> None:
    """Set up a new worker process: one thread for linear algebra, a folder for temporary files, an end with its parent.

    The shared array `starts` has the fields of `Running` for each job in hand, which `work` fills in. The owner of the
    folder `temporary` removes it, even if the worker is killed. Jobs belong to the project of this `reference`.
    """
    import threadpoolctl
    from pebble import CONSTS

    if reference:
        take_up(reference)
    CONSTS.channel_lock_timeout = turn_seconds
    _starts.set(starts)
    TERMINAL.set(os.dup(2))
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
    """Run one job in a worker that `_prepare` set up. It never raises.

    `place` is the position of the fields of `Running` in the shared array; until there is a record, the file `log`
    keeps what the job, C code and child processes write.
    """
    starts = _starts.get()
    starts[4 * place] = started = time.monotonic()
    starts[4 * place + 1] = memory_held(os.getpid()) - _fresh.get()
    starts[4 * place + 2] = os.getpid()  # last: a reader takes a process number as the sign that all are there
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have tidied up
        with written_to(log):
            record = attempt(job, (BaseException,))  # workers ignore Ctrl-C, so the job itself must have raised it
        return replace(record, log=without_homes(take(log)))
    except BaseException as error:  # noqa: BLE001  (a log that cannot be written, or a job that broke its streams)
        return failure(job, "failed", describe(error), time.monotonic() - started, lacking=is_lacking(error))
    finally:
        starts[4 * place + 3] = time.monotonic()


def _end_with_parent() -> None:
    """End this worker when its parent dies by ``kill -9`` or the like, which leaves it no time to stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        end_group(os.getpid())
        os._exit(1)


def end_group(pid: int) -> None:
    """Kill a worker and everything that it started, even if it has ended: each worker leads a process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(pid, signal.SIGKILL)


# A watch on running jobs: those that hold too much memory are killed, and logs that grow too long are cut.

_PROC = Path("/proc")
# A process can fill some 100 MB between two checks. Without a memory limit, only the logs are checked.
_LOOK_SECONDS, _LOG_SECONDS = 0.05, 0.5
_KIBI = 1024


class Running(NamedTuple):
    """What a worker writes into shared memory about the job that it runs.

    `started` and `ended` (0 until then) are on the monotonic clock, `left` is the number of bytes that earlier jobs
    left in the worker, and `pid` is its process number, 0 until `started` and `left` are written.
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

    Mapped files count as far as they are in memory. Pages that several of the processes share count once.
    """
    tree = process_tree(pid)
    shared = len(tree) > 1
    return sum(_held_by(one, shared) for one in tree) * _KIBI


def process_tree(pid: int) -> list[int]:
    """Return a process and its known descendants; parents come first."""
    tree = [pid]
    for one in tree:  # it grows meanwhile
        # A process or thread that has ended meanwhile has no children.
        with contextlib.suppress(OSError):
            for thread in list((_PROC / str(one) / "task").iterdir()):
                with contextlib.suppress(OSError):
                    tree += map(int, (thread / "children").read_text().split())
    return tree


class Watch:
    """A thread that watches the workers of this process.

    `running` returns what the workers report of their jobs, `logs` the log files of jobs that may be running. `over`
    has, by the process number of each worker that was killed, the job it was killed for and the bytes that were held.
    """

    def __init__(
        self, limit: int | None, running: Callable[[], Sequence[Running]], logs: Callable[[], Collection[Path]]
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
        # The last of the jobs that a worker took is running, or has just ended.
        for job in {one.pid: one for one in sorted(self._running()) if one.pid and one.pid not in self.over}.values():
            # The number of a worker that has ended may belong to another process by now.
            is_child = _kibibytes(_PROC / str(job.pid) / "status", ("PPid:",)) == [os.getpid()]
            held = memory_held(job.pid) if is_child else 0
            if held > limit:
                self.over[job.pid] = job, held
                for pid in process_tree(job.pid):  # also those that left the group
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                end_group(job.pid)


def _held_by(pid: int, shared: bool) -> int:
    """Return the kibibytes that one process holds; if pages may be `shared`, only its part of these."""
    parts = _kibibytes(_PROC / str(pid) / "smaps_rollup", ("Pss:", "SwapPss:")) if shared else []
    return sum(parts or _kibibytes(_PROC / str(pid) / "status", ("VmRSS:", "VmSwap:")))


def _kibibytes(path: Path, names: Collection[str]) -> list[int]:
    """Return the numbers after some names in a file below ``/proc``; none if the process has ended."""
    try:
        lines = [line.split() for line in path.read_text(errors="replace").splitlines()]
    except OSError:
        return []
    return [int(words[1]) for words in lines if words and words[0] in names]
