"""Runs as files: what an experiment found, written whole or not at all, and read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import operator
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote

from trimbench.papers.data.cache import is_inside
from trimbench.papers.execution.job import COUNT, FLAG, NOTHING, NUMBER, TEXT, Kind, faults, fields
from trimbench.papers.execution.job import listed as each
from trimbench.papers.execution.store import Record, provenance
from trimbench.papers.files import (
    as_it_was,
    beside,
    csv_ending,
    remove_temporary_folders,
    without_homes,
    write_csv,
    write_text,
)
from trimbench.papers.reporting.figures.drawing import points_name, write_figures
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.tables import (
    asked,
    comparison,
    differences,
    latex,
    markdown_page,
    shown,
    side_by_side,
)
from trimbench.papers.reporting.verdicts import CAUSES, DIFFERENCES, NOT_ATTEMPTED, VERDICTS_ON, Judgement
from trimbench.papers.validation import ConfigurationError, Json, brief, reason, unknown
from trimbench.papers.vocabulary.planning import Findings
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


# The formats that a browser shows as pictures.
_SHOWN = (".png", ".svg")
_ABSENT = object()  # no value of a setting
# Enough of a job's key to find its record in the store; the rows have all of it.
SHORT_KEY = 12


def write_findings(
    findings: Findings,
    judgements: Sequence[Judgement],
    folder: Path,
    figure: FigureSettings,
    *,
    drawn: bool = True,
    status: str = "complete",
    about: str = "",
) -> list[Path]:
    """Write all files of an experiment below `folder`, and return them.

    ``<stem>.csv`` has one row for each reported number (or is the main table, where nothing is reported or the
    settings are others), ``<stem>_<table>.csv`` each other table (``.csv.gz`` if it is long), and
    ``<stem>_rows.csv.gz`` one row for each job. ``<stem>.md`` has the tables, and ``<stem>_<table>.tex`` each of
    them. Figures are drawn as ``<stem>.png``, or in the formats of the settings `figure`, unless `drawn` is false;
    their points are in ``<stem>_points.csv`` (``.csv.gz`` if there are many). ``<stem>.json`` has the provenance,
    what is needed to draw the figures from their points, the names of these files, and what the page of a run shows
    besides, with the `status` of the jobs and what the experiment is `about`. Files that an earlier run listed
    there and this one does not write, for example a figure of other settings, are removed.
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
        *(
            write_csv(table.frame, beside(stem, table.name or "table", csv_ending(table.frame)))
            for table in tables
            if table.frame is not main
        ),
        *(
            write_text(latex(one, f"tab:{findings.name}-{name}"), beside(stem, name, ".tex"))
            for one, name in ((table, table.name or "table") for table in listed)
        ),
    ]
    files, figures = write_figures(findings.outcome.figures, stem, figure, drawn=drawn)
    written += [*files, write_text(_page(findings, listed, [path.name for path in files]), beside(stem, "", ".md"))]
    page = part_of(Entry(findings.name, status, about, judgements, findings), folder)
    return described(
        written, {**provenance_of([findings]), "figures": figures, "page": page}, beside(stem, "", ".json")
    )


def described(written: Sequence[Path], provenance: Mapping[str, Json], about: Path) -> list[Path]:
    """Write the provenance of some files, with their names, and return them with it; files of before are removed."""
    paths = [*written, about]
    names = [path.name for path in paths]
    earlier: set[str] = set()
    with contextlib.suppress(OSError, ConfigurationError):
        earlier.update(_said_in(about).get("files", ()))
    write_text(json.dumps({**provenance, "files": names}, indent=1, ensure_ascii=False) + "\n", about)
    for name in earlier.difference(names):
        about.with_name(name).unlink(missing_ok=True)
    return paths


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


def commit_of(where: Mapping[str, Json]) -> str:
    """Return the commit of an environment as pages show it."""
    return f"{str(where.get('commit') or 'unknown')[:12]}{' and uncommitted changes' if where.get('dirty') else ''}"


def computed_with(records: Sequence[Record]) -> list[dict[str, Json]]:
    """Return the environments in which jobs ran, each once: versions and machine."""
    entries = [environment_of(record) for record in records if record.provenance]
    return list({json.dumps(entry, sort_keys=True): entry for entry in entries}.values())


def environment_of(record: Record) -> dict[str, Json]:
    """Return what a job ran with, whatever data it read."""
    return {name: value for name, value in record.provenance.items() if name != "roads"}


def _page(findings: Findings, tables: Sequence[Table], files: Sequence[str]) -> str:
    notes = findings.notes
    if findings.failures:
        failed = f"{findings.failures} of {len(findings.rows)} jobs failed"
        notes.append(f"{failed}, the first with: {findings.first_failure}")
    named = [[beside(Path(findings.stem), one.name, end).name for end in _SHOWN] for one in findings.outcome.figures]
    found = [shown_picture([name for name in names if name in files]) for names in named]
    pictures = [(figure.title, name) for figure, name in zip(findings.outcome.figures, found, strict=True)]
    return markdown_page(findings.stem, pictures=pictures, tables=tables, notes=notes)


def shown_picture(names: Sequence[str]) -> str:
    """Return the first picture that Markdown and a browser show, which PDF is not; empty if there is none."""
    return next((name for name in names if name.endswith(_SHOWN)), "")


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
    """Return the profile of a run; empty if the folder holds no run, or what it says is damaged."""
    about = folder / _ABOUT
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        said = json.loads(about.read_text(encoding="utf-8")) if about.is_file() else {"profile": ""}
        digest = hashlib.sha256((profile := str(said["profile"])[:100]).encode()).hexdigest()
        if said in ({"profile": profile}, {"profile": profile, "sha256": digest}):  # formerly without a hash
            return profile
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
    digest = hashlib.sha256(profile.encode()).hexdigest()
    write_text(json.dumps({"profile": profile, "sha256": digest}) + "\n", folder / _ABOUT)


# What the files of a finished run say: the tables of its experiments, and what they were run with.

# Folders of other commands, beside the runs or inside one.
NOT_FAMILIES = ("jobs", "sweeps", "comparisons")
# A table is named by its part of the file's name; these have none. Parts with the points of a figure end with the last.
REPORTED, MAIN, POINTS = "reported numbers", "table", "points"


@dataclass(frozen=True, eq=False)
class StoredExperiment:
    """The tables of an experiment and the points of its figures, by part, with cells as text, and its provenance.

    The stem is that of its files, for example "trimming/table6__engine-sdd" of the experiment "trimming/table6".
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


# What a run, which may be from somebody else, says of an experiment or a sweep: its files are beside what it says.
_ANY = Kind("anything", lambda _: True)
_BESIDE = TEXT.when("the name of a file beside it", lambda t: t.isprintable() and Path(t).name == t not in ("", ".."))
_PICTURE = _BESIDE.when("the name of a picture beside it", lambda name: name.endswith((*_SHOWN, ".pdf")))
_MAPPING, _TEXTS, _NUMBERS = fields(**{"*": _ANY}), fields(**{"*": TEXT}), fields(**{"*": NUMBER})
_FIGURE = fields(
    kind=TEXT,
    points=_BESIDE,
    pictures=each(_PICTURE).when("at least one", bool),
    **dict.fromkeys(("levels*", "verticals*"), _NUMBERS),
    **{"marks*": _TEXTS, "methods*": _TEXTS, "drawn_with*": _ANY, "*": TEXT},
)
_ENVIRONMENT = {"commit*": TEXT | NOTHING, "packages*": _MAPPING, "*": _ANY}
_SAID = {
    "experiment": TEXT,
    "configuration": _MAPPING,
    "data": _TEXTS,
    "missing": _TEXTS,
    "jobs": _TEXTS,
    "computed_with": each(fields(**{"time*": TEXT, **_ENVIRONMENT})),
    "written_with": fields(time=TEXT, **_ENVIRONMENT),
    "files": each(_BESIDE),
    "figures": each(_FIGURE),
    "page": _MAPPING,
}
_NEEDED = ("experiment", "configuration", "files", "written_with", "page")


def described_in(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the files below a folder that say of an experiment or a sweep how it was run, and what they say.

    Raises ConfigurationError if one cannot be read, or names a file that is not beside it.
    """
    for path in sorted(folder.rglob("*.json")):
        passed = any(p.startswith(".") or p.endswith(".tmp") for p in path.relative_to(folder).parts)
        if not passed and path.is_file() and (content := _said_in(path)):
            yield path, content


def read_about(folder: Path, stem: str) -> dict[str, Any]:
    """Return what a run says of an experiment besides its tables, and what its page shows of it.

    Raises OSError or ConfigurationError if ``<stem>.json`` cannot be read, or is not as `write_findings` writes it.
    """
    content = _said_in(path := folder / f"{stem}.json", page=True)
    name = content["experiment"]
    if not _is_of(stem, name) or content["page"]["name"] != name:
        raise ConfigurationError(f"{path} must be about {stem}, got {brief(name)}; task=report writes it again")
    return content


def _is_of(stem: str, name: str) -> bool:
    """Tell whether files are those of an experiment, with settings after two underscores or, formerly, a comma."""
    return stem == name or stem.startswith((f"{name}__", f"{name},"))


def _said_in(path: Path, *, page: bool = False) -> dict[str, Any]:
    """Return what a file says of an experiment or a sweep; nothing if it is about something else and needs no page."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        content: dict[str, Any] = found if isinstance(found, dict) and "experiment" in found else {}
        wrong = faults(content, {key: _SAID.get(key, _ANY) for key in (*content, *(_NEEDED if page else ()))})
        if wrong or (page and (wrong := faults(content["page"], _PAGE))):
            raise ValueError(wrong)
        json.dumps(content, ensure_ascii=False).encode()  # what is shown needs whole characters
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read: {reason(error)}; task=report writes it again") from error
    return content


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
    for family in folder.iterdir() if folder.is_dir() else ():
        for path, about in described_in(family) if family.is_dir() and family.name not in NOT_FAMILIES else ():
            stem = path.relative_to(folder).with_suffix("").as_posix()
            # In the folder above several runs, the stem begins with the name of a run.
            if "files" in about and _is_of(stem, about["experiment"]):
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


# What the page of a run shows of one experiment: in its .json, apart from what its tables and rows have.

# Values of JSON alone: what is read again is what was written.
Part: TypeAlias = Mapping[str, Any]
# Of an experiment: a page shows all as a table; and of rows, a number or a range.
_MOST_NUMBERS, _RUN = 500, "[0-9]{1,9}(-[0-9]{1,9})?"


def _are_ranges(text: str) -> bool:
    ends = [int(end) for end in re.findall("[0-9]+", text)]
    return bool(re.fullmatch(rf"({_RUN}( {_RUN})*)?", text)) and ends == sorted({*ends})


def _is_judged(number: Part) -> bool:
    subject, verdict, differs = number["subject"], number["verdict"], number["verdict"] in DIFFERENCES
    causes = CAUSES if differs and subject != "time" else (None,)
    known = subject in VERDICTS_ON and verdict in (*VERDICTS_ON[subject], NOT_ATTEMPTED)
    return known and number["differs"] is differs and number["cause"] in causes


_FILE = TEXT.when("the address of a file of the run", lambda a: is_inside(b := unquote(a)) and _address(Path(b)) == a)
_LINK = TEXT.when("empty", operator.not_) | _FILE
_CSV = _FILE.when("the address of a table of the run", lambda link: link.endswith((".csv", ".csv.gz")))
_RANGES = TEXT.when("rows in ascending order, such as '0-3 7'", _are_ranges)
_FORMAT = TEXT.when("a format of numbers of a few digits, such as '.3f'", lambda spec: not re.search("[0-9]{3}", spec))
_SIZE = NOTHING | each(COUNT).when("width and height", lambda size: len(size) == 2)
_NUMBER = fields(
    **dict.fromkeys(("cell", "row", "quantity", "subject", "reported", "source", "ours", "verdict", "reason"), TEXT),
    **dict.fromkeys(("reading", "inferred", "probability"), TEXT),
    differs=FLAG,
    cause=NOTHING | TEXT,
    n_jobs=COUNT,
    jobs=_RANGES,
).when("a number with its verdict", _is_judged)
_PAGE = {
    **dict.fromkeys(("name", "status", "error", "about", "commit"), TEXT),
    **dict.fromkeys(("altered", "notes", "computed*"), each(TEXT)),
    "numbers": each(_NUMBER).when(f"at most {_MOST_NUMBERS} numbers", lambda found: len(found) <= _MOST_NUMBERS),
    "figures": each(fields(title=TEXT, picture=_LINK, size=_SIZE, points=_LINK)),
    "tables": each(fields(title=TEXT, file=_CSV, formats=fields(**{"*": _FORMAT}), texts=each(TEXT))),
    "jobs": NOTHING | fields(file=_CSV, labels=each(TEXT), texts=each(TEXT), **{"computed with": each(_RANGES)}),
    "provenance": _LINK,
}


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
    """Return what the page of a run shows of an experiment, with links to the files that it finds in `folder`.

    Of its tables and its jobs, it says how their files are read, for `filled`.
    """
    found = entry.findings
    part: dict[str, Any] = {
        "name": entry.name,
        "status": entry.status,
        "error": entry.error,
        "about": entry.about,
        "altered": list(entry.altered),
        "commit": commit_of(provenance()),
        "numbers": [_number_parts(found, one) for one in entry.judgements],
    }
    if found is None:
        return part | {"figures": [], "tables": [], "notes": [], "jobs": None, "provenance": ""}
    stem = Path(found.stem)
    tables = [table for table in found.outcome.tables if table.listed and len(table.frame)]
    return part | {
        "computed": [*map(commit_of, computed_with(found.records))],
        "figures": _figures(found, folder),
        "tables": [
            {
                "title": table.title,
                "file": _link_to_csv(stem, table.name or "table", folder) or _link_to_csv(stem, "", folder),
                "formats": dict(table.formats),
                "texts": texts_of(table.frame),
            }
            for table in tables
        ],
        "notes": found.notes,
        "jobs": {
            "file": _link_to_csv(stem, "rows", folder),
            "labels": list(found.labels),
            "texts": texts_of(found.rows[list(found.labels)]),
            "computed with": _environments(found),
        },
        "provenance": _address(beside(stem, "", ".json")),
    }


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns that have nothing but text, which a reader takes as it is."""
    return [str(name) for name, column in frame.items() if len(column) and all(type(v) is str for v in column.tolist())]


def filled(part: Part, folder: Path) -> Part:
    """Return a part of the page with its tables and its list of jobs, from the files in `folder` that it names."""
    tables = [
        Table(one["title"], read_cells(folder / unquote(one["file"]), one["texts"]), one["formats"])
        for one in part["tables"]
    ]
    jobs = part["jobs"] and job_list(part["jobs"], folder)
    _check_rows([number["jobs"] for number in part["numbers"]], jobs["length"] if jobs else 0)
    return {
        **part,
        "tables": [{"table": table, "file": one["file"]} for table, one in zip(tables, part["tables"], strict=True)],
        "jobs": jobs,
    }


def read_cells(path: Path, texts: Sequence[str], only: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table as it was written: numbers, answers and what is missing, and the columns `texts` as they are."""
    import pandas as pd

    frame = _read(path).rename(columns=as_it_was)
    columns: dict[Any, pd.Series[Any]] = {}
    for place, name in enumerate(frame):
        if only is not None and name not in only:
            continue
        cells = [as_it_was(cell) for cell in frame.iloc[:, place].tolist()]
        values = cells if name in texts else [_value(cell) for cell in cells]
        kinds = {type(value) for value in values}
        # Whole numbers stay whole beside what is missing.
        dtype = int if kinds == {int} else float if kinds <= {float, type(None)} else object
        columns[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def _value(cell: str) -> Json:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(cell)
    return {"": None, "True": True, "False": False}.get(cell, cell)


def _number_parts(found: Findings | None, one: Judgement) -> dict[str, object]:
    number, inferred = one.number, one.explanation
    known = found is not None and number is not None and one.verdict != "not attempted"
    others = inferred.jobs if inferred and one.differs else ()
    places = rows_behind(found, (*number.jobs, *others)) if known and found and number else []
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
        "reading": one.reading,
        "inferred": f"{inferred.value:.4g}" if inferred and one.differs else "",
        "probability": f"{number.probability.value:.2g}" if number and number.probability else "",
        "n_jobs": len(places),
        "jobs": as_ranges(places),
    }


def _link(file: Path, folder: Path) -> str:
    return _address(file) if (folder / file).is_file() else ""


def _address(file: Path) -> str:
    return quote(file.as_posix(), safe="/,=")


def _link_to_csv(stem: Path, part: str, folder: Path) -> str:
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


# The jobs of an experiment as the page lists them, and the rows of this list behind a number.

# Enough of seconds to compare them.
_DIGITS = 3


def job_list(about: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the jobs of an experiment from the file with its rows: status, labels, seconds, environment and key.

    A column has each value once: row i has the value ``of[at[i]]``. Where `at` is empty, all rows have the only value,
    or each its own.
    """
    labels, path, environments = about["labels"], folder / unquote(about["file"]), about["computed with"]
    rows = read_cells(path, [*about["texts"], "status", "job"], [*labels, "status", "seconds", "job"])
    if absent := {*labels, "status", "job"} - {*rows}:
        raise ConfigurationError(f"{path} must have the column {min(absent)[:80]!r}; task=report writes it again")
    _check_rows(environments, len(rows))
    number_of = {row: number for number, ranges in enumerate(environments, start=1) for row in in_ranges(ranges)}
    seconds = rows["seconds"].tolist() if "seconds" in rows else [None] * len(rows)
    return {
        "length": len(rows),
        "file": about["file"],
        "columns": [
            _column("status", rows["status"].tolist()),
            *(_column(label, rows[label].tolist()) for label in labels),
            _column("seconds", [float(f"{one:.{_DIGITS}g}") if type(one) in (int, float) else None for one in seconds]),
            _column("computed with", [number_of.get(row) for row in range(len(rows))]),
            _column("key", [key[:SHORT_KEY] for key in rows["job"]]),
        ],
    }


def _environments(found: Findings) -> list[str]:
    environments = computed_with(found.records)
    place = {one.job.key: environments.index(environment_of(one)) for one in found.records if one.provenance}
    numbers = [place.get(key) for key in found.rows["job"]]
    return [as_ranges([row for row, one in enumerate(numbers) if one == at]) for at in range(len(environments))]


def rows_behind(found: Findings, keys: Sequence[str]) -> list[int]:
    """Return the rows of the list of jobs that have these keys."""
    wanted = set(keys)
    return [place for place, key in enumerate(found.rows["job"]) if key in wanted]


def as_ranges(places: list[int]) -> str:
    """Return ascending whole numbers as text, with consecutive ones as a range, for example ``0-3 7``."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1][1:] = [place]
        else:
            runs.append([place])
    return " ".join("-".join(map(str, run)) for run in runs)


def in_ranges(text: str) -> Iterator[int]:
    """Yield the whole numbers that `as_ranges` wrote."""
    for run in text.split():
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _check_rows(ranges: Iterable[str], n_rows: int) -> None:
    last = max((int(re.split("[ -]", text)[-1]) for text in ranges if text), default=-1)
    if last >= n_rows:
        raise ConfigurationError(f"jobs on a page must be among its {n_rows} rows, got {last}; task=report writes both")


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    plain = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    # True and 1 are equal, and yet two values.
    texts = [json.dumps(value) for value in plain]
    distinct = dict(zip(texts, plain, strict=True))
    place = {text: number for number, text in enumerate(distinct)}
    at = [place[text] for text in texts] if 1 < len(place) < len(texts) else []
    return {"name": name, "of": [*distinct.values()], "at": at}
