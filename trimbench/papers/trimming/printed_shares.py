"""Of how many test rows printed shares can be shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trimbench.papers.study.reported import Reported

# A split is called 80/20 if that is right to the whole percent.
_WHOLE_PERCENT = 0.005


def is_share(printed: Reported, n_rows: int) -> bool:
    """Tell whether some k / `n_rows` rounds to the printed digits; a half may go to either side."""
    half = 0.5 * 10.0**-printed.decimals
    return abs(nearest_share(printed, n_rows) - printed.value) <= half * (1 + 1e-9)


def nearest_share(printed: Reported, n_rows: int) -> float:
    """Return the k / `n_rows` that is nearest to a printed number."""
    return round(printed.value * n_rows) / n_rows


def possible_sizes(shares: Sequence[Reported], n_rows: int) -> list[int]:
    """Return the numbers of test rows, up to `n_rows`, of which all printed numbers are shares."""
    return [size for size in range(1, n_rows + 1) if all(is_share(one, size) for one in shares)]


def stated_sizes(n_rows: int, test_fraction: float) -> range:
    """Return the numbers of test rows that are a fraction of the rows, to the whole percent or the next row."""
    exact, margin = round(n_rows * test_fraction, 9), n_rows * _WHOLE_PERCENT
    low = min(math.floor(exact), math.ceil(exact - margin))
    return range(low, max(math.ceil(exact), math.floor(exact + margin)) + 1)


def interval_text(sizes: range) -> str:
    """Return the first and the last of consecutive numbers in words."""
    return f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])


def contradiction(printed: Reported, shares: Sequence[Reported], data: Mapping[str, int], test_fraction: float) -> str:
    """Return the proof that a printed number is no share of the stated test rows; empty if it may be one.

    `shares` are all printed numbers on the same test rows, and `data` the rows of the data sets that may be meant.
    """
    stated = {name: stated_sizes(n_rows, test_fraction) for name, n_rows in data.items()}
    if not shares or any(is_share(printed, size) for sizes in stated.values() for size in sizes):
        return ""
    digits = printed.decimals + 2
    parts = []
    for name, sizes in stated.items():
        nearest = min(sizes, key=lambda size: abs(nearest_share(printed, size) - printed.value))
        share = nearest_share(printed, nearest)
        percent = f"{100 * test_fraction:g} % of {name}'s {data[name]} rows, to the whole percent"
        parts.append(
            f"of {interval_text(sizes)} test rows ({percent}) the nearest share is "
            f"{round(share * nearest)}/{nearest} = {share:.{digits}f}"
        )
    largest = max(data.values())
    possible = possible_sizes(shares, largest)
    ending = (
        f" All {len(shares)} printed shares together are possible with {', '.join(map(str, possible))} of up to "
        f"{largest} rows only."
    )
    beginning = f"{printed.printed} is not a share of the stated test rows, if all rows are used"
    return f"{beginning}: {'; '.join(parts)}.{ending if possible else ''}"
