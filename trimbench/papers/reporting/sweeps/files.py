"""Write what the points of a sweep found, together: one table, figures over the swept setting, and a page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.provenance import provenance
from trimbench.papers.execution.temporary import remove_stale
from trimbench.papers.reporting.figures.files import write_figures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.files import computed_with, flat, listed_in, nothing_stored
from trimbench.papers.reporting.html import count, facts_of, render, table_part
from trimbench.papers.reporting.latex import latex
from trimbench.papers.reporting.sweeps.figures import sweep_figures
from trimbench.papers.reporting.sweeps.points import SweepPoint, experiments_of, in_words, joint_table, swept_keys
from trimbench.papers.reporting.tables import markdown, markdown_text
from trimbench.papers.reporting.whole_files import beside, write_csv, write_text
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd

_NAME = "sweep"
# Longer tables are cut where people read them; the CSV files have every row.
_IN_TEXT, _ON_PAGE = 200, 1000


def write_sweep(points: Sequence[SweepPoint], folder: Path, figure: FigureSettings) -> list[Path]:
    """Write the files of a whole sweep into a folder, and return them.

    ``sweep.csv`` has the rows of the main table at every point, with the swept values in the first columns;
    ``sweep_<table>.csv`` those of each other table, and ``sweep_rows.csv.gz`` one row for each job. ``sweep.md``,
    ``sweep.tex`` and ``index.html`` show the main table and the figures, and ``sweep.json`` has the provenance and what
    is needed to draw the figures from their points. Files that an earlier sweep listed there and this one does not
    write are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale(folder.glob("writing.*.tmp"))
    stem = folder / _NAME
    table = main_table(points)
    figures, remarks = sweep_figures(points)
    notes = [*notes_on(points), *remarks]
    pictures, descriptions = write_figures(figures, stem, figure)
    shown = _cut(table, _IN_TEXT)
    written = [
        write_csv(table.frame, beside(stem, "", ".csv")),
        *(write_csv(_other_table(points, name), beside(stem, name, ".csv")) for name in _other_names(points)),
        write_csv(joint_table(points, lambda found: flat(found.rows)), beside(stem, "rows", ".csv.gz")),
        write_text(_markdown(points, shown, descriptions, notes), beside(stem, "", ".md")),
        write_text(latex(shown, f"tab:{_NAME}"), beside(stem, "", ".tex")),
    ]
    page = render(
        "sweep.html",
        facts=facts_of(),
        title=_title(points),
        lead=f"{count(len(points), 'point')}, {count(len(table.frame), 'row')}.",
        notes=notes,
        figures=[_picture(one) for one in descriptions if _drawn(one)],
        table=table_part(_cut(table, _ON_PAGE)),
        keys=swept_keys(points),
        points=[_links(point, swept_keys(points)) for point in points],
        files=[path.name for path in written],
    )
    about = beside(stem, "", ".json")
    written += [*pictures, write_text(page, folder / "index.html")]
    earlier = listed_in(about)
    content = {**_provenance(points), "figures": descriptions, "files": [path.name for path in (*written, about)]}
    written.append(write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", about))
    for name in earlier - {path.name for path in written}:
        (folder / name).unlink(missing_ok=True)
    return written


def main_table(points: Sequence[SweepPoint]) -> Table:
    """Return the main tables of all points as one, with the experiments that could not run."""
    mains = [found.outcome.tables[0] for point in points for found in point.findings]
    names = experiments_of(points)
    # A title that names the data of one point is not that of all.
    titles = {main.title for main in mains}
    title = mains[0].title if len(titles) == len(names) == 1 else ", ".join(names)
    formats = {column: spec for main in mains for column, spec in main.formats.items()}
    frame = joint_table(points, lambda found: found.outcome.tables[0].frame, failures=True)
    return Table(f"{title}, over {', '.join(swept_keys(points))}", frame, formats)


def _other_names(points: Sequence[SweepPoint]) -> list[str]:
    """Return the names of all tables but the main ones."""
    tables = (table for point in points for found in point.findings for table in found.outcome.tables[1:])
    return list(dict.fromkeys(table.name for table in tables))


def _other_table(points: Sequence[SweepPoint], name: str) -> pd.DataFrame:
    def frame_of(found: Findings) -> pd.DataFrame | None:
        return next((table.frame for table in found.outcome.tables[1:] if table.name == name), None)

    return joint_table(points, frame_of)


def notes_on(points: Sequence[SweepPoint]) -> list[str]:
    """Return a note on each kind of failure."""
    n_failed = sum(bool(point.failures) for point in points)
    jobs = sum(found.failures for point in points for found in point.findings)
    missing = {name: reason for point in points for found in point.findings for name, reason in found.missing.items()}
    absent = sum(one.status == "missing" for point in points for found in point.findings for one in found.records)
    notes = [f"{n_failed} of {count(len(points), 'point')} could not run; the column error has the reasons."]
    lost = [f"{count(jobs, 'job')} failed; sweep_rows.csv.gz has the errors."]
    return (
        (notes if n_failed else [])
        + (lost if jobs else [])
        + ([f"{count(absent, 'job')} not stored; task=run computes what is missing."] if absent else [])
        + [f"Data not available: {why}" for why in missing.values()]
    )


def _cut(table: Table, most: int) -> Table:
    """Return a table as it is shown: columns of numbers as such, and not more rows than anybody reads."""
    frame, n_rows = table.frame.infer_objects(), len(table.frame)
    title = table.title if n_rows <= most else f"{table.title} (the first {most} of {n_rows:,} rows; sweep.csv has all)"
    return dataclasses.replace(table, title=title, frame=frame.head(most))


def _title(points: Sequence[SweepPoint]) -> str:
    return f"{', '.join(experiments_of(points))} over {', '.join(swept_keys(points))}"


def _markdown(
    points: Sequence[SweepPoint], table: Table, figures: Sequence[dict[str, Json]], notes: Sequence[str]
) -> str:
    parts = [f"# {markdown_text(_title(points))}", f"{count(len(points), 'point')}."]
    parts += [f"![{markdown_text(figure['title'])}](<{_drawn(figure)}>)" for figure in figures if _drawn(figure)]
    parts += [f"## {markdown_text(table.title)}", markdown(table)]
    parts += ["## Notes", "\n".join(f"- {note}" for note in notes)] if notes else []
    return "\n\n".join(parts) + "\n"


def _drawn(figure: dict[str, Json]) -> str:
    """Return the name of a figure's picture that Markdown and a page can show; empty if there is none."""
    names = figure["pictures"]
    return (
        next((str(name) for name in names if str(name).endswith((".png", ".svg"))), "")
        if isinstance(names, list)
        else ""
    )


def _picture(figure: dict[str, Json]) -> dict[str, object]:
    return {"title": figure["title"], "picture": quote(_drawn(figure)), "points": quote(str(figure["points"]))}


def _with_files(point: SweepPoint) -> list[Findings]:
    """Return the findings of a point that has files of them."""
    return [found for found in point.findings if not nothing_stored(found)]


def _links(point: SweepPoint, keys: Sequence[str]) -> dict[str, object]:
    """Return a point as the page lists it: its values, and the addresses of the files of its experiments."""
    return {
        "cells": [in_words(point.swept.get(key)) for key in keys],
        "found": [(found.name, quote(f"{point.folder}/{found.stem}")) for found in _with_files(point)],
        "failures": point.failures,
    }


def _provenance(points: Sequence[SweepPoint]) -> dict[str, Json]:
    """Return what the points of a sweep are and what their jobs ran with; the rest is in the folder of each point."""
    found = [one for point in points for one in point.findings]
    environments = {json.dumps(entry, sort_keys=True): entry for one in found for entry in computed_with(one)}
    data = {entry for one in found for record in one.records for entry in record.job.data}
    return {
        "experiment": ", ".join(experiments_of(points)),
        "swept": list(swept_keys(points)),
        "points": [
            {
                "swept": dict(point.swept),
                "folder": point.folder,
                "files": [f"{one.stem}.json" for one in _with_files(point)],
                "failures": dict(point.failures),
            }
            for point in points
        ],
        "data": dict(sorted(data)),
        "computed_with": list(environments.values()),
        "written_with": provenance(),
    }
