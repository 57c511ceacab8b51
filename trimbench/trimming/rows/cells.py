"""Rows that agree on the kept features: one cell for each combination of values that occurs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.rows.weighted_rows import Codes


def cells_of(codes: Codes, kept: Sequence[int], cardinalities: Sequence[int]) -> tuple[NDArray[np.int64], Codes]:
    """Return the cell of each row, and the value indices of each cell.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
    kept : sequence of int
        Positions of the kept features.
    cardinalities : sequence of int
        Number of values of each feature.

    Returns
    -------
    places : ndarray of int64, shape (n_rows,)
    cells : ndarray of int, shape (n_cells, len(kept))
    """
    keys = np.zeros(len(codes), dtype=np.int64)
    size = 1
    for feature in kept:
        if size > 2**62 // cardinalities[feature]:
            _, keys = np.unique(keys, return_inverse=True)
            keys, size = keys.reshape(-1), int(keys.max()) + 1
        keys = keys * cardinalities[feature] + codes[:, feature]
        size *= cardinalities[feature]
    if size <= 4 * len(codes):  # counting is quicker than sorting
        first = np.full(size, -1, dtype=np.int64)
        first[keys[::-1]] = np.arange(len(codes) - 1, -1, -1)
        occurs = first >= 0
        return (np.cumsum(occurs) - 1)[keys], codes[first[occurs]][:, list(kept)]
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    return places.reshape(-1).astype(np.int64), codes[first][:, list(kept)]


def n_instances(cardinalities: Sequence[int]) -> int:
    """Return the number of combinations of values."""
    return math.prod(cardinalities)
