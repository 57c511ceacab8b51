"""Jobs on a Slurm cluster, through submitit."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from trimbench.papers.execution.executors import ExecutorError
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.provenance import usable_cpus
from trimbench.papers.execution.remote import RemoteExecutor, Task, TaskLost, run_task
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.temporary import remove_stale, temporary_name
from trimbench.papers.validation import settings

# Slurm is polled rarely, because its controller serves all users.
_LOOK_SECONDS = {"local": 0.1, "slurm": 10.0}
# How long tasks of this machine may take to end after Ctrl-C.
_END_SECONDS = 10.0


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
        if not self.folder:
            raise ValueError("folder must be the name of a folder, got ''")
        if not 0 < self.memory_gb < math.inf:
            raise ValueError(f"memory_gb must be a positive number of GiB, got {self.memory_gb!r}")
        if (self.limits.memory or 0) > self.memory_gb * 2**30:
            raise ValueError(
                f"memory must be at most the {self.memory_gb:g} GiB of a task, got {self.memory!r}; raise memory_gb"
            )

    @contextmanager
    def connected(self) -> Iterator[SubmititCluster]:
        """Provide the cluster for one run, with a folder for the files of its tasks, which is removed at the end."""
        above = Path(self.folder).absolute()
        remove_stale(above.glob("tasks.*.tmp"))
        place = above / temporary_name("tasks")
        cluster = SubmititCluster(self, place)
        try:
            cluster.logs.mkdir(parents=True)
        except OSError as error:
            raise cluster.refusal(error) from error
        try:
            yield cluster
        finally:
            shutil.rmtree(place, ignore_errors=True)
            with contextlib.suppress(OSError):  # it holds logs, or tasks of another program
                above.rmdir()


class SubmititCluster:
    """Tasks of Slurm, or of this machine, with their files in a folder."""

    def __init__(self, options: SlurmExecutor, place: Path) -> None:
        self._options, self._place = options, place
        self._is_local = options.cluster == "local"
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
            return list(executor.map_array(run_task, chunks, [options.limits] * n, [self.logs] * n))
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise self.refusal(error) from error

    def wait(self, tasks: Collection[Task]) -> list[Task]:
        """Return the tasks that have ended; wait a moment if there is none."""
        done = [task for task in tasks if task.done()]
        if not done:
            os.utime(self._place)  # tells programs on other machines that it is in use
            time.sleep(_LOOK_SECONDS[self._options.cluster])
        return done

    def result(self, task: Task) -> list[Record]:
        """Return the records of a task; the logs of one that has none stay in the folder above."""
        records = None
        try:
            records = self._records(task)
        finally:
            if records is None:
                for path in (task.paths.stdout, task.paths.stderr):
                    with contextlib.suppress(OSError):  # Slurm may not have written one
                        path.replace(self._place.parent / path.name)
        return records

    def _records(self, task: Task) -> list[Record]:
        import submitit

        if self._is_local and not task.paths.result_pickle.exists():
            # submitit would wait in case the file system is slow.
            raise TaskLost(_last_line(task.stderr() or task.state))
        try:
            return list(task.result())
        except submitit.core.utils.FailedJobError as error:
            trace = str(error).rpartition("\n-----")[0]  # a hint of submitit follows
            raise RuntimeError(_last_line(trace or str(error))) from error
        except submitit.core.utils.UncompletedJobError as error:
            raise TaskLost(_last_line(str(error))) from error

    def cancel(self, tasks: Collection[Task]) -> None:
        """End tasks; wait until those of this machine have ended and write nothing more."""
        for task in tasks:
            with contextlib.suppress(Exception):
                task.cancel()
        limit = time.monotonic() + _END_SECONDS
        while self._is_local and time.monotonic() < limit and not all(task.done() for task in tasks):
            time.sleep(_LOOK_SECONDS["local"])

    def refusal(self, error: Exception) -> ExecutorError:
        """Return the error for tasks that cannot be submitted."""
        return ExecutorError(
            f"the tasks could not be given to {self._options.cluster!r}: {error}; run where sbatch is, or use "
            "executor=processes"
        )


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
