"""Searches that are stopped, continued, hurried and watched; limits and choices that make no sense."""

from __future__ import annotations

import math
import pickle
import time
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.trimming import brute_force
from trimbench._numba import _loading, _stop_clock_while_compiling, clock
from trimbench.trimming.costs import checked_choice
from trimbench.trimming.engines.choice import EngineName, make_engine
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.limits import Limits, Progress


def random_classifier(
    n_features: int, *, seed: int = 0, concentration: float = 1.0, n_values: int = 2, threshold: float = 0.5
) -> tb.BayesianClassifier:
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(n_values, concentration), 2) for _ in range(n_features)]
    return tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="0", threshold=threshold)


@pytest.mark.parametrize("engine", ["dense", "log_odds"])
def test_many_short_searches_get_as_far_as_a_long_one(engine: tb.trimming.engines.choice.EngineName) -> None:
    # Each is stopped before it has evaluated all children of a node.
    classifier = random_classifier(10)
    whole = tb.trim(classifier, 4, engine=engine)
    part = tb.trim(classifier, 4, engine=engine, evaluation_limit=2)
    for limit in range(4, 4 * whole.n_evaluations, 2):
        more = part.resume(evaluation_limit=limit)
        assert more.upper_bound <= part.upper_bound
        assert more.agreement >= part.agreement
        part = more
        if part.optimal:
            break
    assert part.optimal
    assert part.features == whole.features


def test_certified_selection_goes_on_where_it_was_stopped() -> None:
    classifier = random_classifier(60)
    whole = tb.trim(classifier, 4)
    part = tb.trim(classifier, 4, evaluation_limit=70)
    limit = 70
    while part.n_evaluations < whole.n_evaluations and limit < 5000:
        limit += 110
        more = part.resume(evaluation_limit=limit)
        assert part.n_evaluations <= more.n_evaluations <= limit
        assert more.agreement_interval[0] >= part.agreement_interval[0]
        part = more
    assert part.agreement_interval[0] == pytest.approx(whole.agreement_interval[0], abs=1e-6)


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
    found = tb.trim(classifier, 15, time_limit=0.3)
    assert time.process_time() - start < 2.0  # 3 to 6 seconds if 3^15 instances are sorted
    exact = LogOddsEngine(classifier).agreement(found.kept, found.threshold)
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


def network(n_features: int) -> tb.BayesianClassifier:
    """Return a classifier whose features depend on the one before them, too."""
    rng = np.random.default_rng(n_features)
    names = [f"x{i}" for i in range(n_features)]
    parents = {name: ["c", *names[max(0, i - 1) : i]] for i, name in enumerate(names)}
    tables = {name: rng.dirichlet([1, 1], (2,) * len(parents[name])) for name in names}
    model = tb.BayesianNetwork({name: ["0", "1"] for name in ("c", *names)}, parents, {"c": [0.4, 0.6], **tables})
    return tb.BayesianClassifier(model, "c", positive="1")


def several(n_features: int) -> tb.BayesianClassifier:
    rng = np.random.default_rng(n_features)
    tables = [rng.dirichlet([1, 1], 3) for _ in range(n_features)]
    return tb.BayesianClassifier(tb.NaiveBayes([0.3, 0.3, 0.4], tables))


@pytest.mark.parametrize("by", ["model", "rows", "blend"])
@pytest.mark.parametrize("limit", [{"time_limit": 1e-9}, {"evaluation_limit": 1}, {"evaluation_limit": 9}], ids=str)
@pytest.mark.parametrize(
    "classifier", [random_classifier(10), random_classifier(26), random_classifier(46), network(8), network(30),
                   several(6), several(30)], ids=lambda given: f"{given.n_classes}-{given.n_features}-{given.threshold}"
)  # fmt: skip
def test_a_stopped_search_fills_the_budget(classifier: Any, limit: Any, by: str) -> None:
    names = classifier.features
    costs = {name: 1.0 + 0.5 * (place % 3) for place, name in enumerate(names) if name not in names[:2]} | {"pair": 2.0}
    rows = None
    if by != "model":
        codes = classifier.draw(600, np.random.default_rng(1))
        rows = pd.DataFrame({name: codes[:, i].astype(str) for i, name in enumerate(names)})
    weight = {"model": "auto", "rows": 1.0, "blend": "auto"}[by]
    if by == "model" and classifier.threshold is None and classifier.n_features > 26:
        pytest.skip("too large without rows")
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


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_constant_classifier_needs_no_feature_and_no_time(threshold: float) -> None:
    start = time.process_time()
    found = tb.trim(random_classifier(42, threshold=threshold), 20)
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


def test_messages_name_the_parameter() -> None:
    classifier = random_classifier(3)
    for call, message in [
        (lambda: tb.trimming_curve(classifier, 2), "budgets must be a sequence of numbers, got 2"),  # type: ignore[arg-type]
        (lambda: tb.trimming_curve(classifier, [2], thresholds=0.5), "thresholds must be a sequence of numbers"),  # type: ignore[arg-type]
        (lambda: tb.expected_agreement(classifier, [], 0.5, n_points=-1, interval=True), "n_points must be"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert len(str(caught.value)) < 500


def test_a_model_is_no_classifier() -> None:
    model = random_classifier(3).model
    for call in (
        lambda: tb.trimming_curve(model, [2]),  # type: ignore[arg-type]
        lambda: tb.expected_agreement(model, ["x0"], 0.5),  # type: ignore[arg-type]
        lambda: tb.select_features(model, 2, by="information_gain").features,  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="make one with BayesianClassifier"):
            call()


def test_costs_by_number_like_a_series() -> None:
    classifier = random_classifier(3)
    costs: dict[object, float] = {7: 1.0, "x2": 1.0}
    by_mapping = tb.trim(classifier, 1, costs, groups={7: ["x0", "x1"]})  # type: ignore[call-overload]
    by_series = tb.trim(classifier, 1, pd.Series(costs), groups={"7": ["x0", "x1"]})
    assert by_mapping.features == by_series.features


def test_budgets_may_be_an_iterator() -> None:
    assert len(tb.trimming_curve(random_classifier(3), iter([1, 2]))) == 2  # type: ignore[arg-type]


def naive_bayes(n_features: int, seed: int = 0) -> tb.BayesianClassifier:
    return brute_force.random_classifier(np.random.default_rng(seed), [2] * n_features, 0.4)


def ten_features(seed: int = 0) -> tb.BayesianClassifier:
    """Return a classifier of three classes."""
    rng = np.random.default_rng(seed)
    return tb.BayesianClassifier(tb.NaiveBayes([0.2, 0.3, 0.5], [rng.dirichlet([1, 1], size=3) for _ in range(10)]))


def general(seed: int = 0) -> tb.BayesianClassifier:
    return brute_force.random_network_classifier(np.random.default_rng(seed), 5, 0.4)


@pytest.mark.parametrize("seed", range(5))
def test_a_search_of_a_network_in_parts_ends_where_a_whole_one_does(seed: int) -> None:
    classifier = general(seed)
    whole = tb.trim(classifier, 2)
    part = tb.trim(classifier, 2, evaluation_limit=1)
    assert whole.agreement - 1e-12 <= part.upper_bound
    while not part.optimal:
        part = part.resume(evaluation_limit=part.n_evaluations + 1)
    # What fills the budget of a stopped search may turn out to be as good.
    assert part.agreement == whole.agreement
    assert part.features == whole.features or set(whole.features) < set(part.features)


@pytest.mark.parametrize("n_features", [12, 34, 50])
def test_a_search_without_time_has_a_bound(n_features: int) -> None:
    chances = np.random.default_rng(n_features).beta(3, 3, size=(n_features, 2))
    model = tb.NaiveBayes([0.4, 0.6], [np.stack([both, 1 - both], axis=1) for both in chances])
    stopped = tb.trim(tb.BayesianClassifier(model, positive="0"), 4, time_limit=1e-6)
    assert len(stopped.features) == 4
    assert stopped.agreement_interval[0] <= stopped.upper_bound < 1.0
    assert not stopped.optimal


@pytest.mark.parametrize("limits", [{"evaluation_limit": 1}, {"time_limit": 1e-6}])
@pytest.mark.parametrize("classifier", [naive_bayes(20), ten_features()])
def test_a_hurried_search_is_continued_exactly(classifier: tb.BayesianClassifier, limits: dict[str, Any]) -> None:
    stopped = tb.trim(classifier, 3, **limits)
    assert not stopped.optimal
    assert stopped.agreement <= stopped.upper_bound < 1.0 - 1e-6
    finished = stopped.resume()
    assert finished.optimal
    assert finished.agreement == pytest.approx(tb.trim(classifier, 3).agreement, abs=1e-12)
    assert finished.agreement <= stopped.upper_bound + 1e-12


@pytest.mark.parametrize(
    ("classifier", "engine"), [(naive_bayes(10), "dense"), (naive_bayes(10), "log_odds"), (ten_features(1), "auto")]
)
def test_progress_tells_incumbent_and_bound(
    classifier: tb.BayesianClassifier, engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimbench.trimming.limits._PAUSE", 0.0)
    told: list[Progress] = []
    found = tb.trim(classifier, 4, engine=engine, progress=told.append)
    assert told[-1].n_evaluations == found.n_evaluations
    assert told[-1].agreement == pytest.approx(found.agreement, abs=1e-12)
    assert told[-1].upper_bound == pytest.approx(found.agreement, abs=1e-12)
    for attribute in ("agreement", "n_evaluations", "seconds"):
        values = [getattr(now, attribute) for now in told]
        assert values == sorted(values)
    assert all(now.agreement <= now.upper_bound + 1e-12 for now in told)


def test_progress_is_told_of_networks_and_of_large_classifiers() -> None:
    for classifier in (general(), naive_bayes(50)):
        told: list[Progress] = []
        found = tb.trim(classifier, 2, evaluation_limit=200, progress=told.append)
        assert told[-1].upper_bound == pytest.approx(found.upper_bound)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.with_threshold(0.6), "for threshold 0.4 instead of 0.6"),
        (lambda c: c.with_features(c.features[:3], 0.4), "for features"),
        (lambda c: naive_bayes(4, seed=1), "another model"),
    ],
)
def test_an_engine_of_another_classifier_is_refused(change: Any, message: str) -> None:
    classifier = naive_bayes(4)
    engine = make_engine(classifier)
    with pytest.raises(ValueError, match=f"engine must be made for this classifier, got one for .*{message}|{message}"):
        tb.trim(change(classifier), 2, engine=engine)
    same = tb.BayesianClassifier(tb.NaiveBayes(classifier.prior, classifier.tables), positive="0", threshold=0.4)
    assert tb.trim(same, 2, engine=engine).features == tb.trim(classifier, 2).features


def test_an_engine_of_another_network_is_refused() -> None:
    engine = make_engine(general())
    with pytest.raises(ValueError, match="engine must be made for this classifier"):
        tb.trim(general(seed=1), 2, engine=engine)


def test_a_stopped_trimming_can_be_pickled() -> None:
    stopped = tb.trim(naive_bayes(10), 4, evaluation_limit=3)
    again = pickle.loads(pickle.dumps(stopped))
    assert (again.features, again.upper_bound) == (stopped.features, stopped.upper_bound)
    assert again.resume() is again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": -1}, "budget must be a number >= 0, got -1"),
        ({"budget": math.nan}, "budget must be a number >= 0, got nan"),
        ({"budget": "3"}, "budget must be a number >= 0, got '3'"),
        ({"costs": [1, -2, 1, 1]}, "costs must be finite numbers >= 0, got -2 for 'x1'"),
        ({"costs": [1, math.inf, 1, 1]}, r"costs must be finite numbers >= 0, got inf for 'x1'.*named in forbidden"),
        ({"costs": [1, 1e308, 1, 1]}, r"costs must be at most 1e\+300, .* got 1e\+308 for 'x1'"),
        ({"costs": [1, 10**400, 1, 1]}, r"costs must be at most 1e\+300, .* got 1000"),
        ({"costs": pd.DataFrame({"cost": [1, 2]})}, r"costs must be .*, got a DataFrame of shape \(2, 1\); take one"),
        ({"costs": [1]}, "costs must have 4 entries, one for each feature, got 1"),
        ({"costs": {"x0": 1}}, "costs must have an entry for every feature, got none for 'x1'"),
        ({"costs": {"x0": 1, "y": 1}}, "costs must be given for names among .*, got 'y'"),
        ({"costs": 5}, "costs must be a mapping or a Series .*, or a sequence of costs, got 5"),
        ({"costs": ["1", 2, 1, 1]}, "costs must be finite numbers >= 0, got '1' for 'x0'"),
        ({"costs": set(range(1000))}, "costs must be a mapping .* got {0, 1"),
        ({"engine": "sdd2"}, "engine must be one of .* got 'sdd2'"),
        ({"engine": None}, "engine must be one of"),
        ({"evaluation_limit": 2.5}, r"evaluation_limit must be a whole number, 1 or more, or None, got 2\.5"),
        ({"evaluation_limit": 0}, "evaluation_limit must be a whole number, 1 or more, or None, got 0"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds or None, got 0"),
        ({"time_limit": "5"}, "time_limit must be a positive number of seconds or None, got '5'"),
        ({"time_limit": True}, "time_limit must be a positive number"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads, 1 or more, got 0"),
        ({"progress": 3}, "progress must be a function that takes a Progress, or None, got 3"),
        ({"groups": ["x0"]}, "groups must be a mapping from the name of a group"),
        ({"groups": {"g": []}}, r"groups\['g'\] must hold at least one feature"),
        ({"groups": {"x1": ["x0"]}}, "groups must not be named after a feature outside of it, got 'x1'"),
        ({"groups": {"g": ["x0"], "h": ["x0"]}}, "groups must not share features, got 'x0' in 'g' and 'h'"),
        ({"groups": {"g": ["x0"]}, "costs": [1, 2]}, "costs must be a mapping by name, or None, where"),
        ({"groups": {1: ["x0"], "1": ["x1"]}}, "groups must have different names"),
        ({"required": 5}, "required must be a sequence of names, got 5"),
        ({"required": ["y"]}, "required must be among .*, got 'y'"),
        ({"required": ["x0"], "forbidden": ["x0"]}, "required and forbidden must not share a feature, got 'x0'"),
        ({"required": ["x0", "x1", "x2"]}, "budget must be at least the cost of what is required, 3, got 2"),
        ({"forbidden": "x0"}, r"forbidden must be a sequence of names, got the string 'x0'; write \['x0'\]"),
    ],
)
def test_bad_limits_and_choices_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        tb.trim(naive_bayes(4), **({"budget": 2} | arguments))  # type: ignore[call-overload]
    assert len(str(caught.value)) < 500


def test_costs_may_be_a_series() -> None:
    classifier = naive_bayes(3)
    costs = pd.Series({"x2": 3.0, "x0": 1.0, "x1": 2.0})
    assert tb.trim(classifier, 3, costs).features == tb.trim(classifier, 3, [1.0, 2.0, 3.0]).features
    with pytest.raises(ValueError, match="costs must have each name once"):
        tb.trim(classifier, 3, pd.Series([1.0, 1.0], index=["x0", "x0"]))


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
