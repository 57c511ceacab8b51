"""An upper bound on the agreement of every affordable subset, from what it has to leave out.

Take features T of which every affordable subset leaves out at least r. Its maximum potential agreement is at most that
of all features but some r of T, which is the mean over instances f of

    max_k Pr(the original gives class k | f without them),

computed for each row by trying all values of these r features, with what is hidden summed out. The largest of these
means over all choices of r features of T bounds the agreement of every affordable subset.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.contraction import ContractionTooLarge
from trimbench.networks.row_inference import Lookup
from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.arg_max import ArgMaxClassifier, most_probable
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.confidence import mean_upper_bound
from trimbench.trimming.costs import Choice, is_affordable
from trimbench.trimming.thresholds import is_positive

# How many features of T may be left out together.
_MAX_LEFT_OUT = 4
_MOST_VALUES = 64
# Fewer rows than this say too little.
_FEWEST_ROWS = 100
# Products of two numbers, in tables of hidden variables, that take as long as one entry that is looked up.
_PRODUCTS = 10

AnyClassifier = BayesianClassifier | ArgMaxClassifier


def upper_bound(
    classifier: AnyClassifier,
    choice: Choice,
    ranking_rows: IntegerArray,
    rows: IntegerArray,
    confidence: float,
    max_lookups: int,
) -> float:
    """Return an upper bound on the agreement of every affordable subset that holds with the given confidence.

    1 where rows are too expensive, or no set of features makes a difference.

    Parameters
    ----------
    ranking_rows : ndarray of int, shape (n_rows, n_features)
        Decide which features T has.
    rows : ndarray of int, shape (n_rows, n_features)
        Other rows, from which the means are computed: the first ones, if all of them are too expensive.
    max_lookups : int
        About how many entries of tables may be looked up.
    """
    try:
        return _upper_bound(classifier, choice, ranking_rows, rows, confidence, max_lookups)
    except ContractionTooLarge:
        return 1.0


def _upper_bound(
    classifier: AnyClassifier,
    choice: Choice,
    ranking_rows: IntegerArray,
    rows: IntegerArray,
    confidence: float,
    max_lookups: int,
) -> float:
    relevant = sorted(classifier.rows.relevant)
    small = [i for i in relevant if classifier.cardinalities[i] <= _MOST_VALUES]
    once = sum(hidden.operations for hidden in classifier.whole_rows.sums) // _PRODUCTS
    each_row = once + sum(_effort(classifier, (i,)) for i in small)
    # Which features are ranked first does not decide whether the bound holds.
    ranking = _Rows.of(classifier, ranking_rows[: max(1, int(max_lookups / max(each_row, 1)))])
    means = {i: float(ranking.potential((i,)).mean()) for i in small}
    order = sorted(small, key=means.__getitem__)
    best: tuple[list[int], int, int] | None = None
    for left_out in range(1, _MAX_LEFT_OUT + 1):
        chosen = _cover(choice, order, left_out)
        if chosen is None:
            break
        each_row = once + sum(_effort(classifier, left) for left in itertools.combinations(chosen, left_out))
        n_rows = min(len(rows), max_lookups // each_row)
        if n_rows < (len(rows) if best else _FEWEST_ROWS):
            break
        best = chosen, left_out, n_rows
    if best is None:
        return 1.0
    chosen, left_out, n_rows = best
    left_outs = list(itertools.combinations(chosen, left_out))
    each = 1.0 - (1.0 - confidence) / len(left_outs)
    measured = _Rows.of(classifier, rows[:n_rows])
    width = 1.0 - 1.0 / _n_decisions(classifier)
    return min(1.0, max(mean_upper_bound(measured.potential(left), width, each) for left in left_outs))


def _n_decisions(classifier: AnyClassifier) -> int:
    return classifier.n_classes if isinstance(classifier, ArgMaxClassifier) else 2


def _decided(classifier: AnyClassifier, logs: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the decision on each row and log Pr(row), from log Pr(state, row) of shape (n_rows, n_states)."""
    if isinstance(classifier, ArgMaxClassifier):
        of_classes = classifier.by_class(logs)
        return most_probable(of_classes.T, logarithms=True), np.logaddexp.reduce(of_classes, axis=1)
    positive, negative = classifier.weights_of(logs)
    with np.errstate(divide="ignore"):
        total = logs.max(axis=1) + np.log(positive + negative)
    return is_positive(positive, negative, classifier.threshold).astype(np.intp), total


def _effort(classifier: AnyClassifier, features: Sequence[int]) -> int:
    """Return how many entries of tables all values of some features need in a row."""
    inference = classifier.whole_rows
    touched = sum(not set(features).isdisjoint(lookup.columns) for lookup in inference.lookups)
    values = math.prod(classifier.cardinalities[i] for i in features)
    # A few operations on each state of the target come with every combination of values.
    looked_up = (touched + 3) * (inference.n_states + 1)
    summed = sum(hidden.operations for hidden in inference.sums if not set(features).isdisjoint(hidden.columns))
    return values * (looked_up + summed // _PRODUCTS)


def _cover(choice: Choice, order: Sequence[int], left_out: int) -> list[int] | None:
    """Return features, from the front of `order`, of which every affordable subset leaves out at least so many."""
    chosen: list[int] = []
    costs: list[float] = []
    units: set[int] = set()
    for feature in order:
        unit = choice.unit_of.get(feature)
        if unit in units:
            continue
        if unit is not None:
            units.add(unit)
            costs.append(choice.costs[unit])
        chosen.append(feature)
        cheapest = sorted(costs)
        affordable = sum(is_affordable(cheapest[: n + 1], choice.budget) for n in range(len(cheapest)))
        if len(chosen) - affordable >= left_out:
            return chosen
    return None


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with log Pr(c, f), and what it becomes when values change."""

    classifier: AnyClassifier
    codes: IntegerArray
    logs: _Logs
    # One for each sum over hidden variables, shape (n_rows, n_states).
    sums: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, classifier: AnyClassifier, codes: IntegerArray) -> _Rows:
        inference = classifier.whole_rows
        sums = tuple(hidden.logs(codes).T for hidden in inference.sums)
        return cls(classifier, codes, _Logs.of(inference.lookups, codes), sums)

    def potential(self, left_out: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of the likeliest decision of each row without some features, shape (n_rows,)."""
        classifier, n_rows = self.classifier, len(self.codes)
        inference = classifier.whole_rows
        touched = [f for f in inference.lookups if not set(left_out).isdisjoint(f.columns)]
        sums = [hidden for hidden in inference.sums if not set(left_out).isdisjoint(hidden.columns)]
        same = (logs for hidden, logs in zip(inference.sums, self.sums, strict=True) if hidden not in sums)
        rest = self.logs.without(_Logs.of(touched, self.codes))
        fixed = sum(same, np.zeros(1))
        changed = self.codes.copy(order="F")
        chances = np.full((_n_decisions(classifier), n_rows), -np.inf)
        for assignment in itertools.product(*(range(classifier.cardinalities[i]) for i in left_out)):
            for place, value in zip(left_out, assignment, strict=True):
                changed[:, place] = value
            logs = rest.together(_Logs.of(touched, changed)) + fixed
            logs = sum((hidden.logs(changed).T for hidden in sums), logs)
            decided, total = _decided(classifier, logs)
            at = (decided, np.arange(n_rows))
            chances[at] = np.logaddexp(chances[at], total)
        return np.asarray(1.0 / np.exp(chances - chances.max(axis=0)).sum(axis=0))


@dataclass(frozen=True, eq=False)
class _Logs:
    """Sums of logarithms, with the zeros counted apart so that they can be taken back; shape (n_states, n_rows)."""

    finite: NDArray[np.float64]
    zeros: NDArray[np.float64]

    @classmethod
    def of(cls, lookups: Sequence[Lookup], codes: IntegerArray) -> _Logs:
        n_states = max((len(lookup.logs) for lookup in lookups), default=1)
        finite, zeros = np.zeros((n_states, len(codes))), np.zeros((n_states, len(codes)))
        for lookup in lookups:
            impossible = np.isneginf(lookup.logs)
            if impossible.any():
                Lookup(lookup.columns, lookup.strides, impossible.astype(np.float64)).add_to(zeros, codes)
                lookup = Lookup(lookup.columns, lookup.strides, np.where(impossible, 0.0, lookup.logs))
            lookup.add_to(finite, codes)
        return cls(finite, zeros)

    def without(self, other: _Logs) -> _Logs:
        return _Logs(self.finite - other.finite, self.zeros - other.zeros)

    def together(self, other: _Logs) -> NDArray[np.float64]:
        """Return the sum with another, shape (n_rows, n_states)."""
        return np.where(self.zeros + other.zeros > 0.5, -np.inf, self.finite + other.finite).T
