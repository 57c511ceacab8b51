"""Certified agreement of naive Bayes trimmings with any number of features.

For a subset S with threshold t (in log-odds) and the rest R, both classifiers agree where ``s >= t`` and ``s + w >=
logit(T)`` both hold or both fail, s and w being the sums over S and R with the prior. The sum over R is rounded to a
grid, and so is that over a large S. Each condition is then tested once too strictly and once too leniently, which gives
a lower and an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import Choice, highest_cost
from trimbench.trimming.engines.rounded_sums import FAILURE, RoundedSums, rounded_sums
from trimbench.trimming.engines.weight_sums import FloatArray, WeightSums
from trimbench.trimming.thresholds import TIE_TOLERANCE

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
            # Points that are known exactly lie on one side of a threshold or the other: it is between them.
            edges = 0.5 * (edges[1:] + edges[:-1])
        edges = np.concatenate([[-math.inf], edges, [math.inf]])
        total = np.zeros(edges.size)
        for side in (0, 1):
            points = kept[side]
            reach, miss = self._shares(side, points, rest[side], strict=False)
            reached = np.concatenate([np.cumsum((points.probabilities * reach)[::-1])[::-1], [0.0]])
            missed = np.concatenate([[0.0], np.cumsum(points.probabilities * miss)])
            # Whatever may be on either side of a threshold counts on both.
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
        # The cut of the threshold as it is rounded: near 1 it may be far from the one that was meant.
        cut = _log_odds(threshold)
        low = sum(self._bound(side, kept[side], rest[side], cut, strict=True) for side in (0, 1))
        high = sum(self._bound(side, kept[side], rest[side], cut, strict=False) for side in (0, 1))
        return CertifiedAgreement(max(0.0, low - _MARGIN), min(1.0, high + _MARGIN), threshold)

    def upper_bound(self, choice: Choice) -> float:
        """Return a bound on the agreement of every allowed trimming.

        A trimming that agrees with the original more often than the original agrees with the class predicts the class.
        No classifier on S does that better than the Bayes error allows, which is at least
        ``(1 - sqrt(1 - 4 Pr(c) Pr(not c) B(S)^2)) / 2`` with Bhattacharyya's coefficient ``B``, for naive Bayes the
        product of those of the features in S (Kailath, 1967). The smallest product within the budget is bounded by a
        knapsack whose last item may be cut.
        """
        every = rounded_sums(self.classifier.tables, self.n_points)
        # Pr(c, classified as negative) and Pr(not c, classified as positive), at most.
        points = self._needed - self._offset
        missed = 1.0 - float(every[0].tails(np.array([points + every[0].slack]))[0]) - every[0].infinite
        raised = float(every[1].tails(np.array([points - every[1].slack - TIE_TOLERANCE]))[0])
        unlike_class = float(self.classifier.prior @ np.array([missed, raised])) + _MARGIN
        with np.errstate(divide="ignore"):
            losses = [-float(np.log(np.sqrt(table[0] * table[1]).sum())) for table in self.classifier.tables]
        gains = [sum(losses[i] for i in members) for members in choice.units]
        # What is required is bought in any case, and its cost counts.
        costs = [0.0 if unit in choice.required_units else cost for unit, cost in enumerate(choice.costs)]
        budget = highest_cost(choice.budget) - sum(choice.costs[unit] for unit in choice.required_units)
        coefficient = math.exp(-_cut_knapsack(gains, costs, max(0.0, budget)))
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
        return _log_odds(self.classifier.threshold)

    def _best_threshold(self, kept: tuple[_Points, _Points], rest: tuple[RoundedSums, RoundedSums]) -> float:
        """Return a threshold between two points at which the rounded agreement is highest."""
        # The points of the classes differ by the means of their rounding errors only, less than any gap that matters.
        points = 0.5 * (kept[0].values + kept[1].values)
        signed = np.zeros(points.size)
        for side in (0, 1):
            above = rest[side].tails(self._needed - kept[side].values) + (rest[0].infinite if side == 0 else 0.0)
            signed += self.classifier.prior[side] * kept[side].probabilities * (2.0 * above - 1.0)
        points, signed = points[signed != 0], signed[signed != 0]
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
        return min(max(_probability(cut), _LOWEST), _HIGHEST)

    def _bound(self, side: int, kept: _Points, rest: RoundedSums, cut: float, *, strict: bool) -> float:
        """Return Pr(class, both agree), with each condition tested too strictly or too leniently."""
        reach, miss = self._shares(side, kept, rest, strict=strict)
        reaches_from, misses_below = _edges(cut, kept.slack, strict=strict)
        agree = np.where(kept.values >= reaches_from, reach, 0.0) + np.where(kept.values < misses_below, miss, 0.0)
        if not strict:
            # Where both conditions are open, at most everything agrees.
            agree = np.minimum(agree, _finite(rest) + rest.infinite)
        total = float(kept.probabilities @ agree) + kept.infinite
        return float(self.classifier.prior[side]) * total

    def _shares(self, side: int, kept: _Points, rest: RoundedSums, *, strict: bool) -> tuple[FloatArray, FloatArray]:
        """Return the probability that the original is positive, and negative, at each point of the kept features.

        They are bounded separately: an instance near the threshold may count for both, or for neither.
        """
        reaches_from, misses_below = _edges(self._needed, kept.slack + rest.slack, strict=strict)
        reach = rest.tails(reaches_from - kept.values)
        miss = _finite(rest) - rest.tails(misses_below - kept.values)
        return (reach + rest.infinite, miss) if side == 0 else (reach, miss + rest.infinite)


def _edges(level: float, slack: float, *, strict: bool) -> tuple[float, float]:
    """Return the value from which a sum counts as reaching a level, and below which it counts as missing it.

    A sum reaches the level if it is at most `TIE_TOLERANCE` below; it is known up to `slack` and to rounding.
    """
    surely, perhaps = level + slack - 0.5 * TIE_TOLERANCE, level - slack - 2.0 * TIE_TOLERANCE
    return (surely, perhaps) if strict else (perhaps, surely)


def _log_odds(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def _probability(log_odds: float) -> float:
    small = math.exp(-abs(log_odds))
    return (small if log_odds < 0 else 1.0) / (1.0 + small)


def _finite(sums: RoundedSums) -> float:
    return float(sums.probabilities.sum())


def _cut_knapsack(gains: Sequence[float], costs: Sequence[float], budget: float) -> float:
    """Return the highest sum of gains within the budget if one item may be taken in part."""
    total = 0.0
    ratios = [gain / cost if cost > 0 else math.inf for gain, cost in zip(gains, costs, strict=True)]
    # What costs nothing comes first: it is always taken.
    for i in sorted(range(len(gains)), key=lambda i: (-ratios[i], costs[i])):
        if costs[i] <= budget:
            total += gains[i]
            budget -= costs[i]
        else:
            return total + (gains[i] * budget / costs[i] if budget > 0 and gains[i] > 0 else 0.0)
    return total
