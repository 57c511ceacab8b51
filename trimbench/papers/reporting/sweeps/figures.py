"""Figures over a swept setting: one for each quantity that changes with it, with a line for each method."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.comparisons.row_labels import label_columns
from trimbench.papers.reporting.figures.palette import N_SLOTS
from trimbench.papers.reporting.sweeps.columns import Measured, known_methods, measured_columns
from trimbench.papers.reporting.sweeps.points import SweepPoint, experiments_of, in_words, swept_keys
from trimbench.papers.reporting.tables import heading
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.tables import Table

# As many lines as there are colours, and as many pictures as anybody looks through.
MOST_LINES, MOST_FIGURES = N_SLOTS, 24
# An axis over more than two decades may be logarithmic.
_TWO_DECADES = 100.0
_Tables = Sequence[tuple[SweepPoint, Table]]
_Line = tuple[str, ...]


@dataclass(frozen=True)
class _Dot:
    """A measured value; its line is named by labels, of which some are empty, and the method."""

    line: _Line
    method: str
    x: float
    y: float
    low: float
    high: float


def sweep_figures(points: Sequence[SweepPoint]) -> tuple[list[LineFigure], list[str]]:
    """Return the figures of a sweep, and notes on what they do not show.

    The axis is the swept key whose values are numbers, or lists of one number; of several, the one with most values.
    """
    key = _axis(points)
    if not key:
        return [], ["No swept setting has numbers as values, so there is no figure."]
    figures: list[LineFigure] = []
    constant: list[str] = []
    for experiment in experiments_of(points):
        found = [(point, one) for point in points for one in point.findings if one.name == experiment]
        own: list[LineFigure] = []
        for name in _listed_tables([one for _, one in found]):
            drawn, rest = _figures_of(found, name, key)
            own += drawn
            constant += rest
        prefix = experiment if len(experiments_of(points)) > 1 else ""
        figures += [replace(figure, name=_joined(prefix, figure.name)) for figure in own]
    figures = list(_with_own_names(figures))
    notes = []
    if constant:
        notes.append(f"Not drawn, because it does not change with {key}: {', '.join(dict.fromkeys(constant))}.")
    if len(figures) > MOST_FIGURES:
        notes.append(f"The first {MOST_FIGURES} of {len(figures)} figures are drawn; the CSV files have all numbers.")
    return figures[:MOST_FIGURES], notes


def number_of(value: Json) -> float | None:
    """Return the number that a setting is, alone or in a list of one; None if it is none."""
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        # A list is written as text where the value comes from the command line.
        return float(value.strip("[] ")) if isinstance(value, str) else float(value)
    except ValueError:
        return None


def _axis(points: Sequence[SweepPoint]) -> str:
    """Return the swept key of the horizontal axis; empty if there is none."""
    best, most = "", 1
    for key in swept_keys(points):
        values = {number_of(point.swept.get(key)) for point in points}
        if None not in values and len(values) > most:
            best, most = key, len(values)
    return best


def _listed_tables(findings: Sequence[Findings]) -> list[str]:
    """Return the names of the tables that are not long, the main one first."""
    names = (table.name for found in findings for table in found.outcome.tables if table.listed)
    return list(dict.fromkeys(names))


def _figures_of(
    found: Sequence[tuple[SweepPoint, Findings]], name: str, key: str
) -> tuple[list[LineFigure], list[str]]:
    """Return the figures of one table of an experiment, and the quantities that do not change with the key."""
    every = ((point, table) for point, one in found for table in one.outcome.tables if table.name == name)
    tables = [(point, table) for point, table in every if not table.frame.empty]
    if not tables:
        return [], []
    frames = [table.frame for _, table in tables]
    shared = [column for column in frames[0] if all(column in frame for frame in frames)]
    labels = label_columns([frame[shared] for frame in frames])
    is_known = known_methods([one for _, one in found])
    measured = [one for one in measured_columns(frames, labels, is_known) if not _repeats(one.column, key, tables)]
    figures: list[LineFigure] = []
    constant: list[str] = []
    for quantity in dict.fromkeys(one.quantity for one in measured):
        dots = [dot for one in measured if one.quantity == quantity for dot in _dots(one, labels, key, tables)]
        title = heading(quantity or tables[0][1].title)
        if not _changes(dots):
            constant.append(title)
            continue
        for part, own in _parts(dots):
            figure = _figure(own, part, title, key, is_known)
            axis = title if quantity else _axis_of_methods(found, name, {dot.method for dot in own}) or title
            figures.append(replace(figure, name=_joined(name, quantity, *part), y_label=axis))
    return figures, constant


def _axis_of_methods(found: Sequence[tuple[SweepPoint, Findings]], name: str, methods: set[str]) -> str:
    """Return how the experiment itself names the axis over which it draws these methods; empty if it does not."""
    figures = (figure for _, one in found for figure in one.outcome.figures if isinstance(figure, LineFigure))
    drawn = (figure for figure in figures if figure.name == name and methods & set(figure.points["series"]))
    return next((figure.y_label for figure in drawn), "")


def _joined(*parts: str) -> str:
    text = "_".join(filter(None, parts)).replace(" = ", "=")
    return re.sub(r"[^\w.=+-]+", "_", text, flags=re.ASCII)


def _with_own_names(figures: Sequence[LineFigure]) -> Iterator[LineFigure]:
    """Yield the figures, with a number in a name that another has already."""
    taken: set[str] = set()
    for number, figure in enumerate(figures, start=1):
        name = figure.name if figure.name not in taken else f"{figure.name}_{number}"
        taken.add(name)
        yield replace(figure, name=name)


def _repeats(column: str, key: str, tables: _Tables) -> bool:
    """Tell whether a column has the values of the axis, in the same or another unit."""
    word = key.rpartition(".")[2]
    if column.partition(" (")[0] in (word, word.removesuffix("s")):
        return True
    return all((table.frame[column] == number_of(point.swept[key])).all() for point, table in tables)


def _dots(measured: Measured, labels: Sequence[str], key: str, tables: _Tables) -> Iterator[_Dot]:
    for point, table in tables:
        x = number_of(point.swept[key])
        others = {other: str(in_words(value)).strip("[]") for other, value in point.swept.items() if other != key}
        for row in table.frame.to_dict("records"):
            y, low, high, half = (_known(row.get(name)) for name in measured.columns)
            if x is None or math.isnan(y):
                continue
            if measured.half:
                low, high = y - half, y + half
            # What a column of the row says already is not said again.
            own = {str(row[name]) for name in labels}
            swept = ("" if text in own else f"{other} = {text}" for other, text in others.items())
            yield _Dot((*(_label(name, row[name]) for name in labels), *swept), measured.method, x, y, low, high)


def _known(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _label(column: str, value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{column} = {value:g}" if isinstance(value, int | float) else str(value)


def _changes(dots: Sequence[_Dot]) -> bool:
    """Tell whether a line has two values."""
    values: dict[object, set[float]] = {}
    for dot in dots:
        values.setdefault((dot.line, dot.method), set()).add(dot.y)
    return any(len(found) > 1 for found in values.values())


def _parts(dots: Sequence[_Dot]) -> Iterator[tuple[_Line, list[_Dot]]]:
    """Yield the dots of each picture, with the labels that they share: as few pictures as their lines allow."""
    n_labels = len(dots[0].line)
    varying = [place for place in range(n_labels) if len({dot.line[place] for dot in dots}) > 1]
    for n_fixed in range(len(varying) + 1):
        fixed, free = varying[:n_fixed], varying[n_fixed:]
        parts: dict[_Line, list[_Dot]] = {}
        for dot in dots:
            parts.setdefault(tuple(dot.line[place] for place in fixed), []).append(dot)
        if n_fixed == len(varying) or all(len(_lines(part, free)) <= MOST_LINES for part in parts.values()):
            yield from ((label, [_shortened(dot, free) for dot in part]) for label, part in parts.items())
            return


def _lines(dots: Sequence[_Dot], places: Sequence[int]) -> set[object]:
    return {(dot.method, *(dot.line[place] for place in places)) for dot in dots}


def _shortened(dot: _Dot, places: Sequence[int]) -> _Dot:
    return _Dot(tuple(dot.line[place] for place in places), dot.method, dot.x, dot.y, dot.low, dot.high)


def _figure(dots: Sequence[_Dot], part: _Line, title: str, key: str, is_known: Callable[[str], bool]) -> LineFigure:
    import pandas as pd

    names = [", ".join(filter(None, (dot.method, *dot.line))) or title for dot in dots]
    series = list(dict.fromkeys(names))
    remark = f" (the first {MOST_LINES} of {len(series)} lines)" if len(series) > MOST_LINES else ""
    lines = [
        {"series": name, "x": dot.x, "y": dot.y, "low": dot.low, "high": dot.high}
        for name, dot in zip(names, dots, strict=True)
        if name in series[:MOST_LINES]
    ]
    points = pd.DataFrame(lines).sort_values("x", kind="stable")
    has_interval = bool(points["low"].notna().any())
    return LineFigure(
        title=f"{', '.join((f'{title} over {key}', *part))}{remark}",
        x_label=heading(key),
        y_label=title,
        points=points if has_interval else points[["series", "x", "y"]],
        x_scale=_scale({dot.x for dot in dots}),
        y_scale=_scale({dot.y for dot in dots}),
        interval="the interval in the table" if has_interval else "",
        methods=_methods(names, dots, is_known),
    )


def _methods(names: Sequence[str], dots: Sequence[_Dot], is_known: Callable[[str], bool]) -> dict[str, str]:
    """Return the method of each line, whose colour it has."""
    found = {}
    for name, dot in zip(names, dots, strict=True):
        method = dot.method or next(filter(is_known, dot.line), "")
        if method:
            found[name] = method
    return found


def _scale(values: set[float]) -> Literal["linear", "log"]:
    """Return "log" for positive values over more than two decades if that spreads them more evenly."""
    places = sorted(values)
    if places[0] <= 0 or places[-1] <= _TWO_DECADES * places[0]:
        return "linear"
    return "log" if _unevenness([math.log(place) for place in places]) < _unevenness(places) else "linear"


def _unevenness(places: Sequence[float]) -> float:
    """Return the share of the range that the largest gap has."""
    return max(high - low for low, high in pairwise(places)) / (places[-1] - places[0])
