"""Temporary files go with their writer, or after it."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from trimbench.papers.execution import Job, JobStore, ProcessExecutor, run_jobs
from trimbench.papers.execution.workers import SerialExecutor
from trimbench.papers.files import remove_abandoned, temporary_folder

from . import sample_jobs
from .programs import run


def test_what_a_job_leaves_behind_goes_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    job = Job.create(sample_jobs.leave_a_file, {})
    result = run(ProcessExecutor(workers=1), [job])[job.key].result
    assert result is not None
    assert Path(str(result["path"])).parent.parent == tmp_path
    assert not list(tmp_path.glob("trimbench*"))


def test_the_folder_of_a_dead_process_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as folder:
        host = folder.name.split(".")[1]
    assert not folder.exists()
    leave(tmp_path, host)
    with temporary_folder() as folder:
        assert set(tmp_path.iterdir()) == {folder}
    leave(tmp_path, host)
    run_jobs([], JobStore(tmp_path / "records"), ProcessExecutor(workers=1))
    assert not list(tmp_path.iterdir()), "also if nothing is left to run"
    leave(tmp_path, host)
    jobs = [Job.create(sample_jobs.square, {"x": 3.0})]
    run_jobs(jobs, JobStore(tmp_path / "records"), SerialExecutor(), progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["records"], "also without workers"


def leave(room: Path, host: str) -> None:
    """Leave what a process leaves that was killed."""
    dead = room / f"trimbench.{host}.{2**22 + 1}.00000000.tmp"  # no process has such a number
    dead.mkdir()
    (dead / "log").write_text("text")


def test_only_old_files_are_abandoned(tmp_path: Path) -> None:
    old, new = tmp_path / ".partial-old", tmp_path / ".partial-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    remove_abandoned(tmp_path.glob(".partial-*"))
    assert set(tmp_path.iterdir()) == {new}
