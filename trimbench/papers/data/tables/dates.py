"""Dates as people write them, as days since 1970-01-01."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

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
