"""What all executors have in common, the one that runs jobs in this process, and the choice by configuration."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.limits import JobLimits, size_in_bytes
from trimbench.papers.execution.provenance import usable_cpus
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.workers import execute
from trimbench.papers.validation import settings, unknown, validated

OnRecord = Callable[[Record], None]

_ROOM = "trimbench.papers.execution"
# The only classes that a configuration can name: a file from elsewhere must not make the program call anything else.
TARGETS = (
    f"{_ROOM}.executors.SerialExecutor",
    f"{_ROOM}.process_pool.ProcessExecutor",
    f"{_ROOM}.ray_cluster.RayExecutor",
    f"{_ROOM}.slurm_cluster.SlurmExecutor",
)


class ExecutorError(RuntimeError):
    """The executor itself cannot run jobs here: there is no cluster, or workers die before they take a job."""


class Executor(Protocol):
    """Runs jobs and hands over one record for each."""

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs and call `on_record` in this thread with each record as soon as there is one.

        Whatever a job does, nothing is raised here, except ExecutorError when no job can run. An exception from
        `on_record` ends the run, and so does Ctrl-C: the workers are killed, and the records of finished jobs have
        already been handed over.
        """
        ...


@settings
class WorkerSettings:
    """The options that all executors have.

    `workers` jobs run at the same time, by default one for each processor. One job may run `timeout` seconds and hold
    so much `memory`, for example ``"4GB"``, in its worker and the processes that this one starts; by default both have
    no limit.
    """

    workers: int | None = None
    timeout: float | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be a positive int or None, got {self.workers!r}; None takes all processors")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout must be positive seconds or None, got {self.timeout!r}; None sets no limit")
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

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs in the given order, as `Executor.run`, each with one thread as in a worker."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            for job in jobs:
                on_record(execute(job))


def n_workers(executor: Executor) -> int:
    """Return how many jobs an executor runs at the same time, as far as its settings say."""
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
