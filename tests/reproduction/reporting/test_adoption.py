"""Records from rows: every kind of value comes back as its job returned it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trimbench.reproduction.execution.job import (
    COUNT,
    FLAG,
    NOTHING,
    NUMBER,
    SHARE,
    TEXT,
    Job,
    Kind,
    declare_result,
    list_of,
)
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.files import write_csv
from trimbench.reproduction.reporting.adoption import rebuilt_records
from trimbench.reproduction.reporting.runs import flat
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.cells import Cell
from trimbench.reproduction.vocabulary.planning import rows_of

FIRST, SECOND, THIRD = "tests.rebuilt:first", "tests.rebuilt:second", "tests.rebuilt:third"
RESULTS: list[tuple[str, dict[str, Any]]] = [
    (FIRST, {"n": 3, "part": 0.1 + 0.2, "word": "=1+1", "sure": True, "maybe": None, "all": [1, 2.5], "by/a": 1e-300}),
    (FIRST, {"n": 0, "part": 1.0, "word": "12", "sure": False, "maybe": 7, "all": [], "by/b": 0.5}),
    (FIRST, {"n": 2**40, "part": 0.0, "word": "", "sure": True, "maybe": 1, "all": [3.0], "by/a": 1.0, "by/b": 0.25}),
    (SECOND, {"wrong": 2, "q": 0.5}),
    (SECOND, {"wrong": 0, "deep": {"a": [{"b": None}, "nan"]}}),
    (THIRD, {"wrong": 1, "cloud": [0.5]}),
    (THIRD, {"wrong": 1}),
    (THIRD, {"wrong": 1, "refused": "too wide"}),
    (THIRD, {"part": 0.5, "wrong": 1}),
]


@pytest.fixture
def rows(tmp_path: Path) -> tuple[list[Record], dict[str, Any], pd.DataFrame]:
    """Records of jobs of two functions, what a run says of them, and their rows."""
    many = {"n": COUNT, "part": SHARE, "word": TEXT, "sure": FLAG, "maybe": COUNT | NOTHING, "all": list_of(NUMBER)}
    declare_result(FIRST, many | {"by/*": SHARE})
    declare_result(SECOND, {"wrong": COUNT, "*": SHARE}, {"wrong": COUNT, "deep": Kind("any", lambda _: True)})
    # The shorter and the emptier declarations come first, and hold for the rows of the others, too.
    of_third: tuple[dict[str, Any], ...] = ({}, {"refused": TEXT}, {"cloud": list_of(NUMBER)}, {"part": SHARE})
    declare_result(THIRD, *({"wrong": COUNT, **kinds} for kinds in of_third))
    jobs = [Job(function, f'{{"at":{at}}}', (("iris", "f0" * 32),), "code") for at, (function, _) in enumerate(RESULTS)]
    records = [
        Record(job, "ok", result, None, 0.25 + at, {"commit": f"{at % 2}", "roads": {"iris": "a file"}})
        for at, (job, (_, result)) in enumerate(zip(jobs, RESULTS, strict=True))
    ]
    cells = [Cell({"data": f"0.{at}", "title": "one"}, job) for at, job in enumerate(jobs)]
    about = {
        "roads": {"iris": "a file"},
        "computed_with": [{"commit": "0"}, {"commit": "1"}],
        "page": {
            "jobs": {"file": "a_rows.csv", "labels": ["data", "title"], "computed with": ["0 2 4 6 8", "1 3 5 7"]}
        },
    }
    frame = flat(rows_of(cells, {record.job.key: record for record in records}, {}))
    write_csv(frame, tmp_path / "a_rows.csv")
    return records, about, frame


def test_each_result_comes_back_as_its_job_returned_it(
    rows: tuple[list[Record], dict[str, Any], pd.DataFrame], tmp_path: Path
) -> None:
    records, about, _ = rows
    found = list(rebuilt_records("a", about, tmp_path, {record.job.key: record.job for record in records}))
    assert found == records
    for here, there in zip(found, records, strict=True):
        assert isinstance(here, Record)
        assert here.to_json() == there.to_json()  # whole numbers stay whole, and True is not 1


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("status", "failed", "its job failed there"),
        ("job", "0" * 64, "computed by other code, from other data or with other settings"),
        ("n", "-1", "its row is not what its job declares that it returns"),
        ("n", "", "its row is not what its job declares that it returns"),
        ("all", "[1, ", "its row is not what its job declares that it returns"),
        ("all", "[1e999]", "its row is not what its job declares that it returns"),
        ("all", "[" * 100_000, "its row is not what its job declares that it returns"),
        ("maybe", "9" * 5000, "its row is not what its job declares that it returns"),
        ("part", "nan", "its row is not what its job declares that it returns"),
        ("seconds", "inf", "its row is not what its job declares that it returns"),
        ("seconds", "soon", "its row is not what its job declares that it returns"),
    ],
)
def test_a_row_that_gives_no_record_says_why(
    rows: tuple[list[Record], dict[str, Any], pd.DataFrame], tmp_path: Path, column: str, value: str, why: str
) -> None:
    records, about, frame = rows
    changed = frame.astype(object)
    changed.loc[0, column] = value
    write_csv(changed, tmp_path / "a_rows.csv")
    found = list(rebuilt_records("a", about, tmp_path, {record.job.key: record.job for record in records}))
    assert found[0] == why
    assert [isinstance(one, Record) for one in found[1:]] == [True] * (len(RESULTS) - 1)


def test_rows_without_keys_are_none_of_a_run(
    rows: tuple[list[Record], dict[str, Any], pd.DataFrame], tmp_path: Path
) -> None:
    _, about, frame = rows
    write_csv(frame.drop(columns="job"), tmp_path / "a_rows.csv")
    with pytest.raises(ConfigurationError, match="the rows of a must have the column 'job'"):
        list(rebuilt_records("a", about, tmp_path, {}))
    write_csv(frame, tmp_path / "a_rows.csv")
    about["page"]["jobs"]["computed with"] = ["0-999999999"]
    with pytest.raises(ConfigurationError, match="must be among its 9 rows, got 999999999"):
        list(rebuilt_records("a", about, tmp_path, {}))
