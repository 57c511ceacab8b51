"""Distributions of sums of many independent weights on a grid, with certified bounds on the effect of rounding.

Each weight is rounded to a multiple of the grid's step. The rounding errors of an instance add up to a random sum,
which depends on the other sums but is concentrated: by Hoeffding's inequality it stays within `slack` of its mean
except with probability `FAILURE`. So a tail probability of the true sum lies between two tail probabilities of the
rounded one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.engines.weight_sums import FloatArray
from trimbench.trimming.thresholds import TIE_TOLERANCE

# Probability, for each group and class, of rounding errors beyond the slack; part of every certified bound.
FAILURE = 1e-13


@dataclass(frozen=True, eq=False)
class RoundedSums:
    """The sum over a group of features under one class, as ``start + step * K + error``.

    Attributes
    ----------
    probabilities : ndarray of shape (n_points,)
        P(K = k), without the instances whose sum is infinite.
    infinite : float
        Probability of an infinite sum: +inf under the positive class, -inf under the negative one.
    error_mean, slack : float
        The error is within `slack` of its mean except with probability `FAILURE`.
    """

    start: float
    step: float
    probabilities: FloatArray
    infinite: float
    error_mean: float
    slack: float

    @property
    def points(self) -> FloatArray:
        """The sums at the grid's points, corrected for the mean of the error."""
        return np.asarray(self.start + self.error_mean + self.step * np.arange(self.probabilities.size))

    def tails(self, queries: FloatArray) -> FloatArray:
        """Return P(corrected rounded sum >= query), for finite sums only."""
        above = np.concatenate([np.cumsum(self.probabilities[::-1])[::-1], [0.0]])
        # A tiny margin keeps a query that falls on a point from being rounded past it; it must not reach beyond ties.
        margin = min(1e-9, 0.25 * TIE_TOLERANCE / self.step)
        places = np.ceil((queries - self.start - self.error_mean) / self.step - margin)
        return np.asarray(above[np.clip(places, 0, self.probabilities.size).astype(np.int64)])


def rounded_sums(tables: Sequence[FloatArray], n_points: int) -> tuple[RoundedSums, RoundedSums]:
    """Return the distribution of the sum of the weights ``log P(v | c) - log P(v | not c)`` under both classes.

    Parameters
    ----------
    tables : sequence of ndarrays of shape (2, cardinality)
        P(value | c) and P(value | not c) of each feature of the group.
    n_points : int
        Upper limit on the number of points of the grid.

    Returns
    -------
    positive, negative : RoundedSums
        On the same grid.
    """
    weights = []
    for positive, negative in tables:
        with np.errstate(divide="ignore", invalid="ignore"):
            weights.append(np.log(positive) - np.log(negative))
    finite = [weight[np.isfinite(weight)] for weight in weights]
    lowest = [float(values.min()) if values.size else 0.0 for values in finite]
    spread = math.fsum(float(np.ptp(values)) for values in finite if values.size)
    # Rounding may add half a step for each feature.
    step = spread / max(1, n_points - len(tables) - 1) or 1.0
    sides = []
    for side in (0, 1):
        probabilities, reached = np.zeros(n_points), 1
        probabilities[0] = 1.0
        mean, squares, absolute = 0.0, 0.0, 0.0
        for table, weight, low in zip(tables, weights, lowest, strict=True):
            usable = np.isfinite(weight) & (table[side] > 0)
            if not usable.any():
                probabilities[:reached] = 0.0
                continue
            shifts = np.rint((weight[usable] - low) / step).astype(np.int64)
            errors = weight[usable] - low - shifts * step
            chances = table[side][usable]
            reached = _add_feature(probabilities, reached, shifts, chances)
            within = chances / chances.sum()
            mean += float(within @ errors)
            squares += float(np.ptp(errors)) ** 2
            absolute += float(max(errors.max() - within @ errors, within @ errors - errors.min()))
        slack = min(absolute, math.sqrt(0.5 * squares * math.log(2.0 / FAILURE)))
        infinite = max(0.0, 1.0 - float(probabilities.sum()))
        start = math.fsum(lowest)
        sides.append(RoundedSums(start, step, probabilities[:reached].copy(), infinite, mean, slack))
    return sides[0], sides[1]


def _add_feature(probabilities: FloatArray, reached: int, shifts: NDArray[np.int64], chances: FloatArray) -> int:
    """Convolve the first `reached` probabilities with one feature, in place, and return their new number."""
    before = probabilities[:reached].copy()
    probabilities[:reached] = 0.0
    for shift, chance in zip(shifts.tolist(), chances.tolist(), strict=True):
        probabilities[shift : shift + reached] += chance * before
    return reached + int(shifts.max())
