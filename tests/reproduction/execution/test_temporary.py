"""Temporary files go with their writer, or after it."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from pathlib import Path

import pytest

from trimbench.reproduction.execution.executors import SerialExecutor, run_jobs
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.processes import ProcessExecutor
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.files import lock, remove_abandoned, remove_temporary_folders, temporary_folder, write_text

from . import sample_jobs
from .programs import held_elsewhere, run


def test_what_a_job_leaves_behind_goes_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    job = Job.create(sample_jobs.leave_a_file, {})
    result = run(ProcessExecutor(workers=1), [job])[job.key].result
    assert result is not None
    assert Path(str(result["path"])).parent.parent == tmp_path
    assert not list(tmp_path.glob("trimbench*"))


def test_the_folder_of_a_dead_process_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    store = JobStore(tmp_path / "records")
    jobs = [Job.create(sample_jobs.square, {"x": 3.0})]
    with held_elsewhere(room) as living:
        with held_elsewhere(room) as dead:
            (dead / "log").write_text("text")
        with temporary_folder() as own:
            assert set(room.iterdir()) == {own, living}
        run_jobs([], store, ProcessExecutor(workers=1))
        run_jobs(jobs, store, SerialExecutor(), progress=False)
        assert set(room.iterdir()) == {living}
    lost = room / "trimbench.00c0ffee.tmp"
    (lost / "part").mkdir(parents=True)
    (lost / "trimbench.lock").touch()  # which goes last, even if a part could not be removed
    run_jobs(jobs, store, SerialExecutor(), progress=False)
    assert not list(room.iterdir()), "also without workers, and if nothing is left to run"


def test_what_is_written_takes_the_place_of_what_a_dead_writer_left(tmp_path: Path) -> None:
    (tmp_path / "writing.00c0ffee.tmp").mkdir()
    write_text("whole", tmp_path / "a.txt")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "whole"}


def test_a_part_that_cannot_be_removed_leaves_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = os.unlink

    def refuse(path: str, **named: int) -> None:
        if Path(path).name == "stuck":
            raise PermissionError(errno.EACCES, "no", path)
        remove(path, **named)

    with monkeypatch.context() as patch, temporary_folder(tmp_path) as folder:
        (folder / "part").mkdir()
        (folder / "part/stuck").touch()
        (folder / "more").touch()
        patch.setattr(os, "unlink", refuse)
    assert sorted(path.name for path in folder.iterdir()) == ["part", "trimbench.lock"]
    remove_temporary_folders(tmp_path)
    assert not folder.exists()


def test_a_folder_that_is_not_provably_ours_is_never_removed(tmp_path: Path) -> None:
    """Whatever its age: by another name, without a lock of ours, or behind a link."""
    held = "trimbench.lock"
    for name, file in [
        *(("writing.NAME.tmp", held), ("writing.00c0ffee.more.tmp", held), ("writing.00C0FFEE.tmp", held)),
        ("writing.more.00c0ffee.tmp", held),
        *(("writing.00c0ffee.tmp", "held"), ("writing.00c0ffef.tmp", "novel.txt"), ("draft.00c0ffee.tmp", held)),
    ]:
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("mine")
    (tmp_path / "writing.0123abcd.tmp").symlink_to(tmp_path / "draft.00c0ffee.tmp")
    (tmp_path / "writing.0123abce.tmp").mkdir()
    (tmp_path / "writing.0123abce.tmp" / held).symlink_to(tmp_path / "draft.00c0ffee.tmp" / held)
    (tmp_path / "writing.EMPTY.tmp").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0), follow_symlinks=False)
    remove_temporary_folders(tmp_path, "writing")
    write_text("whole", tmp_path / "a.txt")
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "a.txt"])


@pytest.mark.parametrize("step", ["open", "rename"])
def test_where_there_is_no_room_no_folder_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    change = getattr(os, step)

    def refuse(path: Path, second: int, *more: int, **named: int) -> int:
        if step == "open" and not second & os.O_CREAT:
            return int(change(path, second, *more, **named))
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="no room"), temporary_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


# See DataBiosphere/toil#4846, tox-dev/filelock#67, derpston/python-simpleflock#9; the last, which no errno names, is
# that of HDFGroup/hdf5#3311.
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ESTALE, errno.EOPNOTSUPP, errno.EIO, 524])
def test_a_file_system_without_locks_is_named_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    jobs = [Job.create(sample_jobs.square, {"x": x}) for x in (1.0, 2.0)]
    (record, _) = run_jobs(jobs, JobStore(tmp_path / "records"), SerialExecutor(), progress=False)
    assert record.ok
    assert "lock cannot be locked on this file system; run one program at a time there" in caplog.text
    with temporary_folder() as first, temporary_folder() as second:
        assert first.exists(), "nobody can tell whether it is in use"
        os.utime(first, (time.time() - 2 * 24 * 3600,) * 2)
        remove_temporary_folders()
        assert [first.exists(), second.exists()] == [False, True]


def test_a_lock_of_another_user_serves_a_group(tmp_path: Path) -> None:
    """As what else is written: treeverse/dvc#2287, astral-sh/ruff#24786."""
    before = os.umask(0o002)
    try:
        descriptor = lock(tmp_path / "lock")
        write_text("whole", tmp_path / "table")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o664}
    (tmp_path / "lock").write_text("1\n")  # a number that every container has: stellar/stellar-core#883
    assert lock(tmp_path / "lock") is None
    assert descriptor is not None
    os.close(descriptor)
    assert lock(tmp_path / "lock") is not None


def test_only_old_files_are_abandoned(tmp_path: Path) -> None:
    old, new = tmp_path / ".partial-old", tmp_path / ".partial-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    remove_abandoned(tmp_path.glob(".partial-*"))
    assert set(tmp_path.iterdir()) == {new}
