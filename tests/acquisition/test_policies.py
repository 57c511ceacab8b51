"""Whole policies of asking, compared with asking one question after the other."""

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.acquisition import brute_force as twin
from tests.acquisition import models
from tests.acquisition.test_questions import conformant
from trimbench.acquisition.optimal import accuracy_bound, greedy_policy, optimal_policy


def asked_one_by_one(classifier: Any, nothing: Any, answers: Any, costs: Any, budget: Any) -> Any:
    """Return the questions to each row by one call of next_feature after the other."""
    orders = []
    for row in range(len(nothing)):
        known, spent, order = nothing.iloc[[row]].copy(), 0.0, []
        while True:
            found = classifier.next_feature(known, costs)
            open_now = [q for q in found.questions if known[q].isna().all() and spent + costs[q] <= budget + 1e-9]
            if not open_now:
                break
            rates = {q: found.gains[0, found.questions.index(q)] / costs[q] for q in open_now}
            question = max(open_now, key=lambda q: rates[q])
            order.append(question)
            spent += costs[question]
            known[question] = answers[question].iloc[row]
        orders.append(tuple(order))
    return orders


@given(st.integers(0, 10_000), st.sampled_from([0, 1, 2]), st.sampled_from([0.5, 1.5, 2.0, 9.0]))
@settings(max_examples=15, deadline=None)
def test_policies_ask_as_next_feature_says_within_the_budget(seed: Any, kind: Any, budget: Any) -> None:
    rng = np.random.default_rng(seed)
    classifier = models.classifiers(seed)[kind]
    answers = twin.frame_of(classifier, twin.all_rows(classifier)[rng.integers(0, 12, 4)])
    nothing = twin.frame_of(classifier, np.full((4, classifier.n_features), -1))
    costs = {name: float(cost) for name, cost in zip(classifier.features, rng.uniform(0.3, 1.2, 9), strict=False)}
    found = classifier.acquire(nothing, answers, costs, budget=budget)
    assert list(found.asked) == asked_one_by_one(classifier, nothing, answers, costs, budget)
    assert (found.costs <= budget + 1e-9).all()
    for row, asked in enumerate(found.asked):
        assert found.costs[row] == pytest.approx(sum(costs[name] for name in asked))
        assert found.n_visits[row] == len(asked)
        assert found.rows.notna().iloc[row].sum() == len(asked)
        assert all(found.rows[name].iloc[row] == answers[name].iloc[row] for name in asked)


@pytest.mark.parametrize("seed", range(4))
def test_policy_has_the_expected_accuracy_of_the_table_of_partial_rows(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    model = models.naive_bayes(rng, (2, 2, 3, 2), n_classes=2)
    costs = dict(zip(model.feature_names, [1.0, 0.5, 1.0, 2.0], strict=True))
    classifier = tb.BayesianClassifier(model)
    codes = twin.all_rows(classifier)
    answers, chances = twin.frame_of(classifier, codes), twin.joint_table(classifier).reshape(2, -1)
    nothing = twin.frame_of(classifier, np.full(codes.shape, -1))
    found = classifier.acquire(nothing, answers, costs, budget=2)
    policy = greedy_policy(model, costs, budget=2)
    right = chances[[classifier.class_names.index(name) for name in found.predictions], np.arange(len(codes))].sum()
    assert right == pytest.approx(policy.accuracy, abs=1e-12)
    assert found.costs @ chances.sum(axis=0) == pytest.approx(policy.cost, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_optimal_policies_are_those_of_the_recursion(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    model = models.naive_bayes(rng, (2, 3, 2, 2), n_classes=3)
    costs, budget = rng.integers(1, 4, 4).astype(float), float(rng.integers(2, 7))
    table = twin.joint_table(tb.BayesianClassifier(model))
    optimal = optimal_policy(model, costs.tolist(), budget=budget)
    assert optimal.accuracy == pytest.approx(twin.best_accuracy(table, tuple(costs), budget, 0.0), abs=1e-12)
    priced = optimal_policy(model, costs.tolist(), price=0.02)
    total = priced.accuracy - 0.02 * priced.cost
    assert total == pytest.approx(twin.best_accuracy(table, tuple(costs), math.inf, 0.02), abs=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_no_policy_beats_the_optimal_one_nor_that_the_bound(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    model = models.naive_bayes(rng, (2,) * 7, n_classes=2)
    optimal, greedy = optimal_policy(model, budget=3), greedy_policy(model, budget=3)
    bound = accuracy_bound(model)
    assert bound.standard_error == 0
    assert greedy.accuracy <= optimal.accuracy + 1e-12 <= bound.accuracy + 2e-12
    assert optimal_policy(model).accuracy == pytest.approx(bound.accuracy, abs=1e-12)
    priced, thrifty = optimal_policy(model, price=0.01), greedy_policy(model, price=0.01)
    assert thrifty.accuracy - 0.01 * thrifty.cost <= priced.accuracy - 0.01 * priced.cost + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_greedy_policy_asks_what_next_feature_says(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    model = models.naive_bayes(rng, (2,) * 8)
    classifier = tb.BayesianClassifier(model)
    codes = rng.integers(-1, 2, size=(40, 8))
    asked = classifier.next_feature(twin.frame_of(classifier, codes)).feature
    assert greedy_policy(model).next_feature(codes).tolist() == asked.tolist()


def test_bound_by_draws_is_near_that_of_all_rows() -> None:
    model = models.naive_bayes(np.random.default_rng(0), (2,) * 12)
    wide = models.naive_bayes(np.random.default_rng(0), (2,) * 30)
    exact = accuracy_bound(model)
    rows = model.encode(model.sample(40_000, np.random.default_rng(1))[list(model.feature_names)])
    shares = np.exp(model.log_joint(rows))
    assert (shares.max(axis=1) / shares.sum(axis=1)).mean() == pytest.approx(exact.accuracy, abs=0.01)
    bound = accuracy_bound(wide, n_draws=20_000)
    assert 0 < bound.standard_error < 0.003
    few = models.naive_bayes(np.random.default_rng(0), (2,) * 30).restricted(wide.feature_names[:12])
    assert bound.accuracy + 5 * bound.standard_error >= accuracy_bound(few).accuracy


def test_answers_of_a_function_are_those_of_a_table() -> None:
    model, rows = conformant(np.random.default_rng(1), 2)
    nothing = np.full((20, 6), np.nan)
    calls = []

    def ask(places: Any, feature: Any) -> Any:
        calls.append((places.tolist(), feature))
        return rows[places][:, list(model.layout.features[feature])]

    of_function = model.acquire(nothing, ask, budget=2)
    of_table = model.acquire(nothing, rows[:20], budget=2)
    assert of_function.asked == of_table.asked
    np.testing.assert_array_equal(of_function.rows, of_table.rows)
    np.testing.assert_array_equal(of_function.predictions, model.predict(of_table.rows))
    np.testing.assert_allclose(of_function.probabilities, model.predict_proba(of_table.rows))
    assert sum(len(places) for places, _ in calls) == 40
    assert np.isnan(nothing).all()


def test_what_cannot_be_had_is_paid_for_once() -> None:
    model, _ = conformant(np.random.default_rng(1))
    found = model.acquire(
        np.full((1, 6), np.nan), lambda rows, feature: np.full((1, 3 if feature == 3 else 1), np.nan), budget=9
    )
    assert sorted(found.asked[0]) == [0, 1, 2, 3]
    assert found.costs.tolist() == [4]


def test_known_values_are_neither_asked_for_nor_changed() -> None:
    model, rows = conformant(np.random.default_rng(2))
    given_rows = rows[:5].copy()
    given_rows[:, 1] = np.nan
    found = model.acquire(given_rows, 1 - rows[:5], budget=9)
    assert found.asked == ((1,),) * 5
    np.testing.assert_array_equal(np.delete(found.rows, 1, axis=1), np.delete(rows[:5], 1, axis=1))
    group = model.acquire(given_rows, 1 - rows[:5], groups={"pair": [0, 1]}, budget=9)
    assert group.asked == (("pair",),) * 5
    np.testing.assert_array_equal(group.rows[:, 0], rows[:5, 0])
    assert model.acquire(rows[:5], rows[:5], budget=9).asked == ((),) * 5


def test_asking_stops_where_the_decision_is_stable() -> None:
    classifier = tb.BayesianClassifier(models.naive_bayes(np.random.default_rng(4), (2,) * 8))
    codes = twin.all_rows(classifier)[::7]
    nothing, answers = (twin.frame_of(classifier, part) for part in (np.full(codes.shape, -1), codes))
    found = classifier.acquire(nothing, answers, stop_at=0.9)
    assert found.stability is not None
    assert (found.stability >= 0.9).all()
    assert 0 < found.costs.mean() < 8
    lenient = classifier.acquire(nothing, answers, stop_at=0.7)
    assert lenient.costs.mean() < found.costs.mean()
    whole = classifier.acquire(nothing, answers, stop_at=1.0)
    assert (whole.predictions == classifier.predict(answers)).all()


def test_asking_stops_where_answers_gain_too_little() -> None:
    classifier = tb.BayesianClassifier(models.naive_bayes(np.random.default_rng(4), (2,) * 6))
    codes = twin.all_rows(classifier)
    nothing, answers = (twin.frame_of(classifier, part) for part in (np.full(codes.shape, -1), codes))
    found = classifier.acquire(nothing, answers, min_gain=0.01)
    assert (classifier.next_feature(found.rows).gain < 0.01).all()
    assert 0 < found.costs.mean() < 6
    assert classifier.acquire(nothing, answers, min_gain=10).costs.sum() == 0


def test_a_fee_puts_questions_into_one_visit() -> None:
    classifier = tb.BayesianClassifier(models.naive_bayes(np.random.default_rng(6), (2,) * 6))
    codes = twin.all_rows(classifier)[::5]
    nothing, answers = (twin.frame_of(classifier, part) for part in (np.full(codes.shape, -1), codes))
    single = classifier.acquire(nothing, answers, budget=4)
    found = classifier.acquire(nothing, answers, budget=8, fee=2)
    assert (found.costs <= 8).all()
    for row, asked in enumerate(found.asked):
        assert found.costs[row] == 2 * found.n_visits[row] + len(asked)
        assert len(set(asked)) == len(asked)
    assert max(map(len, found.asked)) > found.n_visits.max()
    assert (single.n_visits == [len(asked) for asked in single.asked]).all()
    # The first visit: the set of questions that grows while the joint gain for each unit of cost rises.
    table = twin.joint_table(classifier)
    batch: list[int] = []
    rate = -1.0
    while len(batch) < 6:
        gains = {j: twin.gain(table, (-1,) * 6, [*batch, j]) / (3 + len(batch)) for j in set(range(6)) - set(batch)}
        best = max(gains, key=gains.get)
        if gains[best] <= rate:
            break
        batch, rate = [*batch, best], gains[best]
    visited = classifier.acquire(nothing.iloc[:1], answers.iloc[:1], budget=2 + len(batch), fee=2)
    assert visited.asked[0][: len(batch)] == tuple(classifier.features[j] for j in batch)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of budget, stop_at and min_gain must say when to stop, got none"),
        ({"budget": -1}, "budget must be a number, 0 or more, got '-1'"),
        ({"budget": "all"}, "budget must be a number, 0 or more, got 'all'"),
        ({"stop_at": 1.5}, "stop_at must be the stability that is enough, a probability above 0 and up to 1"),
        ({"min_gain": -0.1}, "min_gain must be a gain for each unit of cost, 0 or more, got '-0.1'"),
        ({"budget": 1, "fee": -2}, "fee must be a number, 0 or more, got '-2'"),
        ({"budget": 1, "objective": "x"}, "objective must be one of"),
    ],
)
def test_bad_arguments_of_policies(arguments: Any, message: Any) -> None:
    model, rows = conformant(np.random.default_rng(0))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        model.acquire(np.full((2, 6), np.nan), rows[:2], **arguments)
    assert len(str(error.value)) < 500


def test_bad_answers() -> None:
    model, rows = conformant(np.random.default_rng(0))
    nothing = np.full((2, 6), np.nan)
    with pytest.raises(ValueError, match="ask must answer for each of the 2 rows of X, got 3 rows"):
        model.acquire(nothing, rows[:3], budget=1)
    with pytest.raises(ValueError, match=r"ask must return values of shape \(2, \d\) for 2 rows"):
        model.acquire(nothing, lambda places, feature: np.zeros(7), budget=1)
    with pytest.raises(ValueError, match="ask must return numbers for column"):
        model.acquire(nothing, lambda places, feature: np.full((2, 3 if feature == 3 else 1), "high"), budget=1)


def test_bad_arguments_of_optimal_policies() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="model must be a NaiveBayes, got str"):
        optimal_policy("model", budget=1)
    with pytest.raises(ValueError, match="at most 1,048,576 partial rows, 12 binary features, got 1,594,323"):
        optimal_policy(models.naive_bayes(rng, (2,) * 13), budget=1)
    model = models.naive_bayes(rng, (2, 2))
    with pytest.raises(ValueError, match="budget must be a number, 0 or more"):
        greedy_policy(model, budget=-1)
    with pytest.raises(ValueError, match="price must be a number, 0 or more"):
        optimal_policy(model, price=-1)
    with pytest.raises(ValueError, match="at most 40 features for a bound, got 41"):
        accuracy_bound(models.naive_bayes(rng, (2,) * 41))
    with pytest.raises(ValueError, match="n_draws must be a whole number, 2 or more"):
        accuracy_bound(model, n_draws=1)


def test_frames_keep_the_types_of_their_columns() -> None:
    classifier = tb.BayesianClassifier(models.naive_bayes(np.random.default_rng(0), (2, 2)))
    rows = pd.DataFrame({"x0": pd.array([None, None], dtype="Int64"), "x1": pd.Categorical([None, "1"], ["0", "1"])})
    answers = pd.DataFrame({"x0": pd.array([1, 0], dtype="Int64"), "x1": pd.Categorical(["0", "1"], ["0", "1"])})
    found = classifier.acquire(rows, answers, budget=2)
    assert found.rows.dtypes.tolist() == rows.dtypes.tolist()
    pd.testing.assert_frame_equal(found.rows, answers)
    assert rows["x0"].isna().all()
