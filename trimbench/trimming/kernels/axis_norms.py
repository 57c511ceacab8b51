"""L1 norms of a table with one axis summed out, for many axes in one pass over blocks of the table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled, compiled_sums

# Entries of a block: 128 KiB stay near the processor while all axes within the block are summed.
_BLOCK = 2**14


@compiled_sums
def axis_norm(table: NDArray[np.float64], cardinality: int, inner: int) -> float:
    """Return the sum of |t| over a table whose axis, of `cardinality` runs of length `inner`, is summed out."""
    total = 0.0
    run = cardinality * inner
    if cardinality == 2 and inner == 1:
        for place in range(0, table.size, 2):
            total += abs(table[place] + table[place + 1])
        return total
    for start in range(0, table.size, run):
        if cardinality == 2:
            for place in range(start, start + inner):
                total += abs(table[place] + table[place + inner])
        else:
            for place in range(start, start + inner):
                entry = 0.0
                for value in range(cardinality):
                    entry += table[place + value * inner]
                total += abs(entry)
    return total


@compiled
def outer_axis_norm(table: NDArray[np.float64], cardinality: int, inner: int) -> float:
    """Return `axis_norm` of an axis with long runs, added up block by block."""
    total = 0.0
    entries = np.empty(min(_BLOCK, inner))
    for start in range(0, table.size, cardinality * inner):
        for first in range(0, inner, _BLOCK):
            size = min(_BLOCK, inner - first)
            entries[:size] = table[start + first : start + first + size]
            for value in range(1, cardinality - 1):
                at = start + value * inner + first
                entries[:size] += table[at : at + size]
            at = start + (cardinality - 1) * inner + first
            if cardinality > 1:
                total += sum_norm(entries[:size], table[at : at + size])
            else:
                total += np.abs(entries[:size]).sum()
    return total


@compiled_sums
def sum_norm(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the sum of |one + other|."""
    total = 0.0
    for i in range(one.size):
        total += abs(one[i] + other[i])
    return total


@compiled
def axis_norms(
    table: NDArray[np.float64], shape: NDArray[np.int64], axes: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
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
            out[place] = outer_axis_norm(table, shape[axis], inner[axis + 1])
