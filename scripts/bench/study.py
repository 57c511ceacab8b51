"""Measure a study of a messy table of 50,000 rows: processor time up to the card, and of everything with ``--whole``.

The card takes seconds, the whole study minutes. ``--print`` shows what they say, ``--keep=messy.csv`` keeps the table.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import trimbench

from .tables import messy_table

N_ROWS, N_LABS = 50_000, 3
CARD_LIMIT, WALL_LIMIT = 10.0, 300.0
# Numbers of rows with -999, and with a unit; the places of rows that occur twice.
SENTINELS, UNITS, TWICE = 40, 25, range(210, 220)


def messier_table(n_rows: int, n_labs: int, seed: int = 0) -> str:
    """Return `messy_table` with more: codes for missing values, units, two spellings, long codes, names of blanks.

    `messy_table` has an identifier that occurs twice, German dates, 3,000 cities, "<5", missing values,
    decimal commas, semicolons, three classes, umlauts, a column that knows the class, a constant, a row twice.
    """
    rng = np.random.default_rng(seed)
    header, *rows = (line.split(";") for line in messy_table(n_rows, n_labs, seed).split("\n"))
    weight = [f"{value:.1f}".replace(".", ",") for value in rng.normal(75, 12, n_rows)]
    for row in rng.choice(n_rows, UNITS, replace=False):
        weight[row] += " kg"
    pressure = rng.integers(90, 180, n_rows)
    pressure[rng.choice(n_rows, SENTINELS, replace=False)] = -999
    region = rng.choice(["Nord", "Süd", "nord", "unbekannt"], n_rows, p=[0.5, 0.4, 0.05, 0.05])
    barcode = 9_007_199_254_740_993 + rng.integers(0, 30, n_rows)
    more = {" weight ": weight, "pressure": pressure, "region": region, "barcode": barcode, "": range(1, n_rows + 1)}
    header = [*header[:-1], *more, header[-1]]
    added = zip(*more.values(), strict=True)
    full = [[*row[:-1], *map(str, new), row[-1]] for row, new in zip(rows, added, strict=True)]
    for place in TWICE:  # but for the number of the row, which stands before the class
        first = full[place - len(TWICE)]
        full[place] = [*first[:-2], full[place][-2], first[-1]]
    return "\n".join(";".join(line) for line in [header, *full]) + "\n"


# What the command does up to the card, with all that it imports.
CARD = """
import sys
from trimbench.reproduction.commands import tasks
from trimbench.papers.own_table.study import prepared
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.tables import card_of
from trimbench.reproduction.reporting.tables import markdown

plan = prepared(sys.argv[1], "diagnosis", None, StudySettings(encoding="cp1252", id="patient"))
print(markdown(card_of(plan.table)), "", *(f"- {line}" for line in plan.table.repairs), sep="\\n")
"""


@dataclass(frozen=True)
class Taken:
    """What a command took, with all of its processes, and what it printed."""

    user: float
    system: float
    wall: float
    out: str

    def __str__(self) -> str:
        return f"{self.user:.1f} s user, {self.system:.1f} s system, {self.wall:.1f} s in all"


def taken_by(arguments: list[str], folder: Path) -> Taken:
    """Run Python with arguments."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(trimbench.__file__).parents[1]),
        "TRIMBENCH_CACHE": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return Taken(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wall, done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="measure the whole study, too")
    parser.add_argument("--print", action="store_true", help="print the card, and what the study says")
    parser.add_argument("--keep", type=Path, help="where to write the table")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "cache").mkdir()
        path = asked.keep.absolute() if asked.keep else folder / "messy.csv"
        path.write_text(messier_table(N_ROWS, N_LABS), encoding="cp1252")
        card = taken_by(["-c", CARD, str(path)], folder)
        if asked.print:
            print(card.out)
        print(f"card of {N_ROWS:,} rows, {path.stat().st_size / 1e6:.1f} MB: {card} (limit {CARD_LIMIT:g} s user)")
        if asked.whole:
            study = ["task=study", f"data={path}", "target=diagnosis", "encoding=cp1252", "id=patient"]
            whole = taken_by(["-m", "trimbench", *study], folder)
            if asked.print:
                print(whole.out)
            print(f"whole study on {os.cpu_count()} cores: {whole} (limit {WALL_LIMIT:g} s in all on 2 cores)")


if __name__ == "__main__":
    main()
