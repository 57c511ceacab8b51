"""What the texts of one column are: numbers, dates, two answers, or categories."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.dataset import is_number_column, label_column, label_text, number_column
from trimbench.papers.data.table_files import MISSING_VALUES, ColumnType, ReadAs, SourceTable, TableSettings
from trimbench.papers.validation import DeclarationError, quoted, rows_in, rows_named, shown

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
    parsed = np.array([number_of(text, mark or ".") for text in column.texts])
    is_given, kind = kind is not None, kind or _recognised(column, parsed)
    if kind == "number" and mark is None and (example := ambiguous_comma(column.texts)):
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
    beside_limits = all(map(is_limit, odd))
    enough = _NUMBERS_BESIDE_LIMITS if beside_limits else 1 - _ODD
    # Few different numbers are more likely codes, and what is none of them is one more.
    if (
        counts[known].sum() >= enough * counts.sum()
        and (beside_limits or known.sum() > _FEW_NUMBERS)
        and not any(map(is_code, column.texts))
    ):
        return "number"
    if {text.casefold() for text in column.texts} in _ANSWERS:
        return "boolean"
    return "date" if _are_dates(column, counts) else "category"


def _are_dates(column: TextColumn, counts: NDArray[np.int64]) -> bool:
    allowed = _ODD * int(counts.sum())
    for text, count in zip(column.texts, counts.tolist(), strict=True):
        if not is_date(text):
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
        notes.append(f"decimal commas were read: {quoted(commas[0])} as {number_of(commas[0], mark):g}")
    grouped = [text for text in _texts(column, known) if is_grouped(text, mark)]
    if grouped:
        notes.append(f"groups of digits were joined: {quoted(grouped[0])} is {number_of(grouped[0], mark):.15g}")
    if huge := [text for text in _texts(column, known) if is_huge(text)]:
        notes.append(f"whole numbers above 2^53 were rounded, such as {quoted(huge[0])}; types: category keeps them")
    if not known.all():
        notes.append(
            _said_of(column, ~known, "has no number and counts as missing", "have no number and count as missing")
        )
    values = column.numbers(parsed)
    notes += outlying_codes(values, days=False, text="{:.15g}".format)
    return _with_values(column, "number", values, notes)


def _dates(column: TextColumn, is_given: bool) -> ReadColumn:
    order = day_first(column.texts)
    if order is None and needs_order(column.texts):
        example = next(text for text in column.texts if needs_order([text]))
        reason = f"{quoted(example)} does not say whether the day or the month comes first; write 2020-12-31"
        if is_given:
            raise DeclarationError(f"types.{column.name} is date, but {reason}")
        return ReadColumn(column.name, "left out", None, (f"it is left out, because {reason}",))
    days = np.array([days_of(text, bool(order)) for text in column.texts])
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
    notes += outlying_codes(values, days=True, text=text_of)
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
        code = next(text for text in column.texts if is_code(text))
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
    units = with_units(column.texts)
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
    number = number_of(text, ".")
    if math.isfinite(number) and not is_code(text):
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


# All columns of a table, each as its values or the settings say.


def read_columns(table: SourceTable, names: Sequence[str], settings: TableSettings) -> list[ReadColumn]:
    """Read columns of a table."""
    missing = frozenset(settings.missing_values)
    types = {name: type_of(table.frame[name]) for name in names}
    texts = {
        name: TextColumn.of(name, table.frame[name], missing, str.strip)
        for name, kind in types.items()
        if kind is None or settings.types.get(name, kind) != kind
    }
    marks = set() if settings.decimal else set().union(*(column.decimal_marks for column in texts.values()))
    found = []
    for name, kind in types.items():
        try:
            if name in texts:
                found.append(read_texts(texts[name], settings.types.get(name), settings.decimal, marks))
            elif kind is not None:
                found.append(read_typed(name, table.frame[name], kind, settings.missing_values))
        except DeclarationError as error:
            raise DeclarationError(f"{table.owner}: {error}") from error
    return found


# Numbers as people write them: decimal points and commas, groups of three digits, "<5".

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_SPACES = " \u00a0\u202f'"
_PLAIN = {mark: re.compile(rf"[+-]?(?:\d+(?:\{mark}\d*)?|\{mark}\d+){_EXPONENT}", re.ASCII) for mark in ".,"}
_GROUPED = {
    mark: re.compile(rf"[+-]?\d{{1,3}}(?:([{group}{_SPACES}])\d{{3}})(?:\1\d{{3}})*(?:\{mark}\d*)?", re.ASCII)
    for mark, group in ((".", ","), (",", "."))
}
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_LIMIT = re.compile(r"(?:[<>≤≥~≈]=?|=)\s*[+-]?[\d.,]+")
_WITH_UNIT = re.compile(
    r"(?P<before>[$€£¥] ?|[A-Z]{3} )?[+-]?\d+(?:[.,' ]\d+)*"
    r"(?P<after> ?[%‰°$€£¥]| ?°?[a-zA-Zµμ]{1,6}[23²³]?(?:/[a-zA-Zµμ]{1,4}[23²³]?)?)?"
)
_NUMBERS_PER_UNIT = 3
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)
# A mark that cannot be one of groups, because what follows it is not three digits or what precedes it a bare zero.
_DECIMALS = {
    mark: re.compile(rf"[+-]?(?:0?\{mark}\d+|\d+\{mark}(?:\d{{1,2}}|\d{{4,}})|\d{{4,}}\{mark}\d+){_EXPONENT}", re.ASCII)
    for mark in ".,"
}
# Above it, some whole numbers are no floats.
LARGEST_EXACT = 2**53


def number_of(text: str, decimal: str) -> float:
    """Return the number that a text is, NaN if it is none.

    >>> number_of("1.5", "."), number_of("1,5", "."), number_of("1.234,5", ","), number_of("-inf", ".")
    (1.5, nan, 1234.5, -inf)
    """
    if _PLAIN[decimal].fullmatch(text):
        return float(text.replace(",", "."))
    if text[:1].isalpha() and text[0] not in "iI":
        return math.nan
    text = text.replace("\u2212", "-")
    if _PLAIN[decimal].fullmatch(text):
        return float(text.replace(",", "."))
    if _GROUPED[decimal].fullmatch(text):
        digits = re.sub(rf"[{'.' if decimal == ',' else ','}{_SPACES}]", "", text)
        return float(digits.replace(",", "."))
    return float(text) if _INFINITE.fullmatch(text) else math.nan


def plain_numbers(texts: Sequence[str], decimal: str) -> list[float] | None:
    """Return the numbers that texts are, without groups of digits, or None if one of them is none."""
    pattern = _PLAIN[decimal]
    stripped = [text.strip() for text in texts]
    if all(pattern.fullmatch(text) or _INFINITE.fullmatch(text) for text in stripped):
        return [float(text.replace(",", ".")) for text in stripped]
    return None


def decimal_marks(texts: Iterable[str]) -> set[str]:
    """Return the marks that certainly stand before decimals in some texts.

    >>> sorted(decimal_marks(["0,5", "1,234"])), decimal_marks(["1,234", "12"])
    ([','], set())
    """
    found: set[str] = set()
    for text in texts:
        if "." in text and _DECIMALS["."].fullmatch(text):
            found.add(".")
        elif "," in text and _DECIMALS[","].fullmatch(text):
            found.add(",")
        elif (
            "." in text
            and "," in text
            and _GROUPED[mark := text[max(text.rfind("."), text.rfind(","))]].fullmatch(text)
        ):
            found.add(mark)
        if len(found) == 2:
            break
    return found


def ambiguous_comma(texts: Sequence[str]) -> str | None:
    """Return a number whose comma could stand before decimals or part thousands, if all with a comma are like it."""
    commas = [text for text in texts if "," in text]
    return commas[0] if commas and all(_GROUPED["."].fullmatch(text) for text in commas) else None


def is_grouped(text: str, decimal: str) -> bool:
    """Tell whether a number is written in groups of three digits."""
    return not _PLAIN[decimal].fullmatch(text) and bool(_GROUPED[decimal].fullmatch(text))


def is_limit(text: str) -> bool:
    """Tell whether a text is a limit of a number, such as <5."""
    return bool(_LIMIT.fullmatch(text))


def is_code(text: str) -> bool:
    """Tell whether digits name something: they begin with zero, or a float cannot hold them."""
    return bool(_CODE.fullmatch(text)) or is_huge(text)


def is_huge(text: str) -> bool:
    """Tell whether a text is a whole number that a float may have to round.

    >>> is_huge("9007199254740993"), is_huge("-9007199254740993"), is_huge("42")
    (True, True, False)
    """
    # The shortest has 16 digits.
    digits = text.lstrip("+-\u2212") if len(text) > 15 else ""
    return digits.isdecimal() and int(digits[:40]) > LARGEST_EXACT


def with_units(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Tell which texts are numbers with a sign of percent or currency, or a unit, as in 8%, $2 and 80 kg.

    Letters that follow the number without a blank are a unit only if several numbers have them: 1a and 2b are none.

    >>> with_units(["8%", "80 kg", "1a", "2b", "7", "$2"]).tolist()
    [True, True, False, False, False, True]
    """
    units = [_unit(text) for text in texts]
    counts = Counter(units)
    return np.array(
        [bool(unit) and (not unit.isalpha() or counts[unit] >= _NUMBERS_PER_UNIT) for unit in units], dtype=bool
    )


def _unit(text: str) -> str:
    """Return what stands before or behind a number, with the blank between them, or nothing."""
    match = _WITH_UNIT.fullmatch(text)
    if match is None or bool(match["before"]) == bool(match["after"]):
        return ""
    return str(match["before"] or match["after"])


# Dates as people write them, as days since 1970-01-01.

_TIME = r"(?:[T ]+(\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s*(Z|[+-]\d\d:?\d\d)?)?"
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _TIME, re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _TIME, re.ASCII)
_NAMED = re.compile(r"(?:(\d{1,2})[ .-]+([A-Za-z]{3,9})|([A-Za-z]{3,9})\.? +(\d{1,2}),?)[ .,-]+(\d{4})", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day_first(texts: Sequence[str]) -> bool | None:
    """Tell whether 3/4/2020 is in April, from dates that can only be read in one way; None if nothing says it.

    >>> day_first(["3/4/2020", "13/4/2020"]), day_first(["3/4/2020", "3/14/2020"]), day_first(["3/4/2020"])
    (True, False, None)
    """
    parts = [match.groups() for text in texts if (match := _YEAR_LAST.fullmatch(text))]
    days = [int(first) > 12 for first, _, _, *_ in parts].count(True)
    months = [int(second) > 12 for _, _, second, *_ in parts].count(True)
    if days != months:
        return days > months
    # With points, the day comes first wherever dates are written so.
    return True if parts and all(mark == "." for _, mark, *_ in parts) else None


def needs_order(texts: Sequence[str]) -> bool:
    """Tell whether some dates can be read only if it is known whether the day or the month comes first."""
    return any(_YEAR_LAST.fullmatch(text) for text in texts)


def is_date(text: str) -> bool:
    """Tell whether a text is a date, in either order of day and month."""
    return not math.isnan(days_of(text, True)) or (needs_order([text]) and not math.isnan(days_of(text, False)))


def days_of(text: str, day_comes_first: bool) -> float:
    """Return the days since 1970-01-01, with the time of the day as decimals, NaN if the text is no date.

    >>> days_of("1970-01-02 12:00", True), days_of("3/4/1970", False), days_of("5 Mar 1970", True)
    (1.5, 62.0, 63.0)
    """
    if not (text[:1].isdecimal() or text[:3].lower() in _MONTHS):
        return math.nan  # by far the most texts of other columns
    time = zone = None
    if match := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, time, zone = match.groups()
    elif match := _YEAR_LAST.fullmatch(text):
        first, _, second, year, time, zone = match.groups()
        day, month = (first, second) if day_comes_first else (second, first)
    elif match := _NAMED.fullmatch(text):
        early_day, late_month, early_month, late_day, year = match.groups()
        day, name = early_day or late_day, (late_month or early_month)[:3].lower()
        month = str(_MONTHS.index(name) + 1) if name in _MONTHS else "0"
    else:
        return math.nan
    hour, rest = (time or "00:00").split(":", 1)
    try:
        moment = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{rest}{zone or '+00:00'}")
    except ValueError:  # no such day
        return math.nan
    return (moment - _EPOCH).total_seconds() / 86_400


def text_of(days: float) -> str:
    """Return the day of a date, given as days since 1970-01-01.

    >>> text_of(1.5)
    '1970-01-02'
    """
    return str((_EPOCH + timedelta(days=days)).date())


# A column of text as its different values and where they stand.


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text.

    Attributes
    ----------
    texts : list of str
        The different texts, in the order in which they appear.
    codes : int array of shape (n_rows,)
        The place of each row's text in `texts`, -1 where it is missing.
    counted_missing : dict from str to int
        The texts, other than nothing, that count as missing, and their numbers of rows.
    """

    name: str
    texts: list[str]
    codes: NDArray[np.int64]
    counted_missing: dict[str, int]

    @classmethod
    def of(cls, name: str, column: pd.Series[Any], missing: Collection[str], tidy: Callable[[str], str]) -> TextColumn:
        """Return the texts of a column, each made `tidy`; those that are `missing` then count as missing."""
        codes, found = _factorized(column)
        tidied = [tidy(text) for text in found]
        values: dict[str, int] = {}
        for text in tidied:
            if text and text not in missing:
                values.setdefault(text, len(values))
        # The last entry is for the code -1.
        translation = np.array([*(values.get(text, -1) for text in tidied), -1], dtype=np.int64)
        counts = np.bincount(codes[codes >= 0], minlength=len(found))
        gaps: dict[str, int] = {}
        for text, count in zip(tidied, counts.tolist(), strict=True):
            if text and text in missing:
                gaps[text] = gaps.get(text, 0) + count
        return cls(name, list(values), translation[codes], gaps)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each of `texts`."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    @functools.cached_property
    def decimal_marks(self) -> set[str]:
        """The marks that certainly stand before decimals in some texts."""
        return decimal_marks(self.texts)

    @property
    def n_present(self) -> int:
        """Number of rows with a value."""
        return int((self.codes >= 0).sum())

    def missing_notes(self) -> tuple[str, ...]:
        """Return which texts count as missing, if any."""
        listed = ", ".join(f"{quoted(text)} in {rows_in(n)}" for text, n in self.counted_missing.items())
        return (f"counted as missing: {listed}",) if listed else ()

    def numbers(self, of_value: Iterable[float]) -> NDArray[np.float64]:
        """Return the number of each row, given that of each of `texts`; NaN where it is missing."""
        table = np.array([*of_value, np.nan], dtype=np.float64)
        return table[self.codes]

    def labels(self) -> pd.Series[Any]:
        """Return the column as a category of text, whose categories are sorted."""
        import pandas as pd

        order = sorted(range(len(self.texts)), key=self.texts.__getitem__)
        places = np.full(len(order) + 1, -1, dtype=np.int64)
        places[order] = np.arange(len(order))
        categories = pd.Index([self.texts[place] for place in order], dtype="str" if order else object)
        return pd.Series(pd.Categorical.from_codes(places[self.codes], categories), name=self.name)

    def merged(self, spelling: Mapping[str, str]) -> TextColumn:
        """Return the column with each of its values replaced."""
        values = list(dict.fromkeys(spelling[text] for text in self.texts))
        places = np.array([*(values.index(spelling[text]) for text in self.texts), -1], dtype=np.int64)
        return replace(self, texts=values, codes=places[self.codes])

    def rows_of(self, places: Iterable[int]) -> list[int]:
        """Return the rows, from 1, that have one of some values, given by their places in `texts`."""
        wanted = np.zeros(len(self.texts) + 1, dtype=bool)
        wanted[list(places)] = True
        return [int(row) + 1 for row in np.flatnonzero(wanted[self.codes])]


def _factorized(column: pd.Series[Any]) -> tuple[NDArray[np.int64], list[str]]:
    import pandas as pd

    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        # 1, 1.0 and True are different texts but equal objects, and a list cannot be looked up.
        column = column.map(label_text, na_action="ignore")
    codes, found = pd.factorize(column)
    return np.asarray(codes, dtype=np.int64), [label_text(value) for value in found.tolist()]


# Columns that already have a type, as data frames and Parquet files have.


def _are_whole(values: pd.Series[Any]) -> bool:
    known = values.dropna()
    return bool((known == known.round()).all())


def type_of(column: pd.Series[Any]) -> ColumnType | None:
    """Return how a column is read because of its dtype, None if its values must be looked at.

    Whole numbers that a float cannot hold are looked at as text, so that they stay different.
    """
    from pandas.api import types

    if types.is_bool_dtype(column.dtype) and column.dtype != object:
        return "boolean"
    if is_number_column(column) and not types.is_complex_dtype(column.dtype):
        return None if types.is_integer_dtype(column.dtype) and _has_huge(column) else "number"
    return "date" if types.is_datetime64_any_dtype(column.dtype) else None


def _has_huge(column: pd.Series[Any]) -> bool:
    known = column.dropna()
    return bool(len(known)) and (int(known.max()) > LARGEST_EXACT or int(known.min()) < -LARGEST_EXACT)


def read_typed(name: str, column: pd.Series[Any], kind: ColumnType, missing: Iterable[str]) -> ReadColumn:
    """Read a column of the type `kind`, as `type_of` gives it."""
    import pandas as pd

    if column.isna().all():
        return ReadColumn(name, "left out", None, ("it has no values, so it is left out",))
    if kind == "boolean":
        return ReadColumn(name, "boolean", label_column(column))
    if kind == "date":
        utc = pd.to_datetime(column, utc=True)
        days = (utc - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        values = number_column(days)
        codes = outlying_codes(values.to_numpy(), days=True, text=text_of)
        return ReadColumn(name, "date", values, ("dates were read as days since 1970-01-01", *codes))
    values = number_column(column)
    notes: list[str] = []
    for text in missing:
        number = plain_numbers([text], ".") if text else None
        gaps = values == number[0] if number else np.zeros(len(values), dtype=bool)
        if gaps.any():
            values[gaps] = np.nan
            notes.append(f"{text!r} counts as missing in {rows_in(int(gaps.sum()))}")
    refuse_infinite(name, values.to_numpy())
    huge = np.flatnonzero(values.abs() > LARGEST_EXACT)
    if len(huge) and _are_whole(values):
        notes.append(
            f"whole numbers above 2^53 in {rows_named((huge + 1).tolist())} are floats, which may have rounded them; "
            "if they name something, read them as text"
        )
    if values.isna().all():
        return ReadColumn(name, "left out", None, (*notes, "it has no values, so it is left out"))
    notes += outlying_codes(values.to_numpy(), days=False, text="{:.15g}".format)
    return ReadColumn(name, "number", values, tuple(notes))


# Values that may stand for missing ones: -999 among ages, 9999-12-31 among dates, "unknown" among categories.

# 99, 999, ..., and so with 8 and 7, of either sign; of single digits, only negative ones.
_CODES = tuple(
    sign * float(digit * length) for digit in "987" for length in range(1, 9) for sign in (1, -1) if sign < length
)
# 1899-12-30, 1900-01-01, 1970-01-01, 2099-12-31, 2999-12-31, 9999-12-31
_DAYS = (-25569.0, -25567.0, 0.0, 47481.0, 376199.0, 2932896.0)
_WORDS = frozenset(
    {text.casefold() for text in MISSING_VALUES if text}
    | {"-", "--", ".", "n.a.", "missing", "unknown", "not available", "not known", "unbekannt", "k.a.", "k. a."}
)


def outlying_codes(values: NDArray[np.float64], *, days: bool, text: Callable[[float], str]) -> list[str]:
    """Return which numbers look as if they stood for missing ones, with their rows.

    Such a number is in several rows and typical of codes. It is either the only negative one, or farther away from all
    others than these are from each other. `days` tells dates from numbers, and `text` says a value.
    """
    codes = np.array(_DAYS if days else _CODES)
    is_code = np.isin(values, codes)
    others = values[~is_code & ~np.isnan(values)]
    if not is_code.any() or len(others) < 2 or others.min() == others.max():
        return []
    low, high = float(others.min()), float(others.max())
    found = []
    for code in np.unique(values[is_code]).tolist():
        rows = (np.flatnonzero(values == code) + 1).tolist()
        is_far = max(low - code, code - high) > high - low or (not days and code < 0 <= low)
        if len(rows) > 1 and is_far:
            found.append(
                f"{text(code)} in {rows_in(len(rows))} ({rows_named(rows)}) is apart from the others, {text(low)} to "
                f"{text(high)}; if it stands for missing, add it to missing_values"
            )
    return found


def words_for_missing(column: TextColumn) -> list[str]:
    """Return which texts are categories although they may stand for missing values."""
    counts = column.counts.tolist()
    found = [
        f"{quoted(text)} in {rows_in(count)}"
        for text, count in zip(column.texts, counts, strict=True)
        if text.casefold() in _WORDS
    ]
    if not found:
        return []
    return [f"taken for a category: {', '.join(found)}; if it stands for missing, add it to missing_values"]
