"""The compiled loop that runs a table program: products of tables and their sums, without a table in between.

Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled

# How an input depends on the run of entries that are computed together: not at all, entry by entry, or in part.
CONSTANT, CONTIGUOUS, GATHERED = 0, 1, 2
# A table is scaled when its largest entry leaves these bounds: products of several such tables are far from vanishing.
SMALLEST, LARGEST = 2.0**-100, 2.0**100


@compiled
def _pair(
    work: NDArray[np.float64],
    inputs: NDArray[np.int64],
    bases: NDArray[np.int64],
    offsets: NDArray[np.uint32],
    outer: int,
    out: NDArray[np.float64],
) -> None:
    """Write one run of the sum over two values of the product of two inputs, the most frequent step, at once."""
    length = len(out)
    one, other = (0, 1) if inputs[0, 2] == GATHERED else (1, 0)
    start = bases[one] + np.int64(offsets[inputs[one, 1] + outer])
    a, b = work[start:], work[start + inputs[one, 0] :]
    start = bases[other] + np.int64(offsets[inputs[other, 1] + outer])
    c, d = work[start:], work[start + inputs[other, 0] :]
    places = offsets[inputs[one, 3] : inputs[one, 3] + length]
    if inputs[other, 2] == GATHERED:
        others = offsets[inputs[other, 3] : inputs[other, 3] + length]
        for j in range(length):
            i, k = places[j], others[j]
            out[j] = a[i] * c[k] + b[i] * d[k]
    elif inputs[one, 2] == GATHERED:
        for j in range(length):
            i = places[j]
            out[j] = a[i] * c[j] + b[i] * d[j]
    else:
        for j in range(length):
            out[j] = a[j] * c[j] + b[j] * d[j]


@compiled
def run_steps(
    work: NDArray[np.float64],
    steps: NDArray[np.int64],
    inputs: NDArray[np.int64],
    bases: NDArray[np.int64],
    offsets: NDArray[np.uint32],
    buffer: NDArray[np.float64],
    scaled: bool,
) -> int:
    """Run a program on `work`, which holds all its tables; see `table_program.TableProgram` for the arguments.

    Returns the exponent of two by which the last table must be multiplied; 0 unless `scaled`.
    """
    exponent = 0
    for step in range(steps.shape[0]):
        n_outer, length, n_values, first, last, target = steps[step]
        product, tops = buffer[:length], buffer[length : 2 * length]
        tops[:] = 0.0
        is_pair = (
            last - first == 2 and n_values == 2 and inputs[first, 2] != CONSTANT and inputs[last - 1, 2] != CONSTANT
        )
        for outer in range(n_outer):
            # Views and unsigned offsets: their indices need no check for negative numbers, and loops are vectorised.
            out = work[target + outer * length : target + (outer + 1) * length]
            if is_pair:
                _pair(work, inputs[first:last], bases[first:last], offsets, outer, out)
            for value in range(0 if is_pair else n_values):
                # One input after another is multiplied into a buffer that stays in the first cache.
                constant = 1.0
                empty = True
                for i in range(first, last):
                    origin = bases[i] + np.int64(offsets[inputs[i, 1] + outer]) + value * inputs[i, 0]
                    kind = inputs[i, 2]
                    if kind == CONSTANT:
                        constant *= work[origin]
                    elif kind == CONTIGUOUS:
                        table = work[origin : origin + length]
                        if empty:
                            for j in range(length):
                                product[j] = table[j]
                        else:
                            for j in range(length):
                                product[j] *= table[j]
                        empty = False
                    else:
                        table = work[origin:]
                        places = offsets[inputs[i, 3] : inputs[i, 3] + length]
                        if empty:
                            for j in range(length):
                                product[j] = table[places[j]]
                        else:
                            for j in range(length):
                                product[j] *= table[places[j]]
                        empty = False
                if empty:
                    product[:] = 1.0
                if value == 0:
                    for j in range(length):
                        out[j] = constant * product[j]
                else:
                    for j in range(length):
                        out[j] += constant * product[j]
            if scaled:
                for j in range(length):
                    tops[j] = max(tops[j], out[j])
        largest = tops.max()
        if largest > 0.0 and not SMALLEST < largest < LARGEST:
            shift = math.frexp(largest)[1]
            exponent += shift
            # Subnormal numbers have no reciprocal: the factor is applied in two halves.
            half = -shift // 2
            one, other = math.ldexp(1.0, half), math.ldexp(1.0, -shift - half)
            made = work[target : target + n_outer * length]
            for j in range(n_outer * length):
                made[j] = made[j] * one * other
    return exponent
