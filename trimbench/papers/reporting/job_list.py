"""The jobs of an experiment as the page lists them, and which of them are behind a number."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from trimbench.papers.reporting.files import computed_with, provenance_of
from trimbench.papers.study.running import Findings

# So much of a key finds its record in the store.
_KEY_LENGTH = 16


def job_list(found: Findings) -> dict[str, Any]:
    """Return the jobs of an experiment as a table, one row each, and with what they were computed.

    Parameters
    ----------
    found : Findings

    Returns
    -------
    dict
        ``columns`` and ``rows`` of plain values (status, labels, seconds, number of the environment in the
        provenance, key), and ``provenance`` as text: configuration, data, versions and machines.
    """
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
    # The table has the jobs already.
    about = {key: value for key, value in provenance_of(found).items() if key != "jobs"}
    return {
        "columns": ["status", *found.labels, "seconds", "computed with", "key"],
        "rows": rows,
        "provenance": json.dumps(about, indent=1, ensure_ascii=False),
    }


def rows_behind(found: Findings, keys: Sequence[str]) -> list[int]:
    """Return which rows of the list of jobs have these keys."""
    wanted = set(keys)
    return [place for place, key in enumerate(found.rows["job"]) if key in wanted]


def as_ranges(places: list[int]) -> str:
    """Return ascending whole numbers as text: those that follow one another as a range, for example ``0-3 7``."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1][1:] = [place]
        else:
            runs.append([place])
    return " ".join("-".join(map(str, run)) for run in runs)


def _plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    return value.item() if hasattr(value, "item") else value
