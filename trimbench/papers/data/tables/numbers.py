"""Numbers as people write them: decimal points and commas, groups of three digits, "<5"."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

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
