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


# Sorted sums of independent weights, with a grid of buckets in which a look-up takes constant time.

# Weights, P(value | c) and P(value | not c) of features, padded, and how many values they have.
Padded = tuple[Floats, Floats, Floats, Integers]
# Weights, and probabilities under both classes.
Sums = tuple[Floats, Floats, Floats]

# Buckets with more entries than this are searched by halving.
_SHORT = 8
_BUCKETS_PER_ENTRY = 2


@compiled
def fill_buckets(weight: Floats, first: int, last: int, buckets: Integers) -> float:
    """Write where each bucket of the finite weights begins; return the number of buckets per unit of weight.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        In increasing order; those from `first` to `last` (exclusive) are finite.
    buckets : ndarray of shape (n_buckets + 2,)
        Is written.
    """
    n_buckets = buckets.size - 2
    scale = 0.0
    if last > first and weight[last - 1] > weight[first]:
        scale = n_buckets / (weight[last - 1] - weight[first])
        if not math.isfinite(scale):
            scale = 0.0
    place = first
    for bucket in range(n_buckets + 1):
        while place < last and int((weight[place] - weight[first]) * scale) < bucket:
            place += 1
        buckets[bucket] = place
    buckets[n_buckets + 1] = last
    return scale


@compiled
def look_up(weight: Floats, first: int, last: int, buckets: Integers, scale: float, query: float) -> int:
    """Return the position of the first weight that reaches `query`; a NaN (inf - inf) is always reached."""
    if not query > -math.inf:
        return 0
    if first == last or query > weight[last - 1]:
        return last
    if query <= weight[first]:
        return first
    bucket = int((query - weight[first]) * scale)
    low, high = buckets[bucket], buckets[bucket + 1]
    while high - low > _SHORT:
        middle = (low + high) // 2
        if weight[middle] < query:
            low = middle + 1
        else:
            high = middle
    while low < high and weight[low] < query:
        low += 1
    return int(low)


@compiled
def add_feature(
    weight: Floats, positive: Floats, negative: Floats, values: Floats, value_positive: Floats, value_negative: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the sorted sums of a group with one more feature; what both classes rule out is left out."""
    n, n_values = weight.size, values.size
    out_weight, out_positive, out_negative = np.empty(n * n_values), np.empty(n * n_values), np.empty(n * n_values)
    old_weight, old_positive, old_negative = np.empty(n * n_values), np.empty(n * n_values), np.empty(n * n_values)
    size = 0
    for value in range(n_values):
        # Merge what there is with the next shifted run.
        old_weight[:size], old_positive[:size], old_negative[:size] = (
            out_weight[:size],
            out_positive[:size],
            out_negative[:size],
        )
        old_size, size, i, j = size, 0, 0, 0
        shift, chance, other = values[value], value_positive[value], value_negative[value]
        while i < old_size or j < n:
            if j < n and positive[j] * chance == 0 and negative[j] * other == 0:
                j += 1
            elif j == n or (i < old_size and old_weight[i] <= weight[j] + shift):
                out_weight[size], out_positive[size], out_negative[size] = (
                    old_weight[i],
                    old_positive[i],
                    old_negative[i],
                )
                i += 1
                size += 1
            else:
                out_weight[size], out_positive[size], out_negative[size] = (
                    weight[j] + shift,
                    positive[j] * chance,
                    negative[j] * other,
                )
                j += 1
                size += 1
    return out_weight[:size].copy(), out_positive[:size].copy(), out_negative[:size].copy()


@compiled
def add_features(features: Padded, chosen: Integers, start: Sums) -> Sums:
    """Return the sorted sums of a group with some more features."""
    values, value_positive, value_negative, cardinalities = features
    weight, positive, negative = start
    for i in chosen:
        n = cardinalities[i]
        weight, positive, negative = add_feature(
            weight, positive, negative, values[i, :n], value_positive[i, :n], value_negative[i, :n]
        )
    return weight, positive, negative


@compiled
def tails_of(mass: Floats) -> Floats:
    """Return the sums of this and all later entries, shape (n + 1,)."""
    tails = np.zeros(mass.size + 1)
    for i in range(mass.size - 1, -1, -1):
        tails[i] = tails[i + 1] + mass[i]
    return tails


@compiled
def reach(
    weight: Floats,
    tails: Floats,
    bounds: Integers,
    buckets: Integers,
    scale: float,
    needed: float,
    enumerated: Floats,
    removed: Floats,
    out: Floats,
) -> None:
    """Write the probability that the tabulated sum lifts each enumerated instance to `needed`.

    Parameters
    ----------
    weight, buckets, scale : the table, and `bounds` = (first, last) of its finite entries
    tails : ndarray of shape (2, n + 1)
        Tail probabilities under both classes.
    enumerated : ndarray of shape (n_enumerated,)
        Weights of the enumerated instances.
    removed : ndarray of shape (n_removed,)
        Weights of the instances of features that are missing in the table.
    out : ndarray of shape (2, n_removed, n_enumerated)
        Is written.
    """
    first, last = bounds[0], bounds[1]
    for i in range(removed.size):
        for j in range(enumerated.size):
            place = look_up(weight, first, last, buckets, scale, (needed - removed[i]) - enumerated[j])
            out[0, i, j] = tails[place, 0]
            out[1, i, j] = tails[place, 1]


@compiled
def state_of(
    features: Padded, held: Integers, left_out: Integers, needed: float, enumerated: Floats
) -> tuple[Floats, Floats, Integers, Integers, float, Floats, Floats]:
    """Return a table over some features, and how likely it lifts each enumerated instance to `needed`.

    Parameters
    ----------
    held, left_out : ndarrays of int
        The features in the table, and those that are missing in it.
    enumerated : ndarray of shape (n_enumerated,)
        Weights of the enumerated instances.

    Returns
    -------
    weight, tails, bounds, buckets, scale
        The table, as in `reach`.
    chances : ndarray of shape (n_left_out, 2)
        P(instance | class) of the features that are missing.
    reached : ndarray of shape (2, n_left_out, n_enumerated)
    """
    nothing = (np.zeros(1), np.ones(1), np.ones(1))
    weight, positive, negative = add_features(features, held, nothing)
    bounds = np.array([0, weight.size])
    while bounds[0] < weight.size and weight[bounds[0]] == -math.inf:
        bounds[0] += 1
    while bounds[1] > 0 and weight[bounds[1] - 1] == math.inf:
        bounds[1] -= 1
    tails = np.empty((weight.size + 1, 2))
    tails[:, 0] = tails_of(positive)
    tails[:, 1] = tails_of(negative)
    buckets = np.empty(_BUCKETS_PER_ENTRY * weight.size + 2, dtype=np.int64)
    scale = fill_buckets(weight, bounds[0], bounds[1], buckets)
    out_weight, out_positive, out_negative = add_features(features, left_out, nothing)
    chances = np.empty((out_weight.size, 2))
    chances[:, 0] = out_positive
    chances[:, 1] = out_negative
    reached = np.empty((2, out_weight.size, enumerated.size))
    reach(weight, tails, bounds, buckets, scale, needed, enumerated, out_weight, reached)
    return weight, tails, bounds, buckets, scale, chances, reached


@compiled
def sign_change(needed: float, weight: Floats, positive: Floats, negative: Floats) -> float:
    """Return the log-odds of f' from which on d(f') is positive (Proposition 3).

    Instances of the removed features, by increasing weight, lift f' to `needed`. Between two of them d(s) is
    proportional to ``exp(s) * a + b``, a and b depending on how many do.
    """
    a, b = -1.0, -1.0
    for i in range(weight.size - 1, -1, -1):
        start = needed - weight[i]
        if start != start:
            start = -math.inf
        before_a, before_b = a, b
        a += 2.0 * positive[i]
        b += 2.0 * negative[i]
        if a < 0 and b < 0:  # whatever the start is
            continue
        value = b if a == 0 else math.exp(min(start, 709.0)) * a + b
        if start == math.inf and a != 0:
            value = a
        if value >= 0:
            if before_a > 0 and before_b < 0:
                return float(min(start, math.log(-before_b) - math.log(before_a)))
            return float(start)
    if a > 0 and b < 0:
        return math.log(-b) - math.log(a)
    return math.inf


# Instances of some features: an order of them, and products and sums of one number from each feature.


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


# Agreement of feature subsets from two parts of the features: one tabulated, one enumerated.


@compiled_sums
def mean_distance(mass: Floats, one: Floats, other: Floats, starts: NDArray[np.int32], run: int) -> float:
    """Return the sum of ``mass * |one - other|``, the entries of `other` taken in runs that begin at `starts`."""
    total = 0.0
    for block in range(starts.size):
        here = slice(block * run, block * run + run)
        # Without offsets in the index, several entries are added up at a time.
        of_mass, of_one, of_other = mass[here], one[here], other[starts[block] : starts[block] + run]
        for j in range(run):
            total += of_mass[j] * abs(of_one[j] - of_other[j])
    return total


@compiled
def fill_above(
    weight: Floats,
    tails: Floats,
    bounds: Integers,
    buckets: Integers,
    scale: float,
    cut: float,
    kept: Floats,
    block: tuple[int, int],
    above: Floats,
) -> None:
    """Write how likely the tabulated sum lifts each kept instance to `cut`, the same for all values of a feature.

    Parameters
    ----------
    kept : ndarray of shape (n_kept,)
        Sums of the kept enumerated features without that feature.
    block : tuple of int
        Number of its values, and of instances of the kept features inside of it.
    above : ndarray of shape (2, n_values * n_kept)
        Is written.
    """
    n_values, inner = block
    for first in range(0, kept.size, inner):
        for j in range(inner):
            found = look_up(weight, bounds[0], bounds[1], buckets, scale, cut - kept[first + j])
            for value in range(n_values):
                at = first * n_values + value * inner + j
                above[0, at] = tails[found, 0]
                above[1, at] = tails[found, 1]


@compiled
def disagreement(
    above: Floats,
    left_out: Floats,
    reached: Floats,
    masses: tuple[Floats, Floats],
    removed_masses: tuple[Floats, Floats],
    starts: NDArray[np.int32],
    run: int,
) -> float:
    """Return how likely original and trimmed classifier disagree; parameters as in `agreements_without`."""
    n_blocks = above.shape[1] // run
    total = 0.0
    for side in range(2):
        for i in range(left_out.shape[0]):
            for r in range(removed_masses[side].size):
                distance = mean_distance(
                    masses[side], above[side], reached[side, i], starts[r * n_blocks : (r + 1) * n_blocks], run
                )
                total += left_out[i, side] * removed_masses[side][r] * distance
    return total


@compiled_sums
def mean_entry(mass: Floats, entries: Floats, starts: NDArray[np.int32], run: int) -> float:
    """Return the sum of ``mass * entries``, the entries taken in runs that begin at `starts`."""
    total = 0.0
    for block in range(starts.size):
        # Without offsets in the index, several entries are added up at a time.
        of_mass, of_entries = mass[block * run : block * run + run], entries[starts[block] : starts[block] + run]
        for j in range(run):
            total += of_mass[j] * of_entries[j]
    return total


@compiled
def mean_above(
    weight: Floats,
    tails: Floats,
    bounds: Integers,
    buckets: Integers,
    scale: float,
    cut: float,
    kept: Floats,
    masses: tuple[Floats, Floats],
) -> tuple[float, float]:
    """Return how likely each class, and a sum of kept features that reaches `cut`, are."""
    positive, negative = 0.0, 0.0
    for j in range(kept.size):
        found = look_up(weight, bounds[0], bounds[1], buckets, scale, cut - kept[j])
        positive += masses[0][j] * tails[found, 0]
        negative += masses[1][j] * tails[found, 1]
    return positive, negative


@compiled
def distance_of_means(
    above: tuple[float, float],
    left_out: Floats,
    reached: Floats,
    masses: tuple[Floats, Floats],
    removed_masses: tuple[Floats, Floats],
    starts: NDArray[np.int32],
    run: int,
) -> float:
    """Return `disagreement` if no candidate is enumerated.

    Each instance of the removed features then lifts the original over the threshold more easily than the trimmed
    classifier, or less easily, whatever the kept features are: so only the sums over these matter.
    """
    n_blocks = masses[0].size // run
    total = 0.0
    for side in range(2):
        for i in range(left_out.shape[0]):
            for r in range(removed_masses[side].size):
                mean = mean_entry(masses[side], reached[side, i], starts[r * n_blocks : (r + 1) * n_blocks], run)
                total += left_out[i, side] * removed_masses[side][r] * abs(mean - above[side])
    return total


@compiled
def agreements_without(
    weight: Floats,
    tails: Floats,
    bounds: Integers,
    buckets: Integers,
    scale: float,
    left_out: Floats,
    reached: Floats,
    cuts: tuple[float, float],
    features: tuple[Floats, Floats, Floats, Integers],
    prior: Floats,
    gone: NDArray[np.bool_],
    removed: tuple[Floats, Floats, Floats],
    candidates: Integers,
    out: Floats,
) -> None:
    """Write the agreement after removing each candidate, where the table holds kept features only.

    Given the enumerated features and the class, original and trimmed classifier are both positive from some tabulated
    sum on: they disagree between the two.

    Parameters
    ----------
    weight, tails, bounds, buckets, scale
        The table, as in `reach`.
    left_out : ndarray of shape (n_left_out, 2)
        P(instance | class) of the features that are missing in the table; they are removed.
    reached : ndarray of shape (2, n_left_out, n_enumerated)
        From `reach`.
    cuts : tuple of float
        Log-odds from which the original is positive, and those of the prior.
    features : tuple of arrays
        Weights, P(value | c), P(value | not c), each of shape (n_features, n_values), and cardinalities of the
        enumerated features.
    prior : ndarray of shape (2,)
    gone : ndarray of bool, shape (n_features,)
        Which enumerated features are removed. Changed and restored.
    removed : tuple of arrays
        The sorted sums over all removed features.
    candidates : ndarray of int
        Positions among the enumerated features; -1 removes nothing more.
    out : ndarray of shape (n_candidates,)
        Is written.
    """
    needed, offset = cuts
    values, positive, negative, cardinalities = features
    n_outer, run = kept_run(cardinalities, gone)
    starts, n_blocks = kept_innermost(cardinalities[:n_outer], gone[:n_outer])
    starts *= np.int32(run)
    n_kept = n_blocks * run
    masses = (products(positive, cardinalities, ~gone, prior[0]), products(negative, cardinalities, ~gone, prior[1]))
    removed_masses = (products(positive, cardinalities, gone, 1.0), products(negative, cardinalities, gone, 1.0))
    above = np.empty((2, n_kept))
    for place in range(candidates.size):
        candidate = candidates[place]
        sums = removed
        n_values, inner = 1, n_kept
        if candidate >= 0:
            n_values, inner = cardinalities[candidate], 1
            for i in range(candidate + 1, cardinalities.size):
                if not gone[i]:
                    inner *= cardinalities[i]
            sums = add_feature(
                removed[0],
                removed[1],
                removed[2],
                values[candidate, :n_values],
                positive[candidate, :n_values],
                negative[candidate, :n_values],
            )
            gone[candidate] = True
        cut = sign_change(needed, sums[0], sums[1], sums[2]) - offset
        kept = sums_of_chosen(values, cardinalities, ~gone)
        fill_above(weight, tails, bounds, buckets, scale, cut, kept, (n_values, inner), above)
        out[place] = 1.0 - disagreement(above, left_out, reached, masses, removed_masses, starts, run)
        if candidate >= 0:
            gone[candidate] = False


@compiled
def agreements_without_tabulated(
    tables: tuple[Floats, Floats, Integers, Integers, Floats, Floats, Floats],
    tabulated: tuple[Floats, Floats, Floats, Integers],
    cuts: tuple[float, float],
    features: tuple[Floats, Floats, Floats, Integers],
    prior: Floats,
    gone: NDArray[np.bool_],
    removed: tuple[Floats, Floats, Floats],
    candidates: Integers,
    out: Floats,
) -> None:
    """Write the agreement after removing each candidate, all of which are tabulated; the table holds kept features.

    Parameters
    ----------
    tables : tuple of arrays
        Weights, tails, bounds, buckets, scales, `left_out` and `reached` of the tables without one feature each,
        stacked along the first axis.
    tabulated : tuple of arrays
        The tabulated features, as `features`, in the order of the tables.
    cuts, features, prior, gone, removed, out
        As in `agreements_without`.
    candidates : ndarray of int
        Positions among the tables.
    """
    needed, offset = cuts
    weight, tails, bounds, buckets, scale, left_out, reached = tables
    values, positive, negative, cardinalities = features
    n_outer, run = kept_run(cardinalities, gone)
    starts, _ = kept_innermost(cardinalities[:n_outer], gone[:n_outer])
    starts *= np.int32(run)
    masses = (products(positive, cardinalities, ~gone, prior[0]), products(negative, cardinalities, ~gone, prior[1]))
    removed_masses = (products(positive, cardinalities, gone, 1.0), products(negative, cardinalities, gone, 1.0))
    kept = sums_of_chosen(values, cardinalities, ~gone)
    for place in range(candidates.size):
        k = candidates[place]
        n_values = tabulated[3][k]
        sums = add_feature(
            removed[0],
            removed[1],
            removed[2],
            tabulated[0][k, :n_values],
            tabulated[1][k, :n_values],
            tabulated[2][k, :n_values],
        )
        cut = sign_change(needed, sums[0], sums[1], sums[2]) - offset
        above = mean_above(weight[k], tails[k], bounds[k], buckets[k], scale[k], cut, kept, masses)
        out[place] = 1.0 - distance_of_means(
            above, left_out[k, :n_values], reached[k], masses, removed_masses, starts, run
        )


@compiled
def norms_without(
    left_out: Floats,
    reached: Floats,
    features: tuple[Floats, Floats, Floats, Integers],
    prior: Floats,
    gone: NDArray[np.bool_],
    candidates: Integers,
    out: Floats,
) -> None:
    """Write the agreement after removing each candidate, where the table holds removed features only.

    Parameters are those of `agreements_without`; the features that are missing in the table are kept.
    """
    _, positive, negative, cardinalities = features
    places, n_kept = kept_innermost(cardinalities, gone)
    signed = np.zeros((left_out.shape[0], n_kept))
    for side in range(2):
        chances = positive if side == 0 else negative
        mass = products(chances, cardinalities, ~gone, prior[side])
        removed_mass = products(chances, cardinalities, gone, 1.0)
        for i in range(left_out.shape[0]):
            for r in range(removed_mass.size):
                for j in range(n_kept):
                    above = reached[side, i, places[r * n_kept + j]]
                    signed[i, j] += left_out[i, side] * removed_mass[r] * mass[j] * (2.0 * above - 1.0)
    table = signed.ravel()
    for place in range(candidates.size):
        candidate = candidates[place]
        n_values, inner = 1, n_kept
        if candidate >= 0:
            n_values, inner = cardinalities[candidate], 1
            for i in range(candidate + 1, cardinalities.size):
                if not gone[i]:
                    inner *= cardinalities[i]
        out[place] = 0.5 * (1.0 + axis_norm(table, n_values, inner))


# Losses of feature subsets of a naive Bayes classifier whose weights are whole numbers of steps.

# Steps and probabilities of the values of all features: arrays of shape (n_features, n_values), at least 0, and
# (n_features, 2, n_values), cardinalities, and the most steps of each feature.
Steps = tuple[Integers, Floats, Integers, Integers]


@compiled_sums
def add_scaled(out: Floats, chance: float, entries: Floats) -> None:
    """Add entries, scaled."""
    for i in range(out.size):
        out[i] += chance * entries[i]


@compiled
def add_feature_to_cells(steps: Steps, i: int, before: Floats, first: int, out: Floats) -> None:
    """Write the cells of a sum with one more feature, from cell `first` on; arrays of shape (2, n_cells)."""
    shifts, chances, cardinalities, _ = steps
    n_cells = out.shape[1]
    out[:, first:] = 0.0
    for value in range(cardinalities[i]):
        start = max(first, shifts[i, value])
        if start < n_cells:
            since, until = start - shifts[i, value], n_cells - shifts[i, value]
            for side in range(2):
                add_scaled(out[side, start:], chances[i, side, value], before[side, since:until])


@compiled
def add_features_to_cells(
    steps: Steps, chosen: Integers, before: Floats, first: int, spare: Floats, out: Floats
) -> None:
    """Write the cells of a sum with some more features (at least one); those before `first` may be wrong."""
    for i in chosen:
        first -= steps[3][i]
    current = before
    for place in range(chosen.size):
        first += steps[3][chosen[place]]
        target = out if (chosen.size - place) % 2 == 1 else spare
        add_feature_to_cells(steps, chosen[place], current, min(max(first, 0), out.shape[1]), target)
        current = target


@compiled
def cells_of(steps: Steps, chosen: Integers, n_cells: int) -> Floats:
    """Return the first cells of the sum over some features under both classes, shape (2, n_cells)."""
    cells, spare = np.zeros((2, n_cells)), np.zeros((2, n_cells))
    cells[:, 0] = 1.0
    reach = 1
    for i in chosen:
        reach = min(n_cells, reach + steps[3][i])
        add_feature_to_cells(steps, i, cells[:, :reach], 0, spare[:, :reach])
        cells, spare = spare, cells
    return cells


@compiled
def lifted_by(steps: Steps, i: int, lifted: Floats) -> Floats:
    """Return the probabilities to lift a cell to what is needed with one more feature.

    Parameters
    ----------
    lifted : ndarray of shape (2, n)
        Of a sum of at most n steps; the first cell lacks n steps, the last one a single step.
    """
    shifts, chances, cardinalities, most = steps
    n = lifted.shape[1]
    out = np.zeros((2, n + most[i]))
    for value in range(cardinalities[i]):
        start = most[i] - shifts[i, value]
        for side in range(2):
            add_scaled(out[side, start : start + n], chances[i, side, value], lifted[side])
            out[side, start + n :] += chances[i, side, value]
    return out


@compiled_sums
def loss_of_cells(
    positive: Floats, negative: Floats, lifts_positive: Floats, lifts_negative: Floats, ratio: float
) -> tuple[float, float]:
    """Return how likely original and best trimming disagree, and how much of that is doubtful.

    Trimmings cannot tell apart what is in one cell. If they could, they would agree more often in doubtful cells: in
    those where the classes speak for different decisions, and almost equally loud.

    Parameters
    ----------
    positive, negative : ndarrays of shape (n_cells,)
        Probability of each class and cell.
    lifts_positive, lifts_negative : ndarrays of shape (n_cells,)
        Probability that the original is positive, given both.
    ratio : float
        How many times louder than the other class one may be in doubtful cells.
    """
    loss, doubtful = 0.0, 0.0
    for i in range(positive.size):
        above = positive[i] * lifts_positive[i] + negative[i] * lifts_negative[i]
        below = positive[i] + negative[i] - above
        loss += min(above, below)
        # What each class adds to `above - below`.
        one = positive[i] * (2.0 * lifts_positive[i] - 1.0)
        other = negative[i] * (2.0 * lifts_negative[i] - 1.0)
        least, most = min(abs(one), abs(other)), max(abs(one), abs(other))
        doubtful += least if one * other < 0.0 and most <= ratio * least else 0.0
    return loss, doubtful


@compiled
def grid_losses(
    steps: Steps,
    kept: Integers,
    removed: Integers,
    candidates: Integers,
    needed: int,
    prior: Floats,
    ratio: float,
    out: Floats,
) -> None:
    """Write the loss after removing each candidate, and how much of it is doubtful.

    Parameters
    ----------
    kept, removed, candidates : ndarrays of int
        Together all features.
    needed : int
        Steps from which the original is positive, at least 1.
    prior : ndarray of shape (2,)
    ratio : float
        As in `loss_of_cells`.
    out : ndarray of shape (2, n_candidates)
        Is written.
    """
    lifted = np.zeros((2, 0))
    for i in removed:
        lifted = lifted_by(steps, i, lifted)
    # The features other than one, for each in turn: those of one half serve all of the other half, and so on.
    cells, spare = [cells_of(steps, kept, needed)], np.empty((2, needed))
    cells[0][0] *= prior[0]
    cells[0][1] *= prior[1]
    for place in range(candidates.size):
        begin, end, level = 0, candidates.size, 0
        while end - begin > 1:
            middle, level = (begin + end) // 2, level + 1
            if place < middle:
                others, end = candidates[middle:end], middle
            else:
                others, begin = candidates[begin:middle], middle
            if len(cells) == level:
                cells.append(np.empty((2, needed)))
            if begin == place:  # else this half has been dealt with
                first = needed - lifted.shape[1]
                for i in candidates[begin:end]:
                    first -= steps[3][i]
                add_features_to_cells(steps, others, cells[level - 1], first, spare, cells[level])
        lifts = lifted_by(steps, candidates[place], lifted)
        n_cells = min(needed, lifts.shape[1])
        last_cells, last_lifts = cells[level][:, needed - n_cells :], lifts[:, lifts.shape[1] - n_cells :]
        out[0, place], out[1, place] = loss_of_cells(last_cells[0], last_cells[1], last_lifts[0], last_lifts[1], ratio)
