"""How long the rest of a run will take."""

from __future__ import annotations

import re
import time

import pytest

from trimbench.papers.execution.job import Job
from trimbench.papers.execution.run import Work, duration, run_jobs
from trimbench.papers.execution.store import JobStore
from trimbench.papers.execution.workers import SerialExecutor

from . import sample_jobs

EXPECTED = {"a": 10.0, "b": 20.0, "c": 30.0}


def test_before_anything_has_ended_the_workers_share_what_is_expected() -> None:
    assert Work(list("abc"), EXPECTED, 2).seconds_left == 30.0
    assert Work(list("a"), EXPECTED, 2).seconds_left == 10.0, "one job has one worker"
    assert Work(list("abcd"), EXPECTED, 1).seconds_left == 80.0, "an unknown job counts like the mean of the others"


def test_without_any_expectation_nothing_is_said() -> None:
    work = Work(["x", "y"], {}, 2)
    work.end("x", 1.0)
    assert work.seconds_left is None


def test_what_has_ended_corrects_the_expectation() -> None:
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
    work.end("0", 50.0)  # the start of the workers
    assert work.seconds_left == 99.0


def test_at_the_end_the_time_of_the_run_is_said(store: JobStore, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.perf_counter()
    run_jobs([Job.create(sample_jobs.square, {"x": 1.0})], store, SerialExecutor(), label="all")
    said = re.search(r"all: 1 of 1 run in ([\d.]+) s, 0 failed", capsys.readouterr().err)
    assert said
    assert float(said[1]) <= time.perf_counter() - started + 0.1


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0, "0 s"), (0.03, "0.03 s"), (59, "59 s"), (125, "2.1 min"), (7200, "2 h")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
