"""How each series of a line figure looks: its colour, its marker and its dashes, and where lines take turns."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from trimbench.reproduction.reporting.figures.text import GREY, is_method, readable, slots
from trimbench.reproduction.vocabulary.figures import Figure, LineFigure

if TYPE_CHECKING:
    import pandas as pd

# As matplotlib takes them: an offset, and the lengths of dashes and gaps.
Dashes: TypeAlias = tuple[float, tuple[float, ...]] | Literal["-"]
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
# Dashes of lines that share a colour: they are of one method, or there are more lines than colours.
_LINES: Sequence[Dashes] = ("-", (0, (6, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
# Dashes of references, by their kind, and of levels and verticals.
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
# The length of a dash of lines that coincide, in units of their width.
_DASH = 4.0
# Lines with more points have no markers.
_MOST_MARKERS = 40
# With more lines, intervals wider than this share of the span of all lines stand side by side, so many points apart.
_MOST_BANDS, _WIDE, _APART = 2, 0.05, 2.2
# Points nearer than this share of the axis coincide; differences below that share of the values are rounding.
_HARDLY, _ROUNDING = 0.002, 1e-9


@dataclass(frozen=True, eq=False)
class Series:
    """A series of a figure: its points, by x, and how it is drawn.

    A line that coincides with others somewhere has in `shared`, for each segment between two neighbouring points, the
    names of the lines that coincide there, itself included: their dashes take turns. `in_front` and `behind` are the
    places of the points at which its marker lies in front of, or behind, those of lines that coincide with it.
    """

    name: str
    mark: str
    colour: str
    marker: str
    dashes: Dashes
    points: pd.DataFrame
    shared: Sequence[Sequence[str]] = ()
    in_front: Sequence[int] = ()
    behind: Sequence[int] = ()


def series_of(figure: LineFigure, colours: Sequence[str]) -> list[Series]:
    """Return the series of a figure that have points, in the order in which the figure names them."""
    names = list(dict.fromkeys(figure.points["series"]))
    methods = _methods(figure, names)
    places = _places_series(figure, methods, len(colours))
    references = [name for name in names if figure.marks.get(name) == "reference"]
    kinds = list(dict.fromkeys(map(kind_of, references)))
    found = []
    # If colours stand for methods that are tried on several things, markers stand for the things.
    tried = Counter(methods[name] for name in names if figure.marks.get(name) == "highlight")
    for name in names:
        mark = figure.marks.get(name, "line")
        place = places.get(name, 0)
        again = _lines_before(figure, places, len(colours), name)
        colour = {"cloud": _LIGHT_GREY, "guide": GREY}.get(mark, colours[place % len(colours)])
        dashes = _LINES[again % len(_LINES)]
        if mark == "reference":
            pattern = _REFERENCES[kinds.index(kind_of(name)) % len(_REFERENCES)]
            # Shifted, so that references that coincide take turns.
            dashes = (sum(pattern) * references.index(name) / len(references), pattern)
        is_tried = mark == "highlight" and max(tried.values()) > 1
        marker = (
            "o" if mark == "cloud" else _MARKERS[(again if is_tried else place % len(colours) + again) % len(_MARKERS)]
        )
        points = figure.points[figure.points["series"] == name].sort_values("x")
        drawn = points[np.isfinite(points[["x", "y"]].to_numpy(dtype=float)).all(axis=1)]
        if len(drawn):
            found.append(Series(name, mark, colour, marker, dashes, drawn))
    return _taking_turns(figure, found)


def _taking_turns(figure: LineFigure, series: Sequence[Series]) -> list[Series]:
    """Return the series, with what each line shares with the lines that coincide with it.

    Lines are a group if they coincide on a segment, directly or through others. At a point where a whole group
    coincides, one marker is enough, and its lines take turns; at all other points each line has its marker. Lines that
    are moved sideways have all their markers, because these stand side by side.
    """
    are_beside = bool(places_beside(series))
    lines = [one for one in series if one.mark == "line"]
    segments, points = (coinciding(figure, lines, length) for length in (2, 1))
    groups = {name: {name} for name in points}
    for names in (names for names in itertools.chain(*segments.values()) if len(names) > 1):
        joint = set().union(*(groups[name] for name in names))
        groups |= dict.fromkeys(joint, joint)
    order = {x: place for place, x in enumerate(sorted({x for one in series for x in one.points["x"]}))}
    found = []
    for one in series:
        group = groups.get(one.name, {one.name})
        if len(group) > 1:
            in_front, behind = [], []
            for place, (x, names) in enumerate(zip(one.points["x"], points[one.name], strict=True)):
                here = [name for name in names if name in group]
                if are_beside or here[order[x] % len(here)] == one.name:
                    in_front.append(place)
                elif len(here) < len(group):
                    behind.append(place)
            one = replace(one, shared=segments[one.name], in_front=in_front, behind=behind)
        found.append(one)
    return found


def coinciding(figure: LineFigure, lines: Sequence[Series], length: int) -> dict[str, list[list[str]]]:
    """Return the names of the lines that coincide with each line, itself included, along `length` points from each on.

    Lines that coincide with one line coincide, so that all of them agree on who does.
    """
    scale = np.log if figure.y_scale == "log" else np.asarray
    with np.errstate(divide="ignore", invalid="ignore"):
        values = scale(figure.points["y"].to_numpy(dtype=float))
        heights = {one.name: scale(one.points["y"].to_numpy(dtype=float)).tolist() for one in lines}
    values = values[np.isfinite(values)]
    hardly = _HARDLY * max(float(np.ptp(values)), _ROUNDING * float(abs(values).max())) if len(values) else 0.0
    bundles: dict[tuple[float, ...], list[tuple[list[float], list[str]]]] = {}
    found: dict[str, list[list[str]]] = {}
    for one in lines:
        x, y = one.points["x"].tolist(), heights[one.name]
        found[one.name] = []
        for start in range(len(x) - length + 1):
            here = slice(start, start + length)
            there = bundles.setdefault(tuple(x[here]), [])
            near = (
                names
                for first, names in there
                if all(abs(a - b) <= hardly for a, b in zip(first, y[here], strict=True))
            )
            names = next(near, None)
            if names is None:
                there.append((y[here], names := []))
            names += [one.name] if one.name not in names else []
            found[one.name].append(names)
    return found


def turn(place: int, count: int) -> Dashes:
    """Return dashes that, of `count` lines that coincide, fill the gaps of the others."""
    return -_DASH * place, (_DASH, _DASH * (count - 1))


def places_beside(series: Sequence[Series]) -> dict[str, float]:
    """Return by how many points lines are moved to the right, so that many wide intervals stand side by side."""
    lines = [one for one in series if one.mark == "line" and len(intervals(one.points))]
    if len(lines) <= _MOST_BANDS:
        return {}
    y, low, high = np.concatenate([intervals(one.points)[["y", "low", "high"]].to_numpy(float) for one in lines]).T
    if (high - low).mean() < _WIDE * np.ptp(y):
        return {}
    return {one.name: _APART * (place - (len(lines) - 1) / 2) for place, one in enumerate(lines)}


def kind_of(reference: str) -> str:
    """Return the kind of a reference, the last part of its name, in parentheses: the authors' line, say."""
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
            # Hollow, and of a size that follows from the shape, so that several at one place are visible.
            size = {"o": 6, "s": 10.5}.get(one.marker, 9)
            # Smaller where they would hide their intervals.
            share = 0.5 if len(intervals(one.points)) else 1.0
            return points | {
                "markersize": share * size,
                "markerfacecolor": "none",
                "markeredgewidth": 0.9 + 0.9 * share,
            }
        case "guide":
            return style | {"linewidth": 1, "linestyle": "--"}
        case "reference":
            # Thin, dark and in front of the line that it is held against, which has the same colour.
            style |= {"linewidth": 1, "color": readable(one.colour, 9)}
        case _:
            style |= {"linewidth": 1.6}
    # Markers show where a line was computed; on a dense grid they would hide it. A single point has nothing else.
    if len(one.points) == 1 or (one.mark == "line" and len(one.points) <= _MOST_MARKERS):
        style |= {"marker": one.marker, "markersize": 4.0}
    return style


def _levels(places: Mapping[str, float], n_before: int) -> list[Level]:
    # Names that differ only in spaces stand for one name that several lines share.
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


def _lines_before(figure: LineFigure, places: Mapping[str, int], n_colours: int, name: str) -> int:
    """Return how many lines of the same colour come before this one: dashes and markers tell them apart.

    Those of the method whose colour it is come before those that reuse it.
    """
    lines = [other for other in places if figure.marks.get(other) != "reference"]
    if name not in lines:
        return 0
    alike = [other for other in lines if places[other] % n_colours == places[name] % n_colours]
    return sorted(alike, key=lambda other: places[other]).index(name)


def _places_series(figure: LineFigure, methods: Mapping[str, str], n_colours: int) -> dict[str, int]:
    """Return the place of each series in the palette; a place beyond it is moved to one that is free, if there is one.

    Series that remain beyond it reuse colours, with other dashes. What the figure names as a method of its own has its
    place before others, even if it is not drawn here.
    """
    named = [series for series, method in figure.methods.items() if series == method]
    every = [*named, *methods.values()]
    wanted = dict(zip(every, slots(every), strict=True))
    free = iter(sorted(set(range(n_colours)) - set(wanted.values())))
    moved = {slot: slot if slot < n_colours else next(free, slot) for slot in sorted(set(wanted.values()))}
    return {name: moved[wanted[method]] for name, method in methods.items()}


def with_shared_colours(figures: Sequence[Figure], n_colours: int) -> list[Figure]:
    """Return the figures of an experiment, in which a method has the same colour in every figure.

    Figures whose colours differ name the methods of the others too, because each is drawn alone.
    """
    lines = [figure for figure in figures if isinstance(figure, LineFigure)]
    found = [_methods(figure, list(dict.fromkeys(figure.points["series"]))) for figure in lines]
    every = list(dict.fromkeys(method for methods in found for method in methods.values()))
    used = Counter(method for methods in found for method in {*methods.values()})
    looks = {
        (methods[name], place)
        for figure, methods in zip(lines, found, strict=True)
        for name, place in _places_series(figure, methods, n_colours).items()
    }
    if len(looks) == len(every):
        return list(figures)
    shared = {method: method for method in every if used[method] > 1 or is_method(method)}
    changed = {
        id(figure): replace(figure, methods=shared | {**figure.methods})
        for figure, methods in zip(lines, found, strict=True)
        if not shared.keys().isdisjoint(methods.values())
    }
    return [changed.get(id(figure), figure) for figure in figures]
