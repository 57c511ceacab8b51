"""Jobs on a Slurm cluster, through submitit."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from trimbench.reproduction.children import python, starting
from trimbench.reproduction.execution.cluster_task import ANSWER, Terms, last_line, machines_of, write_task
from trimbench.reproduction.execution.executors import ExecutorError
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.provenance import usable_cpus
from trimbench.reproduction.execution.remote import END_SECONDS, LONGEST_SENT, Cluster, RemoteExecutor, TaskId, TaskLost
from trimbench.reproduction.files import read_bytes, temporary_folder
from trimbench.reproduction.project import DISTRIBUTION
from trimbench.reproduction.settings import ConfigurationError, settings

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
            yield from (read_bytes(path, LONGEST_SENT) for path in self._place.glob(f"{look.job_id}_*{ANSWER}"))

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
        now, patience = time.monotonic(), 0 if self._is_local else END_SECONDS
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
            return read_bytes(task.paths.result_pickle.with_suffix(ANSWER), LONGEST_SENT)
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
        limit = time.monotonic() + END_SECONDS
        while self._is_local and time.monotonic() < limit and not all(task.done() for task in tasks):
            time.sleep(_LOOK_SECONDS["local"])
