"""Whatever holds a table, as a frame of pandas with names of text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.tables.files import check_names, read_file
from trimbench.papers.data.tables.settings import TableSettings
from trimbench.papers.data.tables.wording import did_you_mean, quoted, shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SourceTable:
    """A table as its source has it; `owner` begins the messages about it."""

    name: str
    owner: str
    frame: pd.DataFrame


def open_source(source: Any, settings: TableSettings) -> SourceTable:
    """Return the table of a file or a frame; raise `DeclarationError` if it is none."""
    import pandas as pd

    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        owner = f"table {quoted(path.name)}"
        if not path.is_file():
            raise DeclarationError(_no_file(path))
        frame = read_file(owner, path, settings.separator, settings.encoding)
        table = SourceTable(path.name.split(".")[0] or path.name, owner, frame)
    elif isinstance(source, pd.DataFrame):
        table = SourceTable("table", "the table", source)
    else:
        table = SourceTable("table", "the table", _from_arrow(source))
    names = [str(name) for name in table.frame.columns]
    check_names(table.owner, names)
    frame = table.frame.set_axis(names, axis="columns").reset_index(drop=True)
    return SourceTable(table.name, table.owner, frame)


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"data must be a file, got the folder {str(path)!r}; name a table in it"
    beside = [one.name for one in path.parent.iterdir() if one.is_file()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, beside, n=1)
    hint = f"did you mean {str(path.parent / close[0])!r}?" if close else "correct the path"
    return f"data must be an existing file, got {str(path)!r}; {hint}"


def _from_arrow(source: Any) -> pd.DataFrame:
    """Return a frame of polars or pyarrow, or whatever else gives Arrow columns, in pandas."""
    import pyarrow as pa

    if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
        source = source.collect()  # a lazy frame of polars
    if not hasattr(source, "__arrow_c_stream__"):
        raise DeclarationError(
            "data must be a path of a table or a frame of pandas, polars or pyarrow, "
            f"got {type(source).__name__}; make it a pandas DataFrame with names of columns"
        )
    table = pa.table(source)
    check_names("the table", table.column_names)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame


def check_columns(table: SourceTable, target: str, settings: TableSettings) -> None:
    """Raise an error unless the target and all columns that settings name exist, and none has two roles."""
    names = list(table.frame.columns)
    roles: Mapping[str, Sequence[str]] = {"target": (target,), **settings.named}
    for role, wanted in roles.items():
        for name in wanted:
            if name not in names:
                raise DeclarationError(
                    f"{table.owner}: {role} must be a column of the data, got {quoted(name)}"
                    f"{did_you_mean(name, names)}; the columns are {shown(names)}"
                )
    for first, second in (
        ("target", "drop"),
        ("target", "features"),
        ("target", "id"),
        ("drop", "features"),
        ("id", "features"),
    ):
        both = [name for name in roles[first] if name in roles[second]]
        if both:
            raise DeclarationError(
                f"{table.owner}: {first} and {second} must name different columns, got {quoted(both[0])} in both; "
                f"take it out of {second}"
            )
