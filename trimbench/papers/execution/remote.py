"""Jobs on other machines, by Ray or Slurm: a cluster runs tasks, each of which runs its jobs in a worker process."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
import logging
import math
import os
import pickle
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

from trimbench.papers.execution.here import Workers
from trimbench.papers.execution.job import LOG_BYTES, Job, JobLimits, check_size, in_megabytes, to_plain
from trimbench.papers.execution.store import PROVENANCE, RUN_VARIABLE, Record, usable_cpus
from trimbench.papers.execution.workers import (
    LONGEST_LOG,
    TRACEBACK_CHARACTERS,
    ExecutorError,
    OnRecord,
    WorkerSettings,
    describe,
    failure,
    take,
)
from trimbench.papers.files import make_temporary_folder, remove_temporary_folder, temporary_folder, write
from trimbench.papers.validation import reason, settings

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

    def result(self, task: Task) -> bytes:
        """Return what `run_task` gave; raise TaskLost, or another error for a task that could not run."""
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
            for job, why in lost.items():
                text = f"the task ended without a result: {why}"
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
        why = ""
        try:
            records = _records(self._cluster.result(task), jobs)
            self._useless = None
        except TaskLost as error:
            why = reason(error)
        except Exception as error:  # a cluster raises what the task raised, whatever it was
            why = describe(error).splitlines()[-1]
            if self._useless is not None:
                self._useless += 1
            if self._useless == _MAX_USELESS_TASKS:
                raise ExecutorError(
                    f"the first {self._useless} tasks could not run, the last because of {why}; is the project "
                    "installed in the same version on every machine of the cluster?"
                ) from error
        for record in records:
            self._on_record(record)
        done = {record.job for record in records}
        return {job: why for job in jobs if job not in done}


_kept: dict[tuple[JobLimits, Path], Workers] = {}


def run_task(jobs: Sequence[Job], limits: JobLimits, logs: Path, environment: Mapping[str, str] | None = None) -> bytes:
    """Run the jobs of one task in a worker process, one after another; this is what a cluster calls on its machines.

    If a cluster runs several tasks of one sweep in the same process, they share the worker. What is returned is data in
    a closed format, which is read without running anything: one line of JSON for each job, in order, with the text of
    its record and its log; or a line with the reason why the task could not run.
    """
    try:
        os.environ.update(environment or {})
        if (limits, logs) not in _kept:
            _stop_kept()
            _kept[limits, logs] = Workers(1, limits, logs)
        records: dict[Job, Record] = {}
        _kept[limits, logs].run(jobs, lambda record: records.update({record.job: record}))
        return "\n".join(json.dumps([records[job].to_json(), records[job].log]) for job in jobs).encode()
    except Exception as error:  # noqa: BLE001  (whatever it was, it goes back as a text)
        return json.dumps({"error": _last_line(describe(error))}).encode()


def _records(answer: object, jobs: Sequence[Job]) -> list[Record]:
    """Read what `run_task` returned elsewhere; raise RuntimeError with the reason if the task could not run.

    Nothing in it is trusted: what is not the record of its job, as a job of this program could have written it, is a
    failure of this job alone.
    """
    if not isinstance(answer, bytes):
        raise RuntimeError(f"a task must send back bytes, got {type(answer).__name__}")
    lines = answer.split(b"\n")
    with contextlib.suppress(ValueError, RecursionError):
        first = json.loads(lines[0])
        if isinstance(first, dict) and isinstance(first.get("error"), str):
            raise RuntimeError(reason(ValueError(first["error"])))
    return [_record(job, line) for job, line in zip(jobs, itertools.chain(lines, itertools.repeat(b"")), strict=False)]


def _record(job: Job, line: bytes) -> Record:
    """Return the record of a job in a line that came from elsewhere."""
    try:
        text, log = json.loads(line)
        if not isinstance(text, str) or not isinstance(log, str) or len(log) > LONGEST_LOG:
            raise ValueError(f"it must be the text of a record and a log of at most {in_megabytes(LOG_BYTES)}")
        record = Record.of(job, text)
        check_size(job.function, to_plain(record.result, "result"))
        if len(record.error or "") > 2 * TRACEBACK_CHARACTERS or not PROVENANCE.holds(record.provenance):
            raise ValueError(f"it must have a short error, and provenance that is {PROVENANCE.words}")
    except (ValueError, TypeError, RecursionError) as error:
        return failure(job, "failed", f"what its task sent back is not used: {reason(error)}", 0.0)
    return replace(record, log=log)


@atexit.register
def _stop_kept() -> None:
    while _kept:
        with contextlib.suppress(OSError):
            _kept.popitem()[1].close()


# Jobs on a Ray cluster: this machine's processors, or many machines.

_IDLE_SECONDS = 0.5
_REACH_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_PROBE = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
_ADDRESS = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})", re.ASCII)
_END_SECONDS = 10.0
# Errors of Ray for a task that could not run, as its function was not found, or that gave what is refused.
_NOT_RUN = ("RaySystemError", "UnserializableException")
# Enough to make a cluster grow, if it can.
_MAX_TASKS = 500
# Variables that a worker on another machine needs as well.
_PASSED_ON = ("TRIMBENCH_CACHE", "XDG_CACHE_HOME", RUN_VARIABLE)
# The name of a Unix socket has at most 107 bytes (103 on macOS), and Ray's are up to 66 below a folder of 20 in this.
_LONGEST_ROOM = 16


@settings
class RayExecutor(RemoteExecutor):
    """Runs each job as a task of a Ray cluster, with one processor.

    `address` is that of a running cluster, ``"host:port"`` or ``"auto"``; by default a cluster of this machine is
    started. The connection, or the cluster of this machine, serves all runs of the program and ends with it.
    """

    address: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.address is not None and self.address != "auto" and not _is_address(self.address):
            raise ValueError(
                f"address must be host:port, auto or None, got {self.address[:100]!r}; None starts a cluster"
            )

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
            connected = ray.get_runtime_context().gcs_address
            if self.address in (None, "auto", connected):
                return ray
            raise ExecutorError(
                f"address must be that of a running Ray cluster which this program may join, got {self.address!r}: it "
                f"is connected to {connected} already; run the other cluster's jobs in a program of their own"
            )
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        folder = ray_folder() if self.address is None else None
        if self.address is None:
            options |= {"num_cpus": self.workers, "include_dashboard": False, "_temp_dir": folder and str(folder)}
        try:
            _check_reachable(self.address)
            ray.init(address=self.address or "local", **options)
        except (OSError, RuntimeError, ValueError) as error:
            if folder:
                remove_temporary_folder(folder)
            raise ExecutorError(
                f"address must be that of a running Ray cluster, got {self.address!r}: {error}; start one with "
                "`ray start --head`, or leave address out to use this machine"
            ) from error
        if self.address is None:
            atexit.register(_end_cluster, ray, folder)
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

    def result(self, task: Task) -> bytes:
        """Return what a task gave, which is never an object that Ray makes of it: that could run anything."""
        try:
            with _only_data():
                answer: bytes = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            text = str(error).strip()
            if type(error).__name__ in _NOT_RUN or isinstance(error, self._ray.exceptions.RayTaskError):
                raise RuntimeError(_last_line(text)) from error
            raise TaskLost(text.partition("\n")[0]) from error
        return answer

    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks, together with the processes that run them."""
        for task in tasks:
            with contextlib.suppress(Exception):
                self._ray.cancel(task, force=True)
        if tasks:
            self._ray.wait(list(tasks), num_returns=len(tasks), timeout=_END_SECONDS)


_reading = threading.local()


@contextmanager
def _only_data() -> Iterator[None]:
    """Refuse to look up any function or class that a pickle names, in this thread."""
    _watch_pickles()
    _reading.only_data = True
    try:
        yield
    finally:
        _reading.only_data = False


@functools.cache
def _watch_pickles() -> None:
    """Add the hook of `_only_data`: Python itself asks it, whatever library reads the pickle, and never lets it go."""

    def refuse(event: str, _: object) -> None:
        if event == "pickle.find_class" and getattr(_reading, "only_data", False):
            raise pickle.UnpicklingError("a task must send back bytes, got an object")

    sys.addaudithook(refuse)


def _run_ray_task(jobs: Sequence[Job], limits: JobLimits, logs: Path, environment: Mapping[str, str]) -> bytes:
    """Run a task in a process of Ray."""
    # A spawned process first runs the file of its parent's __main__, which here would take seconds to import Ray.
    vars(sys.modules["__main__"]).pop("__file__", None)
    return run_task(jobs, limits, logs, environment)


def _is_address(text: str) -> bool:
    """Tell whether a text is ``host:port``; an IPv6 address is in brackets."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[2]) < 2**16


def _check_reachable(address: str | None) -> None:
    """Raise an OSError unless a cluster answers: Ray itself would try for minutes, then end the process."""
    if found := _ADDRESS.fullmatch(address or ""):
        with socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=_REACH_SECONDS):
            pass
    if address is not None:
        command = [sys.executable, "-c", _PROBE, address]
        try:
            subprocess.run(command, timeout=_ANSWER_SECONDS, check=True, capture_output=True, text=True)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(
                f"what listens there does not answer like Ray for {_ANSWER_SECONDS:g} seconds"
            ) from error
        except subprocess.CalledProcessError as error:
            raise ConnectionError(reason(ValueError(_last_line(error.stderr)))) from error


def _end_cluster(ray: Any, folder: Path | None) -> None:
    """End the cluster that this program started, and remove its files, which Ray never does."""
    ray.shutdown()
    if folder:
        remove_temporary_folder(folder)


def ray_folder() -> Path | None:
    """Make a folder for the files of a new cluster of this machine, after removing those of killed programs.

    None leaves the choice to Ray, because the name of the folder for temporary files is too long.
    """
    room = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    if len(os.fsencode(room)) > _LONGEST_ROOM:
        return None
    room.mkdir(parents=True, exist_ok=True)
    return make_temporary_folder(room, "tb-ray")


# Jobs on a Slurm cluster, through submitit.

# Slurm is polled rarely, because its controller serves all users.
_LOOK_SECONDS = {"local": 0.1, "slurm": 10.0}
_PARTITION = re.compile(r"\w[\w.+-]*(,\w[\w.+-]*)*", re.ASCII)


@settings
class SlurmExecutor(RemoteExecutor):
    """Runs the jobs as tasks of a Slurm job array; the folder of results must be shared with the machines.

    Scripts, results and logs of the tasks are in `folder` during the run; only the logs of lost tasks stay. A task gets
    `minutes` of wall time and `memory_gb` GiB. The cluster ``"local"`` runs the tasks as processes of this machine.
    """

    folder: str = "slurm"
    jobs_per_task: int = 10
    minutes: int = 60
    memory_gb: float = 4.0
    partition: str | None = None
    cluster: Literal["slurm", "local"] = "slurm"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_least(jobs_per_task=1, minutes=1)
        # Both become part of a script that the shell of another machine reads line by line.
        if not self.folder or not self.folder.isprintable():
            raise ValueError(f"folder must be the name of a folder, and printable, got {self.folder[:100]!r}")
        if self.partition is not None and not _PARTITION.fullmatch(self.partition):
            raise ValueError(
                f"partition must be a name of ASCII letters, digits and _ . + -, or several with commas between, "
                f"got {self.partition[:100]!r}"
            )
        if not 0 < self.memory_gb < math.inf:
            raise ValueError(f"memory_gb must be a positive number of GiB, got {self.memory_gb!r}")
        if (self.limits.memory or 0) > self.memory_gb * 2**30:
            raise ValueError(
                f"memory must be at most the {self.memory_gb:g} GiB of a task, got {self.memory!r}; raise memory_gb"
            )

    @contextmanager
    def connected(self) -> Iterator[SubmititCluster]:
        """Provide the cluster for one run, with a folder for the files of its tasks, which is removed at the end."""
        folder = Path(self.folder).expanduser().absolute()
        # submitit fills in what stands after a percent sign, so its files are in the nearest folder without one.
        above = next(one for one in (folder, *folder.parents) if "%" not in str(one))
        try:
            for one in (folder, above):
                one.mkdir(parents=True, exist_ok=True)
            place = make_temporary_folder(above, "tasks")
            cluster = SubmititCluster(self, place, folder)
            cluster.logs.mkdir()
        except OSError as error:
            raise self.refusal(error) from error
        try:
            yield cluster
        finally:
            remove_temporary_folder(place)
            with contextlib.suppress(OSError):  # it holds logs, or tasks of another program
                folder.rmdir()

    def refusal(self, error: Exception) -> ExecutorError:
        """Return the error for tasks that cannot be submitted."""
        return ExecutorError(
            f"the tasks could not be given to {self.cluster!r}: {error}; run where sbatch is, or use executor=processes"
        )


class SubmititCluster:
    """Tasks of Slurm, or of this machine, with their files in a folder."""

    def __init__(self, options: SlurmExecutor, place: Path, lost: Path) -> None:
        self._options, self._place, self._lost = options, place, lost
        self._is_local = options.cluster == "local"
        self._answers: dict[Task, Path] = {}
        self.logs = place / "logs"
        self.jobs_per_task = options.jobs_per_task
        self.attempts = options.retries + 1
        # Slurm has a queue of its own; on this machine tasks run as soon as they are submitted.
        self.room = options.workers or usable_cpus() if self._is_local else 10**9

    def submit(self, chunks: Sequence[Sequence[Job]]) -> list[Task]:
        """Submit the lists of jobs as one job array."""
        import submitit

        options, n = self._options, len(chunks)
        parallel = {} if self._is_local else {"slurm_array_parallelism": options.workers or n}
        try:
            executor = submitit.AutoExecutor(folder=self._place, cluster=options.cluster)
            executor.update_parameters(
                name="trimbench",
                timeout_min=options.minutes,
                mem_gb=options.memory_gb,
                cpus_per_task=1,
                tasks_per_node=1,
                **({"slurm_partition": options.partition} if options.partition else {}),
                **parallel,
            )
            answers = [self._place / f"{secrets.token_hex(8)}.json" for _ in chunks]
            tasks = executor.map_array(_write_task, answers, chunks, [options.limits] * n, [self.logs] * n)
            self._answers |= zip(tasks, answers, strict=True)
            return list(tasks)
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise self._options.refusal(error) from error

    def wait(self, tasks: Collection[Task]) -> list[Task]:
        """Return the tasks that have ended; wait a moment if there is none."""
        done = [task for task in tasks if task.done()]
        if not done:
            os.utime(self._place)  # tells programs on other machines that it is in use
            time.sleep(_LOOK_SECONDS[self._options.cluster])
        return done

    def result(self, task: Task) -> bytes:
        """Return what a task wrote; the logs of one that wrote nothing stay in the folder above.

        submitit's own file with the result is only looked at: reading it could run anything.
        """
        answer = self._answers.pop(task)
        limit = time.monotonic() + (0 if self._is_local else _END_SECONDS)
        while not answer.is_file() and time.monotonic() < limit:  # the file system may be slow
            time.sleep(_LOOK_SECONDS["local"])
        try:
            return answer.read_bytes()
        except OSError:
            said, has_run = _last_line(task.stderr() or task.state), task.paths.result_pickle.exists()
            for path in (task.paths.stdout, task.paths.stderr):
                with contextlib.suppress(OSError):  # Slurm may not have written one
                    path.replace(self._lost / path.name)
            raise (RuntimeError if has_run else TaskLost)(said) from None

    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks; wait until those of this machine have ended and write nothing more."""
        for task in tasks:
            with contextlib.suppress(Exception):
                task.cancel()
        limit = time.monotonic() + _END_SECONDS
        while self._is_local and time.monotonic() < limit and not all(task.done() for task in tasks):
            time.sleep(_LOOK_SECONDS["local"])


def _write_task(answer: Path, jobs: Sequence[Job], limits: JobLimits, logs: Path) -> None:
    """Run a task in a process of submitit."""
    content = run_task(jobs, limits, logs)
    write(answer, lambda temporary: temporary.write_bytes(content))


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
