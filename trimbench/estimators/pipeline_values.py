"""Fitted models as distributions with a classifier, and how raw columns become their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from trimbench.conformant.conform import check_probabilities, conform, linear_scores
from trimbench.estimators.columns import checked_rows
from trimbench.estimators.pipeline_steps import (
    NaiveBayesScores,
    is_naive_bayes,
    split_pipeline,
    transformed_by,
    unwrapped,
)
from trimbench.estimators.raw_values import RawValues, check_codes, raw_values
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.discretize import ColumnRule, Discretizer
from trimbench.networks.learning import CodedColumns, learn_from_codes
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes, free_class_variable
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import short

if TYPE_CHECKING:
    import pandas as pd


def distribution_of(
    model: Model,
    target: str | None,
    threshold: float,
    features: Sequence[str] | None = None,
    positive: str | None = None,
) -> BayesianClassifier:
    """Return the classifier of a model; with two classes, `positive` (default: the second) has the threshold."""
    names = _classes(model, target)
    if len(names) == 2:
        return BayesianClassifier(model, target, positive=positive or names[1], features=features, threshold=threshold)
    return BayesianClassifier(model, target, features=features)


def columns_of(
    model: Any, target: str | None, threshold: float, rows: pd.DataFrame | None = None
) -> tuple[BayesianClassifier, Discretizer, NDArray[Any]]:
    """Return the classifier of a fitted model, how columns become its values, and the class labels.

    A logistic regression needs rows, as a table of raw columns.
    """
    if isinstance(model, NaiveBayes | NaiveBayesMixture | BayesianNetwork):
        # scikit-learn's scores assume sorted classes.
        labels: NDArray[Any] = np.array(sorted(_classes(model, target)))
        classifier = distribution_of(model, target, threshold, positive=str(labels[1]))
        pairs = zip(classifier.features, classifier.value_names, strict=True)
        return classifier, Discretizer(tuple(ColumnRule(name, values) for name, values in pairs)), labels
    check_convertible(model)
    if target is not None:
        raise ValueError(
            f"target must be left out for a fitted {type(model).__name__}, whose class is the one that it was "
            f"fitted to predict, got {short(target)}; only a BayesianNetwork needs it"
        )
    model = unwrapped(model)
    if not is_naive_bayes(model):
        parts = ColumnScores.of(model, rows)
        return distribution_of(parts.model(rows), None, threshold), Discretizer(parts.rules), parts.classes
    converted = NaiveBayes.from_sklearn(model)
    NaiveBayesScores.of(model)  # refuses zeros, with which some rows would have no probabilities of classes
    classifier = distribution_of(converted, None, threshold)
    from sklearn.naive_bayes import BernoulliNB

    binary = isinstance(model, BernoulliNB)
    cuts = ((0.5 if model.binarize is None else float(model.binarize)),) if binary else None
    pairs = zip(classifier.features, classifier.value_names, strict=True)
    return classifier, Discretizer(tuple(ColumnRule(name, values, cuts) for name, values in pairs)), model.classes_


def rows_of(model: Any, rows: Any) -> pd.DataFrame | None:
    """Return rows as a table of the columns that a fitted estimator takes; None without rows, or for other models."""
    if rows is None or not is_estimator(model):
        return None
    split_pipeline(model)  # an estimator that is not fitted says so
    return checked_rows(unwrapped(model), rows)


def is_estimator(model: Any) -> bool:
    """Return whether something is an object with the methods of a classifier of scikit-learn."""
    return hasattr(model, "fit") and hasattr(model, "predict") and not isinstance(model, type)


def check_convertible(model: Any) -> None:
    """Raise a TypeError that says what to write, unless something may be a fitted estimator."""
    if is_estimator(model):
        return
    if isinstance(model, BayesianClassifier):
        raise TypeError(
            "model must be a fitted estimator or a model, got BayesianClassifier, which is a classifier of categories; "
            "trim it with tb.trim(classifier, budget), or give its model (classifier.model) and target"
        )
    raise TypeError(
        "model must be a fitted BernoulliNB, CategoricalNB or LogisticRegression, a pipeline that ends in one, a "
        f"NaiveBayes or a BayesianNetwork, got {type(model).__name__}; to learn a model from a table, use fit"
    )


def _classes(model: Model, target: str | None) -> Sequence[str]:
    if not isinstance(model, BayesianNetwork):
        return model.class_names
    if target is None or target not in model.nodes:
        raise ValueError(f"target must be a node of the network, one of {list(model.nodes[:8])}, got {target!r}")
    return model.states(target)


# Distributions that estimators can learn from categories.

Density = Literal["naive_bayes", "tree_augmented", "mixture"]
Model = NaiveBayes | NaiveBayesMixture | BayesianNetwork


def learned(
    density: Density,
    rows: CodedColumns,
    classes: NDArray[np.intp],
    class_names: Sequence[str],
    smoothing: float,
    n_components: int,
) -> tuple[Model, str]:
    """Learn a distribution over categories and the class; return it and the name of the class variable."""
    variable = free_class_variable(rows.names)
    target = CodedColumns(classes.astype(np.int64)[:, None], [variable], [list(class_names)])
    structure: Any = "tree" if density == "tree_augmented" else density
    model = learn_from_codes(rows, target, structure=structure, smoothing=smoothing, n_components=n_components)
    return model, variable


# Fitted pipelines as sums over raw columns of few values: what each value adds to the score of each class.

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
        steps, classifier = split_pipeline(estimator)
        first = unwrapped(estimator)
        takes_frames = hasattr(first, "feature_names_in_")
        names = [str(name) for name in getattr(first, "feature_names_in_", ())]
        names = names or [f"x{place}" for place in range(first.n_features_in_)]
        columns = raw_values(steps, names, takes_frames, rows)
        made = transformed_by(steps, columns.table(), takes_frames)
        if isinstance(classifier, NaiveBayesScores):
            biases, classes = classifier.log_prior, classifier.classes_
            check_codes(steps.estimator, columns, made)
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

        For a naive Bayes estimator, it is its own, given that one-hot columns have one 1. For a logistic regression, it
        is the conformant one that fits the rows best, which must then be given.
        """
        prior, tables = self._own() if self.is_naive_bayes or rows is None else self._fitted_to(rows)
        names = [rule.name for rule in self.rules]
        return NaiveBayes(
            prior,
            tables,
            feature_names=names,
            class_variable=free_class_variable(names),
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
        return prior / prior.sum(), [softmax(added.T, axis=1) for added in self.scores]

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
            SimpleNamespace(coef_=np.concatenate(weights).T, intercept_=biases, classes_=self.classes),
            np.concatenate(parts, axis=1).astype(np.float64),
            categorical=groups,
            n_components=1,
            covariance="diagonal",
        )
        (part,) = fitted.components
        logs, complements = part.log_probabilities, part.log_complements
        columns = [logs[at] if len(at) > 1 else np.concatenate([complements[at], logs[at]]) for at in places]
        tables = [softmax(column.T, axis=1) if len(column) else np.ones((len(biases), 1)) for column in columns]
        prior = np.exp(fitted.log_prior)
        return prior / prior.sum(), tables
