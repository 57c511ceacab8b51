"""Figures from their points, in one style."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimbench.experiments.plan import ImageFigure, LineFigure

# Okabe and Ito's palette, which stays distinct under the common colour-vision deficiencies.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# A legend with more entries has no room among the lines.
_LEGEND_INSIDE = 5
_MARKERS = ("o", "s", "^", "D", "v", "P")
_MOST_MARKERS = 40
# A logarithmic axis of so few values has its ticks at them.
_MOST_TICKS = 8
# Lines nearer than this share of the axis lie on one another.
_HARDLY = 0.005
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "pdf.fonttype": 42,
}


def draw(figure: LineFigure | ImageFigure, paths: Sequence[Path]) -> None:
    """Draw a figure into one or several files; the ending gives the format.

    Parameters
    ----------
    figure : LineFigure or ImageFigure
    paths : sequence of Path
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        canvas = Figure(figsize=(6.4, 3.9), layout="constrained")
        FigureCanvasAgg(canvas)
        if isinstance(figure, ImageFigure):
            _draw_images(canvas, figure)
        else:
            _draw_lines(canvas.add_subplot(), figure)
        for path in paths:
            # No creation date: the same points give the same bytes.
            metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
            canvas.savefig(path, dpi=160, metadata=metadata)


def _draw_levels(axes: Any, figure: LineFigure) -> None:
    style: dict[str, Any] = {"color": "#555555", "linewidth": 1, "linestyle": "--", "zorder": 1}
    for label, level in figure.levels.items():
        if len(figure.levels) == 1:
            axes.axhline(level, label=label, **style)
            continue
        # Several lines look alike in a legend, so each is named at its end.
        axes.axhline(level, **style)
        place = {"xy": (1.01, level), "xycoords": ("axes fraction", "data"), "annotation_clip": False}
        axes.annotate(label, va="center", fontsize=8, color="#555555", **place)
    for label, x in figure.verticals.items():
        axes.axvline(x, label=label, **style | {"linestyle": ":"})


def _draw_lines(axes: Any, figure: LineFigure) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    series = list(dict.fromkeys(figure.points["series"]))
    index = -1
    for place, name in enumerate(series):
        # A reference has the colour of the series before it.
        index += figure.marks.get(name) != "reference"
        # Where lines coincide, the first is seen, and the others as a wider seam around it.
        order = 3 - place / len(series)
        width = 1.6 + 2.2 * sum(_coincide(figure, name, other) for other in series[:place])
        colour, marker = _COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)]
        _draw_line(axes, figure, name, colour, marker, order, width)
    _draw_levels(axes, figure)
    axes.set(xscale=figure.x_scale, yscale=figure.y_scale)
    if figure.x_scale == "linear" and all(float(x).is_integer() for x in figure.points["x"]):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    places = sorted({float(x) for x in figure.points["x"]})
    if figure.x_scale == "log" and 0 < len(places) <= _MOST_TICKS:
        axes.set_xticks(places, labels=[f"{x:g}" for x in places])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
    low, high = axes.get_ylim()
    if figure.y_scale == "linear" and figure.points["y"].min() >= 0 and figure.points["y"].max() <= 1 < high:
        # Shares and probabilities end at 1.
        axes.set_ylim(low, 1 + 0.02 * (1 - min(low, 0.99)))
    _draw_legend(axes, figure)


def _draw_legend(axes: Any, figure: LineFigure) -> None:
    """Draw the legend; one entry stands for all references, and a long one is outside."""
    handles, labels = axes.get_legend_handles_labels()
    references = [i for i, label in enumerate(labels) if figure.marks.get(label) == "reference"]
    if references:
        inside = labels[references[0]].rpartition("(")[2].rstrip(")")
        kept = [i for i in range(len(labels)) if i not in references[1:]]
        handles, labels = [handles[i] for i in kept], [inside if i in references else labels[i] for i in kept]
        order = sorted(range(len(labels)), key=lambda i: labels[i] == inside)
        handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    if len(labels) > _LEGEND_INSIDE:
        axes.figure.legend(handles, labels, frameon=False, loc="outside right upper")
    else:
        axes.legend(handles, labels, framealpha=0.85, edgecolor="none", loc="best")


def _draw_images(canvas: Any, figure: ImageFigure) -> None:
    rows, columns = (list(dict.fromkeys(figure.points[axis])) for axis in ("row", "column"))
    canvas.set_size_inches(1.5 * len(columns) + 0.4, 1.55 * len(rows) + 0.4)
    canvas.suptitle(figure.title, fontsize=9)
    grid = canvas.subplots(len(rows), len(columns), squeeze=False)
    palette = _grey_scale()
    for (row, column), panel in figure.points.groupby(["row", "column"], sort=False):
        axes = grid[rows.index(row), columns.index(column)]
        image = panel.pivot_table(index="y", columns="x", values="value", dropna=False)
        axes.imshow(image.to_numpy(dtype=float), cmap=palette, vmin=0, vmax=1, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        if rows.index(row) == 0:
            axes.set_title(column, fontsize=8)
        if columns.index(column) == 0:
            axes.set_ylabel(row, fontsize=8)


def _grey_scale() -> Any:
    import matplotlib as mpl

    return mpl.colormaps["gray"].with_extremes(bad="#8a8a8a")


def _coincide(figure: LineFigure, name: str, other: str) -> bool:
    """Tell whether two series can hardly be told apart."""
    one, two = (figure.points[figure.points["series"] == series].sort_values("x") for series in (name, other))
    import numpy as np

    scale = np.log if figure.y_scale == "log" else np.asarray
    spread = float(np.ptp(scale(figure.points["y"].to_numpy(dtype=float))))
    if len(one) != len(two) or (one["x"].to_numpy() != two["x"].to_numpy()).any():
        return False
    apart = abs(scale(one["y"].to_numpy(dtype=float)) - scale(two["y"].to_numpy(dtype=float)))
    return bool((apart <= _HARDLY * spread).all())


def _draw_line(axes: Any, figure: LineFigure, name: str, colour: str, marker: str, order: float, width: float) -> None:
    line = figure.points[figure.points["series"] == name].sort_values("x")
    mark = figure.marks.get(name, "line")
    if mark == "cloud":
        axes.plot(line["x"], line["y"], color="#9a9a9a", marker=".", markersize=3, linewidth=0, label=name, zorder=1)
        return
    if mark == "guide":
        axes.plot(line["x"], line["y"], color="#555555", linewidth=1, linestyle="--", label=name, zorder=1)
        return
    if mark == "reference":
        axes.plot(
            line["x"], line["y"], color=colour, linestyle=(0, (4, 2)), linewidth=1.2, alpha=0.8, label=name, zorder=1
        )
        return
    if mark in ("points", "highlight"):
        size = 9 if mark == "highlight" else 5
        axes.plot(line["x"], line["y"], color=colour, marker=marker, markersize=size, linewidth=0, label=name, zorder=4)
        return
    # Markers show where a line was computed; on a dense grid they would hide it.
    marker = marker if len(line) <= _MOST_MARKERS else ""
    axes.plot(
        line["x"],
        line["y"],
        color=colour,
        marker=marker,
        markersize=width + 2.4,
        linewidth=width,
        label=name,
        zorder=order,
    )
    if {"low", "high"} <= set(line.columns):
        axes.fill_between(line["x"], line["low"], line["high"], color=colour, alpha=0.15, linewidth=0)
