"""Predictors whose scores add up over the features: a weight where observed, a constant where missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.layout import CHUNK_ROWS
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.reduced_problem import Matrix, Vector

Fill = Literal["min", "max", "mean", "median"]
FILLS: tuple[Fill, ...] = get_args(Fill)


@dataclass(frozen=True, eq=False)
class AdditivePredictor:
    """Linear scores of binary columns, with a score for each missing feature.

    Attributes
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    missing : ndarray of shape (n_features, n_classes)
        What a feature adds to each score while it is missing.
    """

    weights: Matrix
    biases: Vector
    missing: Matrix


def conformant_predictor(model: ConformantModel) -> AdditivePredictor:
    """Return the expected prediction of a conformant model in additive form."""
    return AdditivePredictor(model.weights, model.biases, model.missing_scores)


def filling_predictor(
    weights: Matrix, biases: Vector, columns: tuple[tuple[int, ...], ...], fill: Vector
) -> AdditivePredictor:
    """Return a logistic regression that fills each missing column with a constant.

    Parameters
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    columns : tuple of tuple of int
        Columns of each feature.
    fill : ndarray of shape (n_columns,)
        As `fill_values` gives it.
    """
    return AdditivePredictor(weights, biases, _per_feature(fill[:, None] * weights, columns))


def fill_values(rows: NDArray[Any], fill: Fill) -> Vector:
    """Return the minimum, maximum, mean or median of each column of complete rows of numbers.

    Raises ValueError if `fill` is unknown or there is no row.
    """
    if fill not in FILLS:
        raise ValueError(f"fill must be one of {', '.join(FILLS)}, got {fill!r}")
    if len(rows) == 0:
        raise ValueError("rows must have at least one row to take values from, got 0")
    if fill == "min":
        return np.asarray(rows.min(axis=0), dtype=np.float64)
    if fill == "max":
        return np.asarray(rows.max(axis=0), dtype=np.float64)
    mean: Vector = rows.mean(axis=0, dtype=np.float64)
    if fill == "mean":
        return mean
    if rows.dtype.kind in "bu" and rows.max(initial=0) <= 1:
        # The median of zeros and ones, without sorting: 1/2 if both are equally frequent.
        return np.where(mean > 0.5, 1.0, np.where(mean < 0.5, 0.0, 0.5))
    return np.asarray(np.median(rows, axis=0), dtype=np.float64)


def naive_bayes_predictor(
    rows: NDArray[np.uint8],
    labels: ArrayLike,
    n_classes: int,
    columns: tuple[tuple[int, ...], ...],
    smoothing: float = 1.0,
) -> AdditivePredictor:
    """Learn a naive Bayes classifier by maximum likelihood, with every column a binary feature.

    Raises ValueError if labels do not fit the rows or the classes, or smoothing is negative.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Zeros and ones.
    labels : array of int, shape (n_rows,)
        From 0 to n_classes - 1.
    columns : tuple of tuple of int
        Columns of each feature, which are missing together.
    smoothing : float
        Pseudo-count of each value in each class, and of each class.
    """
    codes = checked_labels(labels, n_classes, len(rows))
    if not smoothing >= 0:
        raise ValueError(f"smoothing must be 0 or more, got {smoothing!r}")
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    ones = np.stack([rows[codes == k].sum(axis=0, dtype=np.float64) for k in range(n_classes)], axis=1)
    # Without smoothing, a tiny count keeps the logarithms finite for values that a class never has.
    pseudo = max(smoothing, 0.0)
    tiny = 1e-10 if pseudo == 0 else 0.0
    log_one = np.log(ones + pseudo + tiny) - np.log(counts + 2 * pseudo + 2 * tiny)
    log_zero = np.log(counts - ones + pseudo + tiny) - np.log(counts + 2 * pseudo + 2 * tiny)
    prior = np.log(counts + pseudo + tiny) - np.log(len(rows) + n_classes * (pseudo + tiny))
    return AdditivePredictor(log_one - log_zero, prior + log_zero.sum(axis=0), -_per_feature(log_zero, columns))


def predict_all(
    predictors: list[AdditivePredictor], rows: NDArray[np.uint8], missing: NDArray[np.bool_], spread: NDArray[np.intp]
) -> list[Matrix]:
    """Return the log-probabilities of several predictors for the same rows, with one matrix product.

    Parameters
    ----------
    predictors : list of AdditivePredictor
        Over the same columns and features.
    rows : ndarray of shape (n_rows, n_columns)
        Complete rows.
    missing : ndarray of bool, shape (n_rows, n_features)
    spread : ndarray of int, shape (n_columns,)
        Feature of each column.

    Returns
    -------
    list of ndarray of shape (n_rows, n_classes)
    """
    distinct: list[Matrix] = []
    place = []
    for predictor in predictors:
        known = next((i for i, weights in enumerate(distinct) if weights is predictor.weights), len(distinct))
        if known == len(distinct):
            distinct.append(predictor.weights)
        place.append(known)
    n_classes = predictors[0].weights.shape[1]
    weights, gone = np.hstack(distinct), np.hstack([predictor.missing for predictor in predictors])
    results = [np.empty((len(rows), n_classes)) for _ in predictors]
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        absent = missing[part]
        observed = np.where(absent[:, spread], 0.0, rows[part]) @ weights
        expected = absent.astype(np.float64) @ gone
        for i, predictor in enumerate(predictors):
            scores = observed[:, place[i] * n_classes : (place[i] + 1) * n_classes] + predictor.biases
            scores = scores + expected[:, i * n_classes : (i + 1) * n_classes]
            scores -= scores.max(axis=1, keepdims=True)
            results[i][part] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return results


def checked_labels(labels: ArrayLike, n_classes: int, n_rows: int) -> NDArray[np.int64]:
    """Return labels as positions of classes.

    Raises ValueError unless there is one whole number from 0 to n_classes - 1 for each row.
    """
    codes = np.asarray(labels)
    if codes.shape != (n_rows,):
        raise ValueError(f"labels must be one for each of the {n_rows} rows, got shape {codes.shape}")
    if codes.dtype.kind not in "iub":
        raise ValueError(f"labels must be whole numbers (positions of classes), got type {codes.dtype}")
    if len(codes) and not (codes.min() >= 0 and codes.max() < n_classes):
        raise ValueError(
            f"labels must be from 0 to {n_classes - 1} for {n_classes} classes, got {codes.min()} to {codes.max()}"
        )
    return codes.astype(np.int64)


def _per_feature(by_column: Matrix, columns: tuple[tuple[int, ...], ...]) -> Matrix:
    return np.stack([by_column[list(places)].sum(axis=0) for places in columns])
