"""Predictions from scores of the classes: what one conformant model and a mixture of them have in common."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.reduced_problem import Matrix


class ExpectedPredictions:
    """Probabilities and labels from `decision_scores`, and the names of columns and features."""

    classes: NDArray[Any]
    layout: FeatureLayout
    column_names: tuple[str, ...] | None = None

    def with_column_names(self, names: Sequence[str] | None) -> Self:
        """Return the model with a name for each column, or with none; it shares its arrays with this one."""
        named = copy.copy(self)
        vars(named)["column_names"] = None if names is None else tuple(str(name) for name in names)  # frozen
        return named

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features of the layout: of its column, or what the names of its one-hot columns begin with."""
        names = self.column_names
        if names is None:
            return None
        groups = ([names[column] for column in columns] for columns in self.layout.features)
        return tuple(_shared_name(group) if len(group) > 1 else group[0] for group in groups)

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


def _shared_name(names: Sequence[str]) -> str:
    """Return what names of one-hot columns begin with: "town" of "town_x" and "town_y"; the first if it is nothing."""
    pairs = zip(min(names), max(names), strict=False)
    shared = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    last = max(shared.rfind(separator) for separator in "_=.")
    return (shared[:last] if last > 0 else shared) or names[0]


def logsumexp(scores: NDArray[np.float64], axis: int = 1) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exponentials along an axis."""
    top = scores.max(axis=axis, keepdims=True)
    shifted = scores - top
    result: NDArray[np.float64] = top.squeeze(axis) + np.log(np.exp(shifted, out=shifted).sum(axis=axis))
    return result
