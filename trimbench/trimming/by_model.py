"""Trimming by the model: the search that fits a classifier, and the certified selection where none is exact."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trimbench._extras import is_installed
from trimbench.trimming.baselines import leading, most_informative_units
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import Cut, short
from trimbench.trimming.engines.bounds import DEFAULT_POINTS, CertifiedEngine, by_separation, certain_bound
from trimbench.trimming.engines.choice import Engine, EngineName, exact_engine, has_small_circuit, make_engine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.engines.table import MAX_ENTRIES as TABLE_MAX_ENTRIES
from trimbench.trimming.engines.table import ClassMeasures, agreements_within, n_entries
from trimbench.trimming.problem import Choice, Limits
from trimbench.trimming.result import AGREEMENT_TOLERANCE, Trimming, exact_trimming, trimming_of, untrimmed
from trimbench.trimming.sampled import CONFIDENCE, EXACT_SECONDS, drawn_agreement, sampled_bound, trim_by_sampling
from trimbench.trimming.search.exchange import Selection, select_forward
from trimbench.trimming.search.lattice_search import LatticeSearch, fits
from trimbench.trimming.search.proof import InclusionSearch, RemovalSearch

# Points of the grid of certified bounds: without a time limit, with one, and with one below these seconds, or below
# these for each feature.
_POINTS, _POINTS_IN_TIME, _POINTS_IN_A_HURRY, _HURRY, _HURRY_OF_FEATURE = 2**20, 2**16, 2**13, 0.1, 6e-4
# Seconds that a search on lattices takes until it has more than a guess, and that the exact values of its answer take,
# per square root of the number of instances.
_SECONDS_OF_START, _SECONDS_OF_ANSWER = 1.5e-6, 1.1e-6
# Where exact values are out of reach: subsets are searched up to this many instances or this many features; without a
# limit, the search ends after this many evaluations, a minute or two.
_MOST_SEARCHED, _FEW_FEATURES, _MOST_EVALUATIONS = 2.0**64, 48, 2**22
# Entries of a table of classes below which searching its subsets takes no time, and what a pass over one entry takes.
_FEWEST_ENTRIES, _SECONDS_OF_ENTRY = 2**18, 1e-7
# An exact value needs this many times its seconds of what is left: the answer takes as long again.
_AS_LONG = 3.0
# Shares of what is left of a time limit that an upper bound, and then the selection of features, may take.
_BOUND, _SELECTION = 0.4, 0.6


def trim_by_model(
    classifier: BayesianClassifier, choice: Choice, engine: EngineName | Engine, limits: Limits
) -> Trimming:
    """Return the allowed trimming with the highest expected agreement that is found within the limits.

    Raises ValueError if there are too many features for the engine, or the engine belongs to another classifier.
    """
    allowed = choice.features(range(len(choice.units)))
    if not isinstance(engine, str):
        _check_engine_of(engine, classifier)
    if len(allowed) == classifier.n_features and choice.is_affordable(allowed):
        limits.report(1.0, lambda: 1.0, 0, last=True)
        return untrimmed(classifier)
    if classifier.threshold is None:
        return _trim_most_probable(classifier, choice, limits)
    if not classifier.is_naive_bayes:
        return _trim_general(classifier, choice, engine, limits)
    n_instances = math.prod(classifier.cardinalities)
    if engine in ("auto", "log_odds") and n_instances > MAX_ENTRIES and _is_constant(classifier):
        return untrimmed(classifier, choice.features(choice.required_units))
    if engine in ("auto", "log_odds") and n_instances > MAX_ENTRIES:
        return _trim_certified(classifier, choice, limits)
    if engine == "auto" and 0 < classifier.threshold < 1 and classifier.prior.all():
        return _trim_in_time(classifier, choice, limits, functools.partial(_trim_certified, classifier, choice))
    return _trim_exactly(classifier, choice, engine, limits)


def _trim_most_probable(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> Trimming:
    """Search the subsets of a classifier for the most probable class, on the table of its classes."""
    if _may_try_all(classifier, choice, limits):
        return _best_of_all(classifier, choice, limits)
    first = most_informative_units(classifier, choice)
    return _included(classifier, _search_of_classes(classifier, choice, first), limits)


def _may_try_all(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> bool:
    """Return whether computing the agreements of all sets of units takes only a few passes over the whole table."""
    entries = n_entries(classifier)
    if not classifier.is_naive_bayes or not _FEWEST_ENTRIES <= entries <= TABLE_MAX_ENTRIES:
        return False
    left = limits.seconds_left()
    if limits.evaluation_limit is not None or (left is not None and left < _SECONDS_OF_ENTRY * entries):
        return False
    n_units = choice.n_affordable(range(len(choice.units)))
    instances = [1, *[0] * n_units]  # of all sets of each size
    for unit in choice.units:
        size = math.prod(classifier.cardinalities[i] for i in unit)
        instances = [here + size * before for here, before in zip(instances, [0, *instances], strict=False)]
    return sum(instances) * classifier.n_classes <= entries


def _best_of_all(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> Trimming:
    """Return the allowed set with the highest agreement; of equal ones the largest, and the first of those."""
    highest, leaders, n_sets = leading(agreements_within(classifier, choice))
    kept = min(leaders, key=lambda units: (-len(units), units))
    agreement = leaders[kept]
    # Units with a single value change no decision: they fill the budget.
    constant = [
        place for place, unit in enumerate(choice.units) if math.prod(classifier.cardinalities[i] for i in unit) == 1
    ]
    features = choice.features(choice.filled({*kept, *choice.required_units}, constant))
    limits.report(agreement, lambda: highest, n_sets, last=True)
    return trimming_of(classifier, features, (agreement, agreement), highest, n_sets)


def _search_of_classes(
    classifier: BayesianClassifier, choice: Choice, first: Collection[int] = ()
) -> InclusionSearch[ClassMeasures]:
    root = ClassMeasures.of(classifier, choice.features(range(len(choice.units))))
    return InclusionSearch(root, lambda node, features: (node.agreement_of(features), None), choice, first)


def _included(classifier: BayesianClassifier, search: InclusionSearch[Any], limits: Limits) -> Trimming:
    """Return what a search finds, from where it stopped last."""
    found = search.run(limits)
    return trimming_of(
        classifier,
        found.features,
        (found.agreement, found.agreement),
        found.upper_bound,
        found.n_evaluations,
        cut=found.cut,
        go_on=lambda more: _included(classifier, search, more),
    )


def _is_constant(classifier: BayesianClassifier) -> bool:
    """Return whether a naive Bayes classifier gives all instances the same class, whatever their features."""
    if classifier.threshold == 0 or not classifier.prior.all():
        return True
    return classifier.threshold == 1 and all((table[1] > 0).all() for table in classifier.tables)


def _trim_in_time(
    classifier: BayesianClassifier, choice: Choice, limits: Limits, certify: Callable[[Limits], Trimming]
) -> Trimming:
    """Search the subsets; without time for a single exact value, settle for certified bounds."""
    if limits.time_limit is None or _SECONDS_OF_START * _table_size(classifier) <= limits.time_limit:
        return _trim_exactly(classifier, choice, "auto", limits)
    found = certify(limits)
    more_certified = found._go_on or (lambda _: found)

    def go_on(more: Limits) -> Trimming:
        return _not_worse(_trim_in_time(classifier, choice, more, more_certified), found)

    return replace(found, _go_on=go_on)


def _table_size(classifier: BayesianClassifier) -> float:
    """Return the approximate size of a table of the log-odds engine: the square root of the number of instances."""
    return math.sqrt(math.prod(classifier.cardinalities))


def _not_worse(found: Trimming, before: Trimming) -> Trimming:
    """Return what a continued search found, or what was found before if that is certain to agree more often."""
    bound = min(found.upper_bound, before.upper_bound)
    best, go_on = found, found._go_on
    # Features that are proven are not given up for others that are known more exactly.
    may_replace = not found.optimal or before.features == found.features
    if may_replace and before.agreement_interval[0] > found.agreement_interval[0]:
        best = replace(before, n_evaluations=found.n_evaluations, optimal=found.optimal)
    optimal = best.optimal or bound <= best.agreement_interval[0] + AGREEMENT_TOLERANCE
    best = replace(best, upper_bound=bound, optimal=optimal, _go_on=None)
    return best if go_on is None else replace(best, _go_on=lambda more: _not_worse(go_on(more), best))


def _trim_exactly(
    classifier: BayesianClassifier, choice: Choice, engine: EngineName | Engine, limits: Limits
) -> Trimming:
    """Search the subsets of a naive Bayes classifier."""
    computed = make_engine(classifier, engine) if isinstance(engine, str) else engine
    search: RemovalSearch | LatticeSearch
    if isinstance(computed, LogOddsEngine):
        if _is_constant(classifier):
            return untrimmed(classifier, choice.features(choice.required_units))
        search = LatticeSearch(classifier, choice, computed.potential_agreement_of)
    else:
        root = computed.root.without(*choice.forbidden)
        search = RemovalSearch(root, choice, first_guess=by_separation(classifier, choice))
    return _searched(classifier, choice, computed, search, limits)


def _searched(
    classifier: BayesianClassifier,
    choice: Choice,
    engine: Engine,
    search: RemovalSearch | LatticeSearch,
    limits: Limits,
    known_bound: float = 1.0,
) -> Trimming:
    answer = _SECONDS_OF_ANSWER * _table_size(classifier) if isinstance(engine, LogOddsEngine) else 0.0
    found = search.run(limits.ending_earlier(answer))
    kept = found.features
    upper_bound = min(found.upper_bound, known_bound)
    if upper_bound >= 1.0 > found.agreement and 0 < classifier.threshold < 1 and classifier.prior.all():
        # Stopped before the search itself could bound anything.
        upper_bound = loose_bound(classifier, choice, limits)
    return exact_trimming(
        classifier,
        kept,
        engine.best_cut(kept),
        upper_bound,
        found.n_evaluations,
        lambda more: _searched(classifier, choice, engine, search, more, upper_bound),
        proven=found.proven,
    )


def _trim_general(
    classifier: BayesianClassifier, choice: Choice, engine: EngineName | Engine, limits: Limits
) -> Trimming:
    """Trim a classifier whose features depend on each other given the class."""
    computed: Engine | None
    if engine == "auto":
        seconds = EXACT_SECONDS if limits.time_limit is None else min(EXACT_SECONDS, 0.5 * limits.time_limit)
        computed = exact_engine(classifier, seconds)
    else:
        computed = make_engine(classifier, engine) if isinstance(engine, str) else engine
    if computed is None:
        return _trim_by_sampling(classifier, choice, limits)
    root = computed.root.without(*choice.forbidden)
    exact: Engine = computed

    def achieved(_: object, features: Sequence[int]) -> tuple[float, Cut]:
        cut = exact.best_cut(features)
        return cut.agreement, cut

    return _included(classifier, InclusionSearch(root, achieved, choice), limits)


def _trim_by_sampling(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> Trimming:
    """Trim a classifier that no engine can compute exactly, on rows drawn from it."""
    found, finished = trim_by_sampling(classifier, choice, limits)
    limits.report(found.agreement, lambda: found.upper_bound, found.n_evaluations, last=True)
    # With more time, a circuit may be exact.
    may_compile = limits.time_limit is not None and is_installed("pysdd") and has_small_circuit(classifier)
    if finished and not may_compile:
        return found
    # The best of two answers would not have the confidence of one: with other limits the search begins anew.
    return replace(found, _go_on=lambda more: _trim_general(classifier, choice, "auto", more))


def _trim_certified(
    classifier: BayesianClassifier, choice: Choice, limits: Limits, stopped: Selection | None = None
) -> Trimming:
    """Trim a classifier that is too large for exact values: forward selection, then certified bounds."""
    engine = CertifiedEngine(classifier, _points(classifier, limits))
    allowed = choice.features(range(len(choice.units)))
    buyable = (choice.costs[unit] > 0 and choice.is_affordable(members) for unit, members in enumerate(choice.units))
    upper_bound = None
    if choice.is_affordable(allowed):  # every further feature only helps
        selection = Selection(list(allowed), 0, finished=True)
    else:
        if any(buyable):  # else there is no other subset
            upper_bound = min(engine.upper_bound(choice), certain_bound(classifier, choice, limits.part(_BOUND)))
        if stopped is None or not stopped.finished:
            stopped = select_forward(classifier, choice, limits.part(_SELECTION).may_go_on, stopped)
        selection = stopped
    kept = sorted(selection.kept)
    certified = engine.agreement(kept)
    if upper_bound is None:
        upper_bound = engine.highest_agreement(kept)
    certified = replace(certified, high=max(certified.low, min(certified.high, upper_bound)))
    limits.report(certified.low, lambda: upper_bound, selection.n_evaluations, last=True)
    interval, threshold = (certified.low, certified.high), certified.threshold
    found = trimming_of(classifier, kept, interval, upper_bound, selection.n_evaluations, threshold=threshold)
    n_instances = math.prod(classifier.cardinalities)
    is_large = n_instances > _MOST_SEARCHED and classifier.n_features > _FEW_FEATURES
    is_last = is_large or choice.is_affordable(allowed) or not fits(classifier)
    if not selection.finished or (is_last and engine.n_points < _POINTS):
        go_on = functools.partial(_trim_certified, classifier, choice, stopped=selection)
        return replace(found, _go_on=lambda more: _not_worse(go_on(more), found))
    if is_last:
        return found
    exact = LogOddsEngine(classifier, of_any_size=True)

    def agreement_of(features: Sequence[int]) -> float | None:
        seconds = exact.seconds(features)
        has_time = seconds < math.inf and search.limits.in_time(_AS_LONG * seconds)  # not interruptible
        return exact.potential_agreement_of(features) if has_time else None

    search = LatticeSearch(classifier, choice, agreement_of)
    return _searched_roughly(classifier, engine, search, found, limits)


def _searched_roughly(
    classifier: BayesianClassifier, engine: CertifiedEngine, search: LatticeSearch, before: Trimming, limits: Limits
) -> Trimming:
    """Search the subsets where exact values are out of reach: what the finest lattice cannot decide stays open."""
    ends = limits.time_limit is not None or limits.evaluation_limit is not None
    found = search.run(limits if ends else limits.up_to(search.n_evaluations + _MOST_EVALUATIONS))
    kept = found.features
    upper_bound = min(found.upper_bound, before.upper_bound)
    n_evaluations = before.n_evaluations + found.n_evaluations
    exact = LogOddsEngine(classifier, of_any_size=True)
    seconds = exact.seconds(kept)
    if found.proven and seconds < math.inf and limits.in_time(seconds):
        cut = exact.best_cut(kept)
        return exact_trimming(classifier, kept, cut, min(upper_bound, cut.agreement), n_evaluations, proven=True)
    if engine.n_points < (n_points := _points(classifier, limits)):
        engine = CertifiedEngine(classifier, n_points)
    certified = engine.agreement(kept)

    def go_on(more: Limits) -> Trimming:
        return _searched_roughly(classifier, engine, search, before, more)

    # The threshold is part of the answer: with more time, its agreement may be exact, or its interval narrower.
    is_over = found.complete and engine.n_points >= _POINTS and not (found.proven and seconds < math.inf)
    interval = (certified.low, max(certified.low, min(certified.high, upper_bound)))
    result = trimming_of(
        classifier,
        kept,
        interval,
        upper_bound,
        n_evaluations,
        threshold=certified.threshold,
        proven=found.proven,
        go_on=None if is_over else go_on,
    )
    return _not_worse(result, before)


def _points(classifier: BayesianClassifier, limits: Limits) -> int:
    """Return the size of the grid of certified bounds."""
    if limits.time_limit is None:
        return _POINTS
    hurry = max(_HURRY, _HURRY_OF_FEATURE * classifier.n_features)
    return _POINTS_IN_TIME if limits.time_limit >= hurry else _POINTS_IN_A_HURRY


def agreement_at(
    classifier: BayesianClassifier,
    kept: Sequence[int],
    threshold: float | None,
    engine: EngineName | Engine,
    limits: Limits,
) -> tuple[float | None, tuple[float, float], float]:
    """Return a threshold, and the interval of the model's agreement there with its confidence.

    The agreement is exact where an engine can compute it, else certified bounds or an interval from drawn rows.
    """
    exact: float | None = None
    if threshold is None:
        if len(kept) == classifier.n_features:
            exact = 1.0
        elif n_entries(classifier) <= TABLE_MAX_ENTRIES:
            exact = ClassMeasures.of(classifier, kept).agreement()
    elif not isinstance(engine, str):
        exact = engine.agreement(kept, threshold)
    elif classifier.is_naive_bayes and engine != "dense" and math.prod(classifier.cardinalities) > MAX_ENTRIES:
        n_points = DEFAULT_POINTS if limits.time_limit is None else _POINTS_IN_TIME
        return *_certified_at(classifier, kept, threshold, n_points), 1.0
    elif engine == "auto" and not classifier.is_naive_bayes:
        seconds = EXACT_SECONDS if limits.time_limit is None else 0.5 * limits.time_limit
        computed = exact_engine(classifier, seconds)
        exact = None if computed is None else computed.agreement(kept, threshold)
    else:
        exact = make_engine(classifier, engine).agreement(kept, threshold)
    if exact is None:
        return threshold, drawn_agreement(classifier, kept, threshold), CONFIDENCE
    return threshold, (exact, exact), 1.0


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


def bound_of_all(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> float:
    """Return an upper bound on the agreement of all allowed subsets under the model: proven, or from drawn rows."""
    if classifier.threshold is not None:
        return loose_bound(classifier, choice, limits)
    allowed = choice.features(range(len(choice.units)))
    if choice.is_affordable(allowed) and len(allowed) == classifier.n_features:
        return 1.0
    if n_entries(classifier) > TABLE_MAX_ENTRIES:
        return sampled_bound(classifier, choice, limits.seconds_left())
    # One evaluation gives a bound already.
    return _search_of_classes(classifier, choice).run(Limits(evaluation_limit=1)).upper_bound


def loose_bound(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> float:
    """Return an upper bound on the agreement of all allowed subsets that takes a fraction of a second.

    For a naive Bayes model of any size; 1 for others, and where all instances have the same class.
    """
    if not (classifier.is_naive_bayes and 0 < classifier.threshold < 1 and classifier.prior.all()):
        return 1.0
    bound = CertifiedEngine(classifier, min(_POINTS_IN_TIME, _points(classifier, limits))).upper_bound(choice)
    return min(bound, certain_bound(classifier, choice, limits))


def _check_engine_of(engine: Engine, classifier: BayesianClassifier) -> None:
    """Raise a ValueError if the engine was made for another classifier."""
    if not hasattr(engine, "classifier"):
        raise ValueError(f"engine must be the name of an engine, or made by make_engine, got {str(engine)[:80]!r}")
    made_for = engine.classifier
    for what, own, other in (
        ("threshold", made_for.threshold, classifier.threshold),
        ("features", made_for.features, classifier.features),
        ("target", made_for.target, classifier.target),
        ("positive states", made_for.positive_states, classifier.positive_states),
        ("evidence", dict(made_for.evidence), dict(classifier.evidence)),
    ):
        if own != other:
            raise ValueError(
                f"engine must be made for this classifier, got one for {what} {short(own)} instead of "
                f"{short(other)}; make it with make_engine(classifier), or use its with_threshold"
            )
    if made_for.model is not classifier.model and not _same_distribution(made_for, classifier):
        raise ValueError(
            "engine must be made for this classifier, got one for another model; make it with make_engine(classifier)"
        )


def _same_distribution(one: BayesianClassifier, other: BayesianClassifier) -> bool:
    if not (one.is_naive_bayes and other.is_naive_bayes):
        return False
    pairs: Sequence[tuple[np.ndarray, np.ndarray]] = list(
        zip((one.prior, *one.tables), (other.prior, *other.tables), strict=True)
    )
    return all(np.array_equal(first, second) for first, second in pairs)
