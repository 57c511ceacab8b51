"""Predictions from scores of the classes: what one conformant model and a mixture of them have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.reduced_problem import Matrix


class ExpectedPredictions:
    """Probabilities and labels from `decision_scores`."""

    classes: NDArray[Any]

    @abstractmethod
    def decision_scores(self, X: ArrayLike) -> Matrix:
        """Return log P(class, observed features) up to a constant of each row, shape (n_rows, n_classes)."""

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Return the expected prediction of the logistic regression given the observed features.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            NaN marks a missing feature. A row of NaN gives the class distribution of the model.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            P(class | observed features); the classifier's own probabilities for a complete row.

        Raises
        ------
        ValueError
            As `decision_scores`.

        References
        ----------
        Khosravi et al. (2019), Equation 1.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: ArrayLike) -> Matrix:
        """Return the logarithm of `predict_proba`."""
        scores = self.decision_scores(X)
        log_proba: Matrix = scores - logsumexp(scores)[:, None]
        return log_proba

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row."""
        predicted: NDArray[Any] = self.classes[self.decision_scores(X).argmax(axis=1)]
        return predicted


def logsumexp(scores: NDArray[np.float64], axis: int = 1) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exponentials along an axis."""
    top = scores.max(axis=axis, keepdims=True)
    shifted = scores - top
    result: NDArray[np.float64] = top.squeeze(axis) + np.log(np.exp(shifted, out=shifted).sum(axis=axis))
    return result
