"""Which question is worth most, compared with the table of all rows."""

import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.acquisition import brute_force as twin
from tests.acquisition import models


def partial_codes(classifier: Any, rng: Any, n_rows: Any = 12) -> Any:
    codes = np.stack([rng.integers(-1, size, n_rows) for size in classifier.cardinalities], axis=1)
    codes[0] = -1
    return codes


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("seed", range(3))
def test_gains_are_those_of_the_table_of_all_rows(kind: Any, seed: Any) -> None:
    classifier = models.classifiers(seed)[kind]
    table = twin.joint_table(classifier)
    codes = partial_codes(classifier, np.random.default_rng(seed))
    found = classifier.next_feature(twin.frame_of(classifier, codes))
    assert found.questions == classifier.features
    for row, row_codes in enumerate(codes):
        gains = [twin.gain(table, row_codes, [j]) if code < 0 else 0.0 for j, code in enumerate(row_codes)]
        np.testing.assert_allclose(found.gains[row], gains, atol=1e-12)
        if (row_codes >= 0).all():
            assert found.feature[row] is None
            assert found.gain[row] == 0
        else:
            chosen = classifier.features.index(found.feature[row])
            assert row_codes[chosen] < 0
            assert gains[chosen] == pytest.approx(max(gains), abs=1e-12)
            assert found.gain[row] == found.gains[row, chosen]


@pytest.mark.parametrize("kind", range(5))
def test_gains_of_groups_are_those_of_their_joint_values(kind: Any) -> None:
    classifier = models.classifiers(7)[kind]
    table = twin.joint_table(classifier)
    codes = partial_codes(classifier, np.random.default_rng(0))
    members = list(classifier.features[:2])
    found = classifier.next_feature(twin.frame_of(classifier, codes), groups={"both": members})
    assert found.questions == ("both", *classifier.features[2:])
    for row, row_codes in enumerate(codes):
        unknown = [j for j in (0, 1) if row_codes[j] < 0]
        expected = twin.gain(table, row_codes, unknown) if unknown else 0.0
        assert found.gains[row, 0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", range(5))
def test_two_steps_count_the_best_question_after_each_answer(kind: Any) -> None:
    classifier = models.classifiers(3)[kind]
    table = twin.joint_table(classifier)
    codes = partial_codes(classifier, np.random.default_rng(1))
    found = classifier.next_feature(twin.frame_of(classifier, codes), look_ahead=2)
    for row, row_codes in enumerate(codes):
        left = [j for j, code in enumerate(row_codes) if code < 0]
        if len(left) > 1:  # of two features with the same price for two steps
            totals = {classifier.features[j]: twin.two_steps(table, row_codes, j) for j in left}
            assert totals[found.feature[row]] == pytest.approx(max(totals.values()), abs=1e-9)


def test_two_steps_find_a_feature_that_only_says_which_other_to_ask() -> None:
    # The context says which of two copies of the class is not noise.
    states = [(context, label) for label in (0, 1) for context in (0, 1)]
    context = [[1.0, 0.0] if c == 0 else [0.0, 1.0] for c, _ in states]
    copies = [[[0.5, 0.5] if c != k else np.eye(2)[label] for c, label in states] for k in (0, 1)]
    parts = tb.NaiveBayes([0.25] * 4, [context, *copies], feature_names=["context", "one", "two"], class_variable="s")
    classifier = tb.BayesianClassifier(tb.NaiveBayesMixture(parts, [f"y{label}" for _, label in states]))
    nothing = pd.DataFrame([[None] * 3], columns=list(classifier.features), dtype=object)
    assert classifier.next_feature(nothing).feature[0] == "one"
    assert classifier.next_feature(nothing).gains[0, 0] == pytest.approx(0, abs=1e-12)
    assert classifier.next_feature(nothing, look_ahead=2).feature[0] == "context"


def conformant(rng: Any, n_components: Any = 1, real: Any = ()) -> Any:
    rows = rng.integers(0, 2, size=(60, 6)).astype(float)
    rows[:, 3:6] = np.eye(3)[rng.integers(0, 3, 60)]
    if real:
        rows[:, 2] = rng.normal(size=60) + rows[:, 0]
    labels = rng.integers(0, 3, 60)
    model = LogisticRegression(C=5.0).fit(rows, labels)
    how = {"real": list(real), "n_components": n_components, "covariance": "diagonal"}
    return tb.conform(model, rows, categorical=[[3, 4, 5]], **how), rows


@pytest.mark.parametrize("n_components", [1, 3])
def test_gains_of_conformant_models_are_those_of_their_own_predictions(n_components: Any) -> None:
    rng = np.random.default_rng(n_components)
    model, rows = conformant(rng, n_components)
    rows = np.vstack([np.full((1, 6), np.nan), rows[:10]])
    hidden = rng.random((11, 4)) < 0.6
    rows[np.repeat(hidden, [1, 1, 1, 3], axis=1)] = np.nan
    found = model.next_feature(rows)
    entropies = lambda table: -(p := model.predict_proba(table), (p * np.log(p)).sum(axis=1))[1]  # noqa: E731
    for feature, values in enumerate([[[0], [1]], [[0], [1]], [[0], [1]], np.eye(3)]):
        columns = list(model.layout.features[feature])
        expected, chances = np.zeros(11), np.zeros(11)
        for value in values:
            answered = rows.copy()
            answered[:, columns] = value
            chance = np.exp(model.log_likelihood(answered) - model.log_likelihood(rows))
            expected, chances = expected + chance * entropies(answered), chances + chance
        known = ~np.isnan(rows[:, columns[0]])
        np.testing.assert_allclose(chances[~known], 1)
        np.testing.assert_allclose(found.gains[:, feature], np.where(known, 0, entropies(rows) - expected), atol=1e-10)


def test_gain_of_a_number_is_nearly_that_of_its_density() -> None:
    model, _ = conformant(np.random.default_rng(0), 2, real=[2])
    row = np.full((1, 6), np.nan)
    found = model.next_feature(row)
    grid = np.linspace(-12, 12, 4001)
    answered = np.repeat(row, len(grid), axis=0)
    answered[:, 2] = grid
    density = np.exp(model.log_likelihood(answered)) * (grid[1] - grid[0])
    chances = model.predict_proba(answered)
    assert density.sum() == pytest.approx(1, abs=1e-6)
    prior = model.predict_proba(row)
    gain = -(prior * np.log(prior)).sum() + density @ (chances * np.log(chances)).sum(axis=1)
    assert found.gains[0, 2] <= gain + 1e-9  # the bin says less than the number
    assert found.gains[0, 2] == pytest.approx(gain, rel=0.02)


@for_all(st.integers(0, 10_000), st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_information_obeys_the_chain_rule_and_is_never_negative(seed: Any, kind: Any) -> None:
    classifier = models.classifiers(seed)[kind]
    first, second = classifier.features[:2]
    nothing = twin.frame_of(classifier, np.full((1, classifier.n_features), -1))
    pair = classifier.next_feature(nothing, groups={"pair": [first, second]}).gains[0, 0]
    single = classifier.next_feature(nothing)
    assert (single.gains >= -1e-12).all()
    assert pair >= max(single.gains[0, :2]) - 1e-12
    table = twin.joint_table(classifier)
    codes = [code for _, code in twin.outcomes(table, (-1,) * classifier.n_features, [0])]
    chances = [chance for chance, _ in twin.outcomes(table, (-1,) * classifier.n_features, [0])]
    after = classifier.next_feature(twin.frame_of(classifier, np.array(codes))).gains[:, 1]
    assert pair == pytest.approx(single.gains[0, 0] + np.dot(chances, after), abs=1e-10)


def test_costs_weigh_gains() -> None:
    classifier = models.classifiers(0)[1]
    nothing = twin.frame_of(classifier, np.full((1, 4), -1))
    gains = classifier.next_feature(nothing).gains[0]
    worst = int(gains.argmin())
    costs = dict.fromkeys(classifier.features, 1.0)
    costs[classifier.features[worst]] = float(gains[worst] / gains.max() / 2)
    assert classifier.next_feature(nothing, costs).feature[0] == classifier.features[worst]
    free = {name: float(place != worst) for place, name in enumerate(classifier.features)}
    assert classifier.next_feature(nothing, free).feature[0] == classifier.features[worst]


@pytest.mark.parametrize("kind", range(5))
def test_stability_gains_are_near_those_of_all_completions(kind: Any) -> None:
    classifier = models.classifiers(11)[kind]
    table = twin.joint_table(classifier)
    nothing = (-1,) * classifier.n_features
    whole = np.stack([given_part.ravel() for given_part in table])
    decisions = classifier._asker().decided(whole)

    def stability(codes: Any) -> Any:
        part = twin.given(np.stack([table.sum(axis=0), *table]), codes)  # the first axis: all classes together
        index = tuple(slice(None) if code < 0 else slice(code, code + 1) for code in codes)
        of_rows = part[0] / part[0].sum()
        decided = classifier._asker().decided(part[1:].reshape(len(table), -1).sum(axis=1, keepdims=True))[0]
        return float(of_rows[decisions.reshape(table.shape[1:])[index] == decided].sum())

    found = classifier.next_feature(twin.frame_of(classifier, np.array([nothing])), objective="stability")
    for feature in range(classifier.n_features):
        after = sum(c * stability(codes) for c, codes in twin.outcomes(table, nothing, [feature]) if c > 0)
        assert found.gains[0, feature] == pytest.approx(after - stability(nothing), abs=0.08)  # of 400 draws


def test_stability_by_draws_is_near_the_exact_same_decision_probability() -> None:
    model, rows = conformant(np.random.default_rng(3), 2)
    rows = rows[:8].copy()
    rows[:, [0, 2]] = np.nan
    drawn = model._asker().stability(rows)
    np.testing.assert_allclose(drawn, model.same_decision_probability(rows), atol=0.06)  # of 400 draws


def test_large_groups_count_with_the_features_that_tell_most() -> None:
    rng = np.random.default_rng(5)
    classifier = tb.BayesianClassifier(models.naive_bayes(rng, (2,) * 14))
    nothing = twin.frame_of(classifier, np.full((1, 14), -1))
    single = classifier.next_feature(nothing).gains[0]
    group = classifier.next_feature(nothing, groups={"all": list(classifier.features)}).gains[0, 0]
    table = twin.joint_table(classifier)
    assert single.max() < group <= twin.gain(table, (-1,) * 14, range(14)) + 1e-12


def test_names_and_positions_of_features() -> None:
    model, rows = conformant(np.random.default_rng(0))
    rows[:, 0] = np.nan
    assert model.next_feature(rows[:2]).feature.tolist() == [0, 0]
    assert model.next_feature(rows[:1], groups={"pair": [0, 1]}).feature.tolist() == ["pair"]
    named = model.with_column_names(["a", "b", "c", "d_x", "d_y", "d_z"])
    assert named.next_feature(rows[:1]).questions == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "luck"}, "objective must be one of information, stability, got 'luck'"),
        ({"look_ahead": 3}, "look_ahead must be 1 or 2 steps, got '3'"),
        ({"look_ahead": True}, "look_ahead must be 1 or 2 steps, got 'True'"),
        ({"costs": {"x0": 1}}, "costs must have an entry for every feature"),
        ({"costs": {"x0": 1, "x1": -1, "x2": 1}}, "costs must be finite numbers >= 0, got -1 for 'x1'"),
        ({"costs": {"x0": 1, "x1": np.inf, "x2": 1}}, "a feature that cannot be asked for gets the cost 1e300"),
        ({"groups": {"g": ["x0", "q"]}}, "must be among"),
        ({"groups": {"g": ["x0"], "h": ["x0"]}}, "groups must not share features"),
    ],
)
def test_bad_arguments_of_questions(arguments: Any, message: Any) -> None:
    classifier = models.classifiers(0)[0]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        classifier.next_feature(twin.frame_of(classifier, np.full((1, 3), -1)), **arguments)
    assert len(str(error.value)) < 500


def test_bad_rows_of_questions() -> None:
    classifier = models.classifiers(0)[0]
    with pytest.raises(ValueError, match="must be a DataFrame with a column for each feature"):
        classifier.next_feature([[0, 1, 0]])
    with pytest.raises(ValueError, match="one column for each of the 3 features"):
        classifier.next_feature(pd.DataFrame({"x0": ["0"]}))
    frame = twin.frame_of(classifier, np.full((2, 3), -1))
    frame.loc[0, "x1"] = "seven"
    with pytest.raises(ValueError, match="seven"):
        classifier.next_feature(frame)


def test_impossible_rows_are_asked_like_rows_without_features() -> None:
    model = tb.NaiveBayes([0.5, 0.5], [[[1.0, 0.0], [1.0, 0.0]], [[0.9, 0.1], [0.2, 0.8]]])
    network = model.to_network()
    for classifier in (tb.BayesianClassifier(model), tb.BayesianClassifier(network, target="class")):
        rows = pd.DataFrame({"x0": ["1", None], "x1": [None, None]}, dtype=object)
        found = classifier.next_feature(rows)
        assert found.feature.tolist() == ["x1", "x1"]
        np.testing.assert_allclose(found.gains[0, 1], found.gains[1, 1])


def test_no_rows() -> None:
    classifier = models.classifiers(0)[0]
    found = classifier.next_feature(twin.frame_of(classifier, np.empty((0, 3), dtype=int)))
    assert found.feature.shape == (0,)
    assert found.gains.shape == (0, 3)


def test_a_model_asks_by_its_names_after_it_was_named_again() -> None:
    model, rows = conformant(np.random.default_rng(0))
    rows[:, 0] = np.nan
    first = model.next_feature(rows[:1])
    named = model.with_column_names(["a", "b", "c", "d_x", "d_y", "d_z"])
    assert named.next_feature(rows[:1]).feature.tolist() == ["a"]
    assert model.next_feature(rows[:1]).feature.tolist() == first.feature.tolist() == [0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(named)).next_feature(rows[:1]).gains, first.gains)
