"""How each series of a line figure looks: its colour, its marker and its dashes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from trimbench.papers.reporting.figures.palette import slots
from trimbench.papers.reporting.figures.text import GREY
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    import pandas as pd

# As matplotlib takes them: an offset, and the lengths of dashes and gaps.
Dashes: TypeAlias = tuple[float, tuple[float, ...]] | Literal["-"]
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
# Of lines whose colour another one has: they are of one method, or there are more lines than colours.
_LINES: Sequence[Dashes] = ("-", (0, (6, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
# Of references, by what they are, and of levels and verticals.
_REFERENCES: Sequence[tuple[float, ...]] = ((5, 4), (1.5, 1.5), (7, 1.5, 1.5, 1.5))
_LEVELS: Sequence[Dashes] = (
    (0, (5, 3)),
    (0, (1, 1.5)),
    (0, (7, 2, 1, 2)),
    (0, (12, 4)),
    (0, (4, 2, 1, 2, 1, 2)),
    (0, (1, 4)),
    (0, (12, 2, 4, 2)),
    (0, (2, 2)),
)
_LIGHT_GREY = "#9a9a9a"
# Lines with more points have no markers.
_MOST_MARKERS = 40


@dataclass(frozen=True, eq=False)
class Series:
    """A series of a figure: its points, by x, and how it is drawn."""

    name: str
    mark: str
    colour: str
    marker: str
    dashes: Dashes
    points: pd.DataFrame


def series_of(figure: LineFigure, colours: Sequence[str]) -> list[Series]:
    """Return the series of a figure that have points, in the order in which the figure names them."""
    names = list(dict.fromkeys(figure.points["series"]))
    methods = _methods(figure, names)
    places = _places(methods, len(colours))
    references = [name for name in names if figure.marks.get(name) == "reference"]
    kinds = list(dict.fromkeys(map(kind_of, references)))
    found = []
    for name in names:
        mark = figure.marks.get(name, "line")
        place = places.get(name, 0)
        before = _lines_before(figure, methods, name)
        colour = {"cloud": _LIGHT_GREY, "guide": GREY}.get(mark, colours[place % len(colours)])
        dashes = _LINES[(place // len(colours) + before) % len(_LINES)]
        if mark == "reference":
            pattern = _REFERENCES[kinds.index(kind_of(name)) % len(_REFERENCES)]
            # Shifted, so that references that coincide take turns.
            dashes = (sum(pattern) * references.index(name) / len(references), pattern)
        marker = "o" if mark == "cloud" else _MARKERS[(place + before) % len(_MARKERS)]
        points = figure.points[figure.points["series"] == name].sort_values("x")
        drawn = points[np.isfinite(points[["x", "y"]].to_numpy(dtype=float)).all(axis=1)]
        if len(drawn):
            found.append(Series(name, mark, colour, marker, dashes, drawn))
    return found


def kind_of(reference: str) -> str:
    """Return what a reference is, which is the last part of its name in parentheses: the authors' line, say."""
    return reference.rpartition("(")[2].rstrip(")")


def intervals(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points whose interval is known."""
    return points.dropna(subset=["low", "high"]) if {"low", "high"} <= set(points) else points[:0]


@dataclass(frozen=True)
class Level:
    """A horizontal or a vertical line for comparison."""

    name: str
    at: float
    dashes: Dashes
    colour: str = GREY


def levels_of(figure: LineFigure) -> list[Level]:
    """Return the horizontal lines that can be drawn, each with dashes of its own."""
    return _levels(figure.levels, 0)


def verticals_of(figure: LineFigure) -> list[Level]:
    """Return the vertical lines that can be drawn, each with dashes of its own."""
    return _levels(figure.verticals, len(levels_of(figure)))


def line_style(one: Series) -> dict[str, Any]:
    """Return how the line or the points of a series are drawn, in the axes and in the legend."""
    style: dict[str, Any] = {"color": one.colour, "linestyle": one.dashes}
    points = {"marker": one.marker, "linewidth": 0, "color": one.colour}
    match one.mark:
        case "cloud":
            return points | {"markersize": 2.2, "markeredgewidth": 0}
        case "points":
            return points | {"markersize": 5}
        case "highlight":
            # Hollow, so that several at one place are visible.
            return points | {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 2}
        case "guide":
            return style | {"linewidth": 1, "linestyle": "--"}
        case "reference":
            style |= {"linewidth": 1.2, "alpha": 0.8}
        case _:
            style |= {"linewidth": 1.6}
    # Markers show where a line was computed; on a dense grid they would hide it. A single point has nothing else.
    if len(one.points) == 1 or (one.mark == "line" and len(one.points) <= _MOST_MARKERS):
        style |= {"marker": one.marker, "markersize": 4.0 - (len(intervals(one.points)) > 0)}
    return style


def _levels(places: Mapping[str, float], n_before: int) -> list[Level]:
    # Names that differ in spaces alone are one name of several lines.
    names = list(dict.fromkeys(name.strip() for name in places))
    return [
        Level(name.strip(), float(place), _LEVELS[(n_before + names.index(name.strip())) % len(_LEVELS)])
        for name, place in places.items()
        if math.isfinite(place)
    ]


def _methods(figure: LineFigure, names: Sequence[str]) -> dict[str, str]:
    """Return the method whose colour each series has; series in grey have none.

    Where all lines are of one method, or too many to be told apart by their dashes, only the first has its colour.
    """
    found: dict[str, str] = {}
    before = ""
    for name in names:
        mark = figure.marks.get(name)
        if mark == "reference":
            found[name] = figure.methods.get(name) or before or name
        elif mark not in ("cloud", "guide"):
            found[name] = before = figure.methods.get(name, name)
    lines = [name for name in found if figure.marks.get(name) != "reference"]
    counts = Counter(found[name] for name in lines)
    if len(counts) == 1 or max(counts.values(), default=0) > len(_LINES):
        seen: set[str] = set()
        for name in lines:
            method = found[name]
            found[name] = name if method in seen else method
            seen.add(method)
    return found


def _lines_before(figure: LineFigure, methods: Mapping[str, str], name: str) -> int:
    """Return how many lines of the same method come before this one: dashes and markers tell them apart."""
    lines = [other for other in methods if figure.marks.get(other) != "reference"]
    if name not in lines:
        return 0
    return sum(methods[other] == methods[name] for other in lines[: lines.index(name)])


def _places(methods: Mapping[str, str], n_colours: int) -> dict[str, int]:
    """Return the place of each series in the palette; a place beyond it is moved to one that is free, if there is one.

    What remains beyond it has the colours again, with other dashes.
    """
    wanted = dict(zip(methods, slots(list(methods.values())), strict=True))
    free = iter(sorted(set(range(n_colours)) - set(wanted.values())))
    moved = {slot: slot if slot < n_colours else next(free, slot) for slot in sorted(set(wanted.values()))}
    return {name: moved[slot] for name, slot in wanted.items()}
