"""Searches that are stopped, continued, hurried and watched."""

from __future__ import annotations

import copy
import math
import pickle
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from trimbench._numba import _loading, _stop_clock_while_compiling, clock
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.problem import Limits, Progress, checked_choice

pytestmark = pytest.mark.usefixtures("coarse_grid")  # all bounds here may be wide


def random_classifier(
    n_features: int, *, seed: int = 0, concentration: float = 1.0, n_values: int = 2, threshold: float = 0.5
) -> tb.BayesianClassifier:
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(n_values, concentration), 2) for _ in range(n_features)]
    return tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="0", threshold=threshold)


def several(n_features: int, seed: int = 0) -> tb.BayesianClassifier:
    """Return a classifier of three classes."""
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet([1, 1], 3) for _ in range(n_features)]
    return tb.BayesianClassifier(tb.NaiveBayes([0.2, 0.3, 0.5], tables))


KINDS: dict[str, Callable[[int], tb.BayesianClassifier]] = {
    "dense": lambda seed: random_classifier(8, seed=seed),
    "log_odds": lambda seed: random_classifier(10, seed=seed),
    "network": lambda seed: brute_force.random_network_classifier(np.random.default_rng(seed), 5, 0.4),
    "several": lambda seed: several(7, seed),
}


# Engines that are asked for by name, and how many evaluations more than is allowed a step of theirs may take.
ENGINES = {"dense": 1, "log_odds": 50}


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), step=st.sampled_from([1, 2, 5]))
@settings(max_examples=8)
def test_a_search_in_parts_ends_where_a_whole_one_does(kind: str, seed: int, step: int) -> None:
    classifier, engine = KINDS[kind](seed), kind if kind in ENGINES else "auto"
    costs = np.random.default_rng(seed).choice([0.5, 1.0, 1.5], classifier.n_features).tolist()
    whole = tb.trim(classifier, 3, costs, engine=engine)
    part = tb.trim(classifier, 3, costs, engine=engine, evaluation_limit=step)
    while not part.optimal:
        assert part.resume(evaluation_limit=step) is part  # no step more than at first
        assert part.agreement - 1e-12 <= whole.agreement <= part.upper_bound + 1e-12
        more = part.resume(evaluation_limit=part.n_evaluations + step)
        assert more.n_evaluations <= part.n_evaluations + step + ENGINES.get(kind, 10**6)
        assert more.upper_bound <= part.upper_bound + 1e-12
        assert more.agreement >= part.agreement - 1e-12
        part = more
    # Of subsets that agree equally often, either search may find another.
    assert part.agreement == pytest.approx(whole.agreement, abs=1e-12)
    assert part.resume() is part


@pytest.mark.parametrize("seconds", [10**400, math.inf, 1e300])
@pytest.mark.parametrize("kind", KINDS)
def test_more_time_than_any_clock_has_is_no_limit(kind: str, seconds: float) -> None:
    classifier = KINDS[kind](0)
    found = tb.trim(classifier, 2, time_limit=seconds)
    assert found.resume(time_limit=seconds).agreement_interval == tb.trim(classifier, 2).agreement_interval


@pytest.mark.parametrize("limits", [{"evaluation_limit": 1}, {"time_limit": 1e-6}])
@pytest.mark.parametrize("classifier", [random_classifier(20, threshold=0.4), several(10)])
def test_a_hurried_search_is_continued_exactly(classifier: tb.BayesianClassifier, limits: dict[str, Any]) -> None:
    stopped = tb.trim(classifier, 3, **limits)
    again = pickle.loads(pickle.dumps(stopped))
    assert (again.features, again.upper_bound) == (stopped.features, stopped.upper_bound)
    assert again.resume() is again  # a search is not written to another process
    assert not stopped.optimal
    assert stopped.agreement <= stopped.upper_bound < 1.0 - 1e-6
    finished = copy.copy(stopped).resume()
    assert finished.optimal
    assert finished.agreement == pytest.approx(tb.trim(classifier, 3).agreement, abs=1e-12)
    assert finished.agreement <= stopped.upper_bound + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_progress_tells_incumbent_and_bound(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.trimming.problem._PAUSE", 0.0)
    told: list[Progress] = []
    engine = kind if kind in ENGINES else "auto"
    found = tb.trim(KINDS[kind](0), 3, engine=engine, progress=told.append)
    assert told[-1].n_evaluations == found.n_evaluations
    assert told[-1].agreement == pytest.approx(found.agreement, abs=1e-12)
    assert told[-1].upper_bound == pytest.approx(found.agreement, abs=1e-12)
    for attribute in ("agreement", "n_evaluations", "seconds"):
        assert (np.diff([getattr(now, attribute) for now in told]) >= -1e-12).all()
    assert all(now.agreement <= now.upper_bound + 1e-12 for now in told)


def test_certified_selection_goes_on_where_it_was_stopped() -> None:
    classifier = random_classifier(66)  # too large for a search of its subsets
    whole = tb.trim(classifier, 4)
    part = tb.trim(classifier, 4, evaluation_limit=70)
    for limit in (300, 600, 5000):
        more = part.resume(evaluation_limit=limit)
        assert part.n_evaluations < more.n_evaluations <= limit
        assert more.agreement_interval[0] >= part.agreement_interval[0]
        part = more
    assert part.n_evaluations >= whole.n_evaluations
    assert part.agreement_interval[0] == pytest.approx(whole.agreement_interval[0], abs=1e-6)


def test_a_search_after_a_certified_selection_goes_on_where_it_was_stopped() -> None:
    told: list[Progress] = []
    found = tb.trim(random_classifier(50), 4, evaluation_limit=400, progress=told.append)
    assert told[-1].upper_bound == pytest.approx(found.upper_bound)
    more = found.resume(evaluation_limit=600)
    assert more.n_evaluations > found.n_evaluations
    assert more.agreement_interval[0] >= found.agreement_interval[0]
    assert more.upper_bound <= found.upper_bound


def test_hurried_search_is_never_worse_when_resumed() -> None:
    found = tb.trim(random_classifier(26), 6, time_limit=1e-3)
    for _ in range(4):
        more = found.resume(1e-3)
        assert more.agreement_interval[0] >= found.agreement_interval[0]
        assert more.upper_bound <= found.upper_bound
        found = more


def test_stopped_search_does_not_sort_millions_of_instances() -> None:
    classifier = random_classifier(20, concentration=0.3, n_values=3)
    start = time.process_time()
    assert len(tb.trim(classifier, 15, time_limit=0.3).features) == 15
    assert time.process_time() - start < 2.0  # 3 to 6 seconds if 3^15 instances are sorted
    smaller = random_classifier(14, concentration=0.3, n_values=3)
    found = tb.trim(smaller, 10, time_limit=0.02)
    exact = LogOddsEngine(smaller).agreement(found.kept, found.threshold)
    assert found.agreement == pytest.approx(exact, abs=1e-11)


def test_time_in_which_kernels_are_compiled_is_no_time_of_a_search() -> None:
    _stop_clock_while_compiling()
    limits, clocks, began = Limits(time_limit=0.05), clock(), time.perf_counter()
    for constant in range(20):  # each is compiled anew
        numba.njit(lambda x, added=float(constant): x + added)(1.0)
        if (waited := time.perf_counter() - began) > 0.5:
            break
    assert clock() - clocks < 0.5 * waited
    with _loading:
        with _loading:
            stands = clock()
            time.sleep(0.1)
        assert clock() == stands
    assert limits.in_time() or clock() - clocks > 0.05


CLASSIFIERS = [
    *(random_classifier(n) for n in (10, 26, 46)),
    *(brute_force.tree_augmented(n, 0) for n in (8, 30)),
    *(several(n) for n in (6, 30)),
]
STOPS = [{"time_limit": 1e-9}, {"evaluation_limit": 1}, {"evaluation_limit": 9}]


# Each classifier by each of three, each with another limit, so that all pairs occur.
@pytest.mark.parametrize(
    ("classifier", "by", "limit"),
    [
        (classifier, by, STOPS[(row + place) % 3])
        for row, classifier in enumerate(CLASSIFIERS)
        for place, by in enumerate(("model", "rows", "blend"))
        if by != "model" or classifier is not CLASSIFIERS[-1]  # too large without rows
    ],
    ids=lambda one: f"{one.n_classes}-{one.n_features}" if isinstance(one, tb.BayesianClassifier) else str(one),
)
def test_a_stopped_search_fills_the_budget(classifier: Any, limit: Any, by: str) -> None:
    names = classifier.features
    costs = {name: 1.0 + 0.5 * (place % 3) for place, name in enumerate(names) if name not in names[:2]} | {"pair": 2.0}
    rows = None
    if by != "model":
        codes = classifier.draw(600, np.random.default_rng(1))
        rows = pd.DataFrame({name: codes[:, i].astype(str) for i, name in enumerate(names)})
    weight = {"model": "auto", "rows": 1.0, "blend": "auto"}[by]
    found = tb.trim(classifier, 5, costs, groups={"pair": names[:2]}, rows=rows, rows_weight=weight, **limit)
    choice = checked_choice(names, 5, costs, groups={"pair": names[:2]})
    bought = [unit for unit, members in enumerate(choice.units) if set(members) <= set(found.kept)]
    assert choice.features(bought) == found.kept
    assert found.may_go_on
    assert choice.filled(bought, range(len(choice.units))) == tuple(bought)


@pytest.mark.parametrize("limit", [1, 20, 50, 100, 200, 400])
def test_a_cross_validation_that_was_cut_short_is_said(limit: int) -> None:
    classifier = random_classifier(6)
    codes = classifier.draw(60, np.random.default_rng(1))
    rows = pd.DataFrame({name: codes[:, i].astype(str) for i, name in enumerate(classifier.features)})
    found = tb.trim(classifier, 3, rows=rows, evaluation_limit=limit)
    assert found.rows_agreement is not None
    assert found.rows_agreement.n_rows == len(rows) or found.may_go_on


@pytest.mark.parametrize(("n_features", "threshold"), [(42, 0.0), (42, 1.0), (66, 0.0)])
def test_constant_classifier_needs_no_feature_and_no_time(n_features: int, threshold: float) -> None:
    start = time.process_time()
    found = tb.trim(random_classifier(n_features, threshold=threshold), 20)
    assert time.process_time() - start < 1.0
    assert (found.features, found.agreement, found.optimal) == ((), 1.0, True)
    assert found.threshold == threshold


def test_all_that_is_not_forbidden_is_kept_if_affordable() -> None:
    classifier = random_classifier(50, concentration=5.0)
    found = tb.trim(classifier, 48, forbidden=["x7", "x8"], time_limit=1.0)
    assert len(found.features) == 48
    assert found.upper_bound < 1.0
    assert found.upper_bound - found.agreement_interval[0] < 0.01


def test_certified_threshold_may_be_next_to_zero() -> None:
    rng = np.random.default_rng(0)
    strong = rng.dirichlet([1e-3, 1e-3], 200)
    tables = [[row, row[::-1]] for row in strong]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.5, 0.5], tables), positive="0", threshold=0.5)
    found = tb.trim(classifier, 189, time_limit=0.3)
    assert 0 < found.threshold < 1


def test_threshold_of_one_tells_certainty_from_what_is_rounded_to_it() -> None:
    # Pr(c | f) is 1, 1 - 1e-18 or less; only the first reaches T = 1.
    tables = [[[0.5, 0.5 - 1e-18, 1e-18], [0.0, 1e-18, 1.0]]]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.5, 0.5], tables), positive="0", threshold=1.0)
    agreement, (low, high) = tb.maximum_achievable_agreement(classifier, ["x0"])
    assert agreement == pytest.approx(1.0, abs=1e-15)
    assert low < high == 1.0


def test_costs_by_number_like_a_series() -> None:
    classifier = random_classifier(3)
    costs: dict[object, float] = {7: 1.0, "x2": 1.0}
    by_mapping = tb.trim(classifier, 1, costs, groups={7: ["x0", "x1"]})
    by_series = tb.trim(classifier, 1, pd.Series(costs), groups={"7": ["x0", "x1"]})
    assert by_mapping.features == by_series.features
    assert len(tb.trimming_curve(classifier, iter([1, 2]))) == 2, "budgets may be an iterator"


def test_limits_end_in_parts() -> None:
    limits = Limits(1e9, 5)
    assert limits.may_go_on(4)
    assert not limits.may_go_on(5)
    assert limits.allows(5)
    assert not Limits(1e-9).in_time()
    left = limits.part(0.5).seconds_left()
    assert left is not None
    assert left < 0.6e9
    assert Limits().seconds_left() is None


# `scripts/nightly` looks for new examples, and for more of them.
N_STOPPED = 40 if settings.default is None or settings.default.derandomize else 200


@given(seed=st.integers(0, 2**32), limit=st.sampled_from([1e-9, 1e-9, 1, 20, 300]))
@settings(max_examples=N_STOPPED)
def test_a_stopped_search_ends_with_what_a_whole_one_finds(seed: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(2, 4, rng.integers(2, 8)).tolist()
    classifier = brute_force.random_classifier(rng, cardinalities, float(rng.choice([0.1, 0.3, 0.5, 0.8])))
    options = brute_force.random_options(rng, classifier.features)
    if seed % 4 == 0:  # one subset is affordable
        options = {"budget": 1.0, "required": [classifier.features[-1]]}
    choice = checked_choice(classifier.features, **options)
    best = max(brute_force.potential_agreement(classifier, kept) for kept in brute_force.allowed_subsets(choice))
    limits: dict[str, Any] = {"time_limit": limit} if limit < 1 else {"evaluation_limit": int(limit)}
    found = tb.trim(classifier, **options, **limits)
    for _ in range(5):
        low, high = found.agreement_interval
        assert low - 1e-12 <= brute_force.expected_agreement(classifier, found.kept, found.threshold) <= high + 1e-12
        assert low - 1e-12 <= best <= found.upper_bound + 1e-12
        if not found.may_go_on:
            break
        found = found.resume()
    assert (found.optimal, found.may_go_on) == (True, False)
    assert found.agreement_interval == (found.agreement, found.agreement)
    assert found.agreement == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seconds", [1e-6, 0.05])
def test_bounds_of_a_hurried_search_are_those_of_a_whole_one_in_the_end(seconds: float) -> None:
    hurried, n_steps = tb.trim(random_classifier(66), 4, time_limit=seconds), 0  # too large for exact values
    while hurried.may_go_on:
        hurried, n_steps = hurried.resume(), n_steps + 1
        assert n_steps < 5
    whole = tb.trim(random_classifier(66), 4)
    assert hurried.features == whole.features
    assert hurried.agreement_interval == whole.agreement_interval
    assert hurried.upper_bound <= whole.upper_bound
