"""What of a line figure is named, where, and how the legend shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.reporting.labels import Label
from trimbench.papers.reporting.legends import Entry
from trimbench.papers.reporting.line_axes import MOST_BARS
from trimbench.papers.reporting.series import Level, Series, intervals, kind_of, levels_of, line_style, verticals_of
from trimbench.papers.reporting.text import GREY
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
            named.append(Named(Label(one.name, one.colour, (float(end["x"]), float(end["y"]))), _entry(one)))
    edge = axes.get_xlim()[1]
    return [*named, *(Named(Label(one.name, one.colour, (edge, one.at)), _level(one)) for one in levels_of(figure))]


def named_above(axes: Axes, figure: LineFigure, series: Sequence[Series]) -> list[Named]:
    """Return the densities, named at their peaks, and the verticals."""
    named = []
    for one in series:
        if one.mark == "density":
            peak = one.points.iloc[int(one.points["y"].argmax())]
            at = float(peak["x"]), float(peak["y"])
            named.append(Named(Label(one.name, one.colour, at, above=True), _entry(one)))
    top = axes.get_ylim()[1]
    for level in verticals_of(figure):
        named.append(Named(Label(level.name, level.colour, (level.at, top), above=True), _level(level)))
    return named


def only_in_the_legend(figure: LineFigure, series: Sequence[Series]) -> list[Entry]:
    """Return what has no place of its own: points, kinds of references, and what an interval is."""
    points = [_entry(one) for one in series if one.mark in ("cloud", "points")]
    return [*points, *_references(series), *_interval(figure, series)]


def _references(series: Sequence[Series]) -> list[Entry]:
    """Return an entry for each kind of reference, and one for each reference whose own line is not drawn."""
    from matplotlib.lines import Line2D

    lines = {one.colour for one in series if one.mark == "line"}
    references = [one for one in series if one.mark == "reference"]
    kinds = {kind_of(one.name): line_style(one) | {"color": GREY} for one in references if one.colour in lines}
    entries = [Entry(Line2D([], [], **style), kind) for kind, style in kinds.items()]
    return entries + [_entry(one) for one in references if one.colour not in lines]


def _interval(figure: LineFigure, series: Sequence[Series]) -> list[Entry]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    longest = max((len(intervals(one.points)) for one in series), default=0)
    if not figure.interval or not longest:
        return []
    if longest > MOST_BARS:
        return [Entry(Patch(facecolor=GREY, alpha=0.3), figure.interval)]
    return [Entry(Line2D([], [], color=GREY, linewidth=0, marker="|", markersize=8), figure.interval)]


def _entry(one: Series) -> Entry:
    from matplotlib.lines import Line2D

    style = line_style(one)
    return Entry(Line2D([], [], **style | {"markersize": max(style.get("markersize", 0), 4)}), one.name)


def _level(one: Level) -> Entry:
    from matplotlib.lines import Line2D

    return Entry(Line2D([], [], linestyle=one.dashes, color=one.colour, linewidth=1), one.name)
