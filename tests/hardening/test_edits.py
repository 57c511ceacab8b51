"""An edit of any single byte of a stored file is noticed: of records, remembered arrays and the tables of studies."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.reproduction.execution import sample_jobs
from trimbench.papers.own_table.settings import _found, keep_table
from trimbench.papers.own_table.table_reading import read_table
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.job import Job, run_job_function
from trimbench.reproduction.execution.store import JobStore, KeptArrays, Record, remember

# Writes a file below a folder, and returns it with what reads it: None where an edit is noticed.
Stored = Callable[[Path], tuple[Path, Callable[[], object]]]


def record(folder: Path) -> tuple[Path, Callable[[], object]]:
    store, job = JobStore(folder), Job.create(sample_jobs.square, {"x": 3.0})
    store.put(Record(job, "ok", run_job_function(job), None, 0.25, {"python": "3"}))
    return store.path(job), lambda: store.get(job)


def arrays(folder: Path) -> tuple[Path, Callable[[], object]]:
    rng = np.random.default_rng(0)
    kept = {"weights": rng.normal(size=(4, 3)), "counts": rng.integers(0, 9, 2), "known": rng.random((3, 3)) < 0.5}
    remember("edited", {}, lambda: kept | {"rows": rng.normal(size=5).astype(np.float32)})
    (path,) = folder.rglob("*.npz")
    return path, KeptArrays.of("edited", {}).read


def table_of_a_study(folder: Path) -> tuple[Path, Callable[[], object]]:
    rng = np.random.default_rng(1)
    wards = rng.choice(list("xyz"), 12)
    read = read_table(pd.DataFrame({"dose": rng.normal(size=12), "ward": wards, "state": list("aab") * 4}), "state")
    keep_table(read, cache := Cache((), folder))
    (path,) = folder.rglob("*.table")
    return path, lambda: _found(read.sha256, cache)


@pytest.mark.parametrize(("stored", "every"), [(record, 1), (arrays, 1), (table_of_a_study, 5)])
def test_an_edit_of_any_byte_is_noticed(
    stored: Stored, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path, read = stored(tmp_path)
    assert read() is not None
    whole, rng, missed = path.read_bytes(), random.Random(0), []
    logging.disable(logging.CRITICAL)  # a warning for each edit
    try:
        for place in range(0, len(whole), every):
            edited = bytearray(whole)
            edited[place] ^= rng.randint(1, 255)
            path.write_bytes(edited)
            missed += [place] if read() is not None else []
    finally:
        logging.disable(logging.NOTSET)
    assert missed == []
