"""The Slurm executor on submitit's local cluster, which runs its tasks as processes of this machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.reproduction.execution import sample_jobs
from tests.reproduction.execution.programs import ON_CLUSTER, run, squares
from tests.reproduction.execution.test_job_log import SPEAKING, check_ends_and_logs
from trimbench.reproduction.execution import cluster_task, slurm_executor
from trimbench.reproduction.execution.executors import ExecutorError, SerialExecutor
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.slurm_executor import SlurmExecutor
from trimbench.reproduction.execution.store import Record

pytestmark = ON_CLUSTER


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    # A task is a new interpreter; it must find the job functions of the tests.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return {"folder": str(tmp_path / "slurm"), "cluster": "local", "workers": 2}


def test_rows_are_those_of_the_serial_executor_and_a_bad_job_costs_one(local: dict[str, Any]) -> None:
    jobs = [Job.create(sample_jobs.draw, {"repetition": n}) for n in range(5)]
    failing = Job.create(sample_jobs.fail, {"kind": "plain"})
    deadly = Job.create(sample_jobs.die, {"how": "7"})
    found = run(SlurmExecutor(**local, jobs_per_task=6, timeout=8.0), [failing, deadly, *SPEAKING, *jobs])
    expected = run(SerialExecutor(), jobs)
    assert {job.key: found[job.key].result for job in jobs} == {key: record.result for key, record in expected.items()}
    assert found[failing.key].status == "failed"
    assert found[deadly.key].status == "crashed"
    check_ends_and_logs(found)
    assert not Path(local["folder"]).exists(), "no task was lost, so nothing of them is kept"


def test_jobs_of_a_lost_task_run_again_and_its_logs_stay(local: dict[str, Any], tmp_path: Path) -> None:
    folder = Path(local["folder"])
    left = folder / "tasks.00c0ffee.tmp"
    left.mkdir(parents=True)
    (left / "trimbench.lock").touch()
    once = Job.create(sample_jobs.end_the_task, {"folder": str(tmp_path), "times": 1})
    hopeless = Job.create(sample_jobs.speak_and_end_the_task, {"folder": str(tmp_path)})
    fine = Job.create(sample_jobs.square, {"x": 1})
    found = run(SlurmExecutor(**local, jobs_per_task=1, retries=1), [once, hopeless, fine])
    assert found[fine.key].ok
    assert found[once.key].ok
    assert (found[hopeless.key].status, found[hopeless.key].log) == ("crashed", "last words")
    assert "the task ended without a result: " in str(found[hopeless.key].error)
    assert sorted(path.suffix for path in folder.iterdir()) == [".err"] * 3 + [".out"] * 3


def test_a_task_that_cannot_run_gives_the_reason(
    local: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "pebble.py").write_text("raise ImportError('no pebble here')")
    with pytest.raises(
        ExecutorError, match=r"^no machine can run the jobs: node \S+: ImportError: no pebble here; what"
    ):
        SlurmExecutor(**local).run(squares(2), print)
    missing = {"files/data.csv": tmp_path / "pebble.py"}
    with pytest.raises(
        ExecutorError, match=r"node \S+: FileNotFoundError: 1 of the 1 files that the run reads are not"
    ):
        SlurmExecutor(**local).run(squares(2), print, missing)


def test_an_end_of_the_run_cancels_the_tasks(local: dict[str, Any], tmp_path: Path) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    jobs = [*squares(1), Job.create(sample_jobs.announce, {"folder": str(tmp_path), "token": 5})]
    with pytest.raises(KeyboardInterrupt):
        SlurmExecutor(**local, jobs_per_task=1).run(jobs, interrupt)
    assert not list(tmp_path.rglob("*.pkl"))


def test_tasks_that_cannot_be_given_to_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv("PATH", os.devnull)
    for folder, reason in (("taken", "taken"), ("free", "use executor=processes")):
        with pytest.raises(RuntimeError, match=rf"the tasks could not be given to 'slurm': .*{reason}"):
            SlurmExecutor(folder=str(tmp_path / folder)).run(squares(1), print)


@pytest.mark.parametrize("name", ["level95%test", "%j", "50%%"])  # facebookincubator/submitit#1631
def test_files_of_tasks_are_in_no_folder_with_a_percent_sign(tmp_path: Path, name: str) -> None:
    """submitit fills in what stands after the sign."""
    folder = tmp_path / name / "tasks"
    with SlurmExecutor(folder=str(folder), cluster="local").connected() as cluster:
        assert "%" not in str(cluster.logs)
        assert cluster.logs.is_dir()
    assert list(tmp_path.iterdir()) == [folder.parent]


# What Slurm's programs do that submitit sees: `sbatch` runs a script once for each task of an array, and there
# `srun` runs a command on each node of the task. The second node does not see the data.
SLURM = """#!{python}
import os, re, subprocess, sys, time
from pathlib import Path
program, room, nodes = Path(sys.argv[0]).name, Path({room!r}), ["n1", "n2", "n3"]
if program == "sinfo":
    {sinfo}
if program == "sbatch":
    flags = dict(re.findall("#SBATCH --([a-z-]+)=(.*)", Path(sys.argv[1]).read_text()))
    job = len((room / "log").read_text().splitlines()) if (room / "log").exists() else 0
    with (room / "log").open("a") as log:
        print(flags["nodes"], flags.get("exclude", ""), file=log)
    free = [node for node in nodes if node not in flags.get("exclude", "").split(",")]
    count = re.match("0-([0-9]+)%", flags.get("array", ""))
    for task in range(int(count[1]) + 1 if count else 1):
        mine = free if "-" in flags["nodes"] else [free[task % len(free)]]
        array = dict(SLURM_ARRAY_JOB_ID=str(job), SLURM_ARRAY_TASK_ID=str(task)) if count else dict()
        variables = dict(SLURM_JOB_ID=str(job), SLURM_JOB_NODELIST=",".join(mine), SLURM_NTASKS=str(len(mine)), **array)
        out = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.Popen(["bash", sys.argv[1]], env=os.environ | variables, **out)
    print("Submitted batch job", job)
if program == "srun":
    command = sys.argv[sys.argv.index({python!r}):]
    for place, node in enumerate(os.environ["SLURM_JOB_NODELIST"].split(",")):
        variables = dict(SLURMD_NODENAME=node, SLURM_PROCID=str(place), SLURM_NODEID=str(place), SLURM_LOCALID="0")
        if node == "n2":
            variables["TRIMBENCH_CACHE"] = "/not/here"
        subprocess.run(command, env=os.environ | dict(SLURM_JOB_NUM_NODES="1") | variables, check=True)
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Record]]:
    """Run four jobs that read a file where `sinfo` does what is given."""

    def run_jobs(sinfo: str) -> list[Record]:
        for name in ("sinfo", "sbatch", "srun", "sacct", "scancel"):
            program = SLURM.format(python=sys.executable, room=str(tmp_path), sinfo=sinfo)
            (tmp_path / "bin" / name).write_text(program)
            (tmp_path / "bin" / name).chmod(0o755)
        records: list[Record] = []
        executor = SlurmExecutor(folder=str(tmp_path / "slurm"), jobs_per_task=2)
        executor.run(squares(4), records.append, {"files/data": tmp_path / "cache/files/data"})
        return records

    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setitem(slurm_executor._LOOK_SECONDS, "slurm", 0.1)
    (tmp_path / "cache/files").mkdir(parents=True)
    (tmp_path / "cache/files/data").write_text("content")
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    return run_jobs


def test_a_small_job_says_at_the_start_what_is_missing_on_which_node(
    slurm: Callable[[str], list[Record]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = slurm("print(*nodes, sep='\\n')")
    assert [record.status for record in records] == ["ok"] * 4
    (line,) = records[0].provenance["left_out"]  # type: ignore[misc, union-attr]
    assert re.fullmatch(r"node n2: FileNotFoundError: 1 of the 1 files .* are not here, for example /.*/data", line)
    assert caplog.messages == [f"Left out of the run: {line}"]
    assert (tmp_path / "log").read_text().splitlines() == ["1-3 ", "1 n2"]


def test_where_sinfo_names_no_nodes_the_run_goes_on(
    slurm: Callable[[str], list[Record]], caplog: pytest.LogCaptureFixture
) -> None:
    assert {record.status for record in slurm("pass")} == {"ok"}
    said, *left_out = caplog.messages
    assert said == "The nodes are not tried first, as sinfo did not name them: it named none"
    assert all("node n2: " in line for line in left_out)


def test_names_of_nodes_may_be_any_bytes_and_where_there_are_none_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(cluster_task, "_SINFO_SECONDS", 0.5)
    found = []
    for said in ("printf 'n1\\n\\377\\n'", "echo no controller >&2; exit 1", "exec sleep 60"):
        (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{said}\n")
        (tmp_path / "sinfo").chmod(0o755)
        found.append([*cluster_task.machines_of("long", is_local=False)])
    assert found == [["n1", "\N{REPLACEMENT CHARACTER}"], [], []]
    failed, late = caplog.messages
    assert failed.endswith("returned non-zero exit status 1. no controller")
    assert "timed out after 0.5 seconds" in late


def test_tasks_that_wrote_nothing_are_waited_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_executor, "END_SECONDS", 0.5)
    monkeypatch.setitem(slurm_executor._LOOK_SECONDS, "local", 0.05)
    tasks = [Mock() for _ in range(9)]
    with SlurmExecutor(folder=str(tmp_path / "slurm"), cluster="local").connected() as cluster:
        monkeypatch.setattr(cluster, "_is_local", False)
        monkeypatch.setitem(slurm_executor._LOOK_SECONDS, "slurm", 0.05)
        for n, one in enumerate(tasks):
            one.paths.result_pickle = tmp_path / f"{n}.pkl"
        (tmp_path / "8.json").write_bytes(b"answer")
        assert cluster.wait(tasks) == tasks[8:]
        while not (done := cluster.wait(tasks[:8])):
            pass
        assert done == tasks[:8]
        monkeypatch.setattr(cluster, "_is_local", True)
