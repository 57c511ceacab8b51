"""Naive Bayes from what is observed: a missing feature drops out of the product, in training and in prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.expected_predictions import logsumexp
from trimbench.conformant.reduced_problem import Matrix

_LEAST_VARIANCE = 1e-3  # of that of the whole column


def fit_naive_bayes(
    rows: Matrix,
    labels: NDArray[np.int64],
    n_classes: int,
    columns: Sequence[Sequence[int]],
    numbers: bool,
    smoothing: float,
) -> Callable[[Matrix], Matrix]:
    """Learn naive Bayes and return its class probabilities as a function of rows; NaN marks what is missing.

    Columns of zeros and ones are binary features, or categories where a feature has several; `numbers` are Gaussian
    with a mean and variance in each class. `smoothing` is the pseudo-count of each value and class.
    """
    scores = _gaussian(rows, labels, n_classes) if numbers else _discrete(rows, labels, n_classes, columns, smoothing)
    counts = np.bincount(labels, minlength=n_classes) + smoothing
    prior = np.log(counts / counts.sum())

    def predict(gaps: Matrix) -> Matrix:
        found = scores(gaps) + prior
        return np.asarray(np.exp(found - logsumexp(found)[:, None]))

    return predict


def _discrete(
    rows: Matrix, labels: NDArray[np.int64], n_classes: int, columns: Sequence[Sequence[int]], smoothing: float
) -> Callable[[Matrix], Matrix]:
    pseudo = max(smoothing, 1e-10)
    of_class = np.eye(n_classes)[labels]
    observed = (~np.isnan(rows)).T.astype(np.float64) @ of_class
    ones = np.nan_to_num(rows).T @ of_class
    n_values = np.concatenate([np.full(len(own), max(len(own), 2)) for own in columns])[:, None]
    is_binary = np.concatenate([np.full(len(own), len(own) == 1) for own in columns])[:, None]
    log_one = np.log((ones + pseudo) / (observed + n_values * pseudo))
    # A category is told by its 1 alone.
    log_zero = np.where(is_binary, np.log((observed - ones + pseudo) / (observed + n_values * pseudo)), 0.0)
    return lambda gaps: np.nan_to_num(gaps) @ (log_one - log_zero) + (~np.isnan(gaps)).astype(np.float64) @ log_zero


def _gaussian(rows: Matrix, labels: NDArray[np.int64], n_classes: int) -> Callable[[Matrix], Matrix]:
    seen = ~np.isnan(rows)
    of_class = np.eye(n_classes)[labels]
    counts = np.maximum(seen.T.astype(np.float64) @ of_class, 1.0)
    means = np.nan_to_num(rows).T @ of_class / counts
    squares = np.nan_to_num(rows**2).T @ of_class / counts
    variances = np.maximum(squares - means**2, 0.0) + _LEAST_VARIANCE * np.nanvar(rows, axis=0)[:, None]

    def scores(gaps: Matrix) -> Matrix:
        known, values = (~np.isnan(gaps)).astype(np.float64), np.nan_to_num(gaps)
        quadratic = values**2 @ (1 / variances) - 2 * values @ (means / variances)
        return np.asarray(-0.5 * (quadratic + known @ (means**2 / variances + np.log(variances))))

    return scores
