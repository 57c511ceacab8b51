"""What the page of a run shows of one experiment: kept in its .json, without the content of tables and rows."""

from __future__ import annotations

import contextlib
import json
import math
import operator
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote

from trimbench.reproduction.data.cache import is_inside
from trimbench.reproduction.execution.job import COUNT, FLAG, NOTHING, POSITIVE, TEXT, fields, list_of, number
from trimbench.reproduction.execution.provenance import commit_of, computed_with, environment_of, provenance
from trimbench.reproduction.files import as_it_was, beside, read_bytes, read_csv, unlinked
from trimbench.reproduction.reporting.tables import asked
from trimbench.reproduction.reporting.verdicts import (
    CAUSES,
    DIFFERENCES,
    NOT_ATTEMPTED,
    VERDICTS_ON,
    Judgement,
    beside_printed,
    shown_value,
)
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.figures import points_name
from trimbench.reproduction.vocabulary.numbers import Number, Probability
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


# The formats that a browser shows as pictures.
SHOWN = (".png", ".svg")
# Enough of a job's key to find its record in the store; the rows have all of it.
SHORT_KEY = 12


def read_texts(path: Path) -> pd.DataFrame:
    """Read a table of a run with its cells as text."""
    try:
        return read_csv(path)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"runs: {path} cannot be read ({error}); write it again with task=report") from error


# Only JSON values, so that what is read is what was written.
Part: TypeAlias = Mapping[str, Any]
# The most numbers of an experiment, all of which are in one table; and the pattern of a row, or of a range of rows.
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
_SIZE = NOTHING | list_of(COUNT).when("width and height", lambda size: len(size) == 2)
_NUMBER = fields(
    **dict.fromkeys(("cell", "row", "quantity", "subject", "reported", "source", "ours", "verdict", "reason"), TEXT),
    **dict.fromkeys(("reading", "inferred", "probability"), TEXT),
    differs=FLAG,
    cause=NOTHING | TEXT,
    n_jobs=COUNT,
    jobs=_RANGES,
    **{"replications*": COUNT, "deviation*": POSITIVE, "draws*": list_of(number()), "elsewhere*": COUNT},
).when("a number with its verdict", _is_judged)
PAGE = {
    **dict.fromkeys(("name", "status", "error", "about", "commit"), TEXT),
    **dict.fromkeys(("altered", "notes", "computed*"), list_of(TEXT)),
    "numbers": list_of(_NUMBER).when(f"at most {_MOST_NUMBERS} numbers", lambda found: len(found) <= _MOST_NUMBERS),
    "figures": list_of(fields(title=TEXT, picture=_LINK, size=_SIZE, points=_LINK)),
    "tables": list_of(fields(title=TEXT, file=_CSV, formats=fields(**{"*": _FORMAT}), texts=list_of(TEXT))),
    "jobs": NOTHING
    | fields(file=_CSV, labels=list_of(TEXT), texts=list_of(TEXT), **{"computed with": list_of(_RANGES)}),
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


def part_of(entry: Entry, folder: Path, written: Collection[Path] | None = None) -> Part:
    """Return what the page of a run shows of an experiment, with links to files in `folder`.

    It links to those that were just `written`, since an earlier run may have left others, or else to those that it
    finds. In place of tables and jobs it has what `filled` needs to read their files.
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

    def link(file: Path) -> str:
        there = (folder / file).is_file() if written is None else folder / file in written
        return _address(file) if there else ""

    def link_to_csv(name: str) -> str:
        return link(beside(stem, name, ".csv")) or link(beside(stem, name, ".csv.gz"))

    return part | {
        "computed": [*map(commit_of, computed_with(found.records))],
        "figures": _figures(found, folder, link, link_to_csv),
        "tables": [
            {
                "title": table.title,
                "file": link_to_csv(table.name or "table") or link_to_csv(""),
                "formats": dict(table.formats),
                "texts": texts_of(table.frame),
            }
            for table in tables
        ],
        "notes": found.notes,
        "jobs": {
            "file": link_to_csv("rows"),
            "labels": list(found.labels),
            "texts": texts_of(found.rows[list(found.labels)]),
            "computed with": _environments(found),
        },
        "provenance": _address(beside(stem, "", ".json")),
    }


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns that have only text, which a reader must not take for numbers."""
    return [str(name) for name, column in frame.items() if len(column) and all(type(v) is str for v in column.tolist())]


def filled(part: Part, folder: Path) -> Part:
    """Return a part of the page with its tables and its list of jobs, from the files in `folder` that it names."""
    tables = [
        Table(one["title"], read_cells(_file_of(one["file"], folder), one["texts"]), one["formats"])
        for one in part["tables"]
    ]
    jobs = part["jobs"] and job_list(part["jobs"], folder)
    check_rows([number["jobs"] for number in part["numbers"]], jobs["length"] if jobs else 0)
    return {
        **part,
        "tables": [{"table": table, "file": one["file"]} for table, one in zip(tables, part["tables"], strict=True)],
        "jobs": jobs,
    }


def _file_of(address: str, folder: Path) -> Path:
    try:
        return unlinked(folder / unquote(address), folder)
    except ValueError as error:
        raise ConfigurationError(f"runs: {error}") from error


def read_cells(path: Path, texts: Sequence[str], only: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table as it was written: cells become numbers, booleans or None, except in the columns `texts`."""
    import pandas as pd

    frame = read_texts(path)
    columns: dict[Any, pd.Series[Any]] = {}
    for place, name in enumerate(frame):
        if only is not None and name not in only:
            continue
        cells = [as_it_was(cell) for cell in frame.iloc[:, place].tolist()]
        values = cells if name in texts else [cell_value(cell) for cell in cells]
        kinds = {type(value) for value in values}
        # Whole numbers beside missing values stay whole.
        dtype = int if kinds == {int} else float if kinds <= {float, type(None)} else object
        columns[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def cell_value(cell: str) -> Json:
    """Return a cell as the number, the boolean or the None that it says; as text, if it says none."""
    number = number_in(cell)
    if not isinstance(number, str):
        return number
    return {"": None, "True": True, "False": False}.get(cell, cell)


def number_in(text: str) -> float | int | str:
    """Return a cell as a number, if it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def as_label(value: object) -> str:
    """Return a label so that those of a file and those of a job are the same: 1, 1.0 and the text of either."""
    found = number_in(value) if isinstance(value, str) else value
    if found is None or found == "" or (isinstance(found, float) and math.isnan(found)):
        return ""
    return str(found) if isinstance(found, bool | str) else repr(float(found))  # type: ignore[arg-type]


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
        "ours": shown_value(one),
        "verdict": one.verdict,
        "differs": one.differs,
        "cause": one.cause,
        "reason": one.account if one.differs else one.reason,
        "reading": one.reading,
        "inferred": beside_printed(one.reported, inferred.value) if inferred and one.differs else "",
        "probability": _chance(number.probability, one) if number and number.probability else "",
        "n_jobs": len(places),
        "jobs": as_ranges(places),
        **_noise(number),
        **({"elsewhere": n} if number and found and (n := len({*number.jobs, *others} & found.adopted.keys())) else {}),
    }


def _noise(number: Number | None) -> dict[str, Json]:
    interval = number.interval if number else None
    if interval is None or interval.n < 2 or not math.isfinite(interval.deviation):
        return {}
    return {"replications": interval.n, "deviation": interval.deviation, "draws": list(interval.draws)}


def _chance(found: Probability, one: Judgement) -> str:
    setup = "the inferred set-up" if found.setup else "the stated set-up" if one.cause == "explained" else ""
    return f"{found.value:.2g}" + (f" with {setup}" if setup else "")


def _address(file: Path) -> str:
    return quote(file.as_posix(), safe="/,=")


def _figures(
    found: Findings, folder: Path, link: Callable[[Path], str], link_to_csv: Callable[[str], str]
) -> list[dict[str, object]]:
    stem = Path(found.stem)
    figures: list[dict[str, object]] = []
    for figure in found.outcome.figures:
        pictures = [beside(stem, figure.name, ending) for ending in SHOWN]
        picture = next((one for one in pictures if link(one)), None)
        if figure.points.empty or picture is None:
            continue
        points = link_to_csv(points_name(figure))
        size = _size(folder / picture)
        figures.append({"title": figure.title, "picture": link(picture), "size": size, "points": points})
    return figures


def _size(picture: Path) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG, so that a page does not shift while it loads."""
    if picture.suffix != ".png":
        return None
    width, height = struct.unpack(">II", read_bytes(picture)[16:24])
    return width, height


# The jobs of an experiment as the page lists them, and the rows of this list behind a number.

# Digits of seconds, enough to compare them.
_DIGITS = 3


def job_list(about: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the jobs of an experiment from the file with its rows: status, labels, seconds, environment and key.

    A column has each value once: row i has the value ``of[at[i]]``. Where `at` is empty, all rows have the only value,
    or each its own.
    """
    labels, path, environments = about["labels"], _file_of(about["file"], folder), about["computed with"]
    rows = read_cells(path, [*about["texts"], "status", "job"], [*labels, "status", "seconds", "job"])
    if absent := {*labels, "status", "job"} - {*rows}:
        raise ConfigurationError(f"{path} must have the column {min(absent)[:80]!r}; task=report writes it again")
    check_rows(environments, len(rows))
    number_of = {row: number for number, ranges in enumerate(environments, start=1) for row in in_ranges(ranges)}
    seconds = rows["seconds"].tolist() if "seconds" in rows else [None] * len(rows)
    columns: dict[str, list[Any]] = {
        "status": rows["status"].tolist(),
        **{label: rows[label].tolist() for label in labels},
        "seconds": [float(f"{one:.{_DIGITS}g}") if type(one) in (int, float) else None for one in seconds],
        "computed with": [number_of.get(row) for row in range(len(rows))],
        "key": [key[:SHORT_KEY] for key in rows["job"]],
    }
    return {
        "length": len(rows),
        "file": about["file"],
        "columns": [_column(name, values) for name, values in columns.items()],
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


def check_rows(ranges: Iterable[str], n_rows: int) -> None:
    """Raise ConfigurationError if ranges of rows, as `as_ranges` wrote them, end beyond the last row."""
    last = max((int(re.split("[ -]", text)[-1]) for text in ranges if text), default=-1)
    if last >= n_rows:
        raise ConfigurationError(f"jobs on a page must be among its {n_rows} rows, got {last}; task=report writes both")


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    plain = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    # True and 1 are equal but different values, so their JSON is compared.
    texts = [json.dumps(value) for value in plain]
    distinct = dict(zip(texts, plain, strict=True))
    place = {text: number for number, text in enumerate(distinct)}
    at = [place[text] for text in texts] if 1 < len(place) < len(texts) else []
    return {"name": name, "of": [*distinct.values()], "at": at}
