"""The rows of a table as numbers, as logistic regression and selection take them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.conformant.layout import FeatureLayout
from trimbench.estimators.column_encoding import ColumnEncoder
from trimbench.networks.discretize import IdentifierColumnWarning

CODE = ("trimbench.estimators.column_encoding", __name__)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Training and test rows as numbers; NaN where a value is missing.

    `columns` has those of each feature in `names`, `outputs` the names of all columns.
    """

    train: NDArray[np.float64]
    test: NDArray[np.float64]
    columns: list[list[int]]
    names: list[str]
    outputs: list[str]
    layout: FeatureLayout


def encoded(train: pd.DataFrame, test: pd.DataFrame) -> Encoded:
    """Encode rows as `NaiveConformantClassifier` does; columns without any training value are left out."""
    known = [name for name in train.columns if train[name].notna().any()]
    with warnings.catch_warnings():
        # What the card says of such columns is enough.
        warnings.simplefilter("ignore", IdentifierColumnWarning)
        encoder = ColumnEncoder.fit(train[known], set(), "gaussian", np.ones(len(train)))
    widths = [len(column.outputs) for column in encoder.columns]
    ends = np.cumsum(widths)
    columns = [list(range(end - width, end)) for end, width in zip(ends.tolist(), widths, strict=True)]
    return Encoded(
        encoder.encode(train[known]),
        encoder.encode(test[known]),
        columns,
        [str(name) for name in known],
        encoder.outputs,
        encoder.layout,
    )
