"""A Ray cluster of two nodes on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.networks.network_writers import encode_ergo
from trimbench.papers.commands import arguments, cli
from trimbench.papers.data.declarations import declare_network
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.remote import RayExecutor, ray_folder
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.execution.workers import SerialExecutor

from ..command_line import PROJECT, run_here, tables
from . import sample_jobs
from .programs import ON_RAY, run, start_program, wait_for
from .test_job_log import SPEAKING, check_ends_and_logs

pytestmark = ON_RAY


def sleeps(seconds: float, n: int, first: int = 0) -> list[Job]:
    return [Job.create(sample_jobs.sleep, {"seconds": seconds, "token": first + k}) for k in range(n)]


def test_rows_are_those_of_the_serial_executor_on_both_nodes(cluster: Any, tmp_path: Path) -> None:
    jobs = [Job.create(sample_jobs.draw, {"repetition": n}) for n in range(6)]
    threads = Job.create(sample_jobs.linear_algebra_threads, {})
    together = [Job.create(sample_jobs.meet, {"folder": str(tmp_path), "token": n, "n": 2}) for n in range(2)]
    found = run(RayExecutor(address=cluster.address), [*together, *jobs, threads])
    expected = run(SerialExecutor(), jobs)
    assert {job.key: found[job.key].result for job in jobs} == {key: record.result for key, record in expected.items()}
    assert set(found[threads.key].result["threads"]) == {1}  # type: ignore[index]
    assert {found[job.key].status for job in together} == {"ok"}, "each has a node for itself"
    naps = sleeps(0.1, 6)
    found = run(RayExecutor(address=cluster.address), naps)
    assert len({str(found[job.key].result) for job in naps}) <= 2, "workers are used again and again"
    started = time.perf_counter()
    run(RayExecutor(address=cluster.address, workers=1), naps)
    assert time.perf_counter() - started > 6 * 0.1, "one after another"


def test_a_job_that_fails_hangs_or_kills_its_process_costs_one_row(cluster: Any, tmp_path: Path) -> None:
    failing = [Job.create(sample_jobs.fail, {"kind": kind}) for kind in ("plain", "exit", "unpicklable", "rude")]
    once = Job.create(sample_jobs.end_the_task, {"folder": str(tmp_path), "times": 1})
    always = Job.create(sample_jobs.end_the_task, {"folder": str(tmp_path), "times": 99})
    large = Job.create(sample_jobs.hold, {"megabytes": 900, "how": "until the job is ended"})
    jobs = [always, once, large, *SPEAKING, *failing]
    found = run(RayExecutor(address=cluster.address, timeout=15.0, memory="600MB", retries=1), jobs)
    assert found[large.key].status == "memory"
    assert {found[job.key].status for job in failing} == {"failed"}
    check_ends_and_logs(found)
    assert any("stopped at the limit of 15 seconds per job" in str(found[job.key].error) for job in SPEAKING)
    assert found[once.key].ok, "Ray itself repeats a task that it lost"
    assert found[always.key].status == "crashed"
    assert "the task ended without a result: " in str(found[always.key].error)
    assert len(list((tmp_path / "ended-99").iterdir())) == 2


def parent(pid: int) -> int:
    found = re.search(r"PPid:\t(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


def test_kills_of_node_process_and_program_repeat_no_finished_job(
    cluster: Any, store: JobStore, marks: Path, programs: list[subprocess.Popen[str]]
) -> None:
    jobs = [Job.create(sample_jobs.leave_a_mark, {"folder": str(marks), "token": n}) for n in range(60)]
    node = cluster.add_node(num_cpus=1)

    def go_on_to(n_stored: int) -> subprocess.Popen[str]:
        shared: dict[str, object] = {"folder": str(marks)}
        programs.append(
            start_program(store.folder, "ray", "leave_a_mark", "token", 60, shared, address=cluster.address)
        )
        wait_for(lambda: len(store.successes(jobs)) >= n_stored, seconds=120)
        return programs[-1]

    program = go_on_to(8)
    cluster.remove_node(node, allow_graceful=False)
    wait_for(lambda: len(store.successes(jobs)) >= 16, seconds=120)
    worker = int(max(marks.iterdir(), key=lambda mark: mark.stat().st_mtime).name.split(".")[1])
    os.kill(parent(worker), signal.SIGKILL)
    wait_for(lambda: len(store.successes(jobs)) >= 24, seconds=120)
    program.kill()
    program.wait()
    assert "(raylet)" not in (store.folder.parent / "printed").read_text(), "what Ray says of a lost machine"
    stored = store.successes(jobs)
    assert len(list(store.folder.glob("*/*.json"))) == len(stored), "no job has failed"
    marked = Counter(int(mark.name.split(".")[0]) for mark in marks.iterdir())
    assert go_on_to(60).wait(timeout=60) == 0
    again = Counter(int(mark.name.split(".")[0]) for mark in marks.iterdir()) - marked
    assert {jobs[token].key for token in again}.isdisjoint(stored)
    assert {key: store.successes(jobs)[key] for key in stored} == stored
    assert [record.result for record in store.successes(jobs).values()] == [{"token": n} for n in range(60)]


def test_what_the_caller_raises_ends_the_run_and_the_tasks(cluster: Any) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    long = sleeps(60.0, 4)
    with pytest.raises(KeyboardInterrupt):
        RayExecutor(address=cluster.address).run([*sleeps(0.0, 1), *long], interrupt)
    started = time.perf_counter()
    assert all(record.ok for record in run(RayExecutor(address=cluster.address), sleeps(0.0, 4, first=9)).values())
    assert time.perf_counter() - started < 30, "the processors are free again"


def test_a_cluster_of_a_killed_program_leaves_no_files(
    store: JobStore, marks: Path, programs: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job.create(sample_jobs.leave_a_mark, {"folder": str(marks), "token": n}) for n in range(8)]
    with tempfile.TemporaryDirectory() as room:
        monkeypatch.setenv("RAY_TMPDIR", room)
        for is_killed in (True, False):
            shared: dict[str, object] = {"folder": str(marks)}
            programs.append(start_program(store.folder, "ray", "leave_a_mark", "token", 8, shared, workers=1))
            if is_killed:
                wait_for(lambda: len(store.successes(jobs)) >= 2, seconds=120)
                assert list(Path(room).glob("*/session_*"))
                programs[-1].kill()
            programs[-1].wait(timeout=60)
        assert len(store.successes(jobs)) == len(jobs)
        assert list(Path(room).iterdir()) == []


def test_files_of_a_cluster_whose_folder_has_too_long_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / ("long" * 10)))
    assert ray_folder() is None


def test_no_cluster_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("trimbench.papers.execution.remote._ANSWER_SECONDS", 4.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # as the head of a cluster that is about to end
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RuntimeError, match=rf"got '{address}': what listens there does not answer like Ray for 4 "):
            RayExecutor(address=address).run(sleeps(0.0, 1), print)
    with pytest.raises(RuntimeError, match=r"address must be that of a running Ray cluster, got '127\.0\.0\.1:1'"):
        RayExecutor(address="127.0.0.1:1").run(sleeps(0.0, 1), print)


@pytest.fixture(scope="module")
def failing(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Nodes that join the cluster, by what is wrong with them; the one with a full disk needs root."""
    room = tmp_path_factory.mktemp("nodes")
    (room / "trimbench-0.0.1.dist-info").mkdir()
    (room / "trimbench-0.0.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: trimbench\nVersion: 0.0.1\n")
    full, own = room / "full", {"TRIMBENCH_CACHE": str(room / "empty")}
    variables = {
        "no shared folder": {**own, "XDG_CACHE_HOME": str(room / "own")},
        "no cache": {**own, "XDG_CACHE_HOME": os.devnull},
        "other version": {"PYTHONPATH": f"{room}:{os.environ.get('PYTHONPATH', '')}"},
        "killed": {"XDG_CACHE_HOME": str(room / "killed")},
    }
    full.mkdir()
    if (
        os.geteuid() == 0
        and not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(full)]).returncode
    ):
        variables["full disk"] = {**own, "XDG_CACHE_HOME": str(full)}
    try:
        yield {name: cluster.add_node(num_cpus=1, env_vars=some) for name, some in variables.items()} | {"room": room}
    finally:
        if "full disk" in variables:
            subprocess.run(["umount", str(full)], check=True)


def put_networks_into_files(conf: Path, cache: Path) -> None:
    """Copy the configuration, in which the networks of Table 6 are figures, and make them files of a cache."""
    shutil.copytree(PROJECT.folders[0], conf)
    (cache / "files").mkdir(parents=True)
    for name in PROJECT.mapping("experiment", "trimming/table6")["networks"]:
        found = declare_network(name, PROJECT.network_mapping(name)).source.load(name, {})
        content = encode_ergo(found.model.to_network())
        (cache / f"files/{name}.erg").write_text(content)
        file = {"path": f"{name}.erg", "url": f"https://localhost/{name}.erg"}
        file["sha256"] = hashlib.sha256(content.encode()).hexdigest()
        declared = {"format": "erg", "target": found.target, "positive": found.positive}
        declared |= {"features": list(found.features), "files": {"network": file}}
        (conf / f"network/{name}.yaml").write_text(json.dumps(declared))


def test_table_6_on_nodes_that_fail_is_that_of_the_serial_executor_and_names_them(
    cluster: Any,
    failing: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put_networks_into_files(tmp_path / "conf", tmp_path / "cache")
    for module in (cli, arguments):
        monkeypatch.setattr(module, "configuration_folder", lambda: tmp_path / "conf")
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    words, runs = ["experiment=trimming/table6", "offline=true"], ("serial", "ray")
    run_here(*words, "results=serial", "executor=serial", code=0)

    def kill_a_node() -> None:
        wait_for(lambda: len(list(tmp_path.glob("ray/**/jobs/*/*.json"))) >= 20, seconds=120)
        cluster.remove_node(failing["killed"], allow_graceful=False)

    killer = threading.Thread(target=kill_a_node)
    killer.start()
    run_here(*words, "results=ray", "executor=ray", f"executor.address={cluster.address}", code=0)
    killer.join()
    serial, ray = (pd.read_csv(tmp_path / f"{run}/quick/trimming/table6.csv").set_index("cell") for run in runs)
    assert len(serial) >= 45
    # Those of seconds hang on what else the machine does.
    same = serial["verdict"] == ray["verdict"]
    assert list(same.index[~same & ~same.index.str.contains("seconds")]) == []
    assert tables(tmp_path / "ray")["table6_rows.csv.gz"] == tables(tmp_path / "serial")["table6_rows.csv.gz"]
    assert len(pd.read_csv(tmp_path / "ray/quick/trimming/table6_rows.csv.gz").query("status == 'ok'")) == 189
    assert len(list(failing["room"].glob("own/trimbench/files/**/*.erg"))) == 7, "they have travelled"
    reasons = {"no cache": "NotADirectoryError", "other version": "it has trimbench 0.0.1", "killed": "it left the"}
    reasons |= {"full disk": "No space left on device"} if "full disk" in failing else {}
    told = (tmp_path / "ray/quick/trimming/table6.md").read_text(), "\n".join(caplog.messages)
    for name, why in reasons.items():
        for text in told:
            (line,) = (line for line in text.splitlines() if f"({failing[name].node_id[:8]})" in line)
            assert why in line
    assert all(text.count("Left out of the run: ") == len(reasons) for text in told)
