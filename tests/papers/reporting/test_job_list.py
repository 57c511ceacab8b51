"""The list of jobs, and the rows behind a number."""

from __future__ import annotations

import itertools
import json

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.reporting.page import JobList, as_ranges, job_list, rows_behind
from trimbench.papers.validation import Json

from .builders import findings, record


def test_jobs_are_listed_and_found_by_their_keys() -> None:
    records = [record(0), record(1, "failed", "no"), record(2), record(3)]
    found = findings(records=records)
    assert rows_behind(found, [records[3].job.key, records[0].job.key, "another"]) == [0, 3]
    assert rows_behind(found, []) == []
    found.rows["seconds"] = [0.12345, None, 0.12345, 1234.5]
    listed = job_list(found)
    assert cells(listed) == {
        "status": ["ok", "failed", "ok", "ok"],
        "cell": [0, 1, 2, 3],
        "seconds": [0.123, None, 0.123, 1230.0],
        "computed with": [1, 1, 1, 1],
        "key": [one.job.key[:12] for one in records],
    }


def cells(listed: JobList) -> dict[str, list[Json]]:
    """Return the columns as the script of the page reads them."""

    def values(of: list[Json], at: list[int]) -> list[Json]:
        if at:
            return [of[place] for place in at]
        return of * listed["length"] if len(of) == 1 else of

    return {column["name"]: values(column["of"], column["at"]) for column in listed["columns"]}


@given(st.lists(st.sampled_from([0, 1, True, False, None, "1", 1.5, "a"]), min_size=1, max_size=9))
def test_a_column_has_the_value_of_each_row(labels: list[Json]) -> None:
    found = findings(records=[record(number) for number in range(len(labels))])
    found.rows["cell"] = pd.Series(labels, dtype=object)
    assert list(map(repr, cells(job_list(found))["cell"])) == list(map(repr, labels))


def test_thousands_of_jobs_take_little_space() -> None:
    n_jobs = 1000
    found = findings(records=[record(number) for number in range(n_jobs)])
    found.rows["cell"] = [f"a long name of data set {number % 5}" for number in range(n_jobs)]
    found.rows["seconds"] = [0.1 + number / 3 for number in range(n_jobs)]
    assert len(json.dumps(job_list(found))) / n_jobs < 45


@given(st.sets(st.integers(0, 60)))
def test_ranges_stand_for_their_rows(places: set[int]) -> None:
    text = as_ranges(sorted(places))
    ends = [[int(end) for end in run.split("-")] for run in text.split()]
    assert [place for run in ends for place in range(run[0], run[-1] + 1)] == sorted(places)
    assert all(later[0] > earlier[-1] + 1 for earlier, later in itertools.pairwise(ends))
