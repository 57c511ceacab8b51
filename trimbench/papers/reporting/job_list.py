"""The jobs of an experiment as the page lists them, and the rows of this list behind a number."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypedDict

from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.files import computed_with, provenance_of
from trimbench.papers.study.findings import Findings

# Enough of a key to find its record in the store.
_KEY_LENGTH = 16


class JobList(TypedDict):
    """One row for each job: status, labels, seconds, number of its environment in the provenance, and key."""

    columns: list[str]
    rows: list[list[Json]]
    provenance: str


def job_list(found: Findings) -> JobList:
    """Return the jobs of an experiment, with the provenance as text: configuration, data, versions and machines."""
    environments = computed_with(found)
    number_of = {
        record.job.key: environments.index(record.provenance) + 1 for record in found.records if record.provenance
    }
    rows = [
        [
            row["status"],
            *(_plain(row[label]) for label in found.labels),
            _plain(row.get("seconds")),
            number_of.get(row["job"]),
            row["job"][:_KEY_LENGTH],
        ]
        for row in found.rows.to_dict("records")
    ]
    # The table lists the jobs already.
    about = {key: value for key, value in provenance_of(found).items() if key != "jobs"}
    return {
        "columns": ["status", *found.labels, "seconds", "computed with", "key"],
        "rows": rows,
        "provenance": json.dumps(about, indent=1, ensure_ascii=False),
    }


def rows_behind(found: Findings, keys: Sequence[str]) -> list[int]:
    """Return the rows of the list of jobs that have these keys."""
    wanted = set(keys)
    return [place for place, key in enumerate(found.rows["job"]) if key in wanted]


def as_ranges(places: list[int]) -> str:
    """Return ascending whole numbers as text, with consecutive ones as a range, for example ``0-3 7``."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1][1:] = [place]
        else:
            runs.append([place])
    return " ".join("-".join(map(str, run)) for run in runs)


def _plain(value: Any) -> Json:
    """Return a value that JSON can represent."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    plain: Json = value.item() if hasattr(value, "item") else value
    return plain
