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
        # scikit-learn's scores take the classes to be sorted.
        labels, cuts = np.array(sorted(_classes(model, target))), None
        classifier = distribution_of(model, target, threshold, positive=str(labels[1]))
    else:
        raise TypeError(
            "model must be a fitted BernoulliNB or CategoricalNB, a NaiveBayes or a BayesianNetwork, got "
            f"{type(model).__name__}; to learn a model from a table, use fit"
        )
    rules = [
        ColumnRule(name, values, cuts) for name, values in zip(classifier.features, classifier.value_names, strict=True)
    ]
    return classifier, Discretizer(tuple(rules)), labels


def _classes(model: Model, target: str | None) -> Sequence[str]:
    if not isinstance(model, BayesianNetwork):
        return model.class_names
    if target is None or target not in model.nodes:
        raise ValueError(f"target must be a node of the network, one of {list(model.nodes[:8])}, got {target!r}")
    return model.states(target)
