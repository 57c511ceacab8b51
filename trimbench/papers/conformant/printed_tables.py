"""The printed Tables 4 and 5, and what follows from them without any run."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from trimbench.papers.study.reported import printed_numbers

FILLS = {"min": "Min", "max": "Max", "mean": "Mean", "median": "Median"}
METHODS = {**FILLS, "nacl": "NaCL"}
_SAME_PERCENT = 0.01
# Columns that rise steadily, so that a cubic through four shares tells where they begin.
_STEADY = ("Min", "Mean", "Median", "NaCL")


def row_of(name: str, fraction: float) -> str:
    """Return the row of the printed table for a data set and a share."""
    return f"{name} {round(100 * fraction)} %"


@functools.cache
def printed(experiment: str) -> dict[str, dict[str, float]]:
    """Return the printed numbers of Table 4 or 5, by row and method."""
    found: dict[str, dict[str, float]] = {}
    for (row, quantity), one in printed_numbers(experiment).items():
        if quantity in METHODS.values():
            found.setdefault(row, {})[quantity] = one.value
    return found


def outperformed(values: Mapping[str, float], sign: int) -> int:
    """Return how many imputations NaCL outperforms; `sign` is 1 where low values are good, else -1."""
    return sum(sign * value > sign * values["NaCL"] for method, value in values.items() if method != "NaCL")


def contradiction(number: int, row: str, sign: int) -> str:
    """Return the proof that the printed table contradicts the text on a row; empty where it does not.

    The text says that NaCL outperforms all four imputations, except on Adult at 80 % by F1.
    """
    values = printed(f"conformant/table{number}").get(row, {})
    if not values or (number, row) == (5, "adult 80 %") or outperformed(values, sign) == len(FILLS):
        return ""
    better = [
        f"{method} {value}"
        for method, value in values.items()
        if method != "NaCL" and sign * value <= sign * values["NaCL"]
    ]
    return (
        f"The text says that NaCL outperforms all four imputations; Table {number} itself prints {values['NaCL']} for "
        f"NaCL and {', '.join(better)} ({row})."
    )


def is_same_share(one: float, other: float) -> bool:
    """Tell whether two percentages of missing features are equal, up to rounding."""
    return abs(one - other) < _SAME_PERCENT


def label_contradiction(label: float, counted: float, closest: float) -> str:
    """Return the proof that the features have no such share as a label states; empty if they have.

    All are percentages: that of the label, of the features that the authors hide, and the possible one nearest to the
    label.
    """
    if is_same_share(closest, label):
        return ""
    return (
        f"The label states {label:.0f} %, but no whole number of features is that share of them: it is {counted:.1f} % "
        f"as the authors count, and {closest:.1f} % at the nearest."
    )


def extrapolated(number: int, name: str, shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)) -> dict[str, float]:
    """Return where the printed columns of a data set begin: cubics through the four shares, at no missing feature."""
    rows = [printed(f"conformant/table{number}").get(row_of(name, share), {}) for share in shares]
    if not all(rows):
        return {}
    return {
        method: float(np.polynomial.Polynomial.fit(shares, [row[method] for row in rows], 3)(0.0)) for method in _STEADY
    }
