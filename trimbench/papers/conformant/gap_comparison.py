"""The job of the comparison on rows with missing features: every method on one split with one set of masks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from trimbench.conformant.metrics import accuracy, brier_score, calibration_error, log_loss
from trimbench.conformant.reduced_problem import Matrix
from trimbench.papers.conformant.gap_methods import CODE as METHODS_CODE
from trimbench.papers.conformant.gap_methods import METHODS, NotApplicableError, Predict, Training
from trimbench.papers.conformant.protocol import Task
from trimbench.papers.conformant.split_tables import CODE as TABLES_CODE
from trimbench.papers.conformant.split_tables import Shape, SplitTables, split_tables
from trimbench.papers.data.missingness import Missingness
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.validation import validated

# Which training rows methods have: complete ones, or ones that miss features like the test rows.
Rows = Literal["complete", "incomplete"]
_COPIES = 4  # of complete training rows, each with a mask of its own, for models that are trained with masks
_FAILURES = (ValueError, ArithmeticError, RuntimeError)
OK, NOT_APPLICABLE, FAILED = "ok", "not applicable", "failed"


class Learned(NamedTuple):
    """What came of learning: predictions for rows with gaps, or why there are none; and the seconds it took."""

    predict: Predict | None
    status: str
    reason: str
    seconds: float


@job_function(code=(*METHODS_CODE, *TABLES_CODE, __name__))
def compare_with_gaps(
    task: Mapping[str, Json],
    shape: Mapping[str, Json],
    missingness: Mapping[str, Json],
    missing: float,
    mask_seed: int,
    methods: Sequence[str],
    training: Sequence[Rows],
    smoothing: float,
) -> dict[str, Json]:
    """Hide features of a split's rows, and measure the predictions that methods make for the test rows.

    `task`, `shape` and `missingness` are the fields of a `Task`, a `Shape` and a `Missingness`.
    """
    own, size = Task.of(task), validated(Shape, shape, "shape")
    how = validated(Missingness, missingness, "missingness")
    tables = _tables(own, size)
    masked, gaps = tables.hidden(how, missing, np.random.default_rng(mask_seed), _COPIES)
    incomplete = masked[: len(tables.train)]
    found: list[Json] = []
    for rows in training:
        is_complete = rows == "complete"
        given = _training(
            own, tables, tables.train if is_complete else incomplete, masked if is_complete else incomplete, smoothing
        )
        for name in methods:
            is_shared = is_complete and not METHODS[name].uses_masks
            learned = _learned_once(own, size, name, smoothing) if is_shared else _learned(name, given)
            found.append({"training": rows, "method": name, **_tested(learned, gaps, tables)})
    return {
        "n_train": len(tables.train),
        "n_test": len(gaps),
        "n_features": len(tables.columns),
        "missing_percent": 100.0 * float(np.isnan(gaps[:, [own[0] for own in tables.columns]]).mean()),
        "methods": found,
    }


@lru_cache(maxsize=1)
def _tables(task: Task, shape: Shape) -> SplitTables:
    return split_tables(task, shape)


@lru_cache(maxsize=len(METHODS))
def _learned_once(task: Task, shape: Shape, name: str, smoothing: float) -> Learned:
    """Learn from complete rows, which all mechanisms and shares have in common."""
    tables = _tables(task, shape)
    return _learned(name, _training(task, tables, tables.train, tables.train, smoothing))


def _training(task: Task, tables: SplitTables, rows: Matrix, masked: Matrix, smoothing: float) -> Training:
    return Training(
        rows,
        tables.train_labels,
        masked,
        np.tile(tables.train_labels, len(masked) // len(rows)),
        tables.n_classes,
        tables.columns,
        tables.numbers,
        task.protocol.inverse_penalty,
        smoothing,
        task.split_seed % 2**32,  # as scikit-learn takes it
    )


def _learned(name: str, training: Training) -> Learned:
    start = time.perf_counter()
    try:
        predict, status, reason = METHODS[name].fit(training), OK, ""
    except NotApplicableError as why:
        predict, status, reason = None, NOT_APPLICABLE, str(why)
    except _FAILURES as error:  # one method must not cost the others
        predict, status, reason = None, FAILED, _said(error)
    return Learned(predict, status, reason, time.perf_counter() - start)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _tested(learned: Learned, gaps: Matrix, tables: SplitTables) -> dict[str, Json]:
    if learned.predict is None:
        return {"status": learned.status, "reason": learned.reason}
    start = time.perf_counter()
    try:
        probabilities = learned.predict(gaps)
    except _FAILURES as error:
        return {"status": FAILED, "reason": _said(error)}
    seconds = time.perf_counter() - start
    truth = tables.test_labels
    return {
        "status": OK,
        "log_loss": log_loss(truth, probabilities),
        "brier": brier_score(truth, probabilities),
        "accuracy": accuracy(truth, probabilities.argmax(axis=1)),
        "calibration": calibration_error(truth, probabilities),
        "us_per_row": 1e6 * seconds / len(gaps),
        "fit_seconds": learned.seconds,
    }
