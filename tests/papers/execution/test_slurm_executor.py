"""The Slurm executor on submitit's local cluster, which runs its tasks as processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trimbench.papers.execution import Job, Record, SerialExecutor
from trimbench.papers.execution.executors import Executor
from trimbench.papers.execution.slurm_executor import SlurmExecutor

from . import sample_jobs
from .test_job_log import SPOKEN

# submitit leaves the processes of its local cluster to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run(executor: Executor, jobs: Sequence[Job]) -> dict[str, Record]:
    """Records by key; every job has exactly one."""
    records: list[Record] = []
    executor.run(jobs, records.append)
    assert sorted(record.job.key for record in records) == sorted(job.key for job in jobs)
    return {record.job.key: record for record in records}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    # A task is a new interpreter; it must find the job functions of the tests.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return {"folder": str(tmp_path / "slurm"), "cluster": "local", "workers": 2}


def test_rows_are_those_of_the_serial_executor(local: dict[str, Any]) -> None:
    jobs = [Job.create(sample_jobs.draw, {"repetition": n}) for n in range(5)]
    failing = Job.create(sample_jobs.fail, {"kind": "plain"})
    deadly = Job.create(sample_jobs.die, {"how": "7"})
    slow = Job.create(sample_jobs.sleep, {"seconds": 60.0})
    found = run(SlurmExecutor(**local, jobs_per_task=3, timeout=3.0), [failing, deadly, slow, *jobs])
    expected = run(SerialExecutor(), jobs)
    assert {job.key: found[job.key].result for job in jobs} == {key: record.result for key, record in expected.items()}
    assert found[failing.key].status == "failed"
    assert found[deadly.key].status == "crashed"
    assert found[slow.key].status == "timeout"
    assert not Path(local["folder"]).exists(), "no task was lost, so nothing of them is kept"


def test_what_a_job_writes_is_its_log(local: dict[str, Any]) -> None:
    ends = {"ok": "ok", "failed": "failed", "timeout": "timeout", "killed": "crashed"}
    jobs = {end: Job.create(sample_jobs.speak, {"end": end}) for end in ends}
    found = run(SlurmExecutor(**local, timeout=3.0), list(jobs.values()))
    assert {end: found[job.key].status for end, job in jobs.items()} == ends
    for job in jobs.values():
        assert SPOKEN.fullmatch(found[job.key].log), found[job.key].log


def test_of_a_lost_task_the_logs_stay(local: dict[str, Any], tmp_path: Path) -> None:
    folder = Path(local["folder"])
    left = folder / "tasks.elsewhere.1.0.tmp"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    hopeless = Job.create(sample_jobs.speak_and_end_the_task, {"folder": str(tmp_path)})
    fine = Job.create(sample_jobs.square, {"x": 1})
    found = run(SlurmExecutor(**local, jobs_per_task=1, retries=0), [hopeless, fine])
    assert (found[hopeless.key].status, found[hopeless.key].log) == ("crashed", "last words")
    assert found[fine.key].ok
    assert sorted(path.suffix for path in folder.iterdir()) == [".err", ".out"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(RuntimeError, match=r"the tasks could not be given to 'slurm': .*taken"):
        SlurmExecutor(folder=str(tmp_path / "taken")).run([Job.create(sample_jobs.square, {"x": 1})], print)


def test_jobs_of_a_lost_task_run_again(local: dict[str, Any], tmp_path: Path) -> None:
    lost = Job.create(sample_jobs.end_the_task, {"folder": str(tmp_path), "times": 1})
    hopeless = Job.create(sample_jobs.end_the_task, {"folder": str(tmp_path), "times": 99})
    found = run(SlurmExecutor(**local, jobs_per_task=1, retries=1), [lost, hopeless])
    assert found[lost.key].ok
    assert found[hopeless.key].status == "crashed"
    assert "the task ended without a result" in str(found[hopeless.key].error)


def test_an_end_of_the_run_cancels_the_tasks(local: dict[str, Any], tmp_path: Path) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    jobs = [
        Job.create(sample_jobs.square, {"x": 1}),
        Job.create(sample_jobs.announce, {"folder": str(tmp_path), "token": 5}),
    ]
    with pytest.raises(KeyboardInterrupt):
        SlurmExecutor(**local, jobs_per_task=1).run(jobs, interrupt)
    assert not list(tmp_path.rglob("*.pkl"))


def test_without_slurm_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(RuntimeError, match=r"the tasks could not be given to 'slurm'.*use executor=processes"):
        SlurmExecutor(folder=str(tmp_path)).run([Job.create(sample_jobs.square, {"x": 1})], print)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers must be a positive int or None, got 0"),
        ({"jobs_per_task": 0}, "jobs_per_task must be a whole number, 1 or more, got 0"),
        ({"minutes": 0.5}, r"minutes must be a whole number, 1 or more, got 0\.5"),
        ({"memory_gb": 0}, "memory_gb must be a positive number of GiB, got 0"),
        ({"memory_gb": "big"}, "memory_gb must be a positive number of GiB, got 'big'"),
        ({"folder": ""}, "folder must be the name of a folder, got ''"),
        ({"partition": 3}, "partition must be a text or None, got 3"),
        ({"cluster": "pbs"}, "cluster must be one of slurm, local, got 'pbs'"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SlurmExecutor(**settings)
