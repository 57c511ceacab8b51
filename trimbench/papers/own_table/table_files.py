"""Open files of tables: text, Parquet, Arrow. What a file holds decides how it is read, not its name."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import itertools
import math
import os
import re
import struct
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.own_table.folders import SAMPLED_ROWS, AllRows, sampled
from trimbench.papers.own_table.table_texts import CONTROL, SEARCHED, Reading, other_format, stated_number
from trimbench.reproduction.data.cache import one_line_reason
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.files import NotDataError, opened
from trimbench.reproduction.messages import did_you_mean, quoted, rows_named, shortened, shown, some

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
_INDEX = re.compile(r"__index_level_\d+__")
# The first line by which files tell Excel their separator.
_FOR_EXCEL = re.compile(r'\s*"?sep=([^\r\n])"?[,;\t| ]*(?=[\r\n])', re.IGNORECASE)
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_GZIP, _PARQUET, _ARROW, _FEATHER_1 = b"\x1f\x8b", b"PAR1", b"ARROW1", b"FEA1"
_LARGEST = 1 << 30
# How large a small file may become: larger than tables of numbers and words do.
_UNPACKED, _TIMES = 1 << 26, 100
_FEW_CELLS, _MOST_CELLS = 1 << 20, 1 << 27
_MOST_COLUMNS = 2**16  # each costs pandas some 40 microseconds
_TITLES = 50  # lines that may stand before a table
_AT_ONCE = 1 << 16  # lines that become a frame together
_NO_HEADER = "if the file has no line with the names of the columns, write one"
_ONE_EACH = "write one number, date or text into each, or leave it out"
_TEXT_TABLE = "a text table with a header line and one of the separators , ; tab |, plain or gzip"
# What the library of Parquet and Arrow raises for damaged files, beside errors of values and of reading.
_DAMAGE = (TypeError, NotImplementedError, LookupError, struct.error)


class _NoTableError(Exception):
    """A file that holds no table, and why."""


@contextlib.contextmanager
def within_memory() -> Iterator[None]:
    """Turn a lack of memory, and text that UTF-8 cannot encode, into a `DeclarationError` of one line."""
    try:
        yield
    except MemoryError as error:
        what = "the table needs more memory than there is"
        raise DeclarationError(f"{what}; take a sample of its rows, or a part of its columns") from error
    except UnicodeEncodeError as error:
        got = quoted(error.object[error.start :])
        raise DeclarationError(f"names and cells must be text that UTF-8 can encode, got {got}; replace it") from error


def read_file(
    owner: str,
    path: Path,
    settings: Reading,
    target: str | None = None,
    columns: Sequence[str] = (),
    skip: int = 0,
    most: int = _MOST_COLUMNS,
) -> tuple[pd.DataFrame, list[str]]:
    """Read a text table, whose values stay text as it is written, or a Parquet, Arrow or Feather file.

    Returns the table and notes on what was repaired. `owner` begins the messages; `columns` has the names of the
    columns of a text file without a header line, `skip` the number of lines before the table, and `most` the number of
    features that are allowed. Columns that settings name are columns even where pandas made them an index. Raises
    `DeclarationError` if the file holds no table, or its names are not those of the settings: before all else is read.
    """
    check = functools.partial(check_columns, owner, settings=settings, target=target, most=most)
    wanted = {*itertools.chain(*settings.roles(target).values())} if target else set[str]()
    try:
        body = _content(path)
        if body.startswith((_PARQUET, _ARROW, _FEATHER_1)):
            return plain(_columnar(body, check), settings.encoding, wanted)
        text = _text(body, settings.encoding).split("\n", skip)[-1]
        del body
        return _from_text(text, settings, list(columns), check, wanted)
    except DeclarationError:
        raise
    except NotDataError as error:
        raise DeclarationError(f"{owner}: {error}") from error
    except (_NoTableError, OSError, EOFError, zlib.error, ValueError, *_DAMAGE) as error:
        reason = str(error) if isinstance(error, _NoTableError) else f"reading it failed: {one_line_reason(error)}"
        found = f"{owner}: {path} must be {_TEXT_TABLE}, or a Parquet or Arrow file; {reason}"
        raise DeclarationError(found) from error


def _content(path: Path) -> bytes:
    """Return the bytes of a file, decompressed, if they are not too many."""
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        is_packed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        if not is_packed and size <= _LARGEST:
            return stream.read(size)
        most = min(_LARGEST, max(_UNPACKED, _TIMES * size))
        if is_packed:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                body = unpacked.read(most + 1)
            if len(body) <= most:
                return body
    if not is_packed or most == _LARGEST:
        raise _NoTableError(f"it has more than {_LARGEST >> 20} MiB of content; take a sample of its rows")
    found = f"it is compressed more than {_TIMES}-fold, to more than {_UNPACKED >> 20} MiB of content"
    raise _NoTableError(f"{found}; unpack it first if you trust it")


# Parquet, Arrow and Feather: what they become is known before they are read.


def _columnar(body: bytes, check: Callable[[list[str]], None]) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import feather, parquet, types

    def judge(schema: pa.Schema, n_values: int, n_bytes: int) -> None:
        check(list(schema.names))
        if nested := [one for one in schema if _is_nested(one.type)]:
            found = f"its column {quoted(nested[0].name)} has {shortened(str(nested[0].type))} in each cell"
            raise _NoTableError(f"{found}; {_ONE_EACH}")
        _check_size(len(body), n_values, n_bytes)

    def sound(table: pa.Table) -> pa.Table:
        # A place outside of the file, or a code without a text, would crash the process.
        table.validate()
        _check_size(len(body), 0, sum(int(_lengths(one).sum()) for column in table.columns for one in column.chunks))
        for column in table.columns:
            column.validate(full=not types.is_primitive(column.type))  # times may be longer than a day
        return table

    buffer = pa.py_buffer(body)
    if body.startswith(_FEATHER_1):
        table = sound(feather.read_table(pa.BufferReader(buffer)))
        judge(table.schema, table.num_rows * table.num_columns, table.nbytes)
    elif body.startswith(_ARROW):
        # A file is a stream with something before and after it; how large that becomes is known before it is read.
        stream = buffer.slice(len(_ARROW) + 2)
        judge(pa.ipc.open_stream(stream).schema, *_in_arrow(pa.ipc.MessageReader.open_stream(stream)))
        table = sound(pa.ipc.open_stream(stream).read_all())
    else:
        about = parquet.read_metadata(pa.BufferReader(buffer))
        schema = about.schema.to_arrow_schema()
        judge(schema, *_in_parquet(about))
        # As codes: a text that is written once may stand in a million rows.
        table = sound(parquet.read_table(pa.BufferReader(buffer), read_dictionary=list(filter(None, schema.names))))
        whole = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}  # what codes can become
        table = table.cast(pa.schema([one.with_type(whole.get(one.type, one.type)) for one in schema], schema.metadata))
    return in_pandas(table)


def _is_nested(kind: pa.DataType) -> bool:
    from pyarrow import BaseExtensionType, types

    if isinstance(kind, BaseExtensionType):
        return _is_nested(kind.storage_type)
    if types.is_run_end_encoded(kind):  # of texts, one that is written once may be in a million rows
        return not (types.is_primitive(kind.value_type) or types.is_null(kind.value_type))
    return _is_nested(kind.value_type) if types.is_dictionary(kind) else types.is_nested(kind)


def _lengths(values: pa.Array) -> Any:
    """Return how many bytes there are in each cell that is text, a code of it or a view, which many cells may share."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _lengths(values.storage)
    if types.is_dictionary(kind):
        return _lengths(values.dictionary)[values.indices.drop_null().to_numpy()]
    if types.is_string_view(kind) or types.is_binary_view(kind):
        heads = np.frombuffer(values.buffers()[1], np.uint32)[4 * values.offset :][: 4 * len(values) : 4]
        return heads[values.is_valid().to_numpy(zero_copy_only=False)].astype(np.int64)
    is_text = types.is_fixed_size_binary(kind) or str(kind).removeprefix("large_") in ("binary", "string")
    return compute.binary_length(values).fill_null(0).to_numpy() if is_text else np.zeros(len(values), np.int64)


def _check_size(size: int, n_values: int, n_bytes: int) -> None:
    """Raise an error if a file expands to more values or bytes than a table in a file of its size does."""
    for found, what, most in (
        (n_values, "values", min(_MOST_CELLS, _FEW_CELLS + _TIMES * max(0, size - _FEW_CELLS))),
        (n_bytes, "bytes", min(_LARGEST, max(_UNPACKED, _TIMES * size))),
    ):
        if found > most:
            reason = f"it becomes {found:,} {what}, where {most:,} are allowed for a file of {size:,} bytes"
            raise _NoTableError(f"{reason}; take a sample of its rows, or a part of its columns")


def _in_parquet(about: Any) -> tuple[int, int]:
    """Return how many values, including those in lists, and bytes a Parquet file expands to."""
    places = itertools.product(range(about.num_row_groups), range(about.num_columns))
    chunks = [(about.row_group(group).column(place), about.schema.column(place).length) for group, place in places]
    n_values = max(about.num_rows * about.num_columns, sum(chunk.num_values for chunk, _ in chunks))
    # Without a name, a column cannot be read as codes; bytes of one length never are.
    sizes = (one.total_uncompressed_size * (1 if one.path_in_schema else one.num_values) for one, _ in chunks)
    return n_values, sum(map(max, sizes, (one.num_values * length for one, length in chunks)))


def _in_arrow(messages: Iterable[Any]) -> tuple[int, int]:
    """Return how many values, including those of dictionaries, and bytes the messages of a stream expand to.

    The library tells this only after it has made room. So this reads the flatbuffers of ``Message.fbs``.
    """
    n_values = n_bytes = 0
    for message in messages:
        if message.type not in ("record batch", "dictionary"):
            continue
        head, body = message.metadata.to_pybytes(), message.body
        batch = _pointed(head, struct.unpack_from("<I", head)[0], 2)
        batch = _pointed(head, batch, 1) if message.type == "dictionary" else batch
        n_values += sum(max(0, length) for length, _ in _pairs(head, batch, 1))
        is_packed = _pointed(head, batch, 3) > 0
        for at, length in _pairs(head, batch, 2):
            # What is packed begins with its length.
            n_bytes += max(length, *struct.unpack("<q", body[at : at + 8]) if is_packed and length else (0,))
    return n_values, n_bytes


def _pointed(head: bytes, table: int, place: int) -> int:
    """Return where a field of a table of a flatbuffer points to; 0 if it is not given."""
    fields = table - struct.unpack_from("<i", head, table)[0]
    is_known = struct.unpack_from("<H", head, fields)[0] > 4 + 2 * place
    offset = struct.unpack_from("<H", head, fields + 4 + 2 * place)[0] if is_known else 0
    return int(table + offset + struct.unpack_from("<I", head, table + offset)[0]) if offset else 0


def _pairs(head: bytes, table: int, place: int) -> Iterable[tuple[int, int]]:
    at = _pointed(head, table, place)
    return struct.iter_unpack("<qq", head[at + 4 : at + 4 + 16 * struct.unpack_from("<I", head, at)[0]]) if at else ()


def in_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a table of Arrow with exact whole numbers, also where some are missing; pandas would make them floats."""
    import pandas as pd
    import pyarrow as pa

    for place, (name, kind) in enumerate(zip(table.schema.names, table.schema.types, strict=True)):
        if pa.types.is_time(kind):  # fastparquet writes durations so, which may be longer than a day
            whole = table.column(place).cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(pa.int64())
            table = table.set_column(place, name, whole.cast(pa.duration(kind.unit)))
    exact = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, types_mapper=exact.get)
    about = table.schema.pandas_metadata or {}
    # Parquet has categories of text alone.
    declared = [one["name"] for one in about.get("columns", []) if one["pandas_type"] == "categorical"]
    frame = frame.astype({name: "category" for name in frame.columns if name in declared})
    # Programs that keep no metadata keep the column of an index without a name.
    index = [name for name in frame.columns if name in about.get("index_columns", []) or _INDEX.fullmatch(name)]
    return frame.set_index(index) if index else frame


def plain(frame: pd.DataFrame, encoding: str | None, wanted: Collection[str] = ()) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame whose columns have types of pandas or texts, without an index, and notes on what was changed.

    Levels of the index are left out unless they are `wanted`. Bytes are text in `encoding`, or else in UTF-8. Rows of
    nothing but the names of the columns are left out.
    """
    import pandas as pd

    levels = [name for name in frame.index.names if name is not None and name in wanted]
    frame = frame.reset_index(level=levels)
    notes, named = [], [str(name) for name in frame.index.names if name is not None]
    if named or frame.index.nlevels > 1 or not pd.api.types.is_integer_dtype(frame.index.dtype):
        what = f"the index {shown(named, 3)}" if named else "the index of the rows"
        notes.append(f"{what} is no column, so it was left out; reset_index() makes it one")
    frame = frame.reset_index(drop=True)
    columns = {str(name): plain_column(column, encoding, notes) for name, column in frame.items()}
    frame, more = _without_names_again(pd.DataFrame(columns, index=range(len(frame))))
    return frame, [*notes, *more]


def _without_names_again(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame without rows of nothing but the names of its columns, and a note on those that had them."""
    import pandas as pd

    if not (frame.shape[1] and all(map(pd.api.types.is_string_dtype, set(frame.dtypes)))):
        return frame, []
    names = ["" if name.startswith("Unnamed: ") else _tidied(name).lower() for name in frame.columns]
    # Comparing takes time for each column, so it is done for few rows.
    last = frame.iloc[:, -1]
    alike = [one for one in last.unique() if _tidied(str(one)).lower() == names[-1]]
    few = np.flatnonzero(last.isin(alike)).tolist()
    cells = frame.iloc[few].to_numpy(dtype=object).tolist()
    again = [row for row, own in zip(few, cells, strict=True) if [_tidied(str(cell)).lower() for cell in own] == names]
    if not again:
        return frame, []
    note = f"the names of the columns again, in {rows_named([row + 1 for row in again])}, were left out"
    return frame.drop(index=again).reset_index(drop=True), [note]


def plain_column(column: pd.Series[Any], encoding: str | None, notes: list[str]) -> pd.Series[Any]:
    """Return a column with a type of pandas, or texts; bytes become text, and notes say where that failed."""
    import pandas as pd

    if isinstance(column.dtype, pd.SparseDtype):
        return pd.Series(np.asarray(column), name=column.name)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        column = pd.Series(in_pandas(pa.table({"x": pa.array(column.array)}))["x"], name=column.name)
    if column.dtype != object:
        return column
    known = [None if isinstance(one, Decimal) and one.is_snan() else one for one in column]
    column = pd.Series(known, name=column.name, dtype=object)
    if pd.api.types.infer_dtype(column) != "bytes":
        return column
    texts = column.map(lambda value: value.decode(encoding or "utf-8", "backslashreplace"), "ignore").astype("str")
    if texts.str.contains(r"\\x[0-9a-f]{2}", na=False).any():
        what = f"column {quoted(str(column.name))}: not all of its bytes are {encoding or 'utf-8'}"
        notes.append(f"{what}; name the encoding")
    return texts


# Text.


def _text(body: bytes, encoding: str | None) -> str:
    if not body.strip():
        raise _NoTableError("it is empty")
    if other := other_format(body):
        raise _NoTableError(f"it looks like {other}")
    marked = next((name for mark, name in _MARKS.items() if body.startswith(mark)), None)
    found = marked if marked == "utf-8-sig" else encoding or marked or "utf-8"
    try:
        text = body.decode(found)
    except UnicodeError as error:
        if CONTROL.search(body, 0, SEARCHED):
            raise _NoTableError("it is not text; save its table as CSV or Parquet") from error
        example = ", for example encoding=cp1252" * ("\ufffd" not in body.decode("cp1252", "replace"))
        advice = "save all of it in one encoding" if found == marked else f"name its encoding{example}"
        line = body.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise _NoTableError(f"line {line} is not in {found.removesuffix('-sig')}; {advice}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _NoTableError(f"line {line} has a NUL byte; if it is text, remove them or name its encoding")
    return text.removeprefix("\ufeff").replace("\n\ufeff", "\n")  # the latter where files were joined


def _from_text(
    text: str, settings: Reading, names: list[str], check: Callable[[list[str]], None], wanted: Collection[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table of text, and notes on what was repaired; `names` are given where there is no header line."""
    import pyarrow as pa

    notes = []
    if first := _FOR_EXCEL.match(text):
        # What ends the line stays, so that lines keep their numbers.
        text = text[first.end() :]
        notes.append(f"the first line, {quoted(first[0].strip())}, tells the separator and has no names of columns")
    header = _QUOTED.sub('""', text[:SEARCHED].lstrip("\r\n")).partition("\n")[0].rstrip("\r")
    separator = settings.separator or (first and first[1]) or max(SEPARATORS, key=header.count)
    stream = io.StringIO(text, newline="")
    lines = _lines(stream, separator)
    if not names:
        names, repairs = _names(next(lines, (0, []))[1], header.split(separator))
        notes += repairs
        if wanted and not {*names} & {*wanted} and (place := _line_of_names(text, wanted)):
            raise _NoTableError(f"the names of its columns are in line {place}; delete the lines before it")
    if len(names) > _MOST_COLUMNS:
        found = f"it has {len(names):,} columns where {_MOST_COLUMNS:,} are allowed; name the separator"
        raise _NoTableError(f"{found} ({separator!r} was taken), or take a part of its columns")
    check(names)
    table, surplus = _split_by_arrow(text[stream.tell() :], names, separator), list[str]()
    if table is None:
        table, surplus = _values(lines, names, separator)
    frame, repairs = _without_names_again(table)
    few = range(0, len(names), len(names) // 200 + 1)
    values = [
        (stated_number(names[place]) > -math.inf and not names[place].isdecimal())
        or pa.array(frame.iloc[:, place].array, pa.large_string()).index(names[place]).as_py() >= 0
        for place in few
    ]
    if 2 * sum(values) > len(few):
        repairs.append(f"the names of columns, {shown(names, 3)}, look like values: {_NO_HEADER}")
    return frame, [*notes, *surplus, *repairs]


def _lines(stream: io.StringIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not blank, where it ends, and its values."""
    csv.field_size_limit(_LARGEST)
    reader = csv.reader(stream, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if any(map(str.strip, row)):
                yield reader.line_num, row
    except csv.Error as error:
        advice = "close each quotation mark, and double those inside of a value"
        raise _NoTableError(f"line {reader.line_num} cannot be read: {error}; {advice}") from error


def _split_by_arrow(text: str, names: list[str], separator: str) -> pd.DataFrame | None:
    """Return the values of lines that Arrow splits as `_lines` does, only faster; None if there are others.

    These are blank lines, blanks before a value, unusual ends of lines and quotation marks, and another number of
    values than there are names.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # An expression that begins with one certain sign is found ten times as fast.
    text, mark = "\n" + text.rstrip("\r\n"), re.escape(separator)
    if len(names) == 1 or separator not in SEPARATORS or text.startswith("\n\ufeff"):
        return None
    if ("\r" in text and text.count("\r") != text.count("\r\n")) or re.search(rf'\n[\s{mark}"]*(?:\n|\Z)', text):
        return None
    if n_marks := text.count('"'):
        usual = re.findall(rf'[\n{mark}]"[^"\n]*"(?={mark}|\r?\n|\Z)', text)
        if n_marks != 2 * len(usual):
            return None
    body = pa.py_buffer(text.encode("utf-8", "surrogatepass"))
    del text
    signs = np.frombuffer(body, dtype=np.uint8)
    if np.isin(signs[:-1][signs[1:] == ord(" ")], [ord("\n"), ord(separator)]).any():
        return None
    places = [str(place) for place in range(len(names))]
    try:
        table = arrow_csv.read_csv(
            body.slice(1),
            arrow_csv.ReadOptions(use_threads=False, block_size=body.size, column_names=places),
            arrow_csv.ParseOptions(delimiter=separator),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(places, pa.large_string())),
        )
    except pa.ArrowInvalid:
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_axis(names, axis="columns")


def _tidied(name: str) -> str:
    """Return a name without invisible characters, and with blanks for line breaks."""
    if not name.isprintable():  # most names are
        name = "".join(one for one in name if unicodedata.category(one) != "Cf")
    return re.sub(r"\s*[\r\n\v\f]\s*", " ", name.strip())


def _names(first: list[str], written: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of the columns, and notes on those that are not as they are `written` in the header line."""
    other = max(SEPARATORS, key=first[0].count) if len(first) == 1 else "\0"
    if len(first) == 1 and other in first[0]:
        is_quoted = written[0].lstrip().startswith('"')
        advice = "remove the quotation marks around whole lines" if is_quoted else f"write separator={other!r}"
        raise _NoTableError(f"its header line has one column, {quoted(first[0])}; {advice}")
    names = [_tidied(name) or f"Unnamed: {place}" for place, name in enumerate(first)]
    named = [raw.strip() for raw in first]
    notes = []
    if nameless := [place for place, name in enumerate(named) if not name]:
        places = some([str(place + 1) for place in nameless], 10)
        called = shown([names[place] for place in nameless], 3)
        notes.append(f"no name in the header line: column {places}, called {called}")
    if tidied := [name for name, raw in zip(names, named, strict=True) if raw not in ("", name)]:
        notes.append(f"line breaks or invisible characters were taken out of names, which are {shown(tidied, 3)} now")
    # The reader silently drops blanks before a name.
    pairs = zip(named, first, written, strict=False)
    if blank := [name for name, raw, one in pairs if name and (raw != name or one != one.strip())]:
        notes.append(f"blanks around names in the header line were removed: {shown(blank, 3)}")
    return names, notes


def _line_of_names(text: str, wanted: Collection[str]) -> int | None:
    """Return the number of a line after the first that has all names that are wanted, if there is one."""
    blank = len(text) - len(text.lstrip("\r\n"))
    first = text.count("\n", 0, blank) + 2
    for place, line in enumerate(text[blank : blank + SEARCHED].split("\n")[1:_TITLES], first):
        parts = ([part.strip(" \"'\r") for part in line.split(mark)] for mark in SEPARATORS)
        if any({*wanted} <= {*names} and len(names) > 1 for names in parts):
            return place
    return None


def _values(lines: Iterator[tuple[int, list[str]]], names: list[str], separator: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the values of all lines, and a note if each has one more than there are names, which is left out."""
    import pandas as pd

    first = next(lines, (0, names))
    width = len(names) + (len(first[1]) == len(names) + 1)

    def wrong(place: int, row: list[str]) -> _NoTableError:
        reason = f"line {place} has {len(row)} value{'s' * (len(row) != 1)} where there are {len(names)} columns"
        reason += f", and none for {quoted(row[len(names)])}" if len(row) > len(names) else ""
        return _NoTableError(f"{reason}; correct it, or name the separator ({separator!r} was taken)")

    def checked() -> Iterator[list[str]]:
        for line in itertools.chain([first] * (first[0] > 0), lines):
            if len(line[1]) != width:
                raise wrong(*(line if width == len(names) else first))
            yield line[1]

    rows, parts = checked(), list[pd.DataFrame]()
    while not parts or len(parts[-1]) == _AT_ONCE:
        parts.append(pd.DataFrame([*itertools.islice(rows, _AT_ONCE)], columns=range(width), dtype="str"))
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    if width == len(names):
        return table.set_axis(names, axis="columns"), []
    at_end = table[width - 1].str.strip().eq("").all()
    if not (at_end or table[0].is_unique):  # names of rows are, and parts of numbers with decimal commas are not
        raise wrong(*first)
    where = "their ends, where it is empty" if at_end else "their beginnings, where it names the rows"
    note = f"all lines have one value more than there are names, at {where}; it was left out"
    return table.drop(columns=width - 1 if at_end else 0).set_axis(names, axis="columns"), [note]


# Any source of a table, as a pandas frame whose column names are text.


@dataclass(frozen=True, eq=False)
class SourceTable:
    """A table as it was found; `owner` begins the messages about it, `repairs` say what has been changed already.

    `every` counts all rows of a folder, of which the table is then a sample.
    """

    name: str
    owner: str
    frame: pd.DataFrame
    repairs: Sequence[str] = ()
    every: AllRows | None = None


def open_source(
    source: Any, settings: Reading, target: str, most: int, sample_rows: int = SAMPLED_ROWS, seed: int = 0
) -> SourceTable:
    """Return the table of a file, a folder or a frame; raise `DeclarationError` if it is none, or has other columns.

    Of a folder with more rows than `sample_rows`, so many are drawn at random.
    """
    import pandas as pd

    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        if path.is_dir():
            owner = f"folder {quoted(path.name)}"
            check = functools.partial(check_columns, owner, settings=settings, target=target, most=most)
            rows, every = sampled(path, check, target, settings.missing_values, sample_rows, seed)
            table = open_source(rows, settings, target, most)
            notes = [] if every is None else [every.note]
            return SourceTable(path.name, owner, table.frame, [*notes, *table.repairs], every)
        if not path.is_file():
            beside = [one.name for one in path.parent.iterdir() if one.is_file()] if path.parent.is_dir() else []
            hint = did_you_mean(path.name, beside) or "; correct the path"
            raise DeclarationError(f"data must be an existing file, got {str(path)!r}{hint}")
        owner = f"table {quoted(path.name)}"
        frame, repairs = read_file(owner, path, settings, target, most=most)
        check_columns(owner, list(frame.columns), settings, target, most)  # without what was an index
        return SourceTable(path.name.split(".")[0] or path.name, owner, frame, repairs)
    owner, repairs = "the table", []
    frame = source if isinstance(source, pd.DataFrame) else _from_arrow(owner, source)
    if other := [name for name in frame.columns if not isinstance(name, str)]:
        repairs = [f"names of columns that are no text were made text, such as {shortened(repr(other[0]))}"]
    frame = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    check_columns(owner, list(frame.columns), settings)
    for name, column in frame.items():
        if column.dtype == object and (nested := [one for one in map(type, column) if one.__hash__ is None]):
            raise DeclarationError(f"{owner}: {quoted(str(name))} has a {nested[0].__name__} in a cell; {_ONE_EACH}")
    frame, more = plain(frame, settings.encoding, {*itertools.chain(*settings.roles(target).values())})
    check_columns(owner, list(frame.columns), settings, target, most)
    return SourceTable("table", owner, frame, [*repairs, *more])


def _from_arrow(owner: str, source: Any) -> pd.DataFrame:
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
        is_one = getattr(source, "ndim", None) == 1 or isinstance(source, pa.Array | pa.ChunkedArray)
        advice = "give the whole frame, not one column" if is_one else "make it a pandas DataFrame with named columns"
        allowed = "a path of a table or a frame of pandas, polars or pyarrow"
        raise DeclarationError(f"data must be {allowed}, got {type(source).__name__}; {advice}")
    try:
        return in_pandas(table)
    except (ValueError, TypeError, NotImplementedError, KeyError) as error:
        reason = f"reading it failed: {one_line_reason(error)}"
        raise DeclarationError(f"{owner}: {reason}; make it a pandas DataFrame") from error


def check_columns(
    owner: str, names: list[str], settings: Reading, target: str | None = None, most: int = _MOST_COLUMNS
) -> None:
    """Raise an error unless columns have names of their own and, given a target, are those that settings need.

    The target and all columns that settings name must exist, none may have two roles, and some must be features.
    """
    are_values = 2 * sum(stated_number(name) > -math.inf for name in names) >= len(names)
    no_names = f"; the names look like values: {_NO_HEADER}" * are_values
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        what = f"every column must have a name of its own, got {shown(twice, 3)} more than once"
        raise DeclarationError(f"{owner}: {what}; rename one{no_names}")
    if target is None:
        return
    roles = settings.roles(target)
    known = set(names)
    for role, name in [(role, name) for role, wanted in roles.items() for name in wanted if name not in known]:
        hint = _separated(name, names) or did_you_mean(name, names)
        what = f"{role} must be a column of the data, got {quoted(name)}{hint}"
        raise DeclarationError(f"{owner}: {what}; the columns are {shown(names)}{no_names}")
    pairs = (itertools.combinations(("target", role, "features"), 2) for role in ("drop", "id"))
    for first, second in itertools.chain(*pairs):
        if both := [name for name in roles[first] if name in set(roles[second])]:
            what = f"{first} and {second} must name different columns, got {quoted(both[0])} in both"
            raise DeclarationError(f"{owner}: {what}; take it out of {second}")
    if not (features := settings.features_of(names, target)):
        what = "there must be a column beside the target to be a feature, got none"
        raise DeclarationError(f"{owner}: {what}; if the columns were not told apart, name the separator")
    if len(features) > most:
        what = f"at most {most:,} columns can be features, got {len(features):,}"
        raise DeclarationError(f"{owner}: {what}; name those of interest in features, or the others in drop")


def _separated(name: str, names: Sequence[str]) -> str:
    """Return which separator would tell a column apart from others, if one would."""
    for one in names:
        for mark in f"{SEPARATORS}:/^~ ":
            if mark in one and name in [part.strip(" \"'") for part in one.split(mark)]:
                return f", which is a part of {quoted(one)}: name the separator, separator={mark!r}"
    return ""
