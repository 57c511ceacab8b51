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
from trimbench.trimming.decisions import HIGHEST_LOG_ODDS, NO_MASS, TIE_TOLERANCE, TIED_LOG_ODDS
from trimbench.trimming.problem import FREE, KEPT, REMOVED

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
        Overwritten: the next cell in the list of each value.
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
    codes: NDArray[np.int64], places: NDArray[np.int64], signed: Floats, log_odds: Floats, weights: Floats
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
    logs: Floats, places: Integers, values: NDArray[Any], weights: Floats, decisions: Integers, row_weights: Floats
) -> float:
    """Return the weight of the rows whose decision stands; for the arrays see `agreement_with`."""
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
# Where the members of each unit begin; the members; features that every subset keeps, and those that it lacks; room for
# the features that are kept and those that are removed; the number of evaluations, which is counted.
Units = tuple[Integers, Integers, Integers, Integers, Integers, Integers]
# Where the values of each feature begin; their cells, the first of which is 0; their probabilities under each class.
Table = tuple[Integers, Integers, Floats]
# The laws of the first features of a sequence, of any number of them: how many features, and which; where the laws
# begin; the laws under each class.
Chain = tuple[Integers, Integers, Floats]
# The table; of each feature the probability that a removed value leaves the decision open, and the range of rounding
# errors; the prior; the sum that makes an instance positive, and whether that is sometimes certain; the slack of
# bounds; the chains of kept and of removed features; room for the probabilities that these lift a sum over the bound.
Lattice = tuple[Table, Floats, Floats, Floats, int, bool, float, Chain, Chain, Floats]
# What each unit costs; a number that units with equal tables share; the units; a coarse lattice and a fine one.
Problem = tuple[Floats, Integers, Units, tuple[Lattice, Lattice]]


@compiled
def multiply_law(law: Floats, product: Floats, cells: Integers, factors: Floats) -> int:
    """Multiply a polynomial by one with few terms, into `product`; return the number of coefficients written."""
    end = law.size
    grown = end + int(cells[-1])
    done = min(4, cells.size)
    if done > 2 and cells[done - 1] < end:
        # Three or four terms in one pass.
        one, two, three = int(cells[1]), int(cells[2]), int(cells[done - 1])
        p, q, r, s = float(factors[0]), float(factors[1]), float(factors[2]), float(factors[3]) if done == 4 else 0.0
        for x in range(one):
            product[x] = p * law[x]
        for x in range(one, two):
            product[x] = p * law[x] + q * law[x - one]
        for x in range(two, three):
            product[x] = p * law[x] + q * law[x - one] + r * law[x - two]
        every, first, second, third = product[three:end], law[three:], law[three - one :], law[three - two :]
        for x in range(every.size):
            every[x] = (p * first[x] + q * second[x]) + (r * third[x] + s * law[x])
        above, second, third, fourth = product[end:], law[end - one :], law[end - two :], law[end - three :]
        for x in range(one):
            above[x] = q * second[x] + r * third[x] + s * fourth[x]
        for x in range(one, two):
            above[x] = r * third[x] + s * fourth[x]
        for x in range(two, three):
            above[x] = s * fourth[x]
        product[end + three : grown] = 0.0
    elif cells.size > 1 and cells[1] < end:
        # In one pass, as nearly all features have two values.
        gap, low, high = int(cells[1]), float(factors[0]), float(factors[1])
        for x in range(gap):
            product[x] = low * law[x]
        both, upper, lower = product[gap:end], law[gap:], law[: end - gap]
        for x in range(both.size):
            both[x] = low * upper[x] + high * lower[x]
        above, rest = product[end : end + gap], law[end - gap :]
        for x in range(gap):
            above[x] = high * rest[x]
        done = 2
        product[end + gap : grown] = 0.0
    else:
        done = 0
        product[:grown] = 0.0
    while done < cells.size:
        target, low = product[cells[done] :], float(factors[done])
        gap = int(cells[done + 1] - cells[done]) if done + 1 < cells.size else end
        if gap < end:
            high = float(factors[done + 1])
            both, upper, lower = target[gap:end], law[gap:], law[: end - gap]
            for x in range(both.size):
                both[x] += low * upper[x] + high * lower[x]
            above, rest = target[end:], law[end - gap :]
            for x in range(gap):
                target[x] += low * law[x]
                above[x] += high * rest[x]
            done += 2
        else:
            for x in range(end):
                target[x] += low * law[x]
            done += 1
    return grown


@compiled
def extend(chain: Chain, features: Integers, table: Table) -> None:
    """Make a chain one of other features; the product of a common beginning is reused."""
    held, begins, laws = chain
    offsets, cells, factors = table
    place = 0
    while place < min(held[0], features.size) and held[place + 1] == features[place]:
        place += 1
    for depth in range(place, features.size):
        start, stop = offsets[features[depth]], offsets[features[depth] + 1]
        begin, end = begins[depth], begins[depth + 1]
        grown = 0
        for side in range(2):
            law, product = laws[side, begin:end], laws[side, end:]
            grown = multiply_law(law, product, cells[start:stop], factors[side, start:stop])
        held[depth + 1], begins[depth + 2] = features[depth], end + grown
    held[0] = features.size


@compiled
def node_loss(state: States, units: Units, lattice: Lattice) -> tuple[float, float]:
    """Return bounds on the loss when all units but the removed ones are kept; see `engines.lattice.losses`."""
    begins, members, kept, removed, n_others, count = units
    table, uncertain, spreads, prior, reached, is_certain, slack, kept_chain, removed_chain, lifted = lattice
    # Free units come last, the first of them at the end: it is the one that is removed next.
    n_kept, n_removed = n_others
    for u in range(state.size):
        for i in members[begins[u] : begins[u + 1]]:
            if state[u] == KEPT:
                kept[n_kept] = i
                n_kept += 1
            elif state[u] == REMOVED:
                removed[n_removed] = i
                n_removed += 1
    for u in range(state.size - 1, -1, -1):
        if state[u] == FREE:
            for i in members[begins[u] : begins[u + 1]]:
                kept[n_kept] = i
                n_kept += 1
    above, spread = 1.0, 0.0
    for i in removed[:n_removed]:
        above *= uncertain[i]
    for i in kept[:n_kept]:
        spread += spreads[i]
    extend(kept_chain, kept[:n_kept], table)
    extend(removed_chain, removed[:n_removed], table)
    start, stop = removed_chain[1][n_removed], removed_chain[1][n_removed + 1]
    begin, end = kept_chain[1][n_kept], kept_chain[1][n_kept + 1]
    first, last = 0, end - begin
    if not is_certain:
        # Below and above, the removed features change nothing.
        first, last = max(0, reached + 1 - (stop - start)), min(last, max(0, reached))
    # The probabilities that the removed features lift a kept sum over the bound.
    above, below, at = 1.0 - above, 0.0, stop - start
    positive, negative = removed_chain[2][0, start:stop], removed_chain[2][1, start:stop]
    for x in range(first, last):
        while at > 0 and at > reached - x:
            at -= 1
            above += positive[at]
            below += negative[at]
        lifted[0, x], lifted[1, x] = above, below
    high, excess = 0.0, 0.0
    if first < last:
        high, excess = merged_loss(
            kept_chain[2][0, begin + first : begin + last],
            kept_chain[2][1, begin + first : begin + last],
            lifted[0, first:last],
            lifted[1, first:last],
            prior,
            math.exp(0.5 * spread),
        )
    count[0] += 1
    wide = math.expm1(spread)
    return (high - excess / wide if wide > 0.0 else high) - slack, high + slack


@compiled_sums
def merged_loss(
    positive: Floats, negative: Floats, lifted: Floats, other_lifted: Floats, prior: Floats, half: float
) -> tuple[float, float]:
    """Return the loss of kept sums whose cells are merged, and by how much that may be too high; see `losses`.

    The probabilities of being lifted grow from cell to cell, so the classes disagree in one run of cells.
    """
    high = excess = 0.0
    for x in range(positive.size):
        one = prior[0] * positive[x]
        other = prior[1] * negative[x]
        high += one + other - abs(one * (2.0 * lifted[x] - 1.0) + other * (2.0 * other_lifted[x] - 1.0))
    start, stop = np.searchsorted(lifted, 0.5), np.searchsorted(other_lifted, 0.5)
    for x in range(min(start, stop), max(start, stop)):
        one = prior[0] * positive[x] * abs(2.0 * lifted[x] - 1.0)
        other = prior[1] * negative[x] * abs(2.0 * other_lifted[x] - 1.0)
        over = half * math.sqrt(one if one < other else other) - math.sqrt(other if one < other else one)
        over = over if over > 0.0 else 0.0
        excess += over * over
    return 0.5 * high, excess


@compiled
def losses_without_each(candidates: Integers, state: States, units: Units, lattice: Lattice, out: Floats) -> None:
    """Write bounds on the loss when each candidate, which is not removed, is; `out` has shape (n_candidates, 2)."""
    for k in range(candidates.size):
        before = state[candidates[k]]
        state[candidates[k]] = REMOVED
        out[k, 0], out[k, 1] = node_loss(state, units, lattice)
        state[candidates[k]] = before


@compiled
def lowest_loss(state: States, level: float, problem: Problem) -> float:
    """Return a lower bound on the loss of a node, also from the finer lattice if the level lies within the bounds."""
    low, high = -math.inf, math.inf
    for lattice in problem[3]:
        if low < level <= high:
            found, high = node_loss(state, problem[2], lattice)
            low = max(low, found)
    return low


@compiled
def prices(units: Integers, costs: Floats) -> tuple[float, float, float, float]:
    """Return the total cost of some units, of the two and of the three cheapest of them, and of the dearest one."""
    total, first, second, third, dearest = 0.0, math.inf, math.inf, math.inf, 0.0
    for u in units:
        cost = costs[u]
        total, dearest = total + cost, max(dearest, cost)
        if cost < first:
            first, second, third = cost, first, second
        elif cost < second:
            second, third = cost, second
        elif cost < third:
            third = cost
    return total, first + second, first + second + third, dearest


@compiled
def mark(state: States, chosen: Integers, what: int) -> None:
    """Mark some units as `FREE`, `KEPT` or `REMOVED`."""
    for u in chosen:
        state[u] = what


@compiled
def needs_more(state: States, free: Integers, left: float, level: float, problem: Problem) -> bool:
    """Return whether a subset below a node has to keep more free units than it can pay for.

    The free units form three groups. If the loss without each of them is too high, a subset must keep a unit of each,
    which costs no less than the cheapest one.
    """
    costs, price = problem[0], 0.0
    for first in range(3):
        least = math.inf
        for place in range(first, free.size, 3):
            state[free[place]] = REMOVED
            least = min(least, costs[free[place]])
        low = lowest_loss(state, level, problem)
        mark(state, free, FREE)
        if low < level:
            return False
        price += least
    return price > left


@compiled
def keep_one(state: States, free: Integers, level: float, problem: Problem, found: States) -> int:
    """Write the subsets that keep one of the free units and may lose less than the level; return their number.

    Parts of the free units whose loss is too high even if all of them are kept are skipped, others halved.
    """
    most = 1
    while 2 * most < free.size:
        most *= 2
    place, size, n_found = 0, most, 0
    while place < free.size:
        mark(state, free, REMOVED)
        mark(state, free[place : place + size], KEPT)
        if lowest_loss(state, level, problem) < level:
            if size > 1:
                size //= 2
                continue
            found[n_found] = state
            n_found += 1
        place += size
        while size < most and place % (2 * size) == 0:
            size *= 2
    return n_found


@compiled
def branch(
    state: States,
    lowest: float,
    left: float,
    level: float,
    problem: Problem,
    below: States,
    bounds: Floats,
    found: States,
) -> tuple[int, int]:
    """Write the nodes below a node, and the subsets there that use up the budget; see `LatticeSearch`."""
    costs, copies = problem[:2]
    n_below, n_found = 0, 0
    room = np.empty(state.size, dtype=np.int64)
    for u in range(state.size):
        if state[u] == KEPT:
            left -= costs[u]
    while True:
        n_free, is_less = 0, False
        for u in range(state.size):
            if state[u] == FREE and costs[u] <= left:
                room[n_free] = u
                n_free += 1
            elif state[u] == FREE:
                state[u] = REMOVED
                is_less = True
        free = room[:n_free]
        if is_less and lowest_loss(state, level, problem) >= level:
            return n_below, n_found
        total, two, three, _ = prices(free, costs)
        if total <= left:
            mark(state, free, KEPT)
            found[n_found] = state
            return n_below, n_found + 1
        if two > left:
            return n_below, n_found + keep_one(state, free, level, problem, found[n_found:])
        if n_free > 4 and three > left and needs_more(state, free, left, level, problem):
            return n_below, n_found
        for k in range(n_free):
            u = free[k]
            rest, n_gone, least = 0.0, 0, math.inf
            state[u] = REMOVED
            low = max(lowest, lowest_loss(state, level, problem))
            for v in free[k:]:
                if v == u or (copies[v] == copies[u] and costs[v] >= costs[u]):
                    state[v] = REMOVED
                    n_gone, least = n_gone + 1, min(least, costs[v])
                else:
                    rest += costs[v]
            # Of several copies one could stay, and an equal subset keeps this unit instead.
            is_covered = n_gone > 1 and rest + least <= left
            if n_gone > 1 and low < level:
                low = max(low, lowest_loss(state, level, problem))
            if not is_covered and low < level:
                # Those before it are kept; they were free till now, as that multiplies fewer laws.
                mark(state, free[:k], KEPT)
                if rest <= left:
                    found[n_found] = state
                    for v in range(state.size):
                        found[n_found, v] = REMOVED if state[v] == REMOVED else KEPT
                    n_found += 1
                else:
                    below[n_below], bounds[n_below] = state, low
                    n_below += 1
            mark(state, free, FREE)
            left -= costs[u]
            _, two, _, dearest = prices(free[k + 1 :], costs)
            if two > left or dearest > left:
                mark(state, free[: k + 1], KEPT)
                break


@compiled
def explore(
    left: float, level: float, most: float, problem: Problem, states: States, bounds: Floats, found: States
) -> tuple[int, int]:
    """Search below a node, depth first; return the number of nodes still open, and of subsets found.

    Parameters
    ----------
    left, level, most : float
        What units may cost together, the loss at which a branch is closed, and the evaluations until it stops.
    states, bounds : ndarrays of shapes (n_nodes, n_units) and (n_nodes,)
        First the node and its bound; overwritten by those that are still open.
    found : ndarray of int8, shape (n_subsets, n_units)
        Overwritten by subsets that use up the budget and may lose less than the level.
    """
    n_open, n_found, n_units, count = 1, 0, states.shape[1], problem[2][5]
    state = np.empty(n_units, dtype=np.int8)
    while n_open > 0 and count[0] < most and n_open + n_units < len(states) and n_found + 2 * n_units < len(found):
        n_open -= 1
        state[:] = states[n_open]
        below, low = states[n_open:], bounds[n_open:]
        n_below, n_more = branch(state, low[0], left, level, problem, below, low, found[n_found:])
        n_open, n_found = n_open + n_below, n_found + n_more
    return n_open, n_found


@compiled
def window_masses(
    sums: Floats,
    begins: Integers,
    masses: Floats,
    other_sums: Floats,
    other_begins: Integers,
    other_masses: Floats,
    needed: float,
    first: int,
    out: Floats,
) -> None:
    """Add up the masses of negative and of positive instances in each doubtful cell; `out` has shape (2, n_cells).

    The sums of each half of the features are in increasing order within each cell; `begins` says where cells begin.
    """
    for cell in range(out.shape[1]):
        for place in range(begins.size - 1):
            other = first + cell - place
            if not 0 <= other < other_begins.size - 1:
                continue
            start, at = other_begins[other], other_begins[other + 1]
            positive = negative = 0.0
            for i in range(begins[place], begins[place + 1]):
                while at > start and sums[i] + other_sums[at - 1] >= needed:
                    at -= 1
                    positive += other_masses[0, at]
                    negative += other_masses[1, at]
                out[1, cell] += masses[0, i] * positive + masses[1, i] * negative
            at = start
            positive = negative = 0.0
            for i in range(begins[place + 1] - 1, begins[place] - 1, -1):
                while at < other_begins[other + 1] and sums[i] + other_sums[at] < needed:
                    positive += other_masses[0, at]
                    negative += other_masses[1, at]
                    at += 1
                out[0, cell] += masses[0, i] * positive + masses[1, i] * negative


@compiled
def tails_of_halves(
    sums: Floats, tails: Floats, other_sums: Floats, other_masses: Floats, queries: Floats, out: Floats
) -> None:
    """Write the probabilities that the sums of two halves add up to at least each query, under two classes.

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
        # What rounding has added to either sum so far (Kahan 1965): there may be 2^25 terms.
        over, over_negative = 0.0, 0.0
        for j in range(other_sums.size - 1, -1, -1):
            rest = queries[q] - other_sums[j]
            while place < sums.size and sums[place] < rest:
                place += 1
            term, term_negative = other_masses[0, j] * tails[0, place] - over, other_masses[1, j] * tails[1, place]
            term_negative -= over_negative
            grown, grown_negative = positive + term, negative + term_negative
            over, over_negative = (grown - positive) - term, (grown_negative - negative) - term_negative
            positive, negative = grown, grown_negative
        out[0, q], out[1, q] = positive, negative
