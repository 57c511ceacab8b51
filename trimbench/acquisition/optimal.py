"""Optimal policies of asking for naive Bayes models with few features, by dynamic programming, and how greedy ones do.

A *partial row* has a value, or none, for each feature; two policies differ in what they ask there. All partial rows are
one table, so that a policy costs one pass from the complete rows to the empty one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_whole, is_number
from trimbench._typing import IntegerArray, Matrix, Vector
from trimbench.networks.costs import checked_costs
from trimbench.networks.naive_bayes import NaiveBayes

if TYPE_CHECKING:
    import pandas as pd

# Partial rows of a table, which has a number for each class, and complete rows that are enumerated for a bound.
_MOST_PARTIAL, _MOST_COMPLETE = 2**20, 2**20
_MOST_FEATURES = 40
_TOLERANCE, _TIE = 1e-9, 1e-12
_STOP = -1


class AccuracyBound(NamedTuple):
    """The accuracy that no policy of asking exceeds: that with all features known.

    Attributes
    ----------
    accuracy : float
    standard_error : float
        0 if all rows were enumerated.
    """

    accuracy: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class AskingPolicy:
    """What to ask of each partial row, and how well that does under the model.

    Attributes
    ----------
    model : NaiveBayes
    choices : ndarray of int, shape (n_values_1 + 1, ..., n_values_n + 1)
        The position of the feature to ask for; -1 to stop. Index 0 of an axis stands for an unknown value, v + 1 for
        the v-th one.
    accuracy : float
        Probability that the most probable class is right where the policy stops.
    cost : float
        Expected cost of the answers.
    """

    model: NaiveBayes
    choices: NDArray[np.int64]
    accuracy: float
    cost: float

    def next_feature(self, codes: IntegerArray) -> NDArray[Any]:
        """Return the name of the feature to ask for, or None to stop, for rows of value indices, -1 where unknown.

        Parameters
        ----------
        codes : ndarray of int, shape (n_rows, n_features)

        Returns
        -------
        ndarray of object, shape (n_rows,)
        """
        chosen = self.choices[tuple(np.asarray(codes).T + 1)]
        names = np.array([*self.model.feature_names, None], dtype=object)
        return np.asarray(names[chosen])


def optimal_policy(
    model: NaiveBayes,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    budget: float | None = None,
    price: float = 0.0,
) -> AskingPolicy:
    """Return the policy with the highest expected accuracy minus the price of its answers, by dynamic programming.

    Parameters
    ----------
    model : NaiveBayes
        With at most about a million partial rows: 12 binary features, or fewer with more values.
    costs : mapping, Series or sequence, optional
        Cost of each feature. Default: 1.
    budget : float, optional
        The most that the answers for a row may cost.
    price : float
        What a unit of cost is worth in accuracy.

    Returns
    -------
    AskingPolicy

    Raises
    ------
    ValueError
        When the model has too many partial rows, or an argument is not allowed.

    Examples
    --------
    >>> from trimbench import NaiveBayes
    >>> model = NaiveBayes([0.5, 0.5], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> policy = optimal_policy(model, budget=1)
    >>> round(policy.accuracy, 3), policy.next_feature([[-1, -1]]).tolist()
    (0.85, ['x0'])
    """
    rows = _PartialRows.of(model, costs, budget, price)
    stop = rows.joint.max(axis=0)
    values, choices = stop.copy(), np.full(len(stop), _STOP)
    for places in rows.by_level():
        for feature in range(rows.n_features):
            here = places[rows.may_ask(places, feature)]
            asked = rows.children_sum(values, here, feature) - price * rows.costs[feature] * rows.chances[here]
            better = asked > values[here] + _TIE * rows.chances[here]
            values[here[better]], choices[here[better]] = asked[better], feature
    return rows.policy(choices)


def greedy_policy(
    model: NaiveBayes,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    budget: float | None = None,
    price: float = 0.0,
) -> AskingPolicy:
    """Return the policy of most information per cost, which `next_feature` follows, with its exact accuracy.

    It stops where nothing is affordable, the class is certain, or, with a `price`, the answer with the most information
    raises the accuracy by less than it costs. Parameters and errors are those of `optimal_policy`.
    """
    rows = _PartialRows.of(model, costs, budget, price)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(rows.joint > 0, np.log(rows.joint), 0.0)
        of_rows = np.where(rows.chances > 0, np.log(rows.chances), 0.0)
    entropies = rows.chances * of_rows - (rows.joint * logs).sum(axis=0)
    stop = rows.joint.max(axis=0)
    choices, best = np.full(len(stop), _STOP), np.full(len(stop), -np.inf)
    for places in rows.by_level():
        uncertain = places[entropies[places] > _TIE * rows.chances[places]]
        for feature in range(rows.n_features):
            here = uncertain[rows.may_ask(uncertain, feature)]
            gain = (entropies[here] - rows.children_sum(entropies, here, feature)) / rows.chances[here]
            rate = gain / max(float(rows.costs[feature]), 1e-300)
            before = best[here]
            tolerance = _TIE * np.maximum(np.abs(np.where(np.isfinite(before), before, 0.0)), 1.0)
            better = rate > before + tolerance
            best[here[better]], choices[here[better]] = rate[better], feature
        if price > 0:
            for feature in range(rows.n_features):
                here = places[choices[places] == feature]
                worth = rows.children_sum(stop, here, feature) - stop[here]
                choices[here[worth < price * rows.costs[feature] * rows.chances[here]]] = _STOP
    return rows.policy(choices)


def accuracy_bound(model: NaiveBayes, n_draws: int = 100_000, random_state: int = 0) -> AccuracyBound:
    """Return the accuracy with all features known, which no policy of asking exceeds, whatever its budget.

    Parameters
    ----------
    model : NaiveBayes
        With at most 40 features.
    n_draws : int
        Rows that are drawn if there are more than about a million complete rows.
    random_state : int

    Raises
    ------
    ValueError
        When the model has more features, or `n_draws` is not allowed.
    """
    check_whole("n_draws", n_draws, 2)
    if model.n_features > _MOST_FEATURES:
        raise ValueError(
            f"model must have at most {_MOST_FEATURES} features for a bound, got {model.n_features}; restrict it to "
            "those that may be asked for with model.restricted(names)"
        )
    if math.prod(model.cardinalities) <= _MOST_COMPLETE:
        joint = np.asarray(model.prior, dtype=np.float64)[:, None]
        for table in model.likelihoods:
            joint = (joint[:, :, None] * table[:, None, :]).reshape(len(joint), -1)
        return AccuracyBound(float(joint.max(axis=0).sum()), 0.0)
    codes = model.encode(model.sample(n_draws, np.random.default_rng(random_state))[list(model.feature_names)])
    logs = model.log_joint(codes)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    right = 1.0 / shares.sum(axis=1)
    return AccuracyBound(float(right.mean()), float(right.std() / math.sqrt(n_draws)))


@dataclass(frozen=True, eq=False)
class _PartialRows:
    """All partial rows of a model, with their probabilities.

    Attributes
    ----------
    model : NaiveBayes
    costs : ndarray of shape (n_features,)
    budget : float
    joint : ndarray of shape (n_classes, n_partial_rows)
        P(class, known values).
    """

    model: NaiveBayes
    costs: Vector
    budget: float
    joint: Matrix

    @classmethod
    def of(cls, model: NaiveBayes, costs: Any, budget: Any, price: Any) -> _PartialRows:
        if not isinstance(model, NaiveBayes):
            raise ValueError(f"model must be a NaiveBayes, got {type(model).__name__}")
        size = math.prod(n + 1 for n in model.cardinalities)
        if size > _MOST_PARTIAL:
            raise ValueError(
                f"model must have at most {_MOST_PARTIAL:,} partial rows, 12 binary features, got {size:,}; restrict "
                "it with model.restricted(names), or bound the accuracy with accuracy_bound"
            )
        if budget is not None and not (is_number(budget) and budget >= 0):
            raise ValueError(f"budget must be a number, 0 or more, got {str(budget)[:80]!r}")
        if not is_number(price) or not 0 <= price < math.inf:
            raise ValueError(f"price must be a number, 0 or more, got {str(price)[:80]!r}")
        joint = np.asarray(model.prior, dtype=np.float64)[:, None]
        for table in model.likelihoods:
            wide = np.hstack([np.ones((len(table), 1)), table])
            joint = (joint[:, :, None] * wide[:, None, :]).reshape(len(joint), -1)
        prices = np.array(checked_costs(model.feature_names, costs, never="a feature not to ask for is left out"))
        return cls(model, prices, math.inf if budget is None else float(budget), joint)

    @property
    def n_features(self) -> int:
        return self.model.n_features

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(n + 1 for n in self.model.cardinalities)

    @cached_property
    def chances(self) -> Vector:
        """P(known values), shape (n_partial_rows,)."""
        return np.asarray(self.joint.sum(axis=0))

    @cached_property
    def _known(self) -> list[NDArray[np.bool_]]:
        """Whether each partial row knows each feature."""
        return [index > 0 for index in np.unravel_index(np.arange(math.prod(self.shape)), self.shape)]

    @cached_property
    def _paid(self) -> Vector:
        """What the known values of each partial row cost."""
        paid = np.zeros(math.prod(self.shape))
        for known, cost in zip(self._known, self.costs, strict=True):
            paid += known * cost
        return paid

    def by_level(self) -> list[NDArray[np.intp]]:
        """Return the possible partial rows by how many values they know, the most first."""
        level = np.sum(self._known, axis=0) if self._known else np.zeros(1, dtype=np.intp)
        return [np.flatnonzero((level == n) & (self.chances > 0)) for n in range(self.n_features, -1, -1)]

    def may_ask(self, places: NDArray[np.intp], feature: int) -> NDArray[np.bool_]:
        """Return which partial rows lack a feature and can pay for it."""
        paid = self._paid[places] + self.costs[feature]
        limit = self.budget + _TOLERANCE * max(self.budget, 1.0) if math.isfinite(self.budget) else math.inf
        return np.asarray(~self._known[feature][places] & (paid <= limit))

    def children_sum(self, values: Vector, places: NDArray[np.intp], feature: int) -> Vector:
        """Return the sum of a quantity over the partial rows with each value of a feature added."""
        stride = math.prod(self.shape[feature + 1 :])
        total = np.zeros(len(places))
        for value in range(1, self.shape[feature]):
            total += values[places + value * stride]
        return total

    def policy(self, choices: NDArray[np.intp]) -> AskingPolicy:
        """Return a policy with its accuracy and cost, from the complete rows up to the empty one."""
        right, paid = self.joint.max(axis=0), np.zeros(len(choices))
        for places, feature in itertools.product(self.by_level(), range(self.n_features)):
            here = places[choices[places] == feature]
            right[here] = self.children_sum(right, here, feature)
            paid[here] = self.children_sum(paid, here, feature) + self.costs[feature] * self.chances[here]
        return AskingPolicy(self.model, choices.reshape(self.shape).astype(np.int64), float(right[0]), float(paid[0]))
