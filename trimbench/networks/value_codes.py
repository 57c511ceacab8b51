"""Translation of tables of value names into value indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


def encode_columns(frame: pd.DataFrame, values: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    """Translate a table of value names into value indices, of shape (n_rows, n_variables).

    Raises ValueError if a column is absent or occurs twice, or holds NaN or an unknown value.

    Parameters
    ----------
    frame : DataFrame with (at least) one column for each variable
        Names of columns and values are compared as strings (``str``).
    values : mapping from variable to the names of its values
    """
    labels = [str(label) for label in frame.columns]
    codes = np.empty((len(frame), len(values)), dtype=np.int64)
    for i, (name, known) in enumerate(values.items()):
        if labels.count(name) != 1:
            raise ValueError(f"the table must have exactly one column {name!r}, got {labels}")
        column = frame.iloc[:, labels.index(name)]
        if column.isna().any():
            raise ValueError(
                f"column {name!r} must have no missing values, got NaN in {int(column.isna().sum())} rows; "
                "drop those rows or make 'missing' a value of its own"
            )
        index = {value: code for code, value in enumerate(known)}
        places, distinct = column.factorize()
        texts = [str(value) for value in distinct.tolist()]
        unknown = sorted(set(texts) - set(index))
        if unknown:
            raise ValueError(f"column {name!r} must hold values among {list(known)}, got {unknown[0]!r}")
        codes[:, i] = np.array([index[text] for text in texts], dtype=np.int64)[places]
    return codes
