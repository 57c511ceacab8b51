"""What a job may hold, write and return: one that takes more is a row of its own, and the others go on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from trimbench.papers.execution import workers
from trimbench.papers.execution.here import ProcessExecutor
from trimbench.papers.execution.job import Job, size_in_bytes
from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.execution.workers import (
    BoundedText,
    Executor,
    ExecutorError,
    SerialExecutor,
    can_measure,
    memory_held,
    shorten_file,
    take,
)

from . import sample_jobs
from .programs import is_alive, run, squares, start_program, wait_for

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
def test_memory_is_that_of_a_process_and_its_children() -> None:
    program = "import subprocess, sys, time; x = b'x' * 50_000_000; {}; print(1, flush=True); time.sleep(60)"
    below = f"subprocess.Popen([sys.executable, '-c', {program.format('pass')!r}])"
    with subprocess.Popen([sys.executable, "-c", program.format(below)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        tree = workers.process_tree(process.pid)
        assert len(tree) == 2
        assert 100e6 < memory_held(process.pid) < 160e6
        for pid in tree[::-1]:
            subprocess.run(["kill", "-9", str(pid)], check=True)
    assert memory_held(process.pid) == 0


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
    programs.append(
        start_program(
            store.folder, "processes", "start_children", "token", 1, {"folder": str(marks), "then": "timeout"}
        )
    )
    wait_for(lambda: len(list(marks.iterdir())) == 2, seconds=60)
    programs[0].kill()
    started = [int(mark.name.removeprefix("timeout")) for mark in marks.iterdir()]
    assert len(started) == 2
    wait_for(lambda: not any(map(is_alive, started)))


def test_where_memory_cannot_be_measured_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(workers, "_PROC", tmp_path)
    with pytest.raises(ExecutorError, match="memory can be limited on Linux only"):
        ProcessExecutor(workers=1, memory="1GB").run(squares(1), lambda _: None)
    assert memory_held(1) == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("0.001kB", 1), ("4GB", 4 * 10**9), ("1.5 GiB", 1610612736), ("500MB", 5 * 10**8), ("8kB", 8000), ("2TiB", 2**41)],
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
    monkeypatch.setattr(workers, "LOG_BYTES", 2000)
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


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_a_result_that_is_too_long_is_a_failure(executor: Executor) -> None:
    job = Job.create(sample_jobs.return_much, {"megabytes": 65})
    found: Record = run(executor, [job])[job.key]
    assert found.status == "failed"
    assert "must have at most 64 MB as JSON, got 65 MB; return less, for example a summary" in str(found.error)
