"""An upper bound on the agreement of every affordable subset, from what it has to leave out.

Take features T of which every affordable subset leaves out at least r. Its maximum potential agreement is at most that
of all features but some r of T, which is the mean over instances f of

    max(Pr(C_T = c | f without them), Pr(C_T = not c | f without them)),

computed for each row by trying all values of these r features. The largest of these means over all choices of r
features of T bounds the agreement of every affordable subset.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.row_inference import Lookup
from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.confidence import mean_upper_bound
from trimbench.trimming.costs import Choice, is_affordable
from trimbench.trimming.thresholds import is_positive

# How many features of T may be left out together.
_MAX_LEFT_OUT = 4
_MOST_VALUES = 64


def upper_bound(
    classifier: BayesianClassifier,
    choice: Choice,
    ranking_rows: IntegerArray,
    rows: IntegerArray,
    confidence: float,
    max_lookups: int,
) -> float:
    """Return an upper bound on the agreement of every affordable subset that holds with the given confidence.

    1 where variables of the network are hidden, or no set of features makes a difference.

    Parameters
    ----------
    ranking_rows : ndarray of int, shape (n_rows, n_features)
        Decide which features T has.
    rows : ndarray of int, shape (n_rows, n_features)
        Other rows, from which the means are computed.
    max_lookups : int
        About how many entries of tables may be looked up.
    """
    if classifier.whole_rows.sums:
        return 1.0
    relevant = sorted(classifier.rows.relevant)
    small = [i for i in relevant if classifier.cardinalities[i] <= _MOST_VALUES]
    if sum(_effort(classifier, (i,)) for i in small) * len(ranking_rows) > max_lookups:
        return 1.0
    ranking = _Rows.of(classifier, ranking_rows)
    means = {i: float(ranking.potential((i,)).mean()) for i in small}
    order = sorted(small, key=means.__getitem__)
    best: tuple[list[int], int] | None = None
    for left_out in range(1, _MAX_LEFT_OUT + 1):
        chosen = _cover(choice, order, left_out)
        if chosen is None:
            break
        work = len(rows) * sum(_effort(classifier, left) for left in itertools.combinations(chosen, left_out))
        if work > max_lookups:
            break
        best = chosen, left_out
    if best is None:
        return 1.0
    left_outs = list(itertools.combinations(*best))
    each = 1.0 - (1.0 - confidence) / len(left_outs)
    measured = _Rows.of(classifier, rows)
    return min(1.0, max(mean_upper_bound(measured.potential(left), 0.5, each) for left in left_outs))


def _effort(classifier: BayesianClassifier, features: Sequence[int]) -> int:
    """Return how many entries of tables all values of some features need in a row."""
    inference = classifier.whole_rows
    touched = sum(not set(features).isdisjoint(lookup.columns) for lookup in inference.lookups)
    values = math.prod(classifier.cardinalities[i] for i in features)
    # A few operations on each state of the target come with every combination of values.
    return values * (touched + 3) * (inference.n_states + 1)


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

    classifier: BayesianClassifier
    codes: IntegerArray
    logs: _Logs

    @classmethod
    def of(cls, classifier: BayesianClassifier, codes: IntegerArray) -> _Rows:
        return cls(classifier, codes, _Logs.of(classifier.whole_rows.lookups, codes))

    def potential(self, left_out: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of the likelier decision of each row without some features, shape (n_rows,)."""
        classifier = self.classifier
        touched = [f for f in classifier.whole_rows.lookups if not set(left_out).isdisjoint(f.columns)]
        rest = self.logs.without(_Logs.of(touched, self.codes))
        changed = self.codes.copy(order="F")
        chances: dict[bool, list[NDArray[np.float64]]] = {True: [], False: []}
        for assignment in itertools.product(*(range(classifier.cardinalities[i]) for i in left_out)):
            for place, value in zip(left_out, assignment, strict=True):
                changed[:, place] = value
            logs = rest.together(_Logs.of(touched, changed))
            positive, negative = classifier.weights_of(logs)
            decided = is_positive(positive, negative, classifier.threshold)
            with np.errstate(divide="ignore"):
                total = logs.max(axis=1) + np.log(positive + negative)
            chances[True].append(np.where(decided, total, -np.inf))
            chances[False].append(np.where(decided, -np.inf, total))
        one, other = (np.logaddexp.reduce(logs, axis=0) for logs in chances.values())
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(one, other) - np.maximum(one, other))))


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
