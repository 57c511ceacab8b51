"""What of a line figure is named, where, and how the legend shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.reporting.figures.labels import CLOSE, LOOSE, Label
from trimbench.papers.reporting.figures.legends import Entry
from trimbench.papers.reporting.figures.line_axes import MOST_BARS
from trimbench.papers.reporting.figures.series import (
    Level,
    Series,
    intervals,
    kind_of,
    levels_of,
    line_style,
    verticals_of,
)
from trimbench.papers.reporting.figures.text import GREY
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Named:
    """Something that is named: the label if it is named at its place, and the entry if it is named in the legend."""

    label: Label
    entry: Entry


def named_at_the_right(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> list[Named]:
    """Return the lines, named at their ends, and the levels."""
    named = []
    for one in series:
        if one.mark in ("line", "guide", "highlight"):
            end = one.points.iloc[-1]
            tolerance = LOOSE if one.mark == "guide" else CLOSE
            label = Label(one.name, one.colour, (float(end["x"]), float(end["y"])), tolerance=tolerance)
            named.append(Named(label, _entry(one)))
    edge = axes.get_xlim()[1]
    for level in levels_of(figure):
        label = Label(level.name, level.colour, (edge, level.at), tolerance=LOOSE)
        named.append(Named(label, _level(level)))
    return named


def named_above(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> list[Named]:
    """Return the densities, named at their peaks, and the verticals."""
    named = []
    for one in series:
        if one.mark == "density":
            peak = one.points.iloc[int(one.points["y"].argmax())]
            at = float(peak["x"]), float(peak["y"])
            named.append(Named(Label(one.name, one.colour, at, above=True, tolerance=LOOSE), _entry(one)))
    top = axes.get_ylim()[1]
    for level in verticals_of(figure):
        label = Label(level.name, level.colour, (level.at, top), above=True, tolerance=LOOSE)
        named.append(Named(label, _level(level)))
    return named


def only_in_the_legend(figure: LineFigure, series: Sequence[Series]) -> list[Entry]:
    """Return what has no place of its own: points and kinds of references."""
    points = [_entry(one) for one in series if one.mark in ("cloud", "points")]
    return [*points, *_references(series)]


def note_on_intervals(figure: LineFigure, series: Sequence[Series]) -> str:
    """Return what the bars or bands are; empty if there are none."""
    longest = max((len(intervals(one.points)) for one in series), default=0)
    if not figure.interval or not longest:
        return ""
    return f"{'bars' if longest <= MOST_BARS else 'bands'}: {figure.interval}"


def _references(series: Sequence[Series]) -> list[Entry]:
    """Return an entry for each kind of reference, and one for each reference whose own line is not drawn."""
    from matplotlib.lines import Line2D

    lines = {one.colour for one in series if one.mark == "line"}
    references = [one for one in series if one.mark == "reference"]
    entries = []
    for one in references:
        if one.colour in lines:
            style = line_style(one) | {"linestyle": (0, one.dashes[1]), "color": GREY, "alpha": 1}
            entries.append(Entry(Line2D([], [], **style), kind_of(one.name)))
        else:
            entries.append(_entry(one))
    return entries


def _entry(one: Series) -> Entry:
    from matplotlib.lines import Line2D

    style = line_style(one)
    return Entry(Line2D([], [], **style | {"markersize": min(max(style.get("markersize", 0), 4), 6)}), one.name)


def _level(one: Level) -> Entry:
    from matplotlib.lines import Line2D

    return Entry(Line2D([], [], linestyle=one.dashes, color=one.colour, linewidth=1), one.name)
