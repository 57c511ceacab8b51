"""Jobs on a Slurm cluster, through submitit."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimbench.papers.execution.executors import ExecutorError, OnRecord, ProcessExecutor, check_timeout, check_workers
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.job_log import take
from trimbench.papers.execution.provenance import usable_cpus
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.temporary import remove_stale, temporary_name
from trimbench.papers.execution.workers import describe, failure

CLUSTERS = ("slurm", "local")
_LOOK_SECONDS = 0.5
# Slurm is asked at most this often: its controller serves all users.
_SLURM_LOOK_SECONDS = 10.0
# For tasks of this machine to end in after Ctrl-C.
_END_SECONDS = 10.0


@dataclass(frozen=True)
class SlurmExecutor:
    """Runs the jobs as tasks of a Slurm job array; the folder of results must be shared with the machines.

    Each task runs several jobs, each in a process of its own: an exception, a job over its limit and a worker that
    dies each cost one job. The jobs of a task that Slurm ends run again in a new one.

    Parameters
    ----------
    folder : str
        Where scripts, results and logs of the tasks are during the run. Only the logs of lost tasks stay.
    workers : int, optional
        Number of tasks that run at the same time; by default one for each task.
    timeout : float, optional
        Seconds that one job may run; unlimited by default.
    jobs_per_task : int
    minutes : int
        Wall time of a task.
    memory_gb : float
        Memory of a task, in GiB.
    partition : str, optional
        Slurm partition.
    retries : int
        How often jobs run again after their task was lost.
    cluster : {"slurm", "local"}
        ``"local"`` runs the tasks as processes of this machine.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    folder: str = "slurm"
    workers: int | None = None
    timeout: float | None = None
    jobs_per_task: int = 10
    minutes: int = 60
    memory_gb: float = 4.0
    partition: str | None = None
    retries: int = 2
    cluster: str = "slurm"

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_timeout(self.timeout)
        for name, least in (("jobs_per_task", 1), ("minutes", 1), ("retries", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number, {least} or more, got {value!r}")
        if not self.folder or not isinstance(self.folder, str):
            raise ValueError(f"folder must be the name of a folder, got {self.folder!r}")
        if self.partition is not None and not isinstance(self.partition, str):
            raise ValueError(f"partition must be a text or None, got {self.partition!r}; quote a number twice: '\"3\"'")
        if not isinstance(self.memory_gb, int | float) or not 0 < self.memory_gb < math.inf:
            raise ValueError(f"memory_gb must be a positive number of GiB, got {self.memory_gb!r}")
        if self.cluster not in CLUSTERS:
            raise ValueError(f"cluster must be one of {', '.join(CLUSTERS)}, got {self.cluster!r}")

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs, as `Executor.run`, with records in the order in which the tasks end.

        Raises
        ------
        ExecutorError
            If Slurm is not there or refuses the tasks, or the folder cannot be written.
        KeyboardInterrupt
            On Ctrl-C, after the tasks have been cancelled; finished tasks have had their records.
        """
        waiting = list(jobs)
        with self._workplace() as place:
            for attempt in range(self.retries + 1):
                last = attempt == self.retries
                waiting = self._run_tasks(waiting, on_record, last, place)
                if not waiting:
                    return

    @contextmanager
    def _workplace(self) -> Iterator[Path]:
        """Give a folder for the files of the tasks, with one for what their jobs write; it is removed at the end."""
        above = Path(self.folder).absolute()
        remove_stale(above.glob("tasks.*.tmp"))
        place = above / temporary_name("tasks")
        try:
            _logs(place).mkdir(parents=True)
        except OSError as error:
            raise self._refusal(error) from error
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
            with contextlib.suppress(OSError):  # has logs in it, or tasks of another program
                above.rmdir()

    def _run_tasks(self, jobs: Sequence[Job], on_record: OnRecord, last: bool, place: Path) -> list[Job]:
        """Run jobs in tasks; return those whose task was lost, which after the last attempt have crashed."""
        chunks = deque(
            list(jobs[start : start + self.jobs_per_task]) for start in range(0, len(jobs), self.jobs_per_task)
        )
        # Slurm has a queue of its own; on this machine only so many tasks may be there at all.
        at_once = len(chunks) if self.cluster == "slurm" else self.workers or usable_cpus()
        tasks: dict[Any, list[Job]] = {}
        lost: list[Job] = []
        try:
            while tasks or chunks:
                new = [chunks.popleft() for _ in range(min(at_once - len(tasks), len(chunks)))]
                tasks |= zip(self._submit(new, place), new, strict=True)
                for task in [task for task in tasks if task.done()]:
                    lost += _collect(task, tasks.pop(task), on_record, last, place)
                if tasks:
                    os.utime(place)  # tells programs on other machines that it is in use
                    time.sleep(_LOOK_SECONDS if self.cluster == "local" else _SLURM_LOOK_SECONDS)
        finally:
            self._cancel(list(tasks))
        return lost

    def _cancel(self, tasks: Sequence[Any]) -> None:
        """End tasks; those of this machine have ended then, and write nothing more."""
        for task in tasks:
            with contextlib.suppress(Exception):
                task.cancel()
        limit = time.monotonic() + _END_SECONDS
        while self.cluster == "local" and time.monotonic() < limit and not all(task.done() for task in tasks):
            time.sleep(_LOOK_SECONDS / 10)

    def _submit(self, chunks: Sequence[Sequence[Job]], place: Path) -> list[Any]:
        if not chunks:
            return []
        import submitit

        try:
            executor = submitit.AutoExecutor(folder=place, cluster=self.cluster)
            executor.update_parameters(
                name="trimbench",
                timeout_min=self.minutes,
                mem_gb=self.memory_gb,
                cpus_per_task=1,
                tasks_per_node=1,
                **({"slurm_partition": self.partition} if self.partition else {}),
                **({"slurm_array_parallelism": self.workers or len(chunks)} if self.cluster == "slurm" else {}),
            )
            n = len(chunks)
            return list(executor.map_array(run_task, chunks, [self.timeout] * n, [_logs(place)] * n))
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ExecutorError:
        return ExecutorError(
            f"the tasks could not be given to {self.cluster!r}: {error}; run where sbatch is, or use executor=processes"
        )


def _logs(place: Path) -> Path:
    return place / "logs"


def _collect(task: Any, chunk: Sequence[Job], on_record: OnRecord, last: bool, place: Path) -> list[Job]:
    """Hand over the records of a task; return the jobs that have none and are to run again."""
    try:
        records, error = list(task.result()), ""
    except Exception as problem:  # noqa: BLE001 - submitit raises what the task raised, whatever it was
        records, error = [], describe(problem).splitlines()[-1]
    for record in records:
        on_record(record)
    done = {record.job.key for record in records}
    left = [job for job in chunk if job.key not in done]
    if left:
        for path in (task.paths.stdout, task.paths.stderr):
            with contextlib.suppress(OSError):  # Slurm did not come to write one
                path.replace(place.parent / path.name)
    if not last:
        return left
    for job in left:
        text = f"the task ended without a result: {error}"
        on_record(failure(job, "crashed", text, 0.0, take(_logs(place) / job.key)))
    return []


def run_task(jobs: Sequence[Job], timeout: float | None, logs: Path) -> list[Record]:
    """Run the jobs of one task in a worker process, one after another; ``logs`` has what a job writes meanwhile."""
    records: list[Record] = []
    ProcessExecutor(workers=1, timeout=timeout).run(jobs, records.append, logs)
    return records
