"""Fitted models as distributions with a classifier, and how raw columns become their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import BernoulliNB

from trimbench.estimators.column_scores import ColumnScores
from trimbench.estimators.densities import Model
from trimbench.estimators.fitted_naive_bayes import NaiveBayesScores, is_naive_bayes
from trimbench.estimators.given_classifier import parted, unwrapped
from trimbench.estimators.raw_columns import checked_rows, plain_table
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.discretize import ColumnRule, Discretizer
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture
from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.model_input import short

if TYPE_CHECKING:
    import pandas as pd


def distribution_of(
    model: Model,
    target: str | None,
    threshold: float,
    features: Sequence[str] | None = None,
    positive: str | None = None,
) -> BayesianClassifier | ArgMaxClassifier:
    """Return the classifier of a model: of two classes, `positive` (default: the second) has the threshold."""
    classes = _classes(model, target)
    if len(classes) == 2:
        return BayesianClassifier(
            model, target, positive=positive or classes[1], features=features, threshold=threshold
        )
    return ArgMaxClassifier(model, target, features=features)


def columns_of(
    model: Any, target: str | None, threshold: float, rows: pd.DataFrame | None = None
) -> tuple[BayesianClassifier | ArgMaxClassifier, Discretizer, NDArray[Any]]:
    """Return the classifier of a fitted model, how columns become its values, and the class labels.

    A logistic regression needs rows, as a table of raw columns.
    """
    if isinstance(model, NaiveBayes | NaiveBayesMixture | BayesianNetwork):
        # scikit-learn's scores take the classes to be sorted.
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
    binary = isinstance(model, BernoulliNB)
    cuts = ((0.5 if model.binarize is None else float(model.binarize)),) if binary else None
    pairs = zip(classifier.features, classifier.value_names, strict=True)
    return classifier, Discretizer(tuple(ColumnRule(name, values, cuts) for name, values in pairs)), model.classes_


def rows_of(model: Any, rows: Any) -> pd.DataFrame | None:
    """Return rows as a table of the columns that a fitted estimator takes, or None of another model or without any."""
    if rows is None or not is_estimator(model):
        return None
    parted(model)  # an estimator that is not fitted says so
    return checked_rows(model, plain_table(rows))


def is_estimator(model: Any) -> bool:
    """Return whether something is an object with the methods of a classifier of scikit-learn."""
    return hasattr(model, "fit") and hasattr(model, "predict") and not isinstance(model, type)


def check_convertible(model: Any) -> None:
    """Raise TypeError, with what to write, unless something may be a fitted estimator."""
    if is_estimator(model):
        return
    if isinstance(model, BayesianClassifier | ArgMaxClassifier):
        name = type(model).__name__
        raise TypeError(
            f"model must be a fitted estimator or a model, got {name}, which is a classifier of categories; trim it "
            "with tb.trim(classifier, budget), or give its model (classifier.model) and target"
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
