"""A SHA-256 of loaded values that every format and pandas version agrees on."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.columns import is_number_column, label_column, number_column

if TYPE_CHECKING:
    import pandas as pd

_MISSING = b"\xff" * 8


def _framed(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return len(encoded).to_bytes(8, "little") + encoded


def _number_bytes(column: pd.Series[Any]) -> bytes:
    values = number_column(column).to_numpy().astype("<f8")  # a copy, because it is changed below
    values[np.isnan(values)] = np.nan  # one bit pattern out of many
    values[values == 0] = 0.0  # -0.0 is the same number
    return values.tobytes()


def _label_bytes(column: pd.Series[Any]) -> bytes:
    labels = label_column(column)
    # Code -1 (missing) picks the last entry. No label has the length that the marker stands for.
    table = np.array([*(_framed(label) for label in labels.cat.categories), _MISSING], dtype=object)
    return b"".join(table[labels.cat.codes.to_numpy()])


def fingerprint(features: pd.DataFrame, target: pd.Series[Any]) -> str:
    """Hash the names, kinds and values of all columns, the target last and always as labels.

    The hash does not depend on the width of a dtype, on the order of categories or unused ones, or on the index. It
    depends on every value, every name, and the order of rows and columns. Numbers enter as little-endian float64 (with
    one NaN and one zero), labels as length-prefixed UTF-8.
    """
    digest = hashlib.sha256(b"trimbench table 1")
    digest.update(len(features).to_bytes(8, "little") + features.shape[1].to_bytes(8, "little"))
    for place, name in enumerate(features.columns):
        column = features.iloc[:, place]
        is_number = is_number_column(column)
        digest.update(_framed(str(name)) + (b"n" if is_number else b"l"))
        digest.update(_number_bytes(column) if is_number else _label_bytes(column))
    digest.update(_framed(str(target.name)) + b"t" + _label_bytes(target))
    return digest.hexdigest()
