"""What the columns of a table mean: labels, methods, and what was measured of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.reproduction.reporting.figures.text import is_method
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.planning import Findings

if TYPE_CHECKING:
    import pandas as pd

# Endings of the columns with the ends, or half the width, of the interval of the column without them.
HALF, HALF_OF_ONE = " ±", " ± one seed"
_LOW, _HIGH, _HALF = (" low", "_low"), (" high", "_high"), (HALF,)
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


def measured_columns(frame: pd.DataFrame, labels: Sequence[str], is_known: Callable[[str], bool]) -> list[Measured]:
    """Return the columns of numbers of a frame, after the labels; `is_known` tells whether a name is a method's.

    Columns of several methods ("fs_sdd_seconds" and "eca_trim_seconds", or "accuracy, trimming") measure one quantity.
    """
    columns = [str(column) for column in frame]
    after = max((columns.index(label) + 1 for label in labels), default=0)
    numbers = [column for column in columns[after:] if is_numeric(frame[column])]
    plain = [column for column in numbers if not is_spread(column, numbers)]
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


def is_numeric(column: pd.Series[Any]) -> bool:
    """Tell whether a column has numbers, and not only missing ones."""
    return column.dtype.kind in "iuf" and bool(column.notna().any())


def is_spread(column: str, columns: Sequence[str]) -> bool:
    """Tell whether a column is an end or half the width of the interval of another, or a standard error."""
    endings = (*_LOW, *_HIGH, *_HALF, HALF_OF_ONE)
    is_end = any(column.endswith(ending) and column.removesuffix(ending) in columns for ending in endings)
    return is_end or _ERROR.search(column) is not None


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a column that is not taken: the given one, or ``swept <name>``."""
    while name in taken:
        name = f"swept {name}"
    return name


def _split(column: str, is_known: Callable[[str], bool]) -> tuple[str, str]:
    """Return the method that a column is about and what it says of it; no method if there is none in its name.

    A name is a method, a quantity and a method after a comma, or a method and a quantity; the longest method counts.
    """
    quantity, comma, method = column.partition(", ")
    readings = [(column, ""), *([(method, quantity)] if comma else [])]
    places = [place for place in range(len(column) - 1, 0, -1) if column[place] in _SEPARATORS]
    readings += [(column[:place], column[place + 1 :]) for place in places]
    return next(((method, quantity) for method, quantity in readings if is_known(method)), ("", column))
