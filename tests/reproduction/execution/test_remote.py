"""What the remote executor makes of a cluster, here a pretended one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import math
import os
import pickle
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimbench.reproduction.execution import cluster_task, executors, ray_executor, ray_task
from trimbench.reproduction.execution.cluster_task import Terms, read_answer, run_task
from trimbench.reproduction.execution.executors import ExecutorError, execute, run_jobs
from trimbench.reproduction.execution.job import Job, JobLimits
from trimbench.reproduction.execution.ray_executor import RayCluster, RayExecutor, ray_folder
from trimbench.reproduction.execution.remote import Cluster, RemoteExecutor, TaskLost
from trimbench.reproduction.execution.slurm_executor import SlurmExecutor
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import user_cache

from . import sample_jobs
from .programs import run, squares
from .test_store import sealed


def answer(records: Sequence[Record]) -> bytes:
    """Write records as a task sends them back, after the line that names the machine."""
    return b"\n".join(json.dumps([record.to_json(), record.log, record.lacking]).encode() for record in records)


class Pretended(Cluster):
    """Runs tasks here, one after another, as on machines that take turns."""

    def __init__(self, logs: Path, room: int = 3, jobs_per_task: int = 2) -> None:
        self.logs, self.room = logs, room
        self.jobs_per_task: int | None = jobs_per_task
        self.tasks: list[Sequence[Job]] = []
        self.cancelled: list[int] = []
        self.most = 0
        self.before: Callable[[int], None] = lambda task: None
        self.change: Callable[[bytes], Any] = lambda content: content
        self.names = ["a"]
        self.lacks: dict[str, str] = {}
        self.where: list[str] = []
        self.without: list[Collection[str]] = []

    def send(self, terms: Terms) -> list[bytes]:
        return []

    def machines(self) -> dict[str, str]:
        return {name: name.upper() for name in self.names}

    def submit(self, chunks: Sequence[Sequence[Job]], without: Collection[str]) -> list[int]:
        self.tasks += chunks
        self.without += [without] * len(chunks)
        allowed = [machine for machine in self.names if machine not in without]
        self.where += [allowed[(len(self.where) + k) % len(allowed)] for k in range(len(chunks))]
        return list(range(len(self.tasks) - len(chunks), len(self.tasks)))

    def wait(self, tasks: Collection[int]) -> list[int]:
        self.most = max(self.most, len(tasks))
        return [min(tasks)]

    def result(self, task: int) -> bytes:
        self.before(task)
        machine = self.where[task]
        head = {"machine": machine}
        if self.lacks.get(machine, "").startswith("!"):
            return json.dumps(head | {"error": self.lacks[machine]}).encode()
        records = [execute(job) for job in self.tasks[task]]
        if machine in self.lacks:
            lost = {"status": "failed", "result": None, "error": f"OSError: no {machine}", "lacking": True}
            records = [replace(record, **lost) for record in records]  # type: ignore[arg-type]
        changed = self.change(answer(records))
        return json.dumps(head).encode() + b"\n" + changed if isinstance(changed, bytes) else changed

    def cancel(self, tasks: Collection[int]) -> None:
        self.cancelled += tasks


class PretendingExecutor(RemoteExecutor):
    @contextmanager
    def connected(self) -> Iterator[Pretended]:
        yield pretended[-1]


pretended: list[Pretended] = []


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Pretended]:
    pretended.append(Pretended(tmp_path))
    yield pretended[-1]
    pretended.clear()


def test_jobs_are_cut_into_tasks_and_a_few_run_at_once(cluster: Pretended) -> None:
    jobs = squares(9)
    assert all(record.ok for record in run(PretendingExecutor(), jobs).values())
    assert [list(task) for task in cluster.tasks] == [jobs[0:2], jobs[2:4], jobs[4:6], jobs[6:8], jobs[8:]]
    assert (cluster.most, cluster.cancelled) == (3, [])
    assert run(PretendingExecutor(), []) == {}
    cluster.tasks, cluster.where, cluster.room, cluster.jobs_per_task = [], [], 1, None
    cluster.change = lambda content: b"\n".join(edited(line, seconds=0.125) for line in content.split(b"\n"))
    run(PretendingExecutor(), squares(20))
    assert [len(task) for task in cluster.tasks] == [1, 4, 4, 4, 3, 2, 1, 1], "of half a second, and few at the end"


def test_jobs_of_lost_tasks_run_again_and_crash_at_last(cluster: Pretended, tmp_path: Path) -> None:
    first, second = squares(3)[0], squares(3)[1]

    def lose(task: int) -> None:
        (tmp_path / first.key).write_text("last words")
        if first in cluster.tasks[task]:
            raise TaskLost("the node went away")

    cluster.before = lose
    records = run(PretendingExecutor(), squares(3))
    assert [len(task) for task in cluster.tasks] == [2, 1, 1, 1, 1], "each of a lost task is alone in its next"
    assert records[second.key].ok
    assert (records[first.key].status, records[first.key].log) == ("crashed", "last words")
    assert records[first.key].error == "the task ended without a result: the node went away"


def test_a_cluster_on_which_no_task_can_run_ends_the_run(cluster: Pretended) -> None:
    def fail(task: int) -> None:
        raise ModuleNotFoundError("No module named 'trimbench'")

    cluster.before = fail
    cluster.room = 9
    with pytest.raises(ExecutorError, match=r"first 5 tasks could not run, .*No module.*installed in the same version"):
        PretendingExecutor().run(squares(30), lambda record: None)
    assert cluster.cancelled == list(range(5, 13))
    cluster.before = lambda task: fail(task) if task not in (15, 16) else None
    assert len(run(PretendingExecutor(), squares(30))) == 30, "one bad machine costs its jobs only"


def test_what_the_caller_raises_cancels_the_tasks(cluster: Pretended) -> None:
    def interrupt(_: Record) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PretendingExecutor().run(squares(6), interrupt)
    assert cluster.cancelled == [1, 2]


def edited(content: bytes, **changes: Any) -> bytes:
    """Change fields of the first record, with a hash that fits."""
    text, *rest_of_line = json.loads(content.split(b"\n")[0])
    fields = json.loads(text) | changes
    del fields["sha256"]
    whole = sealed(fields).decode().removesuffix("\n")
    return b"\n".join([json.dumps([whole, *rest_of_line]).encode(), *content.split(b"\n")[1:]])


SENT_BACK: dict[str, tuple[int, Callable[[bytes], Any]]] = {
    "nothing": (2, lambda _: b""),
    "junk": (2, lambda _: b"\x80\x04junk\n[[[[\n"),
    "deep": (1, lambda content: b"[" * 100_000 + content[content.index(b"\n") :]),
    "swapped": (2, lambda content: b"\n".join(content.split(b"\n")[::-1])),
    "twice": (1, lambda content: b"\n".join([content.split(b"\n")[0]] * 2)),
    "too many": (0, lambda content: b"\n".join([content, content])),
    "undeclared": (1, lambda content: edited(content, result={"x": 0.0, "square": 0.0, "status": "ok"})),
    "field": (1, lambda content: edited(content, cached=True)),
    "status": (1, lambda content: edited(content, status="missing", result=None, error="")),
    "nan": (1, lambda content: edited(content, result={"square": math.nan})),
    "infinite": (1, lambda content: edited(content, seconds=math.inf)),
    "huge": (1, lambda content: edited(content, seconds=10**400)),
    "before": (1, lambda content: edited(content, seconds=-1.0)),
    "error": (1, lambda content: edited(content, status="failed", result=None, error="x" * 10**6)),
    "where": (1, lambda content: edited(content, provenance={"time": 5})),
    "log": (1, lambda content: content.replace(b', "", false]', b', "' + b"x" * 50_000_000 + b'", false]', 1)),
}


@pytest.mark.parametrize("name", SENT_BACK)
def test_what_is_sent_back_is_checked_against_the_job(cluster: Pretended, store: JobStore, name: str) -> None:
    n_failed, cluster.change = SENT_BACK[name]
    jobs = squares(2)
    records = run_jobs(jobs, store, PretendingExecutor(), progress=False)
    assert [record.job for record in records] == jobs
    failed = [record for record in records if not record.ok]
    assert len(failed) == n_failed
    assert all("what its task sent back is not used: " in str(record.error) for record in failed)
    assert all(record.result == execute(record.job).result for record in records if record.ok)
    assert [store.get(job) for job in jobs] == records


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_as_failures_or_a_reason(content: bytes) -> None:
    _, why, records = read_answer(content, squares(2))
    assert why or [record.status for record in records] == ["failed"] * 2


@pytest.mark.parametrize("lacks", ["!", "disk"])
def test_no_task_waits_for_machines_that_have_left(
    cluster: Pretended, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    cluster.names, cluster.lacks = ["a", "b"], {"a": lacks}

    def wait(tasks: Collection[int]) -> list[int]:
        done = [task for task in tasks if cluster.where[task] == "a"]
        if not done:  # b leaves, and a takes what it may
            cluster.names = ["a"]
            cluster.where = ["b" if "a" in without else "a" for without in cluster.without]
        return done

    monkeypatch.setattr(cluster, "wait", wait)
    if lacks == "!":
        with pytest.raises(
            ExecutorError, match=r"no machine can run the jobs: node A: !; node B: it left the cluster while"
        ):
            run(PretendingExecutor(), squares(6))
    else:
        found = run(PretendingExecutor(), squares(6))
        assert {record.status for record in found.values()} == {"failed"}
        assert cluster.cancelled


def pretended_ray(**functions: Any) -> Any:
    """Return what stands for the module of Ray."""
    errors = SimpleNamespace(RayError=pickle.PickleError, RayTaskError=pickle.PickleError)
    context = SimpleNamespace(gcs_address="127.0.0.1:1")
    fixed = {"remote": lambda **_: lambda _: None, "get_runtime_context": lambda: context, "exceptions": errors}
    cloudpickle = SimpleNamespace(register_pickle_by_value=lambda _: None)
    return SimpleNamespace(cloudpickle=cloudpickle, **fixed, **functions)


def test_the_first_machine_of_a_ray_cluster_leaves(tmp_path: Path) -> None:
    with pytest.raises(
        ExecutorError, match=r"^the first machine of the cluster has left; what was .* stored; run again$"
    ):
        RayCluster(pretended_ray(), RayExecutor(), tmp_path).machines()


def test_the_address_asked_for_joins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray knows it by a number then."""
    addresses = ("head:6379", "127.0.0.1:1", "auto", None, "other:6379")
    *same, other = [RayExecutor(address=address) for address in addresses]
    made = pretended_ray(is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.setattr(ray_executor, "_asked_for", ["head:6379"])
    monkeypatch.setattr(os, "environ", variables := {"RAY_USAGE_STATS_ENABLED": "1"})
    for executor in same:
        assert executor._connected_ray() is made
    with pytest.raises(ExecutorError, match=r"got 'other:6379': it is connected to 127\.0\.0\.1:1 already"):
        other._connected_ray()
    assert variables == {"RAY_USAGE_STATS_ENABLED": "1", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}, "what is set stays"


@pytest.mark.parametrize(("address", "late", "tries"), [(None, 1, 2), (None, 2, 2), ("127.0.0.1:1", 1, 1)])
def test_a_cluster_that_starts_too_late_gets_a_second_try(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str | None, late: int, tries: int
) -> None:
    asked: list[str] = []

    def init(address: str, **options: object) -> None:
        asked.append(address)
        if len(asked) <= late:
            raise Exception("The current node timed out during startup.")

    executor = RayExecutor(address=address)
    made = pretended_ray(is_initialized=lambda: False, init=init, shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.setattr(ray_executor, "_asked_for", [])
    monkeypatch.setattr(ray_executor, "_check_reachable", lambda _: None)
    monkeypatch.setattr(ray_executor, "_ray_logs", lambda: tmp_path)
    with contextlib.ExitStack() as end:
        monkeypatch.setattr(ray_executor, "_at_end", end)
        if late < tries:
            assert executor._connected_ray() is made
        else:
            with pytest.raises(ExecutorError, match="did not start or join one in time on this machine"):
                executor._connected_ray()
    assert len(asked) == tries


def test_files_of_a_cluster_are_in_a_folder_with_a_short_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as room, contextlib.ExitStack() as end:  # 16 bytes, the most
        monkeypatch.setattr(ray_executor, "_at_end", end)
        for added, are_there in (("", True), ("x", False)):
            monkeypatch.setenv("RAY_TMPDIR", room + added)
            assert (ray_folder() is not None) == are_there
            made = [path.parent for path in Path("/tmp").glob(f"{room[5:]}{added}/tb-ray.*")]
            assert made == [Path(room)] * are_there


def test_a_task_of_ray_answers_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(get_node_id=lambda: "n1")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get_runtime_context=lambda: context))
    monkeypatch.setitem(sys.modules, "__main__", main := SimpleNamespace(__file__="slow to run"))  # type: ignore[arg-type]
    said = json.loads(ray_task.run(b"junk", b"", []))
    assert said["machine"] == "n1"
    assert said["error"].startswith("UnpicklingError: ")
    assert not vars(main), "spawned processes do not run it"


def test_what_slurm_is_asked_for_and_what_a_lost_task_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    executor = SimpleNamespace(update_parameters=asked.update, map_array=lambda _, chunks, terms: [*chunks])
    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace(AutoExecutor=lambda **_: executor))
    lost = Mock(state="NODE_FAIL", paths=Mock(result_pickle=tmp_path / "1.pkl", stdout=tmp_path, stderr=tmp_path / "e"))
    for workers, at_once in ((None, 3), (2, 2)):
        options = SlurmExecutor(folder=str(tmp_path), cluster="local", workers=workers, partition="a", minutes=7)
        with options.connected() as cluster:
            assert not [*cluster.send(Terms.of([], {}, JobLimits(), tmp_path))]
            assert cluster.submit([squares(1)] * 3, {"n2", "n1"}) == [squares(1)] * 3
            for said, reason in (("", "NODE_FAIL"), ("first\nlast", "last")):
                lost.stderr.return_value = said
                with pytest.raises(TaskLost, match=f"^{reason}$"):
                    cluster.result(lost)
        array = {"slurm_array_parallelism": at_once, "slurm_partition": "a", "slurm_exclude": "n1,n2"}
        each = {"mem_gb": 4.0, "timeout_min": 7, "cpus_per_task": 1, "tasks_per_node": 1}
        assert asked == {"name": "trimbench", **each, **array}


@pytest.mark.parametrize("given_back", [Path("x"), squares, ValueError("x"), {1: 2}])
def test_no_object_is_made_of_what_a_task_sends_back(cluster: Pretended, given_back: Any) -> None:
    """Ray itself would look up whatever a pickle names."""
    ray = pretended_ray(get=lambda task: pickle.loads(pickle.dumps(given_back)))
    cluster.result = RayCluster(ray, RayExecutor(), cluster.logs).result  # type: ignore[method-assign]
    (record,) = run(PretendingExecutor(), squares(1)).values()
    assert record.status == "crashed"
    assert "a task must send back bytes, got " in str(record.error)
    assert pickle.loads(pickle.dumps(Path("x"))) == Path("x"), "elsewhere, pickles are read"


def test_tasks_of_one_sweep_share_a_worker(tmp_path: Path) -> None:
    pids = [Job.create(sample_jobs.sleep, {"seconds": 0.0, "token": n}) for n in range(4)]
    terms = Terms.of(pids, {}, JobLimits(), tmp_path)
    results = [read_answer(run_task(pids[at : at + 2], terms), pids[at : at + 2])[2] for at in (0, 2)]
    elsewhere = read_answer(run_task(pids[:1], terms._replace(logs=tmp_path / "not here")), pids[:1])[2]
    assert len({str(record.result) for records in results for record in records}) == 1
    assert elsewhere[0].result not in [record.result for record in results[0]]
    cluster_task._stop_kept()
    assert not cluster_task._kept


def test_what_a_machine_lacks_is_found_on_another_and_the_machine_named(
    cluster: Pretended, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.names, cluster.jobs_per_task = ["a", "b", "c"], 1
    cluster.lacks = {"b": "disk", "c": "!"}
    found = run(PretendingExecutor(), squares(30))
    assert {record.status for record in found.values()} == {"ok"}
    assert cluster.where.count("b") <= 2 + cluster.room
    assert cluster.where.count("c") <= 1 + cluster.room
    told = ["node C: !", "node B: OSError: no b"]
    assert set(list(found.values())[-1].provenance["left_out"]) == set(told)  # type: ignore[arg-type]
    assert sorted(caplog.messages) == ["Left out of the run: node B: OSError: no b", "Left out of the run: node C: !"]


LACKING = [Job.create(sample_jobs.miss_a_file, {"path": f"/not/here/{n}"}) for n in range(12)]


@pytest.mark.parametrize("jobs_per_task", [1, 20])
@pytest.mark.parametrize("names", ["a", "ab", "abcde"])
def test_a_job_that_fails_everywhere_is_a_row_and_no_machine_is_to_blame(
    cluster: Pretended, caplog: pytest.LogCaptureFixture, names: str, jobs_per_task: int
) -> None:
    cluster.names, cluster.jobs_per_task = list(names), jobs_per_task
    found = run(PretendingExecutor(), [*LACKING, *squares(3)])
    assert [found[job.key].status for job in LACKING] == ["failed"] * 12
    assert all(found[job.key].ok for job in squares(3))
    assert sum(LACKING[0] in task for task in cluster.tasks) == len(names)
    assert not any("left_out" in record.provenance for record in found.values())
    assert "Left out" not in caplog.text


def test_where_all_machines_lack_something_one_sentence_says_so(
    cluster: Pretended, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.names, cluster.lacks = ["a", "b"], {"a": "disk", "b": "disk"}
    for n in (1, 2, 6):
        assert {record.status for record in run(PretendingExecutor(), squares(n)).values()} == {"failed"}
    for n, line in zip((2, 6), caplog.messages, strict=True):
        assert re.match(rf"No machine could run the last {n} jobs: OSError: no [ab]; what was done is stored$", line)


@pytest.mark.parametrize("look", range(2, 12))
def test_machines_may_join_and_leave_between_any_two_looks(
    cluster: Pretended, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, look: int
) -> None:
    """One that is left out and then leaves keeps the first reason."""
    cluster.names, cluster.lacks, looks = ["a", "b"], {"a": "!old", "b": "!old"}, itertools.count(1)

    def machines() -> dict[str, str]:
        if next(looks) == look:
            cluster.names = ["b", "c"]
        return {name: name.upper() for name in cluster.names}

    monkeypatch.setattr(cluster, "machines", machines)
    with contextlib.suppress(ExecutorError):  # before the third is there
        assert all(record.ok for record in run(PretendingExecutor(), squares(20)).values())
    assert {re.sub("it left.*", "!old", line) for line in caplog.messages} <= {
        f"Left out of the run: node {name}: !old" for name in "AB"
    }
    assert len(caplog.messages) <= 2


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["disk", "!"]), max_size=3), st.integers(1, 20))
def test_any_machine_that_works_is_enough(tmp_path_factory: pytest.TempPathFactory, lacks: Any, room: int) -> None:
    made = Pretended(tmp_path_factory.getbasetemp(), room=room, jobs_per_task=1 + room % 3)
    made.names, made.lacks = list("abcd"), lacks
    pretended.append(made)
    found = run(PretendingExecutor(), [*squares(20), *LACKING, *squares(40)[20:]])
    assert all(found[job.key].ok for job in squares(40))
    assert {found[job.key].status for job in LACKING} == {"failed"}
    lists = [record.provenance.get("left_out", ()) for record in found.values()]
    lines = {str(line) for lines in lists for line in lines}  # type: ignore[union-attr]
    assert sorted(line[5].lower() for line in lines) == sorted({*lacks} & {line[5].lower() for line in lines})


def test_files_that_a_machine_has_not_are_brought_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("files/one", "mine"):
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text(f"content of {name}")
    job = Job.create(sample_jobs.miss_a_file, {"path": "<mine>"}, places={"<mine>": str(tmp_path / "here/mine")})
    assert str(tmp_path) not in repr(job)
    terms = Terms.of([job], {"files/one": tmp_path / "here/files/one"}, JobLimits(), tmp_path)
    (tmp_path / "here/mine").write_text("other text, content")
    (tmp_path / "here/files").rename(tmp_path / "there")
    for file in terms.files:
        with pytest.raises(ExecutorError, match=r"^/.*(one|mine) is gone, or is not what it was when"):
            file.content(file.path.read_bytes)
    (tmp_path / "here/mine").unlink()
    contents = {
        hashlib.sha256(text.encode()).hexdigest(): text.encode() for text in ("content of files/one", "content of mine")
    }
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "empty"))
    fetched: list[str] = []
    for _ in range(2):
        run_task([job], terms, "b", lambda sha256: fetched.append(sha256) or contents[sha256])  # type: ignore[func-returns-value]
        answered = run_task([job], terms, "b", contents.__getitem__)
    _, _, (record,) = read_answer(answered, [job])
    cluster_task._stop_kept()
    assert record.result == {"text": "content of mine"}
    assert sorted(fetched) == sorted(contents)
    assert (user_cache() / "files/one").read_text() == "content of files/one"
    (user_cache() / "files/one").write_text("CONTENT of files/one")  # of the same size
    _, why, _ = read_answer(run_task([], terms, "b", lambda _: b"junk"), [])
    assert re.search(r"/files/one is gone, or is not what it was", why)
    run_task([], terms, "b", contents.__getitem__)
    assert (user_cache() / "files/one").read_text() == "content of files/one"
    (kept,) = (user_cache() / "sent").iterdir()
    os.utime(kept, (0, 0))
    run_task([], terms, "b")
    assert kept.stat().st_mtime > 0, "it is in use"
    os.utime(kept, (0, 0))
    (user_cache() / "files/one").unlink()
    run_task([], terms._replace(files=terms.files[:1]), "b", contents.__getitem__)
    assert not kept.exists(), "nobody has needed it for a day"
    (tmp_path / "xdg").rename(tmp_path / "gone")
    machine, why, records = read_answer(run_task([job], terms, "b"), [job])
    assert "2 of the 2 files that the run reads are not here, for example /" in why
    assert (machine, records) == ("b", [])
    _, why, _ = read_answer(run_task([job], terms._replace(versions={"numpy": "0.1"}), "b"), [job])
    assert re.fullmatch(r"it has numpy \d\S+, and the run 0\.1", why)


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (OSError(errno.ENOMEM, "no memory"), True),
        (sqlite3.OperationalError("database or disk is full"), True),
        (OSError("1000 requested and 12 written"), True),
        (sqlite3.OperationalError("no such table"), False),
        (ValueError("the rest"), False),
    ],
)
def test_what_a_job_fails_with_where_a_machine_lacks_something(error: Exception, lacking: bool) -> None:
    assert executors.is_lacking(error) is lacking
    outer = RuntimeError("around it")
    outer.__cause__ = error
    assert executors.is_lacking(outer) is lacking
