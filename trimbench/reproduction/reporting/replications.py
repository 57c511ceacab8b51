"""Seeds as replications: what an experiment finds with several seeds, as means with the noise between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from trimbench.reproduction.reporting.columns import (
    HALF,
    HALF_OF_ONE,
    free_name,
    is_numeric,
    is_spread,
    known_methods,
    measured_columns,
)
from trimbench.reproduction.reporting.comparison import is_cost
from trimbench.reproduction.reporting.figures.text import is_method
from trimbench.reproduction.reporting.tables import label_columns
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.numbers import Outcome, mean_of
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.tables import Table

# The column with the number of seeds, and the tables of differences between methods.
SEEDS, DIFFERENCES = "seeds", "differences"
_DIGITS = ".4g"


def replicated(findings: Sequence[Findings]) -> list[Findings]:
    """Return what one experiment found with several seeds as one, with means over the seeds in tables and figures.

    In a table, rows with the same labels are one row: ``seeds`` counts them, and beside the mean of each quantity that
    depends on the seed is half the width of two 95 % intervals (Student's), ``<quantity> ±`` for the mean and
    ``<quantity> ± one seed`` for one more seed. They take the place of intervals within single runs, since only whole
    computations are independent. Times have a mean alone: their noise is that of the machine. A further table for each
    has the differences between methods, seed by seed, since all methods see the same data. One seed has no interval.

    Where some seeds have a table with other columns, such as that of failed jobs, they are returned apart.
    """
    alike: dict[tuple[str, ...], list[Findings]] = {}
    for found in findings:
        alike.setdefault(tuple(map(str, found.outcome.tables[0].frame)), []).append(found)
    return [_joined(ours) for ours in alike.values()]


def _joined(findings: Sequence[Findings]) -> Findings:
    first, is_known = findings[0], known_methods(findings)
    tables: list[Table] = []
    differences: list[Table] = []
    for one in first.outcome.tables:
        same = [table for found in findings for table in found.outcome.tables if table.name == one.name]
        mean, pairs = _mean_table(same, is_known)
        tables.append(mean)
        differences += [pairs] if len(pairs.frame) else []
    figures = [
        _mean_figure([one for found in findings for one in found.outcome.figures if _is_curve(one, figure.name)])
        for figure in first.outcome.figures
        if isinstance(figure, LineFigure) and _is_curve(figure, figure.name)
    ]
    outcome = Outcome((*tables, *differences), figures, (), first.outcome.notes)
    return replace(first, outcome=outcome, rows=pd.concat([found.rows for found in findings], ignore_index=True))


def _mean_table(tables: Sequence[Table], is_known: Callable[[str], bool]) -> tuple[Table, Table]:
    """Return the means of tables with the same columns, and the differences between the methods in them."""
    first = tables[0]
    # A column that the tables of some seeds lack tells nothing of the others.
    shared = [name for name in first.frame if all(name in table.frame for table in tables)]
    frames = [table.frame[shared].rename(columns=str) for table in tables]
    columns, labels = [*map(str, shared)], label_columns(frames)
    groups = _by_labels(frames, labels)
    numbers = [name for name in columns if name not in labels and _are_numbers([frame[name] for frame in frames])]
    varying = {name for name in numbers if any(len({*ours[name].dropna()}) > 1 for ours in groups)}
    noisy = [name for name in numbers if name in varying and not is_spread(name, numbers)]
    replaced = {name for name in numbers if is_spread(name, [name, *noisy])}
    count = free_name(SEEDS, columns)
    lines: list[dict[str, object]] = []
    for ours in groups:
        line: dict[str, object] = {name: ours[name].iloc[0] for name in labels} | {count: len(ours)}
        for name in columns:
            known = ours[name].dropna().tolist()
            if name in noisy:
                line |= noise_of(name, [*map(float, known)], is_time=is_cost(name))
            elif name in numbers and name not in replaced:
                line[name] = known[0] if known else None
            elif name not in (*labels, *replaced):
                found = {str(value): value for value in ours[name].tolist()}
                line[name] = next(iter(found.values())) if len(found) == 1 else f"{len(found)} different"
        lines.append(line)
    mean = pd.DataFrame(lines)
    formats = {str(name): spec for name, spec in first.formats.items()}
    for name in noisy:
        spec = formats.get(name) or _DIGITS
        formats |= dict.fromkeys((name, name + HALF, name + HALF_OF_ONE), _DIGITS if spec[-1] == "d" else spec)
    formats = {name: spec for name, spec in formats.items() if name in mean}
    pairs = _pairs(groups, labels, [name for name in noisy if not is_cost(name)], first, is_known)
    name = "_".join(filter(None, (DIFFERENCES, first.name)))
    title = f"{first.title}: differences between methods, seed by seed"
    between = Table(title, pd.DataFrame(pairs), dict.fromkeys(noise_of("difference", ()), _DIGITS), name, listed=False)
    return replace(first, frame=mean, formats=formats), between


def noise_of(name: str, values: Sequence[float], *, is_time: bool = False) -> dict[str, float]:
    """Return the mean of replications in a column `name`, and half the widths of its two intervals beside it."""
    mean = mean_of(values)
    if is_time:
        return {name: mean.value}
    halves = [(one.ends[1] - one.ends[0]) / 2 for one in (mean, mean_of(values, "prediction"))]
    return {name: mean.value, name + HALF: halves[0], name + HALF_OF_ONE: halves[1]}


def _by_labels(frames: Sequence[pd.DataFrame], labels: Sequence[str]) -> list[pd.DataFrame]:
    """Return the rows with the same labels, by seed; of several such rows of one seed, the first with the first."""
    # As objects, whole numbers stay whole beside those of other seeds.
    rows = pd.concat([frame.astype(object) for frame in frames], keys=range(len(frames))).droplevel(1)
    texts = [rows[name].map(str).to_numpy() for name in labels]
    again = rows.groupby([rows.index, *texts], sort=False).cumcount().to_numpy()
    return [ours for _, ours in rows.groupby([*texts, again], sort=False)]


def _are_numbers(columns: Sequence[pd.Series[Any]]) -> bool:
    known = [column for column in columns if column.notna().any()]
    return bool(known) and all(map(is_numeric, known))


# Differences between methods: the noise that they share, such as that of the split, cancels out.


def _pairs(
    groups: Sequence[pd.DataFrame],
    labels: Sequence[str],
    noisy: Sequence[str],
    table: Table,
    is_known: Callable[[str], bool],
) -> list[dict[str, object]]:
    """Return a line for each pair of methods that are told apart by a label, or by the names of columns."""
    values: dict[tuple[object, ...], dict[str, pd.Series[Any]]] = {}
    names_of: dict[tuple[object, ...], Mapping[str, object]] = {}
    by = _label_of_methods(groups, labels)
    others = [name for name in labels if name != by]
    columns = [(name, name, "") for name in noisy] if by else [*_columns_of_methods(labels, noisy, table, is_known)]
    for ours in groups:
        first = ours.iloc[0]
        for column, quantity, method in columns:
            key: tuple[object, ...] = (*(str(first[name]) for name in others), quantity)
            names_of[key] = {name: first[name] for name in others}
            values.setdefault(key, {}).setdefault(method or str(first[by]), ours[column].dropna().astype(float))
    found: list[dict[str, object]] = []
    for key, of_method in values.items():
        for (one, mine), (other, theirs) in combinations(of_method.items(), 2):
            if both := (mine - theirs).dropna().tolist():
                about = {"difference in": key[-1], "method": one, "minus": other, SEEDS: len(both)}
                found.append({**names_of[key], **about, **noise_of("difference", both)})
    return found


def _label_of_methods(groups: Sequence[pd.DataFrame], labels: Sequence[str]) -> str:
    """Return the first label whose values are several methods; empty if there is none."""
    for label in labels:
        values = {str(ours[label].iloc[0]) for ours in groups}
        if len(values) > 1 and (label == "method" or all(map(is_method, values))):
            return label
    return ""


def _columns_of_methods(
    labels: Sequence[str], noisy: Sequence[str], table: Table, is_known: Callable[[str], bool]
) -> Iterator[tuple[str, str, str]]:
    """Yield the columns with a method in their names: each with its quantity and its method."""
    measured = measured_columns(table.frame.rename(columns=str), labels, is_known)
    quantities = {one.quantity for one in measured if one.column in noisy}
    for one in measured:  # also a method that no seed changes
        if one.method and one.quantity in quantities:
            yield one.column, one.quantity or table.title, one.method


# Figures: of each point, the mean over the seeds and where it lies.


def _is_curve(figure: object, name: str) -> bool:
    return isinstance(figure, LineFigure) and figure.name == name and not figure.marks


def _mean_figure(figures: Sequence[Any]) -> LineFigure:
    """Return the mean of figures: points at the same x or, where x depends on the seed, at the same place of a line."""
    first: LineFigure = figures[0]
    dots = pd.concat(
        [one.points.assign(place=one.points.groupby("series").cumcount(), seed=n) for n, one in enumerate(figures)]
    )
    if not dots.groupby(["series", "place"])[["x", "y"]].nunique().gt(1).any(axis=None):
        return first  # as each seed has it, with its own intervals
    places = [sorted(zip(one.points["series"], one.points["x"], strict=True)) for one in figures]
    in_step = all(len(one) == len(places[0]) for one in places) and any(one != places[0] for one in places)
    points = []
    for (series, _), own in dots.groupby(["series", "place" if in_step else "x"], sort=False):
        mean = mean_of(own["y"].dropna())
        points.append((series, own["x"].mean(), *mean.with_ends))
    levels = {name: mean_of(one.levels.get(name, math.nan) for one in figures).value for name in first.levels}
    interval = f"95 % confidence interval of the mean over {len(figures)} seeds"
    how = {"name": first.name, "x_scale": first.x_scale, "y_scale": first.y_scale, "methods": first.methods}
    how |= {"levels": levels, "verticals": first.verticals, "interval": interval}
    return LineFigure.of(first.title, (first.x_label, first.y_label), points, **how)


# What a reader must know of the seeds.


def notes_on_seeds(seeds: Sequence[object], tables: Sequence[Table]) -> list[str]:
    """Say what the intervals are, and where the numbers of seeds differ or are too few."""
    counts = [n for table in tables if SEEDS in table.frame for n in table.frame[SEEDS].dropna()]
    least, most, single = min(counts, default=0), max(counts, default=0), counts.count(1)
    said = [f"Means over {len(seeds)} seeds ({', '.join(map(str, seeds))}), which are replications."]
    if most > 1:
        said[0] += (
            f" '{HALF.strip()}' is half the 95 % confidence interval of the mean, '{HALF_OF_ONE.strip()}' that of the "
            "prediction for one more seed; times have none."
        )
    if least != most:
        said.append(f"The numbers of seeds differ, from {least:g} to {most:g}; the column {SEEDS} has them.")
    if single:
        rows = "1 row has" if single == 1 else f"{single:,} rows have"
        said.append(f"{rows} one seed only, which tells no noise: no interval is given; add seeds.")
    return said
