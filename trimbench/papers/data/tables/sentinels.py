"""Values that may stand for missing ones: -999 among ages, 9999-12-31 among dates, "unknown" among categories."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.tables.settings import MISSING_VALUES
from trimbench.papers.data.tables.texts import TextColumn
from trimbench.papers.data.tables.wording import quoted, rows_in, rows_named

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
