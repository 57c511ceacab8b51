"""Runs as files: what an experiment found, written whole or not at all, and read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from trimbench.reproduction.execution.job import NOTHING, NUMBER, TEXT, Kind, faults, fields, list_of
from trimbench.reproduction.execution.provenance import computed_with, provenance
from trimbench.reproduction.files import (
    beside,
    csv_ending,
    hash_of,
    read_bytes,
    read_text,
    remove_temporary_folders,
    temporary_folders,
    unlinked,
    without_homes,
    write_csv,
    write_text,
)
from trimbench.reproduction.messages import brief, controllable, fitted, reason, some, visible
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.figures.drawing import write_figures
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.page import assets, count
from trimbench.reproduction.reporting.parts import PAGE, SHORT_KEY, SHOWN, Entry, part_of, read_texts
from trimbench.reproduction.reporting.tables import comparison, differences, latex, markdown_page, side_by_side
from trimbench.reproduction.reporting.verdicts import ELSEWHERE, Judgement
from trimbench.reproduction.settings import ConfigurationError, Json, unknown
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.world import world

if TYPE_CHECKING:
    import pandas as pd


_ABSENT = object()  # differs from every value of a setting


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

    ``<stem>.csv`` has one row for each reported number (or is the main table, if nothing is reported or settings were
    changed), ``<stem>_<table>.csv`` each other table (``.csv.gz`` if it is long), and ``<stem>_rows.csv.gz`` one row
    for each job. ``<stem>.md`` has the tables, and ``<stem>_<table>.tex`` each of them. Figures are drawn as
    ``<stem>.png``, or in the formats of the settings `figure`, unless `drawn` is false; their points are in
    ``<stem>_points.csv`` (``.csv.gz`` if there are many). ``<stem>.json`` has the provenance, what is needed to draw
    the figures from their points, the names of these files, and what else the page of a run shows, with the `status` of
    the jobs and what the experiment is `about`. Files that an earlier run listed there and this one does not write, for
    example a figure of other settings, are removed.
    """
    stem = inside_run(folder / findings.stem, folder)
    tables = list(findings.outcome.tables)
    compared = [] if findings.altered else judgements
    main = _with_origin(comparison(compared).frame, compared, findings) if compared else tables[0].frame
    listed = [table for table in tables if table.listed]
    if compared:
        differing = differences(compared)
        listed += [side_by_side(compared), *([differing] if len(differing.frame) else [])]
    written = [
        write_csv(main, beside(stem, "", ".csv")),
        write_csv(flat(_rows_with_origin(findings)), beside(stem, "rows", ".csv.gz")),
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
    pictures = [(one["title"], shown_picture(one["pictures"])) for one in figures]
    text = markdown_page(findings.stem, pictures=pictures, tables=listed, notes=_notes(findings))
    written += [*files, write_text(text, beside(stem, "", ".md"))]
    page = part_of(Entry(findings.name, status, about, judgements, findings), folder, {*written})
    return described(
        written, {**provenance_of([findings]), "figures": figures, "page": page}, beside(stem, "", ".json")
    )


def _rows_with_origin(findings: Findings) -> pd.DataFrame:
    """Return the rows of jobs, with the hash of the archive behind those that were computed elsewhere, if any were."""
    found = findings.adopted
    return findings.rows.assign(adopted=findings.rows["job"].map(found)) if found else findings.rows


def _with_origin(frame: pd.DataFrame, judgements: Sequence[Judgement], findings: Findings) -> pd.DataFrame:
    """Return the table of reported numbers, with the count of jobs that were computed elsewhere, if any were."""
    found = findings.adopted.keys()
    counts = [len(found & {*(one.number.jobs if one.number else ())}) for one in judgements]
    return frame.assign(elsewhere=counts) if found else frame


def described(written: Sequence[Path], provenance: Mapping[str, Json], about: Path) -> list[Path]:
    """Write the provenance and the names of some files to `about`, and return all; remove others that it listed."""
    paths = [*written, about]
    names = [path.name for path in paths]
    hashes = {path.name: hash_of(path) for path in written}
    earlier: set[str] = set()
    with contextlib.suppress(OSError, ConfigurationError):
        earlier.update(_said_in(about, about.parent).get("files", ()))
    said = {**provenance, "files": names, "sha256": hashes}
    write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", about)
    for name in earlier.difference(names):
        if name.startswith((f"{about.stem}_", f"{about.stem}.")):  # as all that an experiment or a sweep writes
            with contextlib.suppress(FileNotFoundError):
                world().unlink(about.with_name(name))
    return paths


def note_redrawn(about: Path, said: Mapping[str, Any], pictures: Collection[Path]) -> None:
    """Write the hashes of pictures that were drawn again into `about`, which said what a run has of an experiment."""
    hashes = said.get("sha256", {})
    beside = (path for path in pictures if path.parent == about.parent and path.name in hashes and path.is_file())
    if new := {path.name: digest for path in beside if hashes[path.name] != (digest := hash_of(path))}:
        write_text(json.dumps({**said, "sha256": {**hashes, **new}}, indent=1, ensure_ascii=False) + "\n", about)


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
        return f"{count(findings.failures, 'job')} failed; see the rows"
    if any(record.status == "missing" for record in findings.records):
        return "no stored result; run the experiment"
    return ""


def provenance_of(findings: Sequence[Findings]) -> dict[str, Json]:
    """Return what one or several experiments were run with: common settings, data, jobs, versions and machines."""
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
        "code": {record.job.function: record.job.code for record in jobs.values()},
        "jobs": {key[:SHORT_KEY]: record.status for key, record in sorted(jobs.items())},
        "computed_with": computed_with(records),
        "written_with": provenance(),
    }


def _notes(findings: Findings) -> list[str]:
    if not findings.failures:
        return findings.notes
    failed = f"{findings.failures} of {len(findings.rows)} jobs failed"
    return [*findings.notes, f"{failed}, the first with: {findings.first_failure}"]


def shown_picture(names: Sequence[str]) -> str:
    """Return the first picture that Markdown and browsers show, not a PDF; empty if there is none."""
    return next((name for name in names if name.endswith(SHOWN)), "")


def flat(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with lists as JSON text, which a reader of the CSV can parse."""

    def text(value: object) -> object:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value

    return rows.map(text)


# The runs in a folder of results: each has a folder of its own, which belongs to one profile.

_ABOUT = "run.json"
_GIT, _ALL = ".gitignore", "*\n"
# The folder of the records of jobs, beside the runs, and by what it is known.
_STORE, _OF_STORE = "jobs", re.compile("[0-9a-f]{2}|lock")


# Folders of other commands, beside the runs or inside one.
NOT_FAMILIES = (_STORE, "sweeps", "comparisons")


def check_name(name: str) -> None:
    """Raise ConfigurationError if files of a run have the name of an experiment."""
    if name.partition("/")[0] in (taken := (*NOT_FAMILIES, "run", "summary", "index")):
        raise ConfigurationError(
            f"the name of an experiment must not begin with {', '.join(taken)}, got {name!r}; move its file"
        )


def runs_in(root: Path) -> list[str]:
    """Return the names of the runs below a folder of results."""
    return sorted(path.parent.name for path in root.glob(f"*/{_ABOUT}") if not path.is_symlink())


def folder_of(root: Path, name: str) -> Path:
    """Return the folder of a run; raise ConfigurationError, which names those that exist, if there is none."""
    if name not in runs_in(root):
        if not runs_in(root):
            raise ConfigurationError(f"no run has written to {str(root)!r} yet; start one with task=run")
        raise unknown("run", runs_in(root), name)
    return root / name


_LONGEST_PROFILE = 10_000  # bytes of the file that has it


def profile_of(folder: Path) -> str:
    """Return the profile of a run; empty if the folder holds no run, or its file is damaged."""
    about = folder / _ABOUT
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        is_own = about.exists() and not about.is_symlink()
        said = json.loads(read_text(about, _LONGEST_PROFILE)) if is_own else {"profile": ""}
        digest = hashlib.sha256((profile := str(said["profile"])[:100]).encode()).hexdigest()
        if said in ({"profile": profile}, {"profile": profile, "sha256": digest}):  # formerly without a hash
            return profile
    return ""


def check_run(folder: Path, profile: str, what: str = "run") -> None:
    """Raise ConfigurationError unless a run of this profile may write to a folder: to its own, or to a new one.

    `what` is the parameter that named the folder.
    """
    found = profile_of(folder)
    if found not in ("", profile):
        way = "" if {found, profile} & {*project().tasks, ELSEWHERE} else f"add profile={found}, or "
        raise ConfigurationError(
            f"{what} must have one profile: {folder.name!r} has profile={found}, got profile={profile}; "
            f"{way}name another {what}"
        )
    if not found and (others := _others(folder)) and not _was_run(folder):
        raise ConfigurationError(
            f"{what} must be the folder of a run, or a new one, got {str(folder)!r} with {some(others, 3)}; "
            f"name another {what}"
        )
    store = folder.parent / _STORE
    others = _others(store)
    if others and not any(_OF_STORE.fullmatch(one) for one in others):
        raise ConfigurationError(
            f"{what} must lie in a folder of results, but {str(store)!r}, where records of jobs would go, has "
            f"{some(others, 3)}; take another folder of results"
        )


def _others(folder: Path) -> list[str]:
    """Return the names of what is in a folder, without what `make_run` leaves when it is killed."""
    if not folder.is_dir():
        return ["a file"] if os.path.lexists(folder) and not folder.is_symlink() else []
    kept, written = folder / _GIT, [one.name for one in temporary_folders(folder, "writing")]
    with contextlib.suppress(OSError):
        written += [_GIT] if read_bytes(kept) == _ALL.encode() else []
    return sorted(one.name for one in folder.iterdir() if one.name not in written)


def _was_run(folder: Path) -> bool:
    """Tell whether a folder holds a run whose own file is damaged."""
    about = folder / _ABOUT
    with contextlib.suppress(OSError, ConfigurationError):
        is_short = about.is_file() and not about.is_symlink() and about.stat().st_size < 1000
        return bool(is_short and re.search(rb'profile": "|sha256": "', read_bytes(about))) or is_run(folder)
    return False


def make_run(folder: Path, profile: str) -> None:
    """Make the folder of a run with this profile, unless it exists; git ignores it and the jobs beside it.

    Raises ConfigurationError for a folder that holds anything else.
    """
    if not profile_of(folder):
        check_run(folder, profile)
        for place in (folder, folder.parent / _STORE):
            world().make_folders(place)
            if not os.path.lexists(place / _GIT):
                write_text(_ALL, place / _GIT, flush=True)
        write_profile(folder, profile)
    for place in (folder, folder.parent / _STORE):
        remove_temporary_folders(place, "writing")  # of a program that was killed here


def write_profile(folder: Path, profile: str) -> None:
    """Write the file that makes an existing folder a run with this profile."""
    digest = hashlib.sha256(profile.encode()).hexdigest()
    write_text(json.dumps({"profile": profile, "sha256": digest}) + "\n", folder / _ABOUT, flush=True)


# What the files of a finished run say: the tables of its experiments, and what they were run with.

# Names of the tables that have no part of the file's name to be called by; the part with points of a figure ends so.
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
_BESIDE = TEXT.when(
    "the name of a file beside it, of at most 255 bytes",
    lambda t: t.isprintable() and Path(t).name == t not in ("", "..") and len(t.encode()) <= 255,
)
_PICTURE = _BESIDE.when("the name of a picture beside it", lambda name: name.endswith((*SHOWN, ".pdf")))
_MAPPING, _TEXTS, _NUMBERS = fields(**{"*": _ANY}), fields(**{"*": TEXT}), fields(**{"*": NUMBER})
_FIGURE = fields(
    kind=TEXT,
    points=_BESIDE,
    pictures=list_of(_PICTURE).when("at least one", bool),
    **dict.fromkeys(("levels*", "verticals*"), _NUMBERS),
    **{"marks*": _TEXTS, "methods*": _TEXTS, "drawn_with*": _ANY, "*": TEXT},
)
_ENVIRONMENT = {"commit*": TEXT | NOTHING, "packages*": _MAPPING, "*": _ANY}
_SAID = {
    "experiment": TEXT,
    "sha256": _TEXTS,
    "configuration": _MAPPING,
    "data": _TEXTS,
    "code": _TEXTS,
    "missing": _TEXTS,
    "jobs": _TEXTS,
    "computed_with": list_of(fields(**{"time*": TEXT, **_ENVIRONMENT})),
    "written_with": fields(time=TEXT, **_ENVIRONMENT),
    "files": list_of(_BESIDE),
    "figures": list_of(_FIGURE),
    "page": _MAPPING,
}
_NEEDED = ("experiment", "configuration", "files", "written_with", "page")


def inside_run(path: Path, folder: Path) -> Path:
    """Return a path below the folder of a run; raise ConfigurationError if a symbolic link is on the way."""
    try:
        return unlinked(path, folder)
    except ValueError as error:
        raise ConfigurationError(f"run {folder.name!r} must not lead elsewhere: {error}") from error


def files_in(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the files below a folder, without those that are being written or that git alone reads."""
    found = [path for path in sorted(folder.rglob(pattern)) if path.exists() and not path.is_dir()]
    for path in found:
        if not path.is_file():
            raise ConfigurationError(f"{path} must be a regular file, got a pipe or a device; remove it")
    parts = {path: path.relative_to(folder).parts for path in found}
    return [path for path in found if not any(one.startswith(".") or one.endswith(".tmp") for one in parts[path])]


def described_in(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the files below a folder that say how an experiment or a sweep was run, and what they say.

    Raises ConfigurationError if one cannot be read, or names a file that is not beside it.
    """
    for path in files_in(folder, "*.json"):
        if content := _said_in(path, folder):
            yield path, content


def read_about(folder: Path, stem: str) -> dict[str, Any]:
    """Return what a run says about an experiment besides its tables, with what the page shows of it.

    Raises OSError or ConfigurationError if ``<stem>.json`` cannot be read, or is not as `write_findings` writes it.
    """
    content = _said_in(path := folder / f"{stem}.json", folder, page=True)
    name = content["experiment"]
    if not _is_of(stem, name) or content["page"]["name"] != name:
        raise ConfigurationError(f"{path} must be about {stem}, got {brief(name)}; task=report writes it again")
    return content


def read_abouts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a run says about each of its experiments, by stem; raises as `read_about` does."""
    return {stem: read_about(folder, stem) for stem in sorted(stem for _, stem, _ in experiments_in(folder))}


def rows_file(about: Mapping[str, Any]) -> str:
    """Return the name of the file with the rows of an experiment's jobs; empty if it has none."""
    jobs = about["page"]["jobs"]
    return unquote(jobs["file"]) if jobs else ""


def read_rows(stem: str, about: Mapping[str, Any], folder: Path, needed: Collection[str]) -> list[dict[str, str]]:
    """Return the rows of an experiment's jobs, with cells as text; none if a run has none.

    Raises ConfigurationError if they cannot be read, or lack a column that is needed.
    """
    file = rows_file(about)
    if not file:
        return []
    rows = read_texts(inside_run(folder / file, folder))
    if absent := {*needed} - {*rows}:
        raise ConfigurationError(f"the rows of {stem} must have the column {min(absent)[:80]!r}; task=report writes it")
    return [dict(zip(map(str, rows), texts, strict=True)) for texts in rows.to_numpy().tolist()]


def _is_of(stem: str, name: str) -> bool:
    """Tell whether files are those of an experiment, with settings after two underscores or, formerly, a comma."""
    return stem == name or stem.startswith((f"{name}__", f"{name},"))


def _said_in(path: Path, folder: Path, *, page: bool = False) -> dict[str, Any]:
    """Return what a file of a folder says about an experiment or a sweep.

    Without `page`, it is empty if the file is about something else.
    """
    try:
        found = json.loads(read_text(unlinked(path, folder)))
        content: dict[str, Any] = found if isinstance(found, dict) and "experiment" in found else {}
        wrong = faults(content, {key: _SAID.get(key, _ANY) for key in (*content, *(_NEEDED if page else ()))})
        if wrong or (page and (wrong := faults(content["page"], PAGE))):
            raise ValueError(wrong)
        json.dumps(content, ensure_ascii=False).encode()  # lone surrogates cannot be shown
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read: {reason(error)}; task=report writes it again") from error
    return content


def is_run(folder: Path) -> bool:
    """Tell whether a folder has the files of an experiment."""
    return next(experiments_in(folder), None) is not None


def read_run(name: str, folder: Path) -> StoredRun:
    """Return what the files of a run say; ConfigurationError if one is missing or cannot be read."""
    found = {}
    for path, stem, about in experiments_in(folder):
        found[stem] = StoredExperiment(stem, str(about["experiment"]), _tables(path, about["files"]), about)
    return StoredRun(name, dict(sorted(found.items())))


def experiments_in(folder: Path) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Yield the file that describes each experiment of a run, its stem, and what it says."""
    for family in folder.iterdir() if folder.is_dir() else ():
        if not family.is_dir() or family.name in NOT_FAMILIES:
            continue
        for path, about in described_in(inside_run(family, folder)):
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
            frame = read_texts(about.with_name(name))
            part = plain.removeprefix(stem).removesuffix(".csv").lstrip("_") or MAIN
            tables[REPORTED if {"cell", "reproduced", "verdict"} <= set(frame) else part] = frame
    return tables


def not_written(folder: Path) -> list[str]:
    """Return what is in the folder of a run besides the files of its experiments, its pages and its summary."""
    ours = {folder / name for name in (_ABOUT, "index.html", "summary.csv", "summary.md", *assets())}
    for path, stem, about in experiments_in(folder):
        ours |= {path.with_name(name) for name in about["files"]} | {path.with_suffix(".html")}
        ours |= {folder / f"paper_{stem.partition('/')[0]}.html"}
    found = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir() or not any(path.iterdir())]
    return sorted(path.relative_to(folder).as_posix() for path in found if path not in ours or path.is_symlink())


# What a command prints.

# The words that are green or red on a terminal with colours, which add nothing to them.
_OUTCOME = re.compile(
    r"(?P<none>\b0\s+of\s+[\d,]+\s+\w+\s+\w+|→ reproduced)"
    r"|\b(?:(?P<good>reproduced|holds?|followed|shorter)|differs?|fails?|(?i:failed)|unexplained)\b"
)


def say(text: str) -> None:
    """Print a line at once, also where the output is read by another program; a terminal shows outcomes in colour."""
    text = visible(fitted(text))
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if coloured:
        text = _OUTCOME.sub(lambda w: w[0] if w["none"] else f"\033[{32 if w['good'] else 31}m{w[0]}\033[0m", text)
    stream = controllable(sys.stdout)
    stream.write(f"{text}\n")
    stream.flush()
