"""The compiled loops of inference: running a table program, and the search for an elimination order.

Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled

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
    """Write one run of the most frequent step, the sum over two values of the product of two inputs, in one pass."""
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
def _product(
    work: NDArray[np.float64],
    inputs: NDArray[np.int64],
    bases: NDArray[np.int64],
    offsets: NDArray[np.uint32],
    outer: int,
    value: int,
    product: NDArray[np.float64],
) -> float:
    """Multiply one run of each input, one after the other, into a buffer that stays in the L1 cache.

    Returns the product of the inputs that do not depend on the run, which is not in the buffer.
    """
    constant, empty, length = 1.0, True, len(product)
    for i in range(len(bases)):
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
    return constant


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
    """Run a program on `work`, which holds all its tables; see `products.TableProgram` for the arguments.

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
                constant = _product(work, inputs[first:last], bases[first:last], offsets, outer, value, product)
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


# A local search for an order of elimination that takes fewer operations.

# A variable is moved by at most this many places.
LONGEST_MOVE = 16
# At first an order that is worse by this share may be accepted; the share falls to zero.
FIRST_SLACK = 0.5
# Of the generator x -> a x mod m (Park and Miller, 1988, with the multiplier of 1993).
MULTIPLIER, MODULUS = 48271, 2**31 - 1


def room_for(n_tables: int, n_variables: int) -> NDArray[np.int64]:
    """Return room for the tables that `operations` makes, and for its lists of tables."""
    width = n_variables + 1
    n_lists = 3 + -(-(n_tables + width) // width)
    return np.zeros((n_variables + n_lists, width), dtype=np.int64)


@compiled
def operations(
    order: NDArray[np.int64],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.float64],
    step_operations: float,
    limit: float,
    room: NDArray[np.int64],
) -> float:
    """Return the number of operations that an order takes, or some number above `limit` if there are more.

    Parameters
    ----------
    order : ndarray of int64
        The variables to sum out.
    members, starts : ndarray of int64
        Table t has the variables ``members[starts[t] : starts[t + 1]]``.
    sizes : ndarray of float64
        The cardinality of each variable; 1 for those that are fixed.
    step_operations : float
        What an input costs besides its entries.
    room : ndarray of int64
        From `room_for`; its content does not matter.
    """
    n, n_tables, n_variables = len(order), len(starts) - 1, len(sizes)
    # Rows of the room: the tables that are made (their length first), then lists by variable, place and table.
    place, seen, heads = room[n_variables], room[n_variables + 1], room[n_variables + 2]
    following = room[n_variables + 3 :].reshape(-1)
    for variable in range(n_variables):
        place[variable] = n
        seen[variable] = -1
    for i in range(n):
        place[order[i]] = i
    for i in range(n + 1):
        heads[i] = -1
    for table in range(n_tables):
        first = n
        for k in range(starts[table], starts[table + 1]):
            first = min(first, place[members[k]])
        following[table] = heads[first]
        heads[first] = table
    total = 0.0
    for i in range(n + 1):
        n_inputs = 0
        length = 0
        entries = 1.0
        first = n
        made = room[i]
        table = heads[i]
        while table >= 0:
            n_inputs += 1
            own = table < n_tables
            begin = starts[table] if own else 1
            end = starts[table + 1] if own else 1 + room[table - n_tables, 0]
            for k in range(begin, end):
                variable = members[k] if own else room[table - n_tables, k]
                if seen[variable] != i:
                    seen[variable] = i
                    entries *= sizes[variable]
                    if place[variable] != i or i == n:
                        length += 1
                        made[length] = variable
                        first = min(first, place[variable])
            table = following[table]
        total += (entries + step_operations) * n_inputs
        if total > limit or i == n:
            break
        if n_inputs > 0:
            made[0] = length
            following[n_tables + i] = heads[first]
            heads[first] = n_tables + i
    return total


@compiled
def _shift(order: NDArray[np.int64], source: int, target: int) -> None:
    """Move one entry to another place."""
    variable = order[source]
    step = 1 if target > source else -1
    for i in range(source, target, step):
        order[i] = order[i + step]
    order[target] = variable


@compiled
def improve(
    order: NDArray[np.int64],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.float64],
    step_operations: float,
    n_moves: int,
    seed: int,
    room: NDArray[np.int64],
) -> float:
    """Move variables to other places in `order`, which is overwritten by the best order found.

    A move is kept unless it makes the order worse by more than a random share, which falls to zero (threshold
    accepting).

    Returns the operations of the best order; the arguments are those of `operations`.
    """
    n = len(order)
    current = order.copy()
    cost = operations(order, members, starts, sizes, step_operations, np.inf, room)
    best = cost
    state = 1 + seed % (MODULUS - 1)
    for move in range(n_moves):
        state = state * MULTIPLIER % MODULUS
        source = state % n
        state = state * MULTIPLIER % MODULUS
        target = max(0, min(n - 1, source - LONGEST_MOVE + state % (2 * LONGEST_MOVE + 1)))
        state = state * MULTIPLIER % MODULUS
        slack = FIRST_SLACK * (1.0 - move / n_moves) * (state / MODULUS)
        _shift(current, source, target)
        limit = cost * (1.0 + slack)
        changed = operations(current, members, starts, sizes, step_operations, limit, room)
        if changed > limit:
            _shift(current, target, source)
            continue
        cost = changed
        if cost < best:
            best = cost
            order[:] = current
    return best
