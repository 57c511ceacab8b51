"""Every job function declares what it returns, and published results are like that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trimbench.papers.execution.job import COUNT, SHARE, TEXT, check_result, declare_result, declared_results

from . import sample_jobs
from .test_code_hash import JOBS

SQUARE = f"{sample_jobs.__name__}:square"
FUNCTIONS = [name for name in JOBS if not name.startswith("trimbench.papers.own_table.")]  # whose tables vary


def test_all_are_found() -> None:
    assert len(FUNCTIONS) >= 32


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_job_function_declares_its_result(function: str) -> None:
    declared = declared_results(function)
    assert declared
    assert all(declared)
    with pytest.raises(ValueError, match="is not what it declares"):
        check_result(function, {"agreement": 7.5})


def test_a_pattern_stands_for_the_other_names() -> None:
    declare_result(SQUARE, {"*_share": SHARE, "whole_share": COUNT, "title": TEXT})
    try:
        check_result(SQUARE, {"a_share": 0.5, "whole_share": 3, "title": "x"})
        check_result(SQUARE, {"whole_share": 3, "title": "x"})
        for wrong in ({"a_share": 2.0}, {"whole_share": 0.5}, {"other": 1}):
            with pytest.raises(ValueError, match="is not what it declares"):
                check_result(SQUARE, {"whole_share": 3, "title": "x", **wrong})
        with pytest.raises(ValueError, match=r"missing are .'title'., unknown .'other'"):
            check_result(SQUARE, {"whole_share": 3, "other": 1})
    finally:
        declare_result(SQUARE)


def _values(line: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a published row as they were in the record."""
    values = {}
    for name, text in line.items():
        if text == "" or name in ("status", "error", "seconds", "job"):
            continue
        try:
            value = json.loads({"True": "true", "False": "false"}.get(text, text))
            # A column with missing values shows whole numbers as others.
            values[name] = int(value) if isinstance(value, float) and value.is_integer() else value
        except ValueError:
            values[name] = text
    return values


# What jobs return since the results were published.
LATER = {"most_values": 0, "most_valued": ""}
PUBLISHED = sorted((Path(__file__).parents[3] / "results/published").rglob("*_rows.csv.gz"))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)
def test_published_results_are_what_is_declared(path: Path) -> None:
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    declared = [kinds for name in FUNCTIONS for kinds in declared_results(name)]
    for line in rows[rows["status"] == "ok"].head(300).to_dict("records"):
        values = LATER | _values({str(name): text for name, text in line.items()})
        assert any(_fits(values, kinds) for kinds in declared), values


def _fits(values: dict[str, Any], kinds: Any) -> bool:
    """Tell whether the declared values of a row, which has labels besides, are of their kinds."""
    named = [name for name in kinds if "*" not in name]
    return all(name in values or kinds[name].holds(None) or kinds[name].holds("") for name in named) and all(
        kinds[name].holds(values[name]) for name in named if name in values
    )
