"""How much agreement is lost for certain when features are removed from a naive Bayes classifier.

Let R be removed features, of which an instance r lifts the sum s of the other weights, with the prior, over the
threshold from ``b_r = logit(T) - w_r`` on. The best trimming without R is positive from one sum t on (Proposition 3),
which depends on R alone. So it disagrees with the original exactly where s lies between t and ``b_r``:

    1 - MAA = sum_r sum_class Pr(class) Pr(r | class) Pr(s between t and b_r | class)

All terms are positive. With s rounded to a grid, each window is narrowed at both ends by what rounding may do: the sum
is a lower bound, however small the loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.dense import separation
from trimbench.trimming.engines.log_odds import sign_change
from trimbench.trimming.engines.weight_sums import FloatArray, WeightSums, reached
from trimbench.trimming.thresholds import TIE_TOLERANCE

# Probability, under each class, of rounding errors beyond the slack.
_FAILURE = 1e-16
# Relative rounding of sums of so many probabilities.
_ROUNDING = 1e-10
# Instances of the removed features that are told apart; the loss of some of the features bounds that of all.
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

    def nothing(self) -> FloatArray:
        """Return the distribution of an empty sum."""
        return np.ones((2, 1))

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
    sums = grid.nothing()
    for feature in range(len(tables)):
        if feature not in away:
            sums = grid.plus(sums, feature)
    windows = _Windows(classifier)
    return [
        windows.loss(grid, others, [*part, *gone])
        for part, others in zip(parts, grid.without_each(sums, parts), strict=True)
    ]


def _strongest(tables: Sequence[FloatArray], group: Sequence[int]) -> list[int]:
    """Return the features of a group that separate the classes best, as many as are told apart."""
    chosen: list[int] = []
    n_instances = 1
    for feature in sorted(group, key=lambda i: -separation(tables[i])):
        n_instances *= tables[feature].shape[1]
        if chosen and n_instances > _MOST_INSTANCES:
            break
        chosen.append(feature)
    return chosen


class _Windows:
    """Between which sums original and trimmed classifier disagree."""

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._weights = WeightSums(classifier.tables)
        self._prior = classifier.prior
        self._offset = math.log(self._prior[0]) - math.log(self._prior[1])
        threshold = classifier.threshold
        self._needed = math.log(threshold) - math.log1p(-threshold) - TIE_TOLERANCE

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
        """Return how likely the sum is inside of the windows for certain."""
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

        At `change` both decisions lose the same, and either loss times ``exp(s)`` at most differs from there. So all
        points may be decided as if they were not rounded.
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
    """Return the sum of the probabilities from `first` to before `last`, weighted, at least."""
    size = probabilities.size
    to = np.clip(last, 0, size).astype(np.int64)
    since = np.minimum(np.clip(first, 0, size).astype(np.int64), to)
    begin, end = int(since.min()), int(to.max())
    below = np.concatenate([[0.0], np.cumsum(probabilities[begin:end])])
    mass = float(chances @ (below[to - begin] - below[since - begin]))
    return max(0.0, mass - _ROUNDING * float(below[-1]) - _FAILURE)
