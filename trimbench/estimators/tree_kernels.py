"""Compiled passes down trees; `trimbench.estimators.trees` has their twins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled, compiled_sums

# A node that so little of a row gets to adds nothing.
_NOTHING = 1e-16
# Rows that walk down all trees before the next ones do, so that they stay in the processor's cache, and rows that are
# swept through a tree side by side.
_WALKED, _SWEPT = 512, 384


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


@compiled
def n_visits(
    roots: NDArray[np.int64],
    features: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    rows: NDArray[np.float32],
) -> int:
    """Return how many nodes with a split rows get to, all trees together."""
    waiting = np.empty(np.max(roots[1:] - roots[:-1]), dtype=np.int64)
    visits = 0
    for n in range(len(rows)):
        for root in roots[:-1]:
            waiting[0], depth = root, 1
            while depth > 0:
                depth -= 1
                node = waiting[depth]
                if features[node] < 0:
                    continue
                visits += 1
                value = rows[n, features[node]]
                if not value > thresholds[node]:
                    waiting[depth] = left[node]
                    depth += 1
                if not value <= thresholds[node]:
                    waiting[depth] = right[node]
                    depth += 1
    return visits


@compiled_sums
def add_swept(
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
    """Add the expectation of each tree for rows with weights of shape (n_rows, n_components) to a total.

    Each component sends blocks of the rows in which it counts through all nodes, whether a row gets there or not.
    """
    n_rows, n_components = weights.shape
    slots, ends = _slots_and_ends(roots, features, left, right)
    columns = np.empty((rows.shape[1], _SWEPT))
    inflow = np.empty((slots.max() + 2, _SWEPT))
    added = np.empty((values.shape[1], _SWEPT))
    places = np.empty(n_rows, dtype=np.int64)
    for component in range(n_components):
        own_shares = shares[:, component].copy()
        n_places = 0
        for n in range(n_rows):
            places[n_places] = n
            n_places += weights[n, component] > least
        for first in range(0, n_places, _SWEPT):
            count = min(_SWEPT, n_places - first)
            for a in range(count):
                for feature in range(rows.shape[1]):
                    columns[feature, a] = rows[places[first + a], feature]
            added[:] = 0.0
            for tree in range(len(roots) - 1):
                reached = 0.0
                for a in range(count):
                    inflow[0, a] = weights[places[first + a], component]
                    reached += inflow[0, a]
                nodes = (roots[tree], roots[tree + 1])
                _sweep(
                    nodes, features, thresholds, slots, ends, values, own_shares, columns, count, reached, inflow, added
                )
            for a in range(count):
                for c in range(values.shape[1]):
                    total[places[first + a], c] += added[c, a]


@compiled
def _slots_and_ends(
    roots: NDArray[np.int64], features: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the weights at each node are kept, and the node after its subtree, for nodes in preorder.

    What goes right takes the place of what comes in, since what goes left, one place on, is dealt with first.
    """
    slots, ends = np.zeros(len(features), dtype=np.int64), np.zeros(len(features), dtype=np.int64)
    for tree in range(len(roots) - 1):
        ends[roots[tree]] = roots[tree + 1]
        for node in range(roots[tree], roots[tree + 1]):
            if features[node] >= 0:
                slots[left[node]], slots[right[node]] = slots[node] + 1, slots[node]
                ends[left[node]], ends[right[node]] = right[node], ends[node]
    return slots, ends


@compiled_sums
def _sweep(
    nodes: tuple[int, int],
    features: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    slots: NDArray[np.int64],
    ends: NDArray[np.int64],
    values: NDArray[np.float64],
    shares: NDArray[np.float64],
    columns: NDArray[np.float64],
    count: int,
    reached: float,
    inflow: NDArray[np.float64],
    added: NDArray[np.float64],
) -> None:
    """Send the first rows of a block through one tree."""
    reach = np.empty(len(inflow))
    reach[0] = reached
    node = nodes[0]
    while node < nodes[1]:
        slot, feature = slots[node], features[node]
        if reach[slot] <= _NOTHING:
            node = ends[node]
            continue
        if feature < 0:
            for c in range(values.shape[1]):
                if values[node, c] != 0.0:
                    _add_product(inflow, slot, values[node, c], count, added, c)
        elif ends[node] == node + 3:
            for c in range(values.shape[1]):
                if values[node + 1, c] != 0.0 or values[node + 2, c] != 0.0:
                    _add_mean(
                        inflow,
                        slot,
                        columns,
                        feature,
                        thresholds[node],
                        shares[node],
                        count,
                        values[node + 1, c],
                        values[node + 2, c],
                        added,
                        c,
                    )
            node += 2
        else:
            reach[slot], reach[slot + 1] = _divide(
                inflow, slot, columns, feature, thresholds[node], shares[node], count
            )
        node += 1


@compiled_sums
def _divide(
    inflow: NDArray[np.float64],
    slot: int,
    columns: NDArray[np.float64],
    feature: int,
    threshold: float,
    share: float,
    count: int,
) -> tuple[float, float]:
    """Divide the weights in a slot between it, for the right, and the next one, for the left; return both sums."""
    right, left = 0.0, 0.0
    for a in range(count):
        value, weight = columns[feature, a], inflow[slot, a]
        of_known = 1.0 if value <= threshold else 0.0
        to_left = weight * (share if value != value else of_known)
        to_right = weight - to_left
        inflow[slot + 1, a] = to_left
        inflow[slot, a] = to_right
        left += to_left
        right += to_right
    return right, left


@compiled_sums
def _add_mean(
    inflow: NDArray[np.float64],
    slot: int,
    columns: NDArray[np.float64],
    feature: int,
    threshold: float,
    share: float,
    count: int,
    of_left: float,
    of_right: float,
    added: NDArray[np.float64],
    c: int,
) -> None:
    """Add what the two leaves below a node give, divided as in `_divide`."""
    mean = of_right + share * (of_left - of_right)
    for a in range(count):
        value = columns[feature, a]
        of_known = of_left if value <= threshold else of_right
        added[c, a] += inflow[slot, a] * (mean if value != value else of_known)


@compiled_sums
def _add_product(
    inflow: NDArray[np.float64], slot: int, value: float, count: int, added: NDArray[np.float64], c: int
) -> None:
    """Add what one leaf gives a class."""
    for a in range(count):
        added[c, a] += inflow[slot, a] * value


@compiled_sums
def add_walked(
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
    """Do what `add_swept` does, one row after the other, which gets to its own nodes only."""
    n_rows, n_components = weights.shape
    active, kept, counts = _counting_components(weights, least)
    # A split needs a place beyond those of the nodes that wait.
    room = np.max(roots[1:] - roots[:-1]) + 1
    waiting, stacked = np.empty(room, dtype=np.int64), np.empty((room, n_components))
    nodes = (features, thresholds, left, right, values)
    n_trees = len(roots) - 1
    for turn in range(n_trees * ((n_rows + _WALKED - 1) // _WALKED)):
        tree, block = turn % n_trees, turn // n_trees
        for n in range(block * _WALKED, min((block + 1) * _WALKED, n_rows)):
            waiting[0] = roots[tree]
            for a in range(counts[n]):
                stacked[0, a] = kept[n, a]
            _walk(n, counts[n], nodes, shares, rows, active, waiting, stacked, total)


@compiled_sums
def _walk(
    n: int,
    count: int,
    nodes: tuple[NDArray[Any], ...],
    shares: NDArray[np.float64],
    rows: NDArray[np.float32],
    active: NDArray[np.int64],
    waiting: NDArray[np.int64],
    stacked: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Walk a row down from the node that waits, both ways where a value is missing."""
    features, thresholds, left, right, values = nodes
    depth = 0
    while depth >= 0:
        node = waiting[depth]
        # There are no calls in this loop, and no slices: each would take as long as a node.
        while features[node] >= 0:
            value = rows[n, features[node]]
            if value <= thresholds[node]:
                node = left[node]
            elif value > thresholds[node]:
                node = right[node]
            else:
                break
        if features[node] < 0:
            reached = 0.0
            for a in range(count):
                reached += stacked[depth, a]
            for c in range(values.shape[1]):
                total[n, c] += reached * values[node, c]
            depth -= 1
            continue
        to_left, reached = 0.0, 0.0
        for a in range(count):
            weight = stacked[depth, a]
            share = weight * shares[node, active[n, a]]
            stacked[depth, a] = weight - share
            stacked[depth + 1, a] = share
            to_left += share
            reached += weight
        waiting[depth], waiting[depth + 1] = right[node], left[node]
        if to_left > _NOTHING:
            depth += 1
        elif reached - to_left <= _NOTHING:
            depth -= 1


@compiled
def _counting_components(
    weights: NDArray[np.float64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the components that count in each row, first in it, with their weights, and how many they are."""
    n_rows, n_components = weights.shape
    active, kept = np.zeros((n_rows, n_components), dtype=np.int64), np.empty((n_rows, n_components))
    counts = np.zeros(n_rows, dtype=np.int64)
    for n in range(n_rows):
        for k in range(n_components):
            if weights[n, k] > least:
                active[n, counts[n]], kept[n, counts[n]] = k, weights[n, k]
                counts[n] += 1
    return active, kept, counts
