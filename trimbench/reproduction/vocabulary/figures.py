"""Figures: their points, and what is said of them; `trimbench.reproduction.reporting.figures` draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd


# Figures: their points, and how each is to be drawn.


@dataclass(frozen=True, eq=False)
class LineFigure:
    """Lines over one axis.

    Make one with `LineFigure.of`.

    Attributes
    ----------
    title, x_label, y_label : str
        What is drawn, and what the axes are.
    name : str
        Part of the names of its files; an experiment with one figure needs none.
    x_scale, y_scale : "linear" or "log"
    points : DataFrame with the columns series, x, y and optionally low and high (an interval around y)
    levels : mapping from label to y
        Horizontal lines for comparison.
    marks : mapping from series to "line", "density", "cloud", "points", "highlight", "guide" or "reference"
        How a series is drawn: a line (the default), a line without markers, tiny grey points, small points, large
        points, a thin grey line for comparison, or a dashed line behind the others in the colour of the series before
        it.
    verticals : mapping from label to x
        Vertical lines for comparison.
    interval : what low and high are, in a few words
    methods : mapping from series to method
        Which method a series belongs to, whose colour it has in every figure; others are methods of their own.
    """

    title: str
    x_label: str
    y_label: str
    points: pd.DataFrame
    name: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    verticals: Mapping[str, float] = field(default_factory=dict)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    interval: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, title: str, labels: tuple[str, str], points: Iterable[tuple[object, ...]], **how: Any) -> LineFigure:
        """Return the figure of points.

        Parameters
        ----------
        title : str
        labels : (str, str)
            Of the axes, x and y.
        points : iterable of tuple
            (series, x, y), or (series, x, y, low, high) with an interval around y.
        **how
            Further attributes, such as ``x_scale="log"``.

        Returns
        -------
        LineFigure
        """
        import pandas as pd

        rows = list(points)
        columns = ["series", "x", "y", "low", "high"][: max(map(len, rows), default=3)]
        table = pd.DataFrame([dict(zip(columns, row, strict=False)) for row in rows], columns=columns)
        return cls(title, *labels, table, **how)

    @classmethod
    def against_diagonal(
        cls,
        title: str,
        labels: tuple[str, str],
        points: Iterable[tuple[object, ...]],
        ends: tuple[float, float],
        *,
        mark: str = "points",
        diagonal: str = "equal",
        **how: Any,
    ) -> LineFigure:
        """Return the figure of points, with a `mark` for each series unless empty, and of x = y between its `ends`."""
        rows = list(points)
        guide = [(diagonal, end, end) for end in ends] if rows else []
        marks = dict.fromkeys((str(series) for series, *_ in rows if mark), mark) | {diagonal: "guide"}
        return cls.of(title, labels, [*rows, *guide], marks=marks, **how)


@dataclass(frozen=True, eq=False)
class ImageFigure:
    """A grid of small images.

    `points` has the columns row, column, y, x and value. Row and column of the grid are labels, in order of appearance;
    y counts pixels from the top. A value is 0 (black) to 1 (white), or missing (grey).
    """

    title: str
    points: pd.DataFrame
    name: str = ""


@dataclass(frozen=True, eq=False)
class BarFigure:
    """Horizontal bars, one below the other.

    `points` has the columns bar (its name), series (which decides its colour), y (which counts bars from the top) and x
    (its length, which may be negative). Bars of the series `highlight` are coloured, all others grey.
    """

    title: str
    x_label: str
    points: pd.DataFrame
    highlight: str
    name: str = ""


Figure = LineFigure | ImageFigure | BarFigure


"""Every kind of figure; `trimbench.reproduction.reporting.figures.drawing` draws these."""


def points_name(figure: Figure) -> str:
    """Return the name of the part that holds a figure's points."""
    return f"{figure.name}_points" if figure.name else "points"
