"""Lines, points and intervals in their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.reporting.figures.series import Series, intervals, levels_of, line_style, verticals_of
from trimbench.papers.reporting.figures.text import readable
from trimbench.papers.reporting.figures.ticks import set_scale
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Intervals of more points are bands instead of bars.
MOST_BARS = 40
# Points nearer than this share of the axis coincide; differences below that share of the values are rounding.
_HARDLY, _ROUNDING = 0.005, 1e-9
# Lines coincide if this share of their points does.
_MOSTLY = 0.75


def draw_axes(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> None:
    """Draw everything that lies inside the axes, and their labels and ticks."""
    for place, one in enumerate(series):
        # Where lines coincide, the first is in front, and the others show as a wider seam around it.
        seam = 2.2 * sum(_coincide(figure, one, other) for other in series[:place] if other.mark == one.mark == "line")
        _draw_series(axes, one, 3 - place / (1 + len(series)), seam)
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


def _draw_series(axes: Axes, one: Series, order: float, seam: float) -> None:
    known = intervals(one.points)
    style = line_style(one)
    style["zorder"] = {"cloud": 1, "guide": 1, "reference": 1, "points": 4, "highlight": 4}.get(one.mark, order)
    if seam and style["linewidth"]:
        style |= {"linewidth": style["linewidth"] + seam, "markersize": style.get("markersize", 0) + seam}
    # The limits hold all points, but not all of a marker at the edge.
    axes.plot(one.points["x"], one.points["y"], clip_on=False, **style)
    if known.empty:
        return
    x, low, high = (known[column].to_numpy(dtype=float) for column in ("x", "low", "high"))
    if one.mark != "highlight":  # nothing lies between large points
        axes.fill_between(x, low, high, color=one.colour, alpha=0.12, linewidth=0, zorder=0.5)
    # Darker and in front of the line, so that even an interval narrower than the line is visible.
    bars: dict[str, Any] = {"color": readable(one.colour), "zorder": order + 1}
    if len(known) <= MOST_BARS:
        axes.vlines(x, low, high, linewidth=0.9, **bars)
    for end in (low, high):
        caps = {"marker": "_", "markersize": 7, "markeredgewidth": 0.9, "linewidth": 0}
        axes.plot(x, end, clip_on=False, **bars, **(caps if len(known) <= MOST_BARS else {"linewidth": 0.8}))


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


def _coincide(figure: LineFigure, one: Series, other: Series) -> bool:
    """Tell whether two series are hardly distinguishable."""
    scale = np.log if figure.y_scale == "log" else np.asarray
    if len(one.points) != len(other.points) or (one.points["x"].to_numpy() != other.points["x"].to_numpy()).any():
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        values = scale(figure.points["y"].to_numpy(dtype=float))
        values = values[np.isfinite(values)]
        apart = abs(scale(one.points["y"].to_numpy(dtype=float)) - scale(other.points["y"].to_numpy(dtype=float)))
    spread = max(float(np.ptp(values)), _ROUNDING * float(abs(values).max())) if len(values) else 0.0
    return bool((apart <= _HARDLY * spread).mean() >= _MOSTLY)
