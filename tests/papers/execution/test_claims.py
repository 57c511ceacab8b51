"""Two programs on one store: each job runs once, whoever is killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from trimbench.papers.execution import Job, JobStore, Record, SerialExecutor, run_jobs
from trimbench.papers.execution.claims import Claims

from . import sample_jobs
from .programs import start_program, wait_for
from .test_run import CountingExecutor, sweep


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "records")


def test_a_key_is_with_one_holder_at_a_time(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    with claims.hold({"a", "b"}) as first:
        assert first == {"a", "b"}
        with Claims(tmp_path / "claims").hold(["b", "c"]) as second:
            assert second == {"c"}
            with claims.hold({"a", "c"}) as third:
                assert third == set()
        with claims.hold({"c"}) as fourth:
            assert fourth == {"c"}
    with claims.hold({"a", "b", "c"}) as last:
        assert last == {"a", "b", "c"}
    assert [path.name for path in claims.folder.iterdir()] == ["door"]


def test_a_claim_ends_with_an_error(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    with pytest.raises(RuntimeError, match="stop"), claims.hold({"a"}):
        raise RuntimeError("stop")
    with claims.hold({"a"}) as again:
        assert again == {"a"}


def test_jobs_of_another_run_are_waited_for_and_their_records_taken(
    store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = Job.create(sample_jobs.fail, {"kind": "plain"})
    theirs = [*sweep(2), failing]
    started, finish = threading.Event(), threading.Event()

    class Held:
        def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None]) -> None:
            started.set()
            assert finish.wait(20)
            SerialExecutor().run(jobs, on_record)

    other = threading.Thread(target=run_jobs, args=(theirs, store, Held()), kwargs={"progress": False})
    other.start()
    assert started.wait(20)
    executor = CountingExecutor()
    release = threading.Timer(1.0, finish.set)
    release.start()
    records = run_jobs([*theirs, *sweep(4)[2:]], store, executor, label="mine")
    other.join()
    assert executor.ran == sweep(4)[2:]
    assert [record.status for record in records] == ["ok", "ok", "failed", "ok", "ok"]
    assert [record.cached for record in records] == [True, True, True, False, False]
    said = capsys.readouterr().err
    assert "mine: waiting for another program, which runs 3 of these jobs\n" in said
    assert "mine: 2 of 5 run in" in said, "the others were not run here"


def test_a_job_that_ended_while_it_was_planned_is_not_repeated(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = JobStore.ensure_writable

    def finish_elsewhere(self: JobStore) -> None:
        plan(self)
        SerialExecutor().run(sweep(1), self.put)

    monkeypatch.setattr(JobStore, "ensure_writable", finish_elsewhere)
    executor = CountingExecutor()
    assert all(record.ok for record in run_jobs(sweep(2), store, executor, progress=False))
    assert executor.ran == sweep(2)[1:]


def marks(folder: Path) -> Counter[str]:
    return Counter(mark.name.split(".")[0] for mark in folder.iterdir())


def test_two_programs_run_each_job_once(store: JobStore, tmp_path: Path, programs: list[subprocess.Popen[str]]) -> None:
    folder = tmp_path / "marks"
    folder.mkdir()
    for _ in range(2):
        programs.append(start_program(store.folder, "processes", "leave_a_mark", "token", 20, {"folder": str(folder)}))
    assert [program.wait(timeout=60) for program in programs] == [0, 0]
    assert marks(folder) == {str(token): 1 for token in range(20)}
    said = [program.stderr.read() for program in programs if program.stderr]
    assert sorted("waiting for another program" in text for text in said) == [False, True]


def test_the_jobs_of_a_killed_program_are_taken_over(
    store: JobStore, tmp_path: Path, programs: list[subprocess.Popen[str]]
) -> None:
    folder = tmp_path / "marks"
    folder.mkdir()
    programs.append(start_program(store.folder, "serial", "leave_a_mark", "token", 20, {"folder": str(folder)}))
    wait_for(lambda: len(list(store.folder.glob("??/*.json"))) >= 3)
    programs.append(start_program(store.folder, "serial", "leave_a_mark", "token", 20, {"folder": str(folder)}))
    wait_for(lambda: len(list(store.folder.glob("??/*.json"))) >= 8)
    programs[0].kill()
    killed = time.monotonic()
    assert programs[1].wait(timeout=60) == 0
    assert time.monotonic() - killed < 20
    counts = marks(folder)
    assert set(counts) == {str(token) for token in range(20)}
    assert sum(counts.values()) <= 21, "only the job that was running is run again"
    assert not list(store.claims.folder.glob("*.claim"))


def test_the_claim_of_a_program_killed_behind_its_last_job_goes_with_the_next_run(store: JobStore) -> None:
    run_jobs(sweep(2), store, SerialExecutor())
    folder = store.claims.folder
    with store.claims.hold({"held"}):
        held = {path.name for path in folder.iterdir()}
        for name in ("void.claim", "void.keys"):
            (folder / name).write_text("")
        run_jobs(sweep(2), store, SerialExecutor())
        assert {path.name for path in folder.iterdir()} == held, "that of a running program stays"
