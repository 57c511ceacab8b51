"""Jobs on other machines, by Ray or Slurm: a cluster runs tasks, each of which runs its jobs in a worker process."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import logging
import math
import os
import pickle
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from trimbench.reproduction.children import python, run_python, starting
from trimbench.reproduction.execution import ray_task
from trimbench.reproduction.execution.cluster_task import (
    ANSWER,
    Terms,
    last_line,
    machines_of,
    only_data,
    read_answer,
    write_task,
)
from trimbench.reproduction.execution.executors import (
    ExecutorError,
    Files,
    OnRecord,
    WorkerSettings,
    describe,
    failure,
    take,
)
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import Record, usable_cpus
from trimbench.reproduction.extras import MissingExtraError, check_installed
from trimbench.reproduction.files import lock_of, read_bytes, temporary_folder, temporary_folders, without_homes
from trimbench.reproduction.messages import reason
from trimbench.reproduction.project import DISTRIBUTION
from trimbench.reproduction.settings import ConfigurationError, settings

# The run is given up if this many tasks could not run before any could.
_MAX_USELESS_TASKS = 5
# A machine gets no more jobs after this many in a row that failed for want of something.
_MOST_IN_A_ROW = 2
# Short jobs share tasks, each of which takes about this long.
_TASK_SECONDS = 0.5
_LONGEST_SENT = 2**31  # bytes of a file that a task gets, or of its answer
_MOST_PER_TASK = 20
TaskId = Any  # how a cluster identifies a task
_log = logging.getLogger(__name__)


class TaskLost(Exception):  # noqa: N818 - an event of the cluster, not a mistake
    """A task ended with its machine or process; it may succeed elsewhere."""


class Cluster(ABC):
    """Machines that run tasks.

    `logs` is a folder for what jobs write while they run. At most `room` tasks are queued or running at a time. A task
    has `jobs_per_task` jobs; with None, as many as take half a second.
    """

    logs: Path
    room: int
    jobs_per_task: int | None = None

    @abstractmethod
    def send(self, terms: Terms) -> Iterable[bytes]:
        """Take what the tasks of a run need; return answers of `run_task` without jobs, from machines tried first."""

    @abstractmethod
    def machines(self) -> Mapping[str, str]:
        """Return the machines that are there: names as in answers of `run_task`, each with the name that people use."""

    @abstractmethod
    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> Sequence[TaskId]:
        """Submit a call of `run_task` for each list of jobs, to machines other than those in `without`."""

    @abstractmethod
    def wait(self, tasks: Collection[TaskId]) -> Collection[TaskId]:
        """Wait a moment, and return the tasks that have ended."""

    @abstractmethod
    def result(self, task: TaskId) -> bytes:
        """Return the answer of `run_task`; raise TaskLost, or another error for a task that could not run."""

    @abstractmethod
    def cancel(self, tasks: Collection[TaskId]) -> None:
        """End tasks and wait until they write nothing more."""


@settings
class RemoteExecutor(WorkerSettings, ABC):
    """Runs the jobs as tasks of a cluster.

    An exception, a job over a limit and a worker process that dies each cost one job. A job that fails for want of
    data, memory, disk or an import runs once on each other machine, until one has what it needs; a machine on which two
    jobs in a row failed so, and succeeded elsewhere, gets no more. The jobs of a task whose machine is lost run again
    up to `retries` times. A machine with other versions of what decides the results is refused. `workers` tasks run at
    the same time, by default as many as the cluster has processors for.
    """

    retries: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("retries", 0), ("jobs_per_task", 1), ("minutes", 1)):
            if (value := getattr(self, name, least)) < least:
                raise ValueError(f"{name} must be a whole number, {least} or more, got {value!r}")

    @abstractmethod
    def connected(self) -> AbstractContextManager[Cluster]:
        """Provide the cluster for one run; raise ExecutorError if there is none."""

    def run(self, jobs: Sequence[Job], on_record: OnRecord, files: Files | None = None) -> None:
        """Run all jobs, as described in `Executor.run`, with records in the order in which the tasks end."""
        if jobs:
            with self.connected() as cluster:
                sweep = _Sweep(cluster, jobs, on_record, self.retries)
                sweep.run(Terms.of(jobs, files or {}, self.limits, cluster.logs))


class _Sweep:
    """The tasks of one run, and what is known of the machines that fail."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job], on_record: OnRecord, retries: int) -> None:
        self._cluster, self._on_record, self._retries = cluster, on_record, retries
        self._waiting = deque(jobs)
        self._again: deque[Job] = deque()  # each in a task of its own
        self._running: dict[TaskId, tuple[Sequence[Job], Collection[str]]] = {}  # with machines that must not run them
        self._n_useless = 0.0  # tasks that could not run, until one could
        self._n_lost: Counter[Job] = Counter()
        # What jobs lacked, by machine, until it is known whose fault that was; for each machine, its last such jobs.
        self._lacked: dict[Job, dict[str, Record]] = {}
        self._in_a_row: dict[str, dict[Job, str]] = {}
        self._nowhere: list[str] = []  # what the last jobs lacked on all machines
        self._there: Mapping[str, str] = {}
        self._names: dict[str, str] = {}  # of all machines that were there
        self._out: dict[str, str] = {}  # a line for each machine that gets no more jobs
        self._seconds, self._n_done = 0.0, 0

    def run(self, terms: Terms) -> None:
        """Run the jobs; raise ExecutorError if no machine can."""
        try:
            self._look()
            for answer in self._cluster.send(terms):
                self._read(answer, ())
            while self._waiting or self._again or self._running:
                self._look()
                while self._submit(self._cluster.room - len(self._running)):
                    pass
                for task in self._cluster.wait(self._running) if self._running else ():
                    self._collect(task, self._running.pop(task)[0])
        finally:
            self._cluster.cancel(self._running)
        if (n := len(self._nowhere)) >= _MOST_IN_A_ROW:
            _log.warning("No machine could run the last %s jobs: %s; what was done is stored", n, self._nowhere[-1])

    def _look(self) -> None:
        """Note which machines have left; tasks that no other machine may run are ended, and their jobs run again."""
        self._there = self._cluster.machines()
        self._names |= self._there
        for machine in self._names.keys() - self._there:
            self._leave_out(machine, "it left the cluster while the jobs ran")
        stuck = [task for task, (_, out) in self._running.items() if not self._others({*out, *self._out})]
        self._cluster.cancel(stuck)
        for task in stuck:
            self._again.extend(self._running.pop(task)[0])

    def _leave_out(self, machine: str, why: str) -> None:
        """Give a machine no more jobs, and say so with the first reason."""
        if machine not in self._out:
            self._out[machine] = f"node {self._names.get(machine, machine)}: {why}"
            _log.warning("Left out of the run: %s", self._out[machine])

    def _others(self, machines: Collection[str]) -> bool:
        """Tell whether there are machines other than these; as long as no names are known, there may be."""
        return not self._names or not self._there.keys() <= {*machines}

    def _barred(self, job: Job | None) -> set[str] | None:
        """Return the machines that must not run a job again, or a new one (None); None if no other is left."""
        tried = self._lacked.get(job, {}) if job else {}
        if not self._names and len(tried) > self._retries:
            return None
        out = {*self._out, *tried}
        suspected = {machine for machine, row in self._in_a_row.items() if len(row) >= _MOST_IN_A_ROW}
        # Machines with failures in a row get no new job, and a job that runs again only if no better machine is left.
        return next(filter(self._others, (out | suspected, out) if job else (out | suspected,)), None)

    def _submit(self, room: int) -> bool:
        """Submit jobs to machines that may run them, or give up on one; tell whether there was anything to do."""
        if room <= 0 or not (self._again or self._waiting):
            return False
        if (without := self._barred(self._again[0] if self._again else None)) is None:
            if self._again and self._others(self._out):
                self._hand_over([*self._lacked[self._again.popleft()].values()][-1], is_own=True)
                return True
            if self._running:
                return False
            lines = "; ".join(sorted(self._out.values()))
            raise ExecutorError(f"no machine can run the jobs: {lines}; what was done is stored")
        if self._again:
            alike = itertools.takewhile(lambda job: self._barred(job) == without, itertools.islice(self._again, room))
            chunks = [[self._again.popleft()] for _ in list(alike)]
        else:
            size, n = self._cluster.jobs_per_task or self._size(room), len(self._waiting)
            starts = range(0, min(room * size, n), size)
            chunks = [[self._waiting.popleft() for _ in range(min(size, n - start))] for start in starts]
        self._running |= zip(self._cluster.submit(chunks, without), ((one, without) for one in chunks), strict=True)
        return True

    def _size(self, room: int) -> int:
        """Return the number of jobs for a task, so that it is short and all machines finish at about the same time."""
        each = self._seconds / self._n_done if self._n_done else _TASK_SECONDS
        return max(1, min(_MOST_PER_TASK, int(_TASK_SECONDS / max(each, 1e-3)), len(self._waiting) // (2 * room)))

    def _collect(self, task: TaskId, jobs: Sequence[Job]) -> None:
        """Hand over the records of a task, or run its jobs again."""
        try:
            answer = self._cluster.result(task)
        except TaskLost as error:
            self._lose(jobs, reason(error))
        except Exception as error:  # a cluster raises whatever the task raised
            why = last_line(describe(error))
            self._n_useless += 1
            if self._n_useless == _MAX_USELESS_TASKS:
                raise ExecutorError(
                    f"the first {_MAX_USELESS_TASKS} tasks could not run, the last because of {why}; is the project "
                    "installed in the same version on every machine of the cluster?"
                ) from error
            self._lose(jobs, why)
        else:
            self._n_useless = -math.inf
            self._read(answer, jobs)

    def _lose(self, jobs: Sequence[Job], why: str) -> None:
        """Run the jobs of a lost task again; those that were lost too often have crashed."""
        self._n_lost.update(jobs)
        for job in jobs:
            log = take(self._cluster.logs / job.key)
            lost = failure(job, "crashed", f"the task ended without a result: {why}", 0.0, log)
            if self._n_lost[job] > self._retries:
                self._hand_over(lost, is_own=True)
            else:
                self._again.append(job)

    def _read(self, answer: bytes, jobs: Sequence[Job]) -> None:
        """Hand over the records of a task, except for jobs that may find elsewhere what this machine lacked."""
        machine, why, records = read_answer(answer, jobs)
        if why:
            self._leave_out(machine, without_homes(why))
            self._again.extend(jobs)
        for record in records:
            if record.lacking and machine:
                self._in_a_row.setdefault(machine, {})[record.job] = without_homes(last_line(str(record.error)))
                self._lacked.setdefault(record.job, {})[machine] = record
                self._again.append(record.job)
            else:
                self._in_a_row.pop(machine, None)
                self._hand_over(record)

    def _hand_over(self, record: Record, *, is_own: bool = False) -> None:
        """Hand over a record; what the job lacked before was its own fault if `is_own`, else that of the machines."""
        tried = self._lacked.pop(record.job, {})
        if record.ok:
            self._nowhere.clear()
        elif is_own and tried:
            self._nowhere.append(last_line(str(record.error)))
        for machine in tried:
            row = self._in_a_row.get(machine, {})
            if is_own:
                row.pop(record.job, None)
            elif len(known := [why for job, why in row.items() if job not in self._lacked]) >= _MOST_IN_A_ROW:
                self._leave_out(machine, known[0])
        self._seconds, self._n_done = self._seconds + record.seconds, self._n_done + 1
        left_out: dict[str, Any] = {"left_out": sorted(self._out.values())} if self._out else {}
        self._on_record(replace(record, provenance=record.provenance | left_out))


# Jobs on a Ray cluster: this machine's processors, or many machines.

_IDLE_SECONDS = 0.5
_GLANCE_SECONDS = 2.0
_REACH_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_PROBE = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
_ADDRESS = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):([1-9]\d{0,4})", re.ASCII)
_END_SECONDS = 10.0
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
            # It hands the current folder on to its workers, first on their path.
            with starting(), contextlib.chdir(_ray_logs()):
                ray.init(address=self.address or "local", **options)
            _asked_for[:] = [self.address]
        except (OSError, RuntimeError, ValueError) as error:
            raise ExecutorError(
                f"address must be that of a running Ray cluster, got {self.address!r}: {error}; start one with "
                "`ray start --head`, or leave address out to use this machine; a cluster with a token needs "
                "RAY_AUTH_MODE=token here, too"
            ) from error
        return ray


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
            file.sha256: self._ray.put(file.content(functools.partial(read_bytes, file.path, _LONGEST_SENT)))
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
        left, limit = list(tasks), time.monotonic() + _END_SECONDS
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


# Jobs on a Slurm cluster, through submitit.

# Slurm is polled rarely, because its controller serves all users.
_LOOK_SECONDS = {"local": 0.1, "slurm": 10.0}
_LOOK_MINUTES = 2
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
            with contextlib.ExitStack() as stack:
                try:
                    for one in (folder, above):
                        one.mkdir(parents=True, exist_ok=True)
                    cluster = SubmititCluster(self, stack.enter_context(temporary_folder(above, "tasks")), folder)
                    cluster.logs.mkdir()
                except (OSError, subprocess.SubprocessError) as error:
                    raise self.refusal(error) from error
                yield cluster
        finally:
            with contextlib.suppress(OSError):  # it holds logs, or tasks of another program
                folder.rmdir()

    def refusal(self, error: Exception) -> ExecutorError:
        """Return the error for tasks that cannot be submitted."""
        return ExecutorError(
            f"the tasks could not be given to {self.cluster!r}: {error}; run where sbatch is, or use executor=processes"
        )


class SubmititCluster(Cluster):
    """Tasks of Slurm, or processes of this machine, with their files in a folder."""

    def __init__(self, options: SlurmExecutor, place: Path, lost: Path) -> None:
        self._options, self._place, self._lost = options, place, lost
        self._is_local = options.cluster == "local"
        self.logs, self.jobs_per_task = place / "logs", options.jobs_per_task
        # Slurm has a queue of its own; on this machine tasks run as soon as they are submitted.
        self.room = options.workers or usable_cpus() if self._is_local else 10**9
        self._machines = machines_of(options.partition, is_local=self._is_local)
        self._ended: dict[TaskId, float] = {}  # when it was seen

    def send(self, terms: Terms) -> Iterator[bytes]:
        """Keep what the tasks of a run need; try the nodes that are free, with one small job and not for long."""
        self._terms = terms
        if not self._is_local and self._machines:
            over, nodes = self._place / "over", {"nodes": f"1-{len(self._machines)}"}
            more = {"slurm_additional_parameters": nodes, "slurm_teardown": [f"touch {shlex.quote(str(over))}"]}
            (look,) = self._array([()], timeout_min=_LOOK_MINUTES, **more)
            limit = time.monotonic() + 60 * _LOOK_MINUTES
            while time.monotonic() < limit and not over.exists():
                self.wait(())
            self.cancel([look])
            yield from (read_bytes(path, _LONGEST_SENT) for path in self._place.glob(f"{look.job_id}_*{ANSWER}"))

    def machines(self) -> Mapping[str, str]:
        """Return the nodes that Slurm named at the start."""
        return self._machines

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> list[TaskId]:
        """Submit the lists of jobs as one job array."""
        return self._array(chunks, slurm_exclude=",".join(sorted(without)) or None)

    def _array(self, chunks: Sequence[Sequence[Job]], **more: object) -> list[TaskId]:
        import submitit

        options, n = self._options, len(chunks)
        common = {"name": DISTRIBUTION, "timeout_min": options.minutes, "cpus_per_task": 1, "tasks_per_node": 1}
        common |= {"slurm_array_parallelism": options.workers or n, "slurm_partition": options.partition}
        try:
            interpreter = {f"{options.cluster}_python": shlex.join(python())}
            executor = submitit.AutoExecutor(folder=self._place, cluster=options.cluster, **interpreter)
            executor.update_parameters(mem_gb=options.memory_gb, **common | more)
            with starting():
                return list(executor.map_array(write_task, chunks, [self._terms] * n))
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise options.refusal(error) from error

    def wait(self, tasks: Collection[TaskId]) -> list[TaskId]:
        """Return the tasks that have ended; wait a moment if there is none."""
        now, patience = time.monotonic(), 0 if self._is_local else _END_SECONDS
        # The file system may be slow to show what tasks wrote, so those without an answer get some more time.
        ended = {task: self._ended.setdefault(task, now) for task in tasks if task.done()}
        late = {one for one, at in ended.items() if now >= at + patience}
        done = [one for one in ended if one in late or one.paths.result_pickle.with_suffix(ANSWER).is_file()]
        if not done:
            os.utime(self._place)  # tells programs on other machines that it is in use
            time.sleep(_LOOK_SECONDS[self._options.cluster])
        return done

    def result(self, task: TaskId) -> bytes:
        """Return a task's answer, not submitit's pickle, which could run anything; if there is none, keep the logs."""
        try:
            return read_bytes(task.paths.result_pickle.with_suffix(ANSWER), _LONGEST_SENT)
        except (OSError, ConfigurationError):
            said, has_run = last_line(task.stderr() or task.state), task.paths.result_pickle.exists()
            for path in (task.paths.stdout, task.paths.stderr):
                with contextlib.suppress(OSError):  # Slurm may not have written one
                    path.replace(self._lost / path.name)
            raise (RuntimeError if has_run else TaskLost)(said) from None

    def cancel(self, tasks: Collection[TaskId]) -> None:
        """End tasks; wait until those of this machine have ended and write nothing more."""
        for task in tasks:
            with contextlib.suppress(Exception):
                task.cancel()
        limit = time.monotonic() + _END_SECONDS
        while self._is_local and time.monotonic() < limit and not all(task.done() for task in tasks):
            time.sleep(_LOOK_SECONDS["local"])
