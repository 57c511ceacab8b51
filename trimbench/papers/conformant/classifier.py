"""The logistic regressions of the NaCL experiments: fitted once for each task, then remembered."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.problem import Matrix, Vector
from trimbench.papers.conformant.rows import CODE as ROWS_CODE
from trimbench.papers.conformant.rows import Prepared, prepare
from trimbench.papers.execution.canonical import canonical_json
from trimbench.papers.execution.remembered_arrays import Arrays, remember
from trimbench.papers.execution.functions import job_function

# Weights of pixels that are nearly always black come last in L-BFGS, and where much is missing NaCL depends on them:
# Newton's method with conjugate gradients takes over for the rest.
_FIRST_ITERATIONS = 100
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-5  # of the gradient of the mean loss
_CODE = (
    *ROWS_CODE,
    "trimbench.papers.conformant.classifier",
    "trimbench.conformant.metrics",
)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted logistic regression.

    Attributes
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    iterations : int
    seconds : float
        Of the fit, on the machine that did it.
    """

    weights: Matrix
    biases: Vector
    iterations: int
    seconds: float


def fitted(task: Mapping[str, Any]) -> Fitted:
    """Return the logistic regression of a task.

    Parameters
    ----------
    task : mapping
        `trimbench.papers.conformant.protocol.Task.parameters`.
    """
    return _fitted(canonical_json(dict(task), "task"))


@lru_cache(maxsize=8)
def _fitted(task_json: str) -> Fitted:
    import sklearn

    task = json.loads(task_json)
    prepared, inverse_penalty = prepare(task), float(task["protocol"]["inverse_penalty"])
    # Minutes for the large data sets: the key is all that a fit depends on, and no source text besides.
    digest = hashlib.sha256(np.packbits(prepared.train, axis=1).tobytes())
    digest.update(prepared.train_labels.astype("<i8").tobytes())
    key = {
        "rows": digest.hexdigest(),
        "shape": list(prepared.train.shape),
        "C": inverse_penalty,
        "iterations": [_FIRST_ITERATIONS, _MAX_ITERATIONS],
        "tolerance": _TOLERANCE,
        "sklearn": sklearn.__version__,
    }
    arrays = remember("logistic", key, lambda: _fit(prepared, inverse_penalty))
    iterations, seconds = arrays["run"].tolist()
    return Fitted(arrays["weights"], arrays["biases"], int(iterations), seconds)


def _fit(prepared: Prepared, inverse_penalty: float) -> Arrays:
    from sklearn.linear_model import LogisticRegression

    from trimbench.conformant.conform import linear_scores

    classifier = LogisticRegression(C=inverse_penalty, max_iter=_FIRST_ITERATIONS, warm_start=True)
    start = time.perf_counter()
    places, counts = distinct_rows(prepared.train, prepared.train_labels)
    rows, labels = prepared.train[places].astype(np.float64), prepared.train_labels[places]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unfinished fit shows in the number of iterations
        classifier.fit(rows, labels, sample_weight=counts.astype(np.float64))
        iterations = int(classifier.n_iter_.max())
        classifier.set_params(solver="newton-cg", max_iter=_MAX_ITERATIONS, tol=_TOLERANCE)
        classifier.fit(rows, labels, sample_weight=counts.astype(np.float64))
    iterations += int(classifier.n_iter_.max())
    seconds = time.perf_counter() - start
    weights, biases, _ = linear_scores(classifier)
    return {"weights": weights, "biases": biases, "run": np.array([iterations, seconds])}


def distinct_rows(rows: NDArray[np.uint8], labels: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where each row of zeros and ones with its label is first, in order, and how often it is there.

    The likelihood of the distinct rows with these weights is that of all rows: CovType has thirty times fewer.
    """
    keys = np.hstack([np.packbits(rows, axis=1), labels.astype("<i8")[:, None].view(np.uint8)])
    whole = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    _, places, counts = np.unique(whole, return_index=True, return_counts=True)
    order = np.argsort(places)
    return places[order], counts[order]


@job_function(code=_CODE)
def fit_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the logistic regression of a task and test it with all features.

    Parameters
    ----------
    task : mapping
        `Task.parameters`.
    """
    from trimbench.conformant.metrics import accuracy, weighted_f1

    prepared, classifier = prepare(task), fitted(task)
    scores = prepared.test @ classifier.weights + classifier.biases
    probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    predicted = scores.argmax(axis=1)
    return {
        "iterations": classifier.iterations,
        "fit_seconds": classifier.seconds,
        "test_accuracy": accuracy(prepared.test_labels, predicted),
        "test_f1_weighted": weighted_f1(prepared.test_labels, predicted, len(prepared.classes)),
        "test_entropy": float(-(probabilities * np.log(probabilities + 1e-14)).sum(axis=1).mean()),
    }
