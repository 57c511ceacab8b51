"""Compiled sums for mixtures: of rows of a table that masks select, of scores of components, and of normal densities.

Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled

Floats = NDArray[np.float64]

# The sums of all subsets of six features, four times, for 40 columns: 80 KiB, which stay in the processor's cache.
_FEATURES, _GROUPS, _WIDTH = 6, 4, 40
_BYTES = _FEATURES * _GROUPS // 8
# A term below exp(-40) of the largest changes a sum by less than its rounding error.
_NEGLIGIBLE = -40.0
_LOG_2_PI = math.log(2 * math.pi)


@compiled
def _sum_subsets(table: Floats, feature: int, first: int, width: int, sums: Floats) -> None:
    """Fill sums[g, s] with the sum of the rows that the bits of s select among the six from ``feature + 6 g``."""
    added = np.zeros(_WIDTH)
    for group in range(_GROUPS):
        sums[group, 0] = 0.0
        for bit in range(_FEATURES):
            row, size = feature + _FEATURES * (group + 1) - 1 - bit, 1 << bit
            if row < len(table):
                added[:width] = table[row, first : first + width]
            for selected in range(size):
                without, with_it = sums[group, selected], sums[group, size + selected]
                for i in range(_WIDTH):
                    with_it[i] = without[i] + added[i]


@compiled
def selected_sums(packed: NDArray[np.uint8], table: Floats) -> Floats:
    """Return the sums of the rows of a table that each mask selects: the product of a matrix of bits and a table.

    Twice as fast as a product of float64 where there are a thousand masks or more, and as exact.

    Parameters
    ----------
    packed : ndarray of shape (n_masks, n_bytes)
        See `packed_masks`.
    table : ndarray of shape (n_features, n_columns)

    Returns
    -------
    ndarray of shape (n_parts, n_masks, 40)
        Forty columns in each part; those after the last column of the table are 0.
    """
    n_masks, n_columns = len(packed), table.shape[1]
    total = np.zeros(((n_columns + _WIDTH - 1) // _WIDTH, n_masks, _WIDTH))
    sums = np.empty((_GROUPS, 1 << _FEATURES, _WIDTH))
    for part in range(len(total)):
        first = part * _WIDTH
        for at in range(0, packed.shape[1], _BYTES):
            _sum_subsets(table, 8 * at, first, min(_WIDTH, n_columns - first), sums)
            for r in range(n_masks):
                a, b, c = packed[r, at], packed[r, at + 1], packed[r, at + 2]
                one, two = sums[0, a >> 2], sums[1, (a & 3) << 4 | b >> 4]
                three, four = sums[2, (b & 15) << 2 | c >> 6], sums[3, c & 63]
                row = total[part, r]
                for i in range(_WIDTH):
                    row[i] += (one[i] + two[i]) + (three[i] + four[i])
    return total


def packed_masks(masks: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return masks, of shape (n_masks, n_features), as bits, with as many bytes as `selected_sums` needs."""
    n_bytes = -(-masks.shape[1] // 8)
    packed = np.zeros((len(masks), n_bytes + -n_bytes % _BYTES), dtype=np.uint8)
    packed[:, :n_bytes] = np.packbits(masks, axis=1)
    return packed


@compiled
def mixed_scores(scores: Floats, levels: Floats, n_classes: int) -> Floats:
    """Return the log-sum-exp over the components of scores plus levels, shape (n_rows, n_classes).

    Parameters
    ----------
    scores : ndarray of shape (n_parts, n_rows, 40)
        As `selected_sums` gives them: class by class for the first component, then the next.
    levels : ndarray of shape (n_rows, n_components)
    """
    n_rows, n_components = levels.shape
    mixed, joint, total = np.empty((n_rows, n_classes)), np.empty((n_components, n_classes)), np.empty(n_classes)
    for r in range(n_rows):
        top = mixed[r]
        top[:] = -np.inf
        part, place = 0, 0
        for z in range(n_components):
            for k in range(n_classes):
                joint[z, k] = scores[part, r, place] + levels[r, z]
                top[k] = max(top[k], joint[z, k])
                place += 1
                if place == _WIDTH:
                    part, place = part + 1, 0
        total[:] = 0.0
        for z in range(n_components):
            for k in range(n_classes):
                behind = joint[z, k] - top[k]
                if behind > _NEGLIGIBLE:
                    total[k] += math.exp(behind)
        for k in range(n_classes):
            top[k] += math.log(total[k])
    return mixed


@compiled
def normal_gap_scores(
    values: Floats, absent: NDArray[np.bool_], weights: Floats, means: Floats, precisions: Floats, halves: Floats
) -> tuple[Floats, Floats]:
    """Return log N(observed values; m, S) of rows, and what missing values add to the score of each class.

    With P the precision matrix, A its block of the missing values, and r the distance of the observed ones from their
    means, one Cholesky factor L of A gives everything: ``L^-1 P r`` the quadratic form and the mean of the missing
    values, ``L^-1 w`` their variance in the direction of a class.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_real)
        Anything where a value is missing.
    absent : ndarray of bool, shape (n_rows, n_real)
    weights : ndarray of shape (n_real, n_classes)
    means : ndarray of shape (n_components, n_real)
    precisions : ndarray of shape (n_components, n_real, n_real)
    halves : ndarray of shape (n_components,)
        Half the logarithms of the determinants of the covariances.

    Returns
    -------
    log_density : ndarray of shape (n_rows, n_components)
    scores : ndarray of shape (n_rows, n_components, n_classes)
    """
    (n_rows, n_real), n_components, n_classes = values.shape, len(means), weights.shape[1]
    density, scores = np.empty((n_rows, n_components)), np.empty((n_rows, n_components, n_classes))
    missing, seen = np.empty(n_real, dtype=np.int64), np.empty(n_real, dtype=np.int64)
    factor, column, distance = np.empty((n_real, n_real)), np.empty(n_real), np.empty(n_real)
    # What is solved for: in the first column P r, then the weights of the classes.
    right = np.empty((n_real, n_classes + 1))
    for r in range(n_rows):
        n_missing = n_seen = 0
        for i in range(n_real):
            if absent[r, i]:
                missing[n_missing] = i
                n_missing += 1
            else:
                seen[n_seen] = i
                n_seen += 1
        for z in range(n_components):
            precision, mean, score = precisions[z], means[z], scores[r, z]
            score[:] = 0.0
            quadratic = 0.0
            for a in range(n_seen):
                distance[a] = values[r, seen[a]] - mean[seen[a]]
            for a in range(n_seen):
                pulled = 0.0
                for b in range(n_seen):
                    pulled += precision[seen[a], seen[b]] * distance[b]
                quadratic += distance[a] * pulled
            for i in range(n_missing):
                row = precision[missing[i]]
                pulled = 0.0
                for b in range(n_seen):
                    pulled += row[seen[b]] * distance[b]
                right[i, 0] = -pulled
                for k in range(n_classes):
                    right[i, k + 1] = weights[missing[i], k]
                    score[k] += weights[missing[i], k] * mean[missing[i]]
                for j in range(i + 1):
                    factor[i, j] = row[missing[j]]
            half = halves[z]
            for j in range(n_missing):
                pivot = math.sqrt(factor[j, j])
                half += math.log(pivot)
                for k in range(n_classes + 1):
                    right[j, k] /= pivot
                shift = right[j, 0]
                quadratic -= shift * shift
                for k in range(n_classes):
                    score[k] += right[j, k + 1] * (shift + 0.5 * right[j, k + 1])
                for i in range(j + 1, n_missing):
                    column[i] = factor[i, j] / pivot
                for i in range(j + 1, n_missing):
                    times = column[i]
                    for k in range(j + 1, i + 1):
                        factor[i, k] -= times * column[k]
                    for k in range(n_classes + 1):
                        right[i, k] -= times * right[j, k]
            density[r, z] = -0.5 * (quadratic + n_seen * _LOG_2_PI) - half
    return density, scores
