"""Searches that are stopped, continued and hurried."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.trimming.engines.log_odds import LogOddsEngine


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
        (lambda: tb.trim_at_thresholds(classifier, 2, 0.5), "thresholds must be a sequence of numbers"),  # type: ignore[arg-type]
        (lambda: tb.trim(classifier, 2, required=5), "required must be a sequence of names, got 5"),  # type: ignore[call-overload]
        (lambda: tb.trim(classifier, 2, engine=None), "engine must be one of"),  # type: ignore[call-overload]
        (lambda: tb.trim(classifier, 2, set(range(1000))), "costs must be a mapping .* got {0, 1"),  # type: ignore[call-overload]
        (lambda: tb.trim(classifier, 2, groups={1: ["x0"], "1": ["x1"]}), "groups must have different names"),  # type: ignore[call-overload]
        (lambda: tb.expected_agreement_interval(classifier, [], 0.5, n_points=-1), "n_points must be"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert len(str(caught.value)) < 500


def test_a_model_is_no_classifier() -> None:
    model = random_classifier(3).model
    for call in (
        lambda: tb.trimming_curve(model, [2]),  # type: ignore[arg-type]
        lambda: tb.expected_agreement(model, ["x0"], 0.5),  # type: ignore[arg-type]
        lambda: tb.select_by_information_gain(model, 2),  # type: ignore[arg-type]
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
