"""Learn from Parquet folders that do not fit into memory: rate against pyarrow's reading and casting, and memory.

    scripts/bench/run batches --rows 1000000                      # makes the folder where there is none
    scripts/bench/run batches --rows 20000000 --folder /data/rows # 50 columns, about 4 GB

Each step runs in a process of its own, which says its processor time, its passes over the rows and its peak memory
beyond that of the interpreter with NumPy, so with all that is imported and compiled. A rate is that of one pass. The
first step reads the columns and casts them to floats, as every method has to; the exponent is that of processor time
in rows, from a tenth of them.

`study` reads the folder as a study does: the card of all rows, and the sample from which all of its jobs learn. `jobs`
are those jobs, one after the other; their time does not depend on the rows, so that they have no rate. They take about
a minute of processor time, and up to three where the searches of trimmings use up their time limits, and run only if
--jobs is given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trimbench.networks.batches import Batches

N_BINARY, N_REAL = 30, 20
_FILE_ROWS, _GROUP_ROWS = 1_000_000, 131_072
CATEGORIES = [f"b{place}" for place in range(N_BINARY)]
COLUMNS = [*CATEGORIES, *(f"r{place}" for place in range(N_REAL))]


def make(folder: Path, n_rows: int) -> None:
    """Write files of a million rows each: zeros and ones as bytes, real values as floats, and a class."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, n_rows, _FILE_ROWS):
        rng, n = np.random.default_rng(start), min(_FILE_ROWS, n_rows - start)
        kinds = rng.integers(0, 6, n)
        classes = (kinds % 2).astype(np.int8)
        rates = np.random.default_rng(0).uniform(0.1, 0.9, (6, N_BINARY)).astype(np.float32)
        centres = np.random.default_rng(1).normal(size=(6, N_REAL))
        columns: dict[str, Any] = {"y": classes}
        for place in range(N_BINARY):
            columns[f"b{place}"] = (rng.random(n, dtype=np.float32) < rates[kinds, place]).astype(np.int8)
        for place in range(N_REAL):
            columns[f"r{place}"] = rng.standard_normal(n) + centres[kinds, place]
        path = folder / f"{start // _FILE_ROWS:05d}.parquet"
        parquet.write_table(
            pa.table(columns), path, row_group_size=_GROUP_ROWS, compression="zstd", compression_level=1
        )


class Passes:
    """A dataset that counts how often it is passed over, and up to how many rows of it."""

    def __init__(self, folder: Path, n_rows: int) -> None:
        from pyarrow import dataset

        self.files = sorted(folder.glob("*.parquet"))[: -(-n_rows // _FILE_ROWS)]
        self.dataset, self.n_rows, self.n = dataset.dataset(self.files), n_rows, 0

    def as_folder(self, folder: Path) -> Path:
        """Make a folder of these rows: links to files, and a copy of the rows of a part of one."""
        import pyarrow as pa
        from pyarrow import parquet

        folder.mkdir()
        left = self.n_rows
        for file in self.files:
            if left >= parquet.ParquetFile(file).metadata.num_rows:
                (folder / file.name).symlink_to(file.resolve())
            else:
                few = next(parquet.ParquetFile(file).iter_batches(left))
                parquet.write_table(pa.Table.from_batches([few]), folder / file.name, row_group_size=_GROUP_ROWS)
            left -= parquet.ParquetFile(file).metadata.num_rows
        return folder

    def batches(self, columns: list[str] | None = None) -> Batches:
        """Return batches of the rows."""
        return Batches(self._begin, None if columns is None else tuple(columns))

    def _begin(self, columns: Sequence[str] | None) -> Iterator[Any]:
        self.n += 1
        left = self.n_rows
        for frame in Batches.of(self.dataset, columns):
            yield frame.iloc[:left]
            left -= len(frame)
            if left <= 0:
                return


def classifier() -> Any:
    """Return weights for all columns, as those of a regression that was fitted elsewhere."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression()
    rng = np.random.default_rng(2)
    fitted.coef_, fitted.intercept_ = rng.normal(size=(1, len(COLUMNS))) / 10, np.zeros(1)
    fitted.classes_, fitted.feature_names_in_ = np.array([0, 1]), np.array(COLUMNS, dtype=object)
    return fitted


def step(name: str, rows: Passes) -> Any:
    """Run a step, and return what it found."""
    import pyarrow as pa

    import trimbench as tb

    real = list(range(N_BINARY, len(COLUMNS)))
    if name in ("study", "jobs"):
        return study(rows, with_jobs=name == "jobs")
    if name.startswith("read"):
        columns, left = [*CATEGORIES, "y"] if name == "read categories" else COLUMNS, rows.n_rows
        rows.n = 1
        for batch in rows.dataset.to_batches(
            columns=columns, batch_size=_GROUP_ROWS, batch_readahead=2, fragment_readahead=1
        ):
            for column in batch.columns:
                column.cast(pa.float64())
            left -= batch.num_rows
            if left <= 0:
                return None
        return None
    if name == "learn":
        return tb.learn(rows.batches(CATEGORIES), "y").prior.tolist()
    n_components = int(name.split()[1])
    model = tb.conform(classifier(), rows.batches(), real=real, n_components=n_components, covariance="diagonal")
    return model.residual


def study(rows: Passes, *, with_jobs: bool) -> Any:
    """Read the folder as a study does, and run its jobs if asked to; return what the card says of the class."""
    from trimbench.papers.own_table.settings import StudySettings, keep_table
    from trimbench.papers.own_table.study import prepared
    from trimbench.reproduction.configuration import Catalogue
    from trimbench.reproduction.data.cache import Cache
    from trimbench.reproduction.execution.code_hash import resolve
    from trimbench.reproduction.vocabulary.cells import Inputs

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        began = time.process_time()
        plan = prepared(rows.as_folder(Path(scratch) / "rows"), "y", None, StudySettings())
        cache = Cache.from_environment(offline=True)
        keep_table(plan.table, cache)
        rows.n = 1
        found: dict[str, Any] = {"reading": time.process_time() - began, "class": plan.table.card[0].values}
        for cell in plan.cells(Inputs(Catalogue(), cache)) if with_jobs else ():
            began = time.process_time()
            resolve(cell.job.function)(**cell.job.parameters)
            of_step = f"{cell.labels['step']}"
            found[of_step] = found.get(of_step, 0.0) + time.process_time() - began
        return found


STEPS = ("read categories", "learn", "read", "study", "conform 1", "conform 5")


def child(name: str, folder: Path, n_rows: int) -> None:
    """Run one step and print what it took."""
    before = _status("VmRSS")  # of the interpreter and NumPy
    if name != "jobs":
        step(name, Passes(folder, 2_000))  # compiles and imports
    rows = Passes(folder, n_rows)
    start, began = time.process_time(), time.perf_counter()
    found = step(name, rows)
    seconds = time.process_time() - start
    wall = time.perf_counter() - began
    print(
        json.dumps(
            {"seconds": seconds, "wall": wall, "passes": rows.n, "MiB": _status("VmHWM") - before, "found": found}
        )
    )


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def measured(name: str, folder: Path, n_rows: int) -> dict[str, Any]:
    """Run a step in a process of its own."""
    words = [
        sys.executable,
        "-m",
        "scripts.bench.batches",
        "--step",
        name,
        "--folder",
        str(folder),
        "--rows",
        str(n_rows),
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=STEPS, help="some steps, and those they are compared with")
    parser.add_argument("--jobs", action="store_true", help="run the jobs of a study, too, once")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        child(given.step, given.folder, given.rows)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        if not list(folder.glob("*.parquet")):
            make(folder, given.rows)
        size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
        print(f"{given.rows:,} rows x {len(COLUMNS)} columns, {size / 2**20:,.0f} MiB of files")
        per_pass: dict[str, float] = {}
        wanted = {"read", *(given.only or STEPS), *(["read categories"] if "learn" in (given.only or ()) else [])}
        for name in [one for one in STEPS if one in wanted]:
            few, many = (measured(name, folder, n) for n in (given.rows // 10, given.rows))
            per_pass[name] = many["seconds"] / many["passes"]
            exponent = np.log10(per_pass[name] / (few["seconds"] / few["passes"]))
            reading = per_pass["read categories" if name in ("read categories", "learn") else "read"]
            print(
                f"{name}: {many['seconds']:.1f} s of processor ({many['wall']:.1f} s) in {many['passes']} passes, "
                f"{given.rows / per_pass[name]:,.0f} rows a second, {reading / per_pass[name]:.2f} of reading's"
                f" rate, {many['MiB']:.0f} MiB beyond the interpreter, growth {exponent:.2f}",
                flush=True,
            )
        if given.jobs:
            found = measured("jobs", folder, given.rows)
            parts = ", ".join(f"{name} {one:.1f}" for name, one in found["found"].items() if name != "class")
            print(
                f"study with its jobs: {found['seconds']:.1f} s of processor ({parts}), {found['MiB']:.0f} MiB beyond "
                "the interpreter"
            )


if __name__ == "__main__":
    main()
