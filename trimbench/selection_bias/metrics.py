"""How accurate and how well calibrated predictive probabilities are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A probability of exactly 0 can come only from rounding; the smallest positive number keeps its log finite.
_LEAST = np.finfo(float).tiny
_SUM_TOLERANCE = 1e-6


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


def prediction_quality(y: ArrayLike, probabilities: ArrayLike) -> PredictionQuality:
    """Summarise predictive probabilities.

    Parameters
    ----------
    y : array of shape (n_cases,)
        Zeros and ones.
    probabilities : array of shape (n_cases, 2)
        P(y = 0 | x) and P(y = 1 | x): both, as 1 - p loses the digits of a p near 1.

    Returns
    -------
    PredictionQuality

    Raises
    ------
    ValueError
        When the shapes do not match, a label is not 0 or 1, or a row is not a distribution.

    References
    ----------
    Li, Zhang and Neal (2008), "Comparison of actual and expected error rates" and "Comparison of two measures".
    """
    truth, p = _checked(y, probabilities)
    of_truth = p[np.arange(len(truth)), truth]
    return PredictionQuality(
        expected_error=float(p.min(axis=1).mean()),
        actual_error=float(((p[:, 1] >= 0.5) != truth).mean()),
        minus_log_probability=float(-np.log(np.maximum(of_truth, _LEAST)).mean()),
        squared_error=float(((1.0 - of_truth) ** 2).mean()),
    )


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted against actual frequencies in ten classes of predictions.

    Attributes
    ----------
    counts : ndarray of shape (10,)
        Cases with P(y = 1 | x) in [0, 0.1), ..., [0.9, 1].
    predicted_sums : ndarray of shape (10,)
        Sum of their probabilities.
    positives : ndarray of shape (10,)
        Cases among them with y = 1.
    """

    counts: NDArray[np.int64]
    predicted_sums: NDArray[np.float64]
    positives: NDArray[np.int64]


def calibration(y: ArrayLike, probabilities: ArrayLike) -> Calibration:
    """Sort predictions into ten classes and compare them with what happened; the sums can be added over repetitions.

    Parameters
    ----------
    y : array of shape (n_cases,)
    probabilities : array of shape (n_cases, 2)

    References
    ----------
    Li, Zhang and Neal (2008), "Comparison of calibration for predictions".
    """
    truth, p = _checked(y, probabilities)
    bins = np.minimum((p[:, 1] * 10.0).astype(np.int64), 9)
    return Calibration(
        counts=np.bincount(bins, minlength=10),
        predicted_sums=np.bincount(bins, weights=p[:, 1], minlength=10).astype(np.float64),
        positives=np.bincount(bins, weights=truth, minlength=10).astype(np.int64),
    )


def _checked(y: ArrayLike, probabilities: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    truth = np.asarray(y)
    try:
        p = np.asarray(probabilities, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"probabilities must be a table of numbers, got {probabilities!r}") from error
    if truth.ndim != 1 or p.shape != (len(truth), 2) or not len(truth):
        raise ValueError(
            "probabilities must have a row of two for each of the cases in y, at least one, "
            f"got shapes {p.shape} and {truth.shape}"
        )
    wrong = [value for value in truth.tolist() if value not in (0, 1)]
    if wrong:
        raise ValueError(f"y must hold only 0 and 1, got {wrong[0]!r}; encode the classes as 0 and 1")
    off = ~((p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1.0) <= _SUM_TOLERANCE))
    if off.any():
        raise ValueError(
            "probabilities must be P(y = 0 | x) and P(y = 1 | x), not negative and with sum 1, "
            f"got {p[off][0].tolist()} in row {int(np.flatnonzero(off)[0])}"
        )
    return truth.astype(np.int64), p
