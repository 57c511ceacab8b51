"""Whatever holds a table, as a frame of pandas with names of text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.tables.files import SEPARATORS, check_names, in_pandas, read_file
from trimbench.papers.data.tables.settings import TableSettings
from trimbench.papers.data.tables.wording import did_you_mean, quoted, shortened, shown

if TYPE_CHECKING:
    import pandas as pd


_RARE_SEPARATORS = ":/^~ "


@dataclass(frozen=True, eq=False)
class SourceTable:
    """A table as its source has it; `owner` begins the messages about it, `repairs` say what was changed already."""

    name: str
    owner: str
    frame: pd.DataFrame
    repairs: tuple[str, ...] = ()


# Takes the words that begin messages and the names of the columns, and raises an error if something is wrong with them.
CheckNames = Callable[[str, list[str]], object]


def open_source(source: Any, settings: TableSettings, check: CheckNames) -> SourceTable:
    """Return the table of a file or a frame; raise `DeclarationError` if it is none.

    `check` is called as soon as the names of the columns are known.
    """
    import pandas as pd

    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        owner = f"table {quoted(path.name)}"
        if not path.is_file():
            raise DeclarationError(_no_file(path))
        frame, repairs = read_file(
            owner, path, settings.separator, settings.encoding, check=lambda names: check(owner, names)
        )
        return SourceTable(path.name.split(".")[0] or path.name, owner, frame, tuple(repairs))
    owner = "the table"
    if not isinstance(source, pd.DataFrame):
        source = _from_arrow(owner, source, check)
    names = [str(name) for name in source.columns]
    check_names(owner, names)
    check(owner, names)
    repairs = [*_renamed(source), *_without_index(source)]
    return SourceTable("table", owner, source.set_axis(names, axis="columns").reset_index(drop=True), tuple(repairs))


def _renamed(frame: pd.DataFrame) -> list[str]:
    """Return that names of columns were made text, if so."""
    other = [name for name in frame.columns if not isinstance(name, str)]
    if not other:
        return []
    what = "the name of a column is" if len(other) == 1 else f"the names of {len(other):,} columns are"
    return [f"{what} no text: the column {shortened(repr(other[0]))} is called {quoted(str(other[0]))}"]


def _without_index(frame: pd.DataFrame) -> list[str]:
    """Return that an index which says something is no column, if so."""
    from pandas.api import types

    index = frame.index
    named = [str(name) for name in index.names if name is not None]
    if not named and (index.nlevels == 1 and types.is_integer_dtype(index.dtype)):
        return []
    what = f"the index {shown(named, 3)}" if named else "the index of the rows"
    return [f"{what} is no column, so it was left out; reset_index() makes it one"]


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"data must be a file, got the folder {str(path)!r}; name a table in it"
    beside = [one.name for one in path.parent.iterdir() if one.is_file()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, beside, n=1)
    hint = f"did you mean {str(path.parent / close[0])!r}?" if close else "correct the path"
    return f"data must be an existing file, got {str(path)!r}; {hint}"


def _from_arrow(owner: str, source: Any, check: CheckNames) -> pd.DataFrame:
    """Return a frame of polars or pyarrow, or whatever else gives Arrow columns, in pandas."""
    import pyarrow as pa

    if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
        source = source.collect()  # a lazy frame of polars
    try:
        # A single column gives a stream, too, but no table.
        table = pa.table(source) if hasattr(source, "__arrow_c_stream__") else None
    except (pa.ArrowException, TypeError, ValueError):
        table = None
    if table is None:
        is_column = getattr(source, "ndim", None) == 1 or isinstance(source, pa.Array | pa.ChunkedArray)
        advice = (
            "give the whole frame, not one column" if is_column else "make it a pandas DataFrame with named columns"
        )
        raise DeclarationError(
            "data must be a path of a table or a frame of pandas, polars or pyarrow, got "
            f"{type(source).__name__}; {advice}"
        )
    check_names(owner, table.column_names)
    check(owner, list(table.column_names))
    return in_pandas(table)


def check_columns(owner: str, names: Sequence[str], target: str, settings: TableSettings) -> None:
    """Raise an error unless the target and all columns that settings name exist, and none has two roles."""
    roles: Mapping[str, Sequence[str]] = {"target": (target,), **settings.named}
    known = set(names)
    for role, wanted in roles.items():
        for name in wanted:
            if name not in known:
                raise DeclarationError(
                    f"{owner}: {role} must be a column of the data, got {quoted(name)}"
                    f"{_separated(name, names) or did_you_mean(name, names)}; the columns are {shown(names)}"
                )
    for first, second in (
        ("target", "drop"),
        ("target", "features"),
        ("target", "id"),
        ("drop", "features"),
        ("id", "features"),
    ):
        others = set(roles[second])
        both = [name for name in roles[first] if name in others]
        if both:
            raise DeclarationError(
                f"{owner}: {first} and {second} must name different columns, got {quoted(both[0])} in both; "
                f"take it out of {second}"
            )


def _separated(name: str, names: Sequence[str]) -> str:
    """Return which separator would tell a column apart from others, if one would."""
    for one in names:
        for mark in SEPARATORS + _RARE_SEPARATORS:
            if mark in one and name in [part.strip(" \"'") for part in one.split(mark)]:
                return f", which is a part of {quoted(one)}: name the separator, separator={mark!r}"
    return ""
