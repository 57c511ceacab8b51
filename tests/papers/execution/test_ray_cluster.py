"""A Ray cluster of two nodes on this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.networks.network_writers import encode_ergo
from tests.reproduction.execution import sample_jobs
from tests.reproduction.execution.programs import ON_RAY, run, start_program, wait_for
from tests.reproduction.execution.test_job_log import SPEAKING, check_ends_and_logs
from trimbench.papers.networks import declare_network
from trimbench.reproduction import project as project_module
from trimbench.reproduction.execution.executors import SerialExecutor, run_jobs
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.ray_executor import RayExecutor
from trimbench.reproduction.execution.store import JobStore, Record

from ..command_line import PROJECT, run_here, tables

pytestmark = ON_RAY


def sleeps(seconds: float, n: int, first: int = 0) -> list[Job]:
    return [Job.create(sample_jobs.sleep, {"seconds": seconds, "token": first + k}) for k in range(n)]


def successes(store: JobStore, jobs: list[Job]) -> dict[str, Record]:
    return {job.key: record for job in jobs if (record := store.get(job)) and record.ok}


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
    always = Job.create(sample_jobs.end_the_task, {"folder": str(tmp_path), "times": 99})
    large = Job.create(sample_jobs.hold, {"megabytes": 900, "how": "until the job is ended"})
    jobs = [always, *SPEAKING, *failing]
    found = run(RayExecutor(address=cluster.address, timeout=15.0, memory="600MB", retries=1), jobs)
    # On a busy machine, memory is taken slowly.
    assert (
        run(RayExecutor(address=cluster.address, timeout=120.0, memory="600MB"), [large])[large.key].status == "memory"
    )
    assert {found[job.key].status for job in failing} == {"failed"}
    check_ends_and_logs(found)
    assert any("stopped at the limit of 15 seconds per job" in str(found[job.key].error) for job in SPEAKING)
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
    jobs = [Job.create(sample_jobs.leave_a_mark, {"folder": str(marks), "token": n}) for n in range(100)]
    shared: dict[str, object] = {"folder": str(marks)}
    program = start_program(store.folder, "ray", "leave_a_mark", "token", 100, shared, address=cluster.address)
    programs.append(program)

    def left_out() -> set[object]:
        found = successes(store, jobs).values()
        return {line for one in found for line in one.provenance.get("left_out", ())}  # type: ignore[union-attr]

    wait_for(lambda: len(successes(store, jobs)) >= 8, program)
    worker = int(max(marks.iterdir(), key=lambda mark: mark.stat().st_mtime).name.split(".")[1])
    os.kill(parent(worker), signal.SIGKILL)
    wait_for(lambda: len(successes(store, jobs)) >= 16, program)
    (node,) = cluster.worker_nodes  # no test below needs it
    cluster.remove_node(node, allow_graceful=False)
    wait_for(lambda: bool(left_out()), program)
    program.kill()
    program.wait()
    (line,) = left_out()
    assert re.fullmatch(rf"node \S+ \({node.node_id[:8]}\): it left the cluster while the jobs ran", str(line))
    assert "(raylet)" not in (store.folder.parent / "printed").read_text(), "what Ray says of a lost machine"
    assert len(list(store.folder.glob("*/*.json"))) == len(stored := successes(store, jobs)) < 100, "no job has failed"
    marked = Counter(int(mark.name.split(".")[0]) for mark in marks.iterdir())
    again = run_jobs(jobs, store, RayExecutor(address=cluster.address), progress=False)
    assert [record.result for record in again] == [{"token": n} for n in range(100)]
    repeated = Counter(int(mark.name.split(".")[0]) for mark in marks.iterdir()) - marked
    assert {jobs[token].key for token in repeated}.isdisjoint(stored)
    assert {key: successes(store, jobs)[key] for key in stored} == stored


def test_what_the_caller_raises_ends_the_run_and_the_tasks(cluster: Any) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    long = sleeps(600.0, 4)
    with pytest.raises(KeyboardInterrupt):
        RayExecutor(address=cluster.address).run([*sleeps(0.0, 1), *long], interrupt)
    started = time.perf_counter()
    assert all(record.ok for record in run(RayExecutor(address=cluster.address), sleeps(0.0, 4, first=9)).values())
    assert time.perf_counter() - started < 300, "the processors are free again"


def test_a_cluster_of_a_killed_program_leaves_no_files(
    store: JobStore, marks: Path, programs: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job.create(sample_jobs.leave_a_mark, {"folder": str(marks), "token": n}) for n in range(2)]
    with tempfile.TemporaryDirectory(dir="/tmp") as room:  # Ray's sockets need a short name, whatever TMPDIR is
        monkeypatch.setenv("RAY_TMPDIR", room)
        for is_killed in (True, False):
            words = store.folder, "ray", "leave_a_mark", "token", 2
            programs.append(start_program(*words, {"folder": str(marks)}, workers=1))
            if is_killed:
                wait_for(lambda: any(Path(room).glob("*/session_*/sockets/raylet")), programs[-1])
                programs[-1].kill()
            programs[-1].wait(timeout=120)
        assert len(successes(store, jobs)) == len(jobs), programs[-1].communicate()[0]
        assert list(Path(room).iterdir()) == []


def test_no_cluster_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("trimbench.reproduction.execution.ray_executor._ANSWER_SECONDS", 4.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # as the head of a cluster that is about to end
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RuntimeError, match=rf"got '{address}': what listens there does not answer like Ray for 4 "):
            RayExecutor(address=address).run(sleeps(0.0, 1), print)
    with pytest.raises(RuntimeError, match=r"address must be that of a running Ray cluster, got '127\.0\.0\.1:1'"):
        RayExecutor(address="127.0.0.1:1").run(sleeps(0.0, 1), print)


@pytest.fixture(scope="module")
def failing(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Nodes that join the cluster, by what is wrong with them; a full disk needs root, so others have no disk."""
    import ray

    room = tmp_path_factory.mktemp("nodes")
    (room / "trimbench-0.0.1.dist-info").mkdir()
    (room / "trimbench-0.0.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: trimbench\nVersion: 0.0.1\n")
    full, own = room / "full", {"TRIMBENCH_CACHE": str(room / "empty")}
    variables = {
        "no shared folder": {**own, "XDG_CACHE_HOME": str(room / "own")},
        "other version": {"PYTHONPATH": f"{room}:{os.environ.get('PYTHONPATH', '')}"},
    }
    full.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(full)]
    is_full = os.geteuid() == 0 and not subprocess.run(mount).returncode
    variables["full disk" if is_full else "no disk"] = {**own, "XDG_CACHE_HOME": str(full) if is_full else os.devnull}
    try:
        nodes = {name: cluster.add_node(num_cpus=1, env_vars=some) for name, some in variables.items()}
        with RayExecutor(address=cluster.address).connected():
            # Each has a process ready when the jobs come, or the first machine would take them all.
            pid, here = ray.remote(num_cpus=1)(lambda: os.getpid()), "ray.io/node-id"
            ray.get([pid.options(label_selector={here: node.node_id}).remote() for node in nodes.values()], timeout=120)
        yield nodes | {"room": room}
    finally:
        if is_full:
            subprocess.run(["umount", str(full)], check=True)


def put_networks_into_files(conf: Path, cache: Path) -> None:
    """Copy the configuration, in which the networks of Table 6 are figures, and make them files of a cache."""
    shutil.copytree(PROJECT.folders[0], conf)
    (cache / "files").mkdir(parents=True)
    for name in PROJECT.mapping("experiment", "trimming/table6")["networks"]:
        found = declare_network(name, PROJECT.declared("network", name)).source.load(name, {})
        content = encode_ergo(found.model.to_network())
        (cache / f"files/{name}.erg").write_text(content)
        file = {"path": f"{name}.erg", "url": f"https://localhost/{name}.erg"}
        file["sha256"] = hashlib.sha256(content.encode()).hexdigest()
        declared = {"format": "erg", "target": found.target, "positive": found.positive}
        declared |= {"features": list(found.features), "files": {"network": file}}
        (conf / f"network/{name}.yaml").write_text(json.dumps(declared))


@pytest.mark.usefixtures("undrawn")
def test_table_6_on_nodes_that_fail_is_that_of_the_serial_executor_and_names_them(
    cluster: Any,
    failing: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put_networks_into_files(tmp_path / "conf", tmp_path / "cache")
    monkeypatch.setattr(
        project_module, "_project", dataclasses.replace(project_module.project(), configuration=tmp_path / "conf")
    )
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    words = ("experiment=trimming/table6", "thresholds=[0.3,0.7]", "offline=true")
    run_here(*words, "results=serial", "executor=serial", code=0)
    run_here(*words, "results=ray", "executor=ray", f"executor.address={cluster.address}", code=0)
    serial, ray = (tables(tmp_path / name) for name in ("serial", "ray"))
    (name,) = (name for name in serial if name.endswith("_rows.csv.gz"))
    assert ray[name] == serial[name]
    assert ray[name].count(",ok,") == 42
    assert len(list(failing["room"].glob("own/trimbench/files/**/*.erg"))) == 7, "they have travelled"
    reasons = {"other version": "it has trimbench 0.0.1", "full disk": "No space left", "no disk": "NotADirectoryError"}
    reasons = {name: why for name, why in reasons.items() if name in failing}
    (page,) = tmp_path.glob("ray/quick/trimming/*.md")
    told = page.read_text(), "\n".join(caplog.messages)
    for name, why in reasons.items():
        for text in told:
            (line,) = (line for line in text.splitlines() if f"({failing[name].node_id[:8]})" in line)
            assert why in line
    assert all(text.count("Left out of the run: ") == len(reasons) for text in told)
