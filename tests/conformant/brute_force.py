"""Slow and obvious twins: tables over all instances of a conformant model."""

from __future__ import annotations

import itertools

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
    choices = []
    groups = set(model.layout.categorical)
    for columns in model.layout.features:
        if columns in groups:
            choices.append([dict(zip(columns, row, strict=True)) for row in np.eye(len(columns))])
        else:
            choices.append([{columns[0]: value} for value in (0.0, 1.0)])
    rows = []
    for parts in itertools.product(*choices):
        values = {column: value for part in parts for column, value in part.items()}
        rows.append([values[column] for column in range(model.layout.n_columns)])
    return np.array(rows)


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
