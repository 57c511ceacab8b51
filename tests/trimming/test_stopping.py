"""Searches that are stopped, continued and hurried."""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench._numba import _loading, _stop_clock_while_compiling, clock
from trimbench.trimming.costs import checked_choice
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.limits import Limits


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
