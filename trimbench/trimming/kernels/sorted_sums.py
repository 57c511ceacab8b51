"""Sorted sums of independent weights, with a grid of buckets in which a look-up takes constant time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
