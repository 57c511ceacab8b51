"""Feature selection by information gain: what the features say about the class, not the classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.costs import Choice, checked_budget, checked_costs, is_affordable
from trimbench.trimming.engines.choice import Engine

if TYPE_CHECKING:
    import pandas as pd

# Gains closer than this are equal; the feature that comes first is then taken.
_TIE = 1e-13


def information_gains(
    classifier: BayesianClassifier, *, given: Sequence[int] = (), engine: Engine | None = None
) -> NDArray[np.float64]:
    """Return the mutual information of the class with each feature, together with those that are given.

    Parameters
    ----------
    given : sequence of int
        Positions of features whose values are known: the result is I(C; given, F_i).
    engine : Engine, optional
        Gives the joint probabilities of a general network; default: exact contraction.

    Returns
    -------
    ndarray of shape (n_features,), in nats
    """
    gains = []
    for feature in range(classifier.n_features):
        features = [*given, feature] if feature not in given else list(given)
        gains.append(_mutual_information(np.stack(_joint(classifier, features, engine))))
    return np.array(gains)


def select_by_information_gain(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    joint: bool = False,
    engine: Engine | None = None,
) -> tuple[str, ...]:
    """Select features by information gain, the most informative affordable one first.

    Parameters
    ----------
    classifier : BayesianClassifier
    budget : float
        Largest sum of costs, 0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.
    joint : bool
        False: each feature by its own gain. True: greedily by the gain together with those already selected; the
        number of instances of the selected features must be small.
    engine : Engine, optional
        Gives the joint probabilities of a general network; default: exact contraction.

    Returns
    -------
    tuple of str
        In the order of their selection.

    Raises
    ------
    ValueError
        When an argument is out of range or a feature is unknown.
    """
    price = checked_costs(checked_classifier(classifier).features, costs)
    limit = checked_budget(budget)
    chosen: list[int] = []
    gains = information_gains(classifier, engine=engine)
    while True:
        spent = [price[i] for i in chosen]
        open_ = [
            i for i in range(classifier.n_features) if i not in chosen and is_affordable([*spent, price[i]], limit)
        ]
        if not open_:
            return tuple(classifier.features[i] for i in chosen)
        if joint and chosen:
            gains = information_gains(classifier, given=chosen, engine=engine)
        highest = max(gains[i] for i in open_)
        chosen.append(next(i for i in open_ if gains[i] >= highest - _TIE))


def _joint(
    classifier: BayesianClassifier, features: Sequence[int], engine: Engine | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if engine is None or classifier.is_naive_bayes:
        return classifier.joint(features)
    instances = engine.instances(features)
    return instances.positive, instances.negative


def most_informative_units(classifier: ArgMaxClassifier, choice: Choice) -> frozenset[int]:
    """Return the required units and, while the budget lasts, those that say most of the class for their cost.

    Each feature counts by itself, so that this takes next to no time.
    """
    units = set(choice.required_units)
    gains = [
        math.fsum(_mutual_information(classifier.joint([feature])) for feature in unit) / max(cost, _TIE)
        for unit, cost in zip(choice.units, choice.costs, strict=True)
    ]
    for unit in sorted(range(len(gains)), key=lambda unit: -gains[unit]):
        if choice.is_affordable(choice.features({*units, unit})):
            units.add(unit)
    return frozenset(units)


def _mutual_information(table: NDArray[np.float64]) -> float:
    """Return I(C; F') in nats from Pr(c, f'), shape (n_classes, n_instances)."""
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / independent[seen])).sum())
