"""Runs as files: what an experiment found, written whole or not at all, and read again."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.store import Record, provenance
from trimbench.papers.files import beside, csv_ending, remove_temporary_folders, without_homes, write_csv, write_text
from trimbench.papers.reporting.figures.drawing import write_figures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.tables import comparison, differences, latex, markdown, markdown_text, side_by_side
from trimbench.papers.reporting.verdicts import Judgement
from trimbench.papers.validation import ConfigurationError, Json, unknown
from trimbench.papers.vocabulary.planning import Findings
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


_ABSENT = object()  # no value of a setting
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
    return described(written, {**provenance_of([findings]), "figures": figures}, beside(stem, "", ".json"))


def described(written: Sequence[Path], provenance: Mapping[str, Json], about: Path) -> list[Path]:
    """Write the provenance of some files, with their names, and return them with it; files of before are removed."""
    paths = [*written, about]
    names = [path.name for path in paths]
    earlier = _listed_in(about)
    write_text(json.dumps({**provenance, "files": names}, indent=1, ensure_ascii=False) + "\n", about)
    for name in earlier.difference(names):
        about.with_name(name).unlink(missing_ok=True)
    return paths


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


def provenance_of(findings: Sequence[Findings]) -> dict[str, Json]:
    """Return what an experiment was run with, or several: common settings, data, jobs, versions and machines."""
    records = [record for one in findings for record in one.records]
    jobs = {record.job.key: record for record in records}
    first, *others = [dict(one.settings) for one in findings] or [{}]
    common = {key: value for key, value in first.items() if all(one.get(key, _ABSENT) == value for one in others)}
    return {
        "experiment": ", ".join(dict.fromkeys(one.name for one in findings)),
        "configuration": json.loads(without_homes(json.dumps(common, ensure_ascii=False))),
        "data": dict(sorted(entry for record in jobs.values() for entry in record.job.data)),
        "missing": {place: why for one in findings for place, why in one.missing.items()},
        "roads": {place: road for one in findings for place, road in one.roads.items()},
        "jobs": {key[:SHORT_KEY]: record.status for key, record in sorted(jobs.items())},
        "computed_with": computed_with(records),
        "written_with": provenance(),
    }


def computed_with(records: Sequence[Record]) -> list[dict[str, Json]]:
    """Return the environments in which jobs ran, each once: versions and machine."""
    entries = [environment_of(record) for record in records if record.provenance]
    return list({json.dumps(entry, sort_keys=True): entry for entry in entries}.values())


def environment_of(record: Record) -> dict[str, Json]:
    """Return what a job ran with, whatever data it read."""
    return {name: value for name, value in record.provenance.items() if name != "roads"}


def _listed_in(about: Path) -> set[str]:
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
    notes = findings.notes
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


# The runs in a folder of results: each has a folder of its own, which belongs to one profile.

_ABOUT = "run.json"


def runs_in(root: Path) -> list[str]:
    """Return the names of the runs below a folder of results."""
    return sorted(path.parent.name for path in root.glob(f"*/{_ABOUT}"))


def folder_of(root: Path, name: str) -> Path:
    """Return the folder of a run; raise ConfigurationError, which names those that exist, if there is none."""
    if name not in runs_in(root):
        if not runs_in(root):
            raise ConfigurationError(f"no run has written to {str(root)!r} yet; start one with task=run")
        raise unknown("run", runs_in(root), name)
    return root / name


def profile_of(folder: Path) -> str:
    """Return the profile of a run; empty if the folder holds no run."""
    try:
        return str(json.loads((folder / _ABOUT).read_text(encoding="utf-8"))["profile"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_profile(folder: Path, profile: str) -> None:
    """Raise ConfigurationError if a folder holds a run of another profile."""
    found = profile_of(folder)
    if found not in ("", profile):
        raise ConfigurationError(
            f"run must have one profile: {folder.name!r} has profile={found}, got profile={profile}; "
            f"add profile={found}, or name another run"
        )


def make_run(folder: Path, profile: str) -> None:
    """Make the folder of a run of this profile, unless it exists; git sees neither it nor the jobs beside it."""
    if not profile_of(folder):
        for place in (folder, folder.parent / "jobs"):
            place.mkdir(parents=True, exist_ok=True)
            write_text("*\n", place / ".gitignore")
        write_profile(folder, profile)
    remove_temporary_folders(folder, "writing")  # of a program that was killed here


def write_profile(folder: Path, profile: str) -> None:
    """Write what makes an existing folder a run of this profile."""
    write_text(json.dumps({"profile": profile}) + "\n", folder / _ABOUT)


# What the files of a finished run say: the tables of its experiments, and what they were run with.

# Folders of other commands, beside the runs or inside one.
_NOT_FAMILIES = ("jobs", "sweeps", "comparisons")
# A table is named by its part of the file's name; these have none. Parts with the points of a figure end with the last.
REPORTED, MAIN, POINTS = "reported numbers", "table", "points"


@dataclass(frozen=True, eq=False)
class StoredExperiment:
    """The tables of an experiment and the points of its figures, by part, with cells as text, and its provenance.

    The stem is that of its files, for example "trimming/table6,engine=sdd" of the experiment "trimming/table6".
    """

    stem: str
    name: str
    tables: Mapping[str, pd.DataFrame]
    about: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The experiments of a run by stem."""

    name: str
    experiments: Mapping[str, StoredExperiment]


def is_run(folder: Path) -> bool:
    """Tell whether a folder has the files of an experiment."""
    return next(_descriptions(folder), None) is not None


def read_run(name: str, folder: Path) -> StoredRun:
    """Return what the files of a run say; ConfigurationError if one is missing or cannot be read."""
    found = {}
    for path, stem, about in _descriptions(folder):
        found[stem] = StoredExperiment(stem, str(about["experiment"]), _tables(path, about["files"]), about)
    return StoredRun(name, dict(sorted(found.items())))


def _descriptions(folder: Path) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Yield the file with the provenance of each experiment, its stem, and its content."""
    for family in folder.iterdir() if folder.is_dir() else ():
        for path in family.rglob("*.json") if family.is_dir() and family.name not in _NOT_FAMILIES else ():
            try:
                about = json.loads(path.read_text(encoding="utf-8"))
                name, _ = str(about["experiment"]), about["files"]
            except (OSError, ValueError, KeyError, TypeError):
                continue
            stem = path.relative_to(folder).with_suffix("").as_posix()
            # In the folder above several runs, the stem begins with the name of a run.
            if stem == name or stem.startswith(f"{name},"):
                yield path, stem, about


def _tables(about: Path, files: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the tables and the points of figures, but not the rows of jobs, which both summarise."""
    stem, tables = about.name.removesuffix(".json"), {}
    for name in files:
        plain = name.removesuffix(".gz")
        if plain.endswith(".csv") and not plain.endswith("_rows.csv"):
            frame = _read(about.with_name(name))
            part = plain.removeprefix(stem).removesuffix(".csv").lstrip("_") or MAIN
            tables[REPORTED if {"cell", "reproduced", "verdict"} <= set(frame) else part] = frame
    return tables


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except pd.errors.EmptyDataError:  # a table without columns
        return pd.DataFrame()
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"runs: {path} cannot be read ({error}); write it again with task=report") from error
