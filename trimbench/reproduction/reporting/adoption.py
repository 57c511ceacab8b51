"""Records that were computed elsewhere: rebuilt from rows, chosen, adopted with a mark, and removed again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from trimbench.reproduction.execution.job import (
    RESULT_BYTES,
    ROW_COLUMNS,
    Job,
    Kind,
    declared_results,
    faults,
    to_plain,
)
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import as_it_was, read_bytes
from trimbench.reproduction.messages import reason
from trimbench.reproduction.reporting.parts import cell_value, check_rows, in_ranges, number_in
from trimbench.reproduction.reporting.runs import read_rows
from trimbench.reproduction.settings import Json
from trimbench.reproduction.vocabulary.planning import ADOPTED, origin_of
from trimbench.reproduction.world import world


def candidates(
    found: Iterable[bytes | str], planned: Mapping[str, Job], store: JobStore
) -> tuple[dict[str, Record], Counter[str]]:
    """Return the records that a run here would use, by key, and how many others there are for each cause.

    A record, which may be from anybody, is `found` as a line, or as a text that says why there is none. It is taken as
    data: it counts only if it is whole, is of a job that is planned here (by key), with the same code, data and
    settings, and has the names, types and ranges that the function here declares.
    """
    usable: dict[str, Record] = {}
    others: Counter[str] = Counter()
    contradicted = set()
    for line in found:
        if isinstance(line, str):
            others[line] += 1
            continue
        try:
            record = Record.from_json(line)
            to_plain(record.result, "result")  # refuses NaN
            job = planned.get(record.job.key)
            if job is not None:
                record = Record.of(job, line)
        except (ValueError, TypeError) as error:
            others[f"not a sound record: {reason(error)}"] += 1
            continue
        if job is None:
            others[_unplanned(record.job, planned.values())] += 1
        elif not record.ok:
            others[_FAILED] += 1
        elif (mine := store.get(job)) and mine.ok:
            others["stored here already"] += 1
        elif job.key in usable and usable[job.key].result != record.result:
            contradicted.add(job.key)
        else:
            usable[job.key] = record
    for key in contradicted:
        del usable[key]
        others["the archive has several records of one job, with different results"] += 1
    return usable, others


_FAILED = "its job failed there"


def _unplanned(job: Job, planned: Collection[Job]) -> str:
    """Say why nothing here would use the record of a job."""
    same = [one for one in planned if one.function == job.function]
    if not same:
        return "of an experiment that is not planned here"
    if not any(one.code == job.code for one in same):
        return "computed by other code"
    if not any(one.data == job.data for one in same):
        return "computed from other data"
    return "computed with other settings, such as another seed"


def adopt(records: Collection[Record], store: JobStore, origin: Mapping[str, Json]) -> None:
    """Store records, each marked with where it is from: all of them, or none if that fails."""
    done: list[Record] = []
    try:
        for record in records:
            done.append(record)
            store.put(dataclasses.replace(record, provenance=record.provenance | {ADOPTED: dict(origin)}))
    except BaseException:
        for record in done:
            with contextlib.suppress(OSError):
                world().unlink(store.path(record.job))
        raise


def remove_adopted(store: JobStore, sha256: str) -> int:
    """Remove the records that were adopted from the archive whose hash begins so, and return how many there were."""
    found = [path for path in sorted(store.folder.glob("[0-9a-f][0-9a-f]/*.json")) if _is_from(path, sha256)]
    for path in found:
        for one in (path, path.with_suffix(".log")):
            with contextlib.suppress(FileNotFoundError):
                world().unlink(one)
    return len(found)


def _is_from(path: Path, sha256: str) -> bool:
    try:
        content = read_bytes(path, 2 * RESULT_BYTES)
        # Only a record with the word in it is worth the time to read it.
        is_marked = f'"{ADOPTED}":'.encode() in content
        return is_marked and origin_of(Record.from_json(content)).get("sha256", "-").startswith(sha256)
    except (OSError, ValueError):
        return False


# Records of jobs, rebuilt from the rows of a run, which have all that a job found.


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
    rows = read_rows(stem, about, folder, ROW_COLUMNS - {"error"})
    check_rows(listed["computed with"], len(rows))
    environments = zip(about["computed_with"], listed["computed with"], strict=False)
    known = {at: one for one, ranges in environments for at in in_ranges(ranges)}
    others = {*listed["labels"], *ROW_COLUMNS, ADOPTED}
    for at, line in enumerate(rows):
        job, seconds = planned.get(line["job"]), number_in(line["seconds"])
        if line["status"] != "ok":
            yield _FAILED
        elif job is None:
            yield "computed by other code, from other data or with other settings"
        elif isinstance(seconds, str) or not seconds < math.inf or (result := _result(job, line, others)) is None:
            yield "its row is not what its job declares that it returns"
        else:
            roads = {name: about["roads"][name] for name, _ in job.data if name in about["roads"]}
            yield Record(job, "ok", result, None, float(seconds), {**known.get(at, {}), "roads": roads})


def _result(job: Job, line: Mapping[str, str], others: Collection[str]) -> dict[str, Json] | None:
    """Return the result of a job in a row, as one of its function's declarations has it; None if none has.

    A declaration counts only if it explains all that the row has: a shorter one would leave values out.
    """
    for kinds in declared_results(job.function):
        found, is_whole = {}, True
        for name, text in line.items():
            if name in others:
                continue
            kind = _kind_of(name, kinds)
            is_whole &= kind is not None or not text
            if kind and (text or name in kinds):
                found[name] = _value(as_it_was(text), kind)
        with contextlib.suppress(ValueError, RecursionError):  # no record has an infinite number
            if is_whole and not faults(found, kinds):
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
    if text[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(text)
    value = cell_value(text)
    yield value
    if isinstance(value, float) and value.is_integer():  # in a column that other jobs leave empty
        yield int(value)
