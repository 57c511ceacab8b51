"""Records that were computed elsewhere: which of them a run here would use, how they are marked, and their removal."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimbench.reproduction.execution.job import RESULT_BYTES, Job, to_plain
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import read_bytes
from trimbench.reproduction.messages import reason
from trimbench.reproduction.settings import Json
from trimbench.reproduction.world import world

ADOPTED = "adopted"
"""The entry in the provenance of a record that says from which archive it is."""


def origin_of(record: Record) -> dict[str, str]:
    """Return the file and the SHA-256 of the archive that a record was adopted from; empty for one computed here."""
    found = record.provenance.get(ADOPTED)
    known = isinstance(found, Mapping) and {"file", "sha256"} <= found.keys()
    return {key: str(found[key]) for key in ("file", "sha256")} if known else {}  # type: ignore[index,call-overload]


@dataclass
class Candidates:
    """The records of an archive: those that a run here would use, by key, and how many others for each cause."""

    usable: dict[str, Record] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)


def candidates(lines: Iterable[bytes], planned: Sequence[Job], store: JobStore) -> Candidates:
    """Return what can be adopted of the records in some lines, which may be from anybody.

    A record is taken as data: it counts only if it is whole, is of a job that is planned here, with the same code, data
    and settings, and has the names, types and ranges that the function here declares.
    """
    wanted, found = {job.key: job for job in planned}, Candidates()
    contradicted = set()
    for line in lines:
        try:
            record = Record.from_json(line)
            to_plain(record.result, "result")  # refuses NaN
            job = wanted.get(record.job.key)
            if job is not None:
                record = Record.of(job, line)
        except (ValueError, TypeError) as error:
            found.others[f"not a sound record: {reason(error)}"] += 1
            continue
        if job is None:
            found.others[_unplanned(record.job, planned)] += 1
        elif not record.ok:
            found.others["its job failed there"] += 1
        elif (mine := store.get(job)) and mine.ok:
            found.others["stored here already"] += 1
        elif job.key in found.usable and found.usable[job.key].result != record.result:
            contradicted.add(job.key)
        else:
            found.usable[job.key] = record
    for key in contradicted:
        del found.usable[key]
        found.others["the archive has several records of one job, with different results"] += 1
    return found


def _unplanned(job: Job, planned: Sequence[Job]) -> str:
    """Say why nothing here would use the record of a job."""
    same = [one for one in planned if one.function == job.function]
    if not same:
        return "of an experiment that is not planned here"
    if not any(one.code == job.code for one in same):
        return "computed by other code"
    if not any(one.data == job.data for one in same):
        return "computed from other data"
    return "computed with other settings, such as another seed"


def adopt(records: Sequence[Record], store: JobStore, origin: Mapping[str, Json]) -> None:
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
