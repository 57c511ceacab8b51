from __future__ import annotations

import math
from pathlib import Path

import pytest

from trimbench.papers.commands.cost import GROUP, estimate, measured
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.progress import duration
from trimbench.papers.execution.store import Record

from ..execution import sample_jobs

JOB = Job.create(sample_jobs.square, {"x": 1})


def done(seconds: float) -> Record:
    return Record(JOB, "ok", {}, None, seconds, {})


FAILED = Record(JOB, "failed", None, "no", 7.0, {})


@pytest.mark.parametrize(
    ("records", "typical", "expected"),
    [
        ([done(1.0), done(3.0), None, FAILED], 100.0, 4.0),
        ([None, FAILED, None], 1.5, 4.5),
        ([None], None, None),
        ([FAILED], None, None),
        ([done(2.0)], None, 0.0),
        ([], None, 0.0),
    ],
)
def test_what_is_stored_counts_before_what_is_typical(
    records: list[Record | None], typical: float | None, expected: float | None
) -> None:
    assert estimate(records, typical) == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0, "0 s"),
        (0.0321, "0.03 s"),
        (9.4, "9 s"),
        (12.3, "12 s"),
        (89.0, "89 s"),
        (90.0, "1.5 min"),
        (1234.0, "21 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (1e6, "278 h"),
    ],
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_a_profile_that_was_never_measured(tmp_path: Path) -> None:
    (tmp_path / GROUP).mkdir()
    (tmp_path / GROUP / "mine.yaml").write_text("trimming/table6: 0.5\n")
    assert measured(Catalogue((tmp_path,)), "mine") == {"trimming/table6": 0.5}
    assert measured(Catalogue((tmp_path,)), "other") == {}


def test_costs_are_of_experiments_that_exist() -> None:
    project = Catalogue((configuration_folder(),))
    for profile in project.names(GROUP):
        costs = measured(project, profile)
        assert profile in project.names("profile")
        assert set(costs) <= set(project.names("experiment"))
        assert all(0 < seconds < math.inf for seconds in costs.values())
