"""What differs between two runs: numbers, files, settings and times."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.reproduction.configuration import NOT_SETTINGS
from trimbench.reproduction.files import write_csv, write_text
from trimbench.reproduction.messages import some, terminal_width
from trimbench.reproduction.reporting.page import count, facts_of, render, table_part
from trimbench.reproduction.reporting.runs import POINTS, REPORTED, StoredExperiment, StoredRun
from trimbench.reproduction.reporting.tables import label_columns, markdown, markdown_page, markdown_text
from trimbench.reproduction.vocabulary.tables import Table

# What a command does, where it writes, and how the experiment is programmed and tested.
_NOT_SETTINGS = ("task", "results", "run", "runs", *NOT_SETTINGS)
# In the order of the report.
_KINDS = ("number", "verdict", "words", "noise", "time", "rounding")
_PARTS = ("setting", "data", "environment")
_ALONE = "only in one run"
_VERDICTS = ["first_verdict", "second_verdict"]
_CHANGE = ["kind", "experiment", "table", "row", "quantity", "first", "second", "relative_change", *_VERDICTS, "also"]
# Numbers this close are the same up to rounding: relative to them, or absolutely where they are nearly zero.
_ROUNDING, _NEARLY_ZERO = 1e-9, 1e-12
# Words for run time or memory in a column, a quantity or the name of an experiment; no two runs have the same.
_COST = re.compile(r"(?:^|[\W_])(?:(?:micro|milli)?seconds?|minutes?|runtime|times?|[mu]s|\(s\)|MB|mb)(?:$|[\W_])")
# Rows and columns that only one run has are counted, and at most this many are named.
_MOST_NAMED = 5


@dataclass(frozen=True, eq=False)
class Comparison:
    """What differs between two runs.

    Attributes
    ----------
    runs : (str, str)
        Their names.
    changes : DataFrame
        One row for each number, word or verdict that differs, by kind, numbers first; those of a kind by falling
        relative change. The kind is "number", "words", "noise" (a number, within the noise of its replications),
        "time" (or memory), "rounding" (a number, up to rounding), or "verdict" if only that differs. The values
        ``first`` and ``second`` are None where a run has none; ``also`` has the other places in the same experiment
        that show the same number.
    differences : DataFrame
        One row for each setting, data set and part of the environment that differs, with the experiments in which it
        does; then for whatever only one run has.
    experiments : tuple of str
        Those that both runs have.
    n_compared : int
        How many numbers both runs have.
    """

    runs: tuple[str, str]
    changes: pd.DataFrame
    differences: pd.DataFrame
    experiments: tuple[str, ...]
    n_compared: int

    def of_kind(self, kind: str) -> pd.DataFrame:
        """Return the changes of this kind; of "verdict", all reported numbers that the runs judge differently."""
        if kind == "verdict":
            return self.changes[_differ(self.changes, *_VERDICTS)]
        return self.changes[self.changes["kind"] == kind]


def compare_runs(
    first: StoredRun, second: StoredRun, within_noise: Collection[tuple[str, str]] = frozenset()
) -> Comparison:
    """Compare the experiments that two runs have in common, and list those of one run only.

    `within_noise` has the stems and labels of reported numbers whose difference is noise.
    """
    pairs = dict(_pairs(first, second))
    partners = [two.stem for _, two in pairs.values()]
    lone, others = _only(first.experiments, pairs)[0], _only(second.experiments, partners)[0]
    only = [*((0, f"experiment {stem}") for stem in lone), *((1, f"experiment {stem}") for stem in others)]
    changes: list[pd.DataFrame] = []
    found: dict[tuple[str, ...], list[str]] = {}
    n_compared = 0
    for stem, (one, two) in pairs.items():
        only += [(at, f"{stem}: {part}") for at, parts in enumerate(_only(one.tables, two.tables)) for part in parts]
        for part in sorted(set(one.tables) & set(two.tables), key=_rank):
            cells, alone = compare_tables(part, one.tables[part], two.tables[part])
            only += [(at, f"{stem}, {part}: {what}") for at, what in alone]
            n_compared += sum(
                isinstance(a, float) and isinstance(b, float)
                for a, b in zip(cells["first"], cells["second"], strict=True)
            )
            changed = _differ(cells, "first", "second") | _differ(cells, *_VERDICTS)
            changes.append(cells[changed].assign(experiment=stem, table=part))
        for difference in _differences(one.about, two.about):
            found.setdefault(difference, []).append(stem)
    differences = [(*difference, stems) for difference, stems in found.items()]
    differences.sort(key=lambda one: (_PARTS.index(one[0]), -len(one[-1])))
    differences += [(_ALONE, what, "" if at else "present", "present" if at else "", []) for at, what in only]
    return Comparison(
        (first.name, second.name),
        _classified(pd.concat(changes, ignore_index=True), within_noise) if changes else pd.DataFrame(columns=_CHANGE),
        pd.DataFrame(differences, columns=["kind", "name", "first", "second", "experiments"]),
        tuple(pairs),
        n_compared,
    )


def _only(first: Collection[str], second: Collection[str]) -> tuple[list[str], list[str]]:
    mine, others = set(first), set(second)
    return [name for name in first if name not in others], [name for name in second if name not in mine]


def _differ(rows: pd.DataFrame, first: str, second: str) -> NDArray[np.bool_]:
    """Tell of each row whether two of its columns differ, by Python's rules: a missing value equals another."""
    found: NDArray[np.bool_] = rows[first].to_numpy(dtype=object) != rows[second].to_numpy(dtype=object)
    return found


def _pairs(first: StoredRun, second: StoredRun) -> Iterator[tuple[str, tuple[StoredExperiment, StoredExperiment]]]:
    """Yield the experiments of both runs; those with other settings have another stem, paired if there is no doubt."""
    mine, others = _only(first.experiments, second.experiments)
    names = [first.experiments[stem].name for stem in mine]
    for stem, one in first.experiments.items():
        rest = [second.experiments[other] for other in others if second.experiments[other].name == one.name]
        if stem in second.experiments:
            yield stem, (one, second.experiments[stem])
        elif len(rest) == names.count(one.name) == 1:
            yield stem, (one, rest[0])


def _rank(part: str) -> tuple[bool, bool, str]:
    """Order tables so that a number is listed where it is best known: reported, in a table, in a figure."""
    return part != REPORTED, part.endswith(POINTS), part


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield part, name and both values of whatever differs in the provenance of an experiment."""
    for part, describe in zip(_PARTS, (settings_of, _data, _environment), strict=True):
        first, second = describe(one), describe(two)
        for name in first | second:
            if first.get(name) != second.get(name):
                yield part, name, first.get(name, _NOTHING), second.get(name, _NOTHING)


def settings_of(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of an experiment as text, by key, without what says where and how it ran."""
    configuration = about.get("configuration", {})
    values = _flat({key: value for key, value in configuration.items() if key not in _NOT_SETTINGS})
    return {name: value for name, value in values if not name.endswith("._target_")}


def _data(about: Mapping[str, Any]) -> dict[str, str]:
    missing = dict.fromkeys(about.get("missing", {}), "not available")
    return dict(_flat(about.get("data", {}))) | missing


def _environment(about: Mapping[str, Any]) -> dict[str, str]:
    values: dict[str, set[str]] = {}
    described = [("computed with", entry) for entry in about.get("computed_with", ())]
    described.append(("written with", about.get("written_with", {})))
    for prefix, entry in described:
        for name, value in _flat({key: value for key, value in entry.items() if key != "time"}):
            values.setdefault(f"{prefix} {name.removeprefix('packages.')}", set()).add(value)
    return {name: ", ".join(sorted(found)) for name, found in values.items()}


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{above}{key}", text


# What differs between the cells of two versions of a table.


def compare_tables(part: str, first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """Return the cells that both versions of a table have, and the columns and rows that only one (0 or 1) has.

    The cells of both are text; labels identify a row, wherever it stands. Of reported numbers, what was reproduced and
    its verdict are compared.
    """
    columns = [column for column in first if column in second]
    typed = [frame[columns].map(_value) for frame in (first, second)]
    labels = ["cell"] if part == REPORTED else label_columns(typed)
    one, two = (_by_label(frame, labels) for frame in typed)
    alone = [
        (at, f"{count(len(names), noun)} ({some(names, _MOST_NAMED, '; ')})")
        for noun, both in (
            ("column", _only(list(map(str, first)), list(map(str, second)))),
            ("row", _only(one.index, two.index)),
        )
        for at, names in enumerate(both)
        if names
    ]
    shared = one.index[one.index.isin(two.index)]
    one, two = one.loc[shared], two.loc[shared]
    compared = ["reproduced"] if part == REPORTED else [column for column in columns if column not in labels]
    cells = pd.DataFrame(
        {
            "row": np.repeat(shared, len(compared)),
            "quantity": np.tile(np.array(compared, dtype=object), len(shared)),
            "first": one[compared].to_numpy().ravel(),
            "second": two[compared].to_numpy().ravel(),
            "first_verdict": "",
            "second_verdict": "",
            "is_time": False,
        },
        dtype=object,
    )
    if part == REPORTED:
        cells["row"], cells["quantity"] = ([name.rpartition("/")[at] for name in shared] for at in (0, 2))
        cells["first_verdict"], cells["second_verdict"] = (
            version["verdict"].map(str).to_numpy() for version in (one, two)
        )
        if "subject" in columns:
            cells["is_time"] = ((one["subject"] == "time") | (two["subject"] == "time")).to_numpy()
    return cells, alone


def _value(text: str) -> float | str | None:
    try:
        value = float(text)
    except ValueError:
        return text or None
    return None if math.isnan(value) else value


def _by_label(typed: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Return the values with labels as index; rows with the same label are told apart by their order."""
    values = typed.astype(object).where(typed.notna(), None)
    cells = values[labels].to_numpy()
    names = pd.Series([", ".join(filter(None, map(_label, labels, row))) for row in cells], values.index, dtype=object)
    again = names.groupby(names).cumcount()
    return values.set_axis(
        [", ".join(filter(None, [name, f"#{k + 1}" if k else ""])) for name, k in zip(names, again, strict=True)]
    )


def _label(column: str, value: float | str | None) -> str:
    return f"{column} = {value:.10g}" if isinstance(value, float) else value or ""


def _classified(cells: pd.DataFrame, within_noise: Collection[tuple[str, str]]) -> pd.DataFrame:
    """Return changed cells with their kinds in the order of the report, each number once.

    Tables and figures may show a number again: the other places are in the column ``also``.
    """
    pairs = list(zip(cells["first"], cells["second"], strict=True))
    cells["kind"] = [
        "noise"
        if one.table == REPORTED and (one.experiment, f"{one.row}/{one.quantity}") in within_noise
        else _kind(one)
        for one in cells.itertuples()
    ]
    cells["relative_change"] = [_relative(*pair) for pair in pairs]
    # Small whole numbers and words may be equal by chance; numbers with decimals are not.
    tells = pd.Series([any(isinstance(a, float) and not a.is_integer() for a in pair) for pair in pairs], dtype=bool)
    number = cells[["experiment", "first", "second"]].join(cells[["row", "quantity"]].mask(tells, ""))
    group = number.groupby(list(number.columns), dropna=False, sort=False).ngroup()
    again = group.duplicated()
    places = pd.Series(
        [f"{table}: {place}" for table, place in zip(cells["table"], _places(cells), strict=True)], dtype=object
    )
    also = places[again].groupby(group[again]).agg(list)
    cells["also"] = [also.get(one, []) for one in group]
    order = pd.DataFrame({"kind": cells["kind"].map(_KINDS.index), "size": -cells["relative_change"].abs()})
    return cells.loc[order[~again].sort_values(["kind", "size"], kind="stable").index, _CHANGE]


def _kind(cell: Any) -> str:
    if cell.first == cell.second:
        return "verdict"
    if cell.is_time or is_cost(f"{cell.experiment} {cell.row} {cell.quantity}"):
        return "time"
    if isinstance(cell.first, str) or isinstance(cell.second, str):
        return "words"
    are_known = cell.first is not None and cell.second is not None
    return "rounding" if are_known and is_rounding(cell.first, cell.second) else "number"


def is_cost(name: str) -> bool:
    """Tell whether a name has a word for run time or memory."""
    return bool(_COST.search(name))


def is_rounding(first: float, second: float) -> bool:
    """Tell whether two numbers are the same up to rounding."""
    return math.isclose(first, second, rel_tol=_ROUNDING, abs_tol=_NEARLY_ZERO)


def _relative(first: float | str | None, second: float | str | None) -> float:
    """Return the change relative to the first value; infinite from nearly zero, and NaN if one is no finite number."""
    if not isinstance(first, float) or not isinstance(second, float) or not math.isfinite(first - second):
        return math.nan
    if abs(first) > _NEARLY_ZERO:
        return (second - first) / abs(first)
    return 0.0 if first == second else math.copysign(math.inf, second - first)


def _places(cells: pd.DataFrame) -> list[str]:
    return [", ".join(filter(None, place)) for place in zip(cells["row"], cells["quantity"], strict=True)]


# The comparison of two runs in words and tables: on the terminal, as CSV, in Markdown and as a page.

# Longer tables are cut; the CSV files have everything.
_ON_TERMINAL, _IN_MARKDOWN, _ON_PAGE = 10, 200, 1000
_CHANGES, _DIFFERENCES = "changes.csv", "differences.csv"
_MOST_EXPERIMENTS = 3
_LONGEST_VALUE = 60
_NOTHING = "–"
# What is counted besides numbers, and what to say of it.
_OTHERS = (
    ("verdict", "verdict differs", "verdicts differ", ""),
    ("words", "cell of text differs", "cells of text differ", ""),
    ("noise", "number differs within its noise", "numbers differ within their noise", f" (see {_CHANGES})"),
    ("time", "run time or memory size differs", "run times and memory sizes differ", ", as in any two runs"),
    ("rounding", "number differs by rounding only", "numbers differ by rounding only", f" (see {_CHANGES})"),
)


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the files of a comparison, and return them.

    ``changes.csv`` has one row for each number or word that differs, ``differences.csv`` one for each setting, data set
    or part of the environment, and for what only one run has. ``changes.md`` and ``index.html`` show both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = in_words(comparison)
    changes, differences = comparison.changes, comparison.differences
    page = render(
        "compare.html",
        facts=facts_of(f"{count(len(comparison.experiments), 'experiment')} in common"),
        runs=comparison.runs,
        sentences=lines,
        sections=[{"name": name, "table": table_part(one)} for name, one in tables(comparison, _ON_PAGE).items()],
        files=(_CHANGES, _DIFFERENCES),
    )
    return [
        write_csv(changes.assign(also=changes["also"].map("; ".join)), folder / _CHANGES),
        write_csv(differences.assign(experiments=differences["experiments"].map(", ".join)), folder / _DIFFERENCES),
        write_text(
            markdown_page(" and ".join(comparison.runs), lines, tables=tables(comparison, _IN_MARKDOWN).values()),
            folder / "changes.md",
        ),
        write_text(page, folder / "index.html"),
    ]


def summarised(comparison: Comparison) -> str:
    """Return what differs as the terminal shows it: sentences, then the first rows of each table."""
    shown = [
        f"## {markdown_text(table.title)}\n\n{markdown(table, terminal_width())}"
        for table in tables(comparison, _ON_TERMINAL).values()
    ]
    return "\n\n".join([" ".join(in_words(comparison)), *shown])


def in_words(comparison: Comparison) -> list[str]:
    """Return sentences that say how many numbers and verdicts differ, and what else does."""
    where = f"{count(comparison.n_compared, 'number')} in {count(len(comparison.experiments), 'experiment')} compared"
    numbers = len(comparison.of_kind("number"))
    differ = "1 number differs" if numbers == 1 else f"{numbers:,} numbers differ" if numbers else "No number differs"
    lines = [f"{differ} ({where})."]
    for kind, singular, plural, remark in _OTHERS:
        if found := len(comparison.of_kind(kind)):
            lines.append(f"{found:,} {singular if found == 1 else plural}{remark}.")
    return lines


def tables(comparison: Comparison, most: int) -> dict[str, Table]:
    """Return what differs as tables by name, each if it has a row, with at most `most` rows; times come last."""
    found = comparison.differences
    is_alone = found["kind"] == _ALONE
    selections = {
        "Numbers that differ": (comparison.of_kind("number"), _changed),
        "Verdicts that differ": (comparison.of_kind("verdict"), _judged),
        "Text that differs": (comparison.of_kind("words"), _changed),
        "Settings, data and environment that differ": (found[~is_alone], _described),
        "Only in one run": (found[is_alone], _lone),
        "Run times and memory": (comparison.of_kind("time"), _changed),
    }
    shown = {}
    for title, (rows, select) in selections.items():
        file = _DIFFERENCES if "name" in rows else _CHANGES
        extent = f"{len(rows):,}" if len(rows) <= most else f"the first {most:,} of {len(rows):,}; {file} has all"
        if len(rows):
            # The columns have the names of the runs.
            shown[title] = Table(f"{title} ({extent})", select(rows.head(most), comparison), literal=True)
    return shown


def _columns(comparison: Comparison) -> tuple[str, str]:
    first, second = (f"in {name}" for name in comparison.runs)
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _changed(rows: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    again = [", ".join(dict.fromkeys(place.partition(":")[0] for place in also)) for also in rows["also"]]
    places = [f"{place} (also in {more})" if more else place for place, more in zip(_places(rows), again, strict=True)]
    texts = list(map(_texts, rows["first"], rows["second"]))
    found = rows[["experiment", "table"]].assign(place=places)
    found[list(_columns(comparison))] = texts
    return found.assign(change=rows["relative_change"].map(_percent))


def _judged(rows: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    found = rows.assign(place=_places(rows))[["experiment", "place", *_VERDICTS]]
    return found.set_axis(["experiment", "place", *_columns(comparison)], axis=1)


def _described(rows: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    n_all = len(comparison.experiments)
    found = rows.assign(
        first=rows["first"].map(_short),
        second=rows["second"].map(_short),
        experiments=[
            f"all {n_all}" if len(stems) == n_all > 1 else some(stems, _MOST_EXPERIMENTS)
            for stems in rows["experiments"]
        ],
    )
    return found.set_axis(["kind", "name", *_columns(comparison), "experiments"], axis=1)


def _lone(rows: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    runs = [comparison.runs[not first] for first in rows["first"]]
    return pd.DataFrame({"run": runs, "only there": rows["name"].to_numpy()})


def _texts(first: float | str | None, second: float | str | None) -> tuple[str, str]:
    """Return both values with as many digits as it takes to tell them apart, but at least six."""
    if isinstance(first, float) and isinstance(second, float):
        pairs = ((f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(6, 18))
        return next((pair for pair in pairs if pair[0] != pair[1]), (str(first), str(second)))
    first_text, second_text = (
        _NOTHING if value is None else f"{value:.6g}" if isinstance(value, float) else value
        for value in (first, second)
    )
    return first_text, second_text


def _percent(relative: float) -> str:
    if math.isnan(relative):
        return _NOTHING
    return f"{100 * relative:+.3g} %" if math.isfinite(relative) else "from 0"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
