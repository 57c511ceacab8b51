"""Cuts of a number that separate classes: recursive entropy minimisation with the MDL stopping rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Entropies of mirrored class counts differ by rounding: the lowest of equally good cuts is taken.
_TIE = 1e-12


def entropy_cuts(values: NDArray[np.float64], classes: NDArray[np.integer]) -> tuple[float, ...]:
    """Return the cuts that minimise the entropy of the classes, as many as pay for their description.

    An interval is cut between two neighbouring values where the mean entropy of the classes on both sides is smallest,
    if the gain exceeds the cost of describing the cut (minimum description length); both sides are cut in turn.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Finite numbers.
    classes : ndarray of int, shape (n_rows,)
        Class of each row, 0 or more.

    Returns
    -------
    tuple of float
        Ascending; a row is above a cut if its value is greater.

    References
    ----------
    Fayyad and Irani (1993), Multi-interval discretization of continuous-valued attributes for classification learning,
    IJCAI, sections 2 and 3.
    """
    if values.size == 0:
        return ()
    levels, places = np.unique(values, return_inverse=True)
    counts = np.zeros((levels.size, int(classes.max()) + 1))
    np.add.at(counts, (places, classes), 1.0)
    # Row i: the rows with one of the i lowest values, by class.
    below = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    cuts = []
    open_parts = [(0, levels.size)]
    while open_parts:
        start, stop = open_parts.pop()
        place = _best_cut(below[start : stop + 1] - below[start])
        if place is not None:
            cuts.append(between(float(levels[start + place - 1]), float(levels[start + place])))
            open_parts += [(start, start + place), (start + place, stop)]
    return tuple(sorted(cuts))


def between(low: float, high: float) -> float:
    """Return a cut with `low` not above and `high` above it: the middle, unless rounding makes it `high`."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


def _best_cut(below: NDArray[np.float64]) -> int | None:
    """Return how many values the lower side of the best cut has; None if no cut pays for itself.

    `below` has the class counts of the 0, 1, ... lowest values of an interval.
    """
    if len(below) < 3:
        return None
    whole = below[-1]
    n_rows = whole.sum()
    left, right = below[1:-1], whole - below[1:-1]
    left_entropy, right_entropy = _entropy(left), _entropy(right)
    mean = (left.sum(axis=1) * left_entropy + right.sum(axis=1) * right_entropy) / n_rows
    place = int(np.flatnonzero(mean <= mean.min() + _TIE)[0])
    entropy = float(_entropy(whole))
    n_whole, n_left, n_right = ((counts > 0).sum() for counts in (whole, left[place], right[place]))
    change = np.log2(3.0**n_whole - 2.0)
    change -= n_whole * entropy - n_left * left_entropy[place] - n_right * right_entropy[place]
    cost = (np.log2(n_rows - 1.0) + change) / n_rows
    return place + 1 if entropy - mean[place] > cost else None


def _entropy(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy in bits along the last axis."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    logs = np.log2(np.where(shares > 0, shares, 1.0))
    return np.asarray(-(shares * logs).sum(axis=-1))
