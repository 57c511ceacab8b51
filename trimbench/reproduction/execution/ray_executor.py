"""Jobs on a Ray cluster: the processors of this machine, or many machines."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import math
import os
import pickle
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trimbench.reproduction.children import run_python, starting
from trimbench.reproduction.execution import ray_task
from trimbench.reproduction.execution.cluster_task import Terms, last_line, only_data
from trimbench.reproduction.execution.executors import ExecutorError
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.remote import END_SECONDS, LONGEST_SENT, Cluster, RemoteExecutor, TaskId, TaskLost
from trimbench.reproduction.extras import MissingExtraError, check_installed
from trimbench.reproduction.files import lock_of, read_bytes, temporary_folder, temporary_folders
from trimbench.reproduction.messages import reason
from trimbench.reproduction.settings import settings

_IDLE_SECONDS = 0.5
_GLANCE_SECONDS = 2.0
_REACH_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_PROBE = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
_ADDRESS = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):([1-9]\d{0,4})", re.ASCII)
# Errors of Ray for a task that could not run because its function was not found, or that returned what is refused.
_NOT_RUN = ("RaySystemError", "UnserializableException")
# Waiting tasks keep the processors busy, and make a cluster grow if it can.
_TASKS_PER_PROCESSOR = 2
# The name of a Unix socket has at most 107 bytes (103 on macOS), and Ray's are up to 66 below a folder of 20 in this.
_LONGEST_ROOM = 16
_asked_for: list[str | None] = []  # the address of the connection as it was given, before Ray resolved it
_at_end = contextlib.ExitStack()
atexit.register(_at_end.close)
# The folder for logs of all runs of this program, which share the workers.
_ray_logs = functools.cache(lambda: _at_end.enter_context(temporary_folder()))


@settings
class RayExecutor(RemoteExecutor):
    """Runs each job as a task of a Ray cluster, with one processor.

    `address` is that of a running cluster, ``"host:port"`` or ``"auto"``; by default, a cluster is started on this
    machine. The connection, or this cluster, serves all runs of the program and ends with it.
    """

    address: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            check_installed("ray", extra="ray", what="executor=ray")
        except MissingExtraError as error:
            raise ValueError(str(error)) from None
        found = _ADDRESS.fullmatch(self.address or "")
        if self.address not in (None, "auto") and not (found and int(found[2]) < 2**16):
            raise ValueError(
                f"address must be host:port, auto or null, got {str(self.address)[:100]!r}; null starts a cluster"
            )

    @contextmanager
    def connected(self) -> Iterator[RayCluster]:
        """Provide the cluster for one run."""
        yield RayCluster(self._connected_ray(), self, _ray_logs())

    def _connected_ray(self) -> Any:
        """Return the module of Ray, connected to a cluster."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # it prints the logs of lost machines, which we name
        import ray

        if ray.is_initialized():
            connected = ray.get_runtime_context().gcs_address
            if self.address in (None, "auto", connected, *_asked_for):
                return ray
            raise ExecutorError(
                f"address must be that of a running Ray cluster which this program may join, got {self.address!r}: it "
                f"is connected to {connected} already; run the other cluster's jobs in a program of their own"
            )
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        try:
            if self.address is None:
                options |= {"num_cpus": self.workers, "include_dashboard": False, "_temp_dir": ray_folder()}
                _at_end.callback(ray.shutdown)  # before the folder is removed, which Ray never does
            else:
                _check_reachable(self.address)
            _begin(ray, self.address or "local", options)
            _asked_for[:] = [self.address]
        except ExecutorError:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise ExecutorError(
                f"address must be that of a running Ray cluster, got {self.address!r}: {error}; start one with "
                "`ray start --head`, or leave address out to use this machine; a cluster with a token needs "
                "RAY_AUTH_MODE=token here, too"
            ) from error
        return ray


def _begin(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect to a cluster; one that this program starts gets a second try, as Ray waits only 30 s for it."""
    # It hands the current folder on to its workers, first on their path.
    with starting(), contextlib.chdir(_ray_logs()):
        for is_last in (False, True) if address == "local" else (True,):
            try:
                ray.init(address=address, **options)
                break
            except Exception as error:
                if "timed out during startup" not in str(error):  # a bare Exception
                    raise
                if is_last:
                    raise ExecutorError(
                        "executor=ray needs a cluster, and Ray did not start or join one in time on this machine, "
                        "which may be too busy; run the command again later, or with executor=processes, which needs "
                        "none"
                    ) from error
                ray.shutdown()


class RayCluster(Cluster):
    """Tasks of Ray, which decides where they run."""

    def __init__(self, ray: Any, options: RayExecutor, logs: Path) -> None:
        self._ray, self._options, self.logs = ray, options, logs
        ray.cloudpickle.register_pickle_by_value(ray_task)
        self._run_task = ray.remote(num_cpus=1, max_retries=0)(ray_task.run)
        self._looked = -math.inf

    def send(self, terms: Terms) -> Iterable[bytes]:
        """Give the files of a run to Ray, from which machines without them take them."""
        if self._options.address is None:  # all files are on this machine
            terms = terms._replace(files=())
        contents = {
            file.sha256: self._ray.put(file.content(functools.partial(read_bytes, file.path, LONGEST_SENT)))
            for file in terms.files
        }
        self._terms = pickle.dumps(terms), [self._ray.put(contents)]
        return ()

    def machines(self) -> Mapping[str, str]:
        """Return the machines with processors, as of a moment ago; several may be on the same host."""
        if time.monotonic() > self._looked + _GLANCE_SECONDS:
            try:  # Ray itself would wait for a minute, then end the process
                _connect(self._ray.get_runtime_context().gcs_address)
            except OSError as error:
                why = "the first machine of the cluster has left; what was done is stored; run again"
                raise ExecutorError(why) from error
            nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
            self._machines = {one["NodeID"]: f"{one['NodeManagerHostname']} ({one['NodeID'][:8]})" for one in nodes}
            n_processors = sum(node["Resources"]["CPU"] for node in nodes)
            self.room = self._options.workers or max(1, round(_TASKS_PER_PROCESSOR * n_processors))
            self._looked = time.monotonic()
        return self._machines

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> list[TaskId]:
        """Submit one task for each list of jobs."""
        selector = {"label_selector": {"ray.io/node-id": f"!in({','.join(sorted(without))})"}} if without else {}
        run = self._run_task.options(**selector)
        return [run.remote(pickle.dumps(chunk), *self._terms) for chunk in chunks]

    def wait(self, tasks: Collection[TaskId]) -> list[TaskId]:
        """Wait until a task ends, but not for long; return all that have ended by then."""
        self._ray.wait(list(tasks), num_returns=1, timeout=_IDLE_SECONDS)
        return list(self._ray.wait(list(tasks), num_returns=len(tasks), timeout=0)[0])

    def result(self, task: TaskId) -> bytes:
        """Return the bytes that a task sent; Ray must not make any other object of them, which could run anything."""
        try:
            with only_data():
                answer = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            text = str(error).strip()
            if type(error).__name__ in _NOT_RUN or isinstance(error, self._ray.exceptions.RayTaskError):
                raise RuntimeError(last_line(text)) from error
            raise TaskLost(text.partition("\n")[0]) from error
        if not isinstance(answer, bytes):
            raise RuntimeError(f"a task must send back bytes, got {type(answer).__name__}")
        return answer

    def cancel(self, tasks: Collection[TaskId]) -> None:
        """End tasks, together with the processes that run them."""
        left, limit = list(tasks), time.monotonic() + END_SECONDS
        # Ray does not end a task that has reached its process but has not begun there, so it is asked again.
        while left and time.monotonic() < limit:
            for task in left:
                with contextlib.suppress(Exception):
                    self._ray.cancel(task, force=True)
            _, left = self._ray.wait(left, num_returns=len(left), timeout=1.0)


def _connect(address: str) -> None:
    if found := _ADDRESS.fullmatch(address):
        socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=_REACH_SECONDS).close()


def _check_reachable(address: str) -> None:
    """Raise an OSError unless a cluster answers: Ray itself would try for minutes, then end the process."""
    _connect(address)
    try:
        run_python(("-c", _PROBE, address), {}, timeout=_ANSWER_SECONDS, check=True, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"what listens there does not answer like Ray for {_ANSWER_SECONDS:g} seconds") from error
    except subprocess.CalledProcessError as error:
        raise ConnectionError(reason(ValueError(last_line(error.stderr)))) from error


def ray_folder() -> str | None:
    """Make a folder for a new cluster, after removing those of killed programs; None if its name would be too long."""
    room = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    if len(os.fsencode(room)) > _LONGEST_ROOM:
        return None
    room.mkdir(parents=True, exist_ok=True)
    earlier = [folder for folder in temporary_folders(room, "tb-ray") if lock_of(folder)]
    _at_end.callback(_remove_what_came_back, earlier)
    return str(_at_end.enter_context(temporary_folder(room, "tb-ray")))


def _remove_what_came_back(folders: Iterable[Path]) -> None:
    """Remove folders of killed programs, whose Ray runs on for seconds and creates them again, without their locks."""
    for folder in folders:
        if not lock_of(folder):
            shutil.rmtree(folder, ignore_errors=True)
