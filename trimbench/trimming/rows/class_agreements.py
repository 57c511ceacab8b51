"""Agreement on rows of every subset that has one feature more, for naive Bayes models of several classes.

Rows with the same values of the kept features form a cell, whose log-probabilities are known. One more feature adds a
weight to each, by the row's value. The kernel does so row by row, without a table of all cells by all values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.thresholds import TIE_TOLERANCE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Below this many numbers to compare, NumPy is as quick as a compiled kernel.
_SMALL = 20_000


def agreement_with(
    logs: FloatArray,
    places: IntArray,
    values: NDArray[Any],
    weights: FloatArray,
    decisions: IntArray,
    row_weights: FloatArray,
) -> float:
    """Return the weight of the rows whose most probable class, with one feature more, is the original's decision.

    Parameters
    ----------
    logs : ndarray of shape (n_cells, n_classes)
        log Pr(c, f') of each cell.
    places : ndarray of int64, shape (n_rows,)
        The cell of each row.
    values : ndarray of int, shape (n_rows,)
        The row's value of the added feature.
    weights : ndarray of shape (n_values, n_classes)
        log Pr(value | c) of that feature.
    decisions : ndarray of int64, shape (n_rows,)
    row_weights : ndarray of shape (n_rows,)
    """
    if len(places) * logs.shape[1] < _SMALL:
        return numpy_agreement(logs, places, values, weights, decisions, row_weights)
    from trimbench.trimming.kernels.class_agreements import agreement

    return float(agreement(logs, places, values, weights, decisions, row_weights))


def numpy_agreement(
    logs: FloatArray,
    places: IntArray,
    values: NDArray[Any],
    weights: FloatArray,
    decisions: IntArray,
    row_weights: FloatArray,
) -> float:
    """Return what `agreement_with` does, by NumPy."""
    total = logs[places] + weights[values]
    decided = (total >= total.max(axis=1, keepdims=True) - TIE_TOLERANCE).argmax(axis=1)
    return float(row_weights[decided == decisions].sum())
