"""The store of records and arrays: what is damaged is not used, results are what is declared, and provenance."""

import errno
import hashlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.reproduction.execution import provenance as provenance_module
from trimbench.reproduction.execution import store as store_module
from trimbench.reproduction.execution.executors import Executor, SerialExecutor, execute, run_jobs
from trimbench.reproduction.execution.job import COUNT, Job, check_result, declare_result
from trimbench.reproduction.execution.processes import ProcessExecutor
from trimbench.reproduction.execution.provenance import _git_state, _quotas, provenance, usable_cpus
from trimbench.reproduction.execution.store import (
    RUN_VARIABLE,
    JobStore,
    KeptArrays,
    Record,
    read_earlier_arrays,
    remember,
)
from trimbench.reproduction.files import sealed as sealed_content
from trimbench.reproduction.files import unsealed

from . import sample_jobs

JOB = Job.create(sample_jobs.square, {"x": 3.0})
OTHER = Job.create(sample_jobs.square, {"x": 4.0})
OK = Record(JOB, "ok", {"square": 9.0, "text": "朴素 naïve"}, None, 0.25, {"python": "3"})
FAILED = Record(JOB, "failed", None, "ValueError: é", 0.5, {})


def files(store: JobStore) -> list[str]:
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file() and path.name != "lock")


results = st.dictionaries(
    st.text(), st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.lists(st.text())
)


@given(results, st.text(), st.floats(0, 1e9))
def test_a_record_survives_its_text(result: dict[str, Any], error: str, seconds: float) -> None:
    for record in (
        Record(JOB, "ok", result, None, seconds, {"a": [error]}),
        Record(JOB, "timeout", None, error, seconds, {}),
    ):
        assert Record.from_json(record.to_json()) == record
        assert Record.from_json(record.to_json().encode()).job.key == JOB.key


@pytest.mark.parametrize(
    ("status", "result", "message"),
    [
        ("ok", None, "result must be a dict exactly when status is 'ok', got"),
        ("failed", {}, "result must be a dict exactly when status is 'ok', got"),
        ("missing", {"a": 1}, "result must be a dict exactly when status is 'ok', got"),
        ("done", None, "status must be one of ok, failed, timeout, .*, got 'done'"),
        ("missing", None, "must be one of ok, failed, timeout, memory, crashed, got 'missing'"),
    ],
)
def test_only_records_of_what_happened_are_stored(store: JobStore, status: str, result: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        store.put(Record(JOB, status, result, None, 0.0, {}))
    assert not store.folder.exists()


def test_a_stored_record_is_found_again_where_it_should_be(store: JobStore) -> None:
    assert store.get(JOB) is None
    store.put(OK)
    assert (store.folder / JOB.key[:2] / f"{JOB.key}.json").is_file()
    assert JobStore(store.folder).get(JOB) == OK
    assert store.get(OTHER) is None
    store.ensure_writable()  # writes a file, and removes it
    assert files(store) == [f"{JOB.key}.json"]


def sealed(fields: dict[str, Any]) -> bytes:
    """A record with the hash of its content, whatever that is."""
    text = json.dumps(fields, separators=(",", ":"))[1:]
    return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}",{text}\n'.encode()


OF_ANOTHER = replace(OK, job=OTHER).to_json().encode() + b"\n"  # in the wrong file


def damaged_texts() -> list[bytes]:
    whole = OK.to_json().encode()
    fields = json.loads(whole)
    del fields["sha256"]
    assert Record.from_json(sealed(fields)) == OK
    changes: list[dict[str, Any]] = [
        {"key": OTHER.key},
        {"status": "done"},
        {"status": "missing", "result": None},
        {"result": None},
        {"result": [1]},
        {"seconds": None},
        {"error": 5},
        {"provenance": None},
        {"job": None},
        {"job": {**fields["job"], "parameters": {"x": 4.0}}},
        {"job": {**fields["job"], "data": {"a": "b"}}},
        {"job": {**fields["job"], "function": 3}},
    ]
    texts = [whole[:cut] for cut in (0, 1, 10, len(whole) // 2, len(whole) - 1)]
    texts += [b"[]", b"null", b"\xff\xfe\x00", b"[" * 100_000, b"\0" * 200, OF_ANOTHER]
    texts += [sealed({key: value for key, value in fields.items() if key != left}) for left in fields]
    return [*texts, json.dumps(fields).encode() + b"\n", *(sealed({**fields, **change}) for change in changes)]


@pytest.mark.parametrize("text", damaged_texts())
def test_a_damaged_file_counts_as_missing_and_is_overwritten(store: JobStore, text: bytes) -> None:
    store.put(OK)
    store.path(JOB).write_bytes(text)
    assert store.get(JOB) is None
    store.put(OK)
    assert store.get(JOB) == OK


@pytest.mark.parametrize("record", [OK, FAILED, replace(OK, seconds=1e-7), replace(FAILED, seconds=9)])
def test_a_glance_tells_status_and_seconds_without_the_result(store: JobStore, record: Record) -> None:
    assert store.glance(JOB) is None
    store.put(record)
    assert store.glance(JOB) == (record.status, record.seconds)
    assert store.glance(OTHER) is None
    whole = store.path(JOB).read_bytes()
    store.path(JOB).write_bytes(whole.replace(b'"job"', b'"jab"'))  # shows only when the record is read
    assert store.glance(JOB) == (record.status, record.seconds)
    assert store.get(JOB) is None


def test_a_glance_finds_files_that_end_early_or_hold_another_job(store: JobStore) -> None:
    store.put(OK)
    whole = store.path(JOB).read_bytes()
    for text in (*(whole[:cut] for cut in (0, 1, 100, len(whole) - 2)), OF_ANOTHER):
        store.path(JOB).write_bytes(text)
        assert store.glance(JOB) is None, text


@pytest.mark.parametrize("seconds", [b"..25", b"9e99", b"e+25"])
def test_a_glance_at_damaged_seconds_raises_nothing(store: JobStore, seconds: bytes) -> None:
    store.put(replace(OK, seconds=0.25))
    whole = store.path(JOB).read_bytes()
    for number in (seconds, seconds + b"9"):  # the last is beyond the largest number
        store.path(JOB).write_bytes(whole.replace(b'"seconds":0.25', b'"seconds":' + number))
        found = store.glance(JOB)
        assert found is None or math.isfinite(found.seconds)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_or_a_huge_file_in_the_place_of_a_record_counts_as_missing(store: JobStore) -> None:
    path = store.path(JOB)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert (store.get(JOB), store.glance(JOB)) == (None, None)
    store.put(OK)
    assert store.get(JOB) == OK
    os.truncate(path, 2**40)  # one that takes no room
    assert store.get(JOB) is None


def test_a_link_in_the_place_of_a_folder_of_records_is_not_written_through(store: JobStore, tmp_path: Path) -> None:
    (victim := tmp_path / "victim").mkdir()
    path = store.path(JOB)
    (victim / path.with_suffix(".log").name).write_text("mine")
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.symlink_to(victim)
    with pytest.raises(OSError, match=r"is a symbolic link, which is not followed; remove it"):
        store.put(OK)
    assert [one.read_text() for one in victim.iterdir()] == ["mine"]


def test_a_small_record_takes_little_memory_to_read(store: JobStore) -> None:
    store.put(OK)
    tracemalloc.start()
    try:
        assert store.get(JOB) == OK
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("step", ["write_bytes", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_or_read_only_folder_keeps_what_it_has(
    store: JobStore, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    store.put(FAILED)
    write = Path.write_bytes

    def refuse(path: Path, content: Any) -> None:
        if step == "write_bytes":
            write(path, content[:20])
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, step, refuse)
        with pytest.raises(
            OSError, match=f"{store.folder}.*{os.strerror(number)}.*stored results are intact"
        ) as caught:
            store.put(OK)
    assert caught.value.errno == number
    assert store.get(JOB) == FAILED
    assert files(store) == [f"{JOB.key}.json"]


def test_opening_removes_what_dead_writers_left_unless_another_program_has_the_turn(store: JobStore) -> None:
    store.put(OK)
    sub = store.path(JOB).parent
    old = [sub / f"{JOB.key}.{0:016}.tmp", store.folder / f"probe.{0:016}.{1:016}.tmp"]
    new = sub / f"{JOB.key}.{2:016}.tmp"
    theirs = [sub / "notes.tmp", store.folder / "a.0000.tmp", sub / f"{JOB.key}.{3:016}.tmp"]
    theirs[2].mkdir()
    for path in theirs[:2]:
        path.write_text("mine")
    for path in (*old, new):
        path.write_text("{")
    for path in (*old, *theirs):
        os.utime(path, (time.time() - 120,) * 2)
    with store.turn(lambda: None):
        JobStore(store.folder)
        assert all(path.exists() for path in old)
    JobStore(store.folder)
    assert [path.exists() for path in (*old, new)] == [False, False, True]
    assert all(path.exists() for path in theirs), "only what has the name of a record's temporary file is removed"
    assert store.get(JOB) == OK


def test_a_sweep_that_may_not_remove_is_silent(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(OK)
    stale = store.path(JOB).with_name(f"{JOB.key}.{0:016}.tmp")
    stale.write_text("{")
    os.utime(stale, (0, 0))

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "no", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert JobStore(store.folder).get(JOB) == OK
    assert stale.exists()


def test_threads_and_readers_never_meet_half_a_file(store: JobStore) -> None:
    big = [replace(OK, result={"rows": [float(n)] * 5000}) for n in range(4)]
    store.put(big[0])

    def write(record: Record) -> None:
        for _ in range(15):
            store.put(record)

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(write, record) for record in big]
        seen = [store.get(JOB) for _ in range(60)]
        for task in tasks:
            task.result()
    assert all(record in big for record in seen)
    assert files(store) == [f"{JOB.key}.json"]


def test_a_result_that_is_not_what_is_declared_is_not_used(store: JobStore, caplog: pytest.LogCaptureFixture) -> None:
    job = Job.create(sample_jobs.declared, {"agreement": 0.5})
    store.put(Record(job, "ok", {"agreement": 7.5, "budgets": [1], "best": None}, None, 0.25, {}))
    assert store.get(job) is None
    assert "agreement must be a number in 0..1, got 7.5" in caplog.text
    (again,) = run_jobs([job], store, SerialExecutor(), progress=False)
    assert again.result == {"agreement": 0.5, "budgets": [1], "best": None}
    (wrong,) = run_jobs([Job.create(sample_jobs.declared, {"agreement": 1.5})], store, SerialExecutor(), progress=False)
    assert wrong.status == "failed"
    assert "agreement must be a number in 0..1, got 1.5" in str(wrong.error)


@pytest.mark.parametrize(
    "change", [{"agreement": True}, {"budgets": [0.5]}, {"best": {"agreement": 2.0}}, {"best": {}}, {"more": 1}]
)
def test_names_types_and_ranges_are_checked(change: dict[str, object]) -> None:
    sound = {"agreement": 1.0, "budgets": [], "best": {"agreement": 0}}
    check_result(f"{sample_jobs.__name__}:declared", sound)
    with pytest.raises(ValueError, match="is not what it declares"):
        check_result(f"{sample_jobs.__name__}:declared", sound | change)


@pytest.mark.parametrize("column", ["status", "error", "seconds", "job"])
def test_a_result_cannot_set_what_a_row_says_of_its_job(column: str) -> None:
    with pytest.raises(ValueError, match=f"must not set .'{column}'"):
        check_result(JOB.function, {column: 1})
    with pytest.raises(ValueError, match=f"must not be called .'{column}'"):
        declare_result(sample_jobs.square, {column: COUNT})


def test_a_run_that_ignores_what_is_stored_reads_no_earlier_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUN_VARIABLE, raising=False)  # of a test that was stopped in such a run
    right, wrong = {"weights": np.ones(3)}, {"weights": -np.ones(3)}
    remember("weights", {}, lambda: wrong)
    try:
        read_earlier_arrays(False)
        compute = Mock(return_value=right)
        for _ in range(3):
            assert remember("weights", {}, compute)["weights"].tolist() == [1, 1, 1]
        assert compute.call_count == 1
    finally:
        read_earlier_arrays(True)
    assert remember("weights", {}, Mock())["weights"].tolist() == [1, 1, 1]


def test_cache_mode_decides_which_arrays_jobs_read(store: JobStore) -> None:
    job = Job.create(sample_jobs.remembered, {"value": 1.0})
    remember("sample", {}, lambda: {"values": np.array([5.0])})
    results = {
        mode: run_jobs([job], JobStore(store.folder / mode), SerialExecutor(), cache_mode=mode, progress=False)[
            0
        ].result
        for mode in ("default", "ignore")
    }
    read_earlier_arrays(True)
    assert results == {"default": {"value": 5.0}, "ignore": {"value": 1.0}}


def test_a_folder_in_the_place_of_a_record_is_put_aside(store: JobStore) -> None:
    store.path(JOB).mkdir(parents=True)
    (store.path(JOB) / "note").write_text("mine")
    (record,) = run_jobs([JOB], store, SerialExecutor(), progress=False)
    assert record.ok
    assert store.get(JOB) == record
    assert [path.read_text() for path in store.folder.rglob("note")] == ["mine"]


@pytest.fixture
def compute() -> Mock:
    return Mock(return_value={"values": np.arange(3.0), "names": np.array(["a", "b"])})


def stored(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "xdg").rglob("*.npz"))


def test_computes_once_for_each_key(tmp_path: Path, compute: Mock) -> None:
    with pytest.raises(RuntimeError, match="no"):
        remember("sample", {"x": 1}, Mock(side_effect=RuntimeError("no")))
    for _ in range(3):
        found = remember("sample", {"x": 1}, compute)
        np.testing.assert_array_equal(found["values"], [0, 1, 2])
        assert found["names"].tolist() == ["a", "b"]
    assert compute.call_count == 1
    remember("sample", {"x": 2}, compute)
    remember("other", {"x": 1}, compute)
    assert compute.call_count == 3
    assert len(stored(tmp_path)) == 3
    assert not list((tmp_path / "xdg").rglob("*.tmp"))


def test_the_folder_of_a_file_is_no_part_of_the_key(compute: Mock) -> None:
    for place in ("/home/anna/x.csv", "/elsewhere/x.csv", "/elsewhere/y.csv"):
        remember("sample", {"task": {"path": place, "sha256": "a" * 64}}, compute)
    assert compute.call_count == 2


def test_a_damaged_file_is_computed_again(tmp_path: Path, compute: Mock) -> None:
    remember("sample", {}, compute)
    (path,) = stored(tmp_path)
    for content in (b"", b"nonsense", path.read_bytes()[:50]):
        path.write_bytes(content)
        for _ in range(2):
            remember("sample", {}, compute)
    assert compute.call_count == 4


def test_sound_arrays_in_the_place_of_others_are_computed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a backup was restored under wrong names: of another key, of another kind, of both."""
    wanted = [("sample", {"x": 1}), ("sample", {"x": 2}), ("other", {"x": 1})]
    computed = [Mock(return_value={"values": np.full(2, n)}) for n in range(3)]
    paths: list[Path] = []
    for (kind, key), compute in zip(wanted, computed, strict=True):
        before = set(stored(tmp_path))
        remember(kind, key, compute)
        paths += set(stored(tmp_path)) - before
    contents = [path.read_bytes() for path in paths]
    for shift in (1, 2):
        for place, path in enumerate(paths):
            path.write_bytes(contents[(place + shift) % 3])
        found = [
            remember(kind, key, compute)["values"].tolist()
            for (kind, key), compute in zip(wanted, computed, strict=True)
        ]
        assert found == [[0, 0], [1, 1], [2, 2]]
    assert [compute.call_count for compute in computed] == [3, 3, 3]
    said = "is not used and computed again: its hash is not that of its content and of what it stands for"
    assert all(f"{path} {said}" in caplog.text for path in paths)
    assert [path.read_bytes() for path in paths] == contents


@given(st.binary(max_size=50), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_a_seal_opens_for_its_own_kind_and_key_alone(content: bytes, kind: str, key: str, one: str, other: str) -> None:
    whole = sealed_content(content, kind, key)
    assert unsealed(whole, kind, key) == content
    if (kind, key) != (one, other):
        with pytest.raises(ValueError, match="its hash is not that of its content and of what it stands for"):
            unsealed(whole, one, other)
    for changed in (whole[1:], whole[:-1], whole + b"\n", b"x" + whole):
        with pytest.raises(ValueError, match="its hash is not"):
            unsealed(changed, kind, key)


HOLDER = """
import sys, time
from pathlib import Path
from trimbench.reproduction.files import lock
held = lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)], ids=["serial", "processes"])
def test_a_stopped_process_that_computes_arrays_is_waited_for_aloud(
    store: JobStore, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], executor: Executor
) -> None:
    """Also where a job runs, whose own output goes into its log."""
    monkeypatch.setattr(store_module, "_PATIENCE_SECONDS", 0.2)
    path = KeptArrays.of("sample", {}).path.with_suffix(".lock")
    path.parent.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        said: list[str] = []
        over = threading.Event()

        def release() -> None:
            while not over.wait(0.05) and "waiting for another process" not in "".join(said):
                said.append(capfd.readouterr().err)
            holder.kill()

        watch = threading.Thread(target=release)
        watch.start()
        try:
            job = Job.create(sample_jobs.impatient, {"value": 1.0})
            (record,) = run_jobs([job], store, executor, progress=False)
        finally:
            over.set()
            watch.join()
    assert record.result == {"value": 1.0}
    assert f"waiting for another process, which computes {path.stem} and has locked {path}\n" in "".join(said)
    assert "waiting" not in record.log


def test_without_a_folder_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compute: Mock) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(blocked))
    for _ in range(2):
        assert len(remember("sample", {}, compute)["values"]) == 3
    assert compute.call_count == 2


# Where and with what a result was computed.


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    answer = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def test_it_says_with_what_and_where_and_is_handed_out_as_a_copy() -> None:
    facts = provenance()
    assert facts["packages"]["numpy"] == metadata.version("numpy")
    assert facts["trimbench"]
    assert facts["cpus"] == usable_cpus() >= 1
    assert facts["time"].endswith("+00:00")
    assert json.loads(json.dumps(facts)) == facts
    facts["packages"].clear()
    assert provenance()["packages"]
    assert provenance()["time"] == facts["time"]


def test_a_record_says_where_its_data_came_from_even_if_it_was_encoded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_roads", {})
    job = Job.create(sample_jobs.square, {"x": 2}, {"dataset/a": "a" * 64, "network/b": "b" * 64})

    def encoded() -> store_module.Arrays:
        store_module.note_road("a" * 64, "a package")
        return {"rows": np.ones(2)}

    for _ in range(2):
        monkeypatch.setattr(store_module, "_roads", {})
        assert provenance_module.provenance_of(job)["roads"] == {}
        assert remember("rows", {"of": "a"}, encoded).keys() == {"rows"}
        assert execute(job).provenance == provenance() | {"roads": {"dataset/a": "a package"}}
    assert provenance_module.PROVENANCE.holds(provenance_module.provenance_of(job))
    assert not provenance_module.PROVENANCE.holds(provenance() | {"roads": {"dataset/a": 5}})


@needs_git
def test_commit_and_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert _git_state(tmp_path)[:2] == (None, False)
    (tmp_path / "a.py").write_text("1")
    assert _git_state(tmp_path)[:2] == (None, True)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    assert _git_state(tmp_path)[:2] == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "a.py").write_text("2")
    assert _git_state(tmp_path)[:2] == (git(tmp_path, "rev-parse", "HEAD"), True)


@needs_git
def test_results_are_no_source_and_the_environment_of_a_hook_does_not_mislead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/table.csv").write_text("a\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert _git_state(tmp_path)[:2] == (None, False)
    assert _git_state(tmp_path / "results")[:2] == (None, None), "a repository around the package is not its own"


def test_without_git_or_with_a_broken_repository_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all")
    *nothing, why = _git_state(tmp_path)
    assert nothing == [None, None]
    assert why.startswith("git says: fatal: ")
    monkeypatch.setenv("PATH", os.devnull)
    assert _git_state(tmp_path)[:2] == (None, None)


def test_gits_own_settings_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those by which a user trusts the clone of another: rerun-io/rerun#2171, InfiniTimeOrg/InfiniTime#1935."""
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "# branch.oid $GIT_CONFIG_VALUE_0$GIT_DIR"\n')
    program.chmod(0o700)
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name, value in {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    monkeypatch.setenv("GIT_DIR", "elsewhere")
    assert _git_state(tmp_path) == ("*", False, "")
    program.write_text("#!/bin/sh\necho 'fatal: detected dubious ownership\n  in it' >&2\nexit 128\n")
    assert _git_state(tmp_path) == (None, None, "git says: fatal: detected dubious ownership in it")


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/", {"cpu.max": "150000 100000"}, {1.5}),
        ("0::/user/a.scope", {"user/cpu.max": "200000 100000", "user/a.scope/cpu.max": "max 100000"}, {2.0}),
        ("4:cpu,cpuacct:/x\n0::/", {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, {0.5}),
        ("4:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, set()),
        ("0::/", {"cpu.max": "nonsense"}, set()),
        ("0::/", {"cpu.max": ""}, set()),  # joblib/loky#478
        ("1:net_cls:/\n0::/user.slice/a.scope", {"user.slice/cpu.max": "300000 100000"}, {3.0}),  # joblib/loky#634
    ],
)
def test_a_quota_of_a_control_group_counts(
    tmp_path: Path, group: str, files: dict[str, str], expected: set[float]
) -> None:
    (tmp_path / "own").write_text(f"{group}\n")
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert set(_quotas(tmp_path / "root", tmp_path / "own")) == expected


def test_only_the_allowed_processors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance_module, "_quotas", lambda *_: iter(()))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert usable_cpus() == 3
    monkeypatch.setattr(provenance_module, "_quotas", lambda *_: iter((1.2, 8.0)))
    assert usable_cpus() == 2
    monkeypatch.setattr(provenance_module, "_quotas", lambda *_: iter(()))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cpus() == 1
