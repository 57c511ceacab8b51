"""Tables and rows of numbers from lists, arrays and data frames; missing values become NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as an array of numbers, without copying one.

    None, NA of pandas and masked entries of NumPy become NaN. Raises ValueError if the values are sparse, ragged, or
    not numbers; the message calls them `name`.
    """
    if hasattr(values, "toarray"):
        raise ValueError(f"{name} must be dense, got a sparse {type(values).__name__}; use {name}.toarray()")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype == object:
            import pandas as pd

            array = np.where(pd.isna(array), np.nan, array).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, and NaN where a value is missing, got {error}") from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must hold numbers, got values of type {array.dtype}; encode them first")
    return array


def as_table(rows: ArrayLike, n_columns: int | None = None, name: str = "X") -> NDArray[Any]:
    """Return rows as a table of numbers, without copying one.

    Raises ValueError if they are not a table of numbers with `n_columns` columns; the message calls them `name`.
    """
    table = as_numbers(rows, name)
    if table.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (rows and columns), got {table.ndim}; use {name}.reshape(1, -1)"
        )
    if n_columns is not None and table.shape[1] != n_columns:
        raise ValueError(f"{name} must have {n_columns} columns, like the rows of the fit, got {table.shape[1]}")
    return table


def as_row(x: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    """Return one row as a table of float64; raise ValueError unless it has `n_columns` numbers."""
    values = as_numbers(x, "x")
    if values.shape != (n_columns,):
        raise ValueError(f"x must be one row of {n_columns} values, got shape {values.shape}")
    return np.asarray(values[None], dtype=np.float64)
