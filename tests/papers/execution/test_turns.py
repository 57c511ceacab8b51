"""Two programs on one store take turns: each job runs once, whichever program is killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from trimbench.papers.execution.job import Job
from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.execution.workers import SerialExecutor

from .programs import start_program, wait_for
from .test_run import FAILING, CountingExecutor, NoExecutor, ran, sweep


class HeldExecutor:
    """Waits for a sign before it runs the jobs."""

    def __init__(self) -> None:
        self.started, self.finish = threading.Event(), threading.Event()

    def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None], files: object = None) -> None:
        self.started.set()
        assert self.finish.wait(20)
        SerialExecutor().run(jobs, on_record)


@pytest.mark.parametrize("cache_mode", ["default", "ignore"])
def test_records_of_another_run_are_waited_for_and_taken(
    store: JobStore, capsys: pytest.CaptureFixture[str], cache_mode: str
) -> None:
    theirs = [*sweep(2), FAILING]
    held, executor = HeldExecutor(), CountingExecutor()
    other = threading.Thread(target=run_jobs, args=(theirs, store, held), kwargs={"progress": False})
    other.start()
    assert held.started.wait(20)
    assert run_jobs(sweep(1), store, NoExecutor(), cache_mode="only")[0].status == "missing", "reading does not wait"
    release = threading.Timer(0.5, held.finish.set)
    release.start()
    records = run_jobs([*theirs, *sweep(4)[2:]], store, executor, label="mine", cache_mode=cache_mode)
    other.join()
    assert executor.ran == sweep(4)[2:]
    assert [record.status for record in records] == ["ok", "ok", "failed", "ok", "ok"]
    assert [record.cached for record in records] == [True, True, True, False, False]
    said = capsys.readouterr().err
    assert "mine: waiting for another program that runs jobs for this folder of results\n" in said
    assert "mine: 2 of 5 run in" in said, "the others were not run here"
    assert run_jobs(sweep(4), store, NoExecutor(), progress=False)[0].cached, "stored records need no turn"


def test_a_job_that_ended_while_it_was_planned_is_not_repeated(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = JobStore.ensure_writable

    def finish_elsewhere(self: JobStore) -> None:
        plan(self)
        SerialExecutor().run(sweep(1), self.put)

    monkeypatch.setattr(JobStore, "ensure_writable", finish_elsewhere)
    records, new = ran(sweep(2), store)
    assert all(record.ok for record in records)
    assert new == sweep(2)[1:]


def test_an_error_ends_the_turn(store: JobStore) -> None:
    waits: list[None] = []
    with pytest.raises(AssertionError, match="nothing may run"):
        run_jobs(sweep(1), store, NoExecutor(), progress=False)
    with store.turn(lambda: waits.append(None)):
        assert not waits


def count(marks: Path) -> Counter[str]:
    return Counter(mark.name.split(".")[0] for mark in marks.iterdir())


def test_two_programs_run_each_job_once(store: JobStore, marks: Path, programs: list[subprocess.Popen[str]]) -> None:
    for _ in range(2):
        programs.append(start_program(store.folder, "processes", "leave_a_mark", "token", 20, {"folder": str(marks)}))
    assert [program.wait(timeout=60) for program in programs] == [0, 0]
    assert count(marks) == {str(token): 1 for token in range(20)}
    said = [program.stderr.read() for program in programs if program.stderr]
    assert sorted("waiting for another program" in text for text in said) == [False, True]


def test_the_turn_of_a_killed_program_ends_at_once(
    store: JobStore, marks: Path, programs: list[subprocess.Popen[str]]
) -> None:
    for _ in range(2):  # the first has work for 6 seconds, in which the second starts
        programs.append(start_program(store.folder, "serial", "leave_a_mark", "token", 60, {"folder": str(marks)}))
        wait_for(lambda: len(list(store.folder.glob("??/*.json"))) >= 3)
    assert programs[1].stderr is not None
    assert any("waiting for another program" in line for line in programs[1].stderr)
    programs[0].kill()
    killed = time.monotonic()
    assert programs[1].wait(timeout=60) == 0
    assert time.monotonic() - killed < 30
    counts = count(marks)
    assert set(counts) == {str(token) for token in range(60)}
    assert sum(counts.values()) <= 61, "only the job that was running runs again"
