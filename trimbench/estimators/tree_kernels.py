"""Compiled passes down trees; `trimbench.estimators.trees` has their twins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled, compiled_sums

# A node that so little of a row gets to adds nothing.
_NOTHING = 1e-16
_BLOCK = 512


@compiled
def path_bounds(
    roots: NDArray[np.int64],
    features: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    own: NDArray[np.int64],
    n_features: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each node the places of the thresholds that bound its feature from below and from above."""
    n_nodes = len(features)
    low, high = np.zeros(n_nodes, dtype=np.int64), np.ones(n_nodes, dtype=np.int64)
    lows, highs = np.zeros(n_features, dtype=np.int64), np.ones(n_features, dtype=np.int64)
    waiting, turns = np.empty(n_nodes + 1, dtype=np.int64), np.zeros(n_nodes + 1, dtype=np.int64)
    for tree in range(len(roots) - 1):
        waiting[0], turns[0], depth = roots[tree], 0, 1
        while depth > 0:
            node = waiting[depth - 1]
            feature = features[node]
            turn = turns[depth - 1]
            if feature < 0 or turn == 2:
                if feature >= 0:
                    lows[feature] = low[node]
                depth -= 1
                continue
            if turn == 0:
                low[node], high[node] = lows[feature], highs[feature]
                highs[feature] = own[node]
                waiting[depth] = left[node]
            else:
                lows[feature], highs[feature] = own[node], high[node]
                waiting[depth] = right[node]
            turns[depth - 1] += 1
            turns[depth] = 0
            depth += 1
    return low, high


@compiled_sums
def add_expected(
    roots: NDArray[np.int64],
    features: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    values: NDArray[np.float64],
    shares: NDArray[np.float64],
    rows: NDArray[np.float32],
    weights: NDArray[np.float64],
    least: float,
    total: NDArray[np.float64],
) -> None:
    """Add the expectation of each tree for rows with weights of shape (n_rows, n_components) to a total."""
    n_rows, n_components = weights.shape
    n_classes = values.shape[1]
    # The components that count come first in each row, as many as `counts` says.
    active = np.empty((n_rows, n_components), dtype=np.int64)
    counts = np.zeros(n_rows, dtype=np.int64)
    kept = np.empty((n_rows, n_components))
    for n in range(n_rows):
        for k in range(n_components):
            if weights[n, k] > least:
                active[n, counts[n]], kept[n, counts[n]] = k, weights[n, k]
                counts[n] += 1
        if 2 * counts[n] > n_components:
            counts[n] = n_components
            kept[n] = weights[n]
    room = np.max(roots[1:] - roots[:-1])
    waiting = np.empty(room, dtype=np.int64)
    stacked = np.empty((room, n_components))
    current, gathered = np.empty(n_components), np.empty(n_components)
    n_trees = len(roots) - 1
    # A block of rows after the other, which stays in the cache of the processor. There are no slices in the loops: each
    # would take as long as a node.
    for turn in range(n_trees * ((n_rows + _BLOCK - 1) // _BLOCK)):
        tree, block = turn % n_trees, turn // n_trees
        for n in range(block * _BLOCK, min((block + 1) * _BLOCK, n_rows)):
            count = counts[n]
            whole = count == n_components
            node, depth = roots[tree], 0
            for a in range(count):
                current[a] = kept[n, a]
            while True:
                feature = features[node]
                ended = feature < 0
                if ended:
                    reached = 0.0
                    for a in range(count):
                        reached += current[a]
                    for c in range(n_classes):
                        total[n, c] += reached * values[node, c]
                else:
                    value = rows[n, feature]
                    if value <= thresholds[node]:
                        node = left[node]
                        continue
                    if value > thresholds[node]:
                        node = right[node]
                        continue
                    if whole:
                        for a in range(count):
                            gathered[a] = shares[node, a]
                    else:
                        for a in range(count):
                            gathered[a] = shares[node, active[n, a]]
                    to_left, to_right = left[node], right[node]
                    left_ends, right_ends = features[to_left] < 0, features[to_right] < 0
                    if left_ends or right_ends:
                        # What ends here is added at once; only the other side goes on.
                        reach_left, reach_both = 0.0, 0.0
                        if left_ends:
                            for a in range(count):
                                share = current[a] * gathered[a]
                                reach_left += share
                                reach_both += current[a]
                                current[a] -= share
                            for c in range(n_classes):
                                total[n, c] += reach_left * values[to_left, c]
                        else:
                            for a in range(count):
                                share = current[a] * gathered[a]
                                reach_left += share
                                reach_both += current[a]
                                current[a] = share
                        if right_ends:
                            for c in range(n_classes):
                                total[n, c] += (reach_both - reach_left) * values[to_right, c]
                        ended = left_ends and right_ends
                        node = to_right if left_ends else to_left
                    else:
                        waiting[depth] = to_right
                        for a in range(count):
                            share = current[a] * gathered[a]
                            stacked[depth, a] = current[a] - share
                            current[a] = share
                        depth += 1
                        node = to_left
                if not ended:
                    continue
                # The next node that waits with any weight.
                reached = 0.0
                while depth > 0 and reached <= _NOTHING:
                    depth -= 1
                    node = waiting[depth]
                    reached = 0.0
                    for a in range(count):
                        current[a] = stacked[depth, a]
                        reached += current[a]
                if reached <= _NOTHING:
                    break
