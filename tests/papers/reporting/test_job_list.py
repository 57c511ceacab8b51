"""Which jobs are behind a number."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.reporting.job_list import as_ranges, job_list, rows_behind

from .builders import findings, record


def test_a_number_comes_from_its_own_jobs_or_from_all_that_succeeded() -> None:
    records = [record(0), record(1, "failed", "no"), record(2), record(3)]
    found = findings(records=records, jobs={"a": [records[3].job.key], "b/value": [records[0].job.key]})
    assert rows_behind(found, "a/value") == rows_behind(found, "a/other") == [3]
    assert rows_behind(found, "b/value") == [0]
    assert rows_behind(found, "b/other") == [0, 2, 3]
    listed = job_list(found)
    assert listed["columns"] == ["status", "cell", "seconds", "computed with", "key"]
    assert [row[:2] for row in listed["rows"]] == [["ok", 0], ["failed", 1], ["ok", 2], ["ok", 3]]


@given(st.sets(st.integers(0, 60)))
def test_ranges_say_which_rows(places: set[int]) -> None:
    text = as_ranges(sorted(places))
    ends = [[int(end) for end in run.split("-")] for run in text.split()]
    assert [place for run in ends for place in range(run[0], run[-1] + 1)] == sorted(places)
    assert all(later[0] > earlier[-1] + 1 for earlier, later in itertools.pairwise(ends))
