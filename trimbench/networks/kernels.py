"""Compiled counts of categories, and sums of columns.

Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled

Floats = NDArray[np.float64]


@compiled
def count_pairs(first: NDArray[Any], second: NDArray[Any], table: NDArray[np.int64]) -> None:
    """Add to a table of shape (n_first, n_second) how often two codes occur together; negative ones are left out."""
    for row in range(len(first)):
        if first[row] >= 0 and second[row] >= 0:
            table[first[row], second[row]] += 1


# Additions that run side by side, so that none waits for the one before it.
_LANES = 8


@compiled
def sums_of_pairs(values: Floats, weights: Floats, unit: float) -> Floats:
    """Return the sums of weights, values and their squares, each with its rounding error, of shape (3, 2).

    Several sums run side by side, so that none waits for the one before it: as many as `values` and `weights`, of shape
    (n, n_lanes), have columns. NaN is left out, and values are multiplied by the unit, a power of two.
    """
    sums = np.zeros((6, values.shape[1]))
    for row in range(len(values)):
        for lane in range(values.shape[1]):
            x = values[row, lane] * unit
            w = weights[row, lane] if x == x else 0.0
            x = x if x == x else 0.0
            before = sums[0, lane]
            total = before + w
            there = total - before
            sums[1, lane] += (before - (total - there)) + (w - there)
            sums[0, lane] = total
            # The halves of the digits of both give the rounding error of a product (Dekker).
            wide, other = 134217729.0 * x, 134217729.0 * w  # 2^27 + 1
            x1, w1 = wide - (wide - x), other - (other - w)
            x2, w2 = x - x1, w - w1
            first = w * x
            rest = ((x1 * w1 - first) + (x1 * w2 + x2 * w1)) + x2 * w2
            before = sums[2, lane]
            total = before + first
            there = total - before
            sums[3, lane] += (before - (total - there)) + (first - there) + rest
            sums[2, lane] = total
            wide = 134217729.0 * first
            w1 = wide - (wide - first)
            w2 = first - w1
            square = first * x
            rest = (((x1 * w1 - square) + (x1 * w2 + x2 * w1)) + x2 * w2) + rest * x
            before = sums[4, lane]
            total = before + square
            there = total - before
            sums[5, lane] += (before - (total - there)) + (square - there) + rest
            sums[4, lane] = total
    found = np.zeros((3, 2))
    for kind in range(3):
        for lane in range(values.shape[1]):
            before, value = found[kind, 0], sums[2 * kind, lane]
            total = before + value
            there = total - before
            found[kind, 0] = total
            found[kind, 1] += (before - (total - there)) + (value - there) + sums[2 * kind + 1, lane]
    return found
