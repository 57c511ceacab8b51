"""A Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from trimbench.papers.execution import Job, JobStore, Record, SerialExecutor
from trimbench.papers.execution.executors import Executor
from trimbench.papers.execution.ray_executor import RayExecutor
from trimbench.papers.execution.ray_files import ray_folder

from . import sample_jobs
from .programs import start_program, wait_for
from .test_job_log import SPOKEN

# One cluster serves all tests of this file; Ray's own code warns of what it will change.
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


def run(executor: Executor, jobs: Sequence[Job]) -> dict[str, Record]:
    """Records by key; every job has exactly one."""
    records: list[Record] = []
    executor.run(jobs, records.append)
    assert sorted(record.job.key for record in records) == sorted(job.key for job in jobs)
    return {record.job.key: record for record in records}


def test_rows_are_those_of_the_serial_executor_on_both_nodes(cluster: Any) -> None:
    jobs = [Job.create(sample_jobs.draw, {"repetition": n, "seconds": 0.05}) for n in range(12)]
    found = run(RayExecutor(cluster.address), jobs)
    expected = run(SerialExecutor(), jobs)
    assert {key: record.result for key, record in found.items()} == {
        key: record.result for key, record in expected.items()
    }
    pids = [Job.create(sample_jobs.sleep, {"seconds": 0.3, "token": n}) for n in range(4)]
    assert len({record.result["pid"] for record in run(RayExecutor(cluster.address), pids).values()}) == 2  # type: ignore[index]
    one = run(RayExecutor(cluster.address, workers=1), pids)
    assert len({record.result["pid"] for record in one.values()}) == 1  # type: ignore[index]


def test_a_job_that_fails_hangs_or_kills_its_worker_costs_one_row(cluster: Any) -> None:
    failing = {kind: Job.create(sample_jobs.fail, {"kind": kind}) for kind in ("plain", "exit", "unpicklable", "rude")}
    slow = Job.create(sample_jobs.sleep, {"seconds": 60.0})
    deadly = Job.create(sample_jobs.die, {"how": "kill"})
    ok = [Job.create(sample_jobs.square, {"x": x}) for x in range(6)]
    started = time.perf_counter()
    records = run(RayExecutor(cluster.address, timeout=2.0, retries=1), [deadly, slow, *failing.values(), *ok])
    assert time.perf_counter() - started < 45
    assert {records[job.key].status for job in failing.values()} == {"failed"}
    assert "ValueError: unlucky plain" in str(records[failing["plain"].key].error)
    assert records[slow.key].status == "timeout"
    assert "stopped at the limit of 2 seconds per job" in str(records[slow.key].error)
    assert records[deadly.key].status == "crashed"
    assert "the worker process died, 2 times with this job" in str(records[deadly.key].error)
    assert all(records[job.key].ok for job in ok)


def test_linear_algebra_has_one_thread(cluster: Any) -> None:
    job = Job.create(sample_jobs.linear_algebra_threads, {})
    assert set(run(RayExecutor(cluster.address), [job])[job.key].result["threads"]) == {1}  # type: ignore[index]


def test_a_lost_node_loses_no_job(cluster: Any) -> None:
    node = cluster.add_node(num_cpus=1)
    jobs = [Job.create(sample_jobs.sleep, {"seconds": 1.0, "token": n}) for n in range(100, 112)]
    records: list[Record] = []
    killer = threading.Timer(3.0, lambda: cluster.remove_node(node, allow_graceful=False))
    killer.start()
    RayExecutor(cluster.address).run(jobs, records.append)
    killer.join()
    assert sorted(record.job.key for record in records) == sorted(job.key for job in jobs)
    assert all(record.ok for record in records)


def test_kills_of_node_worker_and_program_repeat_no_finished_job(
    cluster: Any, tmp_path: Path, programs: list[subprocess.Popen[str]]
) -> None:
    store, folder = JobStore(tmp_path / "records"), tmp_path / "marks"
    folder.mkdir()
    jobs = [Job.create(sample_jobs.leave_a_mark, {"folder": str(folder), "token": n}) for n in range(60)]
    node = cluster.add_node(num_cpus=1)

    def go_on_to(n_stored: int) -> subprocess.Popen[str]:
        shared: dict[str, object] = {"folder": str(folder)}
        programs.append(
            start_program(store.folder, "ray", "leave_a_mark", "token", 60, shared, address=cluster.address)
        )
        wait_for(lambda: len(store.successes(jobs)) >= n_stored, seconds=60)
        return programs[-1]

    program = go_on_to(8)
    cluster.remove_node(node, allow_graceful=False)
    wait_for(lambda: len(store.successes(jobs)) >= 16, seconds=60)
    os.kill(int(max(folder.iterdir(), key=lambda mark: mark.stat().st_mtime).name.split(".")[1]), signal.SIGKILL)
    wait_for(lambda: len(store.successes(jobs)) >= 24, seconds=60)
    program.kill()
    program.wait()
    stored = store.successes(jobs)
    marked = Counter(int(mark.name.split(".")[0]) for mark in folder.iterdir())
    assert go_on_to(60).wait(timeout=60) == 0
    again = Counter(int(mark.name.split(".")[0]) for mark in folder.iterdir()) - marked
    assert {jobs[token].key for token in again}.isdisjoint(stored)
    assert {key: store.successes(jobs)[key] for key in stored} == stored
    assert [record.result for record in store.successes(jobs).values()] == [{"token": n} for n in range(60)]


def test_a_cluster_of_a_killed_program_leaves_no_files(
    tmp_path: Path, programs: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, folder = JobStore(tmp_path / "records"), tmp_path / "marks"
    folder.mkdir()
    jobs = [Job.create(sample_jobs.leave_a_mark, {"folder": str(folder), "token": n}) for n in range(20)]
    with tempfile.TemporaryDirectory() as room:
        monkeypatch.setenv("RAY_TMPDIR", room)
        for is_killed in (True, False):
            shared: dict[str, object] = {"folder": str(folder)}
            programs.append(start_program(store.folder, "ray", "leave_a_mark", "token", 20, shared, workers=1))
            if is_killed:
                wait_for(lambda: len(store.successes(jobs)) >= 2, seconds=60)
                assert list(Path(room).glob("*/session_*"))
                programs[-1].kill()
            programs[-1].wait(timeout=60)
        assert len(store.successes(jobs)) == len(jobs)
        assert list(Path(room).iterdir()) == []


def test_files_of_a_cluster_whose_folder_has_too_long_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / ("long" * 10)))
    assert ray_folder() is None


def test_what_the_caller_raises_ends_the_run_and_the_workers(cluster: Any) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    jobs = [Job.create(sample_jobs.sleep, {"seconds": 0.2, "token": n}) for n in range(200, 206)]
    with pytest.raises(KeyboardInterrupt):
        RayExecutor(cluster.address).run(jobs, interrupt)
    records = run(RayExecutor(cluster.address), jobs)
    assert all(record.ok for record in records.values()), "the processors are free again"


def test_what_a_job_writes_is_its_log(cluster: Any) -> None:
    ends = {"ok": "ok", "failed": "failed", "timeout": "timeout", "killed": "crashed"}
    jobs = {end: Job.create(sample_jobs.speak, {"end": end}) for end in ends}
    found = run(RayExecutor(cluster.address, timeout=5.0, retries=1), list(jobs.values()))
    assert {end: found[job.key].status for end, job in jobs.items()} == ends
    for job in jobs.values():
        assert SPOKEN.fullmatch(found[job.key].log), found[job.key].log


def test_no_cluster_at_the_address() -> None:
    import ray

    ray.shutdown()
    with pytest.raises(RuntimeError, match=r"address must be that of a running Ray cluster, got '127\.0\.0\.1:1'"):
        RayExecutor("127.0.0.1:1").run([Job.create(sample_jobs.square, {"x": 1})], print)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers must be a positive int or None, got 0"),
        ({"timeout": -1.0}, r"timeout must be positive seconds or None, got -1\.0"),
        ({"address": 3}, "address must be 'host:port', 'auto' or None, got 3"),
        ({"retries": -1}, "retries must be a whole number, 0 or more, got -1"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RayExecutor(**settings)
