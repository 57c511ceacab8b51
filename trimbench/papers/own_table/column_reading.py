"""What the texts of one column are: numbers, dates, two answers, or categories."""

from __future__ import annotations

import functools
import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.own_table.table_files import SourceTable
from trimbench.papers.own_table.table_texts import (
    CODES,
    ENDS_AS_FLOATS,
    LARGEST,
    LARGEST_EXACT,
    YEAR_LAST,
    ColumnType,
    ReadAs,
    Reading,
    date_in,
    day_first,
    days_of,
    is_code,
    is_date,
    is_huge,
    missing_among,
    numbers_among,
    outlying_codes,
    signed,
    stands_for_missing,
    stated_number,
    with_units,
)
from trimbench.reproduction.data.dataset import Cells, Labels, cells_of, label_text
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.messages import quoted, rows_in, rows_named, shown, some

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


MAX_CATEGORIES = 50
_ANSWERS = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}, {"ja", "nein"}, {"oui", "non"})
# Shares of the rows with a value: the least of numbers, where all others are limits such as <5; and the most of others,
# in a column of numbers or dates.
_NUMBERS_BESIDE_LIMITS, _ODD = 0.5, 0.05
_FEW_NUMBERS = 10
_ROWS_NAMED = 5
# Beginnings of notes: on a column that can be read in two ways, and on texts that the settings make missing.
LEFT_OUT, MISSING = "it is left out,", "counted as missing:"
_DAYS_READ = "dates were read as days since 1970-01-01"
# A number as most programs write it: without groups, or more digits than a float keeps.
_USUAL = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d+)?(?:e[+-][01]?\d\d)?", re.ASCII)
_FIRST = 20  # rows that tell whether a column may have numbers alone
_DURATION = re.compile(r"-?(?:\d{1,5} days?,? \+?)?\d{1,3}:[0-5]\d:[0-5]\d(?:\.\d{1,9})?", re.ASCII)
LIMIT = re.compile(r"(?:[<>≤≥~≈]=?|=)\s*[+-]?[\d.,]+")
_AFTER_9999 = 2932897.0  # days, which the last moments of that year are rounded to


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """One column as it was read; `cells` is None where it is left out."""

    name: str
    read_as: ReadAs = "left out"
    cells: Cells | None = None
    notes: tuple[str, ...] = ()


def read_columns(table: SourceTable, names: Sequence[str], settings: Reading) -> list[ReadColumn]:
    """Read columns of a table, each as its values or the settings say."""
    columns = {str(name): column for name, column in table.frame[list(names)].items()}
    types = {name: type_of(column) for name, column in columns.items()}
    texts = {
        name: TextColumn.of(name, columns[name], settings.missing_values)
        for name, kind in types.items()
        if kind in (None, "category") or settings.types.get(name, kind) != kind
    }
    marks = set() if settings.decimal else set().union(*(column.decimal_marks for column in texts.values()))
    found = []
    for name, kind in types.items():
        try:
            if name in texts:
                found.append(read_texts(texts[name], settings, marks, kind == "category"))
            elif kind is not None:
                found.append(read_typed(name, columns[name], kind, settings.missing_values))
        except DeclarationError as error:
            raise DeclarationError(f"{table.owner}: {error}") from error
    return found


def read_texts(
    column: TextColumn, settings: Reading, marks: Collection[str] = (), has_categories: bool = False
) -> ReadColumn:
    """Read a column of text as the settings say, or as categories if its type has them, or as its values look.

    If the numbers of the column do not show which mark stands before decimals, the declared one counts, or `marks`,
    those of the whole table. Raises `DeclarationError` if the column cannot be read as its type or has infinite values.
    """
    gaps = column.missing_notes()
    if column.plain is None and not column.texts:
        return ReadColumn(column.name, notes=(*gaps, "it has no values, so it is left out"))
    # What the column says, or else the table.
    certain = [one for one in (column.decimal_marks, settings.decimal or "", marks) if len(one) == 1]
    mark = next(iter(certain[0])) if certain else None
    if settings.decimal and mark != settings.decimal:
        gaps = (*gaps, f"its numbers have {mark!r} before decimals, not {settings.decimal!r}")
    # Without points, both marks give the same numbers.
    plain = None if mark == "," and column.has_points else column.plain
    parsed = column.parsed(mark or ".") if plain is None else plain
    given = settings.types.get(column.name)
    match given or ("category" if has_categories else _recognised(column, parsed)):
        case "number":
            read = _numbers(column, parsed, mark, settings)
        case "date":
            read = _dates(column, settings)
        case "boolean":
            read = ReadColumn(column.name, "boolean", *labels_of_answers(column))
        case _:
            read = read_categories(column, None if given or has_categories else parsed, given is not None)
    return replace(read, notes=(*gaps, *read.notes)) if gaps else read


def _recognised(column: TextColumn, parsed: NDArray[np.float64]) -> ColumnType:
    """Return what most values of a column are."""
    if parsed is column.plain:
        return "number"
    known, n_rows = ~np.isnan(parsed), column.counts.sum()
    if all(map(_DURATION.fullmatch, column.texts)):
        return "number"
    odd = [*itertools.compress(column.texts, ~known)]
    are_limits = all(map(LIMIT.fullmatch, odd))
    are_gaps = are_limits or all(LIMIT.fullmatch(text) or stands_for_missing(text) for text in odd)
    enough = (_NUMBERS_BESIDE_LIMITS if are_gaps else 1 - _ODD) * n_rows
    # Few different numbers are more likely codes, and another text among them is one more.
    are_numbers = column.counts[known].sum() >= enough and (are_limits or known.sum() > _FEW_NUMBERS)
    if are_numbers and not any(map(is_code, column.texts)):
        return "number"
    if are_answers(column):
        return "boolean"
    allowed = _ODD * n_rows
    for text, count in zip(column.texts, column.counts.tolist(), strict=True):
        allowed -= 0 if is_date(text) else count
        if allowed < 0:  # most columns of text are known by their first values
            return "category"
    return "date"


def _numbers(column: TextColumn, parsed: NDArray[np.float64], mark: str | None, settings: Reading) -> ReadColumn:
    is_plain = parsed is column.plain
    if not is_plain and all(map(_DURATION.fullmatch, column.texts)):
        import pandas as pd

        lengths = pd.Series(pd.to_timedelta([*column.texts, None])[column.codes])
        return read_typed(column.name, lengths, "number", settings.missing_values)
    if mark is None and (example := column.ambiguous(",")):
        reason = f"the comma in {quoted(example)} may stand before decimals or part thousands; say which in decimal"
        return _refused(column, "number", reason, settings)
    special, notes = list[tuple[str, str, float]](), list[str]()
    if not is_plain:
        values = zip(column.texts, column.signed, parsed.tolist(), strict=True)
        special = [one for one in values if not math.isnan(one[2])]
    for what, found in (
        ("decimal commas were read: {} as {:.15g}", (one for one in special if mark == "," and "," in one[0])),
        ("groups of digits were joined: {} is {:.15g}", (one for one in special if stated_number(one[1]) != one[2])),
        ("signs of accounting were read: {} is {:.15g}", (one for one in special if one[0] != one[1])),
    ):
        notes += [what.format(quoted(text), value) for text, _, value in itertools.islice(found, 1)]
    if mark is None and (example := column.ambiguous(".")):
        notes.append(f"the point in {quoted(example)} was taken for decimals; if it parts thousands, say decimal=','")
    if huge := next((text for text, _, _ in special if is_huge(text)), None):
        notes.append(f"whole numbers above 2^53 were rounded, such as {quoted(huge)}; types: category keeps them")
    if np.fmin.reduce(parsed) >= 1e7 and np.fmax.reduce(parsed) < 1e8:
        texts = [text for text, _, _ in special] or column.texts
        if all(text.isdecimal() and len(text) == 8 and days_of(text, True) > -math.inf for text in texts):
            notes.append(f"{quoted(texts[0])} and the others may be dates; types: date reads them")
    if is_plain:
        return _finished(column.name, "number", parsed.copy(), settings.missing_values, notes)
    return _measured(column, "number", parsed, settings, notes)


def _dates(column: TextColumn, settings: Reading) -> ReadColumn:
    reason, order = None, day_first(column.texts)
    years_last = (text for text in column.texts if not text[:4].isdecimal())
    short = (text for text in years_last if (match := date_in(text)) and len(match["year"]) == 2)
    if example := next(short, None):
        reason = f"the year of {quoted(example)} has two digits and may be in any century"
    elif order is None and (example := next(filter(YEAR_LAST[True].fullmatch, column.texts), None)):
        reason = f"{quoted(example)} does not say whether the day or the month comes first"
    if reason:
        return _refused(column, "date", f"{reason}; write 2020-12-31", settings)
    days = np.array([days_of(text, bool(order)) for text in column.texts])
    note = _DAYS_READ + ("" if order is None else f", the {'day' if order else 'month'} first")
    return _measured(column, "date", days, settings, [note])


def _refused(column: TextColumn, kind: ColumnType, reason: str, settings: Reading) -> ReadColumn:
    """Leave a column out, or raise an error if its type was given."""
    if column.name in settings.types:
        raise DeclarationError(f"types.{column.name} is {kind}, but {reason}")
    return ReadColumn(column.name, notes=(f"{LEFT_OUT} because {reason}",))


def _measured(
    column: TextColumn, kind: ColumnType, values: NDArray[np.float64], settings: Reading, notes: list[str]
) -> ReadColumn:
    """Return a column of numbers or dates, given the value of each of its texts, NaN where there is none."""
    unread = np.isnan(values)
    if unread.all():
        return _refused(column, kind, f"no value of the column is one, got {shown(column.texts, 3)}", settings)
    if unread.any():
        notes.append(_said_of(column, unread, f"have no {kind} and count as missing"))
    return _finished(column.name, kind, column.numbers(values), settings.missing_values, notes)


def are_answers(column: TextColumn) -> bool:
    """Tell whether the values of a column are two answers such as Yes and no, whatever their case."""
    return {text.casefold() for text in column.texts} in _ANSWERS


def labels_of_answers(column: TextColumn) -> tuple[Labels, tuple[str, ...]]:
    """Return the labels of a column of two values, whatever their case, and notes on spellings that were joined."""
    counts = dict(zip(column.texts, column.counts.tolist(), strict=True))
    spelling: dict[str, str] = {}
    for text in sorted(counts, key=counts.__getitem__, reverse=True):
        spelling.setdefault(text.casefold(), text)
    if len(spelling) > 2:
        what = f"the column has {len(spelling)} different values, got {shown(column.texts, 3)}"
        raise DeclarationError(f"types.{column.name} is boolean, but {what}; make it a category")
    usual = {text: spelling[text.casefold()] for text in counts}
    joined = ((text, one) for text, one in usual.items() if text != one)
    other = [f"{quoted(text)} in {rows_in(counts[text])} is {quoted(one)}" for text, one in joined]
    notes = (f"other spellings were joined: {some(other, 3)}",) if other else ()
    names = sorted(set(usual.values()))
    codes = np.array([*(names.index(usual[text]) for text in column.texts), -1])[column.codes]
    return Labels(codes, names), notes


def read_categories(column: TextColumn, parsed: NDArray[np.float64] | None = None, is_given: bool = True) -> ReadColumn:
    """Read a column of categories; `parsed` has the numbers among them where they may be something else."""
    notes = [] if parsed is None else _what_else(column, parsed)
    are_many = len(column.texts) > MAX_CATEGORIES
    if not is_given and (are_many or 1 < len(column.texts) == column.counts.sum()):
        many = f"it has {len(column.texts):,} different values that are not read as numbers"
        reason = many if are_many else "every row with a value has a different text"
        return ReadColumn(column.name, notes=(*notes, f"{reason}, so it is left out; write types: category to keep it"))
    return ReadColumn(column.name, "category", column.labels(), (*notes, *_words_for_missing(column), *_alike(column)))


def _what_else(column: TextColumn, parsed: NDArray[np.float64]) -> list[str]:
    """Return what else the categories may be, if anything, without advice that would end in an error."""
    known = ~np.isnan(parsed)
    are_finite = bool(np.isfinite(parsed[known]).all())
    if known.all() and (code := next(filter(is_code, column.texts), None)):
        advice = "; if they are amounts, write types: number" if are_finite else ""
        return [f"digits such as {quoted(code)} were taken for codes{advice}"]
    dates = np.array([is_date(text) for text in column.texts], dtype=bool)
    units = with_units(column.texts)
    makes_missing = "; types: number makes what is none missing" * are_finite
    for chosen, most, told, what, advice in (
        (known, "most rows have numbers, but ", ~known, "have none", makes_missing),
        (dates, "most rows have dates, but ", ~dates, "have none", "; if they are missing, add them to missing_values"),
        (known | units, "", units, "have a number with a unit", "; to have numbers, take the units off"),
    ):
        if chosen.any() and column.counts[chosen].sum() >= _NUMBERS_BESIDE_LIMITS * column.counts.sum():
            return [most + _said_of(column, told, what) + advice]
    return []


def _alike(column: TextColumn) -> list[str]:
    """Return which values of a column may be two spellings of one.

    They differ in case, blanks, a mark at the end or invisible characters, or as 1 and 1.0.
    """
    of_key: dict[str, list[str]] = {}
    for text in column.texts:
        of_key.setdefault(_key(text), []).append(text)
    pairs = [f"{quoted(same[0])} and {quoted(same[1])}" for same in of_key.values() if len(same) > 1]
    return [f"{some(pairs, 3)} are different values, but look like spellings of one"] if pairs else []


def _key(text: str) -> str:
    """Return what two spellings of one value have in common."""
    if not (text.isascii() and text.isprintable()):
        kinds = [(one, unicodedata.category(one)) for one in text]
        text = "".join("-" if kind == "Pd" else one for one, kind in kinds if kind not in ("Cf", "Cc") or one.isspace())
    if not (math.isnan(number := stated_number(text)) or is_code(text)):
        return repr(number)
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip("\"'").rstrip(" .,;:!*") or words


def _said_of(column: TextColumn, chosen: NDArray[np.bool_], what: str) -> str:
    """Say how many rows have a chosen text, `what` that means, and which of these are most frequent, with rows."""
    places = sorted(np.flatnonzero(chosen).tolist(), key=lambda place: -column.counts[place])
    parts = [(quoted(column.texts[place]), [place]) for place in places[:3]]
    if len(places) > 3:
        parts.append((f"{len(places) - 3:,} other texts", places[3:]))
    named = [f"{text} in {rows_named(column.rows_of(own), _ROWS_NAMED)}" for text, own in parts]
    n_rows = int(column.counts[chosen].sum())
    if n_rows == 1:
        what = what.replace("have", "has", 1).replace(" count ", " counts ")
    return f"{rows_in(n_rows)} {what}: {', '.join(named)}"


def _finished(
    name: str, kind: ReadAs, values: NDArray[np.float64], missing: Iterable[str], notes: Iterable[str] = ()
) -> ReadColumn:
    """Return a column of numbers or dates without values that stand for missing ones or are too large to use."""
    is_date, notes = kind == "date", list(notes)
    if is_date:
        values = np.where(values == _AFTER_9999, np.nextafter(_AFTER_9999, 0), values)
    for text, number in numbers_among(tuple(missing), is_date):
        # A day that is named without a time of the day is missing at any time.
        gaps = (np.floor(values) if is_date and number.is_integer() else values) == number
        if gaps.any():
            values[gaps] = np.nan
            notes.append(f"{text!r} counts as missing in {rows_in(int(gaps.sum()))}")
    if len(beyond := np.flatnonzero(np.abs(values) > LARGEST)):
        if len(infinite := np.flatnonzero(np.isinf(values)) + 1):
            what = f"column {quoted(name)} must have finite numbers, got inf in {rows_named(infinite.tolist(), 5)}"
            raise DeclarationError(f"{what}; correct them, or add inf and -inf to missing_values")
        largest, rows = float(values[beyond[0]]), rows_named((beyond + 1).tolist(), _ROWS_NAMED)
        is_end = abs(largest) == np.finfo(np.float64).max
        why = "SPSS writes it for that" if is_end else "squares of what is above 1e150 are no numbers"
        notes.append(f"{largest} counts as missing in {rows}: {why}")
        values[beyond] = np.nan
    if np.isnan(values).all():
        return ReadColumn(name, notes=(*notes, "it has no values, so it is left out"))
    notes += outlying_codes(values, days=is_date)
    return ReadColumn(name, kind, values, tuple(notes))


# A column of text as its different values and where they stand.


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text.

    Attributes
    ----------
    rows : Arrow array of text, or of codes of it
        Null where a text is missing.
    counted_missing : dict from str to int
        The texts, other than empty ones, that count as missing, and their numbers of rows.
    plain : float array of shape (n_rows,), optional
        The numbers, NaN where one is missing, if all texts are numbers as most programs write them.
    """

    name: str
    rows: pa.Array
    counted_missing: dict[str, int]
    plain: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, name: str, column: pd.Series[Any], missing: Collection[str]) -> TextColumn:
        """Return the texts of a column without blanks around them; those that are `missing` count as missing.

        A number that is `missing` is compared as a number: -999 is missing as -999.0 and -9.99E+02, too.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, gone = _texts(column), {"", *missing}
        numbers = [number for _, number in numbers_among(tuple(missing), days=False)]
        begin = next((text for text in rows[:_FIRST].to_pylist() if text not in (None, *gone)), "")
        if _USUAL.fullmatch(begin):
            is_gone = pc.is_in(rows, value_set=pa.array([*gone], rows.type)).to_numpy(zero_copy_only=False)
            if (plain := _plain_numbers(_without(rows, is_gone))) is not None:
                is_gone |= np.isin(plain, numbers)
                counts = Counter(rows.filter(pa.array(is_gone)).to_pylist())
                counts.pop("", None)
                return cls(name, _without(rows, is_gone), counts, np.where(is_gone, np.nan, plain))
        rows = rows.dictionary_encode()
        found = rows.dictionary.to_pylist()
        tidied = [*map(str.strip, found)]
        gone = missing_among(tidied, missing)
        if not gone and tidied == found:
            return cls(name, rows, {})
        places = {text: place for place, text in enumerate(dict.fromkeys(one for one in tidied if one not in gone))}
        old = _codes_of(rows)
        counts = Counter(text for text in np.array([*tidied, ""], dtype=object)[old] if text and text in gone)
        codes = np.array([*(places.get(text, -1) for text in tidied), -1])[old]
        return cls(
            name,
            pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array([*places], pa.large_string())),
            counts,
        )

    @functools.cached_property
    def _encoded(self) -> pa.DictionaryArray:
        return self.rows if self.plain is None else self.rows.dictionary_encode()

    @functools.cached_property
    def texts(self) -> list[str]:
        """The different texts, in the order in which they appear."""
        found: list[str] = self._encoded.dictionary.to_pylist()
        return found

    @functools.cached_property
    def codes(self) -> NDArray[np.int64]:
        """The place of each row's text in `texts`, -1 where it is missing."""
        return _codes_of(self._encoded)

    @functools.cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each of `texts`."""
        return np.bincount(self.codes + 1, minlength=len(self.texts) + 1)[1:]

    @functools.cached_property
    def has_points(self) -> bool:
        """Whether there is a point in any text of plain numbers."""
        import pyarrow.compute as pc

        return self.plain is not None and bool(pc.any(pc.match_substring(self.rows, ".")).as_py())

    @functools.cached_property
    def signed(self) -> list[str]:
        """The texts with signs before the numbers."""
        return list(map(signed, self.texts))

    @functools.cached_property
    def _numbers(self) -> dict[str, NDArray[np.float64]]:
        """The number in each signed text, by the mark before decimals; NaN where there is none."""
        return {mark: np.array([stated_number(text, mark) for text in self.signed]) for mark in ".,"}

    @functools.cached_property
    def decimal_marks(self) -> set[str]:
        """The marks that certainly stand before decimals: with the other one, some text would be no number."""
        if self.plain is not None:  # most of them are known by the first text
            texts = (row.as_py() or "" for row in self.rows) if self.has_points else iter(())
            return {"."} if any("." in text and math.isnan(stated_number(text, ",")) for text in texts) else set()
        if not any("." in text or "," in text for text in self.texts):
            return set()
        pairs = ((".", ","), (",", "."))
        return {one for one, other in pairs if (np.isnan(self._numbers[other]) & ~np.isnan(self._numbers[one])).any()}

    def parsed(self, mark: str) -> NDArray[np.float64]:
        """Return the number in each text, with `mark` before decimals; NaN where there is none."""
        # Signs of accounting count only if all texts without them are numbers.
        as_written = np.array([text == sign for text, sign in zip(self.texts, self.signed, strict=True)], dtype=bool)
        found = self._numbers[mark]
        return np.where(as_written | ~np.isnan(found[as_written]).all(), found, np.nan)

    def ambiguous(self, mark: str) -> str | None:
        """Return a number whose mark could stand before decimals or part thousands, if there is one."""
        if self.plain is not None and (mark == "," or not self.has_points):
            return None
        marked = (text for text in self.signed if mark in text)
        return next((one for one in marked if not math.isnan(stated_number(one, ".") + stated_number(one, ","))), None)

    def missing_notes(self) -> tuple[str, ...]:
        """Return which texts count as missing, if any."""
        listed = ", ".join(f"{quoted(text)} in {rows_in(n)}" for text, n in self.counted_missing.items())
        return (f"{MISSING} {listed}",) if listed else ()

    def numbers(self, of_value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the number of each row, given that of each of `texts`; NaN where it is missing."""
        return np.append(of_value, np.nan)[self.codes]

    def labels(self, order: Sequence[str] | None = None) -> Labels:
        """Return the labels of the rows, whose names are in the order that is given, or sorted."""
        names = sorted(self.texts) if order is None else order
        places = {name: place for place, name in enumerate(names)}
        return Labels(np.array([*map(places.__getitem__, self.texts), -1])[self.codes], names)

    def rows_of(self, places: Iterable[int]) -> list[int]:
        """Return the rows, from 1, that have one of some values, given by their places in `texts`."""
        return (np.flatnonzero(np.isin(self.codes, list(places))) + 1).tolist()


def _texts(column: pd.Series[Any]) -> pa.Array:
    """Return a column as text in one piece, null where a value is missing."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(column.dtype, pd.StringDtype):
        found = pa.array(column.array).cast(pa.large_string())
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if column.dtype == object:
        # 1, 1.0 and True are different texts but equal objects.
        column = column.map(label_text, na_action="ignore")
    codes, values = column.factorize()
    texts = pa.array([*map(label_text, values.tolist())], pa.large_string())
    return texts.take(pa.array(codes, mask=codes < 0))


def _codes_of(rows: pa.DictionaryArray) -> NDArray[np.int64]:
    codes = rows.indices.fill_null(-1) if rows.null_count else rows.indices
    return np.asarray(codes).astype(np.int64)


def _without(rows: pa.Array, is_gone: NDArray[np.bool_]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(is_gone), pa.scalar(None, rows.type), rows) if is_gone.any() else rows


def _plain_numbers(rows: pa.Array) -> NDArray[np.float64] | None:
    """Return the number of each text, NaN where it is missing; None unless all are as most programs write them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        values = np.asarray(rows.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None
    known = rows.drop_null()
    _, ends, signs = known.buffers()
    ends = np.frombuffer(ends, dtype=np.int64)[known.offset : known.offset + len(known) + 1]
    signs = np.frombuffer(signs, dtype=np.uint8)
    start, last = ends[:-1] + (signs[ends[:-1]] == ord("-")), ends[1:] - 1
    is_digit = signs - ord("0") < 10
    is_code = (signs[start] == ord("0")) & (start < last) & is_digit[np.minimum(start + 1, last)]
    if not (is_digit[start] & is_digit[last] & ~is_code).all() or (np.abs(values) >= 1e15).any():
        return None
    if (signs | 32 == ord("e")).any():
        exponents = known.filter(pc.match_substring(known, "e", ignore_case=True))
        return values if all(map(_USUAL.fullmatch, exponents.to_pylist())) else None
    return values


# Columns that already have a type, as data frames and Parquet files have.

_KINDS: Mapping[str, ColumnType] = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "timedelta64", "timedelta"), "number"),
    **dict.fromkeys(("datetime64", "datetime", "date", "period"), "date"),
    **dict.fromkeys(("categorical", "interval"), "category"),
    **{"boolean": "boolean", "time": "number", "complex": "number"},
}


def type_of(column: pd.Series[Any]) -> ColumnType | None:
    """Return what the type of a column, or of all its objects, says that it is; None for text.

    Whole numbers that a float cannot hold are looked at as text, so that they stay different.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.StringDtype):
        return None
    found = pd.api.types.infer_dtype(column, skipna=True)
    if found in ("integer", "decimal") and not (-LARGEST_EXACT <= column.min() <= column.max() <= LARGEST_EXACT):
        return None if any(is_huge(str(value)) for value in set(column.dropna())) else "number"
    return _KINDS.get(found)


def read_typed(name: str, column: pd.Series[Any], kind: ColumnType, missing: Iterable[str]) -> ReadColumn:
    """Read a column of the type `kind`, as `type_of` gives it."""
    import pandas as pd

    found = pd.api.types.infer_dtype(column, skipna=True)
    if column.isna().all():
        return ReadColumn(name, notes=("it has no values, so it is left out",))
    if found == "complex":
        return ReadColumn(name, notes=("it has complex numbers, so it is left out; make it two columns",))
    if kind == "boolean":
        return ReadColumn(name, "boolean", cells_of(column))
    if kind == "date":
        note = _DAYS_READ + ", periods by their start" * (found == "period")
        return _finished(name, "date", _days(column, found), missing, [note])
    notes = []
    if found.startswith("time"):
        notes.append("durations and times of the day were read as days")
        lengths = column.map(lambda one: pd.Timedelta(str(one)) if isinstance(one, time) else one)
        values = lengths.astype("timedelta64[us]").to_numpy() / np.timedelta64(1, "D")
    else:
        values = column.where(column.notna(), np.nan).to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    narrow = getattr(column.dtype, "numpy_dtype", column.dtype)
    if narrow in (np.float16, np.float32):  # in which -999.9 is another number
        codes = np.array([*CODES, 1e20, *map(stated_number, missing)])
        with np.errstate(over="ignore"):
            for code, rounded in zip(codes, codes.astype(narrow), strict=True):
                values[np.isfinite(values) & (values == rounded)] = code
    sizes = np.abs(values)
    huge = np.flatnonzero((sizes > LARGEST_EXACT) & (sizes < 1e30) & ~np.isin(values, ENDS_AS_FLOATS))
    known = values[~np.isnan(values)]
    if len(huge) and (known == np.round(known)).all():
        what = f"whole numbers above 2^53 in {rows_named((huge + 1).tolist())} are floats"
        notes.append(f"{what}, which may have rounded them; if they name something, read them as text")
    return _finished(name, "number", values, missing, notes)


def _days(column: pd.Series[Any], found: str) -> NDArray[np.float64]:
    """Return days since 1970-01-01, of any year that the type can hold."""
    if found == "period":
        days = column.dropna().map(lambda one: one.asfreq("s", how="S").ordinal / 86_400)
        return days.reindex(column.index).to_numpy(dtype=np.float64)
    if column.dtype == object:
        texts = column.map(lambda value: value.isoformat().replace("T", " "), na_action="ignore")
        return np.array([days_of(text, True) if isinstance(text, str) else np.nan for text in texts])
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    moments = column.to_numpy()
    return np.asarray((moments - np.datetime64(0, "D").astype(moments.dtype)) / np.timedelta64(1, "D"))


def _words_for_missing(column: TextColumn) -> list[str]:
    """Return which categories may stand for missing values."""
    numbers = np.array([math.nan if is_code(text) else stated_number(text) for text in column.texts])
    known = ~np.isnan(numbers)
    # A code beside other numbers is judged with them, below.
    are_words = known.any() and not known.all() and np.isin(numbers[known], [*CODES, *ENDS_AS_FLOATS]).all()
    found = [
        f"{quoted(text)} in {rows_in(count)}"
        for text, count, is_number in zip(column.texts, column.counts.tolist(), known.tolist(), strict=True)
        if stands_for_missing(text) or (are_words and is_number)
    ]
    said = f"taken for a category: {', '.join(found)}; if it stands for missing, add it to missing_values"
    return [said] * bool(found) + (outlying_codes(column.numbers(numbers), days=False) if known.any() else [])
