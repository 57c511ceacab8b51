"""Ways to run jobs: one after another here, or in worker processes that may be killed."""

import dataclasses
import math
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol

from trimbench.papers.execution.flight import JOBS_PER_WORKER, Flight
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.provenance import usable_cpus
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.temporary import temporary_folder
from trimbench.papers.execution.workers import execute, prepare_worker

OnRecord = Callable[[Record], None]


class ExecutorError(RuntimeError):
    """The executor itself cannot run jobs here: no cluster, or workers that die before they take one."""


EXECUTOR_KINDS = ("serial", "processes", "ray", "slurm")

_MAX_USELESS_POOLS = 3


def check_workers(workers: int | None) -> None:
    """Raise a ValueError unless the number of workers is a positive int or None."""
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise ValueError(f"workers must be a positive int or None, got {workers!r}; None takes all processors")


def check_timeout(timeout: float | None) -> None:
    """Raise a ValueError unless the limit is a positive number of seconds or None."""
    if timeout is not None and (
        not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < math.inf
    ):
        raise ValueError(f"timeout must be positive seconds or None, got {timeout!r}; None sets no limit")


class Executor(Protocol):
    """Runs jobs and hands over one record per job."""

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs.

        Parameters
        ----------
        jobs : sequence of Job
            What to run, in any order.
        on_record : callable
            Called in the calling thread with each record, as soon as there is one. What a job does never
            raises here; what `on_record` raises ends the run.
        """
        ...


@dataclass(frozen=True)
class SerialExecutor:
    """Runs the jobs one after another in this process: for debugging, and for jobs of a millisecond.

    It can neither limit the time of a job nor survive one that kills the process.
    """

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs in the given order, as `Executor.run`."""
        for job in jobs:
            on_record(execute(job))


@dataclass(frozen=True)
class ProcessExecutor:
    """Runs the jobs in worker processes, each with one thread for linear algebra.

    An exception, a job over its limit and a worker that dies each cost one job; a new worker takes the place
    of a dead one. Workers are started afresh ("spawn"), leave Ctrl-C to this process, and end with it,
    however it ends.

    Parameters
    ----------
    workers : int, optional
        Number of processes; by default the processors that this process may use.
    timeout : float, optional
        Seconds that one job may run; unlimited by default. It is watched about ten times per second, and the
        first job of a worker includes the import of its module.

    Raises
    ------
    ValueError
        If `workers` is not a positive int or `timeout` is not a positive number.
    """

    workers: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_timeout(self.timeout)

    def run(self, jobs: Sequence[Job], on_record: OnRecord, logs: Path | None = None) -> None:
        """Run all jobs, as `Executor.run`, with records in the order in which the jobs end.

        Parameters
        ----------
        jobs : sequence of Job
        on_record : callable
        logs : Path, optional
            Folder that keeps what a job writes, in a file named by its key, until there is its record; by default a
            temporary one of this machine.

        Raises
        ------
        ExecutorError
            If workers die again and again before they finish a job.
        KeyboardInterrupt
            On Ctrl-C, after the workers have been killed; finished jobs have had their records.
        """
        if logs is None:
            with temporary_folder() as folder:
                self.run(jobs, on_record, folder)
            return
        waiting = deque(jobs)
        n_useless = 0
        while waiting:
            n_before = len(waiting)
            self._run_pool(waiting, on_record, logs)
            n_useless = 0 if len(waiting) < n_before else n_useless + 1
            if n_useless == _MAX_USELESS_POOLS:
                raise ExecutorError(
                    f"worker processes died in {n_useless} pools in a row before they finished a job; see "
                    "their messages above, or run with executor=serial, which needs no workers"
                )

    def _run_pool(self, waiting: "deque[Job]", on_record: OnRecord, logs: Path) -> None:
        """Run the waiting jobs in one pool; if it breaks, those without a record are waiting again."""
        from pebble import ProcessPool

        context = multiprocessing.get_context("spawn")
        n_workers = min(self.workers or usable_cpus(), len(waiting))
        starts = context.RawArray("d", 2 * JOBS_PER_WORKER * n_workers)
        pool = ProcessPool(max_workers=n_workers, initializer=prepare_worker, initargs=(starts, logs), context=context)
        flight = Flight(pool, starts, self.timeout, logs)
        try:
            with _no_interrupts():
                flight.broken = not pool.active  # starts it
            while (waiting or flight.jobs) and not flight.broken:
                while waiting and flight.launch(waiting[0]):
                    waiting.popleft()
                for job, record in flight.land():
                    if record is None:
                        waiting.append(job)
                    else:
                        on_record(record)
        finally:
            pool.stop()  # type: ignore[no-untyped-call]
            pool.join()


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Start threads and processes that Ctrl-C does not reach, not even while they import what they need."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Its start would let signals through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def executor_options(kind: str) -> list[str]:
    """Return what an executor of this kind can be told, besides its kind.

    Raises
    ------
    ValueError
        If the kind is unknown.
    """
    # The serial executor knows the names, to say why they are not for it.
    return ["workers", "timeout"] if kind == "serial" else [field.name for field in dataclasses.fields(_class(kind))]


def make_executor(kind: str, **options: Any) -> Executor:
    """Make an executor by name.

    Parameters
    ----------
    kind : {"serial", "processes", "ray", "slurm"}
        Which one.
    **options
        The fields of `ProcessExecutor`, `RayExecutor` or `SlurmExecutor`.

    Returns
    -------
    Executor

    Raises
    ------
    ValueError
        If the kind or an option is unknown, a value is out of range, or the serial executor is given what it cannot do.
    """
    allowed = executor_options(kind)
    for name in options:
        if name not in allowed:
            raise ValueError(f"an option of the executor must be one of {', '.join(allowed)}, got {name!r}")
    if kind != "serial":
        executor: Executor = _class(kind)(**options)
        return executor
    workers, timeout = options.get("workers"), options.get("timeout")
    if workers not in (None, 1):
        raise ValueError(f"workers must be None or 1 for the serial executor, got {workers!r}; use kind 'processes'")
    if timeout is not None:
        raise ValueError(
            f"timeout must be None for the serial executor, which cannot stop a job, got {timeout!r}; "
            "use kind 'processes'"
        )
    return SerialExecutor()


def _class(kind: str) -> Any:
    if kind == "processes":
        return ProcessExecutor
    if kind == "ray":
        from trimbench.papers.execution.ray_executor import RayExecutor

        return RayExecutor
    if kind == "slurm":
        from trimbench.papers.execution.slurm_executor import SlurmExecutor

        return SlurmExecutor
    raise ValueError(f"kind of executor must be one of {', '.join(EXECUTOR_KINDS)}, got {kind!r}")
