"""Searches without a proof: forward selection and exchanges, on approximate agreements or on rows.

The sum of the kept weights is held on a coarse grid; that of the many others is approximated by a normal distribution
under each class. Both are accurate to about a percent of the disagreement, which is enough to rank candidates; the
selection is then certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import FloatArray, IntegerArray
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.table import separation
from trimbench.trimming.problem import Choice

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
        from scipy.special import ndtr

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
    classifier: BayesianClassifier, choice: Choice, may_go_on: Callable[[int], bool], stopped: Selection | None = None
) -> Selection:
    """Select affordable units one by one, then exchange them while that helps.

    `may_go_on` is called before each step with the number of agreements up to its end; once it returns False, the
    units that separate the classes best fill the rest of the budget. A selection that was `stopped` goes on.
    """
    candidates = _Candidates(classifier, choice)
    bought = sorted(choice.required_units) if stopped is None else list(stopped.bought)
    n_most = choice.n_affordable(range(len(choice.units))) * max(len(unit) for unit in choice.units)
    n_kept = len(choice.features(bought)) + n_most
    coarse = ForwardSelection(classifier, n_kept, _COARSE)
    n_evaluations = 0 if stopped is None else stopped.n_evaluations
    distribution = candidates.distribution(coarse, bought)
    while units := choice.open_units(bought):
        if not may_go_on(n_evaluations + len(units) - 1):
            filled = list(choice.features(choice.filled(bought, candidates.by_separation)))
            return Selection(filled, n_evaluations, False, tuple(bought))
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
            units = choice.open_units(others)
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


# A feature subset for a classifier of any size, found on rows that were drawn from its distribution.

# Estimates are told apart by this many levels.
_LEVELS = 512
# The estimate of the larger group that a row was in before counts as this many rows.
_PRIOR_ROWS = 1.0
# How many units may come in by an exchange: those that explain most on their own.
_SHORT_LIST_ROW_SEARCH = 80
# How many units are tried with every other one.
_PAIRED = 20
_FEW_SUBSETS = 4000
# Weight of what a unit explains, added to the agreement, which many units do not change at first.
_TIE_BREAK = 1e-3


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows that look alike: their group, and the estimate of each row's posterior."""

    group: NDArray[np.int64]
    n_groups: int
    estimate: NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Units that were bought, in that order, and their score."""

    units: tuple[int, ...]
    score: float


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows with the posterior Pr(c | f) and the decision of the original, and how long they took.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
    posterior, decision : ndarrays of float and bool, shape (n_rows,)
    seconds : float
    """

    codes: IntegerArray
    posterior: NDArray[np.float64]
    decision: NDArray[np.bool_]
    seconds: float


@dataclass
class _Search:
    """A search for units by their scores on rows; `may_go_on` is asked with the number of evaluations so far."""

    classifier: BayesianClassifier
    choice: Choice
    rows: DrawnRows
    may_go_on: Callable[[int], bool]
    n_evaluations: int = 0

    def _goes_on(self) -> bool:
        return self.may_go_on(self.n_evaluations)

    def _score_of(self, estimate: NDArray[np.float64], tie_break: float = _TIE_BREAK) -> float:
        """Return the agreement with the best threshold on estimates, plus a share of what they explain."""
        levels = np.minimum((estimate * _LEVELS).astype(np.int64), _LEVELS - 1)
        seen = np.bincount(levels, minlength=_LEVELS)
        positive = np.bincount(levels, weights=self.rows.decision, minlength=_LEVELS)
        # Entry i: the i lowest levels are below the threshold.
        below = np.concatenate([[0.0], np.cumsum(seen - 2.0 * positive)])
        return float(positive.sum() + below.max()) / len(levels) + tie_break * self._explained(estimate)

    def _explained(self, estimate: NDArray[np.float64]) -> float:
        """Return the share of the variance of the posterior that estimates of it explain."""
        posterior = self.rows.posterior
        variance = float(posterior.var())
        return 1.0 - float(np.square(posterior - estimate).mean()) / variance if variance > 0 else 1.0

    def _optional(self, units: Sequence[int]) -> list[int]:
        return [unit for unit in units if unit not in self.choice.required_units]

    def _exchanged(self, best: Found, out: int, score_with: Callable[[Sequence[int]], Callable[[int], float]]) -> Found:
        """Return the units with the best other one in the place of `out`, or `best` itself if that is no improvement.

        Parameters
        ----------
        score_with : callable
            Gives, for some units, the score of these units with one more; a negative one is never taken.
        """
        others = [unit for unit in best.units if unit != out]
        score = score_with(others)
        scores = {unit: score(unit) for unit in self.choice.open_units(others) if unit != out}
        unit = max(scores, key=scores.__getitem__, default=out)
        if unit == out or scores[unit] <= best.score + _IMPROVEMENT:
            return best
        return Found((*others, unit), scores[unit])


class RowSearch(_Search):
    """A search by the posteriors of rows that look alike."""

    def best(self) -> Found:
        """Return the best units found; if time is up, those that explain most on their own fill the rest of the budget.

        If there are few subsets, all are tried. Otherwise units are bought one by one, once by what they explain of the
        posterior, once by agreement and once starting from the best pair, and exchanged while that helps.
        """
        choice, required = self.choice, sorted(self.choice.required_units)
        start = self._groups_of(required)
        best = Found(tuple(required), self._score(start))
        subsets = _few_subsets(choice)
        if subsets is not None:
            for units in subsets:
                if not self._goes_on():
                    return replace(best, units=choice.filled(best.units, self._ranked()))
                score = self._score(self._split(start, choice.features(set(units) - set(required))))
                if score > best.score:
                    best = Found(tuple(units), score)
            return best
        ranked = self._ranked()
        for tie_break in (1.0, _TIE_BREAK):
            best = max(best, self._greedy(required, tie_break), key=lambda found: found.score)
        best = max(best, self._greedy(self._best_pair(ranked), _TIE_BREAK), key=lambda found: found.score)
        best = self._with_exchanges(best, set(ranked[:_SHORT_LIST_ROW_SEARCH]))
        return best if self._goes_on() else replace(best, units=choice.filled(best.units, ranked))

    def _groups_of(self, units: Sequence[int]) -> _Groups:
        """Return the rows told apart by the features of some units."""
        posterior = self.rows.posterior
        together = _Groups(np.zeros(len(posterior), np.int64), 1, np.full(len(posterior), posterior.mean()))
        return self._split(together, self.choice.features(units))

    def _split(self, groups: _Groups, features: Sequence[int]) -> _Groups:
        """Return the rows told apart by more features."""
        group, n_groups = groups.group, groups.n_groups
        cardinalities = self.classifier.cardinalities
        for feature in features:
            group = group * cardinalities[feature] + self.rows.codes[:, feature]
            n_groups *= cardinalities[feature]
            if n_groups > 4 * len(group):
                _, group = np.unique(group, return_inverse=True)
                n_groups = int(group.max()) + 1
        both = 2 * group + self._half
        counts = np.bincount(both, minlength=2 * n_groups)
        sums = np.bincount(both, weights=self.rows.posterior, minlength=2 * n_groups)
        other = both ^ 1
        estimate = (sums[other] + _PRIOR_ROWS * groups.estimate) / (counts[other] + _PRIOR_ROWS)
        return _Groups(group, n_groups, estimate)

    @cached_property
    def _half(self) -> NDArray[np.int64]:
        return np.arange(len(self.rows.codes), dtype=np.int64) % 2

    def _score(self, groups: _Groups, tie_break: float = _TIE_BREAK) -> float:
        self.n_evaluations += 1
        return self._score_of(groups.estimate, tie_break)

    def _ranked(self) -> list[int]:
        """Return the affordable units, those that explain most on their own first."""
        units = self.choice.open_units(self.choice.required_units)
        explained = {unit: self._explained(self._groups_of([unit]).estimate) for unit in units}
        return sorted(explained, key=lambda unit: -explained[unit])

    def _best_pair(self, ranked: Sequence[int]) -> list[int]:
        """Return the required units and the two others that agree most together."""
        required = sorted(self.choice.required_units)
        start, short = self._groups_of(required), set(ranked[:_SHORT_LIST_ROW_SEARCH])
        best, best_score = required, -1.0
        for one in ranked[:_PAIRED]:
            groups = self._split(start, self.choice.units[one])
            others = self.choice.open_units([*required, one])
            others = [unit for unit in others if unit > one or unit not in ranked[:_PAIRED]]
            if len(others) > _SHORT_LIST_ROW_SEARCH:
                others = [unit for unit in others if unit in short]
            for other in others:
                if not self._goes_on():
                    return best
                score = self._score(self._split(groups, self.choice.units[other]))
                if score > best_score:
                    best, best_score = [*required, one, other], score
        return best

    def _greedy(self, start: Sequence[int], tie_break: float) -> Found:
        """Buy units one by one; return the best set on the way."""
        bought = list(start)
        groups = self._groups_of(bought)
        best = Found(tuple(bought), self._score(groups))
        while (candidates := self.choice.open_units(bought)) and self._goes_on():
            grown = (self._split(groups, self.choice.units[unit]) for unit in candidates)
            chosen = candidates[int(np.argmax([self._score(more, tie_break) for more in grown]))]
            groups = self._split(groups, self.choice.units[chosen])
            bought.append(chosen)
            score = self._score(groups)
            if score > best.score:
                best = Found(tuple(bought), score)
        return best

    def _with_exchanges(self, best: Found, short: set[int]) -> Found:
        """Exchange one unit at a time while that helps."""

        def score_with(others: Sequence[int]) -> Callable[[int], float]:
            groups = self._groups_of(others)
            return lambda unit: self._score(self._split(groups, self.choice.units[unit])) if unit in short else -1.0

        improved = True
        while improved:
            improved = False
            for out in self._optional(best.units):
                if not self._goes_on():
                    return best
                found = self._exchanged(best, out, score_with)
                improved, best = improved or found is not best, found
        return best


def _few_subsets(choice: Choice) -> list[tuple[int, ...]] | None:
    """Return all affordable subsets that nothing can be added to, or None if there are many."""
    optional = [unit for unit in range(len(choice.units)) if unit not in choice.required_units]
    if math.comb(len(optional), min(choice.n_affordable(optional), len(optional) // 2)) > _FEW_SUBSETS:
        return None
    found: list[tuple[int, ...]] = []
    stack: list[tuple[tuple[int, ...], int]] = [(tuple(sorted(choice.required_units)), 0)]
    visited = 0
    while stack:
        units, place = stack.pop()
        visited += 1
        if visited > 4 * _FEW_SUBSETS or len(found) > _FEW_SUBSETS:
            return None
        if place == len(optional):
            if not choice.open_units(units):
                found.append(units)
            continue
        stack.append((units, place + 1))
        if choice.is_affordable(choice.features([*units, optional[place]])):
            stack.append(((*units, optional[place]), place + 1))
    return found


# Improvement of a feature subset on drawn rows, with the exact posterior of the trimmed classifier.

# What one evaluation takes: seconds for each variable, and for each multiplication.
_PER_VARIABLE, _PER_PRODUCT = 1e-4, 1e-8
_SECONDS = 12.0
# How often some units are left out at random, and how many of them.
_MOST_KICKS, _LEFT_OUT = 12, 3


class PosteriorSearch(_Search):
    """A search by the exact posteriors of the trimmed classifiers."""

    _work: float = 0.0

    @cached_property
    def _scores(self) -> dict[frozenset[int], float]:
        return {}

    def best_from(self, units: Sequence[int], rng: np.random.Generator) -> Found:
        """Return the best units found, starting from those given and from them with some left out at random."""
        best = self._improved(units)
        for _ in range(_MOST_KICKS):
            optional = self._optional(best.units)
            if len(optional) < 2 or not self._has_time():
                break
            out = rng.choice(len(optional), size=min(len(optional), _LEFT_OUT), replace=False)
            left = {optional[i] for i in out}
            found = self._improved([unit for unit in best.units if unit not in left])
            best = max(best, found, key=lambda one: one.score)
        return best

    def _improved(self, units: Sequence[int]) -> Found:
        """Return better units than those given, if any are found: first more of them, then others in their place."""
        best = Found(tuple(units), self._score(units))
        bought = list(units)
        while (candidates := self.choice.open_units(bought)) and self._has_time():
            scores = [self._score([*bought, unit]) for unit in candidates]
            bought.append(candidates[int(np.argmax(scores))])
            if max(scores) > best.score:
                best = Found(tuple(bought), max(scores))
        improving = True
        while improving and self._has_time():
            improving = False
            optional = self._optional(best.units)
            # The least missed units are exchanged first.
            for out in sorted(optional, key=lambda unit: -self._score([u for u in best.units if u != unit])):
                found = self._exchanged(best, out, self._score_with)
                if found is not best:
                    best, improving = found, True
                    break
        return best

    def _has_time(self) -> bool:
        return self._work < _SECONDS and self._goes_on()

    def _score_with(self, units: Sequence[int]) -> Callable[[int], float]:
        return lambda unit: self._score([*units, unit])

    def _score(self, units: Sequence[int]) -> float:
        """Return the score of some units; -1 if it takes too long."""
        key = frozenset(units)
        if key in self._scores:
            return self._scores[key]
        if not self._has_time():
            return -1.0
        self.n_evaluations += 1
        kept = list(self.choice.features(units))
        trimmed = self.classifier.with_features([self.classifier.features[i] for i in kept], 0.5)
        try:
            inference = trimmed.rows
        except ContractionTooLarge:
            self._work += _SECONDS
            return -1.0
        n_variables = len(kept) + sum(len(hidden.order) for hidden in inference.sums)
        work = _PER_VARIABLE * n_variables + _PER_PRODUCT * inference.operations * len(self.rows.codes)
        self._work += work
        if work > 0.05 * _SECONDS:
            return -1.0
        positive, negative = trimmed.weights(self.rows.codes[:, kept])
        estimate = positive / (positive + negative)
        self._scores[key] = score = self._score_of(estimate)
        return score
