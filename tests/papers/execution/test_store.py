import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.execution import Job, JobStore, Record
from trimbench.papers.execution.temporary import host, temporary_name

from . import sample_jobs

JOB = Job.create(sample_jobs.square, {"x": 3.0})
OTHER = Job.create(sample_jobs.square, {"x": 4.0})
OK = Record(JOB, "ok", {"square": 9.0, "text": "朴素 naïve"}, None, 0.25, {"python": "3"})
FAILED = Record(JOB, "failed", None, "ValueError: é", 0.5, {})


def files(store: JobStore) -> list[str]:
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file() and path.name != "lock")


results = st.dictionaries(
    st.text(),
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.lists(st.text()),
)


@given(results, st.text(), st.floats(0, 1e9))
def test_a_record_survives_its_text(result: dict[str, Any], error: str, seconds: float) -> None:
    for record in (
        Record(JOB, "ok", result, None, seconds, {"a": [error]}),
        Record(JOB, "timeout", None, error, seconds, {}),
    ):
        assert Record.from_json(record.to_json()) == record
        assert Record.from_json(record.to_json().encode()).job.key == JOB.key


def test_the_mark_of_a_cached_record_is_not_written() -> None:
    cached = replace(OK, cached=True)
    assert cached == OK
    assert cached.to_json() == OK.to_json()
    assert not Record.from_json(cached.to_json()).cached


@pytest.mark.parametrize(("status", "result"), [("ok", None), ("failed", {}), ("missing", {"a": 1})])
def test_only_successes_have_results(status: str, result: Any) -> None:
    with pytest.raises(ValueError, match="result must be a dict exactly when status is 'ok', got"):
        Record(JOB, status, result, None, 0.0, {})


def test_status_is_one_of_five() -> None:
    with pytest.raises(ValueError, match=r"status must be one of ok, failed, timeout, .*, got 'done'"):
        Record(JOB, "done", None, None, 0.0, {})


def test_a_stored_record_is_found_again_where_it_should_be(store: JobStore) -> None:
    assert store.get(JOB) is None
    store.put(OK)
    assert (store.folder / JOB.key[:2] / f"{JOB.key}.json").is_file()
    assert JobStore(store.folder).get(JOB) == OK
    assert store.get(OTHER) is None
    assert files(store) == [f"{JOB.key}.json"]


def test_failures_are_stored_but_are_not_successes(store: JobStore) -> None:
    store.put(FAILED)
    store.put(replace(OK, job=OTHER))
    assert store.get(JOB) == FAILED
    assert store.successes([JOB, OTHER]) == {OTHER.key: replace(OK, job=OTHER)}
    store.put(OK)
    assert set(store.successes([JOB, OTHER])) == {JOB.key, OTHER.key}


def test_a_missing_record_is_not_stored(store: JobStore) -> None:
    with pytest.raises(ValueError, match="must be one of ok, failed, timeout, crashed, got 'missing'"):
        store.put(Record(JOB, "missing", None, "none", 0.0, {}))
    assert not store.folder.exists()


def damaged_texts() -> list[bytes]:
    whole = OK.to_json().encode()
    fields = json.loads(whole)
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
    texts += [
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"\0" * 200,
        replace(OK, job=OTHER).to_json().encode(),
    ]
    texts += [json.dumps({key: value for key, value in fields.items() if key != left}).encode() for left in fields]
    return texts + [json.dumps({**fields, **change}).encode() for change in changes]


@pytest.mark.parametrize("text", damaged_texts())
def test_a_damaged_file_counts_as_missing_and_is_overwritten(store: JobStore, text: bytes) -> None:
    store.put(OK)
    store.path(JOB).write_bytes(text)
    assert store.get(JOB) is None
    assert store.successes([JOB]) == {}
    store.put(OK)
    assert store.get(JOB) == OK


def test_an_unreadable_file_counts_as_missing(store: JobStore) -> None:
    store.path(JOB).mkdir(parents=True)
    assert store.get(JOB) is None
    with pytest.raises(OSError, match="cannot write to the folder of results"):
        store.put(OK)
    assert files(store) == []


def test_a_folder_that_cannot_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = JobStore(tmp_path / "file" / "records")
    assert store.get(JOB) is None
    for write in (lambda: store.put(OK), store.ensure_writable):
        with pytest.raises(OSError, match=r"folder of results '.*file/records': .*; make it writable, free space"):
            write()


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
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


def test_probing_leaves_nothing_behind(store: JobStore) -> None:
    store.ensure_writable()
    assert store.folder.is_dir()
    assert files(store) == []


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_opening_sweeps_the_files_of_dead_writers_only(store: JobStore) -> None:
    store.put(OK)
    sub = store.path(JOB).parent
    dead = dead_process()
    old = (
        sub / f"a.elsewhere.{dead}.00.tmp",
        sub / f"a.{host()}.{dead}.00.tmp",
        store.folder / f"p.{host()}.{dead}.0.tmp",
    )
    kept = (
        sub / temporary_name("mine"),
        sub / f"a.{host()}.{os.getppid()}.00.tmp",
        sub / f"b.elsewhere.{dead}.00.tmp",
        sub / "notes.tmp",
    )
    for path in (*old, *kept):
        path.write_text("{")
    os.utime(old[0], (0, 0))
    JobStore(store.folder)
    assert [path for path in old if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []
    assert store.get(JOB) == OK


def test_a_sweep_that_may_not_remove_is_silent(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(OK)
    stale = store.path(JOB).with_name(f"a.{host()}.{dead_process()}.00.tmp")
    stale.write_text("{")

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


WRITER = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from importlib import import_module
from trimbench.papers.execution import Job, JobStore, SerialExecutor, run_jobs
jobs = import_module({module!r})
if __name__ == "__main__":
    for _ in range(5):
        store = JobStore(Path({folder!r}))
        sweep = [Job.create(jobs.draw, {{"repetition": n}}) for n in range(20)]
        records = run_jobs(sweep, store, SerialExecutor(), cache_mode="ignore", progress=False)
        assert all(record.ok for record in records)
"""


def test_two_processes_may_write_one_store(store: JobStore) -> None:
    script = WRITER.format(paths=sys.path, module=sample_jobs.__name__, folder=str(store.folder))
    writers = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    jobs = [Job.create(sample_jobs.draw, {"repetition": n}) for n in range(20)]
    assert {key: record.result for key, record in store.successes(jobs).items()} == {
        job.key: sample_jobs.draw(**job.parameters) for job in jobs
    }
    assert len(files(store)) == 20
