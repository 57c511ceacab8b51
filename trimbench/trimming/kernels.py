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
from trimbench.trimming.limits import FREE, KEPT, REMOVED
from trimbench.trimming.thresholds import HIGHEST_LOG_ODDS, NO_MASS, TIE_TOLERANCE, TIED_LOG_ODDS

Floats = NDArray[np.float64]

# Balances of the cuts of every subset that has one feature more, which `search.row_scores` explains.


@compiled
def highest_balance(log_odds: Floats, weights: Floats, mass: Floats, heads: NDArray[np.int64]) -> float:
    """Return the highest balance of the parts of all cells, by merging the sorted lists of the values.

    Parameters
    ----------
    log_odds : ndarray of shape (n_cells,)
        In ascending order.
    weights : ndarray of shape (n_values,)
        What each value adds to them; no sum is NaN.
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
            moved = log_odds[heads[value]] + weights[value]
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


# Losses of naive Bayes trimmings on a lattice, see `engines.lattice`: laws of sums are products of polynomials, one of
# few terms for each feature.

States = NDArray[np.int8]
# Where the members of each unit begin; the members; features that every subset keeps, and those that it lacks.
Units = tuple[Integers, Integers, Integers, Integers]
# Where the values of each feature begin; their cells, the first of which is 0; their probabilities under each class.
Table = tuple[Integers, Integers, Floats]
# The sum that makes an instance positive, the prior; of each unit and of what is beside the units: the probability that
# a removed value leaves the decision open, and how far rounding errors lie apart.
Bound = tuple[int, Floats, Floats, Floats]


@compiled
def add_scaled(target: Floats, factor: float, other: Floats) -> None:
    """Add a multiple of some coefficients to as many others."""
    for x in range(target.size):
        target[x] += factor * other[x]


@compiled
def multiply_law(law: Floats, product: Floats, cells: Integers, factors: Floats) -> int:
    """Multiply a polynomial by one with few terms; return the number of coefficients that are written."""
    end = law.size
    grown = end + int(cells[-1])
    if cells.size == 2 and cells[1] < end:
        # In one pass, as nearly all features have two values.
        gap, low, high = int(cells[1]), float(factors[0]), float(factors[1])
        for x in range(gap):
            product[x] = low * law[x]
        both, upper, lower = product[gap:end], law[gap:], law[: end - gap]
        for x in range(both.size):
            both[x] = low * upper[x] + high * lower[x]
        above, rest = product[end:grown], law[end - gap :]
        for x in range(above.size):
            above[x] = high * rest[x]
        return grown
    product[:grown] = 0.0
    for k in range(cells.size):
        add_scaled(product[cells[k] : cells[k] + end], factors[k], law)
    return grown


@compiled
def build_law(state: States, removed: bool, side: int, units: Units, table: Table, law: Floats, room: Floats) -> int:
    """Write the law of the removed features, or of all others, under one class; return the number of coefficients."""
    begins, members, always, never = units
    offsets, cells, factors = table
    here, there, end = law, room, 1
    here[0] = 1.0
    for u in range(-1, state.size):
        if u < 0:
            features = never if removed else always
        elif (state[u] == REMOVED) == removed:
            features = members[begins[u] : begins[u + 1]]
        else:
            continue
        for i in features:
            start, stop = offsets[i], offsets[i + 1]
            end = multiply_law(here[:end], there, cells[start:stop], factors[side, start:stop])
            here, there = there, here
    law[:end] = here[:end]
    return end


@compiled
def node_loss(state: States, units: Units, table: Table, bound: Bound, work: Floats) -> tuple[float, float]:
    """Return bounds on the loss when all units stay but the removed ones; see `engines.lattice.losses`.

    `work`, of shape (7, n_cells), is overwritten.
    """
    reached, prior, uncertain, spreads = bound
    above, spread = uncertain[-1], spreads[-1]
    for u in range(state.size):
        if state[u] == REMOVED:
            above *= uncertain[u]
        else:
            spread += spreads[u]
    for side in range(2):
        n_kept = build_law(state, False, side, units, table, work[side], work[4])
        at = build_law(state, True, side, units, table, work[2 + side], work[4])
    # The probabilities that the removed features lift a kept sum over the bound.
    above, below = 1.0 - above, 0.0
    for x in range(n_kept):
        while at > 0 and at > reached - x:
            at -= 1
            above += work[2, at]
            below += work[3, at]
        work[5, x], work[6, x] = above, below
    high, excess = merged_loss(work, n_kept, prior, math.exp(0.5 * spread))
    wide = math.expm1(spread)
    return (high - excess / wide if wide > 0.0 else high), high


@compiled_sums
def merged_loss(work: Floats, n_kept: int, prior: Floats, half: float) -> tuple[float, float]:
    """Return the loss of kept sums whose cells are merged, and by how much that may be too high; see `losses`."""
    high = excess = 0.0
    for x in range(n_kept):
        one = prior[0] * work[0, x]
        other = prior[1] * work[1, x]
        high += one + other
        one *= 2.0 * work[5, x] - 1.0
        other *= 2.0 * work[6, x] - 1.0
        high -= abs(one + other)
        opposed = one * other < 0.0
        one, other = abs(one), abs(other)
        over = half * math.sqrt(one if one < other else other) - math.sqrt(other if one < other else one)
        over = over if over > 0.0 and opposed else 0.0
        excess += over * over
    return 0.5 * high, excess


@compiled
def losses_without_each(
    candidates: Integers, state: States, units: Units, table: Table, bound: Bound, work: Floats, out: Floats
) -> None:
    """Write bounds on the loss when each candidate, which is not removed, is; `out` has shape (n_candidates, 2)."""
    for k in range(candidates.size):
        before = state[candidates[k]]
        state[candidates[k]] = REMOVED
        out[k, 0], out[k, 1] = node_loss(state, units, table, bound, work)
        state[candidates[k]] = before


@compiled
def needs_more(
    state: States,
    free: Integers,
    costs: Floats,
    left: float,
    level: float,
    units: Units,
    table: Table,
    bound: Bound,
    work: Floats,
) -> tuple[bool, int]:
    """Return whether a subset below a node has to keep more free units than it can pay, and the evaluations.

    Three groups of units are removed in turn, of which it must keep one each, since without the group the loss is too
    high: the cheapest one.
    """
    price = 0.0
    for first in range(3):
        least = math.inf
        for u in free[first::3]:
            state[u] = REMOVED
            least = min(least, costs[u])
        low, _ = node_loss(state, units, table, bound, work)
        state[free[first::3]] = FREE
        if low < level:
            return False, first + 1
        price += least
    return price > left, 3


@compiled
def n_before_one(free: Integers, costs: Floats, left: float) -> int:
    """Return how many of the free units come before the point where at most one more, or not each, can be paid."""
    for count in range(1, free.size):
        left -= costs[free[count - 1]]
        rest = np.sort(costs[free[count:]])
        if rest[-1] > left or (rest.size > 1 and rest[0] + rest[1] > left):
            return count
    return int(free.size)


@compiled
def keep_one(
    state: States,
    free: Integers,
    level: float,
    units: Units,
    table: Table,
    bound: Bound,
    work: Floats,
    below: States,
) -> tuple[int, int]:
    """Write the subsets that keep one of the free units and may lose less than the level, by halving.

    Returns
    -------
    n_subsets, n_evaluations : int
    """
    stack = [(0, free.size)]
    n_subsets, n_evaluations = 0, 0
    while stack:
        start, stop = stack.pop()
        middle = (start + stop) // 2
        for first, last in ((start, middle), (middle, stop)):
            state[free] = REMOVED
            state[free[first:last]] = KEPT
            n_evaluations += 1
            if node_loss(state, units, table, bound, work)[0] >= level:
                continue
            if last - first > 1:
                stack.append((first, last))
            else:
                below[n_subsets] = state
                n_subsets += 1
    return n_subsets, n_evaluations


@compiled
def expand(
    state: States,
    lowest: float,
    left: float,
    level: float,
    order: Integers,
    costs: Floats,
    copies: Integers,
    units: Units,
    table: Table,
    bound: Bound,
    work: Floats,
    below: States,
    bounds: Floats,
) -> tuple[int, int]:
    """Write what is below a node of the search, as `LatticeSearch` has it.

    Parameters
    ----------
    state : ndarray of int8, shape (n_units,)
        Of the node; overwritten.
    lowest, left, level : float
        Its bound; what its free units may cost together; the loss at which a branch is closed.
    order, costs, copies : ndarrays of shape (n_units,)
        The units, the most missed first; their costs; a number that units with equal tables share.
    work : ndarray of shape (7, n_cells)
        Overwritten.
    below : ndarray of int8, shape (2 n_units, n_units)
        Overwritten by the nodes below.
    bounds : ndarray of shape (2 n_units, 2)
        Overwritten by bounds on their losses, where units are free.

    Returns
    -------
    n_nodes, n_evaluations : int
    """
    n_nodes, n_evaluations, n_more = 0, 0, 0
    while True:
        free = order[(state[order] == FREE) & (costs[order] <= left)]
        if (state == FREE).sum() > free.size:
            state[(state == FREE) & (costs > left)] = REMOVED
            n_evaluations += 1
            if node_loss(state, units, table, bound, work)[0] >= level:
                return n_nodes, n_evaluations
        cheapest = np.sort(costs[free])
        if cheapest.sum() <= left:
            state[free] = KEPT
            below[n_nodes] = state
            return n_nodes + 1, n_evaluations
        if cheapest[0] + cheapest[1] > left:
            n_subsets, n_more = keep_one(state, free, level, units, table, bound, work, below[n_nodes:])
            return n_nodes + n_subsets, n_evaluations + n_more
        if free.size > 4 and cheapest[:3].sum() > left:
            is_dead, n_more = needs_more(state, free, costs, left, level, units, table, bound, work)
            n_evaluations += n_more
            if is_dead:
                return n_nodes, n_evaluations
        count = n_before_one(free, costs, left)
        n_evaluations += count
        for k in range(count):
            u = free[k]
            rest, n_gone, least = 0.0, 0, math.inf
            state[u] = REMOVED
            low, high = node_loss(state, units, table, bound, work)
            low = max(low, lowest)
            for v in free[k:]:
                if v == u or (copies[v] == copies[u] and costs[v] >= costs[u]):
                    state[v] = REMOVED
                    n_gone, least = n_gone + 1, min(least, costs[v])
                else:
                    rest += costs[v]
            # Of several copies one could stay, and an equal subset keeps this unit instead.
            is_covered = n_gone > 1 and rest + least <= left
            if n_gone > 1 and rest > left and low < level:
                n_evaluations += 1
                more, high = node_loss(state, units, table, bound, work)
                low = max(low, more)
            if not is_covered and low < level:
                below[n_nodes], bounds[n_nodes, 0], bounds[n_nodes, 1] = state, low, high
                if rest <= left:
                    below[n_nodes][below[n_nodes] == FREE] = KEPT
                n_nodes += 1
            state[free[k:]] = FREE
            state[u] = KEPT
            left -= costs[u]


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


@compiled
def tails_of_halves(
    sums: Floats, tails: Floats, other_sums: Floats, other_masses: Floats, queries: Floats, out: Floats
) -> None:
    """Set the probabilities that the sums of two halves together are at least each query, under two classes.

    Parameters
    ----------
    sums, tails : ndarrays of shapes (n,) and (2, n + 1)
        Sums of one half in increasing order, and the probability of each and all higher ones.
    other_sums, other_masses : ndarrays of shapes (m,) and (2, m)
        Of the other half in increasing order, with their probabilities.
    queries, out : ndarrays of shapes (n_queries,) and (2, n_queries)
    """
    for q in range(queries.size):
        place = 0
        positive = negative = 0.0
        for j in range(other_sums.size - 1, -1, -1):
            rest = queries[q] - other_sums[j]
            while place < sums.size and sums[place] < rest:
                place += 1
            positive += other_masses[0, j] * tails[0, place]
            negative += other_masses[1, j] * tails[1, place]
        out[0, q], out[1, q] = positive, negative
