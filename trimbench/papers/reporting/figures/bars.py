"""Horizontal bars with a name each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimbench.papers.reporting.figures.legends import Entry, draw_legend
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.figures.text import fit, name_size, set_title, wrapped
from trimbench.papers.study.figures import BarFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_GREY = "#b4b4b4"
# In units of the size of names: the height of a line of a name, and what else there is from bar to bar and in all.
_LINE, _BETWEEN, _AROUND = 1.25, 0.6, 9.0
# The share of the width that names may take, and the usual width of a character in units of their size.
_NAMES, _CHARACTER = 0.4, 0.58


def draw_bars(canvas: Canvas, figure: BarFigure, settings: FigureSettings) -> None:
    """Draw bars into a picture as wide as the settings say and as high as the names need."""
    from matplotlib.patches import Patch

    size = name_size(settings)
    most = max(int(_NAMES * settings.width * 72 / (_CHARACTER * size)), 8)
    points = figure.points.sort_values("y")
    names = [wrapped(str(name), most) for name in points["bar"]]
    step = _LINE * max(name.count("\n") + 1 for name in names) + _BETWEEN
    canvas.set_size_inches(settings.width, (step * len(names) + _AROUND) * size / 72)
    colours = dict.fromkeys(points["series"], _GREY) | {figure.highlight: settings.colours[0]}
    axes = canvas.subplots()
    places = range(len(names))
    axes.barh(places, points["x"], height=0.7, color=[colours[series] for series in points["series"]])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places, names, fontsize=size, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=size)
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("", parse_math=False)
    fit(axes.xaxis.label, figure.x_label, 0.5 * canvas.bbox.width)
    entries = [Entry(Patch(color=colours[series]), series) for series in dict.fromkeys(points["series"])]
    draw_legend(canvas, entries, "", size)
    if settings.title:
        set_title(canvas, figure.title, settings)
