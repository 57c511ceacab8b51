"""No cell of a table is a formula to a spreadsheet."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from trimbench.papers.reporting.whole_files import write_csv

FORMULAS = ["=1+2", "@SUM(A1)", "+cmd|'/c calc'!A1", "-3+cmd|x", "\t=1"]
HARMLESS = ["-0.5", "+1e-3", ".5", "-", "a=b", "- none", "-inf", ""]


def test_cells_that_begin_like_formulas_are_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": [*FORMULAS, *HARMLESS], "value": -1.5})
    with write_csv(frame, tmp_path / "table.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert {row["value"] for row in rows} == {"-1.5"}
