"""Improvement of a feature subset on drawn rows, with the exact posterior of the trimmed classifier.

With many features, hardly any two rows look alike, and averages over such rows say little. The posterior itself does
not need them: what is removed is summed out for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.contraction import ContractionTooLarge
from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import Choice
from trimbench.trimming.search.row_search import Found, best_agreement, exchanged, explained_share, open_units

# How much what a subset explains counts beside agreement, to tell subsets of equal agreement apart.
_TIE_BREAK = 1e-3
# What one evaluation takes: seconds for each variable, and for each product of two numbers.
_PER_VARIABLE, _PER_PRODUCT = 1e-4, 1e-8
_SECONDS = 12.0
# How often some units are left out at random, and how many of them.
_MOST_KICKS, _LEFT_OUT = 12, 3


@dataclass
class PosteriorSearch:
    """Scores of feature subsets on rows, by the trimmed classifier itself.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
    posterior : ndarray of shape (n_rows,)
        Pr(c | f).
    decision : ndarray of bool, shape (n_rows,)
        The original's.
    may_go_on : callable
        Asked before each evaluation with their number so far.
    """

    classifier: BayesianClassifier
    choice: Choice
    codes: IntegerArray
    posterior: NDArray[np.float64]
    decision: NDArray[np.bool_]
    may_go_on: Callable[[int], bool]
    n_evaluations: int = 0
    _work: float = 0.0
    _scores: dict[frozenset[int], float] = field(default_factory=dict)

    def best_from(self, units: Sequence[int], rng: np.random.Generator) -> Found:
        """Return the best units found from those given, and after some of them were left out at random."""
        best = self._improved(units)
        for _ in range(_MOST_KICKS):
            optional = [unit for unit in best.units if unit not in self.choice.required_units]
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
        while (candidates := open_units(self.choice, bought)) and self._has_time():
            scores = [self._score([*bought, unit]) for unit in candidates]
            bought.append(candidates[int(np.argmax(scores))])
            if max(scores) > best.score:
                best = Found(tuple(bought), max(scores))
        improving = True
        while improving and self._has_time():
            improving = False
            optional = [unit for unit in best.units if unit not in self.choice.required_units]
            # What is missed least is exchanged first.
            for out in sorted(optional, key=lambda unit: -self._score([u for u in best.units if u != unit])):
                found = exchanged(self.choice, best, out, self._score_with)
                if found is not best:
                    best, improving = found, True
                    break
        return best

    def _has_time(self) -> bool:
        return self._work < _SECONDS and self.may_go_on(self.n_evaluations)

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
        work = _PER_VARIABLE * n_variables + _PER_PRODUCT * inference.operations * len(self.codes)
        self._work += work
        if work > 0.05 * _SECONDS:
            return -1.0
        positive, negative = trimmed.weights(self.codes[:, kept])
        estimate = positive / (positive + negative)
        score = best_agreement(estimate, self.decision) + _TIE_BREAK * explained_share(self.posterior, estimate)
        self._scores[key] = score
        return score
