"""How far a conformant model's own conditional probabilities are from those of its classifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.layout import chunks
from trimbench.conformant.numeric_input import as_table
from trimbench.conformant.reduced_problem import Matrix


def conformity_error(model: ConformantDistribution, X: ArrayLike) -> float:
    """Return the largest difference between P(class | x) by Bayes' rule and by the weights of the classifier.

    Bayes' rule is applied to log-odds against the first class: with thousands of features, log P(class, x) itself is so
    large that only its rounding error would be seen. Rows to which the model gives probability 0 are left out.
    """
    if model.layout.real:
        raise ValueError("conformity_error takes discrete features only, got a model with real-valued ones")
    table = as_table(X, model.layout.n_columns)
    binary = model.layout.binary
    of_one, never_one = _log_odds(model.log_probabilities)
    of_zero, never_zero = _log_odds(model.log_complements[binary])
    prior = model.log_prior - model.log_prior[0]
    worst = 0.0
    for part in chunks(table, model.layout, missing=False):
        zeros = 1 - part[:, binary]
        possible = ~((part[:, never_one] > 0).any(axis=1) | (zeros[:, never_zero] > 0).any(axis=1))
        own = prior + part[possible] @ of_one + zeros[possible] @ of_zero
        difference = _softmax(own) - _softmax(part[possible] @ model.weights + model.biases)
        worst = max(worst, float(np.abs(difference).max(initial=0.0)))
    return worst


def _log_odds(logs: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return logarithms of probabilities minus that of the first class, and which rows have probability 0."""
    never: NDArray[np.bool_] = (logs == -np.inf).any(axis=1)
    finite = np.where(never[:, None], 0.0, logs)
    return finite - finite[:, :1], never


def _softmax(scores: Matrix) -> Matrix:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: Matrix = exponentials / exponentials.sum(axis=1, keepdims=True)
    return result
