"""Tables as text and in Markdown, and tables of verdicts."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.reporting.tables import asked, comparison, differences, latex, markdown, printable, side_by_side
from trimbench.papers.reporting.verdicts import compare
from trimbench.papers.vocabulary.numbers import Explanation, Number, Probability
from trimbench.papers.vocabulary.tables import Table

from .builders import judged, reported

FRAME = pd.DataFrame({"name": ["a|b", "x_y & 50%"], "share": [0.25, math.nan], "n": [3, 4]})


def table(frame: pd.DataFrame, **formats: str) -> Table:
    return Table("", frame, formats)


def cells(line: str) -> list[str]:
    """Return the cells of a line as a reader of Markdown sees them."""
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


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


text = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\\"), min_size=1, max_size=12)


@given(st.lists(st.tuples(text, text), min_size=1, max_size=4))
def test_text_stays_in_its_markdown_cell(rows: list[tuple[str, str]]) -> None:
    lines = markdown(table(pd.DataFrame(rows, columns=["a|b", "c"]))).splitlines()
    assert [cells(line) for line in lines[:1] + lines[2:]] == [["a|b", "c"], *map(list, rows)]


def test_line_breaks_do_not_end_a_markdown_row() -> None:
    lines = markdown(table(pd.DataFrame({"error": ["first\n\n  second", "x"]}))).splitlines()
    assert lines[2:] == ["| first second |", "| x            |"]


def test_empty_frames() -> None:
    without_rows = table(pd.DataFrame(columns=["a", "b"]))
    assert [cells(line) for line in markdown(without_rows).splitlines()[::2]] == [["a", "b"]]
    assert markdown(table(pd.DataFrame())) == ""


NUMBERS = [
    reported("a", "0.50"),
    reported("b", "0.50"),
    reported("c", "0.50"),
    reported("d", "timeout", "at_most", subject="time"),
]
JUDGEMENTS = judged(NUMBERS, {"a": 0.5, "b": 0.7, "c": None, "d": 12.0})


def test_comparison() -> None:
    compared = comparison(JUDGEMENTS).frame
    assert compared["cell"].tolist() == ["a/value", "b/value", "c/value", "d/value"]
    assert compared["verdict"].tolist() == ["exact", "differs", "not attempted", "faster"]
    assert compared["reason"].tolist()[1:3] == ["no reason is known", "not computed in this run"]
    assert compared["subject"].tolist() == ["number", "number", "number", "time"]
    assert compared["reported"].tolist() == ["0.50", "0.50", "0.50", "timeout"], "digits as printed"
    assert list(comparison([]).frame) == [
        *("source", "cell", "subject", "reported", "reproduced", "verdict", "reason"),
        *("cause", "explained_by", "explained_value", "probability"),
    ]
    assert compared["cause"].tolist() == ["", "unexplained", "", ""]
    assert comparison(compare(NUMBERS[:1], (), "no data")).frame["reason"].tolist() == ["no data"]


def test_differences_are_listed_with_their_reasons() -> None:
    found = differences(JUDGEMENTS).frame
    assert found.drop(columns=["explained_value", "probability"]).to_dict("records") == [
        {
            **{"cell": "b/value", "reported": "0.50", "reproduced": 0.7},
            **{"cause": "unexplained", "reason": "no reason is known"},
        }
    ]
    assert found[["explained_value", "probability"]].isna().all(axis=None)
    assert differences([]).frame.empty


def test_claims_that_fail_and_longer_times_are_listed_too() -> None:
    numbers = [reported("a", "0", "at_least", subject="claim"), reported("b", "1.5", "at_most", subject="time")]
    assert differences(judged(numbers, {"a": -1.0, "b": 2.0})).frame["cell"].tolist() == ["a/value", "b/value"]
    assert differences(judged(numbers, {"a": 1.0, "b": 1.0})).frame.empty


def test_side_by_side_has_the_shape_of_the_papers_table() -> None:
    beside = side_by_side(JUDGEMENTS)
    assert list(beside.frame) == ["row", "value"]
    assert beside.frame["row"].tolist() == ["a", "b", "c", "d"]
    assert beside.frame["value"].tolist() == [
        "0.50 → 0.5",
        "0.50 → 0.7 (differs, unexplained)",
        "0.50 → –",
        "timeout → 12",
    ]


@pytest.mark.parametrize(
    ("printed", "rule", "shown"),
    [
        ("0.50", {"kind": "at_least"}, "0.50"),
        ("12.66", {"kind": "at_most", "subject": "time"}, "12.66"),
        ("0.000000", {"kind": "at_least", "subject": "claim"}, "≥ 0"),
        ("1.000", {"kind": "at_most", "subject": "claim"}, "≤ 1"),
        ("0.00", {"kind": "within", "tolerance": 0.02, "subject": "curve"}, "≤ 0.02"),
        ("0.00", {"kind": "within", "tolerance": 0.02, "subject": "claim"}, "0 ± 0.02"),
        ("4", {"kind": "exact", "subject": "claim"}, "4"),
    ],
)
def test_a_claim_in_words_is_not_shown_as_a_printed_number(printed: str, rule: dict[str, Any], shown: str) -> None:
    number = reported("a", printed, **rule)
    assert asked(number) == shown
    (cell,) = side_by_side(judged([number], {"a": 0.75})).frame["value"]
    assert cell.split(" → ")[0] == shown
    assert latex(side_by_side(judged([number], {"a": 0.75})), "tab:x").isascii()


def test_inferred_values_and_probabilities_are_columns() -> None:
    number = Number("a", "value", 9.0, explanation=Explanation("twice", 1.04), probability=Probability(0.25, 0.01))
    (line,) = comparison(compare([reported("a", "1.0")], [number])).frame.to_dict("records")
    assert (line["verdict"], line["cause"], line["explained_by"]) == ("differs", "explained", "twice")
    assert (line["explained_value"], line["probability"], line["reproduced"]) == (1.04, 0.25, 9.0)
    (difference,) = differences(compare([reported("a", "1.0")], [number])).frame.to_dict("records")
    assert difference["reason"] == "inferred set-up: twice"
