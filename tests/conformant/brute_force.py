"""Slow and obvious twins: tables over all instances of a conformant model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import trimbench as tb

Array = NDArray[np.float64]


def fake_classifier(weights: Array, biases: Array) -> LogisticRegression:
    """A classifier with given weights (n_columns, n_classes)."""
    classifier = LogisticRegression()
    if weights.shape[1] == 2:
        classifier.coef_ = (weights[:, 1] - weights[:, 0])[None]
        classifier.intercept_ = np.array([biases[1] - biases[0]])
    else:
        classifier.coef_, classifier.intercept_ = weights.T, biases
    classifier.classes_ = np.arange(weights.shape[1])
    classifier.n_features_in_ = len(weights)
    return classifier


def instances(model: tb.ConformantModel) -> Array:
    """All rows that a model of discrete features can see."""
    groups = set(model.layout.categorical)
    sizes = [len(columns) if columns in groups else 2 for columns in model.layout.features]
    values = np.indices(sizes).reshape(len(sizes), -1)
    rows = np.zeros((values.shape[1], model.layout.n_columns))
    for columns, value in zip(model.layout.features, values, strict=True):
        if columns in groups:
            rows[np.arange(len(rows)), np.array(columns)[value]] = 1
        else:
            rows[:, columns[0]] = value
    return rows


def joint(model: tb.ConformantModel, rows: Array) -> Array:
    """P(class, x) of each row by the definition of a mixture of naive Bayes models, shape (n_rows, n_classes)."""
    table = np.zeros((len(rows), len(model.classes)))
    groups = set(model.layout.categorical)
    for share, part in zip(np.exp(model.log_weights), model.components, strict=True):
        ones, zeros, prior = np.exp(part.log_probabilities), np.exp(part.log_complements), np.exp(part.log_prior)
        probabilities = np.tile(share * prior, (len(rows), 1))
        for columns in map(list, model.layout.features):
            if tuple(columns) in groups:
                probabilities *= ones[np.array(columns)[rows[:, columns].argmax(axis=1)]]
            else:
                probabilities *= np.where(rows[:, columns] == 1, ones[columns], zeros[columns])
        table += probabilities
    return table
