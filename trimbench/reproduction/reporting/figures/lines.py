"""Line figures: lines, points and intervals over one axis, with a legend below."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trimbench.reproduction.reporting.figures.looks import (
    Series,
    coinciding,
    intervals,
    kind_of,
    levels_of,
    line_style,
    places_beside,
    series_of,
    turn,
    verticals_of,
)
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.figures.text import (
    fit,
    fit_upwards,
    name_size,
    points_to_pixels,
    readable,
    set_scale,
    set_ticks,
    set_title,
    thin_labels,
)
from trimbench.reproduction.vocabulary.figures import LineFigure

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
# A marker behind another one is so many times as large, so that it is visible.
_BEHIND = 1.5


def draw_axes(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> None:
    """Draw everything that lies inside the axes, and their labels and ticks."""
    beside = places_beside(series)
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
        dashes = turn(names.index(one.name), len(names)) if len(names) > 1 else one.dashes
        stretch = style | {"linestyle": dashes, "marker": ""}
        drawn += axes.plot(x[start : end + 1], y[start : end + 1], clip_on=False, **stretch)
    if "marker" in style:
        # In front of all lines, because the dashes of others are as high as its own.
        for places, size, higher in ((one.behind, _BEHIND, 2), (one.in_front, 1.0, 3)):
            if places:  # nothing would have no place in a layout
                marks = {"linestyle": "", "markersize": size * style["markersize"], "zorder": style["zorder"] + higher}
                drawn += axes.plot(x[list(places)], y[list(places)], clip_on=False, **style | marks)
    return drawn


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
    notes += ["lines are moved sideways to show them all"] if places_beside(series) else []
    references = coinciding(figure, [one for one in series if one.mark == "reference"], 2)
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
