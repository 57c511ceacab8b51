"""Compiled passes down trees; `trimbench.estimators.trees` has their twins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled, compiled_sums


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
    active = np.empty((n_rows, n_components), dtype=np.int64)
    counts = np.zeros(n_rows, dtype=np.int64)
    kept = np.empty((n_rows, n_components))
    for n in range(n_rows):
        for k in range(n_components):
            if weights[n, k] > least:
                active[n, counts[n]], kept[n, counts[n]] = k, weights[n, k]
                counts[n] += 1
    room = 64
    waiting = np.empty(room, dtype=np.int64)
    stacked = np.empty((room, n_components))
    current = np.empty(n_components)
    for tree in range(len(roots) - 1):
        for n in range(n_rows):
            count = counts[n]
            node, depth = roots[tree], 0
            current[:count] = kept[n, :count]
            while True:
                feature = features[node]
                if feature < 0:
                    reached = 0.0
                    for a in range(count):
                        reached += current[a]
                    for c in range(n_classes):
                        total[n, c] += reached * values[node, c]
                    if depth == 0:
                        break
                    depth -= 1
                    node = waiting[depth]
                    current[:count] = stacked[depth, :count]
                    continue
                value = rows[n, feature]
                if value <= thresholds[node]:
                    node = left[node]
                elif value > thresholds[node]:
                    node = right[node]
                else:
                    if depth == room:
                        waiting = np.concatenate((waiting, np.empty(room, dtype=np.int64)))
                        stacked = np.concatenate((stacked, np.empty((room, n_components))))
                        room *= 2
                    to_left, to_right = 0.0, 0.0
                    for a in range(count):
                        share = current[a] * shares[node, active[n, a]]
                        stacked[depth, a] = current[a] - share
                        current[a] = share
                        to_left += share
                        to_right += stacked[depth, a]
                    if to_right <= 0.0:
                        node = left[node]
                    elif to_left <= 0.0:
                        current[:count] = stacked[depth, :count]
                        node = right[node]
                    else:
                        waiting[depth] = right[node]
                        depth += 1
                        node = left[node]
