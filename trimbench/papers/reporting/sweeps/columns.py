"""What the columns of an experiment's main table mean: labels, methods, and what was measured of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.reporting.figures.palette import is_method
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.findings import Findings

if TYPE_CHECKING:
    import pandas as pd

# What follows the name of a column in those of the ends of its interval, or of its half width.
_LOW, _HIGH, _HALF = (" low", "_low"), (" high", "_high"), (" ±",)
_ERROR = re.compile(r"(^| )se( |$)")
_SEPARATORS = (" ", "_")


@dataclass(frozen=True)
class Measured:
    """A column of numbers: what it measures, of which method, and the columns of its interval.

    The method is empty if the column is not about one. In a table with a column for each method, the quantity is empty:
    it is in the title.
    """

    column: str
    quantity: str
    method: str = ""
    low: str = ""
    high: str = ""
    half: str = ""

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The columns of the value, of both ends of its interval, and of half its width."""
        return self.column, self.low, self.high, self.half


def measured_columns(
    frames: Sequence[pd.DataFrame], labels: Sequence[str], is_known: Callable[[str], bool]
) -> list[Measured]:
    """Return the columns of numbers in all frames, after the labels; `is_known` tells whether a name is a method's.

    Columns of several methods ("fs_sdd_seconds" and "eca_trim_seconds", or "accuracy, trimming") measure one quantity.
    """
    columns = [str(column) for column in frames[0] if all(column in frame for frame in frames)]
    after = max((columns.index(label) + 1 for label in labels), default=0)
    numbers = [column for column in columns[after:] if _is_numeric([frame[column] for frame in frames])]
    plain = [column for column in numbers if not _is_spread(column, numbers)]
    split = [_split(column, is_known) for column in plain]
    quantities = [quantity for method, quantity in split if method]
    found = []
    for column, (method, quantity) in zip(plain, split, strict=True):
        if quantities.count(quantity) < 2:  # what looks like a method stands alone, as in "mean error"
            method, quantity = "", column
        ends = (next((column + end for end in ends if column + end in numbers), "") for ends in (_LOW, _HIGH, _HALF))
        found.append(Measured(column, quantity, method, *ends))
    return found


def known_methods(findings: Sequence[Findings]) -> Callable[[str], bool]:
    """Return a function that tells whether a name is that of a method: of the palette, or of a line in a figure."""
    figures = [figure for found in findings for figure in found.outcome.figures if isinstance(figure, LineFigure)]
    lines = {str(name) for figure in figures for name in figure.points["series"].unique()}
    methods = lines | {method for figure in figures for method in figure.methods.values()}
    return lambda name: name in methods or is_method(name)


def _is_numeric(columns: Sequence[pd.Series[Any]]) -> bool:
    known = [column for column in columns if column.notna().any()]
    return bool(known) and all(column.dtype.kind in "iuf" for column in known)


def _is_spread(column: str, columns: Sequence[str]) -> bool:
    endings = (*_LOW, *_HIGH, *_HALF)
    is_end = any(column.endswith(ending) and column.removesuffix(ending) in columns for ending in endings)
    return is_end or _ERROR.search(column) is not None


def _split(column: str, is_known: Callable[[str], bool]) -> tuple[str, str]:
    """Return the method that a column is about and what it says of it; no method if there is none in its name."""
    return next(((method, quantity) for method, quantity in _readings(column) if is_known(method)), ("", column))


def _readings(column: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to read a name as a method and a quantity, those with the longest method first."""
    yield column, ""
    quantity, comma, method = column.partition(", ")
    if comma:
        yield method, quantity
    for place in range(len(column) - 1, 0, -1):
        if column[place] in _SEPARATORS:
            yield column[:place], column[place + 1 :]
