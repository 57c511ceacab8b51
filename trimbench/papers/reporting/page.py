"""One HTML page with everything that was found; it needs no other file and no network."""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trimbench.papers.execution.provenance import provenance
from trimbench.papers.reporting.files import beside, points_name
from trimbench.papers.reporting.job_list import as_ranges, job_list, rows_behind
from trimbench.papers.reporting.tables import heading, printable, shown
from trimbench.papers.reporting.verdicts import VERDICTS, Judgement
from trimbench.papers.study.reported import Paper
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    from markupsafe import Markup


# A part of the page as the template takes it.
_Part: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Entry:
    """One experiment on the page; without findings if it could not run."""

    name: str
    status: str
    about: str
    judgements: Sequence[Judgement]
    findings: Findings | None


def render_page(entries: Sequence[Entry], papers: Mapping[str, Paper], folder: Path, *, profile: str) -> str:
    """Return the page of several experiments, by family in the order of `papers`, with the pictures in `folder`."""
    import jinja2
    from markupsafe import Markup

    room = files("trimbench.papers.reporting") / "page"
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= _FILTERS
    # Style and script are our own; everything else on the page is escaped.
    style, script = ((room / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    where = provenance()
    facts = [
        f"profile {profile}",
        f"trimbench {where.get('trimbench', '')}".strip(),
        f"written with commit {str(where.get('commit') or 'unknown')[:12]}",
        f"Python {where.get('python', '')}".strip(),
    ]
    return environment.from_string((room / "page.html").read_text(encoding="utf-8")).render(
        style=Markup(style),
        script=Markup(script),
        facts=facts,
        verdicts=VERDICTS,
        numbers=[number for entry in entries for number in _numbers(entry)],
        families=[_family(family, paper, entries, folder) for family, paper in papers.items()],
    )


def _prose(text: str) -> Markup:
    """Return text as HTML, with the parts between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", str(escape(text))))


def _breakable(name: str) -> Markup:
    """Return a name as HTML that may break after a slash or an underscore."""
    from markupsafe import Markup, escape

    return Markup(re.sub("([/_])", r"\1<wbr>", str(escape(name))))


def _slug(name: str) -> str:
    return name.replace(" ", "-").replace("/", "-")


def _data(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


_FILTERS: dict[str, Callable[..., str]] = {
    "slug": _slug,
    "count": lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    "prose": _prose,
    "breakable": _breakable,
    "words": heading,
    "ranges": as_ranges,
    "csv": lambda frame: _data(frame.to_csv(index=False).encode(), "text/csv"),
    # A browser saves a file under its name in the results folder, preceded by its family.
    "file_of": lambda part, name: beside(Path(_slug(name)), part, ".csv").name,
}


def _numbers(entry: Entry) -> list[_Part]:
    return [
        {
            "experiment": entry.name,
            "reported": one.reported,
            "ours": shown(one),
            "verdict": one.verdict,
            "reason": one.reason,
            "jobs": _jobs_behind(entry, one),
        }
        for one in entry.judgements
    ]


def _jobs_behind(entry: Entry, judgement: Judgement) -> list[int]:
    """Return the rows of the list of jobs that are behind a number."""
    if entry.findings is None or judgement.number is None or judgement.verdict == "not attempted":
        return []
    return rows_behind(entry.findings, judgement.number.jobs)


def _family(family: str, paper: Paper, entries: Sequence[Entry], folder: Path) -> _Part:
    ours = [entry for entry in entries if entry.name.split("/")[0] == family]
    return {
        "name": family,
        "paper": paper,
        "verdicts": [one.verdict for entry in ours for one in entry.judgements],
        "experiments": [_experiment(entry, folder) for entry in ours],
    }


def _experiment(entry: Entry, folder: Path) -> _Part:
    about: dict[str, object] = {"name": entry.name, "status": entry.status, "about": entry.about}
    found = entry.findings
    if found is None:
        return about | {"figures": (), "tables": (), "notes": (), "jobs": None}
    return about | {
        "figures": _figures(found, folder),
        "tables": [_table(table) for table in found.outcome.tables if table.listed and len(table.frame)],
        "notes": [*found.outcome.notes, *(f"Data not available: {reason}" for reason in found.missing.values())],
        "jobs": job_list(found),
    }


def _figures(found: Findings, folder: Path) -> list[_Part]:
    figures: list[_Part] = []
    for figure in found.outcome.figures:
        picture = beside(folder / found.name, figure.name, ".png")
        if figure.points.empty or not picture.is_file():
            continue
        content = picture.read_bytes()
        # Width and height are in the header of a PNG; with them, the page does not move while it loads.
        width, height = struct.unpack(">II", content[16:24])
        data = {"picture": _data(content, "image/png"), "width": width, "height": height}
        figures.append({"title": figure.title, "points": figure.points, "part": points_name(figure), **data})
    return figures


def _table(table: Table) -> _Part:
    texts = printable(table).to_numpy().tolist()
    values = table.frame.astype(object).to_numpy().tolist()
    return {
        "title": table.title,
        "part": table.name or "table",
        "frame": table.frame,
        "columns": [(column, table.frame[column].dtype.kind in "iuf") for column in table.frame],
        "rows": [[*map(_cell, *row)] for row in zip(values, texts, strict=True)],
    }


def _cell(value: object, text: str) -> _Part:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    known = number is not None and math.isfinite(number)
    return {"text": text, "is_number": number is not None, "value": repr(number) if known else ""}
