"""Predictions with missing features, by every method whose scores are a sum over features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from trimbench.conformant.additive import (
    FILLS,
    AdditivePredictor,
    conformant_predictor,
    fill_values,
    filling_predictor,
    naive_bayes_predictor,
    predict_all,
)
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.metrics import accuracy, cross_entropy, weighted_f1
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import Matrix
from trimbench.conformant.statistics import FeatureStatistics
from trimbench.papers.conformant.classifier import fitted
from trimbench.papers.conformant.rows import CODE as ROWS_CODE
from trimbench.papers.conformant.rows import Prepared, prepare
from trimbench.papers.data.missingness import Missingness
from trimbench.papers.execution.canonical import canonical_json
from trimbench.papers.execution.functions import job_function

CODE = (
    "trimbench.conformant",
    *ROWS_CODE,
    "trimbench.papers.conformant.classifier",
    "trimbench.papers.conformant.sweep_jobs",
)
MEASURES = ("cross_entropy", "accuracy", "f1_weighted")


def conformant_model(task: Mapping[str, Any], *, groups: bool = False) -> ConformantModel:
    """Return the conformant model of a task.

    Parameters
    ----------
    task : mapping
    groups : bool
        Whether the columns of a categorical feature are one variable, not independent ones as in the paper.
    """
    prepared, classifier = prepare(task), fitted(task)
    categorical = [columns for columns in prepared.columns if len(columns) > 1] if groups else None
    layout = FeatureLayout.of(prepared.train.shape[1], categorical)
    return conform_to_statistics(
        classifier.weights,
        classifier.biases,
        np.arange(len(prepared.classes)),
        layout,
        FeatureStatistics.of(prepared.train, layout),
        smoothing=task["protocol"]["smoothing"],
    )


def _predictors(task: Mapping[str, Any], prepared: Prepared) -> dict[str, AdditivePredictor]:
    """Return all methods by name; ``@test`` marks what was taken from the complete test rows."""
    classifier = fitted(task)
    weights, biases = classifier.weights, classifier.biases
    model = conformant_model(task)
    missing = np.stack([model.missing_scores[list(columns)].sum(axis=0) for columns in prepared.columns])
    found = {"nacl": AdditivePredictor(weights, biases, missing)}
    if any(len(columns) > 1 for columns in prepared.columns):
        grouped = conformant_predictor(conformant_model(task, groups=True))
        found["nacl_groups"] = AdditivePredictor(weights, biases, grouped.missing)
    for fill in FILLS:
        for part, rows in (("", prepared.train), ("@test", prepared.test)):
            found[fill + part] = filling_predictor(weights, biases, prepared.columns, fill_values(rows, fill))
    found["naive_bayes"] = naive_bayes_predictor(
        prepared.train,
        prepared.train_labels,
        len(prepared.classes),
        prepared.columns,
        task["protocol"]["smoothing"],
    )
    return found


@lru_cache(maxsize=3)
def _ready(task_json: str) -> tuple[dict[str, AdditivePredictor], Matrix]:
    """Return the methods, and the classifier's own probabilities of the test rows."""
    task = json.loads(task_json)
    prepared, classifier = prepare(task), fitted(task)
    return _predictors(task, prepared), softmax(prepared.test @ classifier.weights + classifier.biases)


@job_function(code=CODE)
def evaluate(task: Mapping[str, Any], missing: float, missingness: Mapping[str, Any], mask_seed: int) -> dict[str, Any]:
    """Hide features of the test rows and measure what each method makes of the rest.

    Parameters
    ----------
    task : mapping
        `trimbench.papers.conformant.protocol.Task.parameters`.
    missing : float
        Fraction of the features.
    missingness : mapping
        Settings of `trimbench.papers.data.missingness.Missingness`.
    mask_seed : int
    """
    prepared = prepare(task)
    predictors, reference = _ready(canonical_json(dict(task), "task"))
    rng = np.random.default_rng(mask_seed)
    mask = Missingness(**missingness).draw(len(prepared.test), prepared.features, missing, rng)
    spread = np.repeat(np.arange(len(prepared.columns)), [len(columns) for columns in prepared.columns])
    result: dict[str, Any] = {"missing_percent": 100.0 * float(mask.mean())}
    logs = predict_all(list(predictors.values()), prepared.test, mask, spread)
    for name, log_proba in zip(predictors, logs, strict=True):
        result |= {f"{name}/{key}": value for key, value in measures(prepared, reference, log_proba).items()}
    return result


def measures(prepared: Prepared, reference: Matrix, log_proba: Matrix) -> dict[str, float]:
    """Return cross entropy (nats), accuracy and weighted F1 of predictions for the test rows."""
    predicted = log_proba.argmax(axis=1)
    truth = prepared.test_labels[: len(predicted)]
    return {
        "cross_entropy": cross_entropy(reference[: len(predicted)], log_proba),
        "accuracy": accuracy(truth, predicted),
        "f1_weighted": weighted_f1(truth, predicted, len(prepared.classes)),
    }


def softmax(scores: Matrix) -> Matrix:
    """Return the probabilities of linear scores."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
