"""Runs that were broken in random ways give the tables of a sound run; `scripts/faults` plays more rounds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.reproduction.execution import sample_jobs
from tests.reproduction.execution.programs import held_elsewhere
from trimbench.reproduction.execution import processes as execution_here
from trimbench.reproduction.execution.executors import run_jobs
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.processes import ProcessExecutor
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.files import temporary_folder
from trimbench.reproduction.reporting.runs import make_run, profile_of

from . import faults
from .fault_hooks import Fault


@pytest.mark.cluster
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks processes up in /proc")
def test_rounds_of_faults_change_no_table_and_repeat_no_job() -> None:
    # In a process of its own, because it forks. Workers import the file of a program again, and of a text nothing.
    program = "import sys; from tests.hardening.faults import main; sys.exit(main())"
    # With this seed, one round kills workers and damages files, the other breaks what the program writes.
    command = [sys.executable, "-c", program, "--rounds=2", "--seed=8"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("2 rounds, ")


@pytest.mark.parametrize("kind", ["error", "full", "cut", "kill"])
def test_a_fault_comes_at_its_turn_and_only_in_its_folder(tmp_path: Path, kind: str) -> None:
    (tmp_path / "here").mkdir()
    program = f"""
from pathlib import Path
from tests.hardening.fault_hooks import Fault
Fault(Path("here").absolute(), {kind!r}, 4).plant()
Path("outside").write_text("not counted")
Path("here/first").write_text("opened, written")
for name in ("here/second", "here/third"):
    try:
        Path(name).write_text("0123456789")
    except OSError as error:
        print(error.errno)
"""
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (tmp_path / "outside").read_text() == "not counted"
    assert (tmp_path / "here/first").read_text() == "opened, written"
    errors = {"error": "5\n", "full": "28\n28\n", "cut": "28\n28\n", "kill": ""}[kind]
    assert (found.stdout, found.returncode) == (errors, -9 if kind == "kill" else 0), found.stderr
    # After an error that passes, Python writes again when it closes the file.
    assert (tmp_path / "here/second").read_text() == {"cut": "01234", "error": "0123456789"}.get(kind, "")
    assert (tmp_path / "here/third").is_file() == (kind == "error")


@pytest.mark.parametrize(("kind", "at"), [("error", 1), ("full", 3), ("cut", 4), ("kill", 2)])
def test_a_fault_in_a_worker_costs_its_jobs_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, at: int
) -> None:
    here, tally = tmp_path / "here", tmp_path / "tally"
    here.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    jobs = [
        Job.create(sample_jobs.remembered, {"value": 2.0}),
        *(Job.create(sample_jobs.square, {"x": x}) for x in (1.0, 2.0)),
    ]
    store = JobStore(here / "records")
    with monkeypatch.context() as patch:
        patch.setattr(execution_here, "_prepare", execution_here._prepare)  # put back at the end
        Fault(here, kind, at, tally=tally).plant_in_workers()
        broken = run_jobs(jobs, store, ProcessExecutor(workers=1), progress=False)
    assert tally.stat().st_size >= at
    right = [{"value": 2.0}, {"x": 1.0, "square": 1.0}, {"x": 2.0, "square": 4.0}]
    for record, result in zip(broken, right, strict=True):
        assert record.result == (result if record.ok else None)
        assert record.ok or re.search("No space left|Input/output|exit code|without a result", str(record.error))
    again = run_jobs(jobs, store, ProcessExecutor(workers=1), progress=False)
    assert [record.result for record in again] == right
    assert [record.cached for record in again] == [record.ok for record in broken]


@pytest.mark.parametrize(("command", "code"), [("for i in 1 2 3; do echo; sleep 1; done", 0), ("sleep 60", -14)])
def test_a_run_is_given_up_when_it_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    monkeypatch.setattr(faults, "_SECONDS", 2)
    run = faults.Run(tmp_path, Fault(tmp_path), "serial")
    run.out = Path(tempfile.mkstemp(dir=tmp_path)[1])
    into = (os.POSIX_SPAWN_OPEN, 1, str(run.out), os.O_WRONLY, 0)
    run.pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ, file_actions=[into])
    assert run.end() == code


def test_nothing_but_changes_is_counted(tmp_path: Path) -> None:
    fault = Fault(tmp_path)
    fault.change(tmp_path / "a")
    fault.change(tmp_path.parent / "b")
    fault.change(7)
    assert fault.count == 1


def test_what_a_killed_program_left_goes_when_the_next_one_makes_the_run(tmp_path: Path) -> None:
    make_run(tmp_path / "quick", "quick")
    assert profile_of(tmp_path / "quick") == "quick"
    with temporary_folder(tmp_path / "quick", "writing") as own, held_elsewhere(tmp_path / "quick", "writing") as left:
        make_run(tmp_path / "quick", "quick")
        assert own.is_dir()
        assert left.is_dir()
    make_run(tmp_path / "quick", "quick")
    assert not left.exists()
