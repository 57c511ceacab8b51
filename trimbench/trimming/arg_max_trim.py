"""Trimming of classifiers of several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trimbench.trimming.arg_max import ArgMaxClassifier
from trimbench.trimming.baselines.information_gain import most_informative_units
from trimbench.trimming.bayes_error import agreement_bound
from trimbench.trimming.confidence import binomial_interval
from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.arg_max import ClassMeasures, n_entries
from trimbench.trimming.engines.dense import MAX_ENTRIES
from trimbench.trimming.left_out import upper_bound
from trimbench.trimming.limits import Limits
from trimbench.trimming.result import AnyTrimming
from trimbench.trimming.rows.arg_max import ArgMaxProblem
from trimbench.trimming.rows.trim_rows import Prefer, RowsWeight, check_rows_settings, trim_on_rows
from trimbench.trimming.search.arg_max import ArgMaxSearch
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.99
_N_DRAWN, _RANKING_ROWS, _BOUND_ROWS = 20_000, 500, 8_000
# Shares of the time for the search by the model, and for what comes before the agreement and the bound.
_BY_MODEL, _ON_ROWS = 0.5, 0.8
# For the upper bound: entries of tables looked up in a second, and seconds at most and at least.
_LOOKUPS_PER_SECOND = 2 * 10**7
_LONGEST, _MOMENT = 10.0, 0.1


@dataclass(frozen=True, kw_only=True)
class ArgMaxTrimming(AnyTrimming[ArgMaxClassifier]):
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
    confidence : float
        Probability with which `agreement_interval` holds the agreement, and `upper_bound` is one: 1 where both are
        proven, less where they come from drawn rows.
    rows_agreement : RowsAgreement or None
        Agreement on the rows that `trim` was given.
    """

    @property
    def classifier(self) -> ArgMaxClassifier:
        """The trimmed classifier, ready to predict from `features` alone."""
        return self.original.with_features(self.features)


def trim_arg_max(
    classifier: ArgMaxClassifier,
    choice: Choice,
    limits: Limits | None = None,
    *,
    rows: pd.DataFrame | None = None,
    rows_weight: RowsWeight = "auto",
    prefer: Prefer = "best",
) -> ArgMaxTrimming:
    """Find the allowed subset whose most probable class is most often that of the classifier.

    Parameters
    ----------
    choice : Choice
        Which subsets are allowed.
    limits : Limits, optional
        When the search stops. Default: when it is finished.
    rows, rows_weight, prefer
        As in `trim`.

    Raises
    ------
    ValueError
        When there are no rows, and the class and the features have too many combinations of values for a table.
    """
    check_rows_settings(rows_weight, prefer)
    limits = limits or Limits()
    if rows is None:
        if prefer == "cheapest":
            raise ValueError("prefer must be 'best' without rows, got 'cheapest'; give rows to judge subsets by")
        return _trim_by_model(classifier, choice, limits)
    is_small = n_entries(classifier) <= MAX_ENTRIES
    by_model = None
    if is_small and rows_weight in ("auto", 0) and prefer == "best":
        by_model = _trim_by_model(classifier, choice, limits.part(_BY_MODEL))

    def go_on(more: Limits) -> ArgMaxTrimming:
        return trim_arg_max(classifier, choice, more, rows=rows, rows_weight=rows_weight, prefer=prefer)

    found = trim_on_rows(
        ArgMaxProblem(classifier),
        choice,
        rows,
        rows_weight=rows_weight,
        prefer=prefer,
        # The cut stands for none: there is no threshold.
        by_model=None if by_model is None else (by_model.kept, Cut(by_model.agreement, 0.0, 1.0)),
        time_limit=limits.part(1.0 if is_small else _ON_ROWS).seconds_left(),
        evaluation_limit=limits.evaluation_limit,
        n_jobs=limits.n_jobs,
    )
    stopped = not found.finished or (by_model is not None and by_model.may_go_on)
    n_evaluations = found.n_evaluations + (0 if by_model is None else by_model.n_evaluations)
    if by_model is not None and found.features == by_model.kept:
        trimming = replace(by_model, n_evaluations=n_evaluations)
    else:
        interval = _agreement(classifier, found.features)
        bound = _upper_bound(classifier, choice, limits) if by_model is None else by_model.upper_bound
        confidence = 1.0 if is_small else CONFIDENCE
        trimming = _trimming(classifier, found.features, interval, bound, n_evaluations, confidence)
    limits.report(trimming.agreement, lambda: trimming.upper_bound, n_evaluations, last=True)
    return replace(trimming, rows_agreement=found.rows_agreement, _go_on=go_on if stopped else None)


def _trim_by_model(classifier: ArgMaxClassifier, choice: Choice, limits: Limits) -> ArgMaxTrimming:
    allowed = choice.features(range(len(choice.units)))
    if len(allowed) == classifier.n_features and choice.is_affordable(allowed):
        limits.report(1.0, lambda: 1.0, 0, last=True)
        return _trimming(classifier, allowed, (1.0, 1.0), 1.0, 0)
    search = ArgMaxSearch(ClassMeasures.of(classifier, allowed), choice, most_informative_units(classifier, choice))

    def run(more: Limits) -> ArgMaxTrimming:
        found = search.run(more)
        exact = (found.agreement, found.agreement)
        trimming = _trimming(classifier, found.features, exact, found.upper_bound, found.n_evaluations)
        return replace(trimming, _go_on=run)

    return run(limits)


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


def _upper_bound(classifier: ArgMaxClassifier, choice: Choice, limits: Limits) -> float:
    """Return a bound on the agreement of all allowed subsets under the model: proven, or from drawn rows."""
    allowed = choice.features(range(len(choice.units)))
    if choice.is_affordable(allowed) and len(allowed) == classifier.n_features:
        return 1.0
    if n_entries(classifier) <= MAX_ENTRIES:
        # As many evaluations as it takes to bound anything.
        return ArgMaxSearch(ClassMeasures.of(classifier, allowed), choice).run(Limits(evaluation_limit=1)).upper_bound
    seconds = limits.seconds_left()
    work = int(_LOOKUPS_PER_SECOND * (_LONGEST if seconds is None else min(max(seconds, _MOMENT), _LONGEST)))
    ranking, bounding = (classifier.draw(n, np.random.default_rng([1, n])) for n in (_RANKING_ROWS, _BOUND_ROWS))
    if not classifier.is_naive_bayes:
        return upper_bound(classifier, choice, ranking, bounding, CONFIDENCE, work)
    # Two bounds from the same rows: each may be wrong half as often.
    each = 0.5 + 0.5 * CONFIDENCE
    by_accuracy = agreement_bound(classifier, choice, bounding, each)
    return min(by_accuracy, upper_bound(classifier, choice, ranking, bounding, each, work))


def _trimming(
    classifier: ArgMaxClassifier,
    kept: tuple[int, ...],
    interval: tuple[float, float],
    bound: float,
    n_evaluations: int,
    confidence: float = 1.0,
) -> ArgMaxTrimming:
    low, high = interval
    # Where all features are kept, the agreement of a large classifier is known too.
    confidence = 1.0 if low == high else confidence
    return ArgMaxTrimming(
        original=classifier,
        features=tuple(classifier.features[place] for place in kept),
        agreement=0.5 * (low + high),
        agreement_interval=interval,
        upper_bound=max(bound, high),
        optimal=confidence == 1.0 and bound <= low + AGREEMENT_TOLERANCE,
        n_evaluations=n_evaluations,
        confidence=confidence,
    )
