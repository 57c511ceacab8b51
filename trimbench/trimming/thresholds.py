"""Decisions by a threshold or for the most probable class, ties, and the cut with the highest agreement."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Two odds are equal when they differ by less than this factor: products of up to some hundred probabilities
# carry a relative rounding error of about 1e-14.
TIE_TOLERANCE = 1e-12
# Instances are tied over a wider range than classification tolerates, so that a threshold halfway between two groups is
# clear of both.
_GROUP_TOLERANCE = 1e-11
# On rows: log-odds closer than this are tied; posteriors of larger log-odds are 1 in floating point, so that no
# threshold separates them; smaller masses are what rounding leaves of parts without rows.
TIED_LOG_ODDS = 1e-11
HIGHEST_LOG_ODDS = 36.0
NO_MASS = 1e-14
# Floating-point numbers between 1/2 and 1 are multiples of this; the tolerance is coarser at this distance from 1.
_ULP, _CLOSE_TO_ONE = 2.0**-53, 1e-3


def log_odds(threshold: float) -> float:
    """Return the log-odds that an instance needs for a posterior of at least the threshold."""
    if threshold in (0.0, 1.0):
        return math.inf if threshold else -math.inf
    return math.log(threshold) - math.log1p(-threshold)


def is_positive(positive: NDArray[np.float64], negative: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return whether Pr(c | f) >= threshold, by cross-multiplication.

    Parameters
    ----------
    positive, negative : ndarrays of one shape
        Pr(c, f) and Pr(not c, f), or both times a common factor.
    """
    return np.asarray(positive * (1.0 - threshold) >= negative * (threshold * (1.0 - TIE_TOLERANCE)))


def most_probable(joint: NDArray[np.float64], *, logarithms: bool = False) -> NDArray[np.intp]:
    """Return the position of the most probable class of each instance: the first of those equal up to rounding.

    Parameters
    ----------
    joint : ndarray of shape (n_classes, n_instances)
        Pr(c, f), each column up to a factor, or logarithms of it.
    """
    top = joint.max(axis=0)
    tied = joint >= (top - TIE_TOLERANCE if logarithms else top * (1.0 - TIE_TOLERANCE))
    return np.asarray(tied.argmax(axis=0))


@dataclass(frozen=True)
class Instances:
    """The instances f' of a feature subset F', one entry each.

    Attributes
    ----------
    positive, negative : ndarrays of shape (n_instances,)
        Pr(c, f') and Pr(not c, f').
    signed : ndarray of shape (n_instances,)
        d(f'): the probability of f' together with an original classification as positive, minus that with an
        original classification as negative.
    """

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]
    signed: NDArray[np.float64]

    def agreement(self, threshold: float) -> float:
        """Return the expected classification agreement when f' is classified with `threshold` (Eq. 3)."""
        positive = is_positive(self.positive, self.negative, threshold)
        return agreement_of(float(np.where(positive, self.signed, -self.signed).sum()))


def agreement_of(balance: float) -> float:
    """Return the agreement (1 + balance) / 2 of a sum of signed masses, free of rounding beyond [0, 1]."""
    return min(1.0, max(0.0, 0.5 * (1.0 + balance)))


@dataclass(frozen=True)
class Cut:
    """A threshold interval and the agreement that every threshold in it has.

    Attributes
    ----------
    low, high : float
        Every T' with ``low < T' <= high``; ``low == high == 0`` stands for T' = 0 alone.
    """

    agreement: float
    low: float
    high: float

    def representative(self, preferred: float) -> float:
        """Return `preferred` if it lies in the interval, else its middle."""
        if self.low < preferred <= self.high:
            return preferred
        middle = 0.5 * (self.low + self.high)
        return middle if self.low < middle else self.high


def best_cut(instances: Instances, preferred: float) -> Cut:
    """Return the threshold interval with the highest agreement (Algorithm 2).

    Instances are sorted by posterior and moved below the threshold in turn. Those with the same posterior move
    together: no threshold separates them.

    Parameters
    ----------
    preferred : float
        Of several best intervals, the one that holds this threshold is taken, else the lowest.

    Returns
    -------
    Cut
        Its agreement is the maximum achievable agreement of the feature subset (Definition 3).
    """
    seen = (instances.positive > 0) | (instances.negative > 0)
    positive, negative = instances.positive[seen], instances.negative[seen]
    with np.errstate(divide="ignore"):
        log_odds = np.log(positive) - np.log(negative)
    order = np.argsort(log_odds, kind="stable")
    log_odds = log_odds[order]
    reached, missed = _reached_and_missed(positive[order], negative[order])
    # inf - inf is the distance of two posteriors that are both 0 or both 1.
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.diff(log_odds), nan=0.0, posinf=np.inf) > _GROUP_TOLERANCE
    starts = np.concatenate([[0], 1 + np.flatnonzero(apart & (missed[:-1] < reached[1:]))])
    signed = np.add.reduceat(instances.signed[seen][order], starts)
    # Entry i: the i lowest groups are below the threshold.
    scores = signed.sum() - 2.0 * np.concatenate([[0.0], np.cumsum(signed)])
    lows = np.concatenate([[0.0], missed[np.concatenate([starts[1:], [missed.size]]) - 1]])
    highs = np.concatenate([reached[starts], [1.0]])
    if np.isposinf(log_odds[-1]):
        scores[-1] = -np.inf  # no threshold is above a posterior of 1
    best = np.flatnonzero(scores >= scores.max() - TIE_TOLERANCE)
    holds = best[(lows[best] < preferred) & (preferred <= highs[best])]
    chosen = int(holds[0]) if holds.size else int(best[0])
    return Cut(agreement_of(float(scores[chosen])), float(lows[chosen]), float(highs[chosen]))


def thresholds_between(below: float, above: float) -> tuple[float, float]:
    """Return the ends of the thresholds that one log-odds misses and another, higher one reaches."""
    with np.errstate(over="ignore"):
        positive, negative = (1.0 / (1.0 + np.exp(sign * np.array([below, above]))) for sign in (-1.0, 1.0))
    reached, missed = _reached_and_missed(positive, negative)
    return float(missed[0]), float(reached[1])


def _reached_and_missed(
    positive: NDArray[np.float64], negative: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a threshold that each posterior reaches, and one above which it reaches none.

    A posterior reaches those that are higher by less than the tolerance, too. Close to 1 the tolerance is finer than
    floating-point numbers, which are multiples of 2^-53 there: the probability of the other class, which is not rounded
    as much, then says between which of them the posterior is.
    """
    total = positive + negative
    reached, other = positive / total, negative / total
    missed = reached + 2.0 * TIE_TOLERANCE * reached * other
    close = other < _CLOSE_TO_ONE
    for thresholds, tolerance in ((reached, 0.5 * TIE_TOLERANCE), (missed, 2.0 * TIE_TOLERANCE)):
        thresholds[close] = 1.0 - np.ceil(other[close] * (1.0 - tolerance) / _ULP) * _ULP
    return reached, missed
