"""A feature subset for a classifier of any size, found on rows that were drawn from its distribution.

A row with the features f' is classified by an estimate of Pr(c | f'): the average of Pr(c | f) over the rows that look
alike. Each half of the rows is classified by the other half's averages, so that a subset that tells every row apart
does not look perfect. Units are bought one by one, then exchanged while that helps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.costs import Choice, is_affordable

# Estimates are told apart by this many levels.
_LEVELS = 512
# An average counts as much as this many rows of the larger group that a row was in before.
_PRIOR_ROWS = 1.0
# Which units may come in by an exchange: those that explain most on their own.
_SHORT_LIST = 80
# How many units are tried with every other one.
_PAIRED = 20
_FEW_SUBSETS = 4000
_IMPROVEMENT = 1e-9
# How much what a unit explains counts beside agreement, which many units leave as it is at first.
_TIE_BREAK = 1e-3


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows that look alike: their group, and the estimate of each row's posterior."""

    group: NDArray[np.int64]
    n_groups: int
    estimate: NDArray[np.float64]


@dataclass
class RowSearch:
    """Scores of feature subsets on rows.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
    posterior : ndarray of shape (n_rows,)
        Pr(c | f).
    decision : ndarray of bool, shape (n_rows,)
        The original's.
    """

    codes: IntegerArray
    posterior: NDArray[np.float64]
    decision: NDArray[np.bool_]
    cardinalities: Sequence[int]
    n_evaluations: int = 0
    _half: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self._half = np.arange(len(self.posterior), dtype=np.int64) % 2

    def nothing(self) -> _Groups:
        """Return the rows as one group."""
        n_rows = len(self.posterior)
        return _Groups(np.zeros(n_rows, np.int64), 1, np.full(n_rows, self.posterior.mean()))

    def with_features(self, groups: _Groups, features: Sequence[int]) -> _Groups:
        """Return the rows told apart by more features."""
        group, n_groups = groups.group, groups.n_groups
        for feature in features:
            group = group * self.cardinalities[feature] + self.codes[:, feature]
            n_groups *= self.cardinalities[feature]
            if n_groups > 4 * len(group):
                _, group = np.unique(group, return_inverse=True)
                n_groups = int(group.max()) + 1
        both = 2 * group + self._half
        counts = np.bincount(both, minlength=2 * n_groups)
        sums = np.bincount(both, weights=self.posterior, minlength=2 * n_groups)
        other = both ^ 1
        estimate = (sums[other] + _PRIOR_ROWS * groups.estimate) / (counts[other] + _PRIOR_ROWS)
        return _Groups(group, n_groups, estimate)

    def score(self, groups: _Groups, tie_break: float = _TIE_BREAK) -> float:
        """Return the agreement with the best threshold on the estimates, plus a share of what they explain."""
        self.n_evaluations += 1
        return best_agreement(groups.estimate, self.decision) + tie_break * self.explained(groups)

    def explained(self, groups: _Groups) -> float:
        """Return the share of the variance of the posterior that the estimates explain."""
        return explained_share(self.posterior, groups.estimate)


def explained_share(posterior: NDArray[np.float64], estimate: NDArray[np.float64]) -> float:
    """Return the share of the variance of the posterior that estimates of it explain."""
    variance = float(posterior.var())
    return 1.0 - float(np.square(posterior - estimate).mean()) / variance if variance > 0 else 1.0


def best_agreement(estimate: NDArray[np.float64], decision: NDArray[np.bool_]) -> float:
    """Return the largest share of rows that a threshold on the estimates decides as `decision` does."""
    levels = np.minimum((estimate * _LEVELS).astype(np.int64), _LEVELS - 1)
    seen = np.bincount(levels, minlength=_LEVELS)
    positive = np.bincount(levels, weights=decision, minlength=_LEVELS)
    # Entry i: the i lowest levels are below the threshold.
    below = np.concatenate([[0.0], np.cumsum(seen - 2.0 * positive)])
    return float(positive.sum() + below.max()) / len(levels)


@dataclass(frozen=True)
class Found:
    """Units that were bought, in that order, and their score."""

    units: tuple[int, ...]
    score: float


def search_rows(search: RowSearch, choice: Choice, may_go_on: Callable[[int], bool]) -> Found:
    """Return the best units found; `may_go_on` is asked before each step with the number of evaluations so far.

    Few subsets are all tried. Otherwise units are bought one by one, once by what they explain of the posterior,
    once by agreement and once starting from the best pair, and exchanged while that helps.
    """
    required = sorted(choice.required_units)
    start = search.with_features(search.nothing(), choice.features(required))
    best = Found(tuple(required), search.score(start))
    subsets = _few_subsets(choice, required)
    if subsets is not None:
        for units in subsets:
            if not may_go_on(search.n_evaluations):
                break
            score = search.score(search.with_features(start, choice.features(set(units) - set(required))))
            if score > best.score:
                best = Found(tuple(units), score)
        return best
    ranked = _ranked(search, choice, required)
    for tie_break in (1.0, _TIE_BREAK):
        best = max(best, _greedy(search, choice, required, tie_break, may_go_on), key=lambda found: found.score)
    pair = _best_pair(search, choice, required, ranked, may_go_on)
    best = max(best, _greedy(search, choice, pair, _TIE_BREAK, may_go_on), key=lambda found: found.score)
    return _exchange(search, choice, best, set(ranked[:_SHORT_LIST]), may_go_on)


def _few_subsets(choice: Choice, required: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Return all affordable subsets that nothing can be added to, or None if there are many."""
    optional = [unit for unit in range(len(choice.units)) if unit not in choice.required_units]
    cheapest = sorted(choice.costs[unit] for unit in optional)
    most = sum(is_affordable(cheapest[: n + 1], choice.budget) for n in range(len(cheapest)))
    if math.comb(len(optional), min(most, len(optional) // 2)) > _FEW_SUBSETS:
        return None
    found: list[tuple[int, ...]] = []
    stack: list[tuple[tuple[int, ...], int]] = [(tuple(required), 0)]
    visited = 0
    while stack:
        units, place = stack.pop()
        visited += 1
        if visited > 4 * _FEW_SUBSETS or len(found) > _FEW_SUBSETS:
            return None
        if place == len(optional):
            if not open_units(choice, units):
                found.append(units)
            continue
        stack.append((units, place + 1))
        if choice.is_affordable(choice.features([*units, optional[place]])):
            stack.append(((*units, optional[place]), place + 1))
    return found


def _ranked(search: RowSearch, choice: Choice, required: Sequence[int]) -> list[int]:
    """Return the units that are affordable, those that explain most on their own first."""
    alone = {unit: search.with_features(search.nothing(), choice.units[unit]) for unit in open_units(choice, required)}
    return sorted(alone, key=lambda unit: -search.explained(alone[unit]))


def _best_pair(
    search: RowSearch,
    choice: Choice,
    required: Sequence[int],
    ranked: Sequence[int],
    may_go_on: Callable[[int], bool],
) -> list[int]:
    """Return the required units and the two others that agree most together."""
    start = search.with_features(search.nothing(), choice.features(required))
    best, best_score = list(required), -1.0
    for one in ranked[:_PAIRED]:
        groups = search.with_features(start, choice.units[one])
        others = [unit for unit in open_units(choice, [*required, one]) if unit > one or unit not in ranked[:_PAIRED]]
        for other in others if len(others) <= _SHORT_LIST else [u for u in others if u in set(ranked[:_SHORT_LIST])]:
            if not may_go_on(search.n_evaluations):
                return best
            score = search.score(search.with_features(groups, choice.units[other]))
            if score > best_score:
                best, best_score = [*required, one, other], score
    return best


def _greedy(
    search: RowSearch, choice: Choice, start: Sequence[int], tie_break: float, may_go_on: Callable[[int], bool]
) -> Found:
    """Buy units one by one; return the best set on the way."""
    bought = list(start)
    groups = search.with_features(search.nothing(), choice.features(bought))
    best = Found(tuple(bought), search.score(groups))
    while (candidates := open_units(choice, bought)) and may_go_on(search.n_evaluations):
        grown = (search.with_features(groups, choice.units[unit]) for unit in candidates)
        chosen = candidates[int(np.argmax([search.score(more, tie_break) for more in grown]))]
        groups = search.with_features(groups, choice.units[chosen])
        bought.append(chosen)
        score = search.score(groups)
        if score > best.score:
            best = Found(tuple(bought), score)
    return best


def _exchange(
    search: RowSearch, choice: Choice, best: Found, short: set[int], may_go_on: Callable[[int], bool]
) -> Found:
    """Exchange one unit at a time while that helps."""

    def score_with(others: Sequence[int]) -> Callable[[int], float]:
        groups = search.with_features(search.nothing(), choice.features(others))
        return lambda unit: search.score(search.with_features(groups, choice.units[unit])) if unit in short else -1.0

    improved = True
    while improved:
        improved = False
        for out in [unit for unit in best.units if unit not in choice.required_units]:
            if not may_go_on(search.n_evaluations):
                return best
            found = exchanged(choice, best, out, score_with)
            improved, best = improved or found is not best, found
    return best


def exchanged(
    choice: Choice, best: Found, out: int, score_with: Callable[[Sequence[int]], Callable[[int], float]]
) -> Found:
    """Return the units with the best other one in the place of `out`, or `best` itself if that is no improvement.

    Parameters
    ----------
    score_with : callable
        Gives, for some units, the score of these units with one more; a negative one is never taken.
    """
    others = [unit for unit in best.units if unit != out]
    score = score_with(others)
    scores = {unit: score(unit) for unit in open_units(choice, others) if unit != out}
    unit = max(scores, key=scores.__getitem__, default=out)
    if unit == out or scores[unit] <= best.score + _IMPROVEMENT:
        return best
    return Found((*others, unit), scores[unit])


def open_units(choice: Choice, bought: Sequence[int]) -> list[int]:
    """Return the units that can still be afforded."""
    have = set(bought)
    return [
        unit
        for unit in range(len(choice.units))
        if unit not in have and choice.is_affordable(choice.features([*bought, unit]))
    ]
