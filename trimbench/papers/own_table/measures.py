"""How good predictions are, and how far their confidence can be trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.metrics import brier_score, calibration_error, log_loss
from trimbench.papers.execution.canonical import Json
from trimbench.trimming.rows.agreement import wilson_interval

_FEWEST, _MOST_GROUPS = 25, 10


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
    """Return mean confidence and share of right predictions, with an interval, in up to ten groups of similar size.

    Groups are rows of similar confidence, at least 25 each where there are as many: shares of fewer say little.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    n_groups = min(max(len(truth) // _FEWEST, 1), _MOST_GROUPS)
    return [
        {
            "confidence": float(confidence[rows].mean()),
            "rows": len(rows),
            **shares_of(right[rows], "right"),
        }
        for rows in np.array_split(np.argsort(confidence, kind="stable"), n_groups)
    ]
