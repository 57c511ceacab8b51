"""Compiled loops over tables, sums and rows; this file imports numba, so it is loaded only for large problems.

Machine code is kept by file, in ``__pycache__``. After a change to a kernel that kernels of other files call, delete
that folder.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled, compiled_sums
from trimbench.trimming.thresholds import HIGHEST_LOG_ODDS, NO_MASS, TIE_TOLERANCE, TIED_LOG_ODDS

# L1 norms of a table with one axis summed out, for many axes in one pass over blocks of the table.

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


# Balances of the cuts of every subset that has one feature more, which `search.row_scores` explains.


@compiled
def highest_balance(log_odds: Floats, weights: Floats, mass: Floats, heads: NDArray[np.int64]) -> float:
    """Return the highest balance of the parts of all cells, by merging the sorted lists of the values.

    Parameters
    ----------
    log_odds : ndarray of shape (n_cells,)
        In ascending order.
    weights : ndarray of shape (n_values,)
        What each value adds to them.
    mass : ndarray of shape (n_cells, n_values)
        Signed mass of each part.
    heads : ndarray of int64, shape (n_values,)
        Is written: the next cell in the list of each value.
    """
    n_cells, n_values = mass.shape
    total = 0.0
    for cell in range(n_cells):
        for value in range(n_values):
            total += mass[cell, value]
    heads[:] = 0
    best, below, last, started = total, 0.0, 0.0, False
    while True:
        lowest, chosen = 0.0, -1
        for value in range(n_values):
            while heads[value] < n_cells and abs(mass[heads[value], value]) <= NO_MASS:
                heads[value] += 1
            if heads[value] == n_cells:
                continue
            odds, weight = log_odds[heads[value]], weights[value]
            moved = np.inf if np.inf in (odds, weight) else odds + weight
            if HIGHEST_LOG_ODDS < moved < np.inf:
                moved = HIGHEST_LOG_ODDS
            if chosen < 0 or moved < lowest:
                lowest, chosen = moved, value
        if chosen < 0:
            break
        if started and lowest - last > TIED_LOG_ODDS:
            best = max(best, total - 2.0 * below)
        below += mass[heads[chosen], chosen]
        heads[chosen] += 1
        last, started = lowest, True
    if last < np.inf:
        best = max(best, -total)
    return best


@compiled
def binary_balances(
    packed: NDArray[np.uint8],
    places: NDArray[np.int64],
    signed: Floats,
    log_odds: Floats,
    totals: Floats,
    weights: Floats,
    wanted: NDArray[np.bool_],
) -> Floats:
    """Return the highest balance with each wanted binary feature added, shape (n_binary,); 0 for the others.

    Parameters
    ----------
    packed : ndarray of uint8, shape (n_bytes, n_rows)
        Bit 7 - j of byte b is feature 8 b + j.
    places : ndarray of int64, shape (n_rows,)
        The cell of each row.
    signed : ndarray of shape (n_rows,)
        Weight of each row, negative where the original decides against the positive class.
    log_odds, totals : ndarrays of shape (n_cells,)
        Log-odds, ascending, and signed mass of the cells.
    weights : ndarray of shape (n_binary, 2)
    wanted : ndarray of bool, shape (n_binary,)
    """
    n_bytes, n_rows = packed.shape
    n_cells = log_odds.size
    bits = np.zeros((256, 8))
    for byte in range(256):
        for lane in range(8):
            bits[byte, lane] = (byte >> (7 - lane)) & 1
    ones = np.empty((n_cells, 8))
    mass = np.empty((n_cells, 2))
    heads = np.zeros(2, dtype=np.int64)
    found = np.zeros(wanted.size)
    for b in range(n_bytes):
        end = min(8, wanted.size - 8 * b)
        if not wanted[8 * b : 8 * b + end].any():
            continue
        ones[:] = 0.0
        for row in range(n_rows):
            sign, cell, byte = signed[row], places[row], packed[b, row]
            for lane in range(8):
                ones[cell, lane] += sign * bits[byte, lane]
        for lane in range(end):
            if wanted[8 * b + lane]:
                for cell in range(n_cells):
                    mass[cell, 1] = ones[cell, lane]
                    mass[cell, 0] = totals[cell] - ones[cell, lane]
                found[8 * b + lane] = highest_balance(log_odds, weights[8 * b + lane], mass, heads)
    return found


@compiled
def balance(
    codes: NDArray[np.int64],
    places: NDArray[np.int64],
    signed: Floats,
    log_odds: Floats,
    weights: Floats,
) -> float:
    """Return the highest balance with one feature added; `codes` has its value in each row, shape (n_rows,)."""
    mass = np.zeros((log_odds.size, weights.size))
    for row in range(codes.size):
        mass[places[row], codes[row]] += signed[row]
    return float(highest_balance(log_odds, weights, mass, np.zeros(weights.size, dtype=np.int64)))


# Agreement on rows of a subset that has one feature more, which `search.row_scores` explains.

Integers = NDArray[np.int64]


@compiled
def agreement(
    logs: Floats,
    places: Integers,
    values: NDArray[Any],
    weights: Floats,
    decisions: Integers,
    row_weights: Floats,
) -> float:
    """Return the weight of the rows whose decision stands; the parameters are those of `agreement_with`."""
    n_classes = logs.shape[1]
    agreed = 0.0
    for row in range(places.size):
        cell, value, decision = places[row], values[row], decisions[row]
        wanted = logs[cell, decision] + weights[value, decision]
        # The decision stands if no class before it is as probable, and none after it more probable.
        top = wanted
        for k in range(n_classes):
            top = max(top, logs[cell, k] + weights[value, k])
        if not wanted >= top - TIE_TOLERANCE:
            continue
        is_first = True
        for k in range(decision):
            if logs[cell, k] + weights[value, k] >= top - TIE_TOLERANCE:
                is_first = False
                break
        if is_first:
            agreed += row_weights[row]
    return agreed


# Losses of naive Bayes trimmings on a lattice: laws of sums are products of polynomials, one for each feature.

# What a law is off by that is a product of polynomials, and from where on it is multiplied anew instead of divided.
_FIRST_ERROR, _MOST_ERROR = 1e-13, 1e-9


@compiled
def multiply_law(law: Floats, end: int, cells: Integers, factors: Floats, start: int, stop: int) -> int:
    """Multiply a polynomial of `end` coefficients by one with few; return the number of its coefficients."""
    grown = end + int(cells[stop - 1])
    for x in range(end, grown):
        law[x] = 0.0
    for x in range(grown - 1, -1, -1):
        total = 0.0
        for k in range(start, stop):
            if x >= cells[k]:
                total += factors[k] * law[x - cells[k]]
        law[x] = total
    return grown


@compiled
def divide_law(law: Floats, end: int, cells: Integers, factors: Floats, start: int, stop: int) -> float:
    """Divide a polynomial by one of its factors; return by how much its error grows, 0 if it cannot be divided.

    The division begins at the end whose coefficient is at least the sum of the others.
    """
    last = stop - 1
    top = int(cells[last])
    total = 0.0
    for k in range(start, stop):
        total += factors[k]
    n_left, gap = end - top, top
    if 2.0 * factors[start] >= total and factors[start] > 0.0:
        lead = float(factors[start])
        if last > start:
            gap = int(cells[start + 1])
        for x in range(n_left):
            value = law[x]
            for k in range(start + 1, stop):
                if x >= cells[k]:
                    value -= factors[k] * law[x - cells[k]]
            law[x] = value / lead
    elif 2.0 * factors[last] >= total and factors[last] > 0.0:
        lead = float(factors[last])
        gap = top - int(cells[last - 1])
        for x in range(n_left - 1, -1, -1):
            value = law[x + top]
            for k in range(start, last):
                at = x + top - cells[k]
                if at < n_left:
                    value -= factors[k] * law[at + top]
            law[x + top] = value / lead
        for x in range(n_left):
            law[x] = law[x + top]
    else:
        return 0.0
    for x in range(n_left, end):
        law[x] = 0.0
    if gap == 0:
        return 1.0 / lead
    rest, steps = (total - lead) / lead, n_left / gap + 1.0
    if rest < 1.0:
        steps = min(steps, 1.0 / (1.0 - rest))
    return steps / lead


@compiled
def lattice_loss(
    laws: Floats, ends: Integers, reached: int, prior: Floats, certain: float, spread: float, out: Floats
) -> None:
    """Write bounds on a loss, from laws of the kept (first two rows) and of the removed features; see `losses`."""
    high = excess = above = below = 0.0
    half, wide = math.exp(0.5 * spread), math.expm1(spread)
    at = ends[1]
    for x in range(ends[0]):
        while at > 0 and at > reached - x:
            at -= 1
            above += laws[2, at]
            below += laws[3, at]
        positive, negative = prior[0] * laws[0, x], prior[1] * laws[1, x]
        one = positive * (2.0 * (above + certain) - 1.0)
        other = negative * (2.0 * below - 1.0)
        high += positive + negative - abs(one + other)
        if one * other < 0.0:
            over = half * math.sqrt(min(abs(one), abs(other))) - math.sqrt(max(abs(one), abs(other)))
            if over > 0.0:
                excess += over * over
    high *= 0.5
    out[1] = high
    out[0] = high - excess / wide if wide > 0.0 else high


@compiled
def build_laws(
    features: Integers,
    gone: NDArray[np.bool_],
    offsets: Integers,
    cells: Integers,
    factors: Floats,
    laws: Floats,
    row: int,
) -> int:
    """Write the laws of the sum of the features that are not gone; return the number of their coefficients."""
    end = 1
    for side in range(2):
        end = 1
        laws[row + side, 0] = 1.0
        for i in features:
            if not gone[i]:
                end = multiply_law(laws[row + side], end, cells, factors[side], offsets[i], offsets[i + 1])
    return end


@compiled
def move_unit(
    members: Integers,
    source: int,
    laws: Floats,
    ends: Integers,
    errors: Floats,
    features: Integers,
    gone: NDArray[np.bool_],
    offsets: Integers,
    cells: Integers,
    factors: Floats,
) -> None:
    """Move a unit from the kept to the removed features of some laws, or back.

    Parameters
    ----------
    members : ndarray of int
        The features of the unit.
    source : int
        Whether it is kept (0) or removed (1).
    laws : ndarray of shape (4, n_cells)
        Of the kept and of the removed features under each class; overwritten, as are the next four.
    ends : ndarray of shape (2,)
        The numbers of their coefficients.
    errors : ndarray of shape (2,)
        What the law that the unit leaves may be off by in each class.
    features : ndarray of int
        The features of that law before any was gone.
    gone : ndarray of bool
        Which features have left it.
    offsets, cells, factors : ndarrays
        Where the values of each feature begin, their cells, and their probabilities under each class.
    """
    divided, target = True, 1 - source
    for i in members:
        gone[i] = True
        start, stop = offsets[i], offsets[i + 1]
        end = ends[target]
        for side in range(2):
            ends[target] = multiply_law(laws[2 * target + side], end, cells, factors[side], start, stop)
            if divided:
                growth = divide_law(laws[2 * source + side], ends[source], cells, factors[side], start, stop)
                errors[side] = growth * (errors[side] + (stop - start + 2) * 2.3e-16)
                divided = growth > 0.0 and errors[side] < _MOST_ERROR
        ends[source] -= cells[stop - 1]
    if not divided:
        ends[source] = build_laws(features, gone, offsets, cells, factors, laws, 2 * source)
        errors[0] = errors[1] = _FIRST_ERROR


@compiled
def copy_laws(laws: Floats, ends: Integers, work: Floats, new_ends: Integers, errors: Floats) -> None:
    """Copy the laws of a node."""
    for part in range(2):
        new_ends[part] = ends[part]
        errors[part] = _FIRST_ERROR
        for side in range(2 * part, 2 * part + 2):
            for x in range(ends[part]):
                work[side, x] = laws[side, x]


@compiled
def losses_after_each(
    candidates: Integers,
    source: int,
    begins: Integers,
    members: Integers,
    laws: Floats,
    ends: Integers,
    features: Integers,
    offsets: Integers,
    cells: Integers,
    factors: Floats,
    reached: int,
    prior: Floats,
    more: Floats,
    out: Floats,
) -> None:
    """Write bounds on the loss when each candidate is removed, or put back.

    Parameters
    ----------
    candidates : ndarray of int
    source : int
        Whether they are kept (0) or removed (1).
    begins, members : ndarrays of int
        Where the members of each unit begin, and the members.
    laws, ends, features, offsets, cells, factors
        See `move_unit`; nothing is overwritten.
    reached, prior, more
        See `engines.lattice.losses`.
    out : ndarray of shape (n_candidates, 2)
    """
    work, errors = np.empty_like(laws), np.empty(2)
    new_ends = np.empty_like(ends)
    gone = np.zeros(offsets.size - 1, dtype=np.bool_)
    for k in range(candidates.size):
        unit = members[begins[candidates[k]] : begins[candidates[k] + 1]]
        copy_laws(laws, ends, work, new_ends, errors)
        move_unit(unit, source, work, new_ends, errors, features, gone, offsets, cells, factors)
        lattice_loss(work, new_ends, reached, prior, more[0, k], more[1, k], out[k])
        out[k, 0] -= errors[0] + errors[1]
        out[k, 1] += errors[0] + errors[1]
        for i in unit:
            gone[i] = False


@compiled
def price_of_needed(
    sequence: Integers,
    costs: Floats,
    left: float,
    level: float,
    begins: Integers,
    members: Integers,
    laws: Floats,
    ends: Integers,
    features: Integers,
    offsets: Integers,
    cells: Integers,
    factors: Floats,
    reached: int,
    prior: Floats,
    uncertain: Floats,
    spread: Floats,
) -> float:
    """Return a lower bound on what units cost of which a subset must keep some, as far as it exceeds `left`.

    Units are removed one after another until a loss reaches the level: one of these has to be kept. Then the next group
    begins. `uncertain` and `spread` are those of the units, then those of the node; for the rest see
    `losses_after_each`.
    """
    work, errors, bounds = np.empty_like(laws), np.empty(2), np.empty(2)
    new_ends = np.empty_like(ends)
    gone = np.zeros(offsets.size - 1, dtype=np.bool_)
    price, at = 0.0, 0
    n_units = uncertain.size - 1
    while at < sequence.size:
        copy_laws(laws, ends, work, new_ends, errors)
        gone[:] = False
        sure, wide, cheapest, found = uncertain[n_units], spread[n_units], math.inf, False
        while at < sequence.size and not found:
            u = sequence[at]
            at += 1
            sure *= uncertain[u]
            wide -= spread[u]
            cheapest = min(cheapest, costs[u])
            unit = members[begins[u] : begins[u + 1]]
            move_unit(unit, 0, work, new_ends, errors, features, gone, offsets, cells, factors)
            lattice_loss(work, new_ends, reached, prior, 1.0 - sure, max(wide, 0.0), bounds)
            found = bounds[0] - errors[0] - errors[1] >= level
        if found:
            price += cheapest
        if price > left:
            break
    return price


@compiled
def window_masses(
    sums: Floats,
    places: Integers,
    masses: Floats,
    other_sums: Floats,
    other_places: Integers,
    other_masses: Floats,
    needed: float,
    width: float,
    out: Floats,
) -> None:
    """Add up the masses of negative and of positive instances in each doubtful cell.

    Parameters
    ----------
    sums, places, masses : ndarrays of shapes (n,), (n,) and (2, n)
        Sums of one half of the features in increasing order, their cells, and their probabilities under each class.
    other_sums, other_places, other_masses : ndarrays
        Of the other half; the cells count from the first doubtful one, the probabilities have the prior in them.
    needed, width : float
        An instance is positive iff its sum is at least `needed`; only sums within `width` of it can be doubtful.
    out : ndarray of shape (2, n_cells)
    """
    begin = sums.size
    for j in range(other_sums.size):
        while begin > 0 and sums[begin - 1] + other_sums[j] >= needed - width:
            begin -= 1
        for i in range(begin, sums.size):
            total = sums[i] + other_sums[j]
            if total > needed + width:
                break
            cell = places[i] + other_places[j]
            if 0 <= cell < out.shape[1]:
                mass = masses[0, i] * other_masses[0, j] + masses[1, i] * other_masses[1, j]
                out[int(total >= needed), cell] += mass
