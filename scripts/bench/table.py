"""The table of a run of all benchmarks: its CSV, and how it is printed."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from .measure import Row, Status

FIELDS = tuple(field.name for field in dataclasses.fields(Row))
COLUMNS = ("benchmark", *FIELDS)
Named = tuple[str, Row]
Key = tuple[str, str, str]


class TableError(ValueError):
    """A file is no table of benchmarks."""


def key_of(benchmark: str, row: Row) -> Key:
    """Return what a row is told apart by."""
    return benchmark, row.quantity, row.against


def write(path: Path, rows: Iterable[Named]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for benchmark, row in rows:
            writer.writerow([benchmark, *(as_text(value) for value in dataclasses.astuple(row))])


def as_text(value: Any) -> str:
    """Return a number with four digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read(path: Path) -> dict[Key, Row]:
    """Return the rows of a file.

    Raises
    ------
    TableError
        When there is no such file, a column is missing, or a value is not of its column; the message is one line.
    """
    again = "write it with scripts/bench/run all --csv FILE"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = reader.fieldnames or ()
            if len(set(names)) < len(names):
                raise TableError(f"{path} must have each column once, got {', '.join(names)}; {again}")
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise TableError(f"{path} lacks the columns {', '.join(missing)}; {again}")
            found: dict[Key, Row] = {}
            for values in reader:
                row = _row(path, reader.line_num, values)
                key = key_of(values["benchmark"], row)
                if key in found:
                    raise TableError(f"{path}, line {reader.line_num}: a second row of {', '.join(key)}; {again}")
                found[key] = row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise TableError(f"{path} cannot be read ({reason}); {again}") from error
    if not found:
        raise TableError(f"{path} has no rows; {again}")
    return found


def _row(path: Path, line: int, values: dict[str | Any, str | Any]) -> Row:
    try:
        if None in values:
            raise ValueError(f"more than {len(COLUMNS)} values")
        texts = {name: (values[name] or "") for name in FIELDS}
        if texts["status"] not in get_args(Status):
            raise ValueError(f"status must be one of {', '.join(get_args(Status))}, got {texts['status']!r}")
        is_measured = texts["status"] == "ok"
        numbers = {name: _number(name, texts[name], needed=is_measured) for name in ("ours", "theirs", "ratio")}
        numbers["spread"] = _number("spread", texts["spread"], least=0.0)
        others = {"repetitions": int(_number("repetitions", texts["repetitions"], least=0.0) or 0)}
        return Row(**{**texts, **numbers, **others})  # type: ignore[arg-type]
    except ValueError as error:
        raise TableError(f"{path}, line {line}: {error}; write it with scripts/bench/run all --csv FILE") from error


def _number(name: str, text: str, *, needed: bool = False, least: float = -math.inf) -> float | None:
    """Return a number of a row, None if it has none; ValueError if it is not allowed."""
    if not (text or needed):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    is_divisor = name in ("ratio", "theirs")
    if not (least <= value < math.inf and (value > 0 or not is_divisor)):
        kind = "positive number" if is_divisor else "number from 0" if least == 0 else "number"
        raise ValueError(f"{name} must be a {kind}, got {text!r}")
    return value


def lines_of(rows: Iterable[Named]) -> list[list[str]]:
    """Return head and lines of the table that is printed and published."""
    head = ["benchmark", "quantity", "against", "ours", "theirs", "unit", "ours / theirs", "spread"]
    return [head, *(_line(benchmark, row) for benchmark, row in rows)]


def _line(benchmark: str, row: Row) -> list[str]:
    if row.status != "ok":
        return [benchmark, row.quantity, row.against, "", "", "", row.status, row.note]
    spread = "" if row.spread is None else f"{row.spread:.2f}"
    numbers = [as_text(row.ours), as_text(row.theirs), row.unit, as_text(row.ratio), spread]
    return [benchmark, row.quantity, row.against, *numbers]


def printed(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give the lines with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
