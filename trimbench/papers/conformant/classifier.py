"""The logistic regressions of the NaCL experiments: fitted once for each task, then remembered."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.classifier_weights import linear_scores
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.conformant.metrics import accuracy, weighted_f1
from trimbench.conformant.reduced_problem import Matrix, Vector
from trimbench.papers.conformant.encoded_rows import CODE as ROWS_CODE
from trimbench.papers.conformant.encoded_rows import EncodedRows, encoded_rows
from trimbench.papers.conformant.lbfgs import fit_lbfgs
from trimbench.papers.conformant.protocol import Protocol, Task
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.remembered_arrays import Arrays, remember

CODE = (
    "trimbench.conformant",
    *ROWS_CODE,
    "trimbench.papers.conformant.lbfgs",
    "trimbench.papers.conformant.classifier",
)
# Of the gradient of the mean loss. The loss hardly depends on the weights of values that few rows have, and a fit finds
# them last, but predictions with much missing depend on them: with 1e-6, weights for CovType were off by up to 0.2.
_TOLERANCE = 1e-9


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

    def scores(self, rows: NDArray[np.uint8] | Matrix) -> Matrix:
        """Return the linear scores of complete rows."""
        return np.asarray(rows @ self.weights + self.biases)

    def probabilities(self, rows: NDArray[np.uint8] | Matrix) -> Matrix:
        """Return the class probabilities of complete rows."""
        scores = self.scores(rows)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


@lru_cache(maxsize=8)
def fitted(task: Task) -> Fitted:
    """Return the logistic regression of a task."""
    rows, protocol = encoded_rows(task), task.protocol
    # The key is all that the optimum depends on, and no source text besides: other changes leave the fits as they are.
    digest = hashlib.sha256(np.packbits(rows.train, axis=1).tobytes())
    digest.update(rows.train_labels.astype("<i8").tobytes())
    key: dict[str, Json] = {
        "rows": digest.hexdigest(),
        "shape": list(rows.train.shape),
        "C": protocol.inverse_penalty,
        "solver": protocol.solver,
        **({"tolerance": _TOLERANCE} if protocol.solver == "optimum" else {"iterations": protocol.max_iterations}),
    }
    arrays = remember("logistic", key, lambda: _fit(rows, protocol))
    iterations, seconds = arrays["run"].tolist()
    return Fitted(arrays["weights"], arrays["biases"], int(iterations), seconds)


def _fit(rows: EncodedRows, protocol: Protocol) -> Arrays:
    start = time.perf_counter()
    places, counts = distinct_rows(rows.train, rows.train_labels)
    distinct, labels = rows.train[places], rows.train_labels[places]
    if protocol.solver == "lbfgs_2019":
        weights, biases, iterations = fit_lbfgs(
            distinct, labels, counts, len(rows.classes), protocol.inverse_penalty, protocol.max_iterations
        )
    else:
        weights, biases, iterations = _optimum(distinct, labels, counts, protocol.inverse_penalty)
    return {"weights": weights, "biases": biases, "run": np.array([iterations, time.perf_counter() - start])}


def _optimum(
    rows: NDArray[np.uint8], labels: NDArray[np.int64], counts: NDArray[np.intp], inverse_penalty: float
) -> tuple[Matrix, Vector, int]:
    classifier = fit_logistic_regression(rows, labels, inverse_penalty, sample_weight=counts, tolerance=_TOLERANCE)
    weights, biases, _ = linear_scores(classifier)
    return weights, biases, int(classifier.n_iter_[0])


def distinct_rows(rows: NDArray[np.uint8], labels: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where each binary row with its label occurs first, in order, and how often it occurs.

    The likelihood of the distinct rows with these weights is that of all rows: CovType has thirty times fewer.
    """
    keys = np.hstack([np.packbits(rows, axis=1), labels.astype("<i8")[:, None].view(np.uint8)])
    whole = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    _, places, counts = np.unique(whole, return_index=True, return_counts=True)
    order = np.argsort(places)
    return places[order], counts[order]


@job_function(code=CODE)
def fit_task(task: Mapping[str, Json]) -> dict[str, Json]:
    """Fit the logistic regression of a task and test it with all features."""
    own = Task.of(task)
    rows, classifier = encoded_rows(own), fitted(own)
    probabilities = classifier.probabilities(rows.test)
    predicted = classifier.scores(rows.test).argmax(axis=1)
    return {
        "iterations": classifier.iterations,
        "fit_seconds": classifier.seconds,
        "test_accuracy": accuracy(rows.test_labels, predicted),
        "test_f1_weighted": weighted_f1(rows.test_labels, predicted, len(rows.classes)),
        "test_entropy": float(-(probabilities * np.log(probabilities + 1e-14)).sum(axis=1).mean()),
    }
