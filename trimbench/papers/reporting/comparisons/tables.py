"""What differs between the cells of two versions of a table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trimbench.papers.reporting.comparisons.row_labels import label_columns
from trimbench.papers.reporting.comparisons.runs import REPORTED
from trimbench.papers.reporting.html import count

if TYPE_CHECKING:
    import pandas as pd

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
