"""Instances of some features: an order of them, and products and sums of one number from each feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled
from trimbench.trimming.kernels.sorted_sums import Floats, Integers


@compiled
def kept_innermost(cardinalities: Integers, gone: NDArray[np.bool_]) -> tuple[NDArray[np.int32], int]:
    """Return the enumerated instances in an order in which the removed features vary slowest.

    Parameters
    ----------
    cardinalities : ndarray of int, shape (n_features,)
        Of the enumerated features, the outermost first.
    gone : ndarray of bool, shape (n_features,)
        Which of them are removed.

    Returns
    -------
    places : ndarray of int, shape (n_instances,)
        Where each instance was.
    n_kept : int
        Number of instances of the kept features.
    """
    n = 1
    for i in range(cardinalities.size):
        n *= cardinalities[i]
    places = np.zeros(n, dtype=np.int32)
    size, n_kept = 1, 1
    for removed in (False, True):
        stride = 1
        for i in range(cardinalities.size - 1, -1, -1):
            if gone[i] == removed:
                for value in range(1, cardinalities[i]):
                    for j in range(size):
                        places[value * size + j] = places[j] + value * stride
                size *= cardinalities[i]
            stride *= cardinalities[i]
        if not removed:
            n_kept = size
    return places, n_kept


@compiled
def kept_run(cardinalities: Integers, gone: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many outer features there are before the innermost kept ones, and the instances of the latter."""
    n_outer, run = cardinalities.size, 1
    while n_outer > 0 and not gone[n_outer - 1]:
        n_outer -= 1
        run *= cardinalities[n_outer]
    return n_outer, run


@compiled
def products(rows: Floats, cardinalities: Integers, chosen: NDArray[np.bool_], start: float) -> Floats:
    """Return the products of one entry from each chosen row, the last row varying fastest."""
    n = 1
    for i in range(cardinalities.size):
        if chosen[i]:
            n *= cardinalities[i]
    out = np.empty(n)
    out[0] = start
    size = 1
    for i in range(cardinalities.size - 1, -1, -1):
        if chosen[i]:
            for value in range(cardinalities[i] - 1, -1, -1):
                for j in range(size):
                    out[value * size + j] = out[j] * rows[i, value]
            size *= cardinalities[i]
    return out


@compiled
def sums_of_chosen(rows: Floats, cardinalities: Integers, chosen: NDArray[np.bool_]) -> Floats:
    """Return the sums of one entry from each chosen row, the last row varying fastest."""
    n = 1
    for i in range(cardinalities.size):
        if chosen[i]:
            n *= cardinalities[i]
    out = np.empty(n)
    out[0] = 0.0
    size = 1
    for i in range(cardinalities.size - 1, -1, -1):
        if chosen[i]:
            for value in range(cardinalities[i] - 1, -1, -1):
                for j in range(size):
                    out[value * size + j] = out[j] + rows[i, value]
            size *= cardinalities[i]
    return out
