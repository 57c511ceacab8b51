"""How good predictions are, and how far their confidence can be trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.metrics import brier_score, calibration_error, log_loss
from trimbench.papers.execution.canonical import Json
from trimbench.trimming.rows.agreement import wilson_interval

N_BINS = 10


def shares_of(right: NDArray[np.bool_], name: str) -> dict[str, Json]:
    """Return the share of true values with Wilson's 95 % interval, as ``name``, ``name_low`` and ``name_high``."""
    low, high = wilson_interval(float(right.sum()), len(right))
    return {name: float(right.mean()), f"{name}_low": low, f"{name}_high": high}


def measured(truth: NDArray[np.int64], probabilities: NDArray[np.float64]) -> dict[str, Json]:
    """Return accuracy with its interval, log loss, Brier score and calibration error of the predicted class."""
    found = probabilities.argmax(axis=1)
    return {
        **shares_of(found == truth, "accuracy"),
        "log_loss": log_loss(truth, probabilities),
        "brier": brier_score(truth, probabilities),
        "calibration": calibration_error(truth, probabilities),
        "confidence": float(probabilities.max(axis=1).mean()),
    }


def reliability(truth: NDArray[np.int64], probabilities: NDArray[np.float64]) -> list[dict[str, Json]]:
    """Return mean confidence and share of right predictions, with an interval, in ten bins; empty ones are left out."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * N_BINS).astype(np.intp), N_BINS - 1)
    return [
        {
            "confidence": float(confidence[bins == one].mean()),
            "rows": int((bins == one).sum()),
            **shares_of(right[bins == one], "right"),
        }
        for one in np.unique(bins)
    ]
