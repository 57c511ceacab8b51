"""Two kinds of columns, whatever the source: numbers (float64) and labels (categories of text)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def label_text(value: object) -> str:
    """Return a label as text; whole numbers are written without a decimal point.

    >>> label_text("a"), label_text(True), label_text(2.0), label_text(0.5)
    ('a', 'True', '2', '0.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_number_column(column: pd.Series[Any]) -> bool:
    """Tell numbers from labels by dtype; booleans are labels."""
    from pandas.api import types

    return bool(types.is_numeric_dtype(column.dtype)) and not types.is_bool_dtype(column.dtype)


def number_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column as float64 with NaN where a value is missing; ValueError if a value is not a number."""
    import pandas as pd

    if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype):
        column = pd.Series(pd.to_numeric(column.astype(object)), index=column.index, name=column.name)
    return pd.Series(column.to_numpy(dtype="float64", na_value=np.nan), index=column.index, name=column.name, copy=True)


def label_column(column: pd.Series[Any], order: Sequence[str] | None = None) -> pd.Series[Any]:
    """Return the column as a category of text with NaN where a value is missing.

    `order` has labels in the order of the source. It is used if it has all labels of the column (a source that turned
    TRUE and FALSE into booleans gets its own spelling back). Otherwise categories keep their order, and plain text
    is sorted.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        labels = [label_text(value) for value in column.cat.categories]
        codes = column.cat.codes.to_numpy()
    else:
        values = column.astype(object)
        present = values.notna().to_numpy()
        texts = np.array([label_text(value) for value in values[present]], dtype=object)
        labels = sorted(set(texts))
        index = {label: code for code, label in enumerate(labels)}
        codes = np.full(len(column), -1, dtype=np.int64)
        codes[present] = [index[text] for text in texts]
    if order is not None:
        labels, codes = _reorder(labels, codes, order)
    categories = pd.Index(labels, dtype="str" if labels else object)
    return pd.Series(pd.Categorical.from_codes(codes, categories), index=column.index, name=column.name)


def _reorder(labels: list[str], codes: np.ndarray, order: Sequence[str]) -> tuple[list[str], np.ndarray]:
    spelling = {label.casefold(): label for label in order}
    if len(spelling) == len(order) and {label.casefold() for label in labels} == {"true", "false"}:
        labels = [spelling.get(label.casefold(), label) for label in labels]
    if not set(labels) <= set(order):
        return labels, codes
    position = {label: place for place, label in enumerate(order)}
    # The last entry translates the code -1 of a missing value into itself.
    translation = np.array([*(position[label] for label in labels), -1], dtype=np.int64)
    return list(order), translation[codes]
