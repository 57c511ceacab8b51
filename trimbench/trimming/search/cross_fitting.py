"""Selections that are judged on rows they did not see, and the choices of weight and size that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut
from trimbench.trimming.problem import Choice, Limits, highest_cost
from trimbench.trimming.result import RowsAgreement, rows_agreement
from trimbench.trimming.search.row_scores import CodedRows, WeightedRows, pooled
from trimbench.trimming.search.row_search import TOLERANCE, RowProblem, WholeClassifier, select

if TYPE_CHECKING:
    import pandas as pd


N_FOLDS = 5
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Fitted:
    """Features and threshold, selected on weighted rows.

    Attributes
    ----------
    features : tuple of int
        Positions of the kept features, in the order of the classifier.
    cut : Cut or None
        Where the threshold may lie, and the blended agreement; None for a classifier without threshold.
    threshold : float or None
        That of the original if it is in `cut`, else the middle.
    """

    features: tuple[int, ...]
    cut: Cut | None
    threshold: float | None

    @classmethod
    def of(cls, features: tuple[int, ...], cut: Cut | None, problem: RowProblem) -> Fitted:
        """Return what was selected, with its threshold."""
        level = None if cut is None or problem.threshold is None else cut.representative(problem.threshold)
        return cls(features, cut, level)


@dataclass(frozen=True, order=True)
class Setup:
    """How a selection is made: the weight of the rows, and the budget."""

    weight: float
    budget: float


class CrossFitting:
    """Selections on all rows but a part, judged on that part; each is made once, on demand.

    Parameters
    ----------
    model : WeightedRows or None
        Rows that represent the model; None if every weight is 1.
    by_model : Fitted, optional
        What the model alone selects within the budget of `choice`, if that is known.
    limits : Limits
        They may be replaced later; the count of evaluations goes on.
    """

    def __init__(
        self,
        problem: RowProblem,
        choice: Choice,
        rows: WeightedRows,
        model: WeightedRows | None,
        *,
        by_model: Fitted | None,
        limits: Limits,
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._choice, self._rows, self._model = problem, choice, rows, model
        self._by_model = by_model
        self.limits = limits
        # Threads would share the evaluations differently each time.
        self._n_jobs = limits.n_jobs if limits.evaluation_limit is None else 1
        self.folds = dealt_folds(rows.decisions, N_FOLDS, rng)
        self.n_folds = int(self.folds.max()) + 1
        self.n_evaluations = 0
        self.finished = True
        self._judged: dict[Setup, BoolArray] = {}
        self._n_judged: dict[Setup, int] = {}
        self._fitted: dict[Setup, Fitted] = {}

    def fitted(self, setup: Setup, places: NDArray[np.int64] | None = None) -> Fitted:
        """Select on all rows, or on those at some places."""
        whole = self._choice.budget
        if setup.weight == 0.0:  # the rows make no difference
            places = None
            if self._by_model is not None and setup.budget == whole:
                return self._by_model
            if setup in self._fitted:
                return self._fitted[setup]
        rows = self._rows if places is None else self._rows.part(places)
        objective = self._problem.objective(pooled(self._model, rows, setup.weight))
        choice = replace(self._choice, budget=setup.budget)
        before = self.n_evaluations
        selection = select(objective, choice, lambda n_evaluations: self.limits.may_go_on(before + n_evaluations))
        features = choice.features(selection.units)
        found = Fitted.of(features, objective.cut(features), self._problem)
        self.n_evaluations += selection.n_evaluations
        self.finished = self.finished and selection.finished
        if setup.weight == 0.0:
            self._fitted[setup] = found
        return found

    def agrees(self, found: Fitted, rows: WeightedRows) -> BoolArray:
        """Return whether a selection agrees with the original on each row."""
        return np.asarray(self._problem.decisions(found.features, found.threshold, rows.codes) == rows.decisions)

    def judge(self, setups: Sequence[Setup]) -> None:
        """Judge several set-ups, part by part, on as many threads as there are jobs, until the time is up."""
        open_ = [setup for setup in setups if setup not in self._judged]
        for setup in open_:
            self._judged[setup] = np.zeros(len(self.folds), dtype=np.bool_)
            self._n_judged[setup] = 0
            if setup.weight == 0.0:  # does not depend on the rows: selected once, before the threads start
                self.fitted(setup)
        for fold in range(self.n_folds if open_ else 0):
            if not self.limits.may_go_on(self.n_evaluations):
                self.finished = False
                return
            held_out = self.folds == fold
            if self._n_jobs == 1:
                parts = [self._judged_part(setup, held_out) for setup in open_]
            else:
                with ThreadPoolExecutor(self._n_jobs) as pool:
                    parts = list(pool.map(partial(self._judged_part, held_out=held_out), open_))
            if not self.limits.may_go_on(self.n_evaluations):  # some of these selections may have been cut short
                self.finished = False
                return
            for setup, part in zip(open_, parts, strict=True):
                self._judged[setup][held_out] = part
                self._n_judged[setup] = fold + 1

    def share(self, setup: Setup, places: BoolArray) -> float:
        """Return the share of the judged rows among those at some places on which a set-up agrees; NaN if none is."""
        seen = places & self.is_judged(setup)
        return float(self._judged[setup][seen].mean()) if seen.any() else math.nan

    def is_judged(self, setup: Setup) -> BoolArray:
        """Return whether the selections of a set-up were judged on each row."""
        self.judge([setup])
        return np.asarray(self.folds < self._n_judged[setup])

    def judged(self, setup: Setup) -> BoolArray:
        """Return whether the selection that did not see a row agrees with the original on it, for each row."""
        self.judge([setup])
        return self._judged[setup]

    def _judged_part(self, setup: Setup, held_out: BoolArray) -> BoolArray:
        found = self.fitted(setup, np.flatnonzero(~held_out))
        return self.agrees(found, self._rows.part(held_out))


def dealt_folds(decisions: NDArray[np.int64], n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal rows to folds at random, those of each decision evenly."""
    shuffled = rng.permutation(len(decisions))
    by_decision = shuffled[np.argsort(decisions[shuffled], kind="stable")]
    folds = np.empty(len(decisions), dtype=np.int64)
    folds[by_decision] = np.arange(len(decisions)) % min(n_folds, len(decisions))
    return folds


Rule = Callable[[BoolArray], Setup]


def best_weight(fitting: CrossFitting, weights: Sequence[float], budget: float) -> Rule:
    """Return the rule that takes the lowest weight within one standard error of the weight with the best agreement.

    The error is that of the difference of both on the same rows. The rows must earn their weight, for two reasons: with
    few rows the best weight is a matter of chance, and a classifier suits the rows that it was learned from better
    than others, which favours the rows if it was learned from them.
    """
    setups = [Setup(weight, budget) for weight in sorted(weights)]

    def rule(places: BoolArray) -> Setup:
        if len(setups) == 1:
            return setups[0]
        fitting.judge(setups)
        shares = [fitting.share(setup, places) for setup in setups]
        if math.isnan(shares[0]):  # the time ran out: what the model selects costs nothing more
            return setups[0]
        best = max(zip(shares, setups, strict=True))[1]
        good = (setup for setup in setups if _reaches(fitting, setup, best, places))
        return next(good, best)

    return rule


def cheapest(fitting: CrossFitting, weight: Rule, budgets: Sequence[float]) -> Rule:
    """Return the rule that takes the lowest budget within one standard error of the best (Breiman et al., 1984)."""

    def rule(places: BoolArray) -> Setup:
        chosen = weight(places).weight
        setups = [Setup(chosen, budget) for budget in sorted(budgets)]
        fitting.judge(setups)
        shares = [fitting.share(setup, places) for setup in setups]
        n_rows = int((places & fitting.is_judged(setups[-1])).sum())
        if n_rows == 0 or np.isnan(shares).any():
            return setups[-1]
        enough = max(shares) - math.sqrt(max(shares) * (1.0 - max(shares)) / n_rows)
        return next(setup for setup, share in zip(setups, shares, strict=True) if share >= enough - TOLERANCE)

    return rule


def _reaches(fitting: CrossFitting, setup: Setup, best: Setup, places: BoolArray) -> bool:
    """Return whether a set-up is within one standard error of the best, on the rows that both were judged on."""
    seen = places & fitting.is_judged(setup) & fitting.is_judged(best)
    if not seen.any():
        return False
    lead = fitting.judged(best)[seen].astype(np.float64) - fitting.judged(setup)[seen]
    return float(lead.mean()) <= float(lead.std()) / math.sqrt(lead.size) + TOLERANCE


def cross_fitted(fitting: CrossFitting, rule: Rule) -> list[BoolArray]:
    """Judge selections on each part of the rows, by the set-up that the rule takes from the other parts alone.

    Returns
    -------
    list of ndarrays of bool, one for each part
        Fewer parts than there are if the time ran out.
    """
    parts = []
    for fold in range(fitting.n_folds):
        part = fitting.folds == fold
        setup = rule(~part)
        if fitting.is_judged(setup)[part].all():
            parts.append(fitting.judged(setup)[part])
    return parts


# Trimming by rows, or by a blend of model and rows.

Prefer = Literal["best", "cheapest"]
RowsWeight = float | Literal["auto"]
# How many budgets are compared to find the cheapest subset that is good enough.
_MAX_BUDGETS = 20
_MAX_COSTS = 5_000
# Cross-validation may take this share of a time limit; the rest is for the selection on all rows.
_SHARE = 0.75


@dataclass(frozen=True)
class RowsTrimming(Fitted):
    """What was selected by rows.

    Attributes
    ----------
    rows_agreement : RowsAgreement
    n_evaluations : int
        Agreements of feature subsets that were computed, in all parts of the cross-validation.
    finished : bool
        Whether the selection ended by itself, not by a limit.
    """

    rows_agreement: RowsAgreement
    n_evaluations: int
    finished: bool


def trim_on_rows(
    classifier: BayesianClassifier,
    choice: Choice,
    rows: pd.DataFrame | CodedRows,
    limits: Limits,
    *,
    rows_weight: RowsWeight = "auto",
    prefer: Prefer = "best",
    by_model: tuple[Sequence[int], Cut | None] | None = None,
    whole: WholeClassifier | None = None,
) -> RowsTrimming:
    """Select features and threshold by how often they agree with the original on rows, blended with the model.

    `by_model` is what the model alone selects within the budget, if that is known: features and cut. Rows are drawn
    from the `whole` classifier, if this one lacks features of a single value. Other parameters are as in `trim`. Raises
    ValueError if the rows do not fit the classifier.
    """
    problem = RowProblem(classifier, whole)
    # For the parts of the cross-validation, and the rows that are drawn from a large model.
    rng = np.random.default_rng(0)
    weighted = problem.rows(rows)
    known = None if by_model is None else Fitted.of(tuple(sorted(by_model[0])), by_model[1], problem)
    weights: Sequence[float] = WEIGHTS if rows_weight == "auto" else (float(rows_weight),)
    first = limits.part(_SHARE)
    if limits.evaluation_limit is not None:
        first = first.up_to(math.ceil(_SHARE * limits.evaluation_limit))
    model = None
    if weights == (0.0,) and known is not None and prefer == "best":  # what the model alone selects is known
        problem.skip_model_rows(rng)
    elif weights != (1.0,):
        model = problem.model_rows(rng)
    fitting = CrossFitting(problem, choice, weighted, model, by_model=known, limits=first, rng=rng)
    rule = best_weight(fitting, weights, choice.budget)
    if prefer == "cheapest":
        rule = cheapest(fitting, rule, _budgets(choice))
    parts = cross_fitted(fitting, rule)
    setup = rule(np.ones(len(weighted), dtype=np.bool_))
    fitting.limits = limits
    found = fitting.fitted(setup)
    apparent = float(fitting.agrees(found, weighted).mean())
    return RowsTrimming(
        **vars(found),
        rows_agreement=rows_agreement(parts, weight=setup.weight, apparent=apparent),
        n_evaluations=fitting.n_evaluations,
        finished=fitting.finished,
    )


def _budgets(choice: Choice) -> list[float]:
    """Return what subsets may cost, from the least to the budget; if there are many costs, a few evenly spread ones."""
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
