"""What differs between two runs: numbers, files, settings and times."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trimbench.papers.configuration import NOT_SETTINGS
from trimbench.papers.files import write_csv, write_text
from trimbench.papers.reporting.page import count, facts_of, render, table_part
from trimbench.papers.reporting.runs import POINTS, REPORTED, StoredExperiment, StoredRun
from trimbench.papers.reporting.tables import markdown, markdown_text
from trimbench.papers.validation import some
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


# What differs between two finished runs: numbers, verdicts, settings, data and environment.

# What a command does, where it writes, and how the experiment is programmed and tested.
_NOT_SETTINGS = ("task", "results", "run", "runs", *NOT_SETTINGS)
# In the order of the report.
_KINDS: tuple[Kind, ...] = ("number", "verdict", "words", "time", "rounding")
_PARTS = ("setting", "data", "environment")


@dataclass(frozen=True)
class Difference:
    """A setting, a data set or a part of the environment that differs, with the experiments in which it does."""

    part: str
    name: str
    first: str
    second: str
    experiments: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs.

    Attributes
    ----------
    runs : (str, str)
        Their names.
    changes : tuple of Change
        By kind, numbers first; those of a kind by falling relative change.
    differences : tuple of Difference
        Settings, data and environment.
    only : tuple of (int, str)
        What only one run has, with the number of the run (0 or 1).
    experiments : tuple of str
        Those that both runs have.
    n_compared : int
        How many numbers both runs have.
    """

    runs: tuple[str, str]
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    only: tuple[tuple[int, str], ...]
    experiments: tuple[str, ...]
    n_compared: int

    def of_kind(self, kind: Kind) -> list[Change]:
        """Return the changes of this kind."""
        return [change for change in self.changes if change.kind == kind]

    @property
    def verdicts(self) -> list[Change]:
        """The reported numbers, changed or not, that the runs judge differently."""
        return [change for change in self.changes if change.verdict_changed]


def compare_runs(first: StoredRun, second: StoredRun) -> Comparison:
    """Compare the experiments that two runs have in common, and list those of one run only."""
    pairs = dict(_pairs(first, second))
    changes: list[Change] = []
    only = [(0, f"experiment {stem}") for stem in first.experiments if stem not in pairs]
    partners = {other.stem for _, other in pairs.values()}
    only += [(1, f"experiment {stem}") for stem in second.experiments if stem not in partners]
    found: dict[tuple[str, str, str, str], list[str]] = {}
    n_compared = 0
    for stem, (one, two) in pairs.items():
        own: list[Change] = []
        for place, (mine, other) in enumerate(((one, two), (two, one))):
            only += [(place, f"{stem}: {part}") for part in mine.tables if part not in other.tables]
        for part in sorted(set(one.tables) & set(two.tables), key=_rank):
            result = compare_tables(stem, part, one.tables[part], two.tables[part])
            own += result.changes
            only += [(place, f"{stem}, {part}: {what}") for place, what in result.only]
            n_compared += result.n_compared
        changes += _once(own)
        for difference in _differences(one.about, two.about):
            found.setdefault(difference, []).append(stem)
    changes.sort(key=_order)
    differences = [Difference(*difference, tuple(stems)) for difference, stems in found.items()]
    differences.sort(key=lambda one: (_PARTS.index(one.part), -len(one.experiments)))
    names = first.name, second.name
    return Comparison(names, tuple(changes), tuple(differences), tuple(only), tuple(pairs), n_compared)


def _pairs(first: StoredRun, second: StoredRun) -> Iterator[tuple[str, tuple[StoredExperiment, StoredExperiment]]]:
    """Yield the experiments of both runs; other settings have another stem, and are paired if there is no doubt."""
    for stem, one in first.experiments.items():
        if stem in second.experiments:
            yield stem, (one, second.experiments[stem])
            continue
        rest = [
            two for two in second.experiments.values() if two.name == one.name and two.stem not in first.experiments
        ]
        same = [other for other in first.experiments.values() if other.name == one.name]
        if len(rest) == len([other for other in same if other.stem not in second.experiments]) == 1:
            yield stem, (one, rest[0])


def _once(changes: Sequence[Change]) -> list[Change]:
    """Return the changes of an experiment, each number once: tables and figures may show a number again."""
    found: dict[object, Change] = {}
    for change in changes:
        values: tuple[object, ...] = (change.first, change.second)
        if not any(isinstance(value, float) and not value.is_integer() for value in values):
            # Small whole numbers and words are equal by chance; digits after the point are not.
            values = (*values, change.row, change.quantity)
        if values in found:
            earlier = found[values]
            also = f"{change.table}: {change.place}"
            found[values] = replace(earlier, also=(*earlier.also, also))
        else:
            found[values] = change
    return list(found.values())


def _rank(part: str) -> tuple[bool, bool, str]:
    """Order tables so that a number is listed where it is best known: reported, in a table, in a figure."""
    return part != REPORTED, part.endswith(POINTS), part


def _order(change: Change) -> tuple[int, bool, float]:
    relative = change.relative
    return _KINDS.index(change.kind), relative is None, -abs(relative or 0)


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield part, name and both values of whatever differs in the provenance of an experiment."""
    for part, describe in zip(_PARTS, (_settings, _data, _environment), strict=True):
        first, second = describe(one), describe(two)
        for name in [*first, *(name for name in second if name not in first)]:
            if first.get(name) != second.get(name):
                yield part, name, first.get(name, "–"), second.get(name, "–")


def _settings(about: Mapping[str, Any]) -> dict[str, str]:
    configuration = about.get("configuration", {})
    values = _flat({key: value for key, value in configuration.items() if key not in _NOT_SETTINGS})
    return {name: value for name, value in values if not name.endswith("._target_")}


def _data(about: Mapping[str, Any]) -> dict[str, str]:
    missing = dict.fromkeys(about.get("missing", {}), "not available")
    return dict(_flat(about.get("data", {}))) | missing


def _environment(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the jobs of an experiment ran with; several environments give several values."""
    values: dict[str, dict[str, None]] = {}
    described = [("computed with", entry) for entry in about.get("computed_with", ())]
    described.append(("written with", about.get("written_with", {})))
    for prefix, entry in described:
        for name, value in _flat({key: value for key, value in entry.items() if key != "time"}):
            values.setdefault(f"{prefix} {name.removeprefix('packages.')}", {})[value] = None
    return {name: ", ".join(sorted(found)) for name, found in values.items()}


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of nested mappings, joined by points, with their values as text."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{above}{key}", text


# What differs between the cells of two versions of a table.

Kind = Literal["number", "verdict", "words", "time", "rounding"]
# Numbers this close are the same up to rounding: relative to them, or absolutely where they are nearly zero.
_ROUNDING, _NEARLY_ZERO = 1e-9, 1e-12
# Words for run time or memory in a column, a quantity or the name of an experiment; no two runs have the same.
_COST = re.compile(r"(?:^|[\W_])(?:seconds?|minutes?|runtime|times?|ms|\(s\)|MB)(?:$|[\W_])")
# Rows and columns of one run alone are counted, and so many named.
_MOST_NAMED = 5
_Label = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A cell of a table, or a reported number, that two runs give differently.

    Attributes
    ----------
    table : str
        The part of the experiment: "reported numbers", or the name of a table.
    first, second : float, str or None
        What the runs give; None if a run has no value.
    kind : Kind
        "number", "words", "time" (or memory), "rounding" (a number, up to rounding), or "verdict" if only that differs.
    verdicts : (str, str)
        Of a reported number, in both runs; empty otherwise.
    also : tuple of str
        Other places in the same experiment that show the same number.
    """

    experiment: str
    table: str
    row: str
    quantity: str
    first: float | str | None
    second: float | str | None
    kind: Kind
    verdicts: tuple[str, str] = ("", "")
    also: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the number stands, apart from the experiment."""
        return ", ".join(filter(None, (self.row, self.quantity)))

    @property
    def relative(self) -> float | None:
        """Change relative to the first value, infinite from zero; None if one of the values is no finite number."""
        if not isinstance(self.first, float) or not isinstance(self.second, float):
            return None
        if not math.isfinite(self.first) or not math.isfinite(self.second):
            return None
        change = self.second - self.first
        return change / abs(self.first) if self.first else math.copysign(math.inf, change)

    @property
    def verdict_changed(self) -> bool:
        """Whether the runs judge the number differently."""
        return self.verdicts[0] != self.verdicts[1]


@dataclass(frozen=True)
class TableChanges:
    """What differs between two versions of a table.

    `only` says which columns and rows one version has alone, with its number (0 or 1); `n_compared` counts the numbers
    that both have.
    """

    changes: tuple[Change, ...]
    only: tuple[tuple[int, str], ...]
    n_compared: int


def compare_tables(experiment: str, table: str, first: pd.DataFrame, second: pd.DataFrame) -> TableChanges:
    """Compare two versions of a table whose cells are text, row by row; labels identify a row, wherever it stands."""
    columns = [column for column in first.columns if column in second.columns]
    labels = ["cell"] if table == REPORTED else label_columns([_typed(frame[columns]) for frame in (first, second)])
    rows = [_rows(frame[columns], labels) for frame in (first, second)]
    only = _alone("column", [first.columns, second.columns])
    only += _alone("row", [[", ".join(label) for label in found] for found in rows])
    both = [(label, row, rows[1][label]) for label, row in rows[0].items() if label in rows[1]]
    if table == REPORTED:
        found = [_number(experiment, one, two) for _, one, two in both]
    else:
        found = [
            _cell(experiment, table, (", ".join(label), column), (one[column], two[column]))
            for label, one, two in both
            for column in columns
            if column not in labels
        ]
    changes = tuple(one for one in found if one.first != one.second or one.verdict_changed)
    n_compared = sum(isinstance(one.first, float) and isinstance(one.second, float) for one in found)
    return TableChanges(changes, tuple(only), n_compared)


def _alone(noun: str, names: Sequence[Iterable[str]]) -> list[tuple[int, str]]:
    """Say which names only one of two versions has."""
    found = []
    for place, (mine, other) in enumerate((names, names[::-1])):
        known = set(other)
        if lone := [name for name in mine if name not in known]:
            listed = "; ".join(lone[:_MOST_NAMED]) + (
                f"; and {len(lone) - _MOST_NAMED} more" if lone[_MOST_NAMED:] else ""
            )
            found.append((place, f"{count(len(lone), noun)} ({listed})"))
    return found


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns of numbers have them as numbers."""
    import pandas as pd

    typed = {}
    for column in frame.columns:
        values = [_value(text) for text in frame[column]]
        known = [value for value in values if value is not None]
        numeric = known and all(isinstance(value, float) for value in known)
        typed[column] = pd.Series(values, dtype=float if numeric else object)
    return pd.DataFrame(typed, columns=frame.columns)


def _rows(frame: pd.DataFrame, labels: list[str]) -> dict[_Label, Mapping[str, str]]:
    """Return the rows by label; rows with the same label are told apart by their order."""
    found: dict[_Label, Mapping[str, str]] = {}
    times: Counter[_Label] = Counter()
    for row in frame.to_dict("records"):
        label = tuple(filter(None, (_label(column, row[column]) for column in labels)))
        times[label] += 1
        unique = label if times[label] == 1 else (*label, f"#{times[label]}")
        found[unique] = {str(column): text for column, text in row.items()}
    return found


def _label(column: str, text: str) -> str:
    """Return a label; a number has the name of its column before it, and not the last digits, which may be noise."""
    value = _value(text)
    return f"{column} = {value:.10g}" if isinstance(value, float) else text


def _value(text: str) -> float | str | None:
    """Return the content of a cell: a number, words, or None if it is empty."""
    try:
        value = float(text)
    except ValueError:
        return text or None
    return None if math.isnan(value) else value


def _number(experiment: str, one: Mapping[str, str], two: Mapping[str, str]) -> Change:
    """Return a reported number as both runs reproduced and judged it."""
    row, _, quantity = one["cell"].rpartition("/")
    change = _cell(experiment, REPORTED, (row, quantity), (one["reproduced"], two["reproduced"]))
    is_time = change.first != change.second and "time" in (one.get("subject"), two.get("subject"))
    return replace(change, kind="time" if is_time else change.kind, verdicts=(one["verdict"], two["verdict"]))


def _cell(experiment: str, table: str, place: tuple[str, str], texts: tuple[str, str]) -> Change:
    first, second = map(_value, texts)
    kind: Kind = "number"
    if first == second:
        kind = "verdict"
    elif _COST.search(" ".join((experiment, *place))):
        kind = "time"
    elif isinstance(first, str) or isinstance(second, str):
        kind = "words"
    elif first is not None and second is not None and _hardly_differ(first, second):
        kind = "rounding"
    return Change(experiment, table, *place, first, second, kind)


def _hardly_differ(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=_ROUNDING, abs_tol=_NEARLY_ZERO)


# Which columns of a table tell its rows apart.


def label_columns(frames: Sequence[pd.DataFrame]) -> list[str]:
    """Return the columns that tell the rows apart in each of several frames that have the same columns.

    Labels stand before values: they are the fewest leading columns that differ from row to row, without those that do
    not help, for example a number of repetitions. A first column of text is a label even where one row needs none.
    Where some rows are the same in all columns, the columns of text are labels.
    """
    columns = [str(column) for column in frames[0].columns]
    texts = [frame.astype(object).map(str) for frame in frames]

    def distinguish(chosen: Sequence[str]) -> bool:
        return all(not frame.duplicated(subset=list(chosen)).any() if chosen else len(frame) < 2 for frame in texts)

    words = [column for column in columns if all(frame[column].dtype.kind not in "iufb" for frame in frames)]
    first = int(columns[:1] == words[:1] != [])
    prefixes = (columns[:k] for k in range(first, len(columns) + 1))
    labels = next(filter(distinguish, prefixes), words)
    for column in reversed(labels[first:]):
        fewer = [name for name in labels if name != column]
        if distinguish(fewer):
            labels = fewer
    return labels


# The comparison of two runs in words and tables: on the terminal, as CSV, in Markdown and as a page.

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
        _differences_files(comparison),
        _alone_files(comparison),
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


def _differences_files(comparison: Comparison) -> Table:
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


def _alone_files(comparison: Comparison) -> Table:
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
    return some(stems, _MOST_EXPERIMENTS)
