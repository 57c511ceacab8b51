"""The comparison of two runs in words and tables: on the terminal, as CSV, in Markdown and as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trimbench.papers.reporting.comparisons.comparison import Comparison
from trimbench.papers.reporting.comparisons.tables import Change, Kind
from trimbench.papers.reporting.html import count, facts_of, render, table_part
from trimbench.papers.reporting.tables import markdown, markdown_text
from trimbench.papers.reporting.whole_files import write_csv, write_text
from trimbench.papers.study.tables import Table

# Longer tables are cut; the CSV files have everything.
_ON_TERMINAL, _IN_MARKDOWN, _ON_PAGE = 10, 200, 1000
_CHANGES, _DIFFERENCES = "changes.csv", "differences.csv"
_MOST_EXPERIMENTS = 3
_LONGEST_VALUE = 60
_NOTHING = "–"
# What is counted besides numbers, and what to say of it.
_OTHERS: tuple[tuple[Kind, str, str, str], ...] = (
    ("verdict", "verdict differs", "verdicts differ", ""),
    ("words", "cell of text differs", "cells of text differ", ""),
    ("time", "run time or size of memory differs", "run times and sizes of memory differ", ", as in any two runs"),
    ("rounding", "number differs by rounding only", "numbers differ by rounding only", f" (see {_CHANGES})"),
)


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the files of a comparison, and return them.

    ``changes.csv`` has one row for each number or word that differs, ``differences.csv`` one for each setting, data set
    or part of the environment, and for what only one run has. ``changes.md`` and ``index.html`` show both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = in_words(comparison)
    page = render(
        "compare.html",
        facts=facts_of(f"{count(len(comparison.experiments), 'experiment')} in common"),
        runs=comparison.runs,
        sentences=lines,
        sections=[{"name": table.title, "table": table_part(_cut(table, _ON_PAGE))} for table in tables(comparison)],
        files=(_CHANGES, _DIFFERENCES),
    )
    title = f"# {' and '.join(comparison.runs)}"
    return [
        write_csv(_all_changes(comparison).frame, folder / _CHANGES),
        write_csv(_all_differences(comparison).frame, folder / _DIFFERENCES),
        write_text("\n\n".join([title, *lines, *_sections(comparison, _IN_MARKDOWN)]) + "\n", folder / "changes.md"),
        write_text(page, folder / "index.html"),
    ]


def summarised(comparison: Comparison) -> str:
    """Return what differs as the terminal shows it: sentences, then the first rows of each table."""
    return "\n\n".join([" ".join(in_words(comparison)), *_sections(comparison, _ON_TERMINAL)])


def in_words(comparison: Comparison) -> list[str]:
    """Return sentences that say how many numbers and verdicts differ, and what else does."""
    where = f"{count(comparison.n_compared, 'number')} in {count(len(comparison.experiments), 'experiment')} compared"
    numbers = len(comparison.of_kind("number"))
    differ = "1 number differs" if numbers == 1 else f"{numbers:,} numbers differ" if numbers else "No number differs"
    lines = [f"{differ} ({where})."]
    for kind, singular, plural, remark in _OTHERS:
        found = comparison.verdicts if kind == "verdict" else comparison.of_kind(kind)
        if found:
            lines.append(f"{len(found):,} {singular if len(found) == 1 else plural}{remark}.")
    return lines


def tables(comparison: Comparison) -> list[Table]:
    """Return what differs as tables, each if it has a row; times come last."""
    found = [
        _changes("Numbers that differ", comparison.of_kind("number"), comparison),
        _verdicts(comparison),
        _changes("Text that differs", comparison.of_kind("words"), comparison),
        _differences(comparison),
        _alone(comparison),
        _changes("Run times and memory", comparison.of_kind("time"), comparison),
    ]
    return [table for table in found if len(table.frame)]


def _sections(comparison: Comparison, most: int) -> list[str]:
    """Return the tables in Markdown, with a heading and at most so many rows each."""
    parts = []
    for table in tables(comparison):
        shown = _cut(table, most)
        parts += [f"## {markdown_text(shown.title)}", markdown(shown)]
    return parts


def _cut(table: Table, most: int) -> Table:
    rows = len(table.frame)
    if rows <= most:
        return replace(table, title=f"{table.title} ({rows:,})")
    title = f"{table.title} (the first {most:,} of {rows:,}; {table.name} has all)"
    return replace(table, title=title, frame=table.frame.head(most))


def _columns(comparison: Comparison) -> tuple[str, str]:
    """Return the headings of what the runs give; a run may be compared with another of the same name."""
    first, second = (f"in {name}" for name in comparison.runs)
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _changes(title: str, changes: Sequence[Change], comparison: Comparison) -> Table:
    columns = _columns(comparison)
    lines = [
        {
            "experiment": one.experiment,
            "table": one.table,
            "place": f"{one.place} (also in {_tables_of(one.also)})" if one.also else one.place,
            **dict(zip(columns, _texts(one), strict=True)),
            "change": _percent(one.relative),
        }
        for one in changes
    ]
    return Table.of(title, lines, ["experiment", "table", "place", *columns, "change"], name=_CHANGES)


def _tables_of(places: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(place.partition(":")[0] for place in places))


def _verdicts(comparison: Comparison) -> Table:
    columns = _columns(comparison)
    lines = [
        {"experiment": one.experiment, "place": one.place, **dict(zip(columns, one.verdicts, strict=True))}
        for one in comparison.verdicts
    ]
    return Table.of("Verdicts that differ", lines, ["experiment", "place", *columns], name=_CHANGES)


def _differences(comparison: Comparison) -> Table:
    columns = _columns(comparison)
    lines = [
        {
            "kind": one.part,
            "name": one.name,
            **dict(zip(columns, (_short(one.first), _short(one.second)), strict=True)),
            "experiments": _named(one.experiments, comparison),
        }
        for one in comparison.differences
    ]
    title = "Settings, data and environment that differ"
    return Table.of(title, lines, ["kind", "name", *columns, "experiments"], name=_DIFFERENCES)


def _alone(comparison: Comparison) -> Table:
    lines = [{"run": comparison.runs[place], "only there": what} for place, what in comparison.only]
    return Table.of("Only in one run", lines, ["run", "only there"], name=_DIFFERENCES)


def _all_changes(comparison: Comparison) -> Table:
    lines = [
        {
            "kind": one.kind,
            "experiment": one.experiment,
            "table": one.table,
            "row": one.row,
            "quantity": one.quantity,
            "first": one.first,
            "second": one.second,
            "relative_change": one.relative,
            "first_verdict": one.verdicts[0],
            "second_verdict": one.verdicts[1],
            "also": "; ".join(one.also),
        }
        for one in comparison.changes
    ]
    columns = ["kind", "experiment", "table", "row", "quantity", "first", "second", "relative_change"]
    return Table.of("", lines, [*columns, "first_verdict", "second_verdict", "also"])


def _all_differences(comparison: Comparison) -> Table:
    lines = [
        {
            "kind": one.part,
            "name": one.name,
            "first": one.first,
            "second": one.second,
            "experiments": ", ".join(one.experiments),
        }
        for one in comparison.differences
    ]
    lines += [
        {"kind": "only in one run", "name": what, ("first", "second")[place]: "present"}
        for place, what in comparison.only
    ]
    return Table.of("", lines, ["kind", "name", "first", "second", "experiments"])


def _texts(change: Change) -> tuple[str, str]:
    """Return both values with as many digits as it takes to tell them apart, but at least six."""
    if isinstance(change.first, float) and isinstance(change.second, float):
        first, second = change.first, change.second
        pairs = ((f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(6, 18))
        return next((pair for pair in pairs if pair[0] != pair[1]), (str(first), str(second)))
    first_text, second_text = (
        _NOTHING if value is None else f"{value:.6g}" if isinstance(value, float) else value
        for value in (change.first, change.second)
    )
    return first_text, second_text


def _percent(relative: float | None) -> str:
    if relative is None:
        return _NOTHING
    return f"{100 * relative:+.3g} %" if math.isfinite(relative) else "from 0"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _named(stems: Sequence[str], comparison: Comparison) -> str:
    if len(stems) == len(comparison.experiments) > 1:
        return f"all {len(stems)}"
    return ", ".join(stems[:_MOST_EXPERIMENTS]) + _more(stems[_MOST_EXPERIMENTS:])


def _more(rest: Sequence[str]) -> str:
    return f" and {len(rest)} more" if rest else ""
