"""The jobs of an experiment as the page lists them, and the rows of this list behind a number."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypedDict

from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.files import SHORT_KEY, computed_with
from trimbench.papers.study.findings import Findings

# Enough of seconds to compare them.
_DIGITS = 3


class Column(TypedDict):
    """A column with each value once: row i has the value ``of[at[i]]``.

    Where `at` is empty, all rows have the only value, or each its own.
    """

    name: str
    of: list[Json]
    at: list[int]


class JobList(TypedDict):
    """One row for each job: status, labels, seconds, number of its environment in the provenance, and key."""

    length: int
    columns: list[Column]


def job_list(found: Findings) -> JobList:
    """Return the jobs of an experiment, by columns."""
    environments = computed_with(found)
    number_of = {
        record.job.key: environments.index(record.provenance) + 1 for record in found.records if record.provenance
    }
    rows = found.rows
    seconds = rows["seconds"].tolist() if "seconds" in rows else [None] * len(rows)
    jobs = rows["job"].tolist()
    return {
        "length": len(rows),
        "columns": [
            _column("status", rows["status"].tolist()),
            *(_column(label, rows[label].tolist()) for label in found.labels),
            _column("seconds", [_rounded(value) for value in seconds]),
            _column("computed with", [number_of.get(key) for key in jobs]),
            _column("key", [key[:SHORT_KEY] for key in jobs]),
        ],
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


def _column(name: str, values: Sequence[Any]) -> Column:
    plain = [_plain(value) for value in values]
    # True and 1 are equal, and yet two values.
    texts = [json.dumps(value) for value in plain]
    distinct = dict(zip(texts, plain, strict=True))
    place = {text: number for number, text in enumerate(distinct)}
    at = [place[text] for text in texts] if 1 < len(place) < len(texts) else []
    return {"name": name, "of": [*distinct.values()], "at": at}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds:.{_DIGITS}g}")


def _plain(value: Any) -> Json:
    """Return a value that JSON can represent."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    plain: Json = value.item() if hasattr(value, "item") else value
    return plain
