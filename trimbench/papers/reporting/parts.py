"""What the page of a run shows of one experiment, stored so that a page can join experiments of several runs."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from trimbench.papers.reporting.figures.files import points_name
from trimbench.papers.reporting.html import present_commit, table_part
from trimbench.papers.reporting.job_list import as_ranges, job_list, rows_behind
from trimbench.papers.reporting.tables import asked, shown
from trimbench.papers.reporting.verdicts import Judgement
from trimbench.papers.reporting.whole_files import beside, write
from trimbench.papers.study.findings import Findings

# Values of JSON alone: what is read again is what was written.
Part: TypeAlias = Mapping[str, Any]
# The formats that a browser shows as pictures.
_SHOWN = (".png", ".svg")


@dataclass(frozen=True, eq=False)
class Entry:
    """One experiment of a run; without findings, but with an `error`, if it could not run."""

    name: str
    status: str
    about: str
    judgements: Sequence[Judgement]
    findings: Findings | None
    error: str = ""

    @property
    def altered(self) -> Sequence[str]:
        """The settings that were changed, so that its numbers cannot be compared."""
        return () if self.findings is None else self.findings.altered


def part_of(entry: Entry, folder: Path) -> Part:
    """Return what the page of a run shows of an experiment, with links to the files that it finds in `folder`."""
    found = entry.findings
    part: dict[str, object] = {
        "name": entry.name,
        "status": entry.status,
        "error": entry.error,
        "about": entry.about,
        "altered": list(entry.altered),
        "commit": present_commit(),
        "numbers": [_number(found, one) for one in entry.judgements],
    }
    if found is None:
        return part | {"figures": [], "tables": [], "notes": [], "jobs": None, "provenance": ""}
    stem = Path(found.stem)
    tables = [table for table in found.outcome.tables if table.listed and len(table.frame)]
    return part | {
        "figures": _figures(found, folder),
        "tables": [{**table_part(table), "file": _csv_of(stem, table.name, folder)} for table in tables],
        "notes": [*found.outcome.notes, *(f"Data not available: {reason}" for reason in found.missing.values())],
        "jobs": job_list(found),
        "provenance": _link(beside(stem, "", ".json"), folder),
    }


def part_file(stem: Path) -> Path:
    """Return the file of an experiment's part of the page."""
    return beside(stem, "page", ".json.gz")


def write_part(part: Part, path: Path) -> Path:
    """Write a part of a page, and return its path."""
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    # Without the time of writing, the same part gives the same bytes.
    content = gzip.compress(text.encode(), mtime=0)
    return write(path, lambda temporary: temporary.write_bytes(content))


def read_part(path: Path) -> Part:
    """Read a part of a page; raise ValueError, which names the file, if that is not possible."""
    try:
        part: Part = json.loads(gzip.decompress(path.read_bytes()))
        part["name"], part["status"], part["numbers"], part["commit"]
    except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise ValueError(f"{path} must hold the part of a page that a run has written, got {error!r}") from error
    return part


def _number(found: Findings | None, one: Judgement) -> dict[str, object]:
    """Return one reported number, claim, curve or time with its verdict, cause, reason and jobs."""
    number, inferred = one.number, one.explanation
    known = found is not None and number is not None and one.verdict != "not attempted"
    places = rows_behind(found, number.jobs) if known and found and number else []
    return {
        "cell": one.reported.label,
        "row": one.reported.row,
        "quantity": one.reported.quantity,
        "subject": one.subject,
        "reported": asked(one.reported),
        "source": one.reported.source,
        "ours": shown(one),
        "verdict": one.verdict,
        "differs": one.differs,
        "cause": one.cause,
        "reason": one.account if one.differs else one.reason,
        "inferred": f"{inferred.value:.4g}" if inferred and one.differs else "",
        "probability": f"{number.probability.value:.2g}" if number and number.probability else "",
        "n_jobs": len(places),
        "jobs": as_ranges(places),
    }


def _link(file: Path, folder: Path) -> str:
    """Return the address of a file of the run; empty if there is none."""
    return quote(file.as_posix(), safe="/,=") if (folder / file).is_file() else ""


def _csv_of(stem: Path, part: str, folder: Path) -> str:
    """Return the address of a table's file, which is the experiment's main one where it has no own."""
    return _link_to_csv(stem, part or "table", folder) or _link_to_csv(stem, "", folder)


def _link_to_csv(stem: Path, part: str, folder: Path) -> str:
    """Return the address of a table's file, compressed or not; empty if there is none."""
    return _link(beside(stem, part, ".csv"), folder) or _link(beside(stem, part, ".csv.gz"), folder)


def _figures(found: Findings, folder: Path) -> list[dict[str, object]]:
    stem = Path(found.stem)
    figures: list[dict[str, object]] = []
    for figure in found.outcome.figures:
        pictures = [beside(stem, figure.name, ending) for ending in _SHOWN]
        picture = next((one for one in pictures if (folder / one).is_file()), None)
        if figure.points.empty or picture is None:
            continue
        points = _link_to_csv(stem, points_name(figure), folder)
        size = _size(folder / picture)
        figures.append({"title": figure.title, "picture": _link(picture, folder), "size": size, "points": points})
    return figures


def _size(picture: Path) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG; with them, a page does not move while it loads."""
    if picture.suffix != ".png":
        return None
    with picture.open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    return width, height
