"""Values and rows in messages, which stay short whatever a table holds."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

_LONGEST, _COMPARED = 24, 60


def quoted(value: str) -> str:
    """Return a value in quotes, shortened if it is long."""
    return repr(shortened(value))


def shortened(value: str) -> str:
    """Return a value, shortened if it is long."""
    return value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."


def shown(values: Sequence[str], limit: int = 8) -> str:
    """Return values as a list in quotes.

    >>> shown(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    more = len(values) - limit
    return ", ".join(map(quoted, values[:limit])) + (f" and {more:,} more" if more > 0 else "")


def rows_in(count: int) -> str:
    """Return a number of rows in words."""
    return "1 row" if count == 1 else f"{count:,} rows"


def rows_named(rows: Sequence[int], limit: int = 10) -> str:
    """Return which rows are meant, by their numbers.

    >>> rows_named([7]), rows_named([1, 2, 3], 2)
    ('row 7', 'rows 1, 2 and 1 more')
    """
    more = len(rows) - limit
    listed = ", ".join(map(str, rows[:limit])) + (f" and {more:,} more" if more > 0 else "")
    return f"row {listed}" if len(rows) == 1 else f"rows {listed}"


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question about the nearest name, or nothing if none is near."""
    # The time for long names grows with their squares.
    folded = {one.casefold()[:_COMPARED]: one for one in reversed(names)}
    close = get_close_matches(name.casefold()[:_COMPARED], folded, n=1)
    return f" (did you mean {quoted(folded[close[0]])}?)" if close else ""
