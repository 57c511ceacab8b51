"""How often a naive Bayes classifier of several classes can be right at most, whatever features it may afford.

At each instance f', the most probable class is wrong with a probability of at least that of the less likely of any two
classes, and of the sum of these over pairs that share no class. With Bhattacharyya's coefficient ``B(S)`` of classes i
and j, for naive Bayes the product of those of the features in S, the sum over the instances is at least

    q (1 - sqrt(1 - 4 Pr(i) Pr(j) B(S)^2 / (2 q)^2)) with q = (Pr(i) + Pr(j)) / 2

(Kailath, 1967). The smallest product within the budget is bounded by a knapsack whose last item may be cut.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.confidence import mean_upper_bound
from trimbench.trimming.costs import Choice, highest_cost


def highest_accuracy(classifier: ArgMaxClassifier, choice: Choice) -> float:
    """Return an upper bound on the probability that a classifier with an allowed subset gives the right class.

    Raises ValueError if the features are not independent given the class.
    """
    prior, tables = classifier.prior, classifier.likelihoods
    errors = []
    for i, j in itertools.combinations(range(classifier.n_classes), 2):
        mean = 0.5 * float(prior[i] + prior[j])
        if prior[i] * prior[j] > 0:
            overlap = _least_overlap([float(np.sqrt(table[i] * table[j]).sum()) for table in tables], choice)
            inside = 1.0 - float(prior[i] * prior[j]) * (overlap / mean) ** 2
            errors.append((mean * (1.0 - math.sqrt(max(0.0, inside))), i, j))
    error, used = 0.0, set[int]()
    # Pairs of classes that share none, the largest errors first.
    for least, i, j in sorted(errors, reverse=True):
        if not {i, j} & used:
            error, used = error + least, used | {i, j}
    return 1.0 - error


def _least_overlap(overlaps: Sequence[float], choice: Choice) -> float:
    """Return a lower bound on the product of the coefficients of an allowed subset."""
    with np.errstate(divide="ignore"):
        losses = -np.log(np.minimum(overlaps, 1.0))
    budget = highest_cost(choice.budget) - math.fsum(choice.costs[unit] for unit in choice.required_units)
    total, ranked = 0.0, []
    for unit, members in enumerate(choice.units):
        loss, cost = float(sum(losses[i] for i in members)), choice.costs[unit]
        if unit in choice.required_units or cost == 0:
            total += loss
        elif loss > 0:
            ranked.append((loss / cost, loss, cost))
    for ratio, loss, cost in sorted(ranked, reverse=True):
        if cost <= budget:
            total, budget = total + loss, budget - cost
        elif budget > 0:
            return math.exp(-total - ratio * budget)
        else:
            break
    return math.exp(-total)


def agreement_bound(classifier: ArgMaxClassifier, choice: Choice, rows: IntegerArray, confidence: float) -> float:
    """Return an upper bound on the agreement of every allowed subset that holds with the given confidence.

    A trimming that agrees with the original more often than the original gives the right class gives it itself.

    Parameters
    ----------
    rows : ndarray of int, shape (n_rows, n_features)
        Drawn from the classifier's distribution.
    """
    logs = classifier.log_weights(rows)
    chances: NDArray[np.float64] = np.exp(logs - logs.max(axis=1, keepdims=True))
    wrong = 1.0 - 1.0 / chances.sum(axis=1)
    width = 1.0 - 1.0 / classifier.n_classes
    return min(1.0, highest_accuracy(classifier, choice) + mean_upper_bound(wrong, width, confidence))
