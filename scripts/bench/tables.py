"""Time the reading of a messy table of 50,000 rows and 22 columns, up to the card of every column. Takes seconds."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd  # noqa: F401 - so that its import is not measured
import pyarrow as pa  # noqa: F401

from trimbench.papers.own_table.table_reading import read_table
from trimbench.papers.own_table.table_texts import TableSettings

N_ROWS, N_LABS = 50_000, 12
LIMIT = 10.0


def messy_table(n_rows: int, n_labs: int = 2, seed: int = 0) -> str:
    """Return a table with decimal commas, dates, many cities, "<5", missing values, a leak and a row twice."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(["healthy", "ill", "unclear"], n_rows, p=[0.6, 0.3, 0.1])
    is_ill = classes == "ill"
    dates = rng.integers((1, 1, 2010), (29, 13, 2024), size=(n_rows, 3))
    columns = {
        "patient": [f"P{row:06d}" for row in range(n_rows)],
        "admitted": [f"{day:02d}.{month:02d}.{year}" for day, month, year in dates],
        "city": [f"Stadt {city}" for city in rng.integers(0, 3000, n_rows)],
        "crp": np.where(rng.random(n_rows) < 0.04, "<5", _commas(rng.gamma(2, 10, n_rows) + 5, 1)).tolist(),
        "age": [str(age) for age in rng.integers(18, 95, n_rows)],
        "smoker": rng.choice(["ja", "nein", "Ja"], n_rows, p=[0.3, 0.68, 0.02]).tolist(),
        "ward": rng.choice(["Nord", "Süd", "Ost"], n_rows).tolist(),
        **{f"lab{lab}": _commas(rng.normal(10**lab, 10**lab / 3, n_rows) + is_ill, 3) for lab in range(n_labs)},
        "code": [{"healthy": "0", "ill": "1", "unclear": "2"}[name] for name in classes],
        "study": ["x"] * n_rows,
        "diagnosis": classes.tolist(),
    }
    for name in (one for one in columns if one not in ("patient", "code", "study")):
        for row in rng.choice(n_rows, n_rows // 50, replace=False):
            columns[name][row] = ("", "NA", "?")[row % 3]
    rows = list(zip(*columns.values(), strict=True))
    rows[100] = rows[99]
    return "\n".join(";".join(row) for row in [tuple(columns), *rows])


def _commas(values: np.ndarray, decimals: int) -> list[str]:
    return [f"{value:.{decimals}f}".replace(".", ",") for value in values]


def memory() -> float:
    """Return the most memory that this process has had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(path: Path) -> None:
    path.write_text(messy_table(N_ROWS, N_LABS), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messy.csv"
        # In a process of its own, whose memory does not count.
        writer = multiprocessing.get_context("spawn").Process(target=write, args=(path,))
        writer.start()
        writer.join()
        before, start = memory(), time.process_time()
        table = read_table(path, "diagnosis", TableSettings(id="patient"))
        seconds, more = time.process_time() - start, memory() - before
        size = f"{path.stat().st_size / 1e6:.1f} MB, {N_ROWS:,} rows, {len(table.card)} columns"
        print(f"{size}, {len(table.repairs)} repairs: {seconds:.2f} s of processor time (limit {LIMIT:g} s)")
        print(f"memory: {before:.0f} MB before (Python, pandas, pyarrow), {more:.0f} MB more while reading")


if __name__ == "__main__":
    main()
