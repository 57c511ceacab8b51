"""Columns that already have a type, as data frames and Parquet files have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.columns import is_number_column, label_column, number_column
from trimbench.papers.data.tables.columns import ReadColumn, refuse_infinite
from trimbench.papers.data.tables.numbers import plain_numbers
from trimbench.papers.data.tables.settings import ColumnType
from trimbench.papers.data.tables.wording import rows_in

if TYPE_CHECKING:
    import pandas as pd


def type_of(column: pd.Series[Any]) -> ColumnType | None:
    """Return how a column is read because of its dtype, None if its values must be looked at."""
    from pandas.api import types

    if types.is_bool_dtype(column.dtype) and column.dtype != object:
        return "boolean"
    if is_number_column(column) and not types.is_complex_dtype(column.dtype):
        return "number"
    return "date" if types.is_datetime64_any_dtype(column.dtype) else None


def read_typed(name: str, column: pd.Series[Any], kind: ColumnType, missing: Iterable[str]) -> ReadColumn:
    """Read a column of the type `kind`, as `type_of` gives it."""
    import pandas as pd

    if column.isna().all():
        return ReadColumn(name, "left out", None, ("it has no values, so it is left out",))
    if kind == "boolean":
        return ReadColumn(name, "boolean", label_column(column))
    if kind == "date":
        utc = pd.to_datetime(column, utc=True)
        days = (utc - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        return ReadColumn(name, "date", number_column(days), ("dates were read as days since 1970-01-01",))
    values = number_column(column)
    notes = []
    for text in missing:
        number = plain_numbers([text], ".") if text else None
        gaps = values == number[0] if number else np.zeros(len(values), dtype=bool)
        if gaps.any():
            values[gaps] = np.nan
            notes.append(f"{text!r} counts as missing in {rows_in(int(gaps.sum()))}")
    refuse_infinite(name, values.to_numpy())
    if values.isna().all():
        return ReadColumn(name, "left out", None, (*notes, "it has no values, so it is left out"))
    return ReadColumn(name, "number", values, tuple(notes))
