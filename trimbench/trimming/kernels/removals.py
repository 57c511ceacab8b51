"""Agreement of feature subsets from two parts of the features: one tabulated, one enumerated.

The sums of weights over the tabulated part are sorted, with tail probabilities under both classes. Every instance of
the enumerated part has asked the table once (`sorted_sums.reach`); what it found serves many subsets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled, compiled_sums
from trimbench.trimming.kernels.axis_norms import axis_norm
from trimbench.trimming.kernels.instances import kept_innermost, kept_run, products, sums_of_chosen
from trimbench.trimming.kernels.sorted_sums import Floats, Integers, add_feature, look_up, sign_change


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
