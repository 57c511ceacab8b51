"""Line figures: each line is named at its end, and intervals are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.labels import Label, place, readable, set_title
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# From Okabe and Ito's palette, which stays distinct under the common colour-vision deficiencies: the colours that
# also differ as text on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000")
_GREY, _LIGHT_GREY = "#555555", "#9a9a9a"
_MARKERS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚"}
# Lines with more points have no markers, and bands instead of bars.
_MOST_MARKERS = 40
_MOST_BARS = 40
# A logarithmic axis with at most this many values has its ticks at them.
_MOST_TICKS = 8
# Lines nearer than this share of the axis coincide; differences below that share of the values are rounding.
_HARDLY, _ROUNDING = 0.005, 1e-9


def draw_lines(canvas: Canvas, figure: LineFigure, settings: FigureSettings) -> None:
    """Draw lines over one axis, name each at its end, and draw its intervals."""
    axes = canvas.add_subplot()
    _draw_axes(axes, figure)
    if settings.title:
        set_title(canvas, figure.title)
    place(axes, [*_names(figure), *_names_of_levels(axes, figure), *_notes(figure)])


def _series(figure: LineFigure) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Yield name, colour, marker and points (by x) of each series."""
    index = -1
    for name in dict.fromkeys(figure.points["series"]):
        # A reference has the colour of the series before it.
        index += figure.marks.get(name) != "reference"
        colour, marker = _COLOURS[index % len(_COLOURS)], [*_MARKERS][(index + index // len(_COLOURS)) % len(_MARKERS)]
        points = figure.points[figure.points["series"] == name].sort_values("x")
        match figure.marks.get(name):
            case "cloud":
                colour, marker = _LIGHT_GREY, "o"
            case "guide":
                colour = _GREY
        yield name, colour, marker, points.dropna(subset=["x", "y"])


def _names(figure: LineFigure) -> Iterator[Label]:
    """Yield the name of each series, at its end or its peak; a cloud of points has a key instead."""
    for name, colour, marker, points in _series(figure):
        mark = figure.marks.get(name, "line")
        if mark == "reference" or points.empty:
            continue
        if mark in ("cloud", "points"):
            yield Label(f"{_MARKERS[marker]} {name}", colour)
            continue
        named = points.iloc[int(points["y"].argmax()) if mark == "density" else -1]
        at = float(named["x"]), float(named["y"])
        yield Label(name, colour, at, float(points["y"].mean()), above=mark == "density")


def _names_of_levels(axes: Axes, figure: LineFigure) -> Iterator[Label]:
    for name, level in _finite(figure.levels):
        yield Label(name, _GREY, (axes.get_xlim()[1], level), level)
    for name, x in _finite(figure.verticals):
        yield Label(name, _GREY, (x, axes.get_ylim()[1]), above=True)


def _finite(places: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    return ((name, place) for name, place in places.items() if np.isfinite(place))


def _notes(figure: LineFigure) -> Iterator[Label]:
    """Yield a note on the dashed lines (one for all references) and one on the intervals."""
    references = [name for name in figure.points["series"].unique() if figure.marks.get(name) == "reference"]
    inside = dict.fromkeys(name.rpartition("(")[2].rstrip(")") for name in references)
    if inside:
        yield Label(f"dashed: {', '.join(inside)}", _GREY)
    known = [_intervals(points) for _, _, _, points in _series(figure)]
    if figure.interval and any(len(points) for points in known):
        kind = "bars" if max(len(points) for points in known) <= _MOST_BARS else "bands"
        yield Label(f"{kind}: {figure.interval}", _GREY)


def _intervals(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points whose interval is known."""
    return points.dropna(subset=["low", "high"]) if {"low", "high"} <= set(points) else points[:0]


def _draw_axes(axes: Axes, figure: LineFigure) -> None:
    drawn: list[str] = []
    for name, colour, marker, points in _series(figure):
        # Where lines coincide, the first is in front, and the others show as a wider seam around it.
        width = 1.6 + 2.2 * sum(_coincide(figure, name, other) for other in drawn)
        order = 3 - len(drawn) / (1 + figure.points["series"].nunique())
        _draw_series(axes, points, figure.marks.get(name, "line"), colour, marker, order, width)
        drawn.append(name)
    for _, level in _finite(figure.levels):
        axes.axhline(level, linestyle="--", color=_GREY, linewidth=1, zorder=1)
    for _, x in _finite(figure.verticals):
        axes.axvline(x, linestyle=":", color=_GREY, linewidth=1, zorder=1)
    axes.set(xscale=figure.x_scale, yscale=figure.y_scale, xlabel=figure.x_label, ylabel=figure.y_label)
    _set_ticks(axes, figure)
    _set_limits(axes, figure)


def _draw_series(
    axes: Axes, points: pd.DataFrame, mark: str, colour: str, marker: str, order: float, width: float
) -> None:
    known = _intervals(points)
    styles: dict[str, dict[str, Any]] = {
        "cloud": {"marker": ".", "markersize": 3, "linewidth": 0, "zorder": 1},
        "guide": {"linewidth": 1, "linestyle": "--", "zorder": 1},
        "reference": {"linewidth": 1.2, "linestyle": (0, (4, 2)), "alpha": 0.8, "zorder": 1},
        "points": {"marker": marker, "markersize": 5, "linewidth": 0, "zorder": 4},
        "highlight": {"marker": marker, "markersize": 9, "linewidth": 0, "zorder": 4},
        "density": {"linewidth": 1.6, "zorder": order},
        # Markers show where a line was computed; on a dense grid they would hide it.
        "line": {"linewidth": width, "zorder": order}
        | ({"marker": marker, "markersize": width + 2.4 - (len(known) > 0)} if len(points) <= _MOST_MARKERS else {}),
    }
    axes.plot(points["x"], points["y"], color=colour, **styles[mark])
    if known.empty:
        return
    x, low, high = (known[column].to_numpy(dtype=float) for column in ("x", "low", "high"))
    axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0, zorder=0.5)
    # Darker and in front of the line, so that even an interval narrower than the line is visible.
    style: dict[str, Any] = {"color": readable(colour), "zorder": order + 1}
    if len(known) <= _MOST_BARS:
        axes.vlines(x, low, high, linewidth=0.9, **style)
    for end in (low, high):
        bar = {"marker": "_", "markersize": 7, "markeredgewidth": 0.9, "linewidth": 0}
        axes.plot(x, end, **style, **(bar if len(known) <= _MOST_BARS else {"linewidth": 0.8}))


def _set_ticks(axes: Axes, figure: LineFigure) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    places = sorted({float(x) for x in figure.points["x"]})
    if figure.x_scale == "linear" and all(x.is_integer() for x in places):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if figure.x_scale == "log" and 0 < len(places) <= _MOST_TICKS:
        axes.set_xticks(places, labels=[f"{x:,g}" for x in places])
        axes.xaxis.set_minor_locator(NullLocator())


def _set_limits(axes: Axes, figure: LineFigure) -> None:
    low, high = axes.get_ylim()
    columns = [column for column in ("y", "low", "high") if column in figure.points]
    drawn = figure.points[columns].to_numpy(dtype=float)
    if figure.y_scale == "linear" and np.nanmin(drawn) >= 0 and np.nanmax(drawn) <= 1 < high:
        # Shares and probabilities end at 1.
        high = 1 + 0.02 * (1 - min(low, 0.99))
        axes.set_ylim(low, high)


def _coincide(figure: LineFigure, name: str, other: str) -> bool:
    """Tell whether two series are hardly distinguishable."""
    one, two = (figure.points[figure.points["series"] == series].sort_values("x") for series in (name, other))
    scale = np.log if figure.y_scale == "log" else np.asarray
    values = scale(figure.points["y"].to_numpy(dtype=float))
    spread = max(float(np.ptp(values)), _ROUNDING * float(abs(values).max()))
    if len(one) != len(two) or (one["x"].to_numpy() != two["x"].to_numpy()).any():
        return False
    apart = abs(scale(one["y"].to_numpy(dtype=float)) - scale(two["y"].to_numpy(dtype=float)))
    return bool((apart <= _HARDLY * spread).all())
