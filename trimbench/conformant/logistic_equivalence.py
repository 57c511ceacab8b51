"""Naive Bayes and logistic regression as two forms of one classifier (Lemmas 1 and 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trimbench.conformant.reduced_problem import Matrix, Vector


def weights_of_naive_bayes(prior: float, positive: ArrayLike, negative: ArrayLike) -> tuple[float, Vector]:
    """Return the bias and the weights of the one logistic regression that a naive Bayes model conforms with.

    Parameters
    ----------
    prior : float
        P(c), strictly between 0 and 1.
    positive, negative : array of shape (n_features,)
        P(x_i = 1 | c) and P(x_i = 1 | not c), strictly between 0 and 1.

    Returns
    -------
    bias : float
    weights : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        When a probability is not strictly between 0 and 1, or the lengths differ.

    Examples
    --------
    >>> bias, weights = weights_of_naive_bayes(0.5, [0.8], [0.2])
    >>> round(bias, 4), weights.round(4).tolist()
    (-1.3863, [2.7726])

    References
    ----------
    Khosravi et al. (2019), Lemma 1.
    """
    theta = _probabilities(positive, "positive")
    other = _probabilities(negative, "negative")
    if theta.shape != other.shape:
        raise ValueError(f"positive and negative must have the same length, got {len(theta)} and {len(other)}")
    (chance,) = _probabilities([prior], "prior")
    weights: Vector = _logit(theta) - _logit(other)
    bias = float(_logit(chance) + (np.log1p(-theta) - np.log1p(-other)).sum())
    return bias, weights


def naive_bayes_of_weights(bias: float, weights: ArrayLike, positive: ArrayLike) -> tuple[float, Vector]:
    """Return the one conforming naive Bayes model with given probabilities in the positive class.

    Parameters
    ----------
    bias : float
    weights : array of shape (n_features,)
    positive : array of shape (n_features,)
        P(x_i = 1 | c), strictly between 0 and 1.

    Returns
    -------
    prior : float
        P(c).
    negative : ndarray of shape (n_features,)
        P(x_i = 1 | not c).

    Raises
    ------
    ValueError
        When a probability is not strictly between 0 and 1, or the lengths differ.

    References
    ----------
    Khosravi et al. (2019), Lemma 2.
    """
    from scipy.special import expit, log_expit

    theta, slopes = _probabilities(positive, "positive"), np.asarray(weights, dtype=np.float64)
    if slopes.shape != theta.shape:
        raise ValueError(f"weights and positive must have the same length, got {slopes.shape} and {theta.shape}")
    log_odds = _logit(theta) - slopes
    negative: Vector = np.asarray(expit(log_odds))
    prior = float(expit(bias - (np.log1p(-theta) - log_expit(-log_odds)).sum()))
    return prior, negative


def _probabilities(values: ArrayLike, name: str) -> Vector:
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != 1 or not ((result > 0) & (result < 1)).all():
        raise ValueError(f"{name} must be probabilities strictly between 0 and 1, got {values!r}")
    return result


def _logit(theta: Vector | float) -> Matrix:
    result: Matrix = np.log(theta) - np.log1p(-np.asarray(theta))
    return result
