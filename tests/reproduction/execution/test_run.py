"""Runs: what is stored and what runs, programs that take turns or are killed, and how long the rest takes."""

import io
import math
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.execution.executors import Report, SerialExecutor, Work, duration, run_jobs
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import user_cache
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.planning import COST, expected_seconds, measured

from . import sample_jobs
from .programs import start_program, wait_for


class CountingExecutor:
    def __init__(self) -> None:
        self.ran: list[Job] = []

    def run(self, jobs: Sequence[Job], on_record: Callable[[Record], None], files: object = None) -> None:
        self.ran += jobs
        SerialExecutor().run(jobs, on_record)


NOBODY = Mock(run=Mock(side_effect=AssertionError("nothing may run")))


def sweep(n: int, seconds: float = 0.0) -> list[Job]:
    return [Job.create(sample_jobs.draw, {"repetition": k, "seconds": seconds}) for k in range(n)]


FAILING = Job.create(sample_jobs.fail, {"kind": "plain"})


def ran(jobs: Sequence[Job], store: JobStore, cache_mode: str = "default") -> tuple[list[Record], list[Job]]:
    """Run a sweep; return its records, and the jobs that ran for it."""
    executor = CountingExecutor()
    return run_jobs(jobs, store, executor, cache_mode=cache_mode, progress=False), executor.ran


def test_order_duplicates_and_storing(store: JobStore) -> None:
    assert run_jobs([], store, NOBODY, progress=False) == []
    jobs = sweep(3)
    records, new = ran([jobs[2], jobs[0], jobs[2], jobs[1]], store)
    assert records == [store.get(job) for job in (jobs[2], jobs[0], jobs[2], jobs[1])]
    assert new == [jobs[2], jobs[0], jobs[1]]
    assert not any(record.cached for record in records)


def test_a_rerun_takes_successes_from_the_store_and_runs_failures_again(store: JobStore) -> None:
    first, _ = ran([*sweep(3), FAILING], store)
    assert [record.status for record in first] == ["ok", "ok", "ok", "failed"]
    assert store.get(FAILING) == first[3]
    second, new = ran([*sweep(5), FAILING], store)
    assert new == [*sweep(5)[3:], FAILING]
    assert [record.cached for record in second] == [True, True, True, False, False, False]
    assert second[:3] == first[:3]
    assert run_jobs(sweep(5), store, NOBODY, progress=False) == second[:5]


def test_a_run_removes_what_a_killed_program_was_writing(store: JobStore) -> None:
    left = user_cache() / "derived" / "writing.00c0ffee.tmp"
    left.mkdir(parents=True)
    ran(sweep(1), store)
    assert not left.exists()


def test_ignore_runs_all_again(store: JobStore) -> None:
    ran(sweep(2), store)
    records, new = ran(sweep(2), store, "ignore")
    assert new == sweep(2)
    assert not any(record.cached for record in records)


def test_only_runs_nothing_and_needs_no_writable_folder(store: JobStore, tmp_path: Path) -> None:
    ran([*sweep(1), FAILING], store)
    records = run_jobs([*sweep(2), FAILING], store, NOBODY, cache_mode="only")
    assert [(record.status, record.cached) for record in records] == [
        ("ok", True),
        ("missing", False),
        ("failed", True),
    ]
    assert (records[1].seconds, "run the job with cache_mode='default'" in str(records[1].error)) == (0, True)
    absent = tmp_path / "absent"
    assert run_jobs(sweep(1), JobStore(absent), NOBODY, cache_mode="only")[0].status == "missing"
    assert not absent.exists()


def test_cache_mode_is_one_of_three(store: JobStore) -> None:
    with pytest.raises(ValueError, match="cache_mode must be one of default, ignore, only, got 'none'"):
        run_jobs([], store, NOBODY, cache_mode="none")


def test_an_unwritable_store_is_found_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot write to the folder of results"):
        run_jobs(sweep(1), JobStore(tmp_path / "file"), NOBODY, progress=False)


def test_an_executor_that_loses_jobs_is_reported(store: JobStore) -> None:
    with pytest.raises(RuntimeError, match="must give a record for every job, got none for 1: "):
        run_jobs(sweep(3), store, Mock(run=lambda jobs, *more: SerialExecutor().run(jobs[1:], *more)), progress=False)
    assert [*map(store.get, sweep(3))].count(None) == 1


def test_without_a_terminal_there_are_two_lines(store: JobStore, capsys: pytest.CaptureFixture[str]) -> None:
    ran(sweep(1), store)
    assert capsys.readouterr().err == ""
    run_jobs([*sweep(2), FAILING], store, SerialExecutor(), label="table 6")
    said = r"table 6: 1 stored, 2 to run\ntable 6: 2 of 2 run in \S+ s, 1 failed\n"
    assert re.fullmatch(said, capsys.readouterr().err)
    run_jobs(sweep(2), store, NOBODY, label="again")
    assert capsys.readouterr().err == "again: 2 stored, 0 to run\n"
    for seconds, left in ((0.9, ""), (1.0, ", about 1 s left")):
        Report("next", 0, Work(["a"], {"a": seconds}, 1), wanted=True)
        assert capsys.readouterr().err == f"next: 0 stored, 1 to run{left}\n"


def test_on_a_terminal_there_is_a_bar_with_failures(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", screen)
    run_jobs([*sweep(2), FAILING], store, SerialExecutor(), label="sweep")
    assert "sweep: 100%" in screen.getvalue()
    assert re.search(r"\b3 of 3 jobs, .*, 1 failed\n", screen.getvalue())


class HeldExecutor:
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
    assert run_jobs(sweep(1), store, NOBODY, cache_mode="only")[0].status == "missing", "reading does not wait"
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
    assert run_jobs(sweep(4), store, NOBODY, progress=False)[0].cached, "stored records need no turn"


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


def test_an_error_ends_the_turn_and_says_how_far_the_jobs_are(
    store: JobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[None] = []
    with pytest.raises(AssertionError, match="nothing may run"):
        run_jobs(sweep(1), store, NOBODY)
    assert "jobs: 0 of 1 run in" in capsys.readouterr().err
    with store.turn(lambda: waits.append(None)):
        assert not waits


def test_the_turn_of_a_killed_program_ends_at_once(
    store: JobStore, marks: Path, programs: list[subprocess.Popen[str]]
) -> None:
    for _ in range(2):
        programs.append(start_program(store.folder, "serial", "leave_a_mark", "token", 20, {"folder": str(marks)}))
        wait_for(lambda: len(list(store.folder.glob("??/*.json"))) >= 3, programs[-1])
        marks.with_name("hold").touch()  # the first does not end before the second waits
    wait_for(lambda: "waiting for another program" in (marks.parent / "printed").read_text(), *programs)
    programs[0].kill()
    marks.with_name("hold").unlink()
    assert programs[1].wait(timeout=300) == 0
    counts = Counter(mark.name.split(".")[0] for mark in marks.iterdir())
    assert set(counts) == {str(token) for token in range(20)}
    assert sum(counts.values()) <= 21, "only the job that was running runs again"


EXPECTED = {"a": 10.0, "b": 20.0, "c": 30.0}


@pytest.mark.parametrize(
    ("keys", "n_workers", "seconds"),
    [
        ("abc", 1, 60.0),
        ("abc", 2, 30.0),
        ("abc", 3, 30.0),  # two workers cannot share a job
        ("a", 2, 10.0),
        ("abcd", 1, 80.0),  # an unknown job counts like the mean of the others
        ("", 2, None),
    ],
)
def test_before_anything_has_ended_the_workers_share_what_is_expected(
    keys: str, n_workers: int, seconds: float | None
) -> None:
    assert Work(list(keys), EXPECTED, n_workers).seconds_left == seconds


def test_what_has_ended_corrects_the_expectation_or_is_one() -> None:
    work = Work(["x", "y", "z"], {}, 2)
    assert work.seconds_left is None
    work.end("x", 2.0)
    assert work.seconds_left == 4.0
    work = Work(list("abc"), EXPECTED, 2)
    work.end("b", 5.0)  # four times as fast
    assert work.seconds_left == pytest.approx(40 / 4)
    work.end("b", 6.0)
    assert work.seconds_left == pytest.approx(40 / 4), "a job ends once"
    work.end("a", 10.0)
    work.end("c", 20.0)
    assert work.seconds_left == 0.0


def test_the_first_of_many_jobs_say_nothing_yet() -> None:
    keys = [str(number) for number in range(100)]
    work = Work(keys, dict.fromkeys(keys, 1.0), 1)
    for ended in range(4):
        work.end(keys[ended], 50.0)  # the start of the workers
        assert work.seconds_left == 99.0 - ended
    work.end("4", 50.0)
    assert work.seconds_left == 950.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0, "0 s"), (0.03, "0.03 s"), (9.5, "10 s"), (89, "89 s"), (90, "1.5 min"), (720_000, "200 h")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


FIRST, SECOND, THIRD = (Job.create(sample_jobs.square, {"x": x}) for x in (1.0, 2.0, 3.0))
OTHER = Job.create(sample_jobs.fail, {"kind": "no"})
JOBS = (FIRST, SECOND, THIRD, OTHER)


def test_stored_jobs_of_the_same_function_count_before_what_is_typical() -> None:
    done = {FIRST.key: 1.0, SECOND.key: 3.0, "of another experiment": 50.0}
    expected = expected_seconds(JOBS, done, {"square": 100.0, "fail": 7.0})
    assert expected == {FIRST.key: 1.0, SECOND.key: 3.0, THIRD.key: 2.0, OTHER.key: 7.0}
    # Without a basis, nothing is expected.
    squares = {job.key: 1.5 for job in (FIRST, SECOND, THIRD)}
    assert expected_seconds(JOBS, {}, {"square": 1.5}) == expected_seconds(JOBS, {FIRST.key: 1.5}, {}) == squares


@pytest.mark.parametrize(
    "text", ["f/e: {run: abc}", "f/e: 5", "f/e: {run: -.inf}", "f/e: {run: .nan}", "f/e: {run: 1e99}"]
)
def test_costs_that_are_no_seconds_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / COST).mkdir()
    (tmp_path / COST / "mine.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"cost/mine\.yaml must have the seconds of functions: f/e must be"):
        measured(Catalogue((tmp_path,)), "mine")


def test_a_profile_that_was_never_measured(tmp_path: Path) -> None:
    (tmp_path / COST).mkdir()
    (tmp_path / COST / "mine.yaml").write_text("trimming/table6: {trim_network: 1}\n")
    assert measured(Catalogue((tmp_path,)), "mine") == {"trimming/table6": {"trim_network": 1.0}}
    assert measured(Catalogue((tmp_path,)), "other") == {}


def test_costs_are_of_experiments_that_exist() -> None:
    project = Catalogue()
    for profile in project.names(COST):
        costs = measured(project, profile)
        assert profile in project.names("profile")
        assert set(costs) <= set(project.names("experiment")), "a new experiment was not measured yet"
        assert all(0 < seconds < math.inf for functions in costs.values() for seconds in functions.values())
