"""Jobs on other machines, by Ray or Slurm: a cluster runs tasks, each of which runs its jobs in a worker process."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import math
import os
import pickle
import re
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from trimbench.papers.execution import ray_task
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import Record, usable_cpus
from trimbench.papers.execution.task import NotBegun, Terms, keep, last_line, only_data, read_answer, run_task
from trimbench.papers.execution.workers import ExecutorError, Files, OnRecord, WorkerSettings, describe, failure, take
from trimbench.papers.files import lasting_folder, make_temporary_folder, remove_temporary_folder, without_homes
from trimbench.papers.validation import reason, settings

# After this many tasks that could not run, on machines that nobody can name, no other will.
_MAX_USELESS_TASKS = 5
# A machine on which so many jobs in a row fail for want of something takes no more.
_MOST_IN_A_ROW = 2
# Tasks of short jobs have so many of them that each takes about this long.
_TASK_SECONDS = 0.5
_MOST_PER_TASK = 20
Task = Any  # how a cluster identifies a task
_log = logging.getLogger(__name__)


class TaskLost(Exception):  # noqa: N818 - an event of the cluster, not a mistake
    """A task ended with its machine or process; it may succeed elsewhere."""


class Cluster(ABC):
    """Machines that run tasks.

    `logs` is a folder for what jobs write while they run. At most `room` tasks are queued or running at a time. A task
    has `jobs_per_task` jobs; with None, as many as end within half a second.
    """

    logs: Path
    room: int
    jobs_per_task: int | None = None

    @abstractmethod
    def send(self, terms: Terms) -> None:
        """Take what the tasks of a run need, before the first of them."""

    @abstractmethod
    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> Sequence[Task]:
        """Submit one task for each list of jobs, which calls `run_task`, to machines other than those `without`."""

    @abstractmethod
    def has_others(self, machines: Collection[str]) -> bool:
        """Tell whether there are machines other than these."""

    def title(self, machine: str) -> str:
        """Return what people call a machine."""
        return f"node {machine}"

    def gone(self) -> Collection[str]:
        """Look at the machines, and return those that have left since the run began."""
        return ()

    @abstractmethod
    def wait(self, tasks: Collection[Task]) -> Collection[Task]:
        """Wait a moment, and return the tasks that have ended."""

    @abstractmethod
    def result(self, task: Task) -> bytes:
        """Return what `run_task` gave; raise TaskLost, or another error for a task that could not run."""

    @abstractmethod
    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks and wait until they write nothing more."""


@settings
class RemoteExecutor(WorkerSettings, ABC):
    """Runs the jobs as tasks of a cluster.

    An exception, a job over a limit and a worker process that dies each cost one job. A job that fails for want of
    data, memory, disk or an import runs again on other machines, and a machine on which two in a row do so takes no
    more. The jobs of a task whose machine is lost run again, too; all of this up to `retries` times. A machine with
    other versions of what decides the results is refused. `workers` tasks run at the same time, by default as many as
    the cluster has processors for.
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

    def run(self, jobs: Sequence[Job], on_record: OnRecord, files: Files | None = None) -> None:
        """Run all jobs, as `Executor.run`, with records in the order in which the tasks end."""
        if jobs:
            with self.connected() as cluster:
                cluster.send(Terms.of(jobs, files or {}, self.limits, cluster.logs))
                _Sweep(cluster, jobs, on_record, self.retries).run()


class _Sweep:
    """The tasks of one run, and the machines that fail."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job], on_record: OnRecord, retries: int) -> None:
        self._cluster, self._on_record, self._retries = cluster, on_record, retries
        self._waiting = deque(jobs)
        self._again: deque[Job] = deque()  # each in a task of its own
        self._n_lost: Counter[Job] = Counter()
        self._n_useless: int | None = 0  # tasks that could not run, until one could
        self._tried: dict[Job, dict[str, Record]] = {}  # of jobs that failed for want of something, by machine
        # The failures in a row on each machine: of jobs, or under another key, of tasks that could not begin.
        self._in_a_row: dict[str, dict[object, str]] = {}
        self._gone: dict[str, str] = {}
        self._told: set[str] = set()
        self._seconds, self._n_done = 0.0, 0

    def run(self) -> None:
        """Run the jobs; raise ExecutorError if no machine can."""
        running: dict[Task, Sequence[Job]] = {}
        try:
            while self._waiting or self._again or running:
                for machine in self._cluster.gone():
                    self._gone[machine] = "it left the cluster while the jobs ran"
                    self._tell(machine, self._gone[machine])
                if self._gone and not self._is_left(self._out(for_good=True)):
                    self._refuse()  # what waits for the machines that left would wait for ever
                while found := self._next(self._cluster.room - len(running), alone=not running):
                    chunks, without = found
                    running |= zip(self._cluster.submit(chunks, without), chunks, strict=True)
                for task in self._cluster.wait(running) if running else ():
                    self._collect(task, running.pop(task))
        finally:
            self._cluster.cancel(running)

    def _next(self, room: int, *, alone: bool) -> tuple[list[Sequence[Job]], set[str]] | None:
        """Return lists of jobs to submit, and the machines that must not run them; None if there is nothing to submit.

        Where no task runs and no other machine is left, those on which jobs failed get more: the jobs may be to blame.
        """
        hopeless = self._out(for_good=True)
        for out in ([self._out(), hopeless] if alone else [self._out()]) if room > 0 else ():
            barred = [out.union(self._tried.get(job, ())) for job in itertools.islice(self._again, room)]
            if barred and self._is_left(barred[0]):
                alike = itertools.takewhile(barred[0].__eq__, barred)
                return [[self._again.popleft()] for _ in alike], barred[0]
            if self._waiting and self._is_left(out):
                size = self._cluster.jobs_per_task or self._size(room)
                starts = range(0, min(room * size, len(self._waiting)), size)
                return [[self._waiting.popleft() for _ in range(min(size, len(self._waiting)))] for _ in starts], out
        if alone and (self._again or self._waiting):
            if not self._is_left(hopeless):
                self._refuse()
            self._give_up(self._again.popleft())
        return None

    def _refuse(self) -> NoReturn:
        raise ExecutorError(f"no machine can run the jobs: {'; '.join(self._lines())}; what was done is stored")

    def _is_left(self, out: set[str]) -> bool:
        return not out or self._cluster.has_others(out)

    def _out(self, *, for_good: bool = False) -> set[str]:
        """Return the machines that take no more jobs; `for_good`, those that do not even begin with them."""
        rows = self._in_a_row.items()
        n_failures = {name: sum(not (for_good and isinstance(what, Job)) for what in row) for name, row in rows}
        return {name for name, n in n_failures.items() if n >= _MOST_IN_A_ROW}

    def _size(self, room: int) -> int:
        """Return how many of the jobs a task gets that it may not last long, and that all machines end together."""
        each = self._seconds / self._n_done if self._n_done else _TASK_SECONDS
        return max(1, min(_MOST_PER_TASK, int(_TASK_SECONDS / max(each, 1e-3)), len(self._waiting) // (2 * room)))

    def _collect(self, task: Task, jobs: Sequence[Job]) -> None:
        """Hand over the records of a task, or run its jobs again."""
        try:
            machine, records = read_answer(self._cluster.result(task), jobs)
        except NotBegun as error:
            self._n_useless = None
            self._again.extend(jobs)
            self._blame(error.machine, str(error), refused=error.refused)
        except TaskLost as error:
            self._lose(jobs, reason(error))
        except Exception as error:  # a cluster raises what the task raised, whatever it was
            why = last_line(describe(error))
            if self._n_useless is not None:
                self._n_useless += 1
            if self._n_useless == _MAX_USELESS_TASKS:
                raise ExecutorError(
                    f"the first {self._n_useless} tasks could not run, the last because of {why}; is the project "
                    "installed in the same version on every machine of the cluster?"
                ) from error
            self._lose(jobs, why)
        else:
            self._n_useless = None
            for record in records:
                self._take(record, machine)

    def _lose(self, jobs: Sequence[Job], why: str) -> None:
        """Run the jobs of a lost task again, each alone; those that were lost too often have crashed."""
        for job in jobs:
            self._n_lost[job] += 1
            if self._n_lost[job] <= self._retries:
                self._again.append(job)
            else:
                text = f"the task ended without a result: {why}"
                self._hand_over(failure(job, "crashed", text, 0.0, take(self._cluster.logs / job.key)))

    def _take(self, record: Record, machine: str) -> None:
        """Hand over a record, unless its job may find elsewhere what it lacked on this machine."""
        job, others = record.job, self._cluster.has_others
        if record.ok or not record.want or not machine:
            if machine not in self._out(for_good=True):
                self._in_a_row.pop(machine, None)
            self._tried.pop(job, None)
            self._hand_over(record)
            return
        tried = self._tried.setdefault(job, {})
        tried[machine] = record
        refused = record.want == "version" and others({machine})
        self._blame(machine, last_line(str(record.error)), None if refused else job, refused=refused)
        if len(tried) <= self._retries and others(self._out(for_good=True).union(tried)):
            self._again.append(job)
        else:
            self._give_up(job)

    def _give_up(self, job: Job) -> None:
        """Hand over the last failure of a job, which is then not that of the machines."""
        tried = self._tried.pop(job)
        for machine in tried:
            self._in_a_row.get(machine, {}).pop(job, None)
        self._hand_over(list(tried.values())[-1])

    def _hand_over(self, record: Record) -> None:
        self._seconds, self._n_done = self._seconds + record.seconds, self._n_done + 1
        left_out: dict[str, Any] = {"left_out": lines} if (lines := self._lines()) else {}
        self._on_record(replace(record, provenance=record.provenance | left_out))

    def _blame(self, machine: str, why: str, job: Job | None = None, *, refused: bool = False) -> None:
        """Note a failure for which a machine may be to blame, unless it is that of a job."""
        row = self._in_a_row.setdefault(machine, {})
        for _ in range(_MOST_IN_A_ROW if refused else 1):
            row[job or object()] = without_homes(why)
        if len(row) >= _MOST_IN_A_ROW:
            self._tell(machine, without_homes(why))

    def _tell(self, machine: str, why: str) -> None:
        """Say once that a machine takes no more jobs."""
        if machine not in self._told:
            self._told.add(machine)
            _log.warning("%s takes no more jobs: %s", self._cluster.title(machine), why)

    def _lines(self) -> list[str]:
        found = {machine: list(self._in_a_row[machine].values())[-1] for machine in sorted(self._out())} | self._gone
        return [f"{self._cluster.title(machine)}: {why}" for machine, why in found.items()]


# Jobs on a Ray cluster: this machine's processors, or many machines.

_IDLE_SECONDS = 0.5
_GLANCE_SECONDS = 2.0
_REACH_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_PROBE = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
_ADDRESS = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):([1-9]\d{0,4})", re.ASCII)
_END_SECONDS = 10.0
# Errors of Ray for a task that could not run, as its function was not found, or that gave what is refused.
_NOT_RUN = ("RaySystemError", "UnserializableException")
# Tasks that wait keep the processors busy, and make a cluster grow that can.
_TASKS_PER_PROCESSOR = 2
_LABEL = "ray.io/node-id"
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
        found = _ADDRESS.fullmatch(self.address or "")
        if self.address not in (None, "auto") and not (found and int(found[2]) < 2**16):
            raise ValueError(
                f"address must be host:port, auto or None, got {str(self.address)[:100]!r}; None starts a cluster"
            )

    @contextmanager
    def connected(self) -> Iterator[RayCluster]:
        """Provide the cluster for one run."""
        # The logs of all runs of this program, which share the workers, as long as they are there.
        yield RayCluster(self._connected_ray(), self, lasting_folder())

    def _connected_ray(self) -> Any:
        """Return the module of Ray, connected to a cluster."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # of lost machines it prints the logs; we name them
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
        try:
            if self.address is None:
                options |= {"num_cpus": self.workers, "include_dashboard": False, "_temp_dir": ray_folder()}
                atexit.register(ray.shutdown)  # before the folder is removed, which Ray never does
            else:
                _check_reachable(self.address)
            ray.init(address=self.address or "local", **options)
        except (OSError, RuntimeError, ValueError) as error:
            raise ExecutorError(
                f"address must be that of a running Ray cluster, got {self.address!r}: {error}; start one with "
                "`ray start --head`, or leave address out to use this machine; a cluster with a token needs "
                "RAY_AUTH_MODE=token here, too"
            ) from error
        return ray


class RayCluster(Cluster):
    """Tasks of Ray, which decides on which machines they run."""

    def __init__(self, ray: Any, options: RayExecutor, logs: Path) -> None:
        self._ray, self._options, self.logs = ray, options, logs
        ray.cloudpickle.register_pickle_by_value(ray_task)
        self._run_task = ray.remote(num_cpus=1, max_retries=0)(ray_task.run)
        self._names: dict[str, str] = {}
        self._look()

    def send(self, terms: Terms) -> None:
        """Give the files of a run to Ray, from which each machine takes them that has them not."""
        if self._options.address is None:  # on this machine, all are here
            terms = terms._replace(files=())
        contents = {file.sha256: self._ray.put(file.path.read_bytes()) for file in terms.files}
        self._terms = pickle.dumps(terms), [self._ray.put(contents)]

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> list[Task]:
        """Submit one task for each list of jobs."""
        selector = {"label_selector": {_LABEL: f"!in({','.join(sorted(without))})"}} if without else {}
        run = self._run_task.options(**selector)
        return [run.remote(pickle.dumps(chunk), *self._terms) for chunk in chunks]

    def has_others(self, machines: Collection[str]) -> bool:
        """Tell whether there are machines with processors other than these."""
        self._look()
        return any(count for name, count in self._processors.items() if name not in machines)

    def title(self, machine: str) -> str:
        """Return the name of a machine, and the beginning of Ray's: several may run on one."""
        return super().title(f"{self._names.get(machine, 'unknown')} ({machine[:8]})")

    def gone(self) -> Collection[str]:
        """Look at the machines now and then, and return those that have left."""
        if time.monotonic() > self._looked + _GLANCE_SECONDS:
            self._look()
        return self._names.keys() - self._processors

    def _look(self) -> None:
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        self._names |= {node["NodeID"]: node["NodeManagerHostname"] for node in nodes}
        self._processors = {node["NodeID"]: float(node["Resources"].get("CPU", 0)) for node in nodes}
        self._looked = time.monotonic()
        self.room = self._options.workers or max(1, round(_TASKS_PER_PROCESSOR * sum(self._processors.values())))

    def wait(self, tasks: Collection[Task]) -> list[Task]:
        """Wait until a task ends, but not for long; return all that have ended by then."""
        done, rest = self._ray.wait(list(tasks), num_returns=1, timeout=_IDLE_SECONDS)
        also: list[Task] = self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if done and rest else []
        return [*done, *also]

    def result(self, task: Task) -> bytes:
        """Return what a task gave, which is never an object that Ray makes of it: that could run anything."""
        try:
            with only_data():
                answer: bytes = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            text = str(error).strip()
            if type(error).__name__ in _NOT_RUN or isinstance(error, self._ray.exceptions.RayTaskError):
                raise RuntimeError(last_line(text)) from error
            raise TaskLost(text.partition("\n")[0]) from error
        return answer

    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks, together with the processes that run them."""
        for task in tasks:
            with contextlib.suppress(Exception):
                self._ray.cancel(task, force=True)
        if tasks:
            self._ray.wait(list(tasks), num_returns=len(tasks), timeout=_END_SECONDS)


def _check_reachable(address: str) -> None:
    """Raise an OSError unless a cluster answers: Ray itself would try for minutes, then end the process."""
    if found := _ADDRESS.fullmatch(address):
        with socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=_REACH_SECONDS):
            pass
    command = [sys.executable, "-c", _PROBE, address]
    try:
        subprocess.run(command, timeout=_ANSWER_SECONDS, check=True, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"what listens there does not answer like Ray for {_ANSWER_SECONDS:g} seconds") from error
    except subprocess.CalledProcessError as error:
        raise ConnectionError(reason(ValueError(last_line(error.stderr)))) from error


def ray_folder() -> str | None:
    """Make a folder for the files of a new cluster of this machine, after removing those of killed programs.

    None leaves the choice to Ray, because the name of the folder for temporary files is too long.
    """
    room = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    if len(os.fsencode(room)) > _LONGEST_ROOM:
        return None
    room.mkdir(parents=True, exist_ok=True)
    return str(lasting_folder(room, "tb-ray"))


# Jobs on a Slurm cluster, through submitit.

# Slurm is polled rarely, because its controller serves all users.
_LOOK_SECONDS = {"local": 0.1, "slurm": 10.0}
_ANSWER = ".json"  # beside submitit's own file with the result
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


class SubmititCluster(Cluster):
    """Tasks of Slurm, or of this machine, with their files in a folder."""

    def __init__(self, options: SlurmExecutor, place: Path, lost: Path) -> None:
        self._options, self._place, self._lost = options, place, lost
        self._is_local = options.cluster == "local"
        self.logs = place / "logs"
        self.jobs_per_task = options.jobs_per_task
        # Slurm has a queue of its own; on this machine tasks run as soon as they are submitted.
        self.room = options.workers or usable_cpus() if self._is_local else 10**9

    def send(self, terms: Terms) -> None:
        """Keep what the tasks of a run need; its files are where all machines see them."""
        self._terms = terms

    def has_others(self, machines: Collection[str]) -> bool:
        """Tell whether there may be other machines; Slurm says so itself when it refuses a task."""
        return not (self._is_local and machines)

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> list[Task]:
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
                **({"slurm_exclude": ",".join(sorted(without))} if without else {}),
                **parallel,
            )
            return list(executor.map_array(_write_task, chunks, [self._terms] * n))
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

        submitit's own file with the result is not read, which could run anything.
        """
        answer: Path = task.paths.result_pickle.with_suffix(_ANSWER)
        limit = time.monotonic() + (0 if self._is_local else _END_SECONDS)
        while not answer.is_file() and time.monotonic() < limit:  # the file system may be slow
            time.sleep(_LOOK_SECONDS["local"])
        try:
            return answer.read_bytes()
        except OSError:
            said, has_run = last_line(task.stderr() or task.state), task.paths.result_pickle.exists()
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


def _write_task(jobs: Sequence[Job], terms: Terms) -> None:
    """Run a task in a process of submitit."""
    import submitit

    content = run_task(jobs, terms, os.environ.get("SLURMD_NODENAME") or socket.gethostname())
    keep(submitit.JobEnvironment().paths.result_pickle.with_suffix(_ANSWER), content)
