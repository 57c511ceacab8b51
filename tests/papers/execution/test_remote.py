"""What the remote executor makes of a cluster, here a pretended one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from trimbench.papers.execution import Job, Record, remote
from trimbench.papers.execution.job import JobLimits
from trimbench.papers.execution.remote import RemoteExecutor, TaskLost, run_task
from trimbench.papers.execution.workers import ExecutorError, execute

from . import sample_jobs
from .programs import run, squares


class Pretended:
    """Runs tasks here, one after another."""

    def __init__(self, logs: Path, attempts: int = 1, room: int = 3, jobs_per_task: int = 2) -> None:
        self.logs, self.attempts, self.room, self.jobs_per_task = logs, attempts, room, jobs_per_task
        self.tasks: list[Sequence[Job]] = []
        self.cancelled: list[int] = []
        self.most = 0
        self.before: Callable[[int], None] = lambda task: None

    def submit(self, chunks: Sequence[Sequence[Job]]) -> list[int]:
        self.tasks += chunks
        return list(range(len(self.tasks) - len(chunks), len(self.tasks)))

    def wait(self, tasks: Collection[int]) -> list[int]:
        self.most = max(self.most, len(tasks))
        return [min(tasks)]

    def result(self, task: int) -> list[Record]:
        self.before(task)
        return [execute(job) for job in self.tasks[task]]

    def cancel(self, tasks: Collection[int]) -> None:
        self.cancelled += tasks


class PretendingExecutor(RemoteExecutor):
    @contextmanager
    def connected(self) -> Iterator[Pretended]:
        yield pretended[-1]


pretended: list[Pretended] = []


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Pretended]:
    pretended.append(Pretended(tmp_path))
    yield pretended[-1]
    pretended.clear()


def test_jobs_are_cut_into_tasks_of_which_so_many_run(cluster: Pretended) -> None:
    jobs = squares(9)
    assert all(record.ok for record in run(PretendingExecutor(), jobs).values())
    assert [list(task) for task in cluster.tasks] == [jobs[0:2], jobs[2:4], jobs[4:6], jobs[6:8], jobs[8:]]
    assert (cluster.most, cluster.cancelled) == (3, [])
    assert run(PretendingExecutor(), []) == {}


def test_jobs_of_lost_tasks_run_again_and_crash_at_last(cluster: Pretended, tmp_path: Path) -> None:
    cluster.attempts = 3
    first, second = squares(3)[0], squares(3)[2]
    (tmp_path / first.key).write_text("last words")

    def lose(task: int) -> None:
        if first in cluster.tasks[task] or len(cluster.tasks) <= 2:
            raise TaskLost("the node went away")

    cluster.before = lose
    records = run(PretendingExecutor(), squares(3))
    assert [len(task) for task in cluster.tasks] == [2, 1, 2, 1, 2]
    assert records[second.key].ok
    assert (records[first.key].status, records[first.key].log) == ("crashed", "last words")
    assert records[first.key].error == "the task ended without a result: the node went away"


def test_a_cluster_on_which_no_task_can_run_ends_the_run(cluster: Pretended) -> None:
    def fail(task: int) -> None:
        raise ModuleNotFoundError("No module named 'trimbench'")

    cluster.before = fail
    cluster.room = 9
    with pytest.raises(ExecutorError, match=r"first 5 tasks could not run, .*No module.*installed in the same version"):
        PretendingExecutor().run(squares(30), lambda record: None)
    assert cluster.cancelled == list(range(5, 13))
    cluster.before = lambda task: fail(task) if task not in (15, 16) else None
    assert len(run(PretendingExecutor(), squares(30))) == 30, "one bad machine costs its jobs only"


def test_what_the_caller_raises_cancels_the_tasks(cluster: Pretended) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PretendingExecutor().run(squares(6), interrupt)
    assert cluster.cancelled == [1, 2]


def test_tasks_of_one_sweep_share_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMBENCH_CACHE", "before")
    pids = [Job.create(sample_jobs.sleep, {"seconds": 0.0, "token": n}) for n in range(4)]
    results = [run_task(pids[:2], JobLimits(), tmp_path), run_task(pids[2:], JobLimits(), tmp_path)]
    elsewhere = run_task(pids[:1], JobLimits(), tmp_path / "not here", {"TRIMBENCH_CACHE": "after"})
    assert len({str(record.result) for records in results for record in records}) == 1
    assert elsewhere[0].result not in [record.result for record in results[0]]
    remote._stop_kept()
    assert not remote._kept
