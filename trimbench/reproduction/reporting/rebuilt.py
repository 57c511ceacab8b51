"""The records of jobs, rebuilt from the rows of a run, which have all that a job found."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from trimbench.reproduction.execution.adoption import ADOPTED
from trimbench.reproduction.execution.job import ROW_COLUMNS, Job, Kind, declared_results, faults, to_plain
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.files import as_it_was
from trimbench.reproduction.reporting.parts import check_rows, in_ranges, number_in, read_texts
from trimbench.reproduction.reporting.runs import inside_run
from trimbench.reproduction.settings import ConfigurationError, Json


def rebuilt_records(
    stem: str, about: Mapping[str, Any], folder: Path, planned: Mapping[str, Job]
) -> Iterator[Record | str]:
    """Yield the record of each job of an experiment of a run, or why there is none.

    Of the settings of its job, a row says the key alone, so `planned` has the jobs that are planned here, by key. A
    result is what its function declares: where a cell could be read in two ways, the declaration decides. Raises
    ConfigurationError if the rows are not those of a run.
    """
    listed = about["page"]["jobs"]
    if listed is None:
        return
    rows = read_texts(inside_run(folder / unquote(listed["file"]), folder))
    if absent := ROW_COLUMNS - {"error", *rows}:
        raise ConfigurationError(f"the rows of {stem} must have the column {min(absent)!r}; task=report writes it")
    check_rows(listed["computed with"], len(rows))
    environments = zip(about["computed_with"], listed["computed with"], strict=False)
    known = {at: one for one, ranges in environments for at in in_ranges(ranges)}
    others = {*listed["labels"], *ROW_COLUMNS, ADOPTED}
    for at, texts in enumerate(rows.to_numpy().tolist()):
        line: dict[str, str] = dict(zip(map(str, rows), texts, strict=True))
        job, seconds = planned.get(line["job"]), number_in(line["seconds"])
        if line["status"] != "ok":
            yield "its job failed there"
        elif job is None:
            yield "computed by other code, from other data or with other settings"
        elif isinstance(seconds, str) or not seconds < math.inf or (result := _result(job, line, others)) is None:
            yield "its row is not what its job declares that it returns"
        else:
            roads = {name: about["roads"][name] for name, _ in job.data if name in about["roads"]}
            yield Record(job, "ok", result, None, float(seconds), {**known.get(at, {}), "roads": roads})


def _result(job: Job, line: Mapping[str, str], others: Collection[str]) -> dict[str, Json] | None:
    """Return the result of a job in a row, as one of its function's declarations has it; None if none has."""
    for kinds in declared_results(job.function):
        found = {}
        for name, text in line.items():
            kind = _kind_of(name, kinds)
            if kind and name not in others and (text or name in kinds):
                found[name] = _value(as_it_was(text), kind)
        with contextlib.suppress(ValueError, RecursionError):  # no record has an infinite number
            if not faults(found, kinds):
                to_plain(found, "result")
                return found
    return None


def _kind_of(name: str, kinds: Mapping[str, Kind]) -> Kind | None:
    return kinds.get(name) or next((kind for key, kind in kinds.items() if "*" in key and fnmatchcase(name, key)), None)


def _value(text: str, kind: Kind) -> Json:
    """Return what a cell says, as a value of a kind; the text if it can be none."""
    return next((one for one in _readings(text) if kind.holds(one)), text)


def _readings(text: str) -> Iterator[Json]:
    """Yield the values that are written like this in a row."""
    number = number_in(text)
    if not isinstance(number, str):
        yield number
        if isinstance(number, float) and number.is_integer():  # in a column that other jobs leave empty
            yield int(number)
    elif text[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(text)
    elif text in ("", "True", "False"):
        yield {"": None, "True": True, "False": False}[text]
