"""What looks wrong in a table: identifiers, constants, columns that know the target, rows and columns twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.columns import is_number_column
from trimbench.papers.data.tables.wording import quoted, rows_in

if TYPE_CHECKING:
    import pandas as pd

_NAME_OF_ID = re.compile(r"(?:^|[^a-zA-Z])(?:id|nr|no|num|number|index|key)$|(?:ID|Id|Nr)$|^Unnamed: \d+$")
_FEWEST_FOR_ID, _ROWS_PER_VALUE, _ROWS_PER_BIN, _MOST_BINS = 20, 5, 20, 100
DETERMINES = "it determines the target; drop it if it is known only afterwards"
# A column knows the target if it leaves this share of the errors that the most frequent class makes.
_ERRORS_LEFT = 0.01


def reason_to_leave_out(column: pd.Series[Any], asked_for: bool) -> str | None:
    """Return why a column cannot serve as a feature, if so: it never changes, or numbers the rows and is not wanted."""
    known = column.dropna()
    if known.empty:
        return "it has no values in the rows with a class, so it is left out"
    if len(known) == len(column) and _is_constant(known):
        return f"it has the same value in every row, {quoted(str(known.iloc[0]))}, so it is left out"
    if not asked_for and _numbers_rows(column):
        span = int(column.max() - column.min())
        if span == len(column) - 1 or _NAME_OF_ID.search(str(column.name)):
            return "it numbers the rows, so it is left out; to keep it, write types: number"
    return None


def suspicion(column: pd.Series[Any], codes: NDArray[np.int64], labels: NDArray[np.int64]) -> list[str]:
    """Return what looks wrong about a feature; `codes` number its different values."""
    notes = []
    if _is_constant(column.dropna()):
        notes.append("it has a single value beside missing ones")
    if _numbers_rows(column):
        notes.append("every row has another whole number; if they name the rows, name the column in id")
    errors = _errors(column, codes, labels)
    most = len(labels) - int(np.bincount(labels).max())
    if errors == 0:
        notes.append(DETERMINES)
    elif errors <= _ERRORS_LEFT * most:
        share = 1 - errors / len(labels)
        notes.append(f"it alone tells the target in {share:.2%} of the rows; drop it if it is known only afterwards")
    return notes


def repeated_rows(codes: Sequence[NDArray[np.int64]]) -> str | None:
    """Return that rows occur more than once, if so, given the codes of all columns and of the target."""
    import pandas as pd

    twice = np.flatnonzero(pd.DataFrame(dict(enumerate(codes))).duplicated()) + 1
    if not len(twice):
        return None
    verb = "repeats" if len(twice) == 1 else "repeat"
    return f"{rows_in(len(twice))} {verb} an earlier one in all features and the class; they were kept"


def equal_columns(columns: Sequence[pd.Series[Any]], codes: Mapping[str, NDArray[np.int64]]) -> dict[str, str]:
    """Return the columns that say the same as an earlier one: equal numbers, or labels that only have other names."""
    first: dict[tuple[bool, bytes], str] = {}
    found = {}
    for column in columns:
        name = str(column.name)
        is_number = is_number_column(column)
        values = column.to_numpy(dtype=np.float64) if is_number else codes[name]
        earlier = first.setdefault((is_number, values.tobytes()), name)
        if earlier != name:
            found[name] = earlier
    return found


def _is_constant(known: pd.Series[Any]) -> bool:
    return bool((known == known.iloc[0]).all())


def _numbers_rows(column: pd.Series[Any]) -> bool:
    """Tell whether every row has another whole number."""
    if len(column) < _FEWEST_FOR_ID or not is_number_column(column) or not column.is_unique:
        return False
    values = column.to_numpy(dtype=np.float64)
    return bool(np.isfinite(values).all() and (values == np.round(values)).all())


def _errors(column: pd.Series[Any], codes: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    """Return how many rows get the wrong class from the most frequent class of each value, or bin of values."""
    n_values = int(codes.max()) + 1
    if n_values * _ROWS_PER_VALUE <= len(codes):
        return _errors_by_value(codes, labels)
    if not is_number_column(column):
        return len(labels)
    order = np.argsort(column.to_numpy(dtype=np.float64), kind="stable")
    if _is_sorted_by_class(column.to_numpy(dtype=np.float64)[order], labels[order]):
        return 0
    n_bins = min(_MOST_BINS, len(order) // _ROWS_PER_BIN)
    if n_bins < 2:
        return len(labels)
    bins = np.empty(len(order), dtype=np.int64)
    bins[order] = np.arange(len(order)) * n_bins // len(order)
    return max(1, _errors_by_value(bins, labels))


def _errors_by_value(codes: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    n_classes = int(labels.max()) + 1
    shifted = codes - codes.min()  # a missing value, -1, is a value too
    table = np.bincount(shifted * n_classes + labels, minlength=(int(shifted.max()) + 1) * n_classes)
    return len(labels) - int(table.reshape(-1, n_classes).max(axis=1).sum())


def _is_sorted_by_class(values: NDArray[np.float64], labels: NDArray[np.int64]) -> bool:
    """Tell whether each class has an interval of the sorted values to itself; missing values, at the end, are one."""
    changes = np.flatnonzero(np.diff(labels)) + 1
    same = np.isnan(values[changes]) & np.isnan(values[changes - 1]) | (values[changes] == values[changes - 1])
    return len(changes) < len(np.unique(labels)) and not same.any()
