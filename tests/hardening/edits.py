"""Edit every single byte of stored records, arrays and tables, and count the edits that are not noticed."""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tests.papers.execution import sample_jobs
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.table_reading import read_table
from trimbench.papers.execution.job import Job, run_job_function
from trimbench.papers.execution.store import JobStore, Record, _read, remember
from trimbench.papers.own_table.settings import _found, keep_table

Read = Callable[[], object]


def unnoticed(path: Path, read: Read, rng: random.Random, every: int = 1) -> tuple[int, list[int]]:
    """Edit every so many bytes of a file, one at a time; return the number of edits, and the places not noticed.

    Each byte gets another value at random. `read` reads the file; None says that it noticed the edit.
    """
    whole = path.read_bytes()
    if read() is None:
        raise ValueError(f"{path} is not read as it is")
    places = range(0, len(whole), every)
    missed = []
    for place in places:
        edited = bytearray(whole)
        edited[place] ^= rng.randint(1, 255)
        path.write_bytes(edited)
        if read() is not None:
            missed.append(place)
    path.write_bytes(whole)
    return len(places), missed


def records(folder: Path, n: int) -> Iterator[tuple[Path, Read]]:
    """Yield the files of so many records, and what reads each."""
    store = JobStore(folder / "records")
    for x in range(n):
        job = Job.create(sample_jobs.square, {"x": float(x)})
        store.put(Record(job, "ok", run_job_function(job), None, 0.25 + x, {"python": "3"}))
        yield store.path(job), lambda job=job: store.get(job)  # type: ignore[misc]


def arrays(folder: Path, n: int) -> Iterator[tuple[Path, Read]]:
    """Yield the files of so many remembered arrays, and what reads each; they must be remembered below `folder`."""
    rng = np.random.default_rng(0)
    for x in range(n):
        kept = {
            "weights": rng.normal(size=(4, x + 1)),
            "counts": rng.integers(0, 9, x),
            "known": rng.random((3, 3)) < 0.5,
            "rows": rng.normal(size=5 * x).astype(np.float32),
        }
        before = set(folder.rglob("*.npz"))
        remember("edited", {"x": x}, lambda kept=kept: kept)  # type: ignore[misc]
        (path,) = set(folder.rglob("*.npz")) - before
        yield path, lambda path=path: _read(path)  # type: ignore[misc]


def tables(folder: Path, n: int) -> Iterator[tuple[Path, Read]]:
    """Yield the files of so many tables of studies, and what reads each."""
    rng = np.random.default_rng(1)
    cache = Cache((), folder / "tables")
    for _ in range(n):
        frame = pd.DataFrame(
            {"dose": rng.normal(size=12), "ward": rng.choice(list("xyz"), 12), "state": list("aab") * 4}
        )
        table = read_table(frame, "state")
        before = set(folder.rglob("*.feather"))
        keep_table(table, cache)
        (path,) = set(folder.rglob("*.feather")) - before
        yield path, lambda sha256=table.sha256: _found(sha256, cache)  # type: ignore[misc]


def main(arguments: Sequence[str] | None = None) -> int:
    """Edit files of all kinds; the exit code is 1 if an edit is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.edits", description=__doc__)
    parser.add_argument("--records", type=int, default=50, help="how many (default: 50)")
    parser.add_argument("--arrays", type=int, default=5, help="how many files of arrays (default: 5)")
    parser.add_argument("--tables", type=int, default=2, help="how many tables of studies (default: 2)")
    parser.add_argument("--every", type=int, default=1, help="edit every so many bytes (default: 1, each)")
    parser.add_argument("--seed", type=int, default=0, help="decides the new values (default: 0)")
    chosen = parser.parse_args(arguments)
    rng, n_missed = random.Random(chosen.seed), 0
    logging.disable(logging.CRITICAL)  # a warning for each edit
    try:
        with tempfile.TemporaryDirectory() as name:
            os.environ["XDG_CACHE_HOME"] = name
            kinds = {
                "records": records(Path(name), chosen.records),
                "files of arrays": arrays(Path(name), chosen.arrays),
                "tables of studies": tables(Path(name), chosen.tables),
            }
            for kind, files in kinds.items():
                results = [unnoticed(path, read, rng, chosen.every) for path, read in files]
                missed = [place for _, places in results for place in places]
                n_missed += len(missed)
                print(
                    f"{len(results)} {kind}: {sum(n for n, _ in results)} edits, {len(missed)} not noticed {missed[:5]}"
                )
    finally:
        logging.disable(logging.NOTSET)
    return int(n_missed > 0)


if __name__ == "__main__":
    sys.exit(main())
