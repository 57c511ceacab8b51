"""Line figures: lines, points and intervals over one axis, with a legend below."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.figures.text import (
    GREY,
    fit,
    fit_upwards,
    is_method,
    name_size,
    points_to_pixels,
    readable,
    set_scale,
    set_ticks,
    set_title,
    slots,
    thin_labels,
)
from trimbench.reproduction.vocabulary.figures import Figure, LineFigure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.legend import Legend

    # What a legend shows beside a label: an artist, or several side by side.
    Sample: TypeAlias = Artist | tuple[Artist, ...]


# The axes have at least this share of the height that was asked for; else the picture grows.
_LEAST_HEIGHT = 0.6
# Adjusting labels and the height changes the layout, which may need further adjustments.
_MOST_ROUNDS = 4


def draw_lines(canvas: Canvas, figure: LineFigure, settings: FigureSettings) -> None:
    """Draw lines and their intervals over one axis, with a legend below."""
    series = series_of(figure, settings.colours)
    axes = canvas.add_subplot()
    if series:
        draw_axes(axes, figure, series)
        set_ticks(axes.xaxis, *_places(figure.points))
        set_ticks(axes.yaxis, _whole(figure.points["y"]))
        size = name_size(settings)
        draw_legend(canvas, _samples(figure, series, size), note_on_intervals(figure, series), size)
    else:
        axes.text(0.5, 0.5, "no point is known", ha="center", transform=axes.transAxes)
        axes.set(xlabel=figure.x_label, ylabel=figure.y_label, xticks=[], yticks=[])
    if settings.title:
        set_title(canvas, figure.title, settings)
    _make_room(axes, figure, settings)


def _whole(values: pd.Series[Any]) -> list[float]:
    """Return values of an axis that has whole numbers only; none where they are shares, which may all be 0 or 1."""
    known = [float(value) for value in values if np.isfinite(value)]
    return known if max(known, default=0) - min(known, default=0) > 1 else []


def _places(points: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Return the places of points, and those that several series share, which alone deserve ticks."""
    known = points[np.isfinite(points["x"])]
    n_series = known.groupby("x")["series"].nunique()
    shared = n_series.index[n_series >= min(2, known["series"].nunique())]
    return [float(x) for x in n_series.index], [float(x) for x in shared]


def _make_room(axes: Axes, figure: LineFigure, settings: FigureSettings) -> None:
    """Wrap the labels of the axes, and make the picture high enough for the axes between title and legend."""
    canvas: Any = axes.figure
    least = _LEAST_HEIGHT * settings.height
    now: tuple[str, str, float] | None = None
    for _ in range(_MOST_ROUNDS):
        box = axes.get_window_extent()
        fit(axes.xaxis.label, figure.x_label, box.width)
        fit_upwards(axes.yaxis.label, figure.y_label, max(box.height, least * canvas.dpi))
        around = [*canvas.texts, *canvas.legends, axes.xaxis.label]
        taken = sum(artist.get_window_extent().height for artist in around) / canvas.dpi
        canvas.set_figheight(max(canvas.get_figheight(), taken + least))
        before, now = now, (axes.get_xlabel(), axes.get_ylabel(), canvas.get_figheight())
        if now == before:
            break
        canvas.get_layout_engine().execute(canvas)
        lack = least - axes.get_window_extent().height / canvas.dpi
        canvas.set_figheight(canvas.get_figheight() + max(lack, 0))
    if thin_labels(axes):
        canvas.get_layout_engine().execute(canvas)
    canvas.set_layout_engine("none")


# Lines, points and intervals in their axes.

# With more points than this, intervals are bands instead of bars.
MOST_BARS = 40
# With more lines, intervals wider than this share of the span of all lines stand side by side, so many points apart.
_MOST_BANDS, _WIDE, _APART = 2, 0.05, 2.2
# Points nearer than this share of the axis coincide; differences below that share of the values are rounding.
_HARDLY, _ROUNDING = 0.002, 1e-9
# A marker behind another one is so many times as large, so that it is visible.
_BEHIND = 1.5


def draw_axes(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> None:
    """Draw everything that lies inside the axes, and their labels and ticks."""
    beside = _places_beside(series)
    axes.margins(x=0.08 if beside else None)
    for place, one in enumerate(series):
        _draw_series(axes, one, 3 - place / (1 + len(series)), beside.get(one.name))
    for level in levels_of(figure):
        axes.axhline(level.at, linestyle=level.dashes, color=level.colour, linewidth=1, zorder=1)
    for vertical in verticals_of(figure):
        axes.axvline(vertical.at, linestyle=vertical.dashes, color=vertical.colour, linewidth=1, zorder=1)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set_parse_math(False)
    places = np.unique(np.concatenate([one.points["x"].to_numpy(dtype=float) for one in series]))
    set_scale(axes, "x", figure.x_scale, [*places, *(vertical.at for vertical in verticals_of(figure))])
    set_scale(axes, "y", figure.y_scale, _heights(figure, series))
    _set_limits(axes, figure, series)


def _places_beside(series: Sequence[Series]) -> dict[str, float]:
    """Return by how many points lines are moved to the right, so that many wide intervals stand side by side."""
    lines = [one for one in series if one.mark == "line" and len(intervals(one.points))]
    if len(lines) <= _MOST_BANDS:
        return {}
    y, low, high = np.concatenate([intervals(one.points)[["y", "low", "high"]].to_numpy(float) for one in lines]).T
    if (high - low).mean() < _WIDE * np.ptp(y):
        return {}
    return {one.name: _APART * (place - (len(lines) - 1) / 2) for place, one in enumerate(lines)}


def _draw_series(axes: Axes, one: Series, order: float, moved: float | None) -> None:
    from matplotlib.transforms import ScaledTranslation

    known = intervals(one.points)
    style = line_style(one)
    style["zorder"] = {"cloud": 1, "guide": 1, "reference": 4, "points": 4, "highlight": 4}.get(one.mark, order)
    drawn: list[Artist] = _draw_line(axes, one, style)
    if known.empty:
        return
    x, low, high = (known[column].to_numpy(dtype=float) for column in ("x", "low", "high"))
    if one.mark not in ("highlight", "points") and moved is None:  # nothing lies between points
        axes.fill_between(x, low, high, color=one.colour, alpha=0.12, linewidth=0, zorder=0.5)
    # Darker and in front of the line, so that even an interval narrower than it is visible, but behind the markers.
    bars: dict[str, Any] = {"color": readable(one.colour), "zorder": order + 1}
    if not one.shared:
        above = style | {"linestyle": "", "zorder": order + 2}
        drawn += axes.plot(one.points["x"], one.points["y"], clip_on=False, **above)
    if len(known) <= MOST_BARS:
        drawn.append(axes.vlines(x, low, high, linewidth=0.9, **bars))
    for end in (low, high):
        caps = {"marker": "_", "markersize": 7 if moved is None else 4, "markeredgewidth": 0.9, "linewidth": 0}
        drawn += axes.plot(x, end, clip_on=False, **bars, **(caps if len(known) <= MOST_BARS else {"linewidth": 0.8}))
    if moved is not None:
        scale: Any = axes.figure.dpi_scale_trans
        for artist in drawn:
            artist.set_transform(axes.transData + ScaledTranslation(moved / 72, 0, scale))


def _draw_line(axes: Axes, one: Series, style: dict[str, Any]) -> list[Artist]:
    """Draw the line and the markers of a series; a line that coincides with others somewhere stretch by stretch."""
    x, y = (one.points[name].to_numpy(dtype=float) for name in ("x", "y"))
    # All points are within the limits, but a marker at the edge reaches beyond them.
    if not one.shared:
        return [*axes.plot(x, y, clip_on=False, **style)]
    drawn: list[Artist] = []
    end = 0
    for names, segments in itertools.groupby(one.shared):
        start, end = end, end + len(list(segments))
        dashes = _turn(names.index(one.name), len(names)) if len(names) > 1 else one.dashes
        stretch = style | {"linestyle": dashes, "marker": ""}
        drawn += axes.plot(x[start : end + 1], y[start : end + 1], clip_on=False, **stretch)
    if "marker" in style:
        # In front of all lines, because the dashes of others are as high as its own.
        for places, size, higher in ((one.behind, _BEHIND, 2), (one.in_front, 1.0, 3)):
            if places:  # nothing would have no place in a layout
                marks = {"linestyle": "", "markersize": size * style["markersize"], "zorder": style["zorder"] + higher}
                drawn += axes.plot(x[list(places)], y[list(places)], clip_on=False, **style | marks)
    return drawn


def _turn(place: int, count: int) -> Dashes:
    """Return dashes that, of `count` lines that coincide, fill the gaps of the others."""
    return -_DASH * place, (_DASH, _DASH * (count - 1))


def _heights(figure: LineFigure, series: Sequence[Series]) -> list[float]:
    columns = [one.points[name] for one in series for name in ("y", "low", "high") if name in one.points]
    return [*(float(value) for column in columns for value in column.dropna()), *(one.at for one in levels_of(figure))]


def _set_limits(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> None:
    low, high = axes.get_ylim()
    drawn = _heights(figure, series)
    if figure.y_scale == "linear" and min(drawn) >= 0 and max(drawn) <= 1 < high:
        # Shares and probabilities end at 1.
        high = 1 + 0.02 * (1 - min(low, 0.99))
    # Fixed, because ticks are chosen for them.
    axes.set_ylim(low, high)
    axes.set_xlim(axes.get_xlim())


# What the legend shows.


def _samples(figure: LineFigure, series: Sequence[Series], size: float) -> list[Sample]:
    from matplotlib.lines import Line2D

    own = [_sample(one, size) for one in series if one.mark != "reference"]
    lines = [
        Line2D([], [], linestyle=one.dashes, color=one.colour, linewidth=1, label=one.name)
        for one in (*levels_of(figure), *verticals_of(figure))
    ]
    return [*own, *_references(series, size), *lines]


def note_on_intervals(figure: LineFigure, series: Sequence[Series]) -> str:
    """Return what bars or bands are, and how lines that coincide are drawn; empty if there is nothing to say."""
    longest = max((len(intervals(one.points)) for one in series), default=0)
    notes = [f"{'bars' if longest <= MOST_BARS else 'bands'}: {figure.interval}"] if figure.interval and longest else []
    notes += ["lines are moved sideways to show them all"] if _places_beside(series) else []
    references = _coinciding(figure, [one for one in series if one.mark == "reference"], 2)
    are_turning = any(len(names) > 1 for names in itertools.chain(*references.values()))
    notes += ["lines that coincide take turns"] if are_turning or any(one.shared for one in series) else []
    return "; ".join(notes)


def _references(series: Sequence[Series], size: float) -> list[Sample]:
    lines = {one.colour for one in series if one.mark == "line"}
    references = [one for one in series if one.mark == "reference"]
    beside_lines = [one for one in references if one.colour in lines]
    return [
        _sample_of_kind([other for other in beside_lines if kind_of(other.name) == kind_of(one.name)], size)
        if one in beside_lines
        else _sample(one, size)
        for one in references
    ]


def _sample_of_kind(references: Sequence[Series], size: float) -> Sample:
    """Return what the legend shows of references of one kind: their dashes, once in each of their colours."""
    from matplotlib.lines import Line2D

    styles = list({one.colour: line_style(one) for one in references}.values())
    _, pattern = styles[0]["linestyle"]
    if len(styles) > 1:
        length = _LENGTHS["handlelength"] * size / len(styles)
        pattern = tuple(part * length / sum(pattern) for part in pattern)
    name = kind_of(references[0].name)
    return tuple(Line2D([], [], **style | {"linestyle": (0, pattern)}, label=name) for style in styles)


def _sample(one: Series, size: float) -> Artist:
    from matplotlib.lines import Line2D

    style = line_style(one)
    if isinstance(style.get("linestyle"), tuple):
        # The marker lies on the middle of a dash: it would hide the gap, which tells the line from others.
        pattern, middle = style["linestyle"][1], _LENGTHS["handlelength"] * size / 2 / style["linewidth"]
        style["linestyle"] = ((pattern[0] / 2 - middle) % sum(pattern), pattern)
    return Line2D([], [], **style | {"markersize": min(max(style.get("markersize", 0), 4), 6)}, label=one.name)


# A legend below the axes, in as many columns as fit.

_MOST_COLUMNS = 6
# The share of the width that its columns may take.
_MOST_WIDTH = 0.97
# In units of the size of its text.
_LENGTHS = {"handlelength": 2.6, "handletextpad": 0.6, "columnspacing": 1.4, "labelspacing": 0.4, "borderpad": 0.2}


def draw_legend(canvas: Canvas, samples: Sequence[Sample], note: str, size: float) -> Legend:
    """Draw a legend below the axes of a picture with a constrained layout: a note, and rows of similar length.

    Of samples with one label, the first is shown.
    """
    from matplotlib.font_manager import FontProperties

    first: dict[str, Sample] = {}
    for sample in samples:
        first.setdefault(_label(sample), sample)
    shown = list(first.values())
    for n_columns in range(min(len(shown), _MOST_COLUMNS), 1, -1):
        # As many rows, but no more columns than they need.
        legend = _legend(canvas, shown, math.ceil(len(shown) / math.ceil(len(shown) / n_columns)), size)
        if legend.get_window_extent().width <= _MOST_WIDTH * canvas.bbox.width:
            break
        legend.remove()
    else:
        legend = _legend(canvas, shown, 1, size)
    around = _LENGTHS["handlelength"] + _LENGTHS["handletextpad"] + 2 * _LENGTHS["borderpad"] + 1
    for text, name in zip(legend.get_texts(), first, strict=True):
        fit(text, name, canvas.bbox.width - points_to_pixels(canvas, size * around))
    if note:
        legend.set_title(" ", FontProperties(size=size))
        legend.get_title().set_parse_math(False)
        fit(legend.get_title(), note, canvas.bbox.width - points_to_pixels(canvas, size))
    return legend


def _label(sample: Sample) -> str:
    return str((sample[0] if isinstance(sample, tuple) else sample).get_label())


def _legend(canvas: Canvas, samples: Sequence[Sample], n_columns: int, size: float) -> Legend:
    from matplotlib.legend_handler import HandlerTuple

    shown: list[Any] = list(samples)
    legend: Legend = canvas.legend(
        shown,
        [_label(sample) for sample in samples],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="outside lower center",
        ncols=n_columns,
        fontsize=size,
        frameon=False,
        borderaxespad=0.2,
        **_LENGTHS,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


# How each series of a line figure looks: its colour, its marker and its dashes.

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
    coincides, one marker is enough, and its lines take turns; at all other points each line has its marker. So it has
    where lines are moved sideways, because their markers stand side by side.
    """
    are_beside = bool(_places_beside(series))
    lines = [one for one in series if one.mark == "line"]
    segments, points = (_coinciding(figure, lines, length) for length in (2, 1))
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


def _coinciding(figure: LineFigure, lines: Sequence[Series], length: int) -> dict[str, list[list[str]]]:
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
