"""No cell of a table is a formula to a spreadsheet."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.files import _tame, as_it_was, write_csv
from trimbench.papers.reporting.figures.drawing import read_points, write_figures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.vocabulary.figures import LineFigure

FORMULAS = ["=1+2", "@SUM(A1)", "+cmd|'/c calc'!A1", "-3+cmd|x", "- 1+cmd|x", "-1\n", "\t=1", "\n=1", "＝1", "'=1"]
HARMLESS = ["-0.5", "+1e-3", ".5", "-", "a=b", "-inf", "", "'tis", "x;y=1", "a;-1;'b"]


def test_cells_that_begin_like_formulas_are_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": [*FORMULAS, *HARMLESS], "value": -1.5})
    with write_csv(frame, tmp_path / "table.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert {row["value"] for row in rows} == {"-1.5"}


def test_no_cell_begins_like_a_formula_where_semicolons_end_cells(tmp_path: Path) -> None:
    frame = pd.DataFrame([["=1;-2+x;-3", "a;'@b;"]], columns=["x;=SUM(A1)", "y"])
    assert write_csv(frame, tmp_path / "table.csv").read_text() == "x;'=SUM(A1),y\n'=1;'-2+x;-3,a;''@b;\n"


@given(st.text("'=+-@;\t\n1.ea＝"))
def test_what_is_added_can_be_taken_away(text: str) -> None:
    tame = str(_tame(text))
    assert as_it_was(tame) == text
    assert not any(cell[:1] in ("=", "@", "\t", "\n", "＝") for cell in tame.split(";"))


def test_headings_are_text_even_if_they_repeat(tmp_path: Path) -> None:
    frame = pd.DataFrame([["=1", 1, "a"]], columns=["=x", "y", "y"])
    assert write_csv(frame, tmp_path / "table.csv").read_text() == "'=x,y,y\n'=1,1,a\n"


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, None], "b": [0.1, 1e-17]}, dtype=object)
    assert write_csv(frame, tmp_path / "table.csv").read_text() == "a,b\n1,0.1\n,1e-17\n"


def test_points_of_figures_are_read_as_they_were(tmp_path: Path) -> None:
    names = [*FORMULAS, *HARMLESS]
    points = pd.DataFrame({"series": names, "x": -1.0, "y": range(len(names))})
    figure = LineFigure("title", "x", "y", points)
    ((path,), _) = write_figures([figure], tmp_path / "figure", FigureSettings(), drawn=False)
    with path.open(newline="", encoding="utf-8") as stream:
        written = [row["series"] for row in csv.DictReader(stream)]
    assert written == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert [as_it_was(text) for text in written] == names
    assert read_points(path, ["series"])["series"].tolist() == names
