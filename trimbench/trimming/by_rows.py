"""Trimming by rows, or by a blend of rows and model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from trimbench.trimming.by_model import loose_bound, trim_by_model
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.confidence import binomial_interval
from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.certified import DEFAULT_POINTS, CertifiedEngine
from trimbench.trimming.engines.choice import Engine, EngineName, exact_engine, make_engine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES
from trimbench.trimming.limits import Limits
from trimbench.trimming.result import Trimming
from trimbench.trimming.rows.trim_rows import Prefer, RowsWeight, trim_on_rows
from trimbench.trimming.sampled import CONFIDENCE, EXACT_SECONDS
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    import pandas as pd

# Rows behind an interval for a network that has no exact engine.
_N_DRAWN = 20_000
# Points of the grid of certified bounds where time is limited.
_POINTS_IN_TIME = 2**16


@dataclass(frozen=True)
class ByRows:
    """Rows, their weight in the blend, and which of several good subsets is taken; as in `trim`."""

    rows: pd.DataFrame
    weight: RowsWeight
    prefer: Prefer


def trim_by_rows(
    classifier: BayesianClassifier,
    choice: Choice,
    by_rows: ByRows,
    engine: EngineName | Engine,
    limits: Limits,
    by_model: Trimming | None = None,
) -> Trimming:
    """Return the trimming that agrees best on a blend of rows and model.

    The model's own trimming is one of those that may be taken; that of an earlier, stopped search goes on. A selection
    by the rows begins anew.
    """
    if by_model is not None:
        by_model = by_model.resumed(limits.part(0.5))
    elif by_rows.weight in ("auto", 0) and by_rows.prefer == "best":
        by_model = trim_by_model(classifier, choice, engine, limits.part(0.5))
    found = trim_on_rows(
        classifier,
        choice,
        by_rows.rows,
        rows_weight=by_rows.weight,
        prefer=by_rows.prefer,
        by_model=None if by_model is None else (by_model.kept, Cut(by_model.agreement, *by_model.threshold_interval)),
        time_limit=limits.seconds_left(),
        evaluation_limit=limits.evaluation_limit,
        n_jobs=limits.n_jobs,
    )
    stopped = not found.finished or (by_model is not None and by_model.may_go_on)
    go_on = partial(_go_on, classifier, choice, by_rows, engine, by_model) if stopped else None
    if by_model is not None and found.rows_agreement.weight == 0:
        n_evaluations = by_model.n_evaluations + found.n_evaluations
        bound = by_model.upper_bound
        limits.report(by_model.agreement, lambda: bound, n_evaluations, last=True)
        return replace(by_model, rows_agreement=found.rows_agreement, n_evaluations=n_evaluations, _go_on=go_on)
    if found.cut is None or found.threshold is None:
        raise TypeError("a classifier of two classes is trimmed with a threshold")
    threshold, (low, high), confidence = _agreement_at(classifier, found.features, found.threshold, engine, limits)
    bound = loose_bound(classifier, choice, limits) if by_model is None else by_model.upper_bound
    upper_bound = max(bound, high)
    limits.report(0.5 * (low + high), lambda: upper_bound, found.n_evaluations, last=True)
    return Trimming(
        original=classifier,
        features=tuple(classifier.features[i] for i in found.features),
        threshold=threshold,
        threshold_interval=(found.cut.low, found.cut.high),
        agreement=0.5 * (low + high),
        agreement_interval=(low, high),
        upper_bound=upper_bound,
        optimal=upper_bound <= low + AGREEMENT_TOLERANCE,
        n_evaluations=found.n_evaluations + (0 if by_model is None else by_model.n_evaluations),
        confidence=confidence if by_model is None else min(confidence, by_model.confidence),
        rows_agreement=found.rows_agreement,
        _go_on=go_on,
    )


def _go_on(
    classifier: BayesianClassifier,
    choice: Choice,
    by_rows: ByRows,
    engine: EngineName | Engine,
    by_model: Trimming | None,
    limits: Limits,
) -> Trimming:
    return trim_by_rows(classifier, choice, by_rows, engine, limits, by_model)


def _agreement_at(
    classifier: BayesianClassifier,
    kept: Sequence[int],
    threshold: float,
    engine: EngineName | Engine,
    limits: Limits,
) -> tuple[float, tuple[float, float], float]:
    """Return a threshold, and the model's agreement there with its confidence.

    The agreement is exact where an engine can be had, else certified bounds or an interval from drawn rows.
    """
    if not isinstance(engine, str):
        value = engine.agreement(kept, threshold)
        return threshold, (value, value), 1.0
    if classifier.is_naive_bayes and engine != "dense" and math.prod(classifier.cardinalities) > MAX_ENTRIES:
        n_points = DEFAULT_POINTS if limits.time_limit is None else _POINTS_IN_TIME
        return *_certified_at(classifier, kept, threshold, n_points), 1.0
    if engine == "auto" and not classifier.is_naive_bayes:
        seconds = EXACT_SECONDS if limits.time_limit is None else 0.5 * limits.time_limit
        computed = exact_engine(classifier, seconds)
        if computed is None:
            return threshold, _sampled_at(classifier, kept, threshold), CONFIDENCE
    else:
        computed = make_engine(classifier, engine)
    value = computed.agreement(kept, threshold)
    return threshold, (value, value), 1.0


def _certified_at(
    classifier: BayesianClassifier, kept: Sequence[int], threshold: float, n_points: int
) -> tuple[float, tuple[float, float]]:
    if classifier.threshold == 0 or not classifier.prior.all():  # the original gives all instances the same class
        return threshold, (1.0, 1.0) if not kept and threshold == classifier.threshold else (0.0, 1.0)
    if threshold == 0:  # all instances are positive, as without features at the lowest threshold
        found = CertifiedEngine(classifier, n_points).agreement((), math.ulp(0.0))
        return threshold, (found.low, found.high)
    threshold = min(threshold, math.nextafter(1.0, 0.0))
    found = CertifiedEngine(classifier, n_points).agreement(kept, threshold)
    return threshold, (found.low, found.high)


def _sampled_at(classifier: BayesianClassifier, kept: Sequence[int], threshold: float) -> tuple[float, float]:
    """Return a confidence interval from rows that no selection has seen."""
    codes = classifier.draw(_N_DRAWN, np.random.default_rng([0, 1]))
    trimmed = classifier.with_features([classifier.features[i] for i in kept], threshold)
    agree = trimmed.decide(codes[:, list(kept)]) == classifier.decide(codes)
    return binomial_interval(int(agree.sum()), _N_DRAWN, CONFIDENCE)
