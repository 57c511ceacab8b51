"""Fitted naive Bayes estimators of scikit-learn as classifiers with linear scores of zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def is_naive_bayes(estimator: Any) -> bool:
    """Return whether an estimator is one that this module turns into linear scores."""
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB

    return isinstance(estimator, BernoulliNB | CategoricalNB)


@dataclass(frozen=True, eq=False)
class NaiveBayesScores:
    """The classifier of a fitted BernoulliNB or CategoricalNB, of columns of zeros and ones (see `NaiveBayesBits`).

    Attributes
    ----------
    log_ones, log_zeros : ndarray of shape (n_columns, n_classes)
        What a 1 or a 0 adds to the logarithm of the joint probability.
    log_prior : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    """

    log_ones: Matrix
    log_zeros: Matrix
    log_prior: NDArray[np.float64]
    classes_: NDArray[Any]

    @classmethod
    def of(cls, estimator: Any) -> NaiveBayesScores:
        """Return the scores of an estimator; ValueError if a probability is 0, whose logarithm is no weight."""
        from sklearn.naive_bayes import BernoulliNB

        if isinstance(estimator, BernoulliNB):
            ones = estimator.feature_log_prob_.T
            with np.errstate(divide="ignore"):
                zeros = np.log1p(-np.exp(ones))
        else:
            ones = np.concatenate([table.T for table in estimator.feature_log_prob_])
            zeros = np.zeros_like(ones)
        if not all(np.isfinite(part).all() for part in (ones, zeros, estimator.class_log_prior_)):
            raise ValueError(
                f"estimator must have probabilities above 0 and below 1, got {type(estimator).__name__} with one that "
                "is not; fit it with alpha > 0, and class_prior without zeros"
            )
        return cls(ones, zeros, estimator.class_log_prior_, estimator.classes_)

    @property
    def coef_(self) -> Matrix:
        """Weights, shape (n_classes, n_columns)."""
        return (self.log_ones - self.log_zeros).T

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Scores of the classes of a row of zeros."""
        return np.asarray(self.log_prior + self.log_zeros.sum(axis=0))

    def predict_proba(self, rows: Matrix) -> Matrix:
        """Return the probability of each class, shape (n_rows, n_classes)."""
        scores = rows @ self.coef_.T + self.intercept_
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class NaiveBayesBits:
    """The steps of a pipeline, and how its BernoulliNB or CategoricalNB makes zeros and ones of what they give.

    Attributes
    ----------
    steps : object or None
        Fitted transformers.
    estimator : BernoulliNB or CategoricalNB
    """

    def __init__(self, steps: Any, estimator: Any) -> None:
        self.steps = steps
        self.estimator = estimator
        names = getattr(estimator if steps is None else steps, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def transform(self, rows: Any) -> Matrix:
        """Return one column for each that a BernoulliNB cuts; of a CategoricalNB, one for each category."""
        table = rows if self.steps is None else self.steps.transform(rows)
        values = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
        if not hasattr(self.estimator, "n_categories_"):
            cut = self.estimator.binarize
            return np.asarray(values > cut, dtype=np.float64) if cut is not None else values
        counts = self.estimator.n_categories_.tolist()
        parts = [values[:, [place]] == np.arange(count) for place, count in enumerate(counts)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def get_feature_names_out(self, names: Any = None) -> NDArray[Any]:
        """Return the names of the columns; a category is its number after the name."""
        before = names if self.steps is None else self.steps.get_feature_names_out(names)
        if not hasattr(self.estimator, "n_categories_"):
            return np.asarray(before, dtype=object)
        counts = self.estimator.n_categories_.tolist()
        pairs = zip(before, counts, strict=True)
        return np.array([f"{name}_{code}" for name, count in pairs for code in range(count)], dtype=object)
