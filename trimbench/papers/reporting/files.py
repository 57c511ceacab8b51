"""Write what an experiment found: tables, figures, points and provenance, each file whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.provenance import provenance
from trimbench.papers.execution.temporary import remove_stale, temporary_name
from trimbench.papers.reporting.figures import draw
from trimbench.papers.reporting.latex import latex
from trimbench.papers.reporting.tables import comparison, differences, markdown, side_by_side
from trimbench.papers.reporting.verdicts import Judgement
from trimbench.papers.study.figures import Figure
from trimbench.papers.study.running import Findings
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd


def write_findings(findings: Findings, judgements: Sequence[Judgement], folder: Path) -> list[Path]:
    """Write all files of an experiment below `folder`, and return them.

    ``<name>.csv`` has one row for each reported number (or is the main table, where nothing is reported),
    ``<name>_rows.csv`` one for each job. ``<name>.md`` has the tables, ``<name>_<table>.tex`` one each, ``<name>.png``
    and ``.pdf`` the figure, whose points are in ``<name>_points.csv``, and ``<name>.json`` the provenance and the names
    of these files.
    Files that an earlier run listed there and this one does not write, for example a figure of other settings, are
    removed.
    """
    stem = folder / findings.name
    stem.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(stem.parent.glob("writing.*.tmp"))
    tables = list(findings.outcome.tables)
    main = comparison(judgements).frame if judgements else tables[0].frame
    shown = [table for table in tables if table.listed]
    if judgements:
        differing = differences(judgements)
        shown += [side_by_side(judgements), *([differing] if len(differing.frame) else [])]
    written = [
        _write_csv(main, beside(stem, "", ".csv")),
        _write_csv(_flat(findings.rows), beside(stem, "rows", ".csv")),
        *(_write_csv(t.frame, beside(stem, t.name or "table", ".csv")) for t in tables if t.frame is not main),
        _write_text(_page(findings, shown), beside(stem, "", ".md")),
        *(
            _write_text(latex(t, f"tab:{findings.name}-{t.name or 'table'}"), beside(stem, t.name or "table", ".tex"))
            for t in shown
        ),
        *(path for figure in findings.outcome.figures for path in _write_figure(figure, stem)),
    ]
    about = beside(stem, "", ".json")
    earlier = _listed(about)
    content = {**provenance_of(findings), "files": [path.name for path in (*written, about)]}
    written.append(_write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", about))
    for name in earlier - {path.name for path in written}:
        (stem.parent / name).unlink(missing_ok=True)
    return written


def write_summary(lines: pd.DataFrame, page: str, folder: Path) -> list[Path]:
    """Write the overview of several experiments as ``summary.csv`` and ``summary.md``, and the page ``index.html``."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale(folder.glob("writing.*.tmp"))
    text = f"# Reported and reproduced\n\n{markdown(Table('', lines))}\n"
    return [
        _write_csv(lines, folder / "summary.csv"),
        _write_text(text, folder / "summary.md"),
        _write_text(page, folder / "index.html"),
    ]


def beside(stem: Path, part: str, ending: str) -> Path:
    """Return the file of one part of an experiment, for example ``table6_rows.csv``."""
    # A part may be the name of a data set, which may contain slashes.
    return stem.with_name(f"{stem.name}_{part.replace('/', '_')}{ending}" if part else f"{stem.name}{ending}")


def points_name(figure: Figure) -> str:
    """Return the name of the part that holds a figure's points."""
    return f"{figure.name}_points" if figure.name else "points"


def unattempted(findings: Findings) -> str:
    """Return why reported numbers have no counterpart in this run; empty if unknown."""
    if findings.altered:
        return f"not the paper's settings: {', '.join(findings.altered)} was set"
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
        "configuration": dict(findings.settings),
        "data": dict(sorted(entry for record in jobs.values() for entry in record.job.data)),
        "missing": dict(findings.missing),
        "jobs": {key: record.status for key, record in sorted(jobs.items())},
        "computed_with": computed_with(findings),
        "written_with": provenance(),
    }


def computed_with(findings: Findings) -> list[dict[str, Json]]:
    """Return the environments in which the jobs of an experiment ran, each once: versions and machine."""
    entries = [record.provenance for record in findings.records if record.provenance]
    return list({json.dumps(entry, sort_keys=True): entry for entry in entries}.values())


def _listed(about: Path) -> set[str]:
    """Return the names of the files that an earlier run wrote, as its provenance lists them."""
    try:
        names = json.loads(about.read_text(encoding="utf-8"))["files"]
        return {str(name) for name in names if Path(name).name == name}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _page(findings: Findings, tables: Sequence[Table]) -> str:
    parts = [f"# {findings.name}"]
    for figure in findings.outcome.figures:
        if len(figure.points):
            name = beside(Path(findings.name), figure.name, ".png").name
            parts.append(f"![{figure.title}]({name})")
    for table in tables:
        parts.append(f"## {table.title}")
        parts.append(markdown(table) if len(table.frame) else "No row could be computed.")
    notes = list(findings.outcome.notes)
    notes += [f"Data not available: {reason}" for reason in findings.missing.values()]
    if findings.failures:
        failed = f"{findings.failures} of {len(findings.rows)} jobs failed"
        notes.append(f"{failed}, the first with: {findings.first_failure}")
    if notes:
        parts.append("## Notes")
        parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _flat(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with lists as JSON text, which a reader of the CSV can parse."""

    def text(value: object) -> object:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value

    return rows.map(text)


def _write_figure(figure: Figure, stem: Path) -> list[Path]:
    if figure.points.empty:
        return []
    pictures = [beside(stem, figure.name, ending) for ending in (".png", ".pdf")]
    with _temporary(pictures) as temporaries:
        draw(figure, temporaries)
    return [*pictures, _write_csv(figure.points, beside(stem, points_name(figure), ".csv"))]


def _write_csv(frame: pd.DataFrame, path: Path) -> Path:
    return _write(path, lambda temporary: frame.to_csv(temporary, index=False, encoding="utf-8"))


def _write_text(text: str, path: Path) -> Path:
    return _write(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _write(path: Path, write: Callable[[Path], object]) -> Path:
    with _temporary([path]) as (temporary,):
        write(temporary)
    return path


@contextmanager
def _temporary(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary name for each path; the files take their places once all are written."""
    folder = paths[0].parent / temporary_name("writing")
    folder.mkdir()
    try:
        temporaries = [folder / path.name for path in paths]
        yield temporaries
        for temporary, path in zip(temporaries, paths, strict=True):
            temporary.replace(path)
    except OSError as error:  # the system's own message about a full disk names no file
        reason = error.strerror or str(error)
        raise OSError(error.errno or 0, f"cannot write {', '.join(map(str, paths))}: {reason}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
