"""Trimming of classifiers of several classes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.confidence import binomial_interval
from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.arg_max import ClassMeasures, n_entries
from trimbench.trimming.engines.dense import MAX_ENTRIES
from trimbench.trimming.limits import Limits
from trimbench.trimming.model_input import feature_indices
from trimbench.trimming.rows.agreement import RowsAgreement
from trimbench.trimming.rows.arg_max import ArgMaxProblem
from trimbench.trimming.rows.trim_rows import Prefer, RowsWeight, check_rows_settings, trim_on_rows
from trimbench.trimming.search.arg_max import search_arg_max
from trimbench.trimming.search.naive_bayes import AGREEMENT_TOLERANCE
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.99
_N_DRAWN = 20_000


@dataclass(frozen=True)
class ArgMaxTrimming:
    """A trimmed classifier of several classes, and what is known about its agreement with the original.

    Attributes
    ----------
    original : ArgMaxClassifier
    features : tuple of str
        The features that are kept, in the order of the original.
    agreement : float
        Probability that the most probable class given `features` is the one that the original gives.
    agreement_interval : tuple of float
        A lower and an upper value of the agreement: equal where it is exact, up to 2^26 combinations of class and
        feature values. Beyond, a 99 % confidence interval from 20,000 rows drawn from the model.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    optimal : bool
        Whether the agreement is proven to reach `upper_bound` (within 1e-12).
    n_evaluations : int
        Number of evaluations of the criterion that the search took.
    rows_agreement : RowsAgreement or None
        Agreement on the rows that `trim` was given.
    """

    original: ArgMaxClassifier
    features: tuple[str, ...]
    agreement: float
    agreement_interval: tuple[float, float]
    upper_bound: float
    optimal: bool
    n_evaluations: int
    rows_agreement: RowsAgreement | None = None

    @property
    def classifier(self) -> ArgMaxClassifier:
        """The trimmed classifier, ready to predict from `features` alone."""
        return self.original.with_features(self.features)

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions of `features` in the original."""
        return feature_indices(self.original.features, self.features)

    def save(self, path: str | Path) -> None:
        """Write the trimmed classifier as JSON; `ArgMaxClassifier.load` reads it."""
        self.classifier.save(path)


def trim_arg_max(
    classifier: ArgMaxClassifier,
    choice: Choice,
    *,
    rows: pd.DataFrame | None = None,
    rows_weight: RowsWeight = "auto",
    prefer: Prefer = "best",
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
    n_jobs: int = 1,
) -> ArgMaxTrimming:
    """Find the allowed subset whose most probable class is most often that of the classifier.

    Parameters
    ----------
    choice : Choice
        Which subsets are allowed.
    rows, rows_weight, prefer, time_limit, evaluation_limit, n_jobs
        As in `trim`.

    Raises
    ------
    ValueError
        When there are no rows, and the class and the features have too many combinations of values for a table.
    """
    check_rows_settings(rows_weight, prefer)
    if rows is None:
        if prefer == "cheapest":
            raise ValueError("prefer must be 'best' without rows, got 'cheapest'; give rows to judge subsets by")
        return _trim_by_model(classifier, choice, time_limit, evaluation_limit)
    start = time.monotonic()
    by_model = None
    if n_entries(classifier) <= MAX_ENTRIES and rows_weight in ("auto", 0) and prefer == "best":
        by_model = _trim_by_model(
            classifier, choice, None if time_limit is None else 0.5 * time_limit, evaluation_limit
        )
    found = trim_on_rows(
        ArgMaxProblem(classifier),
        choice,
        rows,
        rows_weight=rows_weight,
        prefer=prefer,
        # The cut stands for none: there is no threshold.
        by_model=None if by_model is None else (by_model.kept, Cut(by_model.agreement, 0.0, 1.0)),
        time_limit=None if time_limit is None else max(0.0, time_limit - (time.monotonic() - start)),
        n_jobs=n_jobs,
    )
    n_evaluations = found.n_evaluations + (0 if by_model is None else by_model.n_evaluations)
    if by_model is not None and found.features == by_model.kept:
        return replace(by_model, rows_agreement=found.rows_agreement, n_evaluations=n_evaluations)
    interval = _agreement(classifier, found.features)
    upper_bound = 1.0 if by_model is None else max(by_model.upper_bound, interval[1])
    trimming = _trimming(classifier, found.features, interval, upper_bound, n_evaluations)
    return replace(trimming, rows_agreement=found.rows_agreement)


def _trim_by_model(
    classifier: ArgMaxClassifier, choice: Choice, time_limit: float | None, evaluation_limit: int | None
) -> ArgMaxTrimming:
    may_go_on = Limits(time_limit, evaluation_limit).may_go_on
    allowed = [place for unit in choice.units for place in unit]
    if len(allowed) == classifier.n_features and choice.is_affordable(allowed):
        return _trimming(classifier, tuple(range(classifier.n_features)), (1.0, 1.0), 1.0, 0)
    root = ClassMeasures.of(classifier, allowed)
    found = search_arg_max(root, choice, may_go_on)
    exact = (found.agreement, found.agreement)
    return _trimming(classifier, found.features, exact, found.upper_bound, found.n_evaluations)


def _agreement(classifier: ArgMaxClassifier, kept: tuple[int, ...]) -> tuple[float, float]:
    """Return the agreement of a subset under the model: exactly, or a confidence interval from drawn rows."""
    if len(kept) == classifier.n_features:
        return 1.0, 1.0
    if n_entries(classifier) <= MAX_ENTRIES:
        exact = ClassMeasures.of(classifier, kept).agreement()
        return exact, exact
    trimmed = classifier.with_features([classifier.features[place] for place in kept])
    codes = classifier.draw(_N_DRAWN, np.random.default_rng(0))
    agreed = classifier.decide(codes) == trimmed.decide(codes[:, list(kept)])
    return binomial_interval(int(agreed.sum()), _N_DRAWN, CONFIDENCE)


def _trimming(
    classifier: ArgMaxClassifier,
    kept: tuple[int, ...],
    interval: tuple[float, float],
    upper_bound: float,
    n_evaluations: int,
) -> ArgMaxTrimming:
    low, high = interval
    return ArgMaxTrimming(
        original=classifier,
        features=tuple(classifier.features[place] for place in kept),
        agreement=0.5 * (low + high),
        agreement_interval=interval,
        upper_bound=upper_bound,
        optimal=upper_bound <= low + AGREEMENT_TOLERANCE,
        n_evaluations=n_evaluations,
    )
