"""Certified bounds for naive Bayes: sums of independent weights on a grid, and losses that are certain.

Each weight is rounded to a multiple of the grid's step. The rounding errors of an instance add up to a random sum,
which depends on the other sums but is concentrated: by Hoeffding's inequality it stays within `slack` of its mean
except with probability `FAILURE`. So a tail probability of the true sum lies between two tail probabilities of the
rounded one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import clock
from trimbench._typing import FloatArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import TIE_TOLERANCE, log_odds
from trimbench.trimming.engines.log_odds import WeightSums, reached, sign_change
from trimbench.trimming.engines.table import separation
from trimbench.trimming.problem import Choice, Limits

# Probability, for each group and class, of rounding errors beyond the slack; part of every certified bound.
FAILURE = 1e-13
# Points of a grid that are looked up at once.
_AT_ONCE = 2**18


@dataclass(frozen=True, eq=False)
class RoundedSums:
    """The sum of the weights of a group of features under one class, as ``start + step * K + error``.

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
    def finite(self) -> float:
        """Probability of a finite sum."""
        return float(self.probabilities.sum())

    @property
    def points(self) -> FloatArray:
        """The sums at the grid's points, corrected for the mean of the error."""
        return np.asarray(self.start + self.error_mean + self.step * np.arange(self.probabilities.size))

    def tails(self, queries: FloatArray) -> FloatArray:
        """Return P(corrected rounded sum >= query), for finite sums only."""
        above = np.zeros(self.probabilities.size + 1)
        np.cumsum(self.probabilities[::-1], out=above[-2::-1])
        # A tiny margin keeps a query that falls on a point from being rounded past it; it must stay within ties.
        margin = min(1e-9, 0.25 * TIE_TOLERANCE / self.step)
        # In place, as grids are long.
        places = queries - self.start
        places -= self.error_mean
        places /= self.step
        places -= margin
        np.clip(np.ceil(places, out=places), 0, self.probabilities.size, out=places)
        for start in range(0, places.size, _AT_ONCE):
            part = places[start : start + _AT_ONCE]
            part[...] = above[part.astype(np.int64)]
        return places


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


# Certified agreement of naive Bayes trimmings with any number of features.

DEFAULT_POINTS = 2**20
# Sums over a subset with at most this many instances are enumerated instead of rounded.
_EXACT_INSTANCES = 2**16
# The thresholds next to 0 and 1.
_LOWEST, _HIGHEST = math.ulp(0.0), math.nextafter(1.0, 0.0)
# Rounding of the sums of probabilities themselves, and what Hoeffding's inequality leaves open on both sides.
_MARGIN = 1e-11 + 4 * FAILURE


@dataclass(frozen=True)
class CertifiedAgreement:
    """Bounds on the agreement of one trimming.

    Attributes
    ----------
    low, high : float
        The expected classification agreement lies between them.
    threshold : float
        T'.
    """

    low: float
    high: float
    threshold: float


@dataclass(frozen=True, eq=False)
class _Points:
    """Log-odds of the instances of the kept features under one class.

    Attributes
    ----------
    values, probabilities : ndarrays of shape (n_points,)
    infinite : float
        Probability of infinite log-odds.
    slack : float
        How far the true log-odds may be from a point.
    """

    values: FloatArray
    probabilities: FloatArray
    infinite: float
    slack: float


@dataclass(frozen=True, eq=False)
class CertifiedEngine:
    """Bounds on the agreement of trimmings of a naive Bayes classifier.

    Parameters
    ----------
    classifier : BayesianClassifier
        With a threshold strictly between 0 and 1, and a prior that rules out no class.
    n_points : int
        Size of the grids: more points, narrower bounds.
    """

    classifier: BayesianClassifier
    n_points: int = DEFAULT_POINTS

    def __post_init__(self) -> None:
        if not 0 < self.classifier.threshold < 1 or not (self.classifier.prior > 0).all():
            raise ValueError(
                "certified bounds need a threshold strictly between 0 and 1 and a prior without zeros, got threshold "
                f"{self.classifier.threshold!r} and prior {self.classifier.prior.tolist()}; at most 2^44 instances of "
                "the features are computed exactly, with any threshold and prior"
            )

    def agreement(self, features: Sequence[int], threshold: float | None = None) -> CertifiedAgreement:
        """Return bounds on the agreement of a feature subset (given by position).

        Parameters
        ----------
        threshold : float in (0, 1), optional
            T'; default: that of the classifier or the best one on the grid, whichever has the higher lower bound.
        """
        sums = self._sums(features)
        if threshold is not None:
            return self._agreement(*sums, threshold)
        found = [self._agreement(*sums, level) for level in (self.classifier.threshold, self._best_threshold(*sums))]
        return max(found, key=lambda bounds: bounds.low)

    def highest_agreement(self, features: Sequence[int]) -> float:
        """Return an upper bound on the agreement of a feature subset (given by position) over all thresholds.

        The lenient count of `agreement`, at the threshold that makes it largest.
        """
        kept, rest = self._sums(features)
        slack = kept[0].slack + kept[1].slack
        signs = (-1.0, 1.0) if slack else (0.0,)
        edges = np.unique(np.concatenate([part.values + sign * part.slack for part in kept for sign in signs]))
        if not slack:
            # Points that are known exactly lie on one side of a threshold or the other, so thresholds lie between them.
            edges = 0.5 * (edges[1:] + edges[:-1])
        edges = np.concatenate([[-math.inf], edges, [math.inf]])
        total = np.zeros(edges.size)
        for side in (0, 1):
            points = kept[side]
            reach, miss = self._shares(side, points, rest[side], strict=False)
            reached = np.concatenate([np.cumsum((points.probabilities * reach)[::-1])[::-1], [0.0]])
            missed = np.concatenate([[0.0], np.cumsum(points.probabilities * miss)])
            # Points that may lie on either side of a threshold count on both.
            first = np.searchsorted(points.values, edges - points.slack, side="left")
            last = np.searchsorted(points.values, edges + points.slack, side="right")
            total += float(self.classifier.prior[side]) * (reached[first] + missed[last] + points.infinite)
        return min(1.0, float(total.max()) + _MARGIN)

    def _sums(self, features: Sequence[int]) -> tuple[tuple[_Points, _Points], tuple[RoundedSums, RoundedSums]]:
        """Return the log-odds of the instances of a subset under both classes, and the sums over the others."""
        chosen = set(features)
        tables = self.classifier.tables
        kept = self._kept([tables[i] for i in features])
        return kept, rounded_sums([table for i, table in enumerate(tables) if i not in chosen], self.n_points)

    def _agreement(
        self, kept: tuple[_Points, _Points], rest: tuple[RoundedSums, RoundedSums], threshold: float
    ) -> CertifiedAgreement:
        # From the rounded threshold: near 1, its log-odds may be far from those that were meant.
        cut = log_odds(threshold)
        low = sum(self._bound(side, kept[side], rest[side], cut, strict=True) for side in (0, 1))
        high = sum(self._bound(side, kept[side], rest[side], cut, strict=False) for side in (0, 1))
        return CertifiedAgreement(max(0.0, low - _MARGIN), min(1.0, high + _MARGIN), threshold)

    def upper_bound(self, choice: Choice) -> float:
        """Return a bound on the agreement of every allowed trimming.

        A trimming agrees with the original only where it predicts the true class itself or the original does not. No
        classifier on S is right more often than the Bayes error allows, which is at least
        ``(1 - sqrt(1 - 4 Pr(c) Pr(not c) B(S)^2)) / 2`` with the Bhattacharyya coefficient ``B``, for naive Bayes the
        product of the coefficients of the features in S (Kailath, 1967). The smallest product within the budget is
        bounded by a fractional knapsack.
        """
        every = rounded_sums(self.classifier.tables, self.n_points)
        # Pr(c, classified as negative) and Pr(not c, classified as positive), at most.
        points = self._needed - self._offset
        missed = 1.0 - float(every[0].tails(np.array([points + every[0].slack]))[0]) - every[0].infinite
        raised = float(every[1].tails(np.array([points - every[1].slack - TIE_TOLERANCE]))[0])
        unlike_class = float(self.classifier.prior @ np.array([missed, raised])) + _MARGIN
        with np.errstate(divide="ignore"):
            losses = [-float(np.log(np.sqrt(table[0] * table[1]).sum())) for table in self.classifier.tables]
        coefficient = math.exp(-choice.highest_gain(losses))
        bayes_error = 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * math.prod(self.classifier.prior) * coefficient**2)))
        return min(1.0, 1.0 - bayes_error + unlike_class)

    def _kept(self, tables: Sequence[FloatArray]) -> tuple[_Points, _Points]:
        """Return the log-odds of the instances of the kept features, under both classes."""
        if math.prod(table.shape[1] for table in tables) > _EXACT_INSTANCES:
            positive, negative = (
                _Points(sums.points + self._offset, sums.probabilities, sums.infinite, sums.slack)
                for sums in rounded_sums(tables, self.n_points)
            )
            return positive, negative
        sums = WeightSums(tables).sums(tuple(range(len(tables))))
        finite = np.isfinite(sums.weight)
        # Equal sums that differ by rounding are one point: a threshold cannot tell them apart.
        points = sums.weight[finite] + self._offset
        starts = np.concatenate([[True], np.diff(points) > 2 * TIE_TOLERANCE]) if points.size else finite[:0]
        both = []
        for chances in (sums.positive, sums.negative):
            probabilities = np.add.reduceat(chances[finite], np.flatnonzero(starts)) if points.size else points
            both.append(_Points(points[starts], probabilities, float(chances[~finite].sum()), 0.0))
        return both[0], both[1]

    @property
    def _offset(self) -> float:
        return math.log(self.classifier.prior[0]) - math.log(self.classifier.prior[1])

    @property
    def _needed(self) -> float:
        return log_odds(self.classifier.threshold)

    def _best_threshold(self, kept: tuple[_Points, _Points], rest: tuple[RoundedSums, RoundedSums]) -> float:
        """Return a threshold between two points at which the rounded agreement is highest."""
        # The points of the classes differ only by the means of their rounding errors, less than any gap that matters.
        points = 0.5 * (kept[0].values + kept[1].values)
        signed = np.zeros(points.size)
        for side in (0, 1):
            above = rest[side].tails(self._needed - kept[side].values)
            above += rest[0].infinite if side == 0 else 0.0
            above *= 2.0
            above -= 1.0
            above *= self.classifier.prior[side] * kept[side].probabilities
            signed += above
        matter = signed != 0
        points, signed = points[matter], signed[matter]
        if not points.size:
            return self.classifier.threshold
        # Entry j: all points from the j-th on are positive.
        best = int(np.argmax(np.concatenate([[0.0], np.cumsum(signed[::-1])])[::-1]))
        below, above = np.concatenate([[-math.inf], points, [math.inf]])[best : best + 2].tolist()
        if below < self._needed < above:
            return self.classifier.threshold
        if math.isinf(below) or math.isinf(above):
            cut = above - 1.0 if math.isinf(below) else below + 1.0
        else:
            cut = 0.5 * (below + above)
        # A threshold of 0 or 1 would ignore the features.
        small = math.exp(-abs(cut))
        return min(max((small if cut < 0 else 1.0) / (1.0 + small), _LOWEST), _HIGHEST)

    def _bound(self, side: int, kept: _Points, rest: RoundedSums, cut: float, *, strict: bool) -> float:
        """Return Pr(class, both agree), with each condition tested too strictly or too leniently."""
        reach, miss = self._shares(side, kept, rest, strict=strict)
        reaches_from, misses_below = _edges(cut, kept.slack, strict=strict)
        agree = np.where(kept.values >= reaches_from, reach, 0.0) + np.where(kept.values < misses_below, miss, 0.0)
        if not strict:
            # Where both conditions are open, no more than everything can agree.
            agree = np.minimum(agree, rest.finite + rest.infinite)
        total = float(kept.probabilities @ agree) + kept.infinite
        return float(self.classifier.prior[side]) * total

    def _shares(self, side: int, kept: _Points, rest: RoundedSums, *, strict: bool) -> tuple[FloatArray, FloatArray]:
        """Return the probability that the original is positive, and negative, at each point of the kept features.

        They are bounded separately: an instance near the threshold may count for both, or for neither.
        """
        reaches_from, misses_below = _edges(self._needed, kept.slack + rest.slack, strict=strict)
        reach = rest.tails(reaches_from - kept.values)
        miss = rest.finite - rest.tails(misses_below - kept.values)
        return (reach + rest.infinite, miss) if side == 0 else (reach, miss + rest.infinite)


def _edges(level: float, slack: float, *, strict: bool) -> tuple[float, float]:
    """Return the value from which a sum counts as reaching a level, and below which it counts as missing it.

    A sum reaches the level if it is at most `TIE_TOLERANCE` below; it is known up to `slack` and to rounding.
    """
    surely, perhaps = level + slack - 0.5 * TIE_TOLERANCE, level - slack - 2.0 * TIE_TOLERANCE
    return (surely, perhaps) if strict else (perhaps, surely)


# How much agreement is certainly lost when features are removed from a naive Bayes classifier.

# Probability, under each class, of rounding errors beyond the slack.
_FAILURE = 1e-16
# Bound on the relative rounding error of a sum of this many probabilities.
_ROUNDING = 1e-10
# Most instances of the removed features that are told apart; the loss of some of the features bounds that of all.
_MOST_INSTANCES = 2**6


class _Grid:
    """Distributions of sums of rounded weights, arrays of shape (2, n_points), and what rounding does to them."""

    def __init__(self, tables: Sequence[FloatArray], n_points: int) -> None:
        weights, self._chances = [], []
        for table in tables:
            finite = table.min(axis=0) > 0  # where one class is impossible, no sum is finite
            weights.append(np.log(table[0, finite]) - np.log(table[1, finite]))
            self._chances.append(table[:, finite])
        self._lowest = np.array([weight.min() if weight.size else 0.0 for weight in weights])
        widths = [float(np.ptp(weight)) for weight in weights if weight.size and np.ptp(weight) > 0]
        # Rounding may add half a step for each feature.
        self.step = math.fsum(widths) / max(1, n_points - len(tables) - 1) or 1.0
        if widths:
            # Features that separate the classes alike need no rounding at all.
            typical = float(np.median(widths))
            self.step = max(self.step, typical / max(1.0, typical // self.step))
        self._shifts = [
            np.rint((weight - low) / self.step).astype(np.int64)
            for weight, low in zip(weights, self._lowest, strict=True)
        ]
        self._means, squares, most = np.zeros((len(tables), 2)), 0.0, np.zeros(2)
        for i, weight in enumerate(weights):
            if weight.size:
                errors = weight - self._lowest[i] - self._shifts[i] * self.step
                self._means[i] = self._chances[i] @ errors / self._chances[i].sum(axis=1)
                squares += float(np.ptp(errors)) ** 2
                most += np.abs(errors[:, None] - self._means[i]).max(axis=0)
        self._lowest_sum, self._mean = math.fsum(self._lowest), self._means.sum(axis=0)
        # How far errors deviate from their mean under each class, except with probability `_FAILURE` (Hoeffding).
        self.slacks = np.minimum(most, math.sqrt(0.5 * squares * math.log(2.0 / _FAILURE)))

    def starts(self, missing: Sequence[int]) -> FloatArray:
        """Return the sum at the first point under each class, without some features, corrected for mean errors."""
        gone = list(missing)
        return np.asarray(self._lowest_sum - self._lowest[gone].sum() + self._mean - self._means[gone].sum(axis=0))

    def plus(self, before: FloatArray, feature: int) -> FloatArray:
        """Return the distribution of the sum with one more feature."""
        shifts, size = self._shifts[feature], before.shape[1]
        grown = np.zeros((2, size + int(shifts.max(initial=0))))
        part = np.empty_like(before)
        for shift, chances in zip(shifts.tolist(), self._chances[feature].T[:, :, None], strict=True):
            grown[:, shift : shift + size] += np.multiply(chances, before, out=part)
        return grown

    def without_each(self, sums: FloatArray, groups: Sequence[Sequence[int]]) -> Iterator[FloatArray]:
        """Yield the distribution of the sum with all groups but one, for each group in turn."""
        if len(groups) <= 1:
            yield from [sums] * len(groups)
            return
        half = len(groups) // 2
        for out, into in ((groups[:half], groups[half:]), (groups[half:], groups[:half])):
            grown = sums
            for group in into:
                for feature in group:
                    grown = self.plus(grown, feature)
            yield from self.without_each(grown, out)


def removal_losses(
    classifier: BayesianClassifier, groups: Sequence[Sequence[int]], gone: Sequence[int], n_points: int
) -> list[float]:
    """Return a lower bound on ``1 - MAA`` of the features without each group, and without those that are gone.

    Parameters
    ----------
    classifier : BayesianClassifier
        Naive Bayes, with a threshold strictly between 0 and 1 and a prior that rules out no class.
    groups : sequence of sequences of int
        Positions of features; no feature is in two groups.
    gone : sequence of int
        Positions of features in none of the groups.
    n_points : int
        About the size of the grid: more points, higher bounds.
    """
    tables = classifier.tables
    gone = _strongest(tables, gone)
    parts = [_strongest(tables, group) for group in groups]
    away = {*gone, *(feature for part in parts for feature in part)}
    grid = _Grid(tables, n_points)
    sums = np.ones((2, 1))
    for feature in range(len(tables)):
        if feature not in away:
            sums = grid.plus(sums, feature)
    windows = _Windows(classifier)
    return [
        windows.loss(grid, others, [*part, *gone])
        for part, others in zip(parts, grid.without_each(sums, parts), strict=True)
    ]


def _strongest(tables: Sequence[FloatArray], group: Sequence[int]) -> list[int]:
    """Return the features of a group that separate the classes best, up to the most instances that are told apart."""
    chosen: list[int] = []
    n_instances = 1
    for feature in sorted(group, key=lambda i: -separation(tables[i])):
        n_values = tables[feature].shape[1]
        n_instances *= n_values
        if chosen and (n_values == 1 or n_instances > _MOST_INSTANCES):
            break
        chosen.append(feature)
    return chosen


class _Windows:
    """The ranges of sums in which the original and a trimmed classifier disagree."""

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._weights = WeightSums(classifier.tables)
        self._prior = classifier.prior
        self._offset = math.log(self._prior[0]) - math.log(self._prior[1])
        self._needed = log_odds(classifier.threshold) - TIE_TOLERANCE

    def loss(self, grid: _Grid, others: FloatArray, removed: Sequence[int]) -> float:
        """Return a lower bound on the loss without some features, from the sum over the others."""
        instances = self._weights.sums(tuple(removed))
        with np.errstate(invalid="ignore"):
            lifted = reached(self._needed - instances.weight[::-1])
        chances = (instances.positive[::-1], instances.negative[::-1])
        change = sign_change(lifted, *chances)
        narrow = self._inside(grid, others, removed, (np.minimum(lifted, change), np.maximum(lifted, change)), chances)
        return max(narrow, self._across(grid, others, removed, lifted, change, chances))

    def _inside(
        self,
        grid: _Grid,
        others: FloatArray,
        removed: Sequence[int],
        windows: tuple[FloatArray, FloatArray],
        chances: tuple[FloatArray, FloatArray],
    ) -> float:
        """Return the probability that the sum is certainly inside the windows."""
        starts, total = grid.starts(removed) + self._offset, 0.0
        for side in (0, 1):
            slack, start = float(grid.slacks[side]), float(starts[side])
            # A sum reaches the threshold if it is at most the tolerance below.
            first = np.ceil((windows[0] + slack + 0.5 * TIE_TOLERANCE - start) / grid.step)
            last = np.ceil((windows[1] - slack - TIE_TOLERANCE - start) / grid.step)
            total += float(self._prior[side]) * _mass(others[side], first, last, chances[side])
        return total

    def _across(
        self,
        grid: _Grid,
        others: FloatArray,
        removed: Sequence[int],
        lifted: FloatArray,
        change: float,
        chances: tuple[FloatArray, FloatArray],
    ) -> float:
        """Return a lower bound that narrows the windows at one end only.

        At `change` both decisions lose the same, and at a distance s from it either loss differs by a factor of at most
        ``exp(s)``. So all points may be decided as if they were not rounded.
        """
        starts, total = grid.starts(removed) + self._offset, 0.0
        reach = float(grid.slacks.max() + abs(starts[0] - starts[1])) + grid.step + 4.0 * TIE_TOLERANCE
        if not math.isfinite(change) or float(np.abs(lifted - change).min()) <= 2.0 * reach:
            return 0.0
        split = math.floor((change - 0.5 * float(starts.sum())) / grid.step) + 0.5
        for side in (0, 1):
            slack, start = float(grid.slacks[side]), float(starts[side])
            edges = (lifted + slack + 0.5 * TIE_TOLERANCE - start, lifted - slack - TIE_TOLERANCE - start)
            first = np.where(lifted < change, np.ceil(edges[0] / grid.step), math.ceil(split))
            last = np.where(lifted < change, math.ceil(split), np.ceil(edges[1] / grid.step))
            total += float(self._prior[side]) * _mass(others[side], first, last, chances[side])
        return math.exp(-2.0 * reach) * total


def _mass(probabilities: FloatArray, first: FloatArray, last: FloatArray, chances: FloatArray) -> float:
    """Return a lower bound on the weighted sum of the probabilities from `first` up to, but not including, `last`."""
    size = probabilities.size
    to = np.clip(last, 0, size).astype(np.int64)
    since = np.minimum(np.clip(first, 0, size).astype(np.int64), to)
    begin, end = int(since.min()), int(to.max())
    below = np.concatenate([[0.0], np.cumsum(probabilities[begin:end])])
    mass = float(chances @ (below[to - begin] - below[since - begin]))
    return max(0.0, mass - _ROUNDING * float(below[-1]) - _FAILURE)


# Upper bounds on the agreement of all subsets within a budget, from what is lost without some features.

# Sizes of the grid, and how many times longer the next one takes, at most.
_POINTS, _LONGER = (2**13, 2**15, 2**17, 2**19), 5.0
# With more features than this the coarsest grid would show little.
_MANY_FEATURES = 50
# Without a limit, a bound below 1 is not refined beyond this size.
_ENOUGH_POINTS = 2**15
# Extra seconds, after the time is up, to find a bound below 1.
_GRACE = 0.2
# A finer grid is worth its time if the last one raised the loss by this factor.
_RAISED = 1.05
# Units in addition to those that are needed for a bound: their losses may be higher.
_MORE_UNITS = 1.1


def loss_bound(values: Iterable[tuple[float, tuple[int, ...]]], choice: Choice) -> float:
    """Return an upper bound on the agreement of all allowed subsets, from potential agreements without some features.

    Of features that cannot all be afforded together, every allowed subset lacks at least one.

    Parameters
    ----------
    values : iterable of (float, tuple of int)
        The maximum potential agreement without some features that are bought together, and these features.

    Returns
    -------
    float
        1 if the features given can all be afforded.
    """
    wanted = set(choice.required)
    for value, features in sorted(values):
        wanted.update(features)
        if not choice.is_affordable(wanted):
            return min(1.0, value)
    return 1.0


def certain_bound(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> float:
    """Return an upper bound on the agreement of all allowed subsets of a naive Bayes classifier of any size.

    The coarsest grid is always used and takes a few hundredths of a second; finer ones are used while there is time.

    Parameters
    ----------
    classifier : BayesianClassifier
        With a threshold strictly between 0 and 1, and a prior that rules out no class.
    """
    units = _missed_units(by_separation(classifier, choice), choice)
    groups = [choice.units[unit] for unit in units]
    bound = 1.0
    for n_points in _POINTS[classifier.n_features > _MANY_FEATURES :]:
        began, before = clock(), bound
        losses = removal_losses(classifier, groups, choice.forbidden, n_points)
        bound = min(bound, loss_bound(zip((1.0 - loss for loss in losses), groups, strict=True), choice))
        left = limits.seconds_left()
        if left is None:
            enough = bound < 1.0 and n_points >= _ENOUGH_POINTS
        elif bound < 1.0:
            enough = 1.0 - bound < _RAISED * (1.0 - before) or _LONGER * (clock() - began) > left
        else:
            enough = _LONGER * (clock() - began) > max(left, _GRACE)
        if enough:
            break
    return bound


def by_separation(classifier: BayesianClassifier, choice: Choice) -> list[int]:
    """Return the units in the order of how well their best feature separates the classes, best first."""
    strength = [max(separation(classifier.tables[i]) for i in members) for members in choice.units]
    return sorted(range(len(strength)), key=lambda unit: -strength[unit])


def _missed_units(order: Sequence[int], choice: Choice) -> list[int]:
    """Return the first units with a price of which every allowed subset lacks at least one, and some more."""
    # A subset that lacks what is free or required is no better than one that has it.
    units = [unit for unit in order if choice.costs[unit] > 0 and unit not in choice.required_units]
    wanted = set(choice.required)
    for place, unit in enumerate(units, start=1):
        wanted.update(choice.units[unit])
        if not choice.is_affordable(wanted):
            return units[: round(_MORE_UNITS * place)]
    return units
