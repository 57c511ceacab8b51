"""Files of tables: text, Parquet, Arrow. What a file holds decides how it is read, not what it is called."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.reachability import one_line_reason
from trimbench.papers.data.tables.wording import shown

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_GZIP, _PARQUET, _ARROW = b"\x1f\x8b", b"PAR1", (b"ARROW1", b"FEA1")
_LARGEST = 1 << 30
_MOST_COLUMNS = 2**16  # each costs pandas some 40 microseconds
_TEXT_TABLE = "a text table with a header line and one of the separators , ; tab |, plain or gzip"


def read_file(
    owner: str, path: Path, separator: str | None = None, encoding: str | None = None, columns: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a text table, whose values stay text as it is written, or a Parquet, Arrow or Feather file.

    `owner` begins the messages; `columns` has the names of the columns of a text file without a header line. Raises
    `DeclarationError` if the file holds no table.
    """
    try:
        body = _content(path)
    except (OSError, EOFError, zlib.error) as error:
        raise _no_table(owner, path, f"reading it failed: {one_line_reason(error)}") from error
    if len(body) > _LARGEST:
        raise _no_table(owner, path, f"it has more than {_LARGEST >> 20} MiB of content; take a sample of its rows")
    if body.startswith((_PARQUET, *_ARROW)):
        return _columnar(owner, path, body)
    text = _text(owner, path, body, encoding)
    del body
    separator = separator or _separator(text)
    names = list(columns) or _header(owner, path, text, separator)
    if len(names) > _MOST_COLUMNS:
        found = f"it has {len(names):,} columns where {_MOST_COLUMNS:,} are allowed; name the separator"
        raise _no_table(owner, path, f"{found} ({separator!r} was taken), or take a part of its columns")
    _check_lines(owner, path, text, separator, names)
    return _texts(owner, path, text, separator, names, bool(columns))


def check_names(owner: str, names: Sequence[str]) -> None:
    """Raise an error if two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DeclarationError(
            f"{owner}: every column must have a name of its own, got {shown(twice, 3)} more than once; rename one"
        )


def _no_table(owner: str, path: Path, reason: str) -> DeclarationError:
    return DeclarationError(f"{owner}: {path} must be {_TEXT_TABLE}, or a Parquet or Arrow file; {reason}")


def _content(path: Path) -> bytes:
    """Return the bytes of a file, decompressed, up to one more than are allowed."""
    with path.open("rb") as stream:
        compressed = stream.read(len(_GZIP)) == _GZIP
    if not compressed:
        with path.open("rb") as stream:
            return stream.read(_LARGEST + 1)
    with gzip.open(path) as stream:
        return stream.read(_LARGEST + 1)


def _columnar(owner: str, path: Path, body: bytes) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import feather, parquet

    read = parquet.read_table if body.startswith(_PARQUET) else feather.read_table
    try:
        table = read(pa.BufferReader(body))
        # What pandas made its index is a column like the others.
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    except (ValueError, TypeError, OSError, NotImplementedError, KeyError) as error:
        raise _no_table(owner, path, f"reading it failed: {one_line_reason(error)}") from error
    return frame


def _text(owner: str, path: Path, body: bytes, encoding: str | None) -> str:
    """Return what a file says."""
    if not body.strip():
        raise _no_table(owner, path, "it is empty")
    if body.startswith(b"PK\x03\x04"):
        raise _no_table(owner, path, "it is an Excel workbook or a zip archive; save the sheet as CSV")
    found = encoding or next((name for mark, name in _MARKS.items() if body.startswith(mark)), "utf-8")
    try:
        text = body.decode(found)
    except UnicodeError as error:
        advice = "name its encoding, for example cp1252" if found == "utf-8" else "name another encoding"
        raise _no_table(owner, path, f"it is not in {found} ({one_line_reason(error)}); {advice}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _no_table(owner, path, f"line {line} has a NUL byte; if it is text, remove them or name its encoding")
    return text.removeprefix("\ufeff")


def _separator(text: str) -> str:
    """Return the separator that occurs most often in the header line, outside quotes."""
    header = _QUOTED.sub("", text.lstrip("\r\n").split("\n", 1)[0])
    return max(_SEPARATORS, key=header.count)


def _rows(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)


def _header(owner: str, path: Path, text: str, separator: str) -> list[str]:
    try:
        first: list[str] = next((row for row in _rows(text, separator) if any(row)), [])
    except csv.Error as error:
        raise _no_table(owner, path, f"its header line cannot be read: {error}") from error
    names = [name.strip() or f"Unnamed: {place}" for place, name in enumerate(first)]
    check_names(owner, names)
    return names


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
