"""Jobs on a Ray cluster: this machine's processors, or many machines."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import socket
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trimbench.papers.execution.executors import ExecutorError
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.limits import JobLimits
from trimbench.papers.execution.remembered_arrays import RUN_VARIABLE
from trimbench.papers.execution.remote import RemoteExecutor, Task, TaskLost, run_task
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.temporary import host, is_alive, temporary_folder
from trimbench.papers.validation import settings

_IDLE_SECONDS = 0.5
_REACH_SECONDS = 10.0
_END_SECONDS = 10.0
# Enough to make a cluster grow, if it can.
_MAX_TASKS = 500
# Variables that a worker on another machine needs as well.
_PASSED_ON = ("TRIMBENCH_CACHE", "XDG_CACHE_HOME", RUN_VARIABLE)
# The name of a Unix socket has at most 107 bytes (103 on macOS), and Ray's are up to 66 below this folder.
_LONGEST_FOLDER = 36


@settings
class RayExecutor(RemoteExecutor):
    """Runs each job as a task of a Ray cluster, with one processor.

    `address` is that of a running cluster, ``"host:port"`` or ``"auto"``; by default a cluster of this machine is
    started. The connection, or the cluster of this machine, serves all runs of the program and ends with it.
    """

    address: str | None = None

    @contextmanager
    def connected(self) -> Iterator[RayCluster]:
        """Provide the cluster for one run."""
        ray = self._connected_ray()
        with temporary_folder() as logs:
            yield RayCluster(ray, self, logs)

    def _connected_ray(self) -> Any:
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


class RayCluster:
    """Tasks of Ray, which itself repeats those that it loses."""

    jobs_per_task = 1
    attempts = 1

    def __init__(self, ray: Any, options: RayExecutor, logs: Path) -> None:
        self._ray, self._limits, self.logs = ray, options.limits, logs
        self.room = options.workers or _MAX_TASKS
        self._environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._run_task = ray.remote(num_cpus=1, max_retries=options.retries)(_run_ray_task)

    def submit(self, chunks: Sequence[Sequence[Job]]) -> list[Task]:
        """Submit one task for each list of jobs."""
        return [self._run_task.remote(chunk, self._limits, self.logs, self._environment) for chunk in chunks]

    def wait(self, tasks: Collection[Task]) -> list[Task]:
        """Wait until a task ends, but not for long; return all that have ended by then."""
        done, rest = self._ray.wait(list(tasks), num_returns=1, timeout=_IDLE_SECONDS)
        also: list[Task] = self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if done and rest else []
        return [*done, *also]

    def result(self, task: Task) -> list[Record]:
        """Return the records of a task."""
        try:
            records: list[Record] = self._ray.get(task)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            raise TaskLost(str(error).strip().partition("\n")[0]) from error
        return records

    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks, together with the processes that run them."""
        for task in tasks:
            with contextlib.suppress(Exception):
                self._ray.cancel(task, force=True)
        if tasks:
            self._ray.wait(list(tasks), num_returns=len(tasks), timeout=_END_SECONDS)


def _run_ray_task(jobs: Sequence[Job], limits: JobLimits, logs: Path, environment: Mapping[str, str]) -> list[Record]:
    """Run a task in a process of Ray."""
    # A spawned process first runs the file of its parent's __main__, which here would take seconds to import Ray.
    vars(sys.modules["__main__"]).pop("__file__", None)
    return run_task(jobs, limits, logs, environment)


def _check_reachable(address: str | None) -> None:
    """Raise an OSError if nobody listens at ``host:port``: Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit() and "/" not in host:
        with socket.create_connection((host, int(port)), timeout=_REACH_SECONDS):
            pass


def _end_cluster(ray: Any, session: Path) -> None:
    """End the cluster that this program started, and remove its files, which Ray never does."""
    ray.shutdown()
    _remove_session(session)


def ray_folder() -> str | None:
    """Return the folder for the files of a new cluster of this machine, after removing those of killed programs.

    None leaves the choice to Ray, because the name of the folder for temporary files is too long.
    """
    # The machine is in the name because process numbers say nothing about another one.
    room = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()) / f"tb-ray-{zlib.crc32(host().encode()):08x}"
    for session in room.glob("session_*_*"):
        pid = session.name.rpartition("_")[2]
        if pid.isdigit() and not is_alive(int(pid)):
            _remove_session(session)
    return str(room) if len(os.fsencode(room)) <= _LONGEST_FOLDER else None


def _remove_session(session: Path) -> None:
    """Remove the files of a cluster that has ended, and the folder around them once it is empty."""
    shutil.rmtree(session, ignore_errors=True)
    latest = session.parent / "session_latest"
    # What cannot be removed belongs to somebody else, or is in use.
    with contextlib.suppress(OSError):
        if latest.is_symlink() and not latest.exists():
            latest.unlink()
        session.parent.rmdir()
