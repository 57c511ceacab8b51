"""Measures of predictions: against a classifier, against labels, and their calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix

# The published experiments add this to a probability before they take its logarithm.
_FLOOR = 1e-14


def cross_entropy(reference: Matrix, log_predicted: Matrix) -> float:
    """Return the mean cross entropy of predictions relative to the classifier's own with all features, in nats.

    Both have the shape (n_rows, n_classes); `log_predicted` are logarithms of probabilities.
    """
    logs = np.log(np.exp(log_predicted) + _FLOOR)
    return float(-(reference * logs).sum(axis=1).mean())


def accuracy(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Return the share of correct predictions."""
    return float((truth == predicted).mean())


def weighted_f1(truth: NDArray[np.int64], predicted: NDArray[np.int64], n_classes: int) -> float:
    """Return the mean F1 score of the classes, weighted by their frequencies; a class never predicted scores 0."""
    table = np.bincount(truth * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)
    support, claimed = table.sum(axis=1), table.sum(axis=0)
    scores = 2 * np.diag(table) / np.maximum(support + claimed, 1)
    return float((scores * support).sum() / support.sum())


def log_loss(truth: NDArray[np.int64], probabilities: Matrix) -> float:
    """Return the mean of minus the logarithm of the probability of the true class, in nats; at most 32.2 a row."""
    of_truth = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(of_truth, _FLOOR)).mean())


def brier_score(truth: NDArray[np.int64], probabilities: Matrix) -> float:
    """Return the mean squared distance of probabilities from the true class, summed over the classes: 0 to 2."""
    wanted = np.eye(probabilities.shape[1])[truth]
    return float(((probabilities - wanted) ** 2).sum(axis=1).mean())


def calibration_error(truth: NDArray[np.int64], probabilities: Matrix, n_bins: int = 10) -> float:
    """Return the expected calibration error of the predicted class: how far confidence is from accuracy.

    Rows are put into bins of equal width by the probability of their predicted class; in each bin its mean is compared
    with the share of correct predictions, and the distances are averaged, weighted by the numbers of rows.
    """
    confidence = probabilities.max(axis=1)
    surplus = confidence - (probabilities.argmax(axis=1) == truth)
    bins = np.minimum((confidence * n_bins).astype(np.intp), n_bins - 1)
    return float(np.abs(np.bincount(bins, surplus, n_bins)).sum() / len(truth))


# How accurate and how well calibrated predictive probabilities are.

# A probability of exactly 0 can come only from rounding; the smallest positive number keeps its log finite.
_LEAST = np.finfo(float).tiny


@dataclass(frozen=True)
class PredictionQuality:
    """Summaries of predictive probabilities.

    Attributes
    ----------
    expected_error : float
        Mean of min(p, 1 - p): the error rate at threshold 1/2 that the predictions themselves expect.
    actual_error : float
        Share of wrong predictions at threshold 1/2.
    minus_log_probability : float
        Average minus log probability (AMLP) of the true class, in nats.
    squared_error : float
        Mean of (y - p)^2.
    """

    expected_error: float
    actual_error: float
    minus_log_probability: float
    squared_error: float


def prediction_quality(y: NDArray[np.int64], probabilities: Matrix) -> PredictionQuality:
    """Summarise predictive probabilities.

    Parameters
    ----------
    y : ndarray of shape (n_cases,)
        Zeros and ones.
    probabilities : ndarray of shape (n_cases, 2)
        P(y = 0 | x) and P(y = 1 | x): both, as 1 - p loses the digits of a p near 1.

    References
    ----------
    Li, Zhang and Neal (2008), "Comparison of actual and expected error rates" and "Comparison of two measures".
    """
    of_truth = probabilities[np.arange(len(y)), y]
    return PredictionQuality(
        expected_error=float(probabilities.min(axis=1).mean()),
        actual_error=float(((probabilities[:, 1] >= 0.5) != y).mean()),
        minus_log_probability=float(-np.log(np.maximum(of_truth, _LEAST)).mean()),
        squared_error=float(((1.0 - of_truth) ** 2).mean()),
    )


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted against actual frequencies in ten classes of predictions.

    They are the `counts` of cases with P(y = 1 | x) in [0, 0.1), ..., [0.9, 1], the sums of these probabilities, and
    the numbers of cases with y = 1.
    """

    counts: NDArray[np.int64]
    predicted_sums: NDArray[np.float64]
    positives: NDArray[np.int64]


def calibration(y: NDArray[np.int64], probabilities: Matrix) -> Calibration:
    """Sort predictions into ten classes and compare them with what happened; the sums can be added over repetitions.

    The arguments are those of `prediction_quality`: Li, Zhang and Neal (2008), "Comparison of calibration for
    predictions".
    """
    p = probabilities[:, 1]
    bins = np.minimum((p * 10.0).astype(np.int64), 9)
    return Calibration(
        counts=np.bincount(bins, minlength=10),
        predicted_sums=np.bincount(bins, weights=p, minlength=10).astype(np.float64),
        positives=np.bincount(bins, weights=y, minlength=10).astype(np.int64),
    )
