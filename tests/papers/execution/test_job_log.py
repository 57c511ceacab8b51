"""What a job prints, warns and logs is in its log, and nowhere else, however the job ends."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from pathlib import Path

import pytest

from trimbench.papers.execution.here import ProcessExecutor
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.execution.workers import Executor, SerialExecutor

from . import sample_jobs
from .programs import run

SPOKEN = re.compile(
    r"printed \d; to stderr\n"
    r".*sample_jobs\.py:\d+: UserWarning: a warning\n.*"
    r"a log message\n"
    r"from C\n"
    r"a child\n"
    r"half a line \\ud800",
    re.DOTALL,
)


ENDS = {"ok": "ok", "failed": "failed", "rude": "failed", "timeout": "timeout", "killed": "crashed"}
SPEAKING = [Job.create(sample_jobs.speak, {"end": end}) for end in ENDS]


def check_ends_and_logs(found: dict[str, Record]) -> None:
    """Check the records of the speaking jobs."""
    assert [found[job.key].status for job in SPEAKING] == list(ENDS.values())
    for job in SPEAKING:
        assert SPOKEN.fullmatch(found[job.key].log), found[job.key].log


def _show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    """Show a warning as Python does; pytest records it instead."""
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def test_a_worker_keeps_all_that_a_job_writes_until_its_end(capfd: pytest.CaptureFixture[str]) -> None:
    check_ends_and_logs(run(ProcessExecutor(workers=1, timeout=3.0), SPEAKING))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_each_job_has_its_own_text_with_all_its_warnings(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own
    jobs = [Job.create(sample_jobs.speak, {"end": "ok", "token": token, "deep": False}) for token in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as outside of the tests
        monkeypatch.setattr(warnings, "showwarning", _show)
        found = run(executor, jobs)
    for token, job in enumerate(jobs):
        log = found[job.key].log
        assert log.startswith(f"printed {token}; to stderr\n")
        assert log.count("printed") == 1
        assert log.count("a log message") == 1
        assert log.count("UserWarning: a warning") == 1


def test_a_log_handler_that_a_job_leaves_behind_writes_to_the_next_log() -> None:
    jobs = [Job.create(sample_jobs.log_with_a_handler, {"token": token}) for token in range(3)]
    found = run(ProcessExecutor(workers=1), jobs)
    assert [found[job.key].log for job in jobs] == [f"token {token}\n" for token in range(3)]


def test_a_log_belongs_to_the_record_beside_it(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    job = Job.create(sample_jobs.square, {"x": 1})
    store.put(Record(job, "failed", None, "no", 0.1, {}, log="of the first \ud800 attempt"))
    assert store.path(job).with_suffix(".log").read_text() == "of the first \\ud800 attempt"
    assert "attempt" not in store.path(job).read_text()
    store.put(Record(job, "ok", {}, None, 0.1, {}))
    assert not store.path(job).with_suffix(".log").exists()
