"""Every subset of the features of a network, from its joint distribution: another way to the best trimming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import trimbench as tb

# Posterior odds that are this close to the threshold's are on it, in the files' own rounding.
TIE = 1e-12


def potential_agreements(
    model: tb.NaiveBayes, positive: str, thresholds: list[float], size: int
) -> dict[tuple[int, ...], np.ndarray]:
    """Return the maximum potential agreement of each subset of a size, an array with one value for each threshold.

    The table has an axis for each feature and, before these, one entry for each threshold (mass of the instances that
    are classified as positive) and one for the mass of all. Features are decided one after the other: a table in which
    the first ones are decided serves all subsets that agree on them.
    """
    one = np.array([1.0])
    joint = []
    for side in (model.class_names.index(positive), 1 - model.class_names.index(positive)):
        table = one * model.prior[side]
        for rows in model.likelihoods:
            table = np.multiply.outer(table, rows[side]).reshape(-1)
        joint.append(table)
    mass = joint[0] + joint[1]
    accepted = [joint[0] * (1 - t) >= joint[1] * t * (1 - TIE) for t in thresholds]
    start = np.stack([*(np.where(chosen, mass, 0.0) for chosen in accepted), mass])
    level: dict[tuple[int, ...], NDArray[np.float64]] = {(): start.reshape(len(thresholds) + 1, 1, -1)}
    for feature, cardinality in enumerate(model.cardinalities):
        level = _decide(level, feature, cardinality, size, model.n_features)
    found = {}
    for subset, table in level.items():
        positives, everything = table[:-1, :, 0], table[-1:, :, 0]
        found[subset] = np.maximum(positives, everything - positives).sum(axis=1)
    return found


def _decide(
    level: dict[tuple[int, ...], np.ndarray], feature: int, cardinality: int, size: int, n_features: int
) -> dict[tuple[int, ...], np.ndarray]:
    decided = {}
    for subset, table in level.items():
        rows, kept, _ = table.shape
        split = table.reshape(rows, kept, cardinality, -1)
        if len(subset) + n_features - feature - 1 >= size:
            decided[subset] = sum(split[:, :, value] for value in range(1, cardinality)) + split[:, :, 0]
        if len(subset) < size:
            decided[(*subset, feature)] = split.reshape(rows, kept * cardinality, -1)
    return decided


def best(values: dict[tuple[int, ...], np.ndarray], place: int, margin: float) -> tuple[float, tuple[int, ...] | None]:
    """Return the highest value at one threshold, and its subset if no other comes as close as `margin`."""
    ranked = sorted(((float(value[place]), subset) for subset, value in values.items()), reverse=True)
    (first, subset), second = next(pairwise(ranked)) if len(ranked) > 1 else (ranked[0], (-1.0, ()))
    return first, subset if first - second[0] > margin else None
