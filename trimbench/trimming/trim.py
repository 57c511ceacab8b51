"""Robust trimming: the best feature subset within a budget, by the model or by rows, with its best threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.trimming.baselines import most_informative_units
from trimbench.trimming.by_model import loose_bound, trim_by_model
from trimbench.trimming.classifier import ArgMaxClassifier, BayesianClassifier, checked_classifier
from trimbench.trimming.costs import Choice, checked_choice
from trimbench.trimming.engines.bounds import DEFAULT_POINTS, CertifiedEngine
from trimbench.trimming.engines.choice import Engine, EngineName, check_engine, exact_engine, make_engine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES
from trimbench.trimming.engines.table import MAX_ENTRIES as TABLE_MAX_ENTRIES
from trimbench.trimming.engines.table import ClassMeasures, n_entries
from trimbench.trimming.limits import Limits, Progress
from trimbench.trimming.model import check_possible, short
from trimbench.trimming.result import AGREEMENT_TOLERANCE, AnyTrimming, Trimming
from trimbench.trimming.sampled import EXACT_SECONDS, agreement_bound, binomial_interval, upper_bound
from trimbench.trimming.search.cross_fitting import Prefer, RowsWeight, check_rows_settings, trim_on_rows
from trimbench.trimming.search.proof import ArgMaxSearch
from trimbench.trimming.search.rows import ArgMaxProblem
from trimbench.trimming.thresholds import Cut

if TYPE_CHECKING:
    import pandas as pd


class TrimSettings(TypedDict, total=False):
    """Keyword arguments of `trim`."""

    groups: Mapping[str, Sequence[str]] | None
    required: Sequence[str] | None
    forbidden: Sequence[str] | None
    rows: pd.DataFrame | None
    rows_weight: RowsWeight
    prefer: Prefer
    engine: EngineName | Engine
    time_limit: float | None
    evaluation_limit: int | None
    n_jobs: int
    progress: Callable[[Progress], object] | None


@overload
def trim(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    **settings: Unpack[TrimSettings],
) -> Trimming: ...


@overload
def trim(
    classifier: ArgMaxClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    **settings: Unpack[TrimSettings],
) -> ArgMaxTrimming: ...


def trim(
    classifier: BayesianClassifier | ArgMaxClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    required: Sequence[str] | None = None,
    forbidden: Sequence[str] | None = None,
    rows: pd.DataFrame | None = None,
    rows_weight: RowsWeight = "auto",
    prefer: Prefer = "best",
    engine: EngineName | Engine = "auto",
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[Progress], object] | None = None,
) -> Trimming | ArgMaxTrimming:
    """Find the trimming within a budget that agrees with the classifier as often as possible.

    Parameters
    ----------
    classifier : BayesianClassifier, ArgMaxClassifier or fitted estimator
        `trimbench.trim` takes a fitted `BernoulliNB`, `CategoricalNB` or `LogisticRegression` of scikit-learn, or a
        fitted pipeline that ends in one, as well. With two classes, the second is positive if its probability is at
        least 1/2. Scalers, binarisers, encoders and imputers before it are understood; numbers must be cut somewhere.
        The distribution is that of the naive Bayes estimator, or the conformant one of the regression (`conform`) that
        fits the `rows`, which it needs. Features are the raw columns, and `rows` are as the estimator takes them.
    budget : float
        Largest sum of costs, 0 or more. If no feature is affordable, none is kept.
    costs : mapping or Series from name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature. With `groups`: one for each group, and for each feature outside of them.
    groups : mapping from group name to feature names, optional
        Features that are bought together, at one cost: one blood sample gives several values.
    required : sequence of str, optional
        Features that are kept in any case. Their costs count.
    forbidden : sequence of str, optional
        Features that are never kept.
    rows : DataFrame with (at least) one column for each feature, optional
        Rows on which the trimming should agree with the original too; labels are not needed. Agreement is then a blend
        of the model's and the share of the rows, maximised over all subsets where they are few, else by greedy
        selection and exchanges.
    rows_weight : float in [0, 1] or "auto"
        Weight of the rows in the blend: 0 model only, 1 rows only. ``"auto"`` takes 0, 0.25, 0.5, 0.75 or 1: the lowest
        within one standard error of the one with the best cross-validated agreement on the rows.
    prefer : {"best", "cheapest"}
        The best subset, or the cheapest within one standard error of the best cross-validated agreement on the rows.
    engine : {"auto", "dense", "log_odds", "sdd"} or Engine
        How agreements are computed; ``"auto"`` depends on the size of the model. An engine that `make_engine` built for
        this classifier is used as it is. The log-odds engine (naive Bayes) is exact up to 2^44 instances; beyond, it
        selects forward and certifies what it selected. The SDD engine compiles the network to a circuit, which may be
        small where a table is impossible. A network for which neither is likely to be ready within half a minute is
        trimmed by drawing rows from it (see `Trimming.confidence`).
    time_limit : float, optional
        Seconds after which the search stops, certification included; loading compiled kernels, and compiling them for
        the first time, does not count. The result is then the best trimming found, whose budget is filled up, with an
        upper bound on all others: its property `may_go_on` says that it was stopped, and its method `resume` goes on
        from there.
    evaluation_limit : int, optional
        Evaluations of the criterion after which the search stops. The result is the same on every machine. With `rows`,
        it is for the search by the model and for that by the rows, each.
    n_jobs : int
        Threads that evaluate subsets at the same time. The result is the same for any number, unless time is limited.
    progress : callable, optional
        Called with a `Progress` about ten times a second, and at the end.

    Returns
    -------
    Trimming or ArgMaxTrimming

    Raises
    ------
    ValueError
        When an argument is out of range, a feature is unknown, there are too many features for the engine, or the
        engine was made for another classifier.
    TypeError
        When `classifier` is a model without a class to trim for, or something else.
    MissingExtraError
        When the engine needs PySDD, which is not installed.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> trimming = tb.trim(tb.BayesianClassifier(model, positive="0"), budget=1)
    >>> trimming.features, trimming.agreement, trimming.optimal
    (('x0',), 1.0, True)

    References
    ----------
    Choi and Van den Broeck (2018), Algorithm 1 and Proposition 3.
    """
    limits = Limits(time_limit, evaluation_limit, n_jobs=n_jobs, progress=progress)
    check_rows_settings(rows_weight, prefer)
    original = classifier if isinstance(classifier, ArgMaxClassifier) else checked_classifier(classifier)
    check_possible(original.model, original.target, original.evidence)
    choice = checked_choice(original.features, budget, costs, groups=groups, required=required, forbidden=forbidden)
    if isinstance(engine, str) or not hasattr(engine, "best_cut"):
        check_engine(engine)
    if rows is None and rows_weight not in ("auto", 0):
        raise ValueError(f"rows_weight must be 'auto' or 0 without rows, got {rows_weight!r}; give rows")
    if isinstance(original, ArgMaxClassifier):
        if not isinstance(engine, str) or engine != "auto":
            raise ValueError(f"engine must be 'auto' for an ArgMaxClassifier, got {short(engine)}; leave it out")
        return trim_arg_max(original, choice, limits, rows=rows, rows_weight=rows_weight, prefer=prefer)
    if rows is not None:
        return trim_by_rows(original, choice, ByRows(rows, rows_weight, prefer), engine, limits)
    if prefer == "cheapest":
        raise ValueError("prefer must be 'best' without rows, got 'cheapest'; give rows to judge subsets by")
    return trim_by_model(original, choice, engine, limits)


# Trimming by rows, or by a blend of rows and model.

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


# Trimming of classifiers of several classes.

CONFIDENCE = 0.99
_N_DRAWN_ARG_MAX, _RANKING_ROWS, _BOUND_ROWS = 20_000, 500, 8_000
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
        feature values. Beyond, a 99 % confidence interval from 20,000 rows drawn from the model, of each class as many
        as its probability says, independently of the rows that the search may have drawn.
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
    is_small = n_entries(classifier) <= TABLE_MAX_ENTRIES
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
    if n_entries(classifier) <= TABLE_MAX_ENTRIES:
        exact = ClassMeasures.of(classifier, kept).agreement()
        return exact, exact
    trimmed = classifier.with_features([classifier.features[place] for place in kept])
    # Rows that no selection has seen; each class has its share, which narrows what the interval is made for.
    rng = np.random.default_rng([2, *kept])
    try:
        codes = classifier.draw_by_class(_N_DRAWN_ARG_MAX, rng)
    except ContractionTooLarge:
        codes = classifier.draw(_N_DRAWN_ARG_MAX, rng)
    agreed = classifier.decide(codes) == trimmed.decide(codes[:, list(kept)])
    return binomial_interval(int(agreed.sum()), _N_DRAWN_ARG_MAX, CONFIDENCE)


def _upper_bound(classifier: ArgMaxClassifier, choice: Choice, limits: Limits) -> float:
    """Return a bound on the agreement of all allowed subsets under the model: proven, or from drawn rows."""
    allowed = choice.features(range(len(choice.units)))
    if choice.is_affordable(allowed) and len(allowed) == classifier.n_features:
        return 1.0
    if n_entries(classifier) <= TABLE_MAX_ENTRIES:
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
