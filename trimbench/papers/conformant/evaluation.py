"""Jobs that hide features of the test rows and measure the predictions of every method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

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
from trimbench.conformant.feature_statistics import FeatureStatistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.metrics import accuracy, cross_entropy, weighted_f1
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.reduced_problem import Matrix
from trimbench.papers.conformant.classifier import CODE as CLASSIFIER_CODE
from trimbench.papers.conformant.classifier import fitted
from trimbench.papers.conformant.encoded_rows import EncodedRows, encoded_rows, feature_codes
from trimbench.papers.conformant.mixtures import MixtureSettings, conformant_mixture
from trimbench.papers.conformant.protocol import Task
from trimbench.papers.data.missingness import DEPENDENT, Missingness
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.cells import Cell, Label, check_axis
from trimbench.papers.validation import validated

CODE = (*CLASSIFIER_CODE, "trimbench.papers.conformant.mixtures", "trimbench.papers.conformant.evaluation")
MIXTURE = "nacl_mixture"
METHODS = {
    "nacl": "NaCL",
    "nacl_groups": "NaCL, categorical",
    MIXTURE: "NaCL, mixture (beyond the paper)",
    "mean": "mean",
    "median": "median",
    "min": "min",
    "max": "max",
    "naive_bayes": "naive Bayes",
}
MEASURES = {
    "cross_entropy": "cross entropy to the complete prediction (nats)",
    "accuracy": "accuracy",
    "f1_weighted": "weighted F1",
}


def check_missing(missing: Sequence[float], missingness: Missingness) -> None:
    """Raise an error unless these are fractions of missing features, each once."""
    check_axis("missing", missing)
    for fraction in missing:
        missingness.check_fraction(fraction)


def evaluation_cells(
    task: Task,
    missing: Iterable[float],
    repetitions: int,
    missingness: Missingness,
    seed: int,
    labels: Mapping[str, Label] | None = None,
    mixture: MixtureSettings | None = None,
) -> list[Cell]:
    """Return one job for each share of missing features and repetition; a mixture is one more method of them."""
    own: dict[str, Label] = {"dataset": task.name, "title": task.title}
    return [
        Cell.of(
            {**own, "missing": float(fraction), "repetition": repetition, **(labels or {})},
            evaluate,
            task=task,
            missing=float(fraction),
            missingness=missingness,
            mask_seed=mask_seed(task, fraction, repetition, seed),
            **({"mixture": mixture} if mixture else {}),
        )
        for fraction in missing
        for repetition in range(repetitions)
    ]


def mask_seed(task: Task, fraction: float, repetition: int, seed: int) -> int:
    """Return the seed of a random mask, which all methods and experiments share."""
    return seed_for(purpose="mask", dataset=task.name, missing=float(fraction), repetition=repetition, seed=seed)


@job_function(code=CODE)
def evaluate(
    task: Mapping[str, Json],
    missing: float,
    missingness: Mapping[str, Json],
    mask_seed: int,
    mixture: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """Hide a fraction of the features of the test rows and measure the predictions of each method.

    `task`, `missingness` and `mixture` are the fields of a `Task`, a `Missingness` and, if any, `MixtureSettings`.
    """
    own, how = Task.of(task), validated(Missingness, missingness, "missingness")
    rows, predictors, reference = _ready(own, how.by_column)
    n_rows, rng = len(rows.test), np.random.default_rng(mask_seed)
    if how.by_column:
        whole = encoded_rows(own)
        mask = how.draw_columns(n_rows, whole.features, whole.columns, missing, rng)
    else:
        values = feature_codes(rows.test, rows.columns) if how.mechanism in DEPENDENT else None
        mask = how.draw(n_rows, rows.features, missing, rng, values)
    result: dict[str, Json] = {"missing_percent": 100.0 * float(mask.mean())}
    logs = dict(zip(predictors, predict_all(list(predictors.values()), rows.test, mask, rows.owners), strict=True))
    if mixture:
        learned = conformant_mixture(own, validated(MixtureSettings, mixture, "mixture"))
        logs[MIXTURE] = learned.model.predict_log_proba(rows.hide(rows.test, mask))
    for name, log_proba in logs.items():
        result |= {f"{name}/{key}": value for key, value in measures(rows, reference, log_proba).items()}
    return result


@lru_cache(maxsize=3)
def _ready(task: Task, by_column: bool) -> tuple[EncodedRows, dict[str, AdditivePredictor], Matrix]:
    """Return the rows, the methods, and the classifier's own probabilities of the test rows."""
    rows = encoded_rows(task).by_column if by_column else encoded_rows(task)
    return rows, _predictors(task, rows), fitted(task).probabilities(rows.test)


def _predictors(task: Task, rows: EncodedRows) -> dict[str, AdditivePredictor]:
    """Return all methods by name; ``@test`` marks what was taken from the complete test rows."""
    weights, biases = fitted(task).weights, fitted(task).biases
    model = conformant_model(task)
    missing = np.stack([model.missing_scores[list(columns)].sum(axis=0) for columns in rows.columns])
    found = {"nacl": AdditivePredictor(weights, biases, missing)}
    if any(len(columns) > 1 for columns in rows.columns):
        grouped = conformant_predictor(conformant_model(task, groups=True))
        found["nacl_groups"] = AdditivePredictor(weights, biases, grouped.missing)
    for fill in FILLS:
        for part, source in (("", rows.train), ("@test", rows.test)):
            found[fill + part] = filling_predictor(weights, biases, rows.columns, fill_values(source, fill))
    found["naive_bayes"] = naive_bayes_predictor(
        rows.train, rows.train_labels, len(rows.classes), rows.columns, task.protocol.smoothing
    )
    return found


def conformant_model(task: Task, *, groups: bool = False) -> ConformantModel:
    """Return the conformant model of a task.

    With `groups` the columns of a categorical feature are one variable, not independent ones as in the paper.
    """
    rows, classifier = encoded_rows(task), fitted(task)
    categorical = [columns for columns in rows.columns if len(columns) > 1] if groups else None
    layout = FeatureLayout.of(rows.train.shape[1], categorical)
    return conform_to_statistics(
        classifier.weights,
        classifier.biases,
        np.arange(len(rows.classes)),
        layout,
        FeatureStatistics.of(rows.train, layout),
        smoothing=task.protocol.smoothing,
    )


def measures(rows: EncodedRows, reference: Matrix, log_proba: Matrix) -> dict[str, float]:
    """Return cross entropy (nats), accuracy and weighted F1 of predictions for the first test rows."""
    predicted = log_proba.argmax(axis=1)
    truth = rows.test_labels[: len(predicted)]
    return {
        "cross_entropy": cross_entropy(reference[: len(predicted)], log_proba),
        "accuracy": accuracy(truth, predicted),
        "f1_weighted": weighted_f1(truth, predicted, len(rows.classes)),
    }
