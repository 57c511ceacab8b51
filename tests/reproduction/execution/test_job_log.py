"""What a job may write, hold and return, and what becomes of one that takes more; no log or record names a home."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from trimbench.reproduction.execution import executors, processes
from trimbench.reproduction.execution.executors import (
    BoundedText,
    Executor,
    ExecutorError,
    SerialExecutor,
    describe,
    run_jobs,
    shorten_file,
    take,
)
from trimbench.reproduction.execution.job import Job, size_in_bytes
from trimbench.reproduction.execution.processes import ProcessExecutor, can_measure, memory_held
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import without_homes

from . import sample_jobs
from .programs import is_alive, run, squares, start_program, wait_for

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
    assert [found[job.key].status for job in SPEAKING] == list(ENDS.values())
    for job in SPEAKING:
        assert SPOKEN.fullmatch(found[job.key].log), found[job.key].log


def test_a_worker_keeps_all_that_a_job_writes_until_its_end(capfd: pytest.CaptureFixture[str]) -> None:
    check_ends_and_logs(run(ProcessExecutor(workers=1, timeout=8.0), SPEAKING))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_each_job_has_its_own_text_with_all_its_warnings(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own
    jobs = [Job.create(sample_jobs.speak, {"end": "ok", "token": token, "deep": False}) for token in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as outside of the tests
        monkeypatch.setattr(warnings, "showwarning", lambda *w: sys.stderr.write(warnings.formatwarning(*w[:4])))
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


def test_a_worker_notes_when_and_where_it_runs_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [0.0] * 8
    monkeypatch.setattr(processes, "_starts", Mock(get=lambda: notes))
    monkeypatch.setattr(processes, "_fresh", Mock(get=lambda: 1.0))
    log = tmp_path / "new/log"
    found = [processes.work(Job.create(sample_jobs.fail, {"kind": kind}), 1, log) for kind in ("plain", "interrupt")]
    assert [(record.status, record.log) for record in found] == [("failed", "")] * 2
    assert (log.exists(), log.parent.stat().st_mode & 0o777) == (False, 0o700)
    began, held, pid, ended = notes[4:]
    assert (notes[:4], pid, (held + 1) % 1024) == ([0.0] * 4, os.getpid(), 0)
    assert 0 < found[1].seconds <= ended - began < time.monotonic()
    assert processes.work(squares(1)[0], 0, Path(__file__, "log")).status == "failed", "no place for a log"


def test_a_log_belongs_to_the_record_beside_it(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    job = Job.create(sample_jobs.square, {"x": 1})
    store.put(Record(job, "failed", None, "no", 0.1, {}, log="of the first \ud800 attempt"))
    assert store.path(job).with_suffix(".log").read_text() == "of the first \\ud800 attempt"
    assert "attempt" not in store.path(job).read_text()
    store.put(Record(job, "ok", {}, None, 0.1, {}))
    assert not store.path(job).with_suffix(".log").exists()


# Records name no home folders and no users.


@pytest.fixture
def anna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a home folder."""
    home = tmp_path / "places/anna"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOGNAME", "anna")
    return home


def test_paths_begin_with_a_tilde_or_in_the_project(anna: Path) -> None:
    root = Path(without_homes.__code__.co_filename).parents[2]
    for text, shown in {
        f"No such file: '{anna}/data/x.csv'": "No such file: '~/data/x.csv'",
        f"{anna}": "~",
        f"{anna}bella/x {anna}-old/x": f"{anna}bella/x {anna}-old/x",
        '  File "/home/bert.b/venv/x.py", line 3': '  File "~/venv/x.py", line 3',
        "/Users/carla/x and /home/dora": "~/x and ~",
        f'File "{root}/trimbench/trimming/trim.py", line 3': 'File "trimbench/trimming/trim.py", line 3',
        "/scratch/anna/x, /scratch/annas/x, https://host/home/page, conf/home/x": (
            "/scratch/~/x, /scratch/annas/x, https://host/home/page, conf/home/x"
        ),
        "anna said so": "anna said so",
    }.items():
        assert without_homes(text) == shown


@pytest.mark.usefixtures("anna")
def test_a_link_is_known_by_both_names_and_the_root_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert without_homes(f"{tmp_path}/link/x {tmp_path}/real/x") == "~/x ~/x"
    monkeypatch.setenv("HOME", "/")
    assert without_homes("/etc/x") == "/etc/x"


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_neither_a_traceback_nor_a_log_nor_a_record_names_a_home(
    anna: Path, store: JobStore, executor: Executor
) -> None:
    # What stands for the path is in the record; the function gets the path.
    job = Job.create(
        sample_jobs.miss_a_file, {"path": "<dataset x>/x.csv"}, places={"<dataset x>/x.csv": f"{anna}/x.csv"}
    )
    (record,) = run_jobs([job], store, executor, progress=False)
    assert "No such file or directory: '~/x.csv'" in str(record.error)
    assert 'File "tests/reproduction/execution/sample_jobs.py"' in str(record.error)
    assert record.log == "reading ~/x.csv"
    written = [path.read_text() for path in store.folder.rglob("*") if path.is_file()]
    assert len([text for text in written if text]) == 2
    assert not any("anna" in text for text in written)
    assert record.job.parameters == {"path": "<dataset x>/x.csv"}


# What a job may hold, write and return: one that takes more is a row of its own, and the others go on.


needs_proc = pytest.mark.skipif(not can_measure(), reason="memory is limited on Linux only")


def hold(megabytes: int, how: str, token: int = 0) -> Job:
    return Job.create(sample_jobs.hold, {"megabytes": megabytes, "how": how, "token": token})


@needs_proc
def test_a_job_that_holds_too_much_is_a_row_and_the_others_go_on(store: JobStore) -> None:
    large, child = hold(900, "until the job is ended"), hold(900, "in a child")
    jobs = [*squares(2), large, child, *squares(4)[2:]]
    found = run_jobs(jobs, store, ProcessExecutor(workers=1, memory="600MB"), progress=False)
    records = {record.job: record for record in found}
    for job in (large, child):
        assert records[job].status == "memory"
        text = r"stopped at the limit of 600 MB of memory per job, when it held [\d,]+ MB"
        assert re.fullmatch(text, str(records[job].error))
        assert store.get(job) == records[job]
    assert all(records[job].ok for job in jobs if job not in (large, child))


@needs_proc
def test_what_earlier_jobs_left_in_a_worker_is_no_fault_of_a_job() -> None:
    # Each would fit alone, three together do not.
    jobs = [hold(250, "until the worker ends", token) for token in range(4)]
    found = run(ProcessExecutor(workers=1, memory="700MB"), jobs)
    assert [found[job.key].status for job in jobs] == ["ok"] * 4
    assert len({found[job.key].result["pid"] for job in jobs}) > 1  # type: ignore[index]


@needs_proc
@pytest.mark.parametrize(("end", "status"), [("timeout", "timeout"), ("crashed", "crashed"), ("stay", "ok")])
def test_nothing_that_a_job_started_outlives_its_worker(marks: Path, end: str, status: str) -> None:
    job = Job.create(sample_jobs.start_children, {"folder": str(marks), "then": end})
    assert run(ProcessExecutor(workers=1, timeout=5.0), [job])[job.key].status == status
    started = [int(mark.name.removeprefix(end)) for mark in marks.iterdir()]
    assert len(started) == 2
    wait_for(lambda: not any(map(is_alive, started)))


@needs_proc
def test_nothing_that_a_job_started_outlives_the_program(
    store: JobStore, marks: Path, programs: list[subprocess.Popen[str]]
) -> None:
    shared: dict[str, object] = {"folder": str(marks), "then": "timeout"}
    programs.append(start_program(store.folder, "processes", "start_children", "token", 1, shared))
    wait_for(lambda: len(list(marks.iterdir())) == 2, *programs)
    programs[0].kill()
    started = [int(mark.name.removeprefix("timeout")) for mark in marks.iterdir()]
    assert len(started) == 2
    wait_for(lambda: not any(map(is_alive, started)))


def test_where_memory_cannot_be_measured_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    with pytest.raises(ExecutorError, match="memory can be limited on Linux only"):
        ProcessExecutor(workers=1, memory="1GB").run(squares(1), lambda _: None)
    assert memory_held(1) == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("0.001kB", 1), ("4GB", 4 * 10**9), ("1.5 GiB", 1610612736), ("5MB", 5 * 10**6), ("2MiB", 2**21), ("2TiB", 2**41)],
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "4", "4 gb", "-4GB", "0GB", "4G", "GB", "infGB", "٤GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="memory must be a size such as 4GB, 500MB or 2GiB, or null, got "):
        size_in_bytes(text)


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_a_long_log_keeps_its_ends_and_says_what_was_cut(executor: Executor) -> None:
    job = Job.create(sample_jobs.write_much, {"megabytes": 35})
    log = run(executor, [job])[job.key].log
    assert log.startswith("first words\nxxx")
    assert log.endswith("xxx\nlast words")
    found = re.search(r"\[\.\.\. (\d+) bytes are cut here: of a log, the first and last 5 MB are kept \.\.\.\]", log)
    assert found
    assert len(log) == 10_000_000 + len(found[0]) + 2
    # What a job writes in the moment in which its file is cut may be lost.
    assert int(found[1]) == pytest.approx(25_000_000, abs=2_000_000)


def test_a_log_is_cut_again_and_again_while_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "LOG_BYTES", 2000)
    path, memory = tmp_path / "log", BoundedText()
    written = 0
    with path.open("ab", buffering=0) as job:
        for number in range(2000):
            written += job.write(f"line {number:5}\n".encode())
            memory.write(f"line {number:5}\n")
            if number % 70 == 0:
                shorten_file(path, 4000)
                assert path.stat().st_size < 4200
    for log in (take(path), memory.shortened()):
        assert log.startswith("line     0\nline     1\n")
        assert log.endswith("line  1998\nline  1999\n")
        assert f"\n[... {written - 2000} bytes are cut here" in log
        assert len(log) < 2100
    assert not path.exists()
    assert memory.tell() < 4200
    for size in (2000, 2001):  # of a file of exactly the limit, nothing is cut
        path.write_bytes(b"x" * size)
        shorten_file(path, 0)
        assert (b"bytes are cut here" in path.read_bytes()) == (size > 2000)
    short = BoundedText()
    short.write("short")
    assert short.shortened() == "short"


@pytest.mark.parametrize(("limit", "looks"), [(None, "lll"), (2**50, "mlmmmlmmml")])
def test_memory_is_read_more_often_than_logs(monkeypatch: pytest.MonkeyPatch, limit: int | None, looks: str) -> None:
    monkeypatch.setattr(processes, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(processes, "_LOG_SECONDS", 0.03)
    seen, enough = [], threading.Event()

    def look(at: str) -> list[Any]:
        seen.append(at)
        if len(seen) >= len(looks):
            enough.set()
        return []

    watch = processes.Watch(limit, lambda: look("m"), lambda: look("l"))
    assert enough.wait(20)
    watch.stop()
    assert "".join(seen).startswith(looks)


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_a_result_that_is_too_long_is_a_failure(executor: Executor) -> None:
    job = Job.create(sample_jobs.return_much, {"megabytes": 65})
    found: Record = run(executor, [job])[job.key]
    assert found.status == "failed"
    assert "must have at most 64 MB as JSON, got 65 MB; return less, for example a summary" in str(found.error)


def test_neither_a_log_nor_an_error_controls_a_terminal(tmp_path: Path) -> None:
    (path := tmp_path / "log").write_bytes("a\x1b[2Jb\u202ec\rd\n\te\xe4\n".encode())
    assert take(path) == "a\\x1b[2Jb\\u202ec\nd\n\teä\n"
    assert describe(ValueError("a\x1b[2J\u202eb")).endswith("ValueError: a\\x1b[2J\\u202eb")
