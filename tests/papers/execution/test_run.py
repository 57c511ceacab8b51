import io
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from trimbench.papers.execution.job import Job
from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.execution.workers import SerialExecutor

from . import sample_jobs
from .programs import is_alive, start_program, wait_for


class CountingExecutor:
    """Runs serially and remembers what it ran."""

    def __init__(self) -> None:
        self.ran: list[Job] = []

    def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None], files: object = None) -> None:
        self.ran += jobs
        SerialExecutor().run(jobs, on_record)


class NoExecutor:
    def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None], files: object = None) -> None:
        raise AssertionError("nothing may run")


def sweep(n: int, seconds: float = 0.0) -> list[Job]:
    return [Job.create(sample_jobs.draw, {"repetition": k, "seconds": seconds}) for k in range(n)]


FAILING = Job.create(sample_jobs.fail, {"kind": "plain"})


def ran(jobs: Sequence[Job], store: JobStore, cache_mode: str = "default") -> tuple[list[Record], list[Job]]:
    """Run a sweep; return its records, and the jobs that ran for it."""
    executor = CountingExecutor()
    return run_jobs(jobs, store, executor, cache_mode=cache_mode, progress=False), executor.ran


def test_order_duplicates_and_storing(store: JobStore) -> None:
    assert run_jobs([], store, NoExecutor(), progress=False) == []
    jobs = sweep(3)
    records, new = ran([jobs[2], jobs[0], jobs[2], jobs[1]], store)
    assert [record.job for record in records] == [jobs[2], jobs[0], jobs[2], jobs[1]]
    assert new == [jobs[2], jobs[0], jobs[1]]
    assert not any(record.cached for record in records)
    assert store.successes(jobs) == {record.job.key: record for record in records}


def test_a_rerun_takes_successes_from_the_store_and_runs_failures_again(store: JobStore) -> None:
    first, _ = ran([*sweep(3), FAILING], store)
    assert [record.status for record in first] == ["ok", "ok", "ok", "failed"]
    assert store.get(FAILING) == first[3]
    second, new = ran([*sweep(5), FAILING], store)
    assert new == [*sweep(5)[3:], FAILING]
    assert [record.cached for record in second] == [True, True, True, False, False, False]
    assert second[:3] == first[:3]
    assert run_jobs(sweep(5), store, NoExecutor(), progress=False) == second[:5]


def test_ignore_runs_all_again(store: JobStore) -> None:
    ran(sweep(2), store)
    records, new = ran(sweep(2), store, "ignore")
    assert new == sweep(2)
    assert not any(record.cached for record in records)


def test_only_runs_nothing_and_needs_no_writable_folder(store: JobStore, tmp_path: Path) -> None:
    ran([*sweep(1), FAILING], store)
    records = run_jobs([*sweep(2), FAILING], store, NoExecutor(), cache_mode="only")
    assert [(record.status, record.cached) for record in records] == [
        ("ok", True),
        ("missing", False),
        ("failed", True),
    ]
    assert "run the job with cache_mode='default'" in str(records[1].error)
    absent = tmp_path / "absent"
    assert run_jobs(sweep(1), JobStore(absent), NoExecutor(), cache_mode="only")[0].status == "missing"
    assert not absent.exists()


def test_cache_mode_is_one_of_three(store: JobStore) -> None:
    with pytest.raises(ValueError, match="cache_mode must be one of default, ignore, only, got 'none'"):
        run_jobs([], store, NoExecutor(), cache_mode="none")


def test_an_unwritable_store_is_found_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write to the folder of results"):
        run_jobs(sweep(1), JobStore(tmp_path / "file"), NoExecutor(), progress=False)


class LosingExecutor:
    def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None], files: object = None) -> None:
        SerialExecutor().run(jobs[1:], on_record)


def test_an_executor_that_loses_jobs_is_reported(store: JobStore) -> None:
    with pytest.raises(RuntimeError, match="must give a record for every job, got none for 1: "):
        run_jobs(sweep(3), store, LosingExecutor(), progress=False)
    assert len(store.successes(sweep(3))) == 2


def test_without_a_terminal_there_are_two_lines(store: JobStore, capsys: pytest.CaptureFixture[str]) -> None:
    ran(sweep(1), store)
    assert capsys.readouterr().err == ""
    run_jobs([*sweep(2), FAILING], store, SerialExecutor(), label="table 6")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "table 6: 1 stored, 2 to run"
    assert lines[1].startswith("table 6: 2 of 2 run in ")
    assert lines[1].endswith(" s, 1 failed")
    assert len(lines) == 2
    run_jobs(sweep(2), store, NoExecutor(), label="again")
    assert capsys.readouterr().err == "again: 2 stored, 0 to run\n"


def test_on_a_terminal_there_is_a_bar_with_failures(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", screen)
    run_jobs([*sweep(2), FAILING], store, SerialExecutor(), label="sweep")
    assert "sweep: 100%" in screen.getvalue()
    assert re.search(r"\b3 of 3 jobs, .*, 1 failed\n", screen.getvalue())


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks processes up in /proc")


@pytest.mark.parametrize(("kind", "seed"), [("serial", 1), ("serial", 2), ("processes", 3)])
def test_after_a_kill_exactly_the_rest_runs(
    store: JobStore, programs: list["subprocess.Popen[str]"], kind: str, seed: int
) -> None:
    jobs = sweep(20, seconds=0.02)
    n_before = random.Random(seed).randrange(1, 12)
    programs.append(start_program(store.folder, kind, "draw", "repetition", 20, {"seconds": 0.02}))
    wait_for(lambda: len(list(store.folder.glob("*/*.json"))) >= n_before)
    time.sleep(random.Random(seed).uniform(0, 0.02))
    programs[0].kill()
    programs[0].wait()
    stored = JobStore(store.folder).successes(jobs)
    assert n_before <= len(stored) < 20
    records, new = ran(jobs, JobStore(store.folder))
    assert new == [job for job in jobs if job.key not in stored]
    assert [record.cached for record in records] == [job.key in stored for job in jobs]
    assert [record.result for record in records] == [sample_jobs.draw(**job.parameters) for job in jobs]
    assert len(list(store.folder.rglob("*.*"))) == 20, "nothing but records"


@needs_proc
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_program(
    store: JobStore, marks: Path, programs: list["subprocess.Popen[str]"], how: signal.Signals
) -> None:
    programs.append(start_program(store.folder, "processes", "announce", "token", 4, {"folder": str(marks)}))
    wait_for(lambda: len(list(marks.iterdir())) == 2)
    workers = [int(mark.name.split(".")[1]) for mark in marks.iterdir()]
    assert all(map(is_alive, workers))
    os.kill(programs[0].pid, how)
    assert programs[0].wait(timeout=20) != 0
    wait_for(lambda: not any(map(is_alive, workers)))
    if how == signal.SIGINT:
        assert programs[0].stderr is not None
        error = programs[0].stderr.read()
        assert "KeyboardInterrupt" in error
        assert "jobs: 0 of 4 run in" in error
