"""L1 norms of a table with one axis summed out, for many axes in one pass over blocks of the table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled, compiled_sums

Floats = NDArray[np.float64]

# Entries of a block: 128 KiB stay near the processor while all axes within the block are summed.
_BLOCK = 2**14


@compiled_sums
def sum_norm(one: Floats, other: Floats) -> float:
    """Return the sum of |one + other|."""
    total = 0.0
    for i in range(one.size):
        total += abs(one[i] + other[i])
    return total


@compiled_sums
def short_runs_norm(table: Floats, inner: int) -> float:
    """Return `axis_norm` of an axis of two values with runs of length 1, 2 or 4, written out for speed."""
    total = 0.0
    if inner == 1:
        for at in range(0, table.size, 2):
            total += abs(table[at] + table[at + 1])
    elif inner == 2:
        for at in range(0, table.size, 4):
            total += abs(table[at] + table[at + 2]) + abs(table[at + 1] + table[at + 3])
    else:
        for at in range(0, table.size, 8):
            total += abs(table[at] + table[at + 4]) + abs(table[at + 1] + table[at + 5])
            total += abs(table[at + 2] + table[at + 6]) + abs(table[at + 3] + table[at + 7])
    return total


@compiled
def axis_norm(table: Floats, cardinality: int, inner: int) -> float:
    """Return the sum of |t| over a table whose axis, of `cardinality` runs of length `inner`, is summed out."""
    if cardinality == 2 and inner in (1, 2, 4):
        return short_runs_norm(table, inner)
    total = 0.0
    if cardinality == 1:
        for entry in table:
            total += abs(entry)
        return total
    entries = np.empty(min(_BLOCK, inner))
    for start in range(0, table.size, cardinality * inner):
        # Long runs are added up block by block, which keeps the rounding error of a short sum.
        for first in range(start, start + inner, _BLOCK):
            size = min(_BLOCK, start + inner - first)
            one = table[first : first + size]
            if cardinality > 2:
                entries[:size] = one
                for value in range(2, cardinality):
                    at = first + value * inner
                    entries[:size] += table[at : at + size]
                one = entries[:size]
            total += sum_norm(one, table[first + inner : first + inner + size])
    return total


@compiled
def axis_norms(table: Floats, shape: NDArray[np.int64], axes: NDArray[np.int64], out: Floats) -> None:
    """Write the L1 norm of a table with each of some axes summed out.

    Parameters
    ----------
    table : ndarray of shape (prod(shape),)
    shape : ndarray of int
    axes : ndarray of int, shape (n_axes,)
    out : ndarray of shape (n_axes,)
        Is written.
    """
    inner = np.ones(shape.size + 1, dtype=np.int64)
    for axis in range(shape.size - 1, -1, -1):
        inner[axis] = inner[axis + 1] * shape[axis]
    # Runs of the axes from `split` on lie within one block.
    split = shape.size
    while split > 0 and inner[split - 1] <= _BLOCK:
        split -= 1
    block = inner[split]
    out[:] = 0.0
    for start in range(0, table.size, block):
        part = table[start : start + block]
        for place in range(axes.size):
            axis = axes[place]
            if axis >= split:
                out[place] += axis_norm(part, shape[axis], inner[axis + 1])
    for place in range(axes.size):
        axis = axes[place]
        if axis < split:
            out[place] = axis_norm(table, shape[axis], inner[axis + 1])
