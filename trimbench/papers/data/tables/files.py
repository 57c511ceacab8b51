"""Files of tables: text, Parquet, Arrow. What a file holds decides how it is read, not what it is called."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.reachability import one_line_reason
from trimbench.papers.data.tables.signatures import is_binary, other_format
from trimbench.papers.data.tables.wording import quoted, shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
# The first line by which files tell Excel their separator.
_FOR_EXCEL = re.compile(r'\s*"?sep=([^\r\n])"?[,;\t| ]*(?=[\r\n])', re.IGNORECASE)
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_GZIP, _PARQUET, _ARROW = b"\x1f\x8b", b"PAR1", (b"ARROW1", b"FEA1")
_LARGEST = 1 << 30
# What a small file may become: more than tables of numbers and words do.
_UNPACKED, _TIMES = 1 << 26, 100
_MOST_CELLS = 1 << 27
_MOST_COLUMNS = 2**16  # each costs pandas some 40 microseconds
_TEXT_TABLE = "a text table with a header line and one of the separators , ; tab |, plain or gzip"


def read_file(
    owner: str,
    path: Path,
    separator: str | None = None,
    encoding: str | None = None,
    columns: Sequence[str] = (),
    check: Callable[[list[str]], object] | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Read a text table, whose values stay text as it is written, or a Parquet, Arrow or Feather file.

    Returns the table and notes on what was repaired. `owner` begins the messages; `columns` has the names of the
    columns of a text file without a header line; `check` is called with the names of the columns as soon as they are
    known, and may raise an error before the rest is read. Raises `DeclarationError` if the file holds no table.
    """
    try:
        body = _content(owner, path)
    except (OSError, EOFError, zlib.error) as error:
        raise _no_table(owner, path, f"reading it failed: {one_line_reason(error)}") from error
    if body.startswith((_PARQUET, *_ARROW)):
        return _columnar(owner, path, body, check), []
    text = _text(owner, path, body, encoding)
    del body
    notes = []
    if first := _FOR_EXCEL.match(text):
        # What ends the line stays, so that lines keep their numbers.
        text = text[first.end() :]
        separator = separator or first[1]
        notes.append(f"the first line, {quoted(first[0].strip())}, tells the separator and has no names of columns")
    separator = separator or _separator(text)
    if columns:
        names = list(columns)
    else:
        names, repairs = _header(owner, path, text, separator)
        notes += repairs
    if len(names) > _MOST_COLUMNS:
        found = f"it has {len(names):,} columns where {_MOST_COLUMNS:,} are allowed; name the separator"
        raise _no_table(owner, path, f"{found} ({separator!r} was taken), or take a part of its columns")
    if check:
        check(names)
    _check_lines(owner, path, text, separator, names)
    return _texts(owner, path, text, separator, names, bool(columns)), notes


def check_names(owner: str, names: Sequence[str]) -> None:
    """Raise an error if two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DeclarationError(
            f"{owner}: every column must have a name of its own, got {shown(twice, 3)} more than once; rename one"
        )


def _no_table(owner: str, path: Path, reason: str) -> DeclarationError:
    return DeclarationError(f"{owner}: {path} must be {_TEXT_TABLE}, or a Parquet or Arrow file; {reason}")


def _content(owner: str, path: Path) -> bytes:
    """Return the bytes of a file, decompressed, if they are not too many."""
    with path.open("rb") as stream:
        is_packed = stream.read(len(_GZIP)) == _GZIP
    most = min(_LARGEST, max(_UNPACKED, _TIMES * path.stat().st_size)) if is_packed else _LARGEST
    with gzip.open(path) if is_packed else path.open("rb") as stream:
        body = stream.read(most + 1)
    if len(body) <= most:
        return body
    if most < _LARGEST:
        found = f"it is compressed more than {_TIMES}-fold, to more than {_UNPACKED >> 20} MiB of content"
        raise _no_table(owner, path, f"{found}; unpack it first if you trust it")
    raise _no_table(owner, path, f"it has more than {_LARGEST >> 20} MiB of content; take a sample of its rows")


def _columnar(owner: str, path: Path, body: bytes, check: Callable[[list[str]], object] | None) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import feather, parquet

    is_parquet, n_cells = body.startswith(_PARQUET), 0
    try:
        if is_parquet:
            about = parquet.read_metadata(pa.BufferReader(body))
            n_cells = about.num_rows * about.num_columns
        if n_cells <= _MOST_CELLS:
            table = (parquet.read_table if is_parquet else feather.read_table)(pa.BufferReader(body))
    except (ValueError, TypeError, OSError, NotImplementedError, KeyError) as error:
        raise _no_table(owner, path, f"reading it failed: {one_line_reason(error)}") from error
    if n_cells > _MOST_CELLS:
        found = f"it has {n_cells:,} values where {_MOST_CELLS:,} are allowed"
        raise _no_table(owner, path, f"{found}; take a sample of its rows, or a part of its columns")
    check_names(owner, table.column_names)
    if check:
        check(list(table.column_names))
    try:
        return in_pandas(table)
    except (ValueError, TypeError, NotImplementedError, KeyError) as error:
        raise _no_table(owner, path, f"reading it failed: {one_line_reason(error)}") from error


def in_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a table of Arrow with exact whole numbers, also where some are missing; pandas would make them floats."""
    import pandas as pd
    import pyarrow as pa

    exact = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    # What pandas made its index is a column like the others.
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, types_mapper=exact.get)
    return frame


def _text(owner: str, path: Path, body: bytes, encoding: str | None) -> str:
    """Return what a file says."""
    if not body.strip():
        raise _no_table(owner, path, "it is empty")
    if other := other_format(body):
        raise _no_table(owner, path, other)
    found = encoding or next((name for mark, name in _MARKS.items() if body.startswith(mark)), "utf-8")
    try:
        text = body.decode(found)
    except UnicodeError as error:
        if is_binary(body):
            raise _no_table(owner, path, "it is no text; save its table as CSV or Parquet") from error
        advice = "name its encoding, for example encoding=cp1252" if found == "utf-8" else "name another encoding"
        raise _no_table(owner, path, f"it is not in {found} ({one_line_reason(error)}); {advice}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _no_table(owner, path, f"line {line} has a NUL byte; if it is text, remove them or name its encoding")
    return text.removeprefix("\ufeff")


def _separator(text: str) -> str:
    """Return the separator that occurs most often in the header line, outside quotes."""
    header = _QUOTED.sub("", text.lstrip("\r\n").split("\n", 1)[0])
    return max(SEPARATORS, key=header.count)


def _rows(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)


def _header(owner: str, path: Path, text: str, separator: str) -> tuple[list[str], list[str]]:
    """Return the names of the columns, and notes on those that were changed."""
    try:
        first: list[str] = next((row for row in _rows(text, separator) if any(row)), [])
    except csv.Error as error:
        raise _no_table(owner, path, f"its header line cannot be read: {error}") from error
    if len(first) == 1:
        _check_told_apart(owner, path, first[0], text.lstrip().startswith('"'))
    names = [name.strip() or f"Unnamed: {place}" for place, name in enumerate(first)]
    check_names(owner, names)
    notes = []
    if nameless := [place for place, name in enumerate(first) if not name.strip()]:
        places = ("column " if len(nameless) == 1 else "columns ") + _listed([str(place + 1) for place in nameless])
        verb = "has no name and is" if len(nameless) == 1 else "have no name and are"
        notes.append(f"{places} of the header line {verb} called {shown([names[place] for place in nameless], 3)}")
    # The reader drops blanks before names, too, but never says so.
    if blank := [name.strip() for name in _blank_names(text, separator, first)]:
        notes.append(
            f"blanks around the name{'s' * (len(blank) > 1)} {shown(blank, 3)} in the header line were removed"
        )
    return names, notes


def _blank_names(text: str, separator: str, names: Sequence[str]) -> list[str]:
    """Return the names with blanks around them as they stand in the header line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    written = next((row for row in reader if any(map(str.strip, row))), [])
    # Blanks before quotation marks make other names of it.
    wide = [name for name in written if name.strip() and name != name.strip()] if len(written) == len(names) else []
    return wide or [name for name in names if name.strip() and name != name.strip()]


def _listed(words: list[str], limit: int = 10) -> str:
    more = len(words) - limit
    return ", ".join(words[:limit]) + (f" and {more:,} more" if more > 0 else "")


def _check_told_apart(owner: str, path: Path, only: str, is_quoted: bool) -> None:
    """Raise an error if the only column looks like several ones."""
    other = max(SEPARATORS, key=only.count)
    if other in only:
        advice = "remove the quotation marks around whole lines" if is_quoted else f"write separator={other!r}"
        raise _no_table(owner, path, f"its header line has one column, {quoted(only)}; {advice}")


def _check_lines(owner: str, path: Path, text: str, separator: str, names: Sequence[str]) -> None:
    """Raise an error unless every line has one value for each column; pandas would fill up short ones."""
    reader = _rows(text, separator)
    try:
        for row in reader:
            # A line of blanks is none, as for pandas.
            if len(row) != len(names) and any(map(str.strip, row)):
                values = f"{len(row)} value{'s' * (len(row) != 1)}"
                reason = f"line {reader.line_num} has {values} where there are {len(names)} columns"
                raise _no_table(owner, path, f"{reason}; correct it, or name the separator ({separator!r} was taken)")
    except csv.Error as error:
        reason = f"line {reader.line_num} cannot be read: {error}"
        raise _no_table(owner, path, f"{reason}; look for a quotation mark that is not closed") from error


def _texts(owner: str, path: Path, text: str, separator: str, names: list[str], bare: bool) -> pd.DataFrame:
    import pandas as pd

    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            names=names,
            header=None if bare else 0,
            index_col=False,
            dtype=str,
            na_filter=False,
            skipinitialspace=True,
        )
    except (ValueError, OSError) as error:  # parser errors are ValueErrors
        raise _no_table(owner, path, f"reading it failed: {one_line_reason(error)}") from error
    return table
