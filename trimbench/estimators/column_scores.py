"""Fitted pipelines as sums over raw columns of few values: what each value adds to the score of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.classifier_weights import check_probabilities, linear_scores
from trimbench.conformant.conform import conform
from trimbench.estimators.fitted_naive_bayes import NaiveBayesScores
from trimbench.estimators.given_classifier import made_by, parted, unwrapped
from trimbench.estimators.step_values import RawValues, raw_values
from trimbench.networks.discretize import ColumnRule, Discretizer
from trimbench.networks.naive_bayes import NaiveBayes

if TYPE_CHECKING:
    import pandas as pd

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """A fitted classifier whose scores are sums over raw columns.

    Attributes
    ----------
    columns : RawValues
        The values that each raw column is cut into.
    scores : tuple of ndarrays of shape (n_values, n_classes)
        What each value of each raw column adds to the score of each class.
    biases : ndarray of shape (n_classes,)
    classes : ndarray of shape (n_classes,)
    is_naive_bayes : bool
        Whether the scores are logarithms of joint probabilities.
    """

    columns: RawValues
    scores: tuple[Matrix, ...]
    biases: NDArray[np.float64]
    classes: NDArray[Any]
    is_naive_bayes: bool

    @classmethod
    def of(cls, estimator: Any, rows: pd.DataFrame | None) -> ColumnScores:
        """Take a fitted estimator apart.

        Raises ValueError if it is of another kind, a step is unknown, or a column has more than a few values.
        """
        steps, classifier = parted(estimator)
        first = unwrapped(estimator)
        takes_frames = hasattr(first, "feature_names_in_")
        names = [str(name) for name in getattr(first, "feature_names_in_", ())]
        names = names or [f"x{place}" for place in range(first.n_features_in_)]
        columns = raw_values(steps, names, takes_frames, rows)
        made = made_by(steps, columns.table(), takes_frames)
        if isinstance(classifier, NaiveBayesScores):
            biases, classes = classifier.log_prior, classifier.classes_
            _check_known(steps.estimator, columns, made)
            added = np.where(made[:, :, None] == 1, classifier.log_ones, classifier.log_zeros)
        else:
            weights, biases, classes = linear_scores(classifier)
            check_probabilities(classifier, made, weights, biases)
            added = made[:, :, None] * weights
        scores = tuple(
            added[: len(rule.categories), columns.sources == place].sum(axis=1)
            for place, rule in enumerate(columns.rules)
        )
        return cls(columns, scores, biases, classes, isinstance(classifier, NaiveBayesScores))

    @property
    def rules(self) -> tuple[ColumnRule, ...]:
        """How raw columns become values."""
        return self.columns.rules

    def model(self, rows: pd.DataFrame | None) -> NaiveBayes:
        """Return a distribution with the classifier's predictions.

        That of a naive Bayes estimator is its own, given that one-hot columns have one 1. Of a logistic regression, it
        is the conformant one that fits the rows best, which must then be given.
        """
        prior, tables = self._own() if self.is_naive_bayes or rows is None else self._fitted_to(rows)
        return NaiveBayes(
            prior,
            tables,
            feature_names=[rule.name for rule in self.rules],
            class_names=[str(label) for label in self.classes.tolist()],
            value_names=[rule.categories for rule in self.rules],
        )

    def _own(self) -> tuple[Matrix, list[Matrix]]:
        if not self.is_naive_bayes:
            raise ValueError(
                "rows must be given for a logistic regression, which says nothing about how its features are "
                "distributed, got none; write rows=X, the rows that it was fitted to"
            )
        totals = [np.logaddexp.reduce(added, axis=0) for added in self.scores]
        logs = self.biases + np.sum(totals, axis=0)
        prior = np.exp(logs - np.logaddexp.reduce(logs))
        return prior / prior.sum(), [_normalised(added.T) for added in self.scores]

    def _fitted_to(self, rows: pd.DataFrame) -> tuple[Matrix, list[Matrix]]:
        """Return the tables of the conformant model; a column of two values is binary, others are one-hot."""
        coded = Discretizer(self.rules).transform(rows)
        parts, weights, groups, places = [], [], [], []
        biases, width = self.biases.copy(), 0
        for added, name in zip(self.scores, coded.columns, strict=True):
            codes, count = coded[name].cat.codes.to_numpy(), len(added)
            biases = biases + added[0]
            # The first value of a binary column, and of a constant one, is the absence of the others.
            first = 0 if count > 2 else 1
            parts.append(codes[:, None] == np.arange(first, count))
            weights.append(added[first:] - added[0])
            places.append(list(range(width, width + count - first)))
            groups += [places[-1]] if count > 2 else []
            width += count - first
        fitted = conform(
            _Linear(np.concatenate(weights).T, biases, self.classes),
            np.concatenate(parts, axis=1).astype(np.float64),
            categorical=groups,
        )
        logs, complements = fitted.log_probabilities, fitted.log_complements
        columns = [logs[at] if len(at) > 1 else np.concatenate([complements[at], logs[at]]) for at in places]
        tables = [_normalised(column.T) if len(column) else np.ones((len(biases), 1)) for column in columns]
        prior = np.exp(fitted.log_prior)
        return prior / prior.sum(), tables


@dataclass(frozen=True)
class _Linear:
    """Weights of one's own, as `conform` takes them."""

    coef_: Matrix
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]


def _check_known(estimator: Any, columns: RawValues, made: Matrix) -> None:
    """Raise ValueError if the encoder before a CategoricalNB has a category that this one lacks."""
    if not hasattr(estimator, "n_categories_"):
        return
    for place, rule in enumerate(columns.rules):
        own = made[: len(rule.categories), columns.sources == place]
        if own.shape[1] and not own.any(axis=1).all():
            strange = rule.categories[int(np.argmin(own.any(axis=1)))]
            raise ValueError(
                f"CategoricalNB must know each category of column {rule.name[:60]!r}, got none for {strange[:60]!r}; "
                "fit it with min_categories"
            )


def _normalised(logs: Matrix) -> Matrix:
    """Return distributions in proportion to exponentials, one for each row."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
