"""Jobs on other machines, in tasks: a cluster runs the tasks, and each task runs its jobs in a worker process."""

import atexit
import contextlib
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from trimbench.papers.execution.executors import ExecutorError, OnRecord, WorkerSettings
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.job_log import take
from trimbench.papers.execution.limits import JobLimits
from trimbench.papers.execution.process_pool import Workers
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.workers import describe, failure
from trimbench.papers.validation import settings

# After this many tasks that could not run, without one that could, no other will.
_MAX_USELESS_TASKS = 5
Task = Any  # how a cluster identifies a task


class TaskLost(Exception):  # noqa: N818 - an event of the cluster, not a mistake
    """A task ended with its machine or process; it may succeed elsewhere."""


class Cluster(Protocol):
    """Machines that run tasks.

    `logs` is a folder for what jobs write while they run. At most `room` tasks are queued or running at a time. A job
    whose tasks are lost is submitted at most `attempts` times.
    """

    logs: Path
    jobs_per_task: int
    room: int
    attempts: int

    def submit(self, chunks: Sequence[Sequence[Job]]) -> Sequence[Task]:
        """Submit one task for each list of jobs, which calls `run_task`."""
        ...

    def wait(self, tasks: Collection[Task]) -> Collection[Task]:
        """Wait a moment, and return the tasks that have ended."""
        ...

    def result(self, task: Task) -> list[Record]:
        """Return the records of a task that has ended; raise TaskLost, or what the task raised."""
        ...

    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks and wait until they write nothing more."""
        ...


@settings
class RemoteExecutor(WorkerSettings, ABC):
    """Runs the jobs as tasks of a cluster.

    An exception, a job over a limit and a worker process that dies each cost one job. The jobs of a task whose
    machine is lost run again, up to `retries` times. Every machine needs the same version of the project, and the data
    where this one has it (a shared folder). `workers` tasks run at the same time, by default as many as the cluster has
    processors for.
    """

    retries: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_least(retries=0)

    def check_least(self, **least: int) -> None:
        """Raise a ValueError unless fields have at least these values."""
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ValueError(f"{name} must be a whole number, {smallest} or more, got {getattr(self, name)!r}")

    @abstractmethod
    def connected(self) -> AbstractContextManager[Cluster]:
        """Provide the cluster for one run; raise ExecutorError if there is none."""

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs, as `Executor.run`, with records in the order in which the tasks end."""
        if not jobs:
            return
        with self.connected() as cluster:
            sweep = _Sweep(cluster, on_record)
            lost = dict.fromkeys(jobs, "")
            for _ in range(cluster.attempts):
                lost = sweep.run(list(lost))
            for job, reason in lost.items():
                text = f"the task ended without a result: {reason}"
                on_record(failure(job, "crashed", text, 0.0, take(cluster.logs / job.key)))


class _Sweep:
    """The tasks of one run."""

    def __init__(self, cluster: Cluster, on_record: OnRecord) -> None:
        self._cluster = cluster
        self._on_record = on_record
        self._useless: int | None = 0  # tasks that could not run, until one could

    def run(self, jobs: Sequence[Job]) -> dict[Job, str]:
        """Run jobs in tasks; return those without a record, each with the reason."""
        cluster, size = self._cluster, self._cluster.jobs_per_task
        waiting = deque(jobs[start : start + size] for start in range(0, len(jobs), size))
        running: dict[Task, Sequence[Job]] = {}
        lost: dict[Job, str] = {}
        try:
            while waiting or running:
                new = [waiting.popleft() for _ in range(min(cluster.room - len(running), len(waiting)))]
                if new:
                    running |= zip(cluster.submit(new), new, strict=True)
                for task in cluster.wait(running):
                    lost |= self._collect(task, running.pop(task))
        finally:
            cluster.cancel(running)
        return lost

    def _collect(self, task: Task, jobs: Sequence[Job]) -> dict[Job, str]:
        """Hand over the records of a task; return the jobs that have none, each with the reason."""
        records: list[Record] = []
        reason = ""
        try:
            records = self._cluster.result(task)
            self._useless = None
        except TaskLost as error:
            reason = str(error)
        except Exception as error:  # a cluster raises what the task raised, whatever it was
            reason = describe(error).splitlines()[-1]
            if self._useless is not None:
                self._useless += 1
            if self._useless == _MAX_USELESS_TASKS:
                raise ExecutorError(
                    f"the first {self._useless} tasks could not run, the last because of {reason}; is the project "
                    "installed in the same version on every machine of the cluster?"
                ) from error
        for record in records:
            self._on_record(record)
        done = {record.job for record in records}
        return {job: reason for job in jobs if job not in done}


_kept: dict[tuple[JobLimits, Path], Workers] = {}


def run_task(
    jobs: Sequence[Job], limits: JobLimits, logs: Path, environment: Mapping[str, str] | None = None
) -> list[Record]:
    """Run the jobs of one task in a worker process, one after another; this is what a cluster calls on its machines.

    If a cluster runs several tasks of one sweep in the same process, they share the worker.
    """
    os.environ.update(environment or {})
    if (limits, logs) not in _kept:
        _stop_kept()
        _kept[limits, logs] = Workers(1, limits, logs)
    records: list[Record] = []
    _kept[limits, logs].run(jobs, records.append)
    return records


@atexit.register
def _stop_kept() -> None:
    while _kept:
        with contextlib.suppress(OSError):
            _kept.popitem()[1].close()
