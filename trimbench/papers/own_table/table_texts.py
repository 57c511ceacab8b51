"""What the texts of tables mean: what is known about them, numbers, dates, marks for missing values, other formats."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from trimbench.reproduction.data.cache import Label, Text
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.messages import rows_in, rows_named

ColumnType = Literal["category", "number", "boolean", "date"]
LARGEST = 1e150  # of the numbers that are read: its square is a float
ReadAs = Literal["category", "number", "boolean", "date", "id", "target", "left out"]
# What pandas takes for missing, the question mark of many UCI files, marks of databases and errors of spreadsheets.
MISSING_VALUES = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("\\N", "(null)", "[NULL]", "<null>", "NaT", "#NV", "#N/D", "#DIV/0!", "#\u00a1DIV/0!", "#NUM!", "#REF!"),
    *("#VALUE!", "#NAME?", "#NULL!", "#WERT!", "#BEZUG!", "#ZAHL!", "#VALEUR!", "#NOMBRE!", "#VALOR!", "#VALORE!"),
    *("0000-00-00", "0000-00-00 00:00:00"),
)


def _by_column(types: object) -> object:
    """Return types by the names of columns, in which points have nested them: ``types.Sepal.Length=number``."""
    if not isinstance(types, Mapping):
        return types
    found: dict[object, object] = {}
    for name, kind in types.items():
        inner = _by_column(kind)
        found |= {f"{name}.{rest}": one for rest, one in inner.items()} if isinstance(inner, Mapping) else {name: kind}
    return found


@dataclass(frozen=True)
class Reading:
    """What is known about the columns of a table; what is not given is recognised.

    Attributes
    ----------
    separator : str, optional
        The character between two values of a text file. The default is the one of ``, ; tab |`` that the header line
        has most often.
    encoding : str, optional
        Of a text file. The default is UTF-8, or what a byte order mark says.
    decimal : {".", ","}, optional
        What stands before the decimals where the numbers of a column leave that open, as in 1,234. The default follows
        from the other columns.
    drop : tuple of str
        Columns that are not read.
    features : tuple of str, optional
        The only columns that are features; by default all that are not `drop`, `id` or the target.
    id : str or tuple of str, optional
        Columns that name a row. They are no features.
    types : mapping from column to {"category", "number", "boolean", "date"}
        How columns are read, instead of what their values look like. A column with many different texts is a feature
        only if it is a category here.
    missing_values : tuple of str
        The texts that stand for a missing value. An empty field always does.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    drop: tuple[Label, ...] = ()
    features: tuple[Label, ...] | None = None
    id: Label | tuple[Label, ...] | None = None
    types: Annotated[Mapping[Text, ColumnType], BeforeValidator(_by_column)] = field(default_factory=dict)
    missing_values: tuple[Label, ...] = MISSING_VALUES

    def __post_init__(self) -> None:
        for name in ("drop", "features", "id", "missing_values"):
            value = getattr(self, name)
            if name == "id" and isinstance(value, str):
                value = (value,)
            if isinstance(value, str):
                raise DeclarationError(f"{name} must be a list of names, got {value!r}; write {name}=[{value}]")
            if value is not None:
                object.__setattr__(self, name, tuple(map(str, value)))
        if self.separator == "\\t":  # as command lines have it
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            got = f"such as ';' or '\\t', got {self.separator!r}"
            raise DeclarationError(f"separator must be a single character, {got}; leave it out to have it recognised")
        if self.decimal not in (None, ".", ","):
            raise DeclarationError(f"decimal must be '.' or ',', got {self.decimal!r}; leave it out to be recognised")
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, ValueError) as error:
            allowed = "one that Python knows, such as 'utf-8' or 'cp1252'"
            raise DeclarationError(f"encoding must be {allowed}, got {self.encoding!r}") from error
        for column, kind in self.types.items():
            if kind not in get_args(ColumnType):
                raise DeclarationError(f"types.{column} must be one of {', '.join(get_args(ColumnType))}, got {kind!r}")

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return (self.id,) if isinstance(self.id, str) else self.id or ()

    def features_of(self, names: Iterable[str], target: str) -> list[str]:
        """Return which columns of some names are features."""
        outside = {target, *self.drop, *self.ids}
        wanted = None if self.features is None else set(self.features)
        return [name for name in names if name not in outside and (wanted is None or name in wanted)]

    def roles(self, target: str) -> dict[str, tuple[str, ...]]:
        """Return the columns that the target and each setting name."""
        named = {"drop": self.drop, "features": self.features or (), "id": self.ids, "types": tuple(self.types)}
        return {"target": (target,), **named}


@dataclass(frozen=True)
class TableSettings(Reading):
    """What is known about a table for a study: its columns, as `Reading` has them, and its classes.

    Attributes
    ----------
    positive : str, optional
        The class of interest. The default is the rarer one of two classes; several classes have none.
    """

    positive: Label | None = None


# The setting `types` on a command line.

# What Hydra's grammar lets stand in a key and, with a backslash before some signs, in a mapping.
_PLAIN_KEY = re.compile(r"(?:[A-Za-z_$][\w$-]*|0|[1-9]\d*)(?:\.(?:[A-Za-z_$][\w$-]*|0|[1-9]\d*))*", re.ASCII)
_MAPPING_KEY = re.compile(r"[\w/\-\\+.$%*@?|()\[\]{}:=, ]+", re.ASCII)
_ESCAPED = re.compile(r"[\\()\[\]{}:=,]")


def type_setting(column: str, kind: str) -> str:
    r"""Return how to write the type of a column on the command line, or in Python if a command line cannot name it.

    >>> print(type_setting("Sepal.Length", "number"), type_setting("dose (mg)", "number"))
    types.Sepal.Length=number 'types={dose \(mg\): number}'
    """
    if _PLAIN_KEY.fullmatch(column):
        return f"types.{column}={kind}"
    if _MAPPING_KEY.fullmatch(column) and "${" not in column and math.isnan(stated_number(column)):
        return f"'types={{{_ESCAPED.sub(lambda sign: chr(92) + sign[0], column)}: {kind}}}'"
    return f"types={{{column!r}: {kind!r}}} in Python"


# Numbers as people write them: decimal points and commas, groups of three digits, "<5".

_SPACES = " \u00a0\u2009\u202f'\u2019"
_PLAIN = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
# By the mark before decimals.
_GROUPED = {
    mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}([{group}{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?:\{mark}\d*)?", re.ASCII)
    for mark, group in (".,", ",.")
}
_WITHOUT_GROUPS = {mark: str.maketrans(",", ".", group + _SPACES) for mark, group in (".,", ",.")}
_WITH_UNIT = re.compile(
    r"[+-]?\(?(?P<before>[A-Z]{0,2}[$€£¥] ?|[A-Z]{3} )?[+-]?\d+(?:[.,' ]\d+)*"
    r"(?P<after> ?[%‰°$€£¥]| ?°?(?:[a-zA-Zµμ]{0,2}m[23²³]|[a-zA-Zµμ]{1,6})(?:/[a-zA-Zµμ]{1,4}[23²³]?)?)?\)?"
)
_NUMBERS_PER_UNIT = 3
# Digits behind zero, a power of ten as no program writes one, or a telephone number.
_CODE = re.compile(r"0\d+|\d{2,}[eE]\d+|\+\d{7,15}", re.ASCII)
_ACCOUNTING = re.compile(r"\( *([^()+\u2212-]*\d) *\)|([^()+\u2212-]*\d) ?[\u2212-]")
LARGEST_EXACT = 2**53  # above it, some whole numbers are no floats
# The ends of types of whole numbers: programs write them for missing values.
ENDS = frozenset({-(2**31), 2**31 - 1, 2**32 - 1, -(2**63), 2**63 - 1, 2**64 - 1})


def stated_number(text: str, decimal: str | None = None) -> float:
    """Return the number that a text states, NaN if it is not a number.

    Digits may be in groups only if `decimal`, the mark before the decimals, is given; otherwise that is either mark.

    >>> stated_number("1.5", "."), stated_number("1,5", "."), stated_number("1.234,5", ","), stated_number("-inf", ".")
    (1.5, nan, 1234.5, -inf)
    >>> stated_number("-9.99E+02"), stated_number("-999,0"), stated_number("1,234.5")
    (-999.0, -999.0, nan)
    """
    if text[:1].isalpha() and text[0] not in "iI":
        return math.nan  # like most texts of other columns
    text = text.replace("\u2212", "-")
    if (decimal is None or (",", ".")[decimal == ","] not in text) and _PLAIN.fullmatch(text):
        return float(text.replace(",", "."))
    if decimal and _GROUPED[decimal].fullmatch(text):
        return float(text.translate(_WITHOUT_GROUPS[decimal]))
    return math.nan


def signed(text: str) -> str:
    """Return a number with the minus sign before it, where accounts have it at the end, or use parentheses.

    >>> signed("(1,234.50)"), signed("516-"), signed("(a)")
    ('-1,234.50', '-516', '(a)')
    """
    match = _ACCOUNTING.fullmatch(text) if text[-1:] in (")", "-", "\u2212") else None
    return f"-{match[1] or match[2]}" if match else text


def is_code(text: str) -> bool:
    """Tell whether digits name something: as in 007, 39e1804 and +4930123456, or because a float cannot hold them."""
    return bool(_CODE.fullmatch(text)) or is_huge(text)


def is_huge(text: str) -> bool:
    """Tell whether a text is a whole number that a float may have to round.

    >>> is_huge("9007199254740993"), is_huge("-9007199254740993"), is_huge("42")
    (True, True, False)
    """
    digits = text.lstrip("+-\u2212")
    # The shortest has 16 digits, and Python takes long for many.
    if len(digits) < 16 or not digits.isdecimal() or int(digits[:40]) <= LARGEST_EXACT:
        return False
    return len(digits) > 20 or int(text.replace("\u2212", "-")) not in ENDS


def with_units(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Tell which texts are numbers with a percent or currency sign, or a unit, as in 8%, $2 and 80 kg.

    Letters that follow the number without a blank are a unit only if several numbers have them: not in 1a and 2b.

    >>> with_units(["8%", "80 kg", "1a", "2b", "7", "$2"]).tolist()
    [True, True, False, False, False, True]
    """
    sides = [match.group("before", "after") if (match := _WITH_UNIT.fullmatch(text)) else () for text in texts]
    # Before or after the number, with the blank between them.
    units = ["".join(filter(None, both)) if None in both else "" for both in sides]
    counts = Counter(units)
    return np.array([len(one) > 0 and (not one.isalpha() or counts[one] >= _NUMBERS_PER_UNIT) for one in units], bool)


# Dates as people write them, as days since 1970-01-01.

_TIME = (
    r"(?:[T :]+(?P<clock>\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?|(?<=T)\d{4}(?:\d\d)?)"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?"
)
# By whether the day comes first.
YEAR_LAST = {
    order: re.compile(rf"(?P<{one}>\d{{1,2}})([-/.])(?P<{two}>\d{{1,2}})\2(?P<year>\d{{4}}|\d\d)" + _TIME, re.ASCII)
    for order, one, two in ((True, "day", "month"), (False, "month", "day"))
}
_DATES = [
    re.compile(form + _TIME, re.ASCII)
    for form in (
        r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})[ ./-]*(?P<month>[A-Za-z]{3,9})[ .,/-]*(?P<year>\d{4}|\d\d)",
        r"(?P<month>[A-Za-z]{3,9})[ ./-]+(?P<day>\d{1,2})[ ,./-]+(?P<year>\d{4}|\d\d)",
        r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)",
        r"(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?P<day>)",
    )
]
_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY = re.compile(r"\A(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? ", re.ASCII | re.IGNORECASE)


def day_first(texts: Sequence[str]) -> bool | None:
    """Tell whether 3/4/2020 is in April, from dates that can only be read in one way; None if nothing says it.

    >>> day_first(["3/4/2020", "13/4/2020"]), day_first(["3/4/2020", "3/14/2020"]), day_first(["3/4/2020"])
    (True, False, None)
    """
    parts = [match for text in texts if (match := YEAR_LAST[True].fullmatch(text))]
    days, months = ([int(match[part]) > 12 for match in parts].count(True) for part in ("day", "month"))
    if days != months:
        return days > months
    # With points, the day comes first wherever dates are written so.
    return True if parts and all(match[2] == "." for match in parts) else None


def date_in(text: str, day_comes_first: bool = True) -> re.Match[str] | None:
    """Return the year, month, day, clock, half of the day and zone of a date, if a text looks like one."""
    text = _WEEKDAY.sub("", text)
    if not (text[:1].isdecimal() or text[:3].lower() in _MONTHS):
        return None  # like most texts of other columns
    forms = (_DATES[0], YEAR_LAST[day_comes_first], *_DATES[1:])
    return next((match for form in forms if (match := form.fullmatch(text))), None)


def is_date(text: str) -> bool:
    """Tell whether a text is a date, in either order of day and month; digits alone are a number."""
    return not (text.isdecimal() or text.isalpha()) and not all(
        math.isnan(days_of(text, order)) for order in (True, False)
    )


def days_of(text: str, day_comes_first: bool) -> float:
    """Return the days since 1970-01-01, with the time of the day as decimals, NaN if the text is no date.

    A year of two digits is taken for one after 2000.

    >>> days_of("1970-01-02 12:00", True), days_of("3/4/1970", False), days_of("5 Mar 1970", True)
    (1.5, 62.0, 63.0)
    >>> days_of("02JAN1970:12:00:00", True), days_of("1/2/1970 6:00 PM", False)
    (1.5, 1.75)
    """
    if len(text) == 10 and text[4] == text[7] == "-":  # as most dates are written
        try:
            return float(date.fromisoformat(text).toordinal() - _EPOCH)
        except ValueError:
            pass
    if (match := date_in(text, day_comes_first)) is None:
        return math.nan
    year, name, half, zone = match["year"], match["month"][:3].lower(), match["half"], match["zone"]
    month = str(1 + _MONTHS.index(name)) if name in _MONTHS else name
    hour, *rest = re.findall(r"\d\d?(?:[.,]\d+)?", match["clock"] or "00:00")
    if half:
        hour = str(int(hour) % 12 + 12 * (half.lower() == "pm"))
    day = f"{'20' * (len(year) == 2)}{year}-{month:0>2}-{match['day'] or '1':0>2}"
    try:
        moment = datetime.fromisoformat(
            f"{day}T{hour:0>2}:{':'.join(rest)}{zone if zone and not zone.isalpha() else '+00:00'}"
        )
    except ValueError:  # no such day
        return math.nan
    return moment.timestamp() / 86_400


def text_of(days: float) -> str:
    """Return the day of a date, given as days since 1970-01-01.

    >>> text_of(1.5)
    '1970-01-02'
    """
    return str(np.datetime64(math.floor(days), "D"))


@functools.lru_cache
def numbers_among(texts: tuple[str, ...], days: bool) -> list[tuple[str, float]]:
    """Return those of some texts that are numbers, or dates, each with its number."""
    numbers = [(text, days_of(text, day_comes_first=True) if days else stated_number(text)) for text in texts]
    return [(text, number) for text, number in numbers if not math.isnan(number)]


def missing_among(texts: Collection[str], missing: Collection[str]) -> set[str]:
    """Return those of some texts, without blanks around them, that are `missing`: as texts, or as the same number."""
    gone = {"", *missing}.intersection(texts)
    if numbers := {number for _, number in numbers_among(tuple(missing), days=False)}:
        gone |= {text for text in texts if stated_number(text) in numbers and not is_code(text)}
    return gone


# Values that may stand for missing ones: -999 among ages, 9999-12-31 among dates, "unknown" among categories.

# 99, 999, ..., and so with 8 and 7, of either sign; of single digits, only negative ones.
_REPEATED = [sign * float(digit * n) for digit in "987" for n in range(1, 9) for sign in (1, -1) if sign < n]
CODES = [*_REPEATED, 127, -128, 255, 32767, -32767, -32768, 65535, -99.9, -99.99, -999.9, -999.99, -888.8, -9999.9]
_ENDS_OF_TIME = "0001-01-01 1601-01-01 1753-01-01 1899-12-30 1899-12-31 1900-01-01 1970-01-01 2099-12-31 2999-12-31"
_DAYS = [days_of(day, day_comes_first=True) for day in (*_ENDS_OF_TIME.split(), "9999-01-01", "9999-12-31")]
_LARGEST_FLOAT = float(np.finfo(np.float64).max)  # SPSS's system-missing value is its negative
ENDS_AS_FLOATS = [*map(float, ENDS), 1e20, _LARGEST_FLOAT, -_LARGEST_FLOAT]
_SORTED_CODES, _SORTED_DAYS = np.sort([*CODES, *ENDS_AS_FLOATS]), np.sort(_DAYS)
_NEVER_MEASURED = {32767, -32768, 65535, _DAYS[0], *_DAYS[-2:]}  # nor met by chance, so that one row is enough
_WORDS = frozenset(
    {text.casefold() for text in MISSING_VALUES if text}
    | {"n.a.", "n.d.", "n/d", "n / a", "nil", "missing", "sysmis", "unknown", "undefined", "blank", "empty"}
    | {"not available", "not known", "not applicable", "unbekannt", "k.a.", "k. a."}
    | {f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz_"}  # of SAS and Stata
)
# Of spreadsheets, in any language, and marks without a letter; + and - are values of each other.
_ERROR = re.compile(r"#.*[!?]|#n/.*|err:\d+|[-#\u2013\u2014\u2212._*?\u2026/~]+")


def outlying_codes(values: NDArray[np.float64], *, days: bool) -> list[str]:
    """Return which numbers look as if they stood for missing ones, with their rows.

    Such a number is a typical code, in several rows unless types or calendars end with it. It is either the only
    negative one, or farther from all others than these are from each other. With `days`, the numbers are dates.
    """
    text = text_of if days else lambda value: repr(value).removesuffix(".0")
    units, known = (np.floor(values), _SORTED_DAYS) if days else (values, _SORTED_CODES)
    low, high = np.fmin.reduce(units, initial=np.inf), np.fmax.reduce(units, initial=-np.inf)
    known = known[np.searchsorted(known, low) : np.searchsorted(known, high, "right")]
    # What floats of 32 bits end with, and what is as large, is written in several ways.
    is_code = (np.abs(values) >= 1e30) & (not days)
    if len(known):  # NumPy's isin would sort them, and the values, each time
        is_code |= known[np.minimum(np.searchsorted(known, units), len(known) - 1)] == units
    others = values[~is_code & ~np.isnan(values)]
    if not is_code.any() or not len(others):
        return []
    low, high = float(others.min()), float(others.max())
    found = []
    for code in np.unique(values[is_code]).tolist():
        rows = (np.flatnonzero(values == code) + 1).tolist()
        is_far = max(low - code, code - high) > high - low or (not days and code < 0 <= low)
        if (is_far and (len(rows) > 1 or np.floor(code) in _NEVER_MEASURED)) or (code in ENDS_AS_FLOATS and not days):
            said = f"{text(code)} in {rows_in(len(rows))} ({rows_named(rows)}) is apart from the others"
            found.append(f"{said}, {text(low)} to {text(high)}; if it stands for missing, add it to missing_values")
    return found


def stands_for_missing(text: str) -> bool:
    """Tell whether a text is a word or a mark that may stand for a missing value.

    >>> [stands_for_missing(text) for text in ("(nil)", "#N/V", "\u2014", "+", "a")]
    [True, True, True, False, False]
    """
    word = text.casefold()
    return word in _WORDS or word.strip("()[]{}<>") in _WORDS or bool(_ERROR.fullmatch(word))


# What files of other formats begin with, what they are, and what to do.

SEARCHED = 1 << 16
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
# For short signatures, with which a header line may begin, too: that has no control characters.
_BINARY = rb".{,65536}[\x00-\x08\x0e-\x1f]"
_OTHER: Mapping[bytes, str] = {
    rb"PK\x03\x04.*xl/": "an Excel workbook (.xlsx); save the sheet as CSV",
    rb"PK\x03\x04.*opendocument\.spreadsheet": "an OpenDocument spreadsheet; save the sheet as CSV",
    rb"PK\x03\x04.*word/|%PDF-": "a document of Word or PDF; copy its table into a CSV file",
    rb"PK\x03\x04|.{257}ustar|7z\xbc\xaf\x27\x1c|Rar!" + _BINARY: "an archive; unpack it and name the table",
    rb"""\s*(\{\s*["']|\[\s*[{[])""": "JSON; save the table as CSV, for example with pandas.read_json",
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Excel workbook (.xls) or another Office document; save the sheet as CSV",
    rb"(\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8)" + _BINARY: "an image; name a table",
    rb"\x7fELF" + _BINARY: "a program; name a table",
    rb"SQLite format 3\x00|\x89HDF\r\n\x1a\n": "an SQLite database or HDF5 file; save the table as CSV or Parquet",
    rb"\x93NUMPY": "an array of NumPy; save it as CSV, with names of columns",
    rb"\x80[\x02-\x05]": "a pickle of Python; save the frame with to_parquet or to_csv",
    rb"<stata_dta>|(\$FL2|RDX)" + _BINARY: "a file of Stata, SPSS or R; save the table as CSV with that program",
    rb"Obj\x01|ORC" + _BINARY: "an ORC or Avro file; save the table as Parquet",
    rb"(BZh|\xfd7zXZ|\x28\xb5\x2f\xfd)" + _BINARY: "a file compressed by bzip2, xz or zstd; unpack it, or use gzip",
    rb"\s*<(!doctype html|html|table)": "a web page; download the table itself, or save it with pandas.read_html",
    rb"version https://git-lfs": "a pointer of Git LFS; git lfs pull fetches the file itself",
    rb"\s*<\?xml": "an XML file; save the table as CSV",
    rb"(?:\s|%[^\n]*\n)*@relation": "an ARFF file; save the table as CSV, whose header line has the names of columns",
}


def other_format(body: bytes) -> str | None:
    """Return which other format a file seems to have, and what to do; None if it may be a table."""
    ends = body[:SEARCHED].removeprefix(b"\xef\xbb\xbf") + body[-SEARCHED:]
    forms = (what for form, what in _OTHER.items() if re.match(form, ends, re.DOTALL | re.IGNORECASE))
    return next(forms, None)
