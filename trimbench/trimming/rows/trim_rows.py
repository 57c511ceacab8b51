"""Trimming by rows, or by a blend of model and rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import Choice, highest_cost
from trimbench.trimming.rows.agreement import RowsAgreement, rows_agreement
from trimbench.trimming.rows.cross_fitting import (
    WEIGHTS,
    CrossFitting,
    Fitted,
    best_weight,
    cheapest,
    cross_fitted,
)
from trimbench.trimming.rows.problem import Problem, ThresholdProblem
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    import pandas as pd

Prefer = Literal["best", "cheapest"]
RowsWeight = float | Literal["auto"]
# How many budgets are compared to find the cheapest subset that is good enough.
_MAX_BUDGETS = 20
_MAX_COSTS = 5_000
# Cross-validation may take this share of a time limit; the rest is for the selection on all rows.
_SHARE = 0.75


@dataclass(frozen=True)
class RowsTrimming:
    """What was selected by rows.

    Attributes
    ----------
    features : tuple of int
        Positions of the kept features, in the order of the classifier.
    cut : Cut or None
        Where the threshold may lie, and the blended agreement; None for a classifier without threshold.
    threshold : float or None
        That of the original if it is in `cut`, else the middle.
    rows_agreement : RowsAgreement
    n_evaluations : int
        Agreements of feature subsets that were computed, in all parts of the cross-validation.
    finished : bool
        Whether the selection ended by itself, not by a limit.
    """

    features: tuple[int, ...]
    cut: Cut | None
    threshold: float | None
    rows_agreement: RowsAgreement
    n_evaluations: int
    finished: bool


def check_rows_settings(rows_weight: RowsWeight, prefer: Prefer) -> None:
    """Raise ValueError unless the weight is "auto" or in [0, 1] and the preference is known."""
    is_number = isinstance(rows_weight, int | float | np.number) and not isinstance(rows_weight, bool)
    is_named = isinstance(rows_weight, str) and rows_weight == "auto"
    if not is_named and not (is_number and 0.0 <= float(rows_weight) <= 1.0):
        raise ValueError(
            "rows_weight must be 'auto' or a number from 0 (model only) to 1 (rows only), got "
            f"{str(rows_weight)[:80]!r}"
        )
    if prefer not in get_args(Prefer):
        raise ValueError(f"prefer must be one of {list(get_args(Prefer))}, got {str(prefer)[:80]!r}")


def trim_on_rows(
    problem: Problem | BayesianClassifier,
    choice: Choice,
    rows: pd.DataFrame,
    *,
    rows_weight: RowsWeight = "auto",
    prefer: Prefer = "best",
    by_model: tuple[Sequence[int], Cut] | None = None,
    threshold: float | None = None,
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> RowsTrimming:
    """Select features and threshold by how often they agree with the original on rows, blended with the model.

    Parameters
    ----------
    problem : Problem or BayesianClassifier
        The original.
    choice : Choice
        Which subsets are allowed.
    rows : DataFrame with (at least) one column for each feature
        Two rows or more. Labels are not needed.
    rows_weight : float in [0, 1] or "auto"
        Of the rows in the blend: 0 model only, 1 rows only. ``"auto"`` takes the best of `WEIGHTS` by cross-validation.
    prefer : {"best", "cheapest"}
        The best subset within the budget, or the cheapest within one standard error of the best.
    by_model : pair of features (positions) and Cut, optional
        What the model alone selects within the budget, where that is known.
    threshold : float, optional
        That of the original, for a problem with thresholds; that of a `BayesianClassifier` is known.
    time_limit : float, optional
        Seconds after which the selection stops.
    evaluation_limit : int, optional
        Agreements of feature subsets after which it stops.
    n_jobs : int
        Threads. The result does not depend on their number.
    seed : int
        Decides the parts of the cross-validation, and the rows that are drawn from a large model.

    Returns
    -------
    RowsTrimming

    Raises
    ------
    ValueError
        When an argument is out of range, or the rows do not fit the classifier.
    """
    check_rows_settings(rows_weight, prefer)
    if isinstance(problem, BayesianClassifier):
        threshold = problem.threshold
        problem = ThresholdProblem(problem)
    rng = np.random.default_rng(seed)
    weighted = problem.rows(rows)
    deadline = _Deadline(time_limit, evaluation_limit, _SHARE)
    known = _fitted(by_model, threshold)
    weights: Sequence[float] = WEIGHTS if rows_weight == "auto" else (float(rows_weight),)
    fitting = CrossFitting(
        problem,
        choice,
        weighted,
        None if weights == (1.0,) else problem.model_rows(rng),
        by_model=known,
        threshold=threshold,
        may_go_on=deadline.may_go_on,
        # Threads would share the evaluations differently each time.
        n_jobs=n_jobs if evaluation_limit is None else 1,
        rng=rng,
    )
    rule = best_weight(fitting, weights, choice.budget)
    if prefer == "cheapest":
        rule = cheapest(fitting, rule, _budgets(choice))
    parts = cross_fitted(fitting, rule)
    setup = rule(np.ones(len(weighted), dtype=np.bool_))
    deadline.share = 1.0
    found = fitting.fitted(setup)
    apparent = float(fitting.agrees(found, weighted).mean())
    return RowsTrimming(
        found.features,
        found.cut,
        found.threshold,
        rows_agreement(parts, weight=setup.weight, apparent=apparent),
        fitting.n_evaluations,
        fitting.finished,
    )


@dataclass
class _Deadline:
    """Limits of time and evaluations, of which only a share may be used at first."""

    seconds: float | None
    evaluations: int | None
    share: float
    start: float = field(default_factory=time.monotonic)

    def may_go_on(self, n_evaluations: int) -> bool:
        if self.evaluations is not None and n_evaluations >= self.share * self.evaluations:
            return False
        return self.seconds is None or time.monotonic() - self.start < self.share * self.seconds


def _fitted(by_model: tuple[Sequence[int], Cut] | None, threshold: float | None) -> Fitted | None:
    if by_model is None:
        return None
    features, cut = by_model
    level = None if threshold is None else cut.representative(threshold)
    return Fitted(tuple(sorted(features)), cut, level)


def _budgets(choice: Choice) -> list[float]:
    """Return what subsets may cost, from the least to the budget; of many costs a few, evenly spread."""
    least = math.fsum(choice.costs[unit] for unit in choice.required_units)
    limit = highest_cost(choice.budget)
    reachable = {least}
    for unit, cost in enumerate(choice.costs):
        if unit not in choice.required_units and len(reachable) < _MAX_COSTS:
            reachable |= {round(total + cost, 9) for total in reachable if total + cost <= limit}
    levels = sorted(reachable)
    places = np.unique(np.linspace(0, len(levels) - 1, min(len(levels), _MAX_BUDGETS)).round().astype(int))
    # The whole budget itself, so that its selections serve both choices.
    return [levels[place] for place in places[:-1]] + [choice.budget]
