"""Tables in Markdown and LaTeX."""

from __future__ import annotations

import math
import re

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.study.plan import Table
from trimbench.papers.reporting.tables import comparison, latex, markdown, printable
from trimbench.papers.reporting.verdicts import Reported, Rule

FRAME = pd.DataFrame({"name": ["a|b", "x_y & 50%"], "share": [0.25, math.nan], "n": [3, 4]})


def table(frame: pd.DataFrame, **formats: str) -> Table:
    return Table("", "", frame, formats)


def cells(line: str) -> list[str]:
    """Return what a reader of Markdown sees in a line of a table."""
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_formats_and_missing_values() -> None:
    frame = pd.DataFrame({"a": [0.123456, math.nan, None], "b": ["x", None, "y"], "c": [1.5, 2.0, math.inf]})
    shown = printable(table(frame, a=".2f", b=".2f"))
    assert shown.to_dict("list") == {"a": ["0.12", "–", "–"], "b": ["x", "–", "y"], "c": ["1.5", "2.0", "inf"]}
    assert frame["a"].iloc[0] == 0.123456, "the frame itself is not changed"


def test_markdown() -> None:
    assert markdown(table(FRAME, share=".1%")).splitlines() == [
        "| name      |   share |   n |",
        "|-----------|---------|-----|",
        r"| a\|b      |   25.0% |   3 |",
        "| x_y & 50% |       – |   4 |",
    ]


def test_latex_of_signs_is_ascii() -> None:
    text = latex(table(pd.DataFrame({"P(x | c) ±": ["0.5 → 0.4", None]})))
    assert text.isascii()
    assert r"P(x \ensuremath{|} c) \ensuremath{\pm}" in text
    assert r"0.5 \ensuremath{\to} 0.4" in text
    assert "--" in text


def test_latex() -> None:
    text = latex(table(FRAME.rename(columns={"name": "the_name & more"}), share=".1%"))
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"the name \& more & share & n \\",
        r"\midrule",
        r"a\ensuremath{|}b & 25.0\% & 3 \\",
        r"x\_y \& 50\% & -- & 4 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


text = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\\"), min_size=1, max_size=12)


@given(st.lists(st.tuples(text, text), min_size=1, max_size=4))
def test_what_stands_in_a_markdown_cell_stays_there(rows: list[tuple[str, str]]) -> None:
    lines = markdown(table(pd.DataFrame(rows, columns=["a|b", "c"]))).splitlines()
    assert [cells(line) for line in lines[:1] + lines[2:]] == [["a|b", "c"], *map(list, rows)]


def test_line_ends_do_not_break_a_markdown_row() -> None:
    lines = markdown(table(pd.DataFrame({"error": ["first\n\n  second", "x"]}))).splitlines()
    assert lines[2:] == ["| first second |", "| x            |"]


def test_empty_frames() -> None:
    without_rows = table(pd.DataFrame(columns=["a", "b"]))
    assert [cells(line) for line in markdown(without_rows).splitlines()[::2]] == [["a", "b"]]
    assert latex(without_rows).splitlines()[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert markdown(table(pd.DataFrame())) == latex(table(pd.DataFrame())) == ""


def number(key: str, printed: str = "0.50", kind: str = "exact") -> Reported:
    return Reported("A paper", key, printed, Rule(kind))


def test_comparison() -> None:
    compared = comparison(
        [number("a/x"), number("b/x"), number("c/x"), number("d/x", "timeout", "at_most")],
        {"a/x": 0.5, "b/x": 0.7, "d/x": 12.0, "z/x": 1.0},
        "data not available: heart",
    )
    assert compared.frame["cell"].tolist() == ["a/x", "b/x", "c/x", "d/x"]
    assert compared.frame["verdict"].tolist() == ["exact", "differs", "not attempted", "trend"]
    assert compared.frame["reason"].tolist()[1:3] == ["no reason is known", "data not available: heart"]
    assert compared.frame["reported"].tolist() == ["0.50", "0.50", "0.50", "timeout"], "digits as printed"


def test_comparison_without_a_known_reason() -> None:
    assert comparison([number("c/x")], {}, "").frame["reason"].tolist() == ["not computed in this run"]
    assert comparison([number("c/x")], {"c/x": None}, "").frame["verdict"].tolist() == ["not attempted"]
    assert list(comparison([], {}, "").frame.columns) == [
        *("source", "cell", "reported", "reproduced", "verdict", "reason")
    ]
