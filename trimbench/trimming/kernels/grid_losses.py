"""Losses of feature subsets of a naive Bayes classifier whose weights are whole numbers of steps.

Given the class, the sum of weights over some features has few values then, each of which is a cell. The original is
positive where the cells of the kept and of the removed features add up to a number of steps.
"""

from __future__ import annotations

import numpy as np

from trimbench._compiling import compiled, compiled_sums
from trimbench.trimming.kernels.sorted_sums import Floats, Integers

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
