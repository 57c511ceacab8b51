"""Trimming by rows, or by a blend of model and rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trimbench.trimming.costs import Choice
from trimbench.trimming.rows.agreement import RowsAgreement
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    import pandas as pd

Prefer = Literal["best", "cheapest"]


@dataclass(frozen=True)
class RowsTrimming:
    """What was selected by rows.

    Attributes
    ----------
    features : tuple of int
        Positions of the kept features, in the order of the classifier.
    cut : Cut or None
        Where the threshold may lie, and the blended agreement; None for a classifier without threshold.
    rows_agreement : RowsAgreement
    n_evaluations : int
        Agreements of feature subsets that were computed, in all parts of the cross-validation.
    finished : bool
        Whether the selection ended by itself, not by the time limit.
    """

    features: tuple[int, ...]
    cut: Cut | None
    rows_agreement: RowsAgreement
    n_evaluations: int
    finished: bool


def trim_on_rows(
    classifier: Any,
    choice: Choice,
    rows: pd.DataFrame,
    *,
    rows_weight: float | Literal["auto"] = "auto",
    prefer: Prefer = "best",
    by_model: tuple[tuple[int, ...], Cut] | None = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    progress: Callable[[Any], None] | None = None,
    seed: int = 0,
) -> RowsTrimming:
    """Select features and threshold by rows."""
    raise NotImplementedError
