"""Certified agreement of naive Bayes trimmings with any number of features.

For a subset S with threshold t (in log-odds) and the rest R, both classifiers agree where ``s >= t`` and
``s + w >= logit(T)`` both hold or both fail, s and w being the sums over S and R with the prior. The sum over R is
rounded to a grid, and so is that over a large S. Each condition is then asked once too strictly and once too leniently,
which gives a lower and an upper value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimbench.trimming.budget import highest_cost
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.rounded_sums import FAILURE, RoundedSums, rounded_sums
from trimbench.trimming.thresholds import TIE_TOLERANCE
from trimbench.trimming.weight_sums import FloatArray, WeightSums

DEFAULT_POINTS = 2**20
# The sums over a subset with up to so many instances are written out instead of rounded.
_EXACT_INSTANCES = 2**16
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
                f"{self.classifier.threshold!r} and prior {self.classifier.prior.tolist()}; all trimmings of such a "
                "classifier are either trivial or small enough for the exact engines"
            )

    def agreement(self, features: Sequence[int], threshold: float | None = None) -> CertifiedAgreement:
        """Return bounds on the agreement of a feature subset (given by position).

        Parameters
        ----------
        features : sequence of int
        threshold : float in (0, 1), optional
            T'; default: the best one on the grid.
        """
        chosen = set(features)
        tables = self.classifier.tables
        kept = self._kept([tables[i] for i in features])
        rest = rounded_sums([table for i, table in enumerate(tables) if i not in chosen], self.n_points)
        if threshold is None:
            cut = self._best_cut(kept, rest)
            threshold = 1.0 / (1.0 + math.exp(-cut))
        else:
            cut = math.log(threshold) - math.log1p(-threshold)
        low = sum(self._bound(side, kept[side], rest[side], cut, strict=True) for side in (0, 1))
        high = sum(self._bound(side, kept[side], rest[side], cut, strict=False) for side in (0, 1))
        return CertifiedAgreement(max(0.0, low - _MARGIN), min(1.0, high + _MARGIN), threshold)

    def upper_bound(self, costs: Sequence[float], budget: float) -> float:
        """Return a bound on the agreement of every trimming within the budget.

        A trimming that agrees with the original more often than the original agrees with the class predicts the class.
        No classifier on S does that better than the Bayes error allows, which is at least
        ``(1 - sqrt(1 - 4 Pr(c) Pr(not c) B(S)^2)) / 2`` with Bhattacharyya's coefficient ``B``, for naive Bayes the
        product of those of the features in S (Kailath, 1967). The smallest product within the budget is bounded by a
        knapsack whose last item may be cut.

        Parameters
        ----------
        costs : sequence of float
        budget : float
        """
        every = rounded_sums(self.classifier.tables, self.n_points)
        # Pr(c, classified as negative) and Pr(not c, classified as positive), at most.
        points = self._needed - self._offset
        missed = 1.0 - float(every[0].tails(np.array([points + every[0].slack]))[0]) - every[0].infinite
        raised = float(every[1].tails(np.array([points - every[1].slack - TIE_TOLERANCE]))[0])
        unlike_class = float(self.classifier.prior @ np.array([missed, raised])) + _MARGIN
        with np.errstate(divide="ignore"):
            gains = [-float(np.log(np.sqrt(table[0] * table[1]).sum())) for table in self.classifier.tables]
        coefficient = math.exp(-_cut_knapsack(gains, costs, highest_cost(budget)))
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
        return math.log(self.classifier.threshold) - math.log1p(-self.classifier.threshold)

    def _best_cut(self, kept: tuple[_Points, _Points], rest: tuple[RoundedSums, RoundedSums]) -> float:
        """Return the log-odds half way between two points at which the rounded agreement is highest."""
        # The points of the classes differ by the means of their rounding errors only, less than any gap that matters.
        points = 0.5 * (kept[0].values + kept[1].values)
        signed = np.zeros(points.size)
        for side in (0, 1):
            above = rest[side].tails(self._needed - kept[side].values) + (rest[0].infinite if side == 0 else 0.0)
            signed += self.classifier.prior[side] * kept[side].probabilities * (2.0 * above - 1.0)
        points, signed = points[signed != 0], signed[signed != 0]
        if not points.size:
            return 0.0
        # Entry j: all points from the j-th on are positive.
        best = int(np.argmax(np.concatenate([[0.0], np.cumsum(signed[::-1])])[::-1]))
        fenced = np.concatenate([[points[0] - 1.0], points, [points[-1] + 1.0]])
        return float(0.5 * (fenced[best] + fenced[best + 1]))

    def _bound(self, side: int, kept: _Points, rest: RoundedSums, cut: float, *, strict: bool) -> float:
        """Return Pr(class, both agree), with each condition asked too strictly or too leniently."""
        sign = 1.0 if strict else -1.0
        own, both = sign * kept.slack, sign * (kept.slack + rest.slack)
        points = kept.values
        # Reaching and missing are bounded apart: an instance near a threshold may count for both, or for neither.
        reach = rest.tails(self._needed + both - points)
        miss = _finite(rest) - rest.tails(self._needed - both - TIE_TOLERANCE - points)
        if side == 0:
            reach = reach + rest.infinite
        else:
            miss = miss + rest.infinite
        agree = np.where(points >= cut + own, reach, 0.0) + np.where(points < cut - own, miss, 0.0)
        if not strict:
            # Where both conditions are open, at most everything agrees.
            agree = np.minimum(agree, _finite(rest) + rest.infinite)
        total = float(kept.probabilities @ agree) + kept.infinite
        return float(self.classifier.prior[side]) * total


def _finite(sums: RoundedSums) -> float:
    return float(sums.probabilities.sum())


def _cut_knapsack(gains: Sequence[float], costs: Sequence[float], budget: float) -> float:
    """Return the highest sum of gains within the budget if one item may be taken in part."""
    total = 0.0
    ratios = [gain / cost if cost > 0 else math.inf for gain, cost in zip(gains, costs, strict=True)]
    for i in sorted(range(len(gains)), key=lambda i: -ratios[i]):
        if costs[i] <= budget:
            total += gains[i]
            budget -= costs[i]
        else:
            return total + (gains[i] * budget / costs[i] if budget > 0 and gains[i] > 0 else 0.0)
    return total
