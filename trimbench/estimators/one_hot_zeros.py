"""One-hot columns in which an encoder before the estimator turned missing values into zeros."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# More rows of zeros than this are rather the first category, which encoders may leave out (drop="first").
_MOST_ZEROS = 0.2
_FEWEST_ROWS = 20
_ADVICE = (
    "if an encoder made zeros of missing values, as pandas.get_dummies does, give the raw column to this classifier, "
    "which takes text and categories, or put NaN into all columns of the group"
)


class MissingAsZerosWarning(UserWarning):
    """Rows have no 1 in columns that look one-hot: missing values may have become zeros."""


def one_hot_groups(rows: NDArray[np.float64], binary: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the groups of adjacent binary columns that have one 1 in at least 80 % of the rows, and never two.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        NaN where a value is missing.
    binary : ndarray of int
        Columns of zeros and ones, in order.
    """
    groups: list[NDArray[np.intp]] = []
    if len(rows) < _FEWEST_ROWS:
        return groups
    run: list[int] = []
    taken = np.zeros(len(rows), dtype=bool)

    def close() -> None:
        if len(run) > 1 and taken.mean() >= 1 - _MOST_ZEROS:
            groups.append(np.array(run, dtype=np.intp))

    for column in binary.tolist():
        ones = rows[:, column] == 1
        if run and (column != run[-1] + 1 or (taken & ones).any()):
            close()
            run, taken = [], np.zeros(len(rows), dtype=bool)
        run.append(column)
        taken = taken | ones
    close()
    return groups


def warn_of_zeros(
    rows: NDArray[np.float64], groups: Sequence[NDArray[np.intp]], names: Sequence[str], stacklevel: int
) -> None:
    """Issue a MissingAsZerosWarning for the first group in which rows have zeros only."""
    for columns in groups:
        n_zero = int((rows[:, columns] == 0).all(axis=1).sum())
        if n_zero:
            shown = [names[column] for column in columns[:4]] + ["..."] * (len(columns) > 4)
            warnings.warn(
                f"{n_zero} of {len(rows)} rows have 0 in all of the columns {', '.join(shown)}, of which the others "
                f"have exactly one 1; {_ADVICE}",
                MissingAsZerosWarning,
                stacklevel=stacklevel + 1,
            )
            return
