"""How close predictions with missing features stay to the classifier and to the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.additive import checked_labels
from trimbench.conformant.reduced_problem import Matrix

# The published experiments add this to a probability before they take its logarithm.
_FLOOR = 1e-14


def cross_entropy(reference: Matrix, log_predicted: Matrix) -> float:
    """Return the mean cross entropy of predictions to the classifier's own, in nats.

    Parameters
    ----------
    reference : ndarray of shape (n_rows, n_classes)
        Probabilities of the classifier with all features.
    log_predicted : ndarray of shape (n_rows, n_classes)
        Logarithms of the predicted probabilities.
    """
    logs = np.log(np.exp(log_predicted) + _FLOOR)
    return float(-(reference * logs).sum(axis=1).mean())


def accuracy(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Return the share of correct predictions."""
    return float((truth == predicted).mean())


def weighted_f1(truth: NDArray[np.int64], predicted: NDArray[np.int64], n_classes: int) -> float:
    """Return the F1 score of each class, averaged with the frequencies of the classes; 0 for one never predicted.

    Raises ValueError if a label is beyond the classes.

    Parameters
    ----------
    truth, predicted : ndarray of int, shape (n_rows,)
    """
    actual = checked_labels(truth, n_classes, len(predicted))
    given = checked_labels(predicted, n_classes, len(actual))
    table = np.bincount(actual * n_classes + given, minlength=n_classes**2).reshape(n_classes, n_classes)
    support, claimed = table.sum(axis=1), table.sum(axis=0)
    scores = 2 * np.diag(table) / np.maximum(support + claimed, 1)
    return float((scores * support).sum() / support.sum())


def log_loss(truth: NDArray[np.int64], probabilities: Matrix) -> float:
    """Return the mean of minus the logarithm of the probability of the true class, in nats; at most 32.2 a row.

    Parameters
    ----------
    truth : ndarray of int, shape (n_rows,)
    probabilities : ndarray of shape (n_rows, n_classes)
    """
    of_truth = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(of_truth, _FLOOR)).mean())


def brier_score(truth: NDArray[np.int64], probabilities: Matrix) -> float:
    """Return the mean squared distance of probabilities to the true class, summed over the classes: 0 to 2.

    Parameters
    ----------
    truth : ndarray of int, shape (n_rows,)
    probabilities : ndarray of shape (n_rows, n_classes)
    """
    wanted = np.eye(probabilities.shape[1])[truth]
    return float(((probabilities - wanted) ** 2).sum(axis=1).mean())


def calibration_error(truth: NDArray[np.int64], probabilities: Matrix, n_bins: int = 10) -> float:
    """Return the expected calibration error of the predicted class: how far confidence is from accuracy.

    Rows are put into bins of equal width by the probability of their predicted class; in each bin its mean is compared
    with the share of correct predictions, and the distances are averaged with the numbers of rows.

    Parameters
    ----------
    truth : ndarray of int, shape (n_rows,)
    probabilities : ndarray of shape (n_rows, n_classes)
    n_bins : int
    """
    confidence = probabilities.max(axis=1)
    surplus = confidence - (probabilities.argmax(axis=1) == truth)
    bins = np.minimum((confidence * n_bins).astype(np.intp), n_bins - 1)
    return float(np.abs(np.bincount(bins, surplus, n_bins)).sum() / len(truth))
