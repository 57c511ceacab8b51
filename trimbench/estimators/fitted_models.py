"""Fitted models as distributions with a classifier, and how raw columns become their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from trimbench.estimators.densities import Model
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.discretize import ColumnRule, Discretizer
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.naive_bayes_mixture import NaiveBayesMixture
from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.model_input import short


def distribution_of(
    model: Model, target: str | None, threshold: float, features: Sequence[str] | None = None
) -> BayesianClassifier | ArgMaxClassifier:
    """Return the classifier of a model: of two classes, the second is positive if it reaches the threshold."""
    if target is not None and isinstance(model, BayesianNetwork) and target in model.nodes:
        classes = model.states(target)
    elif isinstance(model, BayesianNetwork):
        raise ValueError(f"target must be a node of the network, one of {list(model.nodes[:8])}, got {target!r}")
    else:
        classes = model.class_names
    if len(classes) == 2:
        return BayesianClassifier(model, target, positive=classes[1], features=features, threshold=threshold)
    return ArgMaxClassifier(model, target, features=features)


def columns_of(
    model: Any, target: str | None, threshold: float
) -> tuple[BayesianClassifier | ArgMaxClassifier, Discretizer, NDArray[Any]]:
    """Return the classifier of a fitted model, how columns become its values, and the class labels."""
    if isinstance(model, BernoulliNB | CategoricalNB):
        if target is not None:
            raise ValueError(
                f"target must be left out for a fitted {type(model).__name__}, whose class is the one that it was "
                f"fitted to predict, got {short(target)}; only a BayesianNetwork needs it"
            )
        learned = NaiveBayes.from_sklearn(model)
        classifier = distribution_of(learned, None, threshold)
        binary = isinstance(model, BernoulliNB)
        cuts = ((0.5 if model.binarize is None else float(model.binarize)),) if binary else None
        labels: NDArray[Any] = model.classes_
    elif isinstance(model, NaiveBayes | NaiveBayesMixture | BayesianNetwork):
        classifier, cuts = distribution_of(model, target, threshold), None
        names = model.states(str(target)) if isinstance(model, BayesianNetwork) else model.class_names
        labels = np.array(names)
    else:
        raise TypeError(
            "model must be a fitted BernoulliNB or CategoricalNB, a NaiveBayes or a BayesianNetwork, got "
            f"{type(model).__name__}; to learn a model from a table, use fit"
        )
    rules = [
        ColumnRule(name, values, cuts) for name, values in zip(classifier.features, classifier.value_names, strict=True)
    ]
    return classifier, Discretizer(tuple(rules)), labels
