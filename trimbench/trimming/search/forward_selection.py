"""Forward selection for naive Bayes classifiers with hundreds of features, on approximate agreements.

The sum of the kept weights is held on a coarse grid; that of the many others is taken as normal under each class. Both
are accurate to about a percent of the disagreement, which is enough to rank candidates; what is selected is then
certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import Choice, is_affordable
from trimbench.trimming.engines.dense import separation
from trimbench.trimming.engines.weight_sums import FloatArray

_COARSE, _FINE = 2**10, 2**13
# How many of the candidates for an exchange are evaluated on the fine grid.
_SHORT_LIST = 48
_IMPROVEMENT = 1e-9
# A value that is impossible under one class decides alone; in the approximation it counts as this many nats.
_LARGEST_WEIGHT = 60.0


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of all features, padded to the largest cardinality with impossible values.

    Attributes
    ----------
    values : ndarray of shape (n_features, n_values)
    chances : ndarray of shape (2, n_features, n_values)
        P(value | class).
    means, variances : ndarrays of shape (2, n_features)
        Of the weight under each class.
    """

    values: FloatArray
    chances: FloatArray
    means: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, tables: Sequence[FloatArray]) -> _Weights:
        n_values = max(table.shape[1] for table in tables)
        values, chances = np.zeros((len(tables), n_values)), np.zeros((2, len(tables), n_values))
        for i, table in enumerate(tables):
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = np.log(table[0]) - np.log(table[1])
            values[i, : table.shape[1]] = np.clip(np.nan_to_num(weight), -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
            chances[:, i, : table.shape[1]] = table
        means = (chances * values).sum(axis=2)
        return cls(values, chances, means, (chances * values**2).sum(axis=2) - means**2)


class ForwardSelection:
    """Approximate agreements of feature subsets, and how they change with one more feature.

    Parameters
    ----------
    size : int
        About how many features will be kept; it sets the range of the grid.
    n_points : int
        Size of the grid.
    """

    def __init__(self, classifier: BayesianClassifier, size: int, n_points: int) -> None:
        self._points = n_points
        self._weights = _Weights.of(classifier.tables)
        self._prior = classifier.prior
        offset = math.log(classifier.prior[0]) - math.log(classifier.prior[1])
        self._needed = math.log(classifier.threshold) - math.log1p(-classifier.threshold) - offset
        spread = np.sort(np.ptp(self._weights.values, axis=1))[::-1][: max(1, size)].sum()
        self._step = 2.0 * spread / n_points or 1.0
        self._sums = (np.arange(n_points) - n_points // 2) * self._step

    def nothing(self) -> FloatArray:
        """Return the distribution of an empty sum under each class, shape (2, n_points)."""
        start = np.zeros((2, self._points))
        start[:, self._points // 2] = 1.0
        return start

    def with_feature(self, distribution: FloatArray, feature: int) -> FloatArray:
        """Return the distribution of the sum with one more feature, shape (2, n_points)."""
        return self._with_each(distribution, np.array([feature]))[:, 0]

    def agreements(self, distribution: FloatArray, kept: Sequence[int], candidates: Sequence[int]) -> FloatArray:
        """Return the approximate agreement of the kept features with each candidate, shape (n_candidates,)."""
        chosen = np.asarray(candidates, dtype=np.int64)
        weights = self._weights
        kept_list = list(kept)
        grown = self._with_each(distribution, chosen)
        signed = np.zeros(grown.shape[1:])
        for side in (0, 1):
            mean = weights.means[side].sum() - weights.means[side, kept_list].sum() - weights.means[side, chosen]
            variance = weights.variances[side].sum() - weights.variances[side, kept_list].sum()
            deviation = np.sqrt(np.maximum(variance - weights.variances[side, chosen], 1e-12))
            above = ndtr((self._sums + mean[:, None] - self._needed) / deviation[:, None])
            signed += self._prior[side] * grown[side] * (2.0 * above - 1.0)
        return np.asarray(0.5 * (1.0 + np.abs(signed).sum(axis=1)))

    def _with_each(self, distribution: FloatArray, candidates: NDArray[np.int64]) -> FloatArray:
        """Return the distributions with each candidate added, shape (2, n_candidates, n_points)."""
        last = self._points - 1
        grown = np.zeros((2, candidates.size, self._points))
        for value in range(self._weights.values.shape[1]):
            shift = self._weights.values[candidates, value] / self._step
            low = np.floor(shift).astype(np.int64)
            part = shift - low
            # Mass that falls between two points is shared by them, which keeps the mean.
            for places, share in ((low, 1.0 - part), (low + 1, part)):
                source = np.arange(self._points) - places[:, None]
                inside = (source >= 0) & (source <= last)
                source = np.clip(source, 0, last)
                for side in (0, 1):
                    moved = np.where(inside, distribution[side][source], 0.0)
                    grown[side] += (self._weights.chances[side, candidates, value] * share)[:, None] * moved
        return grown


@dataclass(frozen=True)
class Selection:
    """Kept features, by position, how many agreements were approximated, and whether the selection ended by itself.

    If it did not, `bought` are the units from which it can go on.
    """

    kept: list[int]
    n_evaluations: int
    finished: bool
    bought: tuple[int, ...] = ()


class _Candidates:
    """The units that may still be bought, and the approximate agreement with each."""

    def __init__(self, classifier: BayesianClassifier, choice: Choice) -> None:
        self.choice = choice
        strength = [max(separation(classifier.tables[i]) for i in members) for members in choice.units]
        self.by_separation = sorted(range(len(strength)), key=lambda unit: -strength[unit])

    def affordable(self, bought: Sequence[int]) -> list[int]:
        """Return the units that fit into the budget beside those that are bought."""
        costs = self.choice.costs
        spent, have = [costs[unit] for unit in bought], set(bought)
        return [
            unit
            for unit in range(len(costs))
            if unit not in have and is_affordable([*spent, costs[unit]], self.choice.budget)
        ]

    def distribution(self, selection: ForwardSelection, bought: Sequence[int]) -> FloatArray:
        """Return the distribution of the sum over the features of some units."""
        distribution = selection.nothing()
        for feature in self.choice.features(bought):
            distribution = selection.with_feature(distribution, feature)
        return distribution

    def agreements(
        self, selection: ForwardSelection, distribution: FloatArray, bought: Sequence[int], units: Sequence[int]
    ) -> FloatArray:
        """Return the approximate agreement of the bought units with each of some others."""
        kept, members = self.choice.features(bought), self.choice.units
        values = np.empty(len(units))
        single = [place for place, unit in enumerate(units) if len(members[unit]) == 1]
        if single:
            candidates = [members[units[place]][0] for place in single]
            values[single] = selection.agreements(distribution, kept, candidates)
        for place in set(range(len(units))) - set(single):
            *first, last = members[units[place]]
            grown = distribution
            for feature in first:
                grown = selection.with_feature(grown, feature)
            values[place] = selection.agreements(grown, [*kept, *first], [last])[0]
        return values


def select_forward(
    classifier: BayesianClassifier,
    choice: Choice,
    may_go_on: Callable[[int], bool],
    stopped: Selection | None = None,
) -> Selection:
    """Select affordable units one by one, then exchange them while that helps.

    `may_go_on` is called before each step with the number of agreements up to its end; once it returns False, the
    units that separate the classes best fill the rest of the budget. A selection that was `stopped` goes on.
    """
    candidates = _Candidates(classifier, choice)
    bought = sorted(choice.required_units) if stopped is None else list(stopped.bought)
    n_kept = len(choice.features(bought)) + sum(
        is_affordable(sorted(choice.costs)[: n + 1], choice.budget) * max(len(unit) for unit in choice.units)
        for n in range(len(choice.costs))
    )
    coarse = ForwardSelection(classifier, n_kept, _COARSE)
    n_evaluations = 0 if stopped is None else stopped.n_evaluations
    distribution = candidates.distribution(coarse, bought)
    while units := candidates.affordable(bought):
        if not may_go_on(n_evaluations + len(units) - 1):
            return Selection(_filled_up(candidates, bought), n_evaluations, False, tuple(bought))
        n_evaluations += len(units)
        best = units[int(np.argmax(candidates.agreements(coarse, distribution, bought, units)))]
        for feature in choice.units[best]:
            distribution = coarse.with_feature(distribution, feature)
        bought.append(best)
    fine = ForwardSelection(classifier, n_kept, _FINE)
    return _exchange(candidates, coarse, fine, bought, n_evaluations, may_go_on)


def _exchange(
    candidates: _Candidates,
    coarse: ForwardSelection,
    fine: ForwardSelection,
    bought: list[int],
    n_evaluations: int,
    may_go_on: Callable[[int], bool],
) -> Selection:
    """Exchange one unit at a time while the agreement on the fine grid rises."""
    choice = candidates.choice
    improved = True
    while improved:
        improved = False
        exchangeable = [unit for unit in bought if unit not in choice.required_units]
        for place, out in enumerate(exchangeable):
            others = [unit for unit in bought if unit != out]
            units = candidates.affordable(others)
            if not may_go_on(n_evaluations + len(units) + _SHORT_LIST):
                untried = exchangeable[place:]
                in_turn = (*untried, *(unit for unit in bought if unit not in untried))
                return Selection(list(choice.features(bought)), n_evaluations, False, in_turn)
            rough = candidates.agreements(coarse, candidates.distribution(coarse, others), others, units)
            listed = {units[i] for i in np.argsort(-rough)[:_SHORT_LIST]}
            listed_first = [out, *sorted(listed - {out})]
            values = candidates.agreements(fine, candidates.distribution(fine, others), others, listed_first)
            n_evaluations += len(units) + len(listed_first)
            if values.max() > values[0] + _IMPROVEMENT:
                bought = [*others, listed_first[int(np.argmax(values))]]
                improved = True
    return Selection(list(choice.features(bought)), n_evaluations, True)


def _filled_up(candidates: _Candidates, bought: Sequence[int]) -> list[int]:
    choice, chosen = candidates.choice, list(bought)
    spent, have = [choice.costs[unit] for unit in bought], set(bought)
    for unit in candidates.by_separation:
        if unit not in have and is_affordable([*spent, choice.costs[unit]], choice.budget):
            chosen.append(unit)
            spent.append(choice.costs[unit])
    return list(choice.features(chosen))
