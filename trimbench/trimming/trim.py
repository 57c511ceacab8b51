"""Robust trimming: the best feature subset within a budget, by the model or by rows, with its best threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from trimbench._checks import check_one_of, is_number
from trimbench.trimming.by_model import agreement_at, bound_of_all, trim_by_model
from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.costs import Choice, checked_choice
from trimbench.trimming.engines.choice import Engine, EngineName, check_engine
from trimbench.trimming.engines.table import MAX_ENTRIES, n_entries
from trimbench.trimming.limits import Limits, Progress
from trimbench.trimming.model import check_possible, short
from trimbench.trimming.result import Trimming, trimming_of
from trimbench.trimming.search.cross_fitting import Prefer, RowsWeight, trim_on_rows
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
) -> Trimming:
    """Find the trimming within a budget that agrees with the classifier as often as possible.

    Parameters
    ----------
    classifier : BayesianClassifier or fitted estimator
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
        Features that are always kept. Their costs count.
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
        Threads that select by the rows at the same time. The result is the same for any number, unless time is limited.
    progress : callable, optional
        Called with a `Progress` about ten times a second, and at the end.

    Returns
    -------
    Trimming

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
    is_named = isinstance(rows_weight, str) and rows_weight == "auto"
    if not is_named and not (is_number(rows_weight) and 0.0 <= rows_weight <= 1.0):
        raise ValueError(
            "rows_weight must be 'auto' or a number from 0 (model only) to 1 (rows only), got "
            f"{str(rows_weight)[:80]!r}"
        )
    check_one_of("prefer", prefer, get_args(Prefer))
    original = checked_classifier(classifier, any_rule=True)
    check_possible(original.model, original.target, original.evidence)
    choice = checked_choice(original.features, budget, costs, groups=groups, required=required, forbidden=forbidden)
    if isinstance(engine, str) or not hasattr(engine, "best_cut"):
        check_engine(engine)
    if original.threshold is None and (not isinstance(engine, str) or engine != "auto"):
        raise ValueError(
            f"engine must be 'auto' for a classifier that gives the most probable class, got {short(engine)}; leave it "
            "out, or name a positive class"
        )
    if rows is not None:
        return trim_by_rows(original, choice, rows, rows_weight, prefer, engine, limits)
    if rows_weight not in ("auto", 0):
        raise ValueError(f"rows_weight must be 'auto' or 0 without rows, got {rows_weight!r}; give rows")
    if prefer == "cheapest":
        raise ValueError("prefer must be 'best' without rows, got 'cheapest'; give rows to judge subsets by")
    return trim_by_model(original, choice, engine, limits)


# Trimming by rows, or by a blend of rows and model.


# Shares of the time for the search by the model; and, where a bound from drawn rows follows, for the search by rows.
_BY_MODEL, _ON_ROWS = 0.5, 0.8


def trim_by_rows(
    classifier: BayesianClassifier,
    choice: Choice,
    rows: pd.DataFrame,
    rows_weight: RowsWeight,
    prefer: Prefer,
    engine: EngineName | Engine,
    limits: Limits,
    by_model: Trimming | None = None,
) -> Trimming:
    """Return the trimming that agrees best on a blend of rows and model.

    The model's own trimming is one of those that may be taken; that of an earlier, stopped search goes on. A selection
    by the rows begins anew.
    """
    is_searchable = classifier.threshold is not None or n_entries(classifier) <= MAX_ENTRIES
    if by_model is not None:
        by_model = by_model.resumed(limits.part(_BY_MODEL))
    elif is_searchable and rows_weight in ("auto", 0) and prefer == "best":
        by_model = trim_by_model(classifier, choice, engine, limits.part(_BY_MODEL))
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
    )
    stopped = not found.finished or (by_model is not None and by_model.may_go_on)

    def begin_anew(more: Limits) -> Trimming:
        return trim_by_rows(classifier, choice, rows, rows_weight, prefer, engine, more, by_model)

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
