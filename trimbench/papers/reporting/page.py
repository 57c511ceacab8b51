"""One HTML page of everything that was found: it needs no other file, and no network."""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.provenance import provenance
from trimbench.papers.reporting.files import beside
from trimbench.papers.reporting.job_list import as_ranges, job_list, rows_behind
from trimbench.papers.reporting.tables import heading, printable, shown
from trimbench.papers.reporting.verdicts import VERDICTS, Judgement
from trimbench.papers.study.reported import Paper
from trimbench.papers.study.running import Findings
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup


@dataclass(frozen=True, eq=False)
class Entry:
    """One experiment on the page.

    Attributes
    ----------
    name, status, about : str
    judgements : sequence of Judgement
        May be empty.
    findings : Findings, optional
        None where the experiment could not run.
    """

    name: str
    status: str
    about: str
    judgements: Sequence[Judgement]
    findings: Findings | None


def render_page(entries: Sequence[Entry], papers: Mapping[str, Paper], folder: Path, *, profile: str) -> str:
    """Return the page of several experiments.

    Parameters
    ----------
    entries : sequence of Entry
    papers : mapping from family to Paper
        In the order of the page.
    folder : Path
        Results folder, in which the pictures of the experiments' figures are.
    profile : str
        Name of the profile that was run.
    """
    import jinja2
    from markupsafe import Markup

    room = files("trimbench.papers.reporting") / "page"
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["slug"] = lambda text: str(text).replace(" ", "-")
    environment.filters["count"] = lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}"
    environment.filters["prose"] = _prose
    environment.filters["breakable"] = _breakable
    environment.filters["words"] = heading
    # Style and script are the project's own; everything else on the page is escaped.
    style, script = ((room / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    numbers = [number for entry in entries for number in _numbers(entry)]
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
        n_numbers=len(numbers),
        numbers=numbers,
        families=[_family(family, paper, entries, folder) for family, paper in papers.items()],
    )


def _prose(text: str) -> Markup:
    """Return text as HTML, in which what stands between backticks is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", str(escape(text))))


def _breakable(name: str) -> Markup:
    """Return a name as HTML that may go on in the next line behind a slash or an underscore."""
    from markupsafe import Markup, escape

    return Markup(re.sub("([/_])", r"\1<wbr>", str(escape(name))))


def _anchor(name: str) -> str:
    return name.replace("/", "-")


def _numbers(entry: Entry) -> list[dict[str, Any]]:
    return [
        {
            "experiment": entry.name,
            "anchor": _anchor(entry.name),
            "source": one.reported.source,
            "cell": one.reported.label,
            "reported": one.reported.printed,
            "ours": shown(one),
            "verdict": one.verdict,
            "reason": one.reason,
            **_jobs_behind(entry, one),
        }
        for one in entry.judgements
    ]


def _jobs_behind(entry: Entry, judgement: Judgement) -> dict[str, Any]:
    """Return how many jobs a number comes from, and which rows of the list of jobs these are."""
    keys = judgement.number.jobs if judgement.number is not None and judgement.verdict != "not attempted" else ()
    places = rows_behind(entry.findings, keys) if entry.findings is not None else []
    return {"n_jobs": len(places), "jobs": as_ranges(places)}


def _family(family: str, paper: Paper, entries: Sequence[Entry], folder: Path) -> dict[str, Any]:
    ours = [entry for entry in entries if entry.name.split("/")[0] == family]
    verdicts = [one.verdict for entry in ours for one in entry.judgements]
    return {
        "name": family,
        "title": paper.title,
        "citation": paper.citation,
        "review": dict(paper.review),
        "total": len(verdicts),
        "counts": {verdict: verdicts.count(verdict) for verdict in VERDICTS},
        "experiments": [_experiment(entry, folder) for entry in ours],
    }


def _experiment(entry: Entry, folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = {"name": entry.name, "anchor": _anchor(entry.name), "status": entry.status}
    found = entry.findings
    if found is None:
        nothing: list[Any] = []
        return about | {
            "about": entry.about,
            "figures": nothing,
            "tables": nothing,
            "notes": nothing,
            "jobs": None,
        }
    tables = [table for table in found.outcome.tables if table.listed and len(table.frame)]
    return about | {
        "about": entry.about,
        "figures": _figures(found, folder),
        "tables": [_table(found.name, place, table) for place, table in enumerate(tables)],
        "notes": [*found.outcome.notes, *(f"Data not available: {reason}" for reason in found.missing.values())],
        "jobs": job_list(found),
    }


def _figures(found: Findings, folder: Path) -> list[dict[str, Any]]:
    figures = []
    for figure in found.outcome.figures:
        picture = beside(folder / found.name, figure.name, ".png")
        if figure.points.empty or not picture.is_file():
            continue
        content = picture.read_bytes()
        # Width and height stand in the header of a PNG; with them the page keeps still while it loads.
        width, height = struct.unpack(">II", content[16:24])
        points = "_".join(filter(None, (figure.name, "points")))
        figures.append(
            {
                "title": figure.title,
                "picture": f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}",
                "width": width,
                "height": height,
                "file": _download(found.name, points),
                "points": _csv(figure.points),
            }
        )
    return figures


def _table(name: str, place: int, table: Table) -> dict[str, Any]:
    texts = printable(table).to_numpy().tolist()
    rows = [
        [_cell(value, text) for value, text in zip(values, row, strict=True)]
        for values, row in zip(table.frame.astype(object).to_numpy().tolist(), texts, strict=True)
    ]
    return {
        "title": table.title,
        "anchor": f"{_anchor(name)}-table-{place}",
        "columns": [
            {"title": heading(column), "is_number": table.frame[column].dtype.kind in "iuf"} for column in table.frame
        ],
        "rows": rows,
        "file": _download(name, table.name or "table"),
        "csv": _csv(table.frame),
    }


def _download(name: str, part: str) -> str:
    """Return the name under which a browser keeps a file: that of the results folder, and of its family too."""
    return beside(Path(_anchor(name)), part, ".csv").name


def _cell(value: Any, text: str) -> dict[str, Any]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    known = is_number and math.isfinite(value)
    return {"text": text, "is_number": is_number, "value": repr(float(value)) if known else ""}


def _csv(frame: pd.DataFrame) -> str:
    content = frame.to_csv(index=False).encode()
    return f"data:text/csv;base64,{base64.b64encode(content).decode('ascii')}"
