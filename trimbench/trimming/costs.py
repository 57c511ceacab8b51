"""Costs of features, and the budget for their sum."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier

# Costs and budgets are decimal fractions to their users: 0.1 + 0.2 fits into 0.3.
_TOLERANCE = 1e-9


def is_affordable(costs: Iterable[float], budget: float) -> bool:
    """Return whether the costs add up to at most the budget, apart from rounding."""
    return math.fsum(costs) <= highest_cost(budget)


def highest_cost(budget: float) -> float:
    """Return the highest sum of costs that fits into the budget, apart from rounding."""
    return budget * (1 + _TOLERANCE)


def checked_budget(budget: float) -> float:
    """Return `budget` as a float; raise ValueError if it is negative or not a number."""
    if not isinstance(budget, int | float | np.number) or math.isnan(budget) or budget < 0:
        raise ValueError(f"budget must be a number >= 0, got {budget!r}; 0 keeps only features that cost nothing")
    return float(budget) if budget < 1e308 else math.inf


def checked_costs(
    classifier: BayesianClassifier, costs: Mapping[str, float] | Sequence[float] | None
) -> tuple[float, ...]:
    """Return the cost of each feature, 1 by default.

    Raises ValueError if a feature is unknown or has no cost, or a cost is negative or not finite.
    """
    if costs is None:
        return (1.0,) * classifier.n_features
    if isinstance(costs, Mapping):
        for name in costs:
            if name not in classifier.features:
                raise ValueError(f"costs must be given for features among {list(classifier.features)}, got {name!r}")
        absent = [name for name in classifier.features if name not in costs]
        if absent:
            raise ValueError(f"costs must have an entry for every feature, got none for {absent[0]!r}")
        costs = [costs[name] for name in classifier.features]
    if isinstance(costs, str) or not isinstance(costs, Sequence | np.ndarray):
        raise ValueError(f"costs must be a mapping from feature to cost or a sequence of costs, got {costs!r}")
    if len(costs) != classifier.n_features:
        raise ValueError(f"costs must have {classifier.n_features} entries, one for each feature, got {len(costs)}")
    for name, cost in zip(classifier.features, costs, strict=True):
        if not isinstance(cost, int | float | np.number) or not math.isfinite(cost) or cost < 0:
            raise ValueError(
                f"costs must be finite numbers >= 0, got {cost!r} for {name!r}; give a feature that must not be used "
                "a cost above the budget"
            )
    return tuple(float(cost) for cost in costs)
