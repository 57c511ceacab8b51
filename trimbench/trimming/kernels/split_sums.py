"""Agreement of feature subsets from two parts of the features: one tabulated, one enumerated.

The sums of weights over the tabulated part are sorted, with tail probabilities under both classes; a grid of buckets
makes a look-up take constant time. Every instance of the enumerated part then asks the table once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.kernels.compiling import compiled

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
def with_value(codes: Integers, stride: int, cardinality: int, value: int) -> Integers:
    """Return the places of the instances in which one feature has a value; its digit in the codes tells."""
    places = np.empty(codes.size, dtype=np.int64)
    size = 0
    for i in range(codes.size):
        places[size] = i
        size += (codes[i] // stride) % cardinality == value
    return places[:size].copy()


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
            out[i, j, 0] = tails[place, 0]
            out[i, j, 1] = tails[place, 1]


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
                return min(start, math.log(-before_b) - math.log(before_a))
            return start
    if a > 0 and b < 0:
        return math.log(-b) - math.log(a)
    return math.inf


@compiled
def instances_of_kept(
    values: Floats, cardinalities: Integers, gone: NDArray[np.bool_], n: int
) -> tuple[Floats, NDArray[np.int32]]:
    """Return the weights of the instances of the kept features, and which of them each enumerated instance has.

    Parameters
    ----------
    values : ndarray of shape (n_features, n_values)
        Weights of the enumerated features, the outermost first.
    cardinalities : ndarray of shape (n_features,)
    gone : ndarray of bool, shape (n_features,)
        Which of them are removed.
    n : int
        Number of instances, the product of the cardinalities.
    """
    kept, places = np.zeros(n), np.zeros(n, dtype=np.int32)
    n_kept, size = 1, 1
    for i in range(cardinalities.size - 1, -1, -1):
        for value in range(cardinalities[i] - 1, -1, -1):
            offset = 0 if gone[i] else value * n_kept
            for j in range(size):
                places[value * size + j] = places[j] + offset
            if not gone[i]:
                for j in range(n_kept):
                    kept[offset + j] = kept[j] + values[i, value]
        size *= cardinalities[i]
        if not gone[i]:
            n_kept *= cardinalities[i]
    return kept[:n_kept], places


@compiled
def disagreement(
    weight: Floats,
    tails: Floats,
    bounds: Integers,
    buckets: Integers,
    scale: float,
    cut: float,
    values: Floats,
    cardinalities: Integers,
    gone: NDArray[np.bool_],
    mass: Floats,
    removed_mass: Floats,
    reached: Floats,
) -> float:
    """Return the probability that the original and the trimmed classifier disagree.

    Given the enumerated features, both are positive from some tabulated sum on: they disagree between the two.

    Parameters
    ----------
    weight, tails, bounds, buckets, scale
        The table, as in `reach`.
    cut : float
        Sum of all kept weights from which the trimmed classifier is positive.
    values : ndarray of shape (n_features, n_values)
        Weights of the enumerated features, the outermost first.
    cardinalities : ndarray of shape (n_features,)
    gone : ndarray of bool, shape (n_features,)
        Which of them are removed.
    mass : ndarray of shape (2, n_enumerated)
        Probability of each class and enumerated instance.
    removed_mass : ndarray of shape (2, n_removed)
        P(instance | class) of the features that are missing in the table.
    reached : ndarray of shape (2, n_removed, n_enumerated)
        From `reach`.
    """
    kept, places = instances_of_kept(values, cardinalities, gone, mass.shape[0])
    n, n_kept = mass.shape[0], kept.size
    above = np.empty((n_kept, 2))
    for j in range(n_kept):
        place = look_up(weight, bounds[0], bounds[1], buckets, scale, cut - kept[j])
        above[j, 0] = tails[place, 0]
        above[j, 1] = tails[place, 1]
    total = 0.0
    for i in range(removed_mass.shape[0]):
        # Several sums at a time: a single one would wait for each addition.
        a0, b0, a1, b1 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, n - 1, 2):
            k, m = places[j], places[j + 1]
            a0 += mass[j, 0] * abs(above[k, 0] - reached[i, j, 0])
            b0 += mass[j, 1] * abs(above[k, 1] - reached[i, j, 1])
            a1 += mass[j + 1, 0] * abs(above[m, 0] - reached[i, j + 1, 0])
            b1 += mass[j + 1, 1] * abs(above[m, 1] - reached[i, j + 1, 1])
        if n % 2:
            k = places[n - 1]
            a0 += mass[n - 1, 0] * abs(above[k, 0] - reached[i, n - 1, 0])
            b0 += mass[n - 1, 1] * abs(above[k, 1] - reached[i, n - 1, 1])
        total += removed_mass[i, 0] * (a0 + a1) + removed_mass[i, 1] * (b0 + b1)
    return total


@compiled
def signed_norm(
    values: Floats,
    cardinalities: Integers,
    gone: NDArray[np.bool_],
    mass: Floats,
    kept_mass: Floats,
    reached: Floats,
) -> float:
    """Return the sum of |d(f')| where all tabulated features are removed.

    Parameters
    ----------
    values, cardinalities, gone, mass
        As in `disagreement`.
    kept_mass : ndarray of shape (n_kept, 2)
        P(instance | class) of kept features that are missing in the table.
    reached : ndarray of shape (n_kept, n_enumerated, 2)
        From `reach`.
    """
    kept, places = instances_of_kept(values, cardinalities, gone, mass.shape[0])
    total = 0.0
    for i in range(kept_mass.shape[0]):
        signed = np.zeros(kept.size)
        for j in range(mass.shape[0]):
            signed[places[j]] += kept_mass[i, 0] * mass[j, 0] * (2.0 * reached[i, j, 0] - 1.0) + kept_mass[i, 1] * mass[
                j, 1
            ] * (2.0 * reached[i, j, 1] - 1.0)
        total += np.abs(signed).sum()
    return total
