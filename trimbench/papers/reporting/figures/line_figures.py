"""Line figures: lines are named at their ends where these are apart, and in a legend where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.reporting.figures.constant import constant_text, draw_constant
from trimbench.papers.reporting.figures.labels import arrange, write
from trimbench.papers.reporting.figures.legends import Entry, draw_legend
from trimbench.papers.reporting.figures.line_axes import draw_axes
from trimbench.papers.reporting.figures.line_names import (
    Named,
    named_above,
    named_at_the_right,
    note_on_intervals,
    only_in_the_legend,
)
from trimbench.papers.reporting.figures.series import series_of
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.figures.text import fit, fit_upwards, name_size, set_title
from trimbench.papers.reporting.figures.ticks import set_ticks, thin_labels
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# The axes have at least this share of the height that was asked for; else the picture grows.
_LEAST_HEIGHT = 0.55
# What labels of ticks and the gaps between all texts take at most, in lines of text.
_LINES_OF_TICKS = 4
# Adjusting ticks and labels changes the layout, which may need further adjustments.
_MOST_ROUNDS = 8


def draw_lines(canvas: Canvas, figure: LineFigure, settings: FigureSettings) -> None:
    """Draw lines and their intervals over one axis, and name them."""
    series = series_of(figure, settings.colours)
    constant = constant_text(figure, series)
    if constant:
        draw_constant(canvas, figure, constant, series, settings)
        return
    axes = canvas.add_subplot()
    draw_axes(axes, figure, series)
    if settings.title:
        set_title(canvas, figure.title, settings)
    sides = [side for side in (named_at_the_right(axes, figure, series), named_above(axes, figure, series)) if side]
    entries, note = only_in_the_legend(figure, series), note_on_intervals(figure, series)
    _name(axes, sides, entries, note, figure, settings)


def _places(points: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Return the places of points, and those that series share: one that stands beside another has no tick there."""
    known = points[np.isfinite(points["x"])]
    n_series = known.groupby("x")["series"].nunique()
    shared = n_series.index[n_series >= min(2, known["series"].nunique())]
    return [float(x) for x in n_series.index], [float(x) for x in shared]


def _name(
    axes: Axes,
    sides: Sequence[Sequence[Named]],
    entries: Sequence[Entry],
    note: str,
    figure: LineFigure,
    settings: FigureSettings,
) -> None:
    """Name what each side names at its place; if a name of it has no room there, all of them in the legend."""
    canvas: Any = axes.figure
    set_ticks(axes, *_places(figure.points))
    labels = [[one.label for one in side] for side in sides]
    texts = [write(axes, side, name_size(settings)) for side in labels]
    legend = draw_legend(canvas, entries, note, name_size(settings)) if entries or note else None
    _make_room(axes, figure, settings)
    for _ in range(2 if texts else 1):  # names count in the layout once they have their places
        _settle(axes, figure, settings)
        fits = [arrange(axes, *side) for side in zip(labels, texts, strict=True)]
    if all(fits):
        return
    for text in [text for side in texts for text in side]:
        text.remove()
    if legend:
        legend.remove()
    moved = [one.entry for side, fitting in zip(sides, fits, strict=True) if not fitting for one in side]
    kept = [side for side, fitting in zip(sides, fits, strict=True) if fitting]
    _name(axes, kept, [*moved, *entries], note, figure, settings)


def _make_room(axes: Axes, figure: LineFigure, settings: FigureSettings) -> None:
    """Wrap the labels of the axes, and make the picture high enough for a first layout."""
    canvas: Any = axes.figure
    fit(axes.xaxis.label, figure.x_label, canvas.bbox.width / 2)
    fit_upwards(axes.yaxis.label, figure.y_label, _LEAST_HEIGHT * settings.height * canvas.dpi)
    around = [*canvas.texts, *canvas.legends, axes.xaxis.label]
    ticks_and_gaps = _LINES_OF_TICKS * settings.font_size / 72
    least = sum(artist.get_window_extent().height for artist in around) / canvas.dpi + ticks_and_gaps
    canvas.set_figheight(max(canvas.get_figheight(), least + _LEAST_HEIGHT * settings.height))


def _settle(axes: Axes, figure: LineFigure, settings: FigureSettings) -> None:
    """Adjust ticks, labels and the height of the picture to one another."""
    canvas: Any = axes.figure
    for _ in range(_MOST_ROUNDS):
        canvas.get_layout_engine().execute(canvas)
        before = (axes.get_xlabel(), axes.get_ylabel(), canvas.get_figheight())
        box = axes.get_window_extent()
        fit(axes.xaxis.label, figure.x_label, box.width)
        fit_upwards(axes.yaxis.label, figure.y_label, box.height)
        lack = _LEAST_HEIGHT * settings.height - box.height / canvas.dpi
        if lack > 0:
            canvas.set_figheight(canvas.get_figheight() + lack + 1 / canvas.dpi)
        settled = before == (axes.get_xlabel(), axes.get_ylabel(), canvas.get_figheight())
        # Last, because labels that are left out do not come back.
        if settled and not thin_labels(axes):
            return
