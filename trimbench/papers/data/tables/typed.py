"""Columns that already have a type, as data frames and Parquet files have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.columns import is_number_column, label_column, number_column
from trimbench.papers.data.tables.columns import ReadColumn, refuse_infinite
from trimbench.papers.data.tables.dates import text_of
from trimbench.papers.data.tables.numbers import LARGEST_EXACT, plain_numbers
from trimbench.papers.data.tables.sentinels import outlying_codes
from trimbench.papers.data.tables.settings import ColumnType
from trimbench.papers.data.tables.wording import rows_in, rows_named

if TYPE_CHECKING:
    import pandas as pd


def _are_whole(values: pd.Series[Any]) -> bool:
    known = values.dropna()
    return bool((known == known.round()).all())


def type_of(column: pd.Series[Any]) -> ColumnType | None:
    """Return how a column is read because of its dtype, None if its values must be looked at.

    Whole numbers that a float cannot hold are looked at as text, so that they stay different.
    """
    from pandas.api import types

    if types.is_bool_dtype(column.dtype) and column.dtype != object:
        return "boolean"
    if is_number_column(column) and not types.is_complex_dtype(column.dtype):
        return None if types.is_integer_dtype(column.dtype) and _has_huge(column) else "number"
    return "date" if types.is_datetime64_any_dtype(column.dtype) else None


def _has_huge(column: pd.Series[Any]) -> bool:
    known = column.dropna()
    return bool(len(known)) and (int(known.max()) > LARGEST_EXACT or int(known.min()) < -LARGEST_EXACT)


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
        values = number_column(days)
        codes = outlying_codes(values.to_numpy(), days=True, text=text_of)
        return ReadColumn(name, "date", values, ("dates were read as days since 1970-01-01", *codes))
    values = number_column(column)
    notes: list[str] = []
    for text in missing:
        number = plain_numbers([text], ".") if text else None
        gaps = values == number[0] if number else np.zeros(len(values), dtype=bool)
        if gaps.any():
            values[gaps] = np.nan
            notes.append(f"{text!r} counts as missing in {rows_in(int(gaps.sum()))}")
    refuse_infinite(name, values.to_numpy())
    huge = np.flatnonzero(values.abs() > LARGEST_EXACT)
    if len(huge) and _are_whole(values):
        notes.append(
            f"whole numbers above 2^53 in {rows_named((huge + 1).tolist())} are floats, which may have rounded them; "
            "if they name something, read them as text"
        )
    if values.isna().all():
        return ReadColumn(name, "left out", None, (*notes, "it has no values, so it is left out"))
    notes += outlying_codes(values.to_numpy(), days=False, text="{:.15g}".format)
    return ReadColumn(name, "number", values, tuple(notes))
