"""Jobs on other machines, for any cluster: it runs tasks, each of which runs its jobs in a worker process."""

from __future__ import annotations

import itertools
import logging
import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from trimbench.reproduction.execution.cluster_task import Terms, last_line, read_answer
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
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.files import without_homes
from trimbench.reproduction.messages import reason
from trimbench.reproduction.settings import settings

# The run is given up if this many tasks could not run before any could.
_MAX_USELESS_TASKS = 5
# A machine gets no more jobs after this many in a row that failed for want of something.
_MOST_IN_A_ROW = 2
# Short jobs share tasks, each of which takes about this long.
_TASK_SECONDS = 0.5
LONGEST_SENT = 2**31  # bytes of a file that a task gets, or of its answer
_MOST_PER_TASK = 20
END_SECONDS = 10.0  # to wait for the end of tasks, and for what they wrote
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
