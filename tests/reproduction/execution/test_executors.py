"""Executors on this machine: jobs that fail, die, hang and take long, Ctrl-C, and what configurations can ask for."""

import concurrent.futures
import errno
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from trimbench.reproduction.execution.executors import TARGETS, Executor, ExecutorError, SerialExecutor, executor_of
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.processes import HeldInterrupts, ProcessExecutor
from trimbench.reproduction.execution.ray_executor import RayExecutor
from trimbench.reproduction.execution.slurm_executor import SlurmExecutor
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.project import SHARED_CONFIGURATION
from trimbench.reproduction.settings import ConfigurationError

from . import sample_jobs
from .programs import run, squares


def workers_alive() -> list[int | None]:
    return [process.pid for process in multiprocessing.active_children()]


def test_nothing_to_run_starts_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebble.ProcessPool", Mock(side_effect=AssertionError("a pool was made")))
    assert run(ProcessExecutor(workers=2), []) == {}
    with pytest.raises(AssertionError, match="a pool was made"):
        run(ProcessExecutor(workers=2), squares(1))


FAILURES = {
    "plain": "ValueError: unlucky plain",
    "exit": "SystemExit: 3",
    "timeout": "TimeoutError: the solver's own limit",
    "unpicklable": "UnpicklableError: one and two",
    "long": "xxx",
}


@pytest.mark.parametrize(
    ("executor", "more"),
    [
        (SerialExecutor(), {}),
        (ProcessExecutor(workers=2, timeout=30), {"rude": "RudeError: onetwo", "interrupt": "KeyboardInterrupt"}),
    ],
)
def test_exceptions_are_failures_with_short_tracebacks(executor: Executor, more: dict[str, str]) -> None:
    expected = FAILURES | more
    jobs = {kind: Job.create(sample_jobs.fail, {"kind": kind}) for kind in expected}
    ok = squares(3)
    records = run(executor, [*jobs.values(), *ok])
    for kind, text in expected.items():
        record = records[jobs[kind].key]
        assert (record.status, record.lacking) == ("failed", False)
        assert text in str(record.error)
        assert len(str(record.error)) < 5000
        assert Record.from_json(record.to_json()) == record
    assert "sample_jobs.py" in str(records[jobs["plain"].key].error)
    assert all(records[job.key].ok for job in ok)


def test_serial_interrupt_propagates_after_what_is_done() -> None:
    jobs = [*squares(1), Job.create(sample_jobs.fail, {"kind": "interrupt"}), *squares(3)[1:]]
    records: list[Record] = []
    with pytest.raises(KeyboardInterrupt):
        SerialExecutor().run(jobs, records.append)
    assert [record.job for record in records] == jobs[:1]


def test_a_dead_worker_costs_one_job() -> None:
    deaths = {how: Job.create(sample_jobs.die, {"how": how}) for how in ("7", "kill", "0")}
    ok = squares(8)
    records = run(ProcessExecutor(workers=2), [*ok[:3], *deaths.values(), *ok[3:]])
    assert [records[job.key].status for job in deaths.values()] == ["crashed"] * 3
    assert "exit code 7" in str(records[deaths["7"].key].error)
    assert "exit code -9" in str(records[deaths["kill"].key].error)
    assert "ended without a result" in str(records[deaths["0"].key].error)
    assert all(records[job.key].ok for job in ok)
    assert workers_alive() == []


def test_a_job_over_the_limit_is_stopped_and_waiting_does_not_count() -> None:
    slow = Job.create(sample_jobs.sleep, {"seconds": 60.0})
    # With one worker these wait for each other longer than the limit of one.
    ok = [Job.create(sample_jobs.sleep, {"seconds": 0.8, "token": n}) for n in range(4)]
    records = run(ProcessExecutor(workers=1, timeout=3), [ok[0], ok[1], slow, ok[2], ok[3]])
    assert records[slow.key].status == "timeout"
    assert "stopped at the limit of 3 seconds" in str(records[slow.key].error)
    assert 2.9 < records[slow.key].seconds < 20
    assert [records[job.key].status for job in ok] == ["ok"] * 4
    assert all(0.79 < records[job.key].seconds < 3 for job in ok)


def test_jobs_use_one_thread_for_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(variable, "2")
    for executor in (SerialExecutor(), ProcessExecutor(workers=1)):
        result: Any = run(executor, [job := Job.create(sample_jobs.linear_algebra_threads, {})])[job.key].result
        assert set(result["threads"]) == {1}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"


def test_an_idle_pool_that_is_killed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.reproduction.execution.processes._TURN_SECONDS", 1.0)
    jobs = squares(40)
    records: list[Record] = []

    def kill_all_once(record: Record) -> None:
        records.append(record)
        if len(records) == 5:
            for process in multiprocessing.active_children():
                process.kill()

    ProcessExecutor(workers=2).run(jobs, kill_all_once)
    assert sorted(record.job.key for record in records) == sorted(job.key for job in jobs)
    statuses = [record.status for record in records]
    assert statuses.count("ok") >= 38
    assert set(statuses) <= {"ok", "crashed"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("junk", ["6a756e6b0a" * 2, "000000040102030480", "ff" * 4])
def test_a_job_that_writes_into_all_files_of_its_worker_costs_one_job(
    monkeypatch: pytest.MonkeyPatch, junk: str
) -> None:
    """It is understood as a message that is longer than what comes, is no message, or is too long for the memory."""
    monkeypatch.setattr("trimbench.reproduction.execution.processes._TURN_SECONDS", 1.0)
    rude = Job.create(sample_jobs.write_junk, {"junk": junk, "first": 3})
    ok = squares(6)
    records = run(ProcessExecutor(workers=2), [*ok[:2], rude, *ok[2:]])
    assert [records[job.key].status for job in ok] == ["ok"] * 6
    assert records[rude.key].status == "crashed"
    assert workers_alive() == []


def test_a_removed_folder_of_temporary_files_is_made_again() -> None:
    jobs = [Job.create(sample_jobs.remove_temporary_folder, {"token": n}) for n in range(6)]
    records = run(ProcessExecutor(workers=1), jobs)  # a second worker could write into the folder while it is removed
    assert [record.status for record in records.values()] == ["ok"] * 6


def fail_to_start(*settings: Any) -> None:
    raise RuntimeError("no worker today")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_workers_that_never_start_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.reproduction.execution.processes._prepare", fail_to_start)
    with pytest.raises(RuntimeError, match=r"died in 3 pools in a row .* run with executor=serial"):
        ProcessExecutor(workers=1).run(squares(2), lambda record: None)
    assert workers_alive() == []


def fill_the_disk(*before: object) -> None:
    raise OSError("disk full")


def interrupt() -> str:
    signal.raise_signal(signal.SIGINT)
    return "raised later"


@pytest.mark.parametrize(("stop", "error"), [(fill_the_disk, OSError), (interrupt, KeyboardInterrupt)])
def test_what_the_caller_raises_stops_workers_and_keeps_what_is_done(
    stop: Callable[[], object], error: type[BaseException]
) -> None:
    quick = squares(4)
    slow = [Job.create(sample_jobs.sleep, {"seconds": 600.0, "token": n}) for n in range(3)]
    records: list[Record] = []

    def stop_after_four(record: Record) -> None:
        records.append(record)
        if len(records) == 4:
            stop()

    started = time.perf_counter()
    with pytest.raises(error):
        ProcessExecutor(workers=2).run([*quick, *slow], stop_after_four)
    assert time.perf_counter() - started < 300
    assert sorted(record.job.key for record in records) == sorted(job.key for job in quick)
    assert workers_alive() == []


def test_workers_stop_although_it_comes_while_locks_of_their_jobs_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised there, it would leave the locks taken, and the threads that serve the workers would wait forever."""
    wait = concurrent.futures.wait
    returned = []

    def wait_and_press(*words: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        returned.append(wait(*words))
        return returned[-1]

    monkeypatch.setattr(concurrent.futures, "wait", wait_and_press)
    with pytest.raises(KeyboardInterrupt):
        ProcessExecutor(workers=1).run(squares(3), lambda record: None)
    assert len(returned) == 1
    assert workers_alive() == []


def test_where_workers_cannot_be_started_another_executor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Mock(side_effect=OSError(errno.ENOSPC, "no room for a semaphore"))
    monkeypatch.setattr("multiprocessing.synchronize._multiprocessing.SemLock", full)
    with pytest.raises(ExecutorError, match=r"cannot be started here: .*no room.*; run with executor=serial"):
        ProcessExecutor(workers=1).run(squares(2), lambda record: None)


SERIAL, PROCESSES, RAY, SLURM = TARGETS
EXECUTORS = {
    "serial": SerialExecutor(),
    "processes": ProcessExecutor(),
    "ray": RayExecutor(),
    "slurm": SlurmExecutor(folder="results/slurm"),
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_the_configuration_files_make_their_executor_and_name_all_options(name: str) -> None:
    path = SHARED_CONFIGURATION / "executor" / f"{name}.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8").replace("${results}", "results"))
    assert executor_of(values) == EXECUTORS[name]
    assert {"_target_", *vars(EXECUTORS[name])} == set(values)


def test_options_have_values() -> None:
    assert executor_of({"_target_": PROCESSES, "workers": 3, "timeout": 2}) == ProcessExecutor(workers=3, timeout=2.0)
    for address in ("auto", "first-machine:6379", "10.0.0.1:1", "[::1]:6379", None):
        assert executor_of({"_target_": RAY, "address": address}) == RayExecutor(address=address)
    found = executor_of({"_target_": SLURM, "partition": "long,gpu_2", "memory": "4GiB"})
    assert found == SlurmExecutor(partition="long,gpu_2", memory="4GiB")


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        ("os.system", {}, f"executor: _target_ must be one of {', '.join(sorted(TARGETS))}, got 'os.system'"),
        (SERIAL, {"workers": 2}, "workers must be None or 1 for the serial executor, got 2; use executor=processes"),
        (SERIAL, {"timeout": 5.0}, "timeout must be None for the serial .*, got 5.0; use executor=processes"),
        (PROCESSES, {"workers": 0}, "executor: workers must be a positive int or null, got 0; null takes"),
        (PROCESSES, {"workers": 1.5}, "executor: workers must be a whole number, got 1.5"),
        (PROCESSES, {"timeout": 0}, "executor: timeout must be positive seconds or null, got 0.0; null sets"),
        (PROCESSES, {"timeout": float("nan")}, "timeout must be positive seconds or null, got nan"),
        (RAY, {"workers": -1}, "workers must be a positive int or null, got -1"),
        (RAY, {"retries": -1}, "retries must be a whole number, 0 or more, got -1"),
        (SLURM, {"jobs_per_task": 0}, "jobs_per_task must be a whole number, 1 or more, got 0"),
        (SLURM, {"memory_gb": 0}, "memory_gb must be a positive number of GiB, got 0"),
        (SERIAL, {"memory": "4GB"}, "memory must be None for the serial .*, got '4GB'; use executor=processes"),
        (PROCESSES, {"memory": "4"}, "executor: memory must be a size such as 4GB, 500MB or 2GiB, or null, got '4'"),
        (PROCESSES, {"memory": 4}, "executor: memory must be a text .in quotes., got 4"),
        (SLURM, {"memory": "5GB"}, "memory must be at most the 4 GiB of a task, got '5GB'; raise memory_gb"),
        (SLURM, {"folder": ""}, "folder must be the name of a folder, .* got ''"),
        (SLURM, {"folder": "a\nrm -rf b"}, r"folder must be the name of a folder, .* got 'a\\nrm"),
        (SLURM, {"partition": "long\ncurl evil"}, "partition must be a name of ASCII letters"),
        (SLURM, {"partition": "--wrap=x"}, "partition must be a name of ASCII letters"),
        (RAY, {"address": "ray://evil:10001"}, "address must be host:port, auto or null, got 'ray://evil:10001'"),
        (RAY, {"address": "http://a@b:80"}, "address must be host:port"),
        (RAY, {"address": "evil:99999"}, "address must be host:port"),
        (RAY, {"address": "[::1"}, "address must be host:port"),
        (SLURM, {"cluster": "pbs"}, "cluster must be one of local, slurm, got 'pbs'"),
    ],
)
def test_what_cannot_be_is_reported(target: str | None, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        executor_of({"_target_": target, **options})


# Ctrl-C is raised where it is allowed, and nowhere else.


def test_it_comes_at_once_where_it_is_allowed_and_is_held_back_elsewhere() -> None:
    seen = []
    with HeldInterrupts() as interrupts:
        with interrupts.allowed():
            seen.append("nothing yet")
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            seen.append(interrupt())
        interrupt()
        seen.append("held back")
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            seen.append("one that was held back comes first")
    assert seen == ["nothing yet", "held back"]


def test_the_end_of_the_block_raises_it_unless_an_error_does() -> None:
    with pytest.raises(KeyboardInterrupt), HeldInterrupts():
        interrupt()
    with pytest.raises(OSError, match="disk full"), HeldInterrupts():
        fill_the_disk(interrupt())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_within_blocks_and_handlers_of_others_are_left_alone() -> None:
    with pytest.raises(KeyboardInterrupt), HeldInterrupts(), HeldInterrupts() as inner, inner.allowed():
        interrupt()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HeldInterrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_threads_get_none() -> None:
    def use() -> Any:
        with HeldInterrupts() as interrupts, interrupts.allowed():
            return signal.getsignal(signal.SIGINT)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(use).result() is signal.default_int_handler
