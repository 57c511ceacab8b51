"""Robust trimming: the best features and threshold within one budget or several, and how often a trimming agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, overload

import numpy as np

from trimbench._checks import check_one_of, is_number
from trimbench.trimming.by_model import agreement_at, bound_of_all, trim_by_model
from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.decisions import Cut, check_evidence_possible, checked_threshold, feature_indices, short
from trimbench.trimming.engines.bounds import DEFAULT_POINTS, CertifiedEngine
from trimbench.trimming.engines.choice import Engine, EngineName, check_engine, make_engine
from trimbench.trimming.engines.table import MAX_ENTRIES, n_entries
from trimbench.trimming.problem import (
    Choice,
    Limits,
    PieceExecutor,
    Progress,
    checked_budget,
    checked_choice,
    checked_costs,
)
from trimbench.trimming.result import AGREEMENT_TOLERANCE, Trimming, trimming_of
from trimbench.trimming.search.cross_fitting import Prefer, RowsWeight, trim_on_rows
from trimbench.trimming.search.row_scores import CodedRows, encoded_rows
from trimbench.trimming.search.row_search import WholeClassifier

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
    executor: PieceExecutor | None


def trim(
    classifier: BayesianClassifier,
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
    executor: PieceExecutor | None = None,
) -> Trimming:
    """Find the trimming within a budget that agrees with the classifier as often as possible.

    Parameters
    ----------
    classifier : BayesianClassifier or fitted estimator
        `trimbench.trim` also takes a fitted `BernoulliNB`, `CategoricalNB` or `LogisticRegression` of scikit-learn, or
        a fitted pipeline that ends in one. With two classes, the second is positive if its probability is at least 1/2.
        Scalers, binarisers, encoders and imputers before it are understood; numbers must be discretised on the way.
        The distribution is that of the naive Bayes estimator, or the conformant one of the regression (`conform`) that
        fits the `rows`, which it needs. Features are the raw columns, and `rows` are as the estimator takes them.
    budget : float
        Largest sum of costs, 0 or more. If no feature is affordable, none is kept.
    costs : mapping or Series from name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature. With `groups`: one for each group, and for each feature outside of them.
    groups : mapping from group name to feature names, optional
        Features that are bought together, at one cost: one blood sample gives several values.
    required : sequence of str, optional
        Features that are always kept. Their costs count.
    forbidden : sequence of str, optional
        Features that are never kept.
    rows : DataFrame with (at least) one column for each feature, optional
        Rows on which the trimming should agree with the original too; labels are not needed. Agreement is then a blend
        of the model's and the share of the rows, maximised over all subsets if there are few, else by greedy selection
        and exchanges.
    rows_weight : float in [0, 1] or "auto"
        Weight of the rows in the blend: 0 model only, 1 rows only. ``"auto"`` takes 0, 0.25, 0.5, 0.75 or 1: the lowest
        within one standard error of the one with the best cross-validated agreement on the rows.
    prefer : {"best", "cheapest"}
        The best subset, or the cheapest within one standard error of the best cross-validated agreement on the rows.
    engine : {"auto", "dense", "log_odds", "sdd"} or Engine
        How agreements are computed; ``"auto"`` depends on the size of the model. An engine that `make_engine` built for
        this classifier is used as it is. The log-odds engine (naive Bayes) is exact up to 2^44 instances; beyond that,
        forward selection starts the search and agreements have certified bounds. The SDD engine compiles the network to
        a circuit, which may be small where a table is impossible. With ``"auto"``, a network for which neither table
        nor circuit is likely to be ready within half a minute is trimmed on rows drawn from it (`Trimming.confidence`).
    time_limit : float, optional
        Seconds after which the search stops, certification included, though bounds for a thousand features may take a
        second; loading compiled kernels, and compiling them for the first time, does not count. The result is
        then the best trimming found, filled up to the budget, with an upper bound on all others; its property
        `may_go_on` says that the search was stopped, and its method `resume` continues it.
    evaluation_limit : int, optional
        Evaluations of the criterion after which the search stops, give or take a step; unlike with `time_limit`, the
        result is the same on every machine. With `rows`, it limits the search by the model and by the rows separately.
    n_jobs : int
        Threads that select by the rows at the same time, and workers that share the proof of a large naive Bayes
        classifier (compiled, more than 2^27 instances) once it has taken a second, unless evaluations are limited. The
        result is the same for any number, except for `n_evaluations`, and unless time is limited.
    progress : callable, optional
        Called with a `Progress` at the end and, in exact searches by the model alone, about ten times a second.
    executor : object with a method ``submit(function, *args)`` that returns a `concurrent.futures.Future`, optional
        Where the workers are: it gets `n_jobs` pieces of a proof at the same time, which take about half a second each;
        a piece that raises an error, or is late, costs time only. Default: processes of this machine.

    Returns
    -------
    Trimming

    Raises
    ------
    ValueError
        When an argument is out of range, a feature is unknown, there are too many features for the engine, the engine
        was made for another classifier, or an estimator is of another kind or not fitted.
    TypeError
        When `classifier` is something else, such as a model; the message says how to make a classifier of it.
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
    limits = Limits(time_limit, evaluation_limit, n_jobs=n_jobs, progress=progress, executor=executor)
    is_named = isinstance(rows_weight, str) and rows_weight == "auto"
    if not is_named and not (is_number(rows_weight) and 0.0 <= rows_weight <= 1.0):
        raise ValueError(
            "rows_weight must be 'auto' or a number from 0 (model only) to 1 (rows only), got "
            f"{str(rows_weight)[:80]!r}"
        )
    check_one_of("prefer", prefer, get_args(Prefer))
    original = checked_classifier(classifier, any_rule=True)
    check_evidence_possible(original.model, original.target, original.evidence)
    choice = checked_choice(original.features, budget, costs, groups=groups, required=required, forbidden=forbidden)
    if isinstance(engine, str) or not hasattr(engine, "best_cut"):
        check_engine(engine)
    if original.threshold is None and (not isinstance(engine, str) or engine != "auto"):
        raise ValueError(
            f"engine must be 'auto' for a classifier that gives the most probable class, got {short(engine)}; leave it "
            "out, or name a positive class"
        )
    if rows is not None:
        return _without_constants(original, choice, rows, rows_weight, prefer, engine, limits)
    if rows_weight not in ("auto", 0):
        raise ValueError(f"rows_weight must be 'auto' or 0 without rows, got {rows_weight!r}; give rows")
    if prefer == "cheapest":
        raise ValueError("prefer must be 'best' without rows, got 'cheapest'; give rows to judge subsets by")
    return trim_by_model(original, choice, engine, limits)


# Trimming by rows, or by a blend of rows and model.


def _without_constants(
    classifier: BayesianClassifier,
    choice: Choice,
    rows: pd.DataFrame | CodedRows,
    rows_weight: RowsWeight,
    prefer: Prefer,
    engine: EngineName | Engine,
    limits: Limits,
) -> Trimming:
    """Trim a classifier by rows, without the forbidden features of a single value: they say nothing.

    Of the thousands of columns of a wide table, most are of this kind once numbers are cut.
    """
    gone = {place for place in choice.forbidden if classifier.cardinalities[place] == 1}
    if not gone or len(gone) == classifier.n_features or not classifier.is_naive_bayes or not isinstance(engine, str):
        return trim_by_rows(classifier, choice, rows, rows_weight, prefer, engine, limits)
    places = [place for place in range(classifier.n_features) if place not in gone]
    codes = encoded_rows(rows, dict(zip(classifier.features, classifier.value_names, strict=True)))[:, places]
    own = {place: i for i, place in enumerate(places)}
    reduced = replace(
        choice,
        units=tuple(tuple(own[place] for place in unit) for unit in choice.units),
        required=frozenset(own[place] for place in choice.required),
        forbidden=tuple(own[place] for place in choice.forbidden if place not in gone),
    )
    inner = classifier.with_features([classifier.features[place] for place in places])
    whole = WholeClassifier(classifier, places)
    found = trim_by_rows(inner, reduced, CodedRows(codes), rows_weight, prefer, engine, limits, whole=whole)
    return _of_original(found, classifier)


def _of_original(found: Trimming, original: BayesianClassifier) -> Trimming:
    """Return the trimming of a classifier without constants as one of the original."""
    go_on = found._go_on
    more = None if go_on is None else lambda limits: _of_original(go_on(limits), original)
    return replace(found, original=original, _go_on=more)


# Shares of the time for the search by the model; and, where a bound from drawn rows follows, for the search by rows.
_BY_MODEL, _ON_ROWS = 0.5, 0.8


def trim_by_rows(
    classifier: BayesianClassifier,
    choice: Choice,
    rows: pd.DataFrame | CodedRows,
    rows_weight: RowsWeight,
    prefer: Prefer,
    engine: EngineName | Engine,
    limits: Limits,
    by_model: Trimming | None = None,
    *,
    whole: WholeClassifier | None = None,
) -> Trimming:
    """Return the trimming that agrees best on a blend of rows and model.

    The model's own trimming is one of the candidates; an earlier search for it that was stopped goes on. The selection
    by the rows begins anew.
    """
    is_searchable = classifier.threshold is not None or n_entries(classifier) <= MAX_ENTRIES
    if by_model is not None:
        by_model = by_model.resumed(limits.part(_BY_MODEL))
    elif is_searchable and rows_weight in ("auto", 0) and prefer == "best":
        by_model = trim_by_model(classifier, choice, engine, limits.part(_BY_MODEL))
    keeps_all = by_model is not None and len(by_model.kept) == classifier.n_features
    if keeps_all and rows_weight == "auto":
        rows_weight = 0  # no rows can tell anything else
    interval = None if by_model is None else by_model.threshold_interval
    cut = None if by_model is None or interval is None else Cut(by_model.agreement, *interval)
    found = trim_on_rows(
        classifier,
        choice,
        rows,
        limits.part(1.0 if is_searchable else _ON_ROWS),
        rows_weight=rows_weight,
        prefer=prefer,
        by_model=None if by_model is None else (by_model.kept, cut),
        whole=whole,
    )
    stopped = not keeps_all and (not found.finished or (by_model is not None and by_model.may_go_on))

    def begin_anew(more: Limits) -> Trimming:
        return trim_by_rows(classifier, choice, rows, rows_weight, prefer, engine, more, by_model, whole=whole)

    go_on = begin_anew if stopped else None
    n_evaluations = found.n_evaluations + (0 if by_model is None else by_model.n_evaluations)
    if by_model is not None and (
        found.rows_agreement.weight == 0 or (found.cut is None and found.features == by_model.kept)
    ):
        trimming = replace(by_model, n_evaluations=n_evaluations, _go_on=go_on)
    else:
        threshold, interval, confidence = agreement_at(classifier, found.features, found.threshold, engine, limits)
        bound = bound_of_all(classifier, choice, limits) if by_model is None else by_model.upper_bound
        trimming = trimming_of(
            classifier,
            found.features,
            interval,
            bound,
            n_evaluations,
            threshold=threshold,
            cut=found.cut,
            confidence=confidence if by_model is None else min(confidence, by_model.confidence),
            go_on=go_on,
        )
    limits.report(trimming.agreement, lambda: trimming.upper_bound, n_evaluations, last=True)
    return replace(trimming, rows_agreement=found.rows_agreement)


def trimming_curve(
    classifier: BayesianClassifier,
    budgets: Sequence[float],
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    thresholds: Sequence[float] | None = None,
    engine: EngineName | Engine = "auto",
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> list[Trimming]:
    """Return the best trimming for each of several budgets, and each of several original thresholds.

    Each has a search of its own, but a network is contracted or compiled only once. Where a larger budget gains
    nothing, its trimming is that of the smaller one.

    Parameters
    ----------
    classifier : BayesianClassifier
        With a positive class.
    budgets : sequence of float
        0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.
    thresholds : sequence of float in [0, 1], optional
        They replace the threshold of the classifier. Default: that threshold alone.
    engine, evaluation_limit
        As in `trim`.
    time_limit : float, optional
        Seconds for each of the searches.

    Returns
    -------
    list of Trimming
        One for each budget, in the order given; with several thresholds, those of the first threshold come first.

    Raises
    ------
    ValueError
        When an argument is out of range, no class is positive, or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> [(trimming.features, trimming.agreement) for trimming in tb.trimming_curve(classifier, [0, 1])]
    [((), 0.52), (('x0',), 1.0)]
    """
    price = checked_costs(checked_classifier(classifier).features, costs)
    check_evidence_possible(classifier.model, classifier.target, classifier.evidence)
    within = [checked_budget(budget) for budget in _numbers(budgets, "budgets")]
    levels = [classifier.threshold]
    if thresholds is not None:
        levels = [checked_threshold(threshold) for threshold in _numbers(thresholds, "thresholds")]
    # The engine of a naive Bayes classifier depends on the threshold, and is quick to build.
    if isinstance(engine, str) and not classifier.is_naive_bayes:
        engine = make_engine(classifier, engine)
    trimmings: list[Trimming] = []
    for level in levels:
        original = classifier.with_threshold(level)
        own = engine if isinstance(engine, str) else engine.with_threshold(level)
        best: dict[float, Trimming] = {}
        for budget in sorted(set(within)):
            found = trim(original, budget, price, engine=own, time_limit=time_limit, evaluation_limit=evaluation_limit)
            before = next(reversed(best.values()), None)
            least = before.agreement_interval[0] + AGREEMENT_TOLERANCE if before else 0.0
            if before and found.optimal and found.agreement_interval[1] <= least:
                found = replace(before, n_evaluations=found.n_evaluations, upper_bound=found.upper_bound)
            best[budget] = found
        trimmings += [best[budget] for budget in within]
    return trimmings


def _numbers(values: Sequence[float], what: str) -> list[float]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        advice = "" if values is None else f"; write [{values}] for one alone"
        raise ValueError(f"{what} must be a sequence of numbers, got {short(values)}{advice}")
    found = list(values)
    if not found:
        raise ValueError(f"{what} must be a sequence of at least one number, got none")
    return found


# How often a trimmed classifier agrees with the original (ECA, MAA, MPA).


@overload
def expected_agreement(
    classifier: BayesianClassifier,
    features: Sequence[str],
    threshold: float,
    *,
    engine: EngineName = ...,
    interval: Literal[False] = ...,
) -> float: ...


@overload
def expected_agreement(
    classifier: BayesianClassifier,
    features: Sequence[str],
    threshold: float,
    *,
    interval: Literal[True],
    n_points: int | None = ...,
) -> tuple[float, float]: ...


def expected_agreement(
    classifier: BayesianClassifier,
    features: Sequence[str],
    threshold: float,
    *,
    engine: EngineName = "auto",
    interval: bool = False,
    n_points: int | None = None,
) -> float | tuple[float, float]:
    """Return the expected classification agreement (ECA) of a trimming with the original.

    Parameters
    ----------
    classifier : BayesianClassifier
        The original, (C, F, T). For bounds it is naive Bayes, with T strictly between 0 and 1 and a prior without
        zeros.
    features : sequence of str
        F', among the features of the classifier; may be empty.
    threshold : float in [0, 1]
        T'; for bounds strictly between 0 and 1.
    engine : {"auto", "dense", "log_odds", "sdd"}
        How the exact value is computed; must be left out for bounds.
    interval : bool
        Whether to return certified bounds, for any number of features, in place of the exact value.
    n_points : int, optional
        Size of the grid to which bounds round sums of weights: more points, narrower bounds, more time. Default: 2^20.

    Returns
    -------
    float, or low and high
        Probability that both give an instance the same class (Definition 2), or a lower and an upper bound on it.

    Raises
    ------
    ValueError
        When a feature is unknown, a threshold is out of range, or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> tb.expected_agreement(classifier, ["x1"], 0.5)
    0.52
    """
    indices = feature_indices(checked_classifier(classifier).features, features)
    level = checked_threshold(threshold)
    if not interval:
        if n_points is not None:
            raise ValueError(f"n_points must be left out unless interval=True, got {n_points!r}")
        return make_engine(classifier, engine).agreement(indices, level)
    if engine != "auto":
        raise ValueError(f"engine must be left out for interval=True, which needs none, got {engine!r}")
    size = DEFAULT_POINTS if n_points is None else n_points
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
        raise ValueError(f"n_points must be a whole number, 2 or more, got {n_points!r}; the default is 2^20")
    if level in (0.0, 1.0):
        raise ValueError(f"threshold must be strictly between 0 and 1 for certified bounds, got {threshold!r}")
    found = CertifiedEngine(classifier, size).agreement(indices, level)
    return found.low, found.high


def maximum_achievable_agreement(
    classifier: BayesianClassifier, features: Sequence[str], *, engine: EngineName = "auto"
) -> tuple[float, tuple[float, float]]:
    """Return the highest ECA over all thresholds of a feature subset, and where it is reached (MAA).

    Parameters
    ----------
    classifier : BayesianClassifier
    features : sequence of str
        F', among the features of the classifier; may be empty.
    engine : {"auto", "dense", "log_odds", "sdd"}

    Returns
    -------
    agreement : float
        Definition 3.
    (low, high) : tuple of float
        Every T' with ``low < T' <= high`` reaches it; ``(0, 0)`` stands for T' = 0 alone. Of several such intervals,
        the one that contains the original threshold is returned, else the lowest.

    Raises
    ------
    ValueError
        When a feature is unknown or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> agreement, (low, high) = tb.maximum_achievable_agreement(classifier, ["x0"])
    >>> agreement, round(low, 4), round(high, 4)
    (1.0, 0.0769, 0.75)
    """
    indices = feature_indices(checked_classifier(classifier).features, features)
    cut = make_engine(classifier, engine).best_cut(indices)
    return cut.agreement, (cut.low, cut.high)


def maximum_potential_agreement(
    classifier: BayesianClassifier, features: Sequence[str], *, engine: EngineName = "auto"
) -> float:
    """Return the agreement if each instance of a feature subset could be given its likelier class (MPA).

    An upper bound on the maximum achievable agreement of the subset and of all its subsets (Corollary 1), and equal to
    it for naive Bayes (Proposition 3).

    Parameters
    ----------
    classifier : BayesianClassifier
    features : sequence of str
        F', among the features of the classifier; may be empty.
    engine : {"auto", "dense", "log_odds", "sdd"}

    Returns
    -------
    float
        Definition 4.

    Raises
    ------
    ValueError
        When a feature is unknown or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> tb.maximum_potential_agreement(classifier, ["x1"])
    0.532
    """
    indices = set(feature_indices(checked_classifier(classifier).features, features))
    measure = make_engine(classifier, engine).root
    for index in measure.features:
        if index not in indices:
            measure = measure.without(index)
    return measure.potential_agreement()
