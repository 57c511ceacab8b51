"""Agreement of feature subsets from two parts of the features: one tabulated, one enumerated.

The sums of weights over the tabulated part are sorted, with tail probabilities under both classes; a grid of buckets
makes a look-up take constant time. Every instance of the enumerated part then asks the table once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.kernels.axis_norms import axis_norm
from trimbench.trimming.kernels.compiling import compiled, compiled_sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Buckets with more entries than this are searched by halving.
_SHORT = 8


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
def kept_run(cardinalities: Integers, gone: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many outer features there are before the innermost kept ones, and the instances of the latter."""
    n_outer, run = cardinalities.size, 1
    while n_outer > 0 and not gone[n_outer - 1]:
        n_outer -= 1
        run *= cardinalities[n_outer]
    return n_outer, run


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
        # The same for all values of the candidate.
        for first in range(0, kept.size, inner):
            for j in range(inner):
                found = look_up(weight, bounds[0], bounds[1], buckets, scale, cut - kept[first + j])
                for value in range(n_values):
                    at = first * n_values + value * inner + j
                    above[0, at] = tails[found, 0]
                    above[1, at] = tails[found, 1]
        total = 0.0
        for side in range(2):
            for i in range(left_out.shape[0]):
                for r in range(removed_masses[side].size):
                    distance = mean_distance(
                        masses[side], above[side], reached[side, i], starts[r * n_blocks : (r + 1) * n_blocks], run
                    )
                    total += left_out[i, side] * removed_masses[side][r] * distance
        out[place] = 1.0 - total
        if candidate >= 0:
            gone[candidate] = False


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
