"""Write what an experiment found: tables, figures, points and provenance, each file whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.homes import without_homes
from trimbench.papers.execution.provenance import provenance
from trimbench.papers.execution.temporary import remove_stale
from trimbench.papers.reporting.figures.files import write_figures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.latex import latex
from trimbench.papers.reporting.tables import comparison, differences, markdown, markdown_text, side_by_side
from trimbench.papers.reporting.verdicts import Judgement
from trimbench.papers.reporting.whole_files import beside, csv_ending, write_csv, write_text
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd

# Enough of a job's key to find its record in the store; the rows have all of it.
SHORT_KEY = 12


def write_findings(
    findings: Findings, judgements: Sequence[Judgement], folder: Path, figure: FigureSettings, *, drawn: bool = True
) -> list[Path]:
    """Write all files of an experiment below `folder`, and return them.

    ``<stem>.csv`` has one row for each reported number (or is the main table, where nothing is reported or the settings
    are others), ``<stem>_<table>.csv`` each other table (``.csv.gz`` if it is long), and ``<stem>_rows.csv.gz`` one row
    for each job. ``<stem>.md`` has the tables, and ``<stem>_<table>.tex`` each of them. Figures are drawn as
    ``<stem>.png``, or in the formats of the settings `figure`, unless `drawn` is false; their points are in
    ``<stem>_points.csv`` (``.csv.gz`` if there are many). ``<stem>.json`` has the provenance, what is needed to draw
    the figures from their points, and the names of these files. Files that an earlier run listed there and this one
    does not write, for example a figure of other settings, are removed.
    """
    stem = folder / findings.stem
    stem.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(stem.parent.glob("writing.*.tmp"))
    tables = list(findings.outcome.tables)
    compared = [] if findings.altered else judgements
    main = comparison(compared).frame if compared else tables[0].frame
    listed = [table for table in tables if table.listed]
    if compared:
        differing = differences(compared)
        listed += [side_by_side(compared), *([differing] if len(differing.frame) else [])]
    written = [
        write_csv(main, beside(stem, "", ".csv")),
        write_csv(flat(findings.rows), beside(stem, "rows", ".csv.gz")),
        *(_write_table(table, stem) for table in tables if table.frame is not main),
        *(write_text(latex(t, _label(findings, t)), beside(stem, t.name or "table", ".tex")) for t in listed),
    ]
    files, figures = write_figures(findings.outcome.figures, stem, figure, drawn=drawn)
    written += [*files, write_text(_page(findings, listed, [path.name for path in files]), beside(stem, "", ".md"))]
    about = beside(stem, "", ".json")
    earlier = listed_in(about)
    content = {**provenance_of(findings), "figures": figures, "files": [path.name for path in (*written, about)]}
    written.append(write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", about))
    for name in earlier - {path.name for path in written}:
        (stem.parent / name).unlink(missing_ok=True)
    return written


def _write_table(table: Table, stem: Path) -> Path:
    return write_csv(table.frame, beside(stem, table.name or "table", csv_ending(table.frame)))


def nothing_stored(findings: Findings) -> bool:
    """Tell whether an experiment has jobs and none of them is stored."""
    return bool(findings.records) and all(record.status == "missing" for record in findings.records)


def unattempted(findings: Findings) -> str:
    """Return why reported numbers have no counterpart in this run; empty if unknown."""
    if findings.altered:
        return f"not the paper's settings: {', '.join(findings.altered)}"
    if findings.missing:
        return f"data not available: {', '.join(sorted(findings.missing))}"
    if findings.failures:
        return f"{findings.failures} jobs failed; see the rows"
    if any(record.status == "missing" for record in findings.records):
        return "no stored result; run the experiment"
    return ""


def provenance_of(findings: Findings) -> dict[str, Json]:
    """Return what an experiment was run with: configuration, data, jobs, versions and machines."""
    jobs = {record.job.key: record for record in findings.records}
    return {
        "experiment": findings.name,
        "configuration": json.loads(without_homes(json.dumps(dict(findings.settings), ensure_ascii=False))),
        "data": dict(sorted(entry for record in jobs.values() for entry in record.job.data)),
        "missing": dict(findings.missing),
        "jobs": {key[:SHORT_KEY]: record.status for key, record in sorted(jobs.items())},
        "computed_with": computed_with(findings),
        "written_with": provenance(),
    }


def computed_with(findings: Findings) -> list[dict[str, Json]]:
    """Return the environments in which the jobs of an experiment ran, each once: versions and machine."""
    entries = [record.provenance for record in findings.records if record.provenance]
    return list({json.dumps(entry, sort_keys=True): entry for entry in entries}.values())


def listed_in(about: Path) -> set[str]:
    """Return the names of the files that an earlier run wrote, as its provenance lists them."""
    try:
        names = json.loads(about.read_text(encoding="utf-8"))["files"]
        return {str(name) for name in names if Path(name).name == name}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _label(findings: Findings, table: Table) -> str:
    """Return the name by which a LaTeX document refers to a table."""
    return f"tab:{findings.name}-{table.name or 'table'}"


def _page(findings: Findings, tables: Sequence[Table], files: Sequence[str]) -> str:
    parts = [f"# {markdown_text(findings.stem)}"]
    for figure in findings.outcome.figures:
        pictures = [beside(Path(findings.stem), figure.name, ending).name for ending in (".png", ".svg")]
        # Markdown shows no PDF.
        parts += [f"![{markdown_text(figure.title)}](<{name}>)" for name in pictures if name in files][:1]
    for table in tables:
        parts.append(f"## {markdown_text(table.title)}")
        parts.append(markdown(table) if len(table.frame) else "No row could be computed.")
    notes = [*findings.outcome.notes, *(f"Data not available: {reason}" for reason in findings.missing.values())]
    if findings.failures:
        failed = f"{findings.failures} of {len(findings.rows)} jobs failed"
        notes.append(f"{failed}, the first with: {findings.first_failure}")
    if notes:
        parts.append("## Notes")
        parts.append("\n".join(f"- {markdown_text(note)}" for note in notes))
    return "\n\n".join(parts) + "\n"


def flat(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with lists as JSON text, which a reader of the CSV can parse."""

    def text(value: object) -> object:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value

    return rows.map(text)
