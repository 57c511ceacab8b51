"""Predictions after imputers that look at the observed features: EM, MICE, nearest neighbours."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from trimbench.conformant.imputers import fit_imputer
from trimbench.papers.conformant.classifier import fitted
from trimbench.papers.conformant.rows import prepare
from trimbench.papers.conformant.sweep_jobs import CODE, conformant_model, measures, softmax
from trimbench.papers.data.missingness import Missingness
from trimbench.papers.execution.functions import job_function


@job_function(code=CODE)
def evaluate_imputer(
    task: Mapping[str, Any],
    missing: float,
    mask_seed: int,
    method: str,
    fit_on: str,
    train_rows: int,
    test_rows: int,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Impute hidden features of some test rows, and measure what the logistic regression makes of them.

    Parameters
    ----------
    task : mapping
        `Task.parameters`.
    missing : float
        Fraction of the features.
    mask_seed : int
    method : str
        An imputer, or ``nacl``, which imputes nothing.
    fit_on : {"train", "test"}
        Rows to fit to: complete training rows, or the incomplete test rows themselves.
    train_rows, test_rows : int
        At most so many.
    settings : mapping
        Options of the imputers.
    """
    prepared, classifier = prepare(task), fitted(task)
    complete = prepared.test[:test_rows]
    mask = Missingness().draw(len(complete), prepared.features, missing, np.random.default_rng(mask_seed))
    gaps = prepared.hide(complete, mask)
    start = time.perf_counter()
    if method == "nacl":
        model = conformant_model(task)
        middle = time.perf_counter()
        log_proba = model.predict_log_proba(gaps)
    else:
        chosen = np.random.default_rng(mask_seed).permutation(len(prepared.train))[:train_rows]
        rows = prepared.train[np.sort(chosen)] if fit_on == "train" else gaps
        impute = fit_imputer(method, rows, seed=mask_seed, **settings)  # type: ignore[arg-type]
        middle = time.perf_counter()
        log_proba = np.log(softmax(impute(gaps) @ classifier.weights + classifier.biases) + 1e-300)
    end = time.perf_counter()
    reference = softmax(complete @ classifier.weights + classifier.biases)
    return {
        **measures(prepared, reference, log_proba),
        "missing_percent": 100.0 * float(mask.mean()),
        "fit_seconds": middle - start,
        "ms_per_row": 1000 * (end - middle) / len(complete),
    }
