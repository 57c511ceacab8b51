"""Jobs on other machines, by Ray or Slurm: a cluster runs tasks, each of which runs its jobs in a worker process."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from trimbench.papers.execution import ray_task
from trimbench.papers.execution.here import Workers
from trimbench.papers.execution.job import LOG_BYTES, Job, JobLimits, check_size, in_megabytes, to_plain
from trimbench.papers.execution.store import PROVENANCE, RUN_VARIABLE, WANTS, Record, deciding_versions, usable_cpus
from trimbench.papers.execution.workers import (
    LONGEST_LOG,
    TRACEBACK_CHARACTERS,
    ExecutorError,
    Files,
    OnRecord,
    WorkerSettings,
    describe,
    failure,
    take,
)
from trimbench.papers.files import (
    make_temporary_folder,
    remove_temporary_folder,
    user_cache,
    without_homes,
    write,
)
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


class Cluster(Protocol):
    """Machines that run tasks.

    `logs` is a folder for what jobs write while they run. A task has `jobs_per_task` jobs; with None, as many as end
    within half a second. At most `room` tasks are queued or running at a time. A job whose tasks are lost is submitted
    at most `attempts` times.
    """

    logs: Path
    jobs_per_task: int | None
    attempts: int

    @property
    def room(self) -> int:
        """The number of tasks that may be queued or running."""
        ...

    def send(self, terms: Terms) -> None:
        """Take what the tasks of a run need, before the first of them."""
        ...

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> Sequence[Task]:
        """Submit one task for each list of jobs, which calls `run_task`, to machines other than those `without`."""
        ...

    def has_others(self, machines: Collection[str]) -> bool:
        """Tell whether there are machines other than these."""
        ...

    def title(self, machine: str) -> str:
        """Return what people call a machine."""
        ...

    def gone(self) -> Collection[str]:
        """Return the machines that have left since the last call."""
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
        if not jobs:
            return
        with self.connected() as cluster:
            cluster.send(Terms.of(jobs, files or {}, self.limits, cluster.logs))
            sweep = _Sweep(cluster, on_record, self.retries)
            lost = dict.fromkeys(jobs, "")
            for _ in range(cluster.attempts):
                lost = sweep.run(list(lost))
            for job, why in lost.items():
                text = f"the task ended without a result: {why}"
                on_record(failure(job, "crashed", text, 0.0, take(cluster.logs / job.key)))


class _Sweep:
    """The tasks of one run, and the machines that fail."""

    def __init__(self, cluster: Cluster, on_record: OnRecord, retries: int) -> None:
        self._cluster, self._on_record, self._retries = cluster, on_record, retries
        self._useless: int | None = 0  # tasks that could not run, until one could
        self._waiting: deque[Job] = deque()
        self._again: deque[Job] = deque()
        self._tried: dict[Job, dict[str, Record]] = {}  # of jobs that failed for want of something, by machine
        # The failures in a row on each machine: of jobs, or under a number, of tasks that could not begin.
        self._in_a_row: dict[str, dict[Job | int, str]] = {}
        self._numbers = itertools.count()
        self._refused: set[str] = set()
        self._told: dict[str, str] = {}
        self._seconds, self._n_done = 0.0, 0

    def run(self, jobs: Sequence[Job]) -> dict[Job, str]:
        """Run jobs in tasks; return those without a record, each with the reason."""
        self._waiting.extend(jobs)
        running: dict[Task, Sequence[Job]] = {}
        lost: dict[Job, str] = {}
        try:
            while self._waiting or self._again or running:
                for chunks, without in self._next(self._cluster.room - len(running), alone=not running):
                    running |= zip(self._cluster.submit(chunks, without), chunks, strict=True)
                for task in self._cluster.wait(running) if running else ():
                    lost |= self._collect(task, running.pop(task))
                for machine in self._cluster.gone():
                    self._tell(machine, "it left the cluster while the jobs ran")
        finally:
            self._cluster.cancel(running)
        return lost

    def _next(self, room: int, *, alone: bool) -> Iterator[tuple[list[Sequence[Job]], set[str]]]:
        """Yield lists of jobs to submit, and the machines that must not run them."""
        out = {machine for machine, row in self._in_a_row.items() if len(row) >= _MOST_IN_A_ROW} | self._refused
        while self._again and room > 0:
            without = out.union(self._tried.get(self._again[0], ()))
            if without and not self._cluster.has_others(without):
                break
            yield [[self._again.popleft()]], without
            room -= 1
        if self._waiting and room > 0 and not (out and not self._cluster.has_others(out)):
            size = self._cluster.jobs_per_task or self._size(room)
            starts = range(0, min(room * size, len(self._waiting)), size)
            yield [[self._waiting.popleft() for _ in range(min(size, len(self._waiting)))] for _ in starts], out
        elif alone and (self._again or self._waiting):
            yield from self._last_resort()

    def _size(self, room: int) -> int:
        """Return how many of the jobs a task gets that it may not last long, and that all machines end together."""
        each = self._seconds / self._n_done if self._n_done else _TASK_SECONDS
        return max(1, min(_MOST_PER_TASK, int(_TASK_SECONDS / max(each, 1e-3)), len(self._waiting) // (2 * room)))

    def _last_resort(self) -> Iterator[tuple[list[Sequence[Job]], set[str]]]:
        """Yield one job for a machine whose failures may be those of jobs; raise ExecutorError if there is none."""
        begun = {machine: sum(isinstance(one, int) for one in row) for machine, row in self._in_a_row.items()}
        hopeless = self._refused | {machine for machine, n in begun.items() if n >= _MOST_IN_A_ROW}
        if hopeless and not self._cluster.has_others(hopeless):
            why = "; ".join(self._lines())
            raise ExecutorError(f"no machine can run the jobs: {why}; what was done is stored")
        job = (self._again or self._waiting).popleft()
        without = hopeless.union(self._tried.get(job, ()))
        if without and not self._cluster.has_others(without):
            self._give_up(job)
        else:
            yield [[job]], without

    def _collect(self, task: Task, jobs: Sequence[Job]) -> dict[Job, str]:
        """Hand over the records of a task; return the jobs that have none and do not run again, with the reason."""
        why = ""
        try:
            machine, records = _records(self._cluster.result(task), jobs)
        except _NotBegun as error:
            self._useless = None
            self._again.extend(jobs)
            self._blame(error.machine, next(self._numbers), str(error), error.refused)
            return {}
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
        else:
            self._useless = None
            for record in records:
                self._take(record, machine)
        return dict.fromkeys(jobs, why) if why else {}

    def _take(self, record: Record, machine: str) -> None:
        """Hand over a record, unless its job may find elsewhere what it lacked on this machine."""
        job, others = record.job, self._cluster.has_others
        if record.ok or not record.want or not machine:
            if self._in_a_row.pop(machine, None):
                self._told.pop(machine, None)
            self._tried.pop(job, None)
            self._hand_over(record)
            return
        tried = self._tried.setdefault(job, {})
        tried[machine] = record
        said = _last_line(str(record.error))
        self._blame(machine, job, said, record.want == "version" and others({machine}))
        if len(tried) <= self._retries and others(self._refused.union(tried)):
            self._again.append(job)
        else:
            self._give_up(job)

    def _give_up(self, job: Job) -> None:
        """Hand over the last failure of a job, which is then not that of the machines."""
        tried = self._tried.pop(job)
        for machine in tried:
            row = self._in_a_row.get(machine, {})
            row.pop(job, None)
            if len(row) < _MOST_IN_A_ROW and machine not in self._refused:
                self._told.pop(machine, None)
        self._hand_over(list(tried.values())[-1])

    def _hand_over(self, record: Record) -> None:
        self._seconds, self._n_done = self._seconds + record.seconds, self._n_done + 1
        left_out: dict[str, Any] = {"left_out": self._lines()} if self._told else {}
        self._on_record(replace(record, provenance=record.provenance | left_out))

    def _blame(self, machine: str, what: Job | int, why: str, is_refused: bool) -> None:
        """Note a failure for which a machine may be to blame."""
        row = self._in_a_row.setdefault(machine, {})
        row[what] = why
        if is_refused:
            self._refused.add(machine)
        if is_refused or len(row) >= _MOST_IN_A_ROW:
            self._tell(machine, why)

    def _tell(self, machine: str, why: str) -> None:
        """Say once that a machine takes no more jobs."""
        if machine not in self._told:
            self._told[machine] = without_homes(why)
            _log.warning("%s takes no more jobs: %s", self._cluster.title(machine), self._told[machine])

    def _lines(self) -> list[str]:
        return [f"{self._cluster.title(machine)}: {why}" for machine, why in self._told.items()]


# What happens on the machine that runs a task.


class SentFile(NamedTuple):
    """A file that jobs read: its name in a folder of the cache, its place on the machine of the run, hash and bytes."""

    name: str
    path: str
    sha256: str
    size: int

    def places(self, folders: Sequence[Path]) -> list[Path]:
        """Return where a machine may have it: of the user's own, at its place; of others, in folders of the cache."""
        is_own = self.name.startswith(f"{_OWN}/")
        return [Path(self.path)] if is_own else [folder / self.name for folder in folders]

    def is_at(self, path: Path) -> bool:
        """Tell whether a file as long as this one is there; what it holds, jobs verify."""
        try:
            return path.stat().st_size == self.size
        except OSError:
            return False


class Terms(NamedTuple):
    """What all tasks of a run need: limits, a folder for logs, the run's versions, variables and files."""

    limits: JobLimits
    logs: Path
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    files: tuple[SentFile, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job], files: Files, limits: JobLimits, logs: Path) -> Terms:
        """Return those of a run; the files of the user's own, which jobs name, are among the files."""
        named = {name: Path(path) for name, path in files.items()}
        named |= {f"{_OWN}/{path}".replace("//", "/"): Path(path) for job in jobs for _, path in job.places}
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        sent = []
        for name, path in named.items():
            with contextlib.suppress(OSError):  # the jobs will say so
                content = path.read_bytes()
                sent.append(SentFile(name, str(path), hashlib.sha256(content).hexdigest(), len(content)))
        return cls(limits, logs, deciding_versions(), environment, tuple(sent))


_kept: dict[tuple[object, ...], Workers] = {}
# Variables that a worker on another machine needs as well, unless they are set there.
_FOLDERS = ("TRIMBENCH_CACHE", "XDG_CACHE_HOME")
_PASSED_ON = (*_FOLDERS, RUN_VARIABLE)
_as_started = {name: os.environ[name] for name in _FOLDERS if name in os.environ}
_OWN, _SENT = "own", "sent"


class _NotBegun(Exception):  # noqa: N818 - an event of the cluster, not a mistake
    """A task could not begin on a machine, or is refused by it."""

    def __init__(self, machine: str, why: str, refused: bool) -> None:
        super().__init__(why)
        self.machine, self.refused = machine, refused


def run_task(
    jobs: Sequence[Job], terms: Terms, machine: str = "", fetch: Callable[[str], bytes] | None = None
) -> bytes:
    """Run the jobs of one task in a worker process, one after another; this is what a cluster calls on its machines.

    If a cluster runs several tasks of one sweep in the same process, they share the worker. `fetch` returns the content
    of a file by its hash. What is returned is data in a closed format, which is read without running anything: a line
    of JSON that names the machine, and the reason if the task could not begin; then one for each job, in order, with
    the text of its record, its log, and what the machine lacked.
    """
    try:
        here = deciding_versions()
        for name, version in terms.versions.items():
            if here.get(name, version) != version:
                why = f"it has {name} {here[name]}, and the run {version}"
                return json.dumps({"machine": machine, "error": why, "refused": True}).encode()
        own = _bring(terms.files, fetch)
        key = (terms.limits, terms.logs, *map(os.environ.get, _PASSED_ON))
        if key not in _kept:
            _stop_kept()
            _kept[key] = Workers(1, terms.limits, terms.logs)
        placed = [replace(job, places=tuple((text, own.get(path, path)) for text, path in job.places)) for job in jobs]
        records: dict[Job, Record] = {}
        _kept[key].run(placed, lambda record: records.update({record.job: record}))
        lines = [[record.to_json(), record.log, record.want] for record in map(records.__getitem__, jobs)]
        return "\n".join(json.dumps(line) for line in ({"machine": machine}, *lines)).encode()
    except Exception as error:  # noqa: BLE001  (whatever it was, it goes back as a text)
        return json.dumps({"machine": machine, "error": _last_line(describe(error))}).encode()


def _bring(files: Sequence[SentFile], fetch: Callable[[str], bytes] | None) -> dict[str, str]:
    """Bring the files of a run that this machine has not; return where those of the user's own are, by their paths.

    They are kept by their hashes in a folder of this machine's cache, which then stands for ``TRIMBENCH_CACHE``.
    """
    folders = [Path(os.environ["TRIMBENCH_CACHE"])] if os.environ.get("TRIMBENCH_CACHE") else []
    missing = [file for file in files if not any(map(file.is_at, file.places([*folders, user_cache()])))]
    if not missing:
        return {}
    if fetch is None:
        raise FileNotFoundError(
            f"{len(missing)} of the {len(files)} files that the run reads are not here, for example {missing[0].path}"
        )
    names = hashlib.sha256(repr([(file.name, file.sha256) for file in files]).encode()).hexdigest()
    kept, folder = user_cache() / _SENT / "files", user_cache() / _SENT / names
    for file in files:
        if not file.is_at(kept / file.sha256):
            content = fetch(file.sha256)
            kept.mkdir(parents=True, exist_ok=True)
            write(kept / file.sha256, lambda temporary, content=content: temporary.write_bytes(content))  # type: ignore[misc]
        link = folder / file.name
        link.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            link.symlink_to(kept / file.sha256)
    os.environ["TRIMBENCH_CACHE"] = str(folder)
    return {file.path: str(folder / file.name) for file in files if file.name.startswith(f"{_OWN}/")}


def _records(answer: object, jobs: Sequence[Job]) -> tuple[str, list[Record]]:
    """Read what `run_task` returned elsewhere: the machine and the records; raise `_NotBegun` if it did not begin.

    Nothing in it is trusted: what is not the record of its job, as a job of this program could have written it, is a
    failure of this job alone.
    """
    if not isinstance(answer, bytes):
        raise RuntimeError(f"a task must send back bytes, got {type(answer).__name__}")
    first, *lines = answer.split(b"\n")
    machine = ""
    with contextlib.suppress(ValueError, RecursionError):
        head = json.loads(first)
        if isinstance(head, dict):
            machine = str(head.get("machine", ""))[:_LONGEST_NAME]
            if isinstance(head.get("error"), str):
                raise _NotBegun(machine, reason(ValueError(head["error"])), head.get("refused") is True)
    every = zip(jobs, itertools.chain(lines, itertools.repeat(b"")), strict=False)
    return machine, [_record(job, line) for job, line in every]


def _record(job: Job, line: bytes) -> Record:
    """Return the record of a job in a line that came from elsewhere."""
    try:
        text, log, want = json.loads(line)
        if not isinstance(text, str) or not isinstance(log, str) or len(log) > LONGEST_LOG or want not in ("", *WANTS):
            raise ValueError(f"it must be the text of a record, a log of at most {in_megabytes(LOG_BYTES)} and a want")
        record = Record.of(job, text)
        check_size(job.function, to_plain(record.result, "result"))
        if len(record.error or "") > 2 * TRACEBACK_CHARACTERS or not PROVENANCE.holds(record.provenance):
            raise ValueError(f"it must have a short error, and provenance that is {PROVENANCE.words}")
    except (ValueError, TypeError, RecursionError) as error:
        return failure(job, "failed", f"what its task sent back is not used: {reason(error)}", 0.0)
    return replace(record, log=log, want=want)


@atexit.register
def _stop_kept() -> None:
    while _kept:
        with contextlib.suppress(OSError):
            _kept.popitem()[1].close()


# Jobs on a Ray cluster: this machine's processors, or many machines.

_IDLE_SECONDS = 0.5
_GLANCE_SECONDS = 2.0
_REACH_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_PROBE = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
_ADDRESS = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})", re.ASCII)
_END_SECONDS = 10.0
# Errors of Ray for a task that could not run, as its function was not found, or that gave what is refused.
_NOT_RUN = ("RaySystemError", "UnserializableException")
# Tasks that wait keep the processors busy, and make a cluster grow that can.
_TASKS_PER_PROCESSOR = 2
_LABEL = "ray.io/node-id"
_LONGEST_NAME = 100
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
        yield RayCluster(self._connected_ray(), self, _logs())

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

    jobs_per_task = None
    attempts = 1

    def __init__(self, ray: Any, options: RayExecutor, logs: Path) -> None:
        self._ray, self._options, self.logs = ray, options, logs
        ray.cloudpickle.register_pickle_by_value(ray_task)
        self._run_task = ray.remote(num_cpus=1, max_retries=options.retries)(ray_task.run)
        self._nodes: dict[str, dict[str, Any]] = {}
        self._looked = -math.inf

    @property
    def room(self) -> int:
        """The number of tasks that may be queued or running."""
        self.gone()
        return self._options.workers or max(
            1, round(_TASKS_PER_PROCESSOR * sum(map(_processors, self._nodes.values())))
        )

    def send(self, terms: Terms) -> None:
        """Give the files of a run to Ray, from which each machine takes them that has them not."""
        has_others = self._options.address is not None
        files = terms.files if has_others else ()
        contents = {file.sha256: self._ray.put(Path(file.path).read_bytes()) for file in files}
        self._terms = pickle.dumps(terms._replace(files=files)), [self._ray.put(contents)], has_others

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> list[Task]:
        """Submit one task for each list of jobs."""
        selector = {"label_selector": {_LABEL: f"!in({','.join(sorted(without))})"}} if without else {}
        run = self._run_task.options(**selector)
        return [run.remote(pickle.dumps(chunk), *self._terms) for chunk in chunks]

    def has_others(self, machines: Collection[str]) -> bool:
        """Tell whether there are machines with processors other than these."""
        self._look()
        return any(_processors(node) for name, node in self._nodes.items() if name not in machines)

    def title(self, machine: str) -> str:
        """Return the name of a machine, and the beginning of Ray's: several may run on one."""
        found = self._nodes.get(machine, {})
        return f"node {found.get('NodeManagerHostname', 'unknown')} ({machine[:8]})"

    def gone(self) -> list[str]:
        """Return the machines that have left since the last call."""
        if time.monotonic() < self._looked + _GLANCE_SECONDS:
            return []
        before = {name for name, node in self._nodes.items() if node["Alive"]}
        self._look()
        return [name for name in before if not self._nodes[name]["Alive"]]

    def _look(self) -> None:
        self._nodes |= {node["NodeID"]: node for node in self._ray.nodes()}
        self._looked = time.monotonic()

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


@functools.cache
def _logs() -> Path:
    """Return the folder for logs of all runs of this program, which share the workers, as long as it is there."""
    folder = make_temporary_folder()
    atexit.register(remove_temporary_folder, folder)
    return folder


def _processors(node: Mapping[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0.0)) if node["Alive"] else 0.0


def run_packed(jobs: bytes, terms: bytes, machine: str, has_others: bool, fetch: Callable[[str], bytes]) -> bytes:
    """Run a task in a process of Ray, which has read neither jobs nor terms."""
    # A spawned process first runs the file of its parent's __main__, which here would take seconds to import Ray.
    vars(sys.modules["__main__"]).pop("__file__", None)
    unpacked: Terms = pickle.loads(terms)
    sent = dict(unpacked.environment)
    if has_others:  # whose folders may be elsewhere
        sent = {
            name: value for name, value in sent.items() if name not in _FOLDERS or Path(value).is_dir()
        } | _as_started
    for name in _PASSED_ON:
        os.environ.pop(name, None)
    os.environ.update(sent)
    return run_task(pickle.loads(jobs), unpacked, machine, fetch)


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

    def send(self, terms: Terms) -> None:
        """Keep what the tasks of a run need; its files are where all machines see them."""
        self._terms = terms

    def has_others(self, machines: Collection[str]) -> bool:
        """Tell whether there may be other machines; Slurm says so itself when it refuses a task."""
        return not (self._is_local and machines)

    def title(self, machine: str) -> str:
        """Return the name of a machine, which is Slurm's."""
        return f"node {machine}"

    def gone(self) -> list[str]:
        """Return nothing: Slurm's tasks are lost with their machines."""
        return []

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
            answers = [self._place / f"{secrets.token_hex(8)}.json" for _ in chunks]
            tasks = executor.map_array(_write_task, answers, chunks, [self._terms] * n)
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


def _write_task(answer: Path, jobs: Sequence[Job], terms: Terms) -> None:
    """Run a task in a process of submitit."""
    content = run_task(jobs, terms, os.environ.get("SLURMD_NODENAME") or socket.gethostname())
    write(answer, lambda temporary: temporary.write_bytes(content))


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
