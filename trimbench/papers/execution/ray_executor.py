"""Jobs on a Ray cluster: this machine's processors, or many machines."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimbench.papers.execution.executors import ExecutorError, OnRecord, check_timeout, check_workers
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.job_log import take
from trimbench.papers.execution.ray_files import ray_folder, remove_session
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.temporary import make_temporary_folder, temporary_folder
from trimbench.papers.execution.workers import describe, execute_safely, failure, keep_temporary_files_in, limit_threads

_IDLE_SECONDS = 0.2
_RESOURCES_SECONDS = 5.0
_REACH_SECONDS = 10.0
_MAX_USELESS_WORKERS = 5
# What a worker on another machine must know of this one.
_PASSED_ON = ("TRIMBENCH_CACHE", "XDG_CACHE_HOME")


@dataclass(frozen=True)
class RayExecutor:
    """Runs the jobs in workers on a Ray cluster, each with one processor.

    An exception and a job over its limit each cost one job. A job whose worker or machine is lost runs again on
    another. Every machine needs the same version of the project, and the data where this one has it (a shared folder).
    The connection, or the cluster of this machine, serves all runs of the program and ends with it.

    Parameters
    ----------
    address : str, optional
        Of a running cluster, ``"host:port"`` or ``"auto"``; by default a cluster of this machine is started.
    workers : int, optional
        Number of workers; by default the processors of the cluster, which may grow and shrink meanwhile.
    timeout : float, optional
        Seconds that one job may run; unlimited by default.
    retries : int
        How often a job runs again after its worker was lost.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    address: str | None = None
    workers: int | None = None
    timeout: float | None = None
    retries: int = 2

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_timeout(self.timeout)
        if self.address is not None and not isinstance(self.address, str):
            raise ValueError(f"address must be 'host:port', 'auto' or None, got {self.address!r}")
        if not isinstance(self.retries, int) or isinstance(self.retries, bool) or self.retries < 0:
            raise ValueError(f"retries must be a whole number, 0 or more, got {self.retries!r}")

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs, as `Executor.run`, with records in the order in which the jobs end.

        Raises
        ------
        ExecutorError
            If there is no cluster at the address, or workers die again and again before they take a job.
        KeyboardInterrupt
            On Ctrl-C, after the workers have been killed; finished jobs have had their records.
        """
        if not jobs:
            return
        with temporary_folder() as logs:
            crew = _Crew(self._connected(), self, jobs, logs)
            try:
                crew.run(on_record)
            finally:
                crew.dismiss()

    def _connected(self) -> Any:
        """Return the module of Ray, connected to a cluster."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        if ray.is_initialized():
            return ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            options |= {"num_cpus": self.workers, "include_dashboard": False, "_temp_dir": ray_folder()}
        try:
            _check_reachable(self.address)
            context: Any = ray.init(address=self.address or "local", **options)
        except (OSError, RuntimeError, ValueError) as error:
            raise ExecutorError(
                f"address must be that of a running Ray cluster, got {self.address!r}: {error}; start one with "
                "`ray start --head`, or leave address out to use this machine"
            ) from error
        if self.address is None:
            atexit.register(_end_cluster, ray, Path(context.address_info["session_dir"]))
        return ray


def _end_cluster(ray: Any, session: Path) -> None:
    """End the cluster that this program started, and remove its files."""
    ray.shutdown()
    remove_session(session)


def _check_reachable(address: str | None) -> None:
    """Raise an OSError if nobody listens at ``host:port``: Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit() and "/" not in host:
        with socket.create_connection((host, int(port)), timeout=_REACH_SECONDS):
            pass


class RayWorker:
    """Runs jobs one after another in a process of the cluster."""

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        limit_threads()
        os.environ.update(environment)
        # On another machine, what a job wrote arrives with its record, and is lost with its worker.
        self._logs = logs if logs.is_dir() else make_temporary_folder()
        keep_temporary_files_in(self._logs)

    def ready(self) -> int:
        """Answer once the worker is there."""
        return os.getpid()

    def run(self, job: Job) -> Record:
        """Run one job; nothing is raised."""
        return execute_safely(job, self._logs / job.key)


class _Crew:
    """Workers of the cluster, and which job each of them has."""

    def __init__(self, ray: Any, executor: RayExecutor, jobs: Sequence[Job], logs: Path) -> None:
        self._ray = ray
        self._logs = logs
        self._executor = executor
        self._waiting = deque((job, 0) for job in jobs)
        self._starting: dict[Any, Any] = {}
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Any, Job, int, float]] = {}
        self._useless = 0
        self._asked = -math.inf
        self._n_processors = 1
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        actor: Any = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RayWorker)
        self._hire: Callable[[], Any] = lambda: actor.remote(environment, logs)

    def run(self, on_record: OnRecord) -> None:
        """Run until every job has its record."""
        while self._waiting or self._busy:
            self._staff()
            while self._idle and self._waiting:
                self._assign(self._idle.pop())
            done, _ = self._ray.wait([*self._starting, *self._busy], num_returns=1, timeout=_IDLE_SECONDS)
            for reference in done:
                if reference in self._starting:
                    self._welcome(reference)
                else:
                    self._land(reference, on_record)
            self._expire(on_record)

    def dismiss(self) -> None:
        """End all workers."""
        for actor in [*self._starting.values(), *self._idle, *(entry[0] for entry in self._busy.values())]:
            self._end(actor)

    def _staff(self) -> None:
        """Hire as many workers as there are processors and jobs."""
        wanted = min(self._limit(), len(self._waiting) + len(self._busy))
        while len(self._starting) + len(self._idle) + len(self._busy) < wanted:
            actor = self._hire()
            self._starting[actor.ready.remote()] = actor

    def _limit(self) -> int:
        if self._executor.workers is not None:
            return self._executor.workers
        if time.monotonic() - self._asked > _RESOURCES_SECONDS:
            self._asked = time.monotonic()
            self._n_processors = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self._n_processors

    def _assign(self, actor: Any) -> None:
        job, losses = self._waiting.popleft()
        self._busy[actor.run.remote(job)] = (actor, job, losses, time.monotonic())

    def _welcome(self, reference: Any) -> None:
        actor = self._starting.pop(reference)
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._useless += 1
            if self._useless >= _MAX_USELESS_WORKERS:
                raise ExecutorError(
                    f"{self._useless} Ray workers in a row ended before they took a job, the last with: {error}; is "
                    "the project installed on every machine of the cluster?"
                ) from error
            self._asked = -math.inf
        else:
            self._useless = 0
            self._idle.append(actor)

    def _land(self, reference: Any, on_record: OnRecord) -> None:
        actor, job, losses, started = self._busy.pop(reference)
        seconds = time.monotonic() - started
        try:
            record = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            self._idle.append(actor)
            on_record(self._failure(job, "failed", describe(error), seconds))
        except self._ray.exceptions.RayError:
            self._end(actor)
            self._asked = -math.inf
            if losses < self._executor.retries:
                self._waiting.appendleft((job, losses + 1))
            else:
                text = f"the worker process died, {losses + 1} times with this job"
                on_record(self._failure(job, "crashed", text, seconds))
        else:
            self._idle.append(actor)
            on_record(record)

    def _expire(self, on_record: OnRecord) -> None:
        limit = self._executor.timeout
        if limit is None:
            return
        now = time.monotonic()
        for reference, (actor, job, _, started) in list(self._busy.items()):
            # One that is done is taken in its turn, however late.
            if now - started > limit and not self._ray.wait([reference], timeout=0)[0]:
                del self._busy[reference]
                self._end(actor)
                text = f"stopped at the limit of {limit:g} seconds per job"
                on_record(self._failure(job, "timeout", text, now - started))

    def _failure(self, job: Job, status: str, error: str, seconds: float) -> Record:
        return failure(job, status, error, seconds, take(self._logs / job.key))

    def _end(self, actor: Any) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(actor, no_restart=True)
