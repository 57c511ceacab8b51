"""The list of jobs, and the rows behind a number."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.reporting.job_list import as_ranges, job_list, rows_behind

from .builders import findings, record


def test_jobs_are_listed_and_found_by_their_keys() -> None:
    records = [record(0), record(1, "failed", "no"), record(2), record(3)]
    found = findings(records=records)
    assert rows_behind(found, [records[3].job.key, records[0].job.key, "another"]) == [0, 3]
    assert rows_behind(found, []) == []
    listed = job_list(found)
    assert listed["columns"] == ["status", "cell", "seconds", "computed with", "key"]
    assert [row[:2] for row in listed["rows"]] == [["ok", 0], ["failed", 1], ["ok", 2], ["ok", 3]]
    assert [row[3:] for row in listed["rows"]] == [[1, one.job.key[:16]] for one in records]


@given(st.sets(st.integers(0, 60)))
def test_ranges_stand_for_their_rows(places: set[int]) -> None:
    text = as_ranges(sorted(places))
    ends = [[int(end) for end in run.split("-")] for run in text.split()]
    assert [place for run in ends for place in range(run[0], run[-1] + 1)] == sorted(places)
    assert all(later[0] > earlier[-1] + 1 for earlier, later in itertools.pairwise(ends))
