"""What was changed in a stored file is told, and no result says more than its function declares."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

from trimbench.papers.execution.job import COUNT, Job, check_result, declare_result
from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import JobStore, Record, read_earlier_arrays, remember
from trimbench.papers.execution.workers import SerialExecutor

from . import sample_jobs

SQUARE = f"{sample_jobs.__name__}:square"


def test_an_edited_result_is_told_and_runs_again(store: JobStore, caplog: pytest.LogCaptureFixture) -> None:
    job = Job.create(sample_jobs.square, {"x": 3.0})
    (first,) = run_jobs([job], store, SerialExecutor(), progress=False)
    path = store.path(job)
    path.write_bytes(path.read_bytes().replace(b'"square":9.0', b'"square":7.5'))
    (second,) = run_jobs([job], store, SerialExecutor(), progress=False)
    assert second.result == first.result
    assert not second.cached
    assert job.key in caplog.text
    assert store.get(job) == second


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
        check_result(SQUARE, {column: 1})
    with pytest.raises(ValueError, match=f"must not be called .'{column}'"):
        declare_result(sample_jobs.square, {column: COUNT})


def test_a_run_that_ignores_what_is_stored_reads_no_earlier_arrays() -> None:
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
    job = Job.create(sample_jobs.square, {"x": 3.0})
    store.path(job).mkdir(parents=True)
    (store.path(job) / "note").write_text("mine")
    (record,) = run_jobs([job], store, SerialExecutor(), progress=False)
    assert record.ok
    assert store.get(job) == record
    assert [path.read_text() for path in store.folder.rglob("note")] == ["mine"]
