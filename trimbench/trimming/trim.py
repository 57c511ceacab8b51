"""Robust trimming: the best feature subset within a budget, with its best threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import checked_budget, checked_choice, checked_costs, is_affordable
from trimbench.trimming.engines.certified import CertifiedEngine
from trimbench.trimming.engines.choice import Engine, EngineName, check_engine, exact_engine, make_engine
from trimbench.trimming.engines.dense import separation
from trimbench.trimming.engines.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.sampled import EXACT_SECONDS, SampledTrimming, trim_by_sampling
from trimbench.trimming.search.forward_selection import select_forward
from trimbench.trimming.search.naive_bayes import AGREEMENT_TOLERANCE, search, within_limits
from trimbench.trimming.search.network import search_included
from trimbench.trimming.thresholds import Cut


@dataclass(frozen=True)
class Trimming:
    """A trimmed classifier, and what is known about its agreement with the original.

    Attributes
    ----------
    original : BayesianClassifier
    features : tuple of str
        The features that are kept, in the order of the original.
    threshold : float
        That of the original if it is among the best, else the middle of `threshold_interval`.
    threshold_interval : tuple of float
        Every T' with ``low < T' <= high`` has the same agreement; ``(0, 0)`` stands for T' = 0 alone. If nothing is
        removed, or only bounds on the agreement are known, it holds the threshold alone.
    agreement : float
        Expected classification agreement with the original; the middle of `agreement_interval`.
    agreement_interval : tuple of float
        A lower and an upper value of the agreement, certified or with some confidence; equal where the engine is exact.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    optimal : bool
        Whether the agreement is proven to reach `upper_bound` (within 1e-12).
    n_evaluations : int
        Number of evaluations of the criterion that the search took.
    confidence : float
        Of `agreement_interval` and of `upper_bound`: 1 where they are proven, less where they come from drawn rows.
    """

    original: BayesianClassifier
    features: tuple[str, ...]
    threshold: float
    threshold_interval: tuple[float, float]
    agreement: float
    agreement_interval: tuple[float, float]
    upper_bound: float
    optimal: bool
    n_evaluations: int
    confidence: float = 1.0

    @property
    def classifier(self) -> BayesianClassifier:
        """The trimmed classifier, ready to predict from `features` alone."""
        return self.original.with_features(self.features, self.threshold)


def trim(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | None = None,
    engine: EngineName | Engine = "auto",
    time_limit: float | None = None,
    *,
    evaluation_limit: int | None = None,
) -> Trimming:
    """Find the trimming within a budget that agrees with the classifier as often as possible.

    Parameters
    ----------
    classifier : BayesianClassifier
    budget : float
        Largest sum of costs, 0 or more. If no feature is affordable, none is kept.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.
    engine : {"auto", "dense", "log_odds", "sdd"} or Engine
        How agreements are computed; ``"auto"`` depends on the size of the model. An engine that `make_engine` built for
        this classifier is used as it is. The log-odds engine (naive Bayes) is exact up to 2^44 instances; beyond, it
        selects forward and certifies what it selected. The SDD engine compiles the network to a circuit, which may be
        small where a table is impossible. A network for which neither is likely to be ready within half a minute is
        trimmed by drawing rows from it (see `Trimming.confidence`).
    time_limit : float, optional
        Seconds after which the search stops, checked between evaluations; the result is then the best trimming found,
        with an upper bound. Certified bounds (see `engine`) take some seconds more.
    evaluation_limit : int, optional
        Evaluations of the criterion after which the search stops. The result is the same on every machine.

    Returns
    -------
    Trimming

    Raises
    ------
    ValueError
        When an argument is out of range, a feature is unknown or there are too many features for the engine.
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
    price = checked_costs(classifier.features, costs)
    limit = checked_budget(budget)
    _check_limits(time_limit, evaluation_limit)
    if isinstance(engine, str):
        check_engine(engine)
    if is_affordable(price, limit):
        return _nothing_removed(classifier)
    if not classifier.is_naive_bayes:
        return _trim_general(classifier, price, limit, engine, time_limit, evaluation_limit)
    if engine in ("auto", "log_odds") and math.prod(classifier.cardinalities) > MAX_ENTRIES:
        if classifier.threshold == 0 or not classifier.prior.all():
            return _nothing_kept(classifier)
        return _trim_certified(classifier, price, limit, within_limits(time_limit, evaluation_limit))
    computed = make_engine(classifier, engine) if isinstance(engine, str) else engine
    by_separation = sorted(range(classifier.n_features), key=lambda i: -separation(classifier.tables[i]))
    found = search(
        computed.root,
        price,
        limit,
        first_guess=by_separation,
        best_first=isinstance(computed, LogOddsEngine),
        time_limit=time_limit,
        evaluation_limit=evaluation_limit,
    )
    kept = sorted(found.features)
    cut = computed.best_cut(kept)
    return exact_trimming(classifier, kept, cut, found.upper_bound, found.n_evaluations)


def _trim_general(
    classifier: BayesianClassifier,
    costs: Sequence[float],
    budget: float,
    engine: EngineName | Engine,
    time_limit: float | None,
    evaluation_limit: int | None,
) -> Trimming:
    """Trim a classifier whose features depend on each other given the class."""
    computed: Engine | None
    if engine == "auto":
        seconds = EXACT_SECONDS if time_limit is None else min(EXACT_SECONDS, 0.5 * time_limit)
        computed = exact_engine(classifier, seconds)
    else:
        computed = make_engine(classifier, engine) if isinstance(engine, str) else engine
    if computed is None:
        choice = checked_choice(classifier.features, budget, costs)
        sampled = trim_by_sampling(classifier, choice, time_limit=time_limit, evaluation_limit=evaluation_limit)
        return sampled_trimming(classifier, sampled)
    found = search_included(
        computed.root,
        computed.instances,
        costs,
        budget,
        classifier.threshold,
        time_limit=time_limit,
        evaluation_limit=evaluation_limit,
    )
    return exact_trimming(classifier, found.features, found.cut, found.upper_bound, found.n_evaluations)


def exact_trimming(
    classifier: BayesianClassifier, kept: Sequence[int], cut: Cut, upper_bound: float, n_evaluations: int
) -> Trimming:
    """Return the trimming that keeps the features at some positions, with an exact agreement."""
    return Trimming(
        original=classifier,
        features=tuple(classifier.features[i] for i in kept),
        threshold=cut.representative(classifier.threshold),
        threshold_interval=(cut.low, cut.high),
        agreement=cut.agreement,
        agreement_interval=(cut.agreement, cut.agreement),
        upper_bound=max(upper_bound, cut.agreement),
        optimal=upper_bound <= cut.agreement + AGREEMENT_TOLERANCE,
        n_evaluations=n_evaluations,
    )


def sampled_trimming(classifier: BayesianClassifier, sampled: SampledTrimming) -> Trimming:
    """Return a trimming whose agreement was estimated on drawn rows."""
    return Trimming(
        original=classifier,
        features=tuple(classifier.features[i] for i in sampled.features),
        threshold=sampled.threshold,
        threshold_interval=(math.nextafter(sampled.threshold, 0.0), sampled.threshold),
        agreement=sampled.agreement,
        agreement_interval=sampled.interval,
        upper_bound=sampled.upper_bound,
        optimal=sampled.confidence == 1.0,
        n_evaluations=sampled.n_evaluations,
        confidence=sampled.confidence,
    )


def _trim_certified(
    classifier: BayesianClassifier, costs: Sequence[float], budget: float, may_go_on: Callable[[int], bool]
) -> Trimming:
    """Trim a classifier that is too large for exact values: forward selection, then certified bounds."""
    engine = CertifiedEngine(classifier)
    selection = select_forward(classifier, costs, budget, may_go_on)
    kept = sorted(selection.kept)
    certified = engine.agreement(kept)
    if any(cost > 0 and is_affordable([cost], budget) for cost in costs):
        upper_bound = max(engine.upper_bound(costs, budget), certified.high)
    else:  # there is no other subset
        upper_bound = engine.highest_agreement(kept)
    return Trimming(
        original=classifier,
        features=tuple(classifier.features[i] for i in kept),
        threshold=certified.threshold,
        threshold_interval=(math.nextafter(certified.threshold, 0.0), certified.threshold),
        agreement=0.5 * (certified.low + certified.high),
        agreement_interval=(certified.low, certified.high),
        upper_bound=upper_bound,
        optimal=upper_bound <= certified.low + AGREEMENT_TOLERANCE,
        n_evaluations=selection.n_evaluations,
    )


def _nothing_kept(classifier: BayesianClassifier) -> Trimming:
    """Return the trimming of a classifier that gives all instances the same class: it needs no feature."""
    threshold = classifier.threshold
    return replace(_nothing_removed(classifier), features=(), threshold_interval=(threshold, threshold))


def _nothing_removed(classifier: BayesianClassifier) -> Trimming:
    threshold = classifier.threshold
    return Trimming(
        original=classifier,
        features=classifier.features,
        threshold=threshold,
        threshold_interval=(math.nextafter(threshold, 0.0), threshold),
        agreement=1.0,
        agreement_interval=(1.0, 1.0),
        upper_bound=1.0,
        optimal=True,
        n_evaluations=0,
    )


def _check_limits(time_limit: float | None, evaluation_limit: int | None) -> None:
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    if evaluation_limit is not None and (not isinstance(evaluation_limit, int | np.integer) or evaluation_limit < 1):
        raise ValueError(f"evaluation_limit must be a whole number, 1 or more, or None, got {evaluation_limit!r}")
