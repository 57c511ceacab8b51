"""What the texts of one column are: numbers, dates, two answers, or categories."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.tables import dates, numbers
from trimbench.papers.data.tables.sentinels import outlying_codes, words_for_missing
from trimbench.papers.data.tables.settings import ColumnType, ReadAs
from trimbench.papers.data.tables.texts import TextColumn
from trimbench.papers.data.tables.wording import quoted, rows_in, rows_named, shown

if TYPE_CHECKING:
    import pandas as pd

MAX_CATEGORIES = 50
_ANSWERS = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}, {"ja", "nein"}, {"oui", "non"})
# Among the rows with a value: the fewest numbers where all else are limits such as <5, and the most values of a column
# of numbers or dates that may be something else.
_NUMBERS_BESIDE_LIMITS, _ODD = 0.5, 0.05
_FEW_NUMBERS = 10
_ROWS_NAMED = 5


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """One column as it was read; `data` is None where it is left out."""

    name: str
    read_as: ReadAs
    data: pd.Series[Any] | None
    notes: tuple[str, ...] = ()


def read_texts(
    column: TextColumn, kind: ColumnType | None = None, decimal: str | None = None, marks: Iterable[str] = ()
) -> ReadColumn:
    """Read a column of text as `kind`, or as what its values look like.

    Where the numbers of the column do not say what stands before decimals, the declared mark `decimal` does, or
    `marks`, which are those of the whole table. Raises `DeclarationError` if the column cannot be read as `kind`, or
    has infinite values.
    """
    gaps = column.missing_notes()
    if not column.texts:
        return ReadColumn(column.name, "left out", None, (*gaps, "it has no values, so it is left out"))
    mark = _mark(column, {decimal} if decimal else set(marks))
    if decimal and mark != decimal:
        gaps = (*gaps, f"its numbers have {mark!r} before decimals, not {decimal!r}")
    parsed = np.array([numbers.number_of(text, mark or ".") for text in column.texts])
    is_given, kind = kind is not None, kind or _recognised(column, parsed)
    if kind == "number" and mark is None and (example := numbers.ambiguous_comma(column.texts)):
        note = f"the comma in {quoted(example)} may stand before decimals or part thousands; say which in decimal"
        if is_given:
            raise DeclarationError(f"types.{column.name} is number, but {note}")
        read = ReadColumn(column.name, "left out", None, (f"it is left out, because {note}",))
    elif kind == "number":
        read = _numbers(column, parsed, mark or ".")
    elif kind == "date":
        read = _dates(column, is_given)
    elif kind == "boolean":
        read = _answers(column)
    else:
        read = _categories(column, parsed, is_given)
    return replace(read, notes=(*gaps, *read.notes))


def _mark(column: TextColumn, marks: set[str]) -> str | None:
    """Return what stands before the decimals: what the column says, or else the table."""
    for found in (column.decimal_marks, marks):
        if len(found) == 1:
            return next(iter(found))
    return None


def _recognised(column: TextColumn, parsed: NDArray[np.float64]) -> ColumnType:
    """Return what most values of a column are."""
    counts, known = column.counts, ~np.isnan(parsed)
    odd = _texts(column, ~known)
    beside_limits = all(map(numbers.is_limit, odd))
    enough = _NUMBERS_BESIDE_LIMITS if beside_limits else 1 - _ODD
    # Few different numbers are more likely codes, and what is none of them is one more.
    if (
        counts[known].sum() >= enough * counts.sum()
        and (beside_limits or known.sum() > _FEW_NUMBERS)
        and not any(map(numbers.is_code, column.texts))
    ):
        return "number"
    if {text.casefold() for text in column.texts} in _ANSWERS:
        return "boolean"
    return "date" if _are_dates(column, counts) else "category"


def _are_dates(column: TextColumn, counts: NDArray[np.int64]) -> bool:
    allowed = _ODD * int(counts.sum())
    for text, count in zip(column.texts, counts.tolist(), strict=True):
        if not dates.is_date(text):
            allowed -= count
            if allowed < 0:
                return False
    return True


def _texts(column: TextColumn, chosen: NDArray[np.bool_]) -> list[str]:
    return [column.texts[place] for place in np.flatnonzero(chosen)]


def _numbers(column: TextColumn, parsed: NDArray[np.float64], mark: str) -> ReadColumn:
    refuse_infinite(column.name, column.numbers(parsed))
    known = ~np.isnan(parsed)
    if not known.any():
        raise DeclarationError(
            f"types.{column.name} is number, but no value of the column is one, got {shown(column.texts, 3)}"
        )
    notes = []
    commas = [text for text in _texts(column, known) if mark == "," and "," in text]
    if commas:
        notes.append(f"decimal commas were read: {quoted(commas[0])} as {numbers.number_of(commas[0], mark):g}")
    grouped = [text for text in _texts(column, known) if numbers.is_grouped(text, mark)]
    if grouped:
        notes.append(
            f"groups of digits were joined: {quoted(grouped[0])} is {numbers.number_of(grouped[0], mark):.15g}"
        )
    if huge := [text for text in _texts(column, known) if numbers.is_huge(text)]:
        notes.append(f"whole numbers above 2^53 were rounded, such as {quoted(huge[0])}; types: category keeps them")
    if not known.all():
        notes.append(
            _said_of(column, ~known, "has no number and counts as missing", "have no number and count as missing")
        )
    values = column.numbers(parsed)
    notes += outlying_codes(values, days=False, text="{:.15g}".format)
    return _with_values(column, "number", values, notes)


def _dates(column: TextColumn, is_given: bool) -> ReadColumn:
    order = dates.day_first(column.texts)
    if order is None and dates.needs_order(column.texts):
        example = next(text for text in column.texts if dates.needs_order([text]))
        reason = f"{quoted(example)} does not say whether the day or the month comes first; write 2020-12-31"
        if is_given:
            raise DeclarationError(f"types.{column.name} is date, but {reason}")
        return ReadColumn(column.name, "left out", None, (f"it is left out, because {reason}",))
    days = np.array([dates.days_of(text, bool(order)) for text in column.texts])
    known = ~np.isnan(days)
    if not known.any():
        raise DeclarationError(
            f"types.{column.name} is date, but no value of the column is one, got {shown(column.texts, 3)}"
        )
    notes = [
        "dates were read as days since 1970-01-01"
        + ("" if order is None else f", the {'day' if order else 'month'} first")
    ]
    if not known.all():
        notes.append(_said_of(column, ~known, "has no date and counts as missing", "have no date and count as missing"))
    values = column.numbers(days)
    notes += outlying_codes(values, days=True, text=dates.text_of)
    return _with_values(column, "date", values, notes)


def _answers(column: TextColumn) -> ReadColumn:
    """Read a column of two values, whatever their case."""
    counts = column.counts
    spelling: dict[str, int] = {}
    for place in sorted(range(len(counts)), key=lambda place: -counts[place]):
        spelling.setdefault(column.texts[place].casefold(), place)
    if len(spelling) > 2:
        raise DeclarationError(
            f"types.{column.name} is boolean, but the column has {len(spelling)} different values, "
            f"got {shown(column.texts, 3)}; make it a category"
        )
    merged = column.merged({text: column.texts[spelling[text.casefold()]] for text in column.texts})
    other = [
        f"{quoted(text)} in {rows_in(count)} is {quoted(column.texts[spelling[text.casefold()]])}"
        for text, count in zip(column.texts, counts.tolist(), strict=True)
        if text not in merged.texts
    ]
    notes = (f"other spellings were joined: {', '.join(other[:3])}{', ...' * (len(other) > 3)}",) if other else ()
    return ReadColumn(column.name, "boolean", merged.labels(), notes)


def _categories(column: TextColumn, parsed: NDArray[np.float64], is_given: bool) -> ReadColumn:
    known = ~np.isnan(parsed)
    notes = []
    if known.all() and not is_given:
        code = next(text for text in column.texts if numbers.is_code(text))
        notes.append(f"digits such as {quoted(code)} were taken for codes; if they are amounts, write types: number")
    elif not is_given and column.counts[known].sum() >= _NUMBERS_BESIDE_LIMITS * column.n_present:
        odd = _said_of(column, ~known, "has none", "have none")
        notes.append(f"most rows have numbers, but {odd}; types: number makes what is none missing")
    elif not is_given:
        notes += _with_units(column, known)
    if len(column.texts) > MAX_CATEGORIES and not is_given:
        notes.append(
            f"it has {len(column.texts):,} different values that are not read as numbers, so it is left out; "
            "write types: category to keep it"
        )
        return ReadColumn(column.name, "left out", None, tuple(notes))
    return ReadColumn(column.name, "category", column.labels(), (*notes, *words_for_missing(column), *alike(column)))


def _with_units(column: TextColumn, known: NDArray[np.bool_]) -> list[str]:
    """Return that most values are numbers with a unit or a sign beside them, if so."""
    units = numbers.with_units(column.texts)
    if not units.any() or column.counts[known | units].sum() < _NUMBERS_BESIDE_LIMITS * column.n_present:
        return []
    odd = _said_of(column, units, "has a number with a unit", "have a number with a unit")
    return [f"{odd}; to have numbers, take the units off"]


def alike(column: TextColumn) -> list[str]:
    """Return which values of a column may be two spellings of one: they differ in case or blanks, or as 1 and 1.0."""
    of_key: dict[str, list[str]] = {}
    for text in column.texts:
        of_key.setdefault(_key(text), []).append(text)
    pairs = [f"{quoted(same[0])} and {quoted(same[1])}" for same in of_key.values() if len(same) > 1]
    if not pairs:
        return []
    more = f" and {len(pairs) - 3:,} more pairs" if len(pairs) > 3 else ""
    return [f"{', '.join(pairs[:3])}{more} are different values, but look like spellings of one"]


def _key(text: str) -> str:
    """Return what two spellings of one value have in common."""
    number = numbers.number_of(text, ".")
    if math.isfinite(number) and not numbers.is_code(text):
        return repr(number)
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _said_of(column: TextColumn, chosen: NDArray[np.bool_], one: str, several: str) -> str:
    """Return how many rows have one of some texts, and the most frequent ones with their rows.

    `one` and `several` say what is so of the rows.
    """
    counts = column.counts
    places = sorted(np.flatnonzero(chosen).tolist(), key=lambda place: -counts[place])
    named = [
        f"{quoted(column.texts[place])} in {rows_named(column.rows_of([place]), _ROWS_NAMED)}" for place in places[:3]
    ]
    if len(places) > 3:
        named.append(f"{len(places) - 3:,} other texts in {rows_named(column.rows_of(places[3:]), _ROWS_NAMED)}")
    n_rows = int(counts[chosen].sum())
    return f"{rows_in(n_rows)} {one if n_rows == 1 else several}: {', '.join(named)}"


def refuse_infinite(name: str, values: NDArray[np.float64]) -> None:
    """Raise an error that names the rows with infinite values."""
    rows = np.flatnonzero(np.isinf(values)) + 1
    if len(rows):
        raise DeclarationError(
            f"column {quoted(name)} must have finite numbers, got inf in {rows_named(rows.tolist(), 5)}; correct them, "
            "or add inf and -inf to missing_values"
        )


def _with_values(column: TextColumn, kind: ReadAs, values: NDArray[np.float64], notes: list[str]) -> ReadColumn:
    import pandas as pd

    return ReadColumn(column.name, kind, pd.Series(values, name=column.name), tuple(notes))
