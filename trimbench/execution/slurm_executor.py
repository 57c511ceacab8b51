"""Jobs on a Slurm cluster, through submitit."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimbench.execution.executors import OnRecord, ProcessExecutor, check_timeout, check_workers
from trimbench.execution.job import Job
from trimbench.execution.provenance import usable_cpus
from trimbench.execution.store import Record
from trimbench.execution.workers import describe, failure

CLUSTERS = ("slurm", "local")
_LOOK_SECONDS = 0.5
# Slurm is asked at most this often: its controller serves all users.
_SLURM_LOOK_SECONDS = 10.0


@dataclass(frozen=True)
class SlurmExecutor:
    """Runs the jobs as tasks of a Slurm job array; the folder of results must be shared with the machines.

    Each task runs several jobs, each in a process of its own: an exception, a job over its limit and a worker that
    dies each cost one job. The jobs of a task that Slurm ends run again in a new one.

    Parameters
    ----------
    folder : str
        Where scripts and logs of the tasks go.
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
        if not 0 < self.memory_gb < math.inf:
            raise ValueError(f"memory_gb must be a positive number of GiB, got {self.memory_gb!r}")
        if self.cluster not in CLUSTERS:
            raise ValueError(f"cluster must be one of {', '.join(CLUSTERS)}, got {self.cluster!r}")

    def run(self, jobs: Sequence[Job], on_record: OnRecord) -> None:
        """Run all jobs, as `Executor.run`, with records in the order in which the tasks end.

        Raises
        ------
        RuntimeError
            If Slurm is not there or refuses the tasks.
        KeyboardInterrupt
            On Ctrl-C, after the tasks have been cancelled; finished tasks have had their records.
        """
        waiting = list(jobs)
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            waiting = self._run_tasks(waiting, on_record, last)
            if not waiting:
                return

    def _run_tasks(self, jobs: Sequence[Job], on_record: OnRecord, last: bool) -> list[Job]:
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
                tasks |= zip(self._submit(new), new, strict=True)
                for task in [task for task in tasks if task.done()]:
                    lost += _collect(task, tasks.pop(task), on_record, last)
                if tasks:
                    time.sleep(_LOOK_SECONDS if self.cluster == "local" else _SLURM_LOOK_SECONDS)
        finally:
            for task in tasks:
                with contextlib.suppress(Exception):
                    task.cancel()
        return lost

    def _submit(self, chunks: Sequence[Sequence[Job]]) -> list[Any]:
        if not chunks:
            return []
        import submitit

        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
            executor = submitit.AutoExecutor(folder=self.folder, cluster=self.cluster)
            executor.update_parameters(
                name="trimbench",
                timeout_min=self.minutes,
                mem_gb=self.memory_gb,
                cpus_per_task=1,
                tasks_per_node=1,
                **({"slurm_partition": self.partition} if self.partition else {}),
                **({"slurm_array_parallelism": self.workers or len(chunks)} if self.cluster == "slurm" else {}),
            )
            return list(executor.map_array(run_task, chunks, [self.timeout] * len(chunks)))
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise RuntimeError(
                f"the tasks could not be given to {self.cluster!r}: {error}; run where sbatch is, or use "
                "executor=processes"
            ) from error


def _collect(task: Any, chunk: Sequence[Job], on_record: OnRecord, last: bool) -> list[Job]:
    """Hand over the records of a task; return the jobs that have none and are to run again."""
    try:
        records, error = list(task.result()), ""
    except Exception as problem:  # noqa: BLE001 - submitit raises what the task raised, whatever it was
        records, error = [], describe(problem).splitlines()[-1]
    for record in records:
        on_record(record)
    done = {record.job.key for record in records}
    left = [job for job in chunk if job.key not in done]
    if not last:
        return left
    for job in left:
        on_record(failure(job, "crashed", f"the task ended without a result: {error}", 0.0))
    return []


def run_task(jobs: Sequence[Job], timeout: float | None) -> list[Record]:
    """Run the jobs of one task in a worker process, one after another."""
    records: list[Record] = []
    ProcessExecutor(workers=1, timeout=timeout).run(jobs, records.append)
    return records
