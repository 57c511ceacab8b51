"""Estimators that are asked what to ask next, on raw tables."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import trimbench as tb
from trimbench.estimators import ExpectedClassifier, NaiveConformantClassifier, TrimmedClassifier


@pytest.fixture(scope="module")
def mixed() -> Any:
    rng = np.random.default_rng(0)
    age, town = rng.normal(50, 12, 300).round(), rng.choice(["a", "b", "c"], 300)
    smoker, noise = rng.integers(0, 2, 300), rng.normal(size=300)
    y = np.where(age + 15 * smoker + 10 * (town == "a") + rng.normal(0, 5, 300) > 62, "ill", "well")
    return pd.DataFrame({"age": age, "town": town, "smoker": smoker, "noise": noise}), y


def hidden(X: Any) -> Any:
    return pd.DataFrame({name: pd.array([None] * len(X), dtype=object) for name in X}, index=X.index)


@pytest.mark.parametrize(
    "classifier",
    [
        NaiveConformantClassifier(n_components=1, covariance="diagonal"),
        NaiveConformantClassifier(n_components=3, covariance="diagonal"),
        TrimmedClassifier(budget=4),
        TrimmedClassifier(budget=4, density="tree_augmented"),
    ],
)
@pytest.mark.parametrize("objective", ["information", "stability"])
def test_exact_estimators_ask_for_what_matters(mixed: Any, classifier: Any, objective: Any) -> None:
    X, y = mixed
    classifier.fit(X, y)
    rows = X.iloc[:40]
    found = classifier.acquire(hidden(rows), rows, budget=2, objective=objective)
    asked = {name for names in found.asked for name in names}
    assert "noise" not in asked
    assert asked <= set(X)
    assert (found.costs <= 2).all()
    assert (found.predictions == y[:40]).mean() > 0.7
    np.testing.assert_array_equal(found.predictions, classifier.classes_[found.probabilities.argmax(axis=1)])
    whole = classifier.acquire(hidden(rows), rows, budget=9)
    np.testing.assert_array_equal(whole.predictions, classifier.predict(rows))
    np.testing.assert_allclose(whole.probabilities, classifier.predict_proba(rows), atol=1e-9)


def test_conformant_gains_of_raw_columns_are_those_of_the_model(mixed: Any) -> None:
    X, y = mixed
    classifier = NaiveConformantClassifier(n_components=2, covariance="diagonal").fit(X, y)
    nothing = hidden(X.iloc[:1])
    of_model = classifier.model_.next_feature(np.full((1, classifier.model_.layout.n_columns), np.nan))
    found = classifier.next_feature(nothing)
    assert found.questions == ("age", "town", "smoker", "noise")
    np.testing.assert_allclose(found.gains, of_model.gains)


def test_columns_by_position_and_groups(mixed: Any) -> None:
    X, y = mixed
    classifier = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
    nothing = hidden(X.iloc[:3])
    found = classifier.next_feature(nothing, groups={"visit": [0, "smoker"]}, costs={"visit": 3, 1: 1, "noise": 1})
    assert found.questions == ("visit", "town", "noise")
    costs = pd.Series([9.0, 9.0, 0.01, 9.0], index=X.columns)
    assert classifier.next_feature(nothing, costs=costs).feature.tolist() == ["smoker"] * 3
    assert classifier.next_feature(nothing, costs=[9, 9, 0.01, 9]).feature.tolist() == ["smoker"] * 3
    with pytest.raises(ValueError, match="costs must name columns among"):
        classifier.next_feature(nothing, costs={"income": 1})
    with pytest.raises(ValueError, match="groups must be a mapping"):
        classifier.next_feature(nothing, groups=["age"])


def test_fitted_pipelines_are_asked_for_raw_columns() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    classifier = NaiveConformantClassifier.from_fitted(pipeline, X, n_components=3, covariance="diagonal")
    nothing = X.iloc[:60] * np.nan
    found = classifier.acquire(nothing, X.iloc[:60], budget=2)
    assert {name for names in found.asked for name in names} <= set(X)
    assert (found.predictions == pipeline.predict(X.iloc[:60])).mean() > 0.75
    expected = tb.expect(pipeline, X)
    drawn = expected.acquire(nothing, X.iloc[:60], budget=2)
    assert (drawn.predictions == pipeline.predict(X.iloc[:60])).mean() > 0.75


def test_missing_cells_of_trimmed_classifiers_are_unknown_even_if_training_rows_had_some(mixed: Any) -> None:
    X, y = mixed
    X = X.astype(object)
    X.iloc[::4, 0] = None
    trimmed = TrimmedClassifier(budget=4).fit(X, y)
    assert trimmed.discretizer_.rules[0].missing is not None
    found = trimmed.next_feature(hidden(X.iloc[:2]))
    assert set(found.questions) == set(trimmed.features_)
    assert (found.gains > 0).sum() >= 4


def test_drawn_gains_are_near_the_exact_ones_of_a_tree() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(400, 4)).astype(float)
    X[:, 1] = np.where(rng.random(400) < 0.7, X[:, 0], X[:, 1])
    y = (X[:, 0] + X[:, 2] > 2).astype(int)
    expected = ExpectedClassifier(
        DecisionTreeClassifier(max_depth=4, random_state=0), density="products", n_draws=4096, random_state=0
    ).fit(X, y)
    assert expected.is_exact_
    rows = np.array([[np.nan] * 4, [np.nan, 1, np.nan, np.nan], [2, np.nan, np.nan, 0]])
    found = expected.next_feature(rows)

    def entropy(table: Any) -> Any:
        chances = np.clip(expected.predict_proba(table), 1e-300, 1)
        return -(chances * np.log(chances)).sum(axis=1)

    for feature in range(4):
        gains = entropy(rows)
        for value, chance in enumerate(expected.density_.marginal(rows, feature).T):
            answered = rows.copy()
            answered[:, feature] = value
            gains = gains - chance * entropy(answered)
        unknown = np.isnan(rows[:, feature])
        np.testing.assert_allclose(found.gains[unknown, feature], gains[unknown], atol=0.02)
        assert (found.gains[~unknown, feature] == 0).all()


@pytest.mark.parametrize("objective", ["information", "stability"])
@pytest.mark.parametrize("look_ahead", [1, 2])
def test_any_classifier_asks_by_draws(mixed: Any, objective: Any, look_ahead: Any) -> None:
    X, y = mixed
    numbers = X.assign(town=(X["town"] == "a").astype(float))
    expected = ExpectedClassifier(RandomForestClassifier(20, random_state=0), random_state=0).fit(numbers, y)
    rows = numbers.iloc[:12]
    nothing = rows * np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = expected.acquire(nothing, rows, budget=2, objective=objective, look_ahead=look_ahead)
        stable = expected.acquire(nothing, rows, stop_at=0.95, groups={"both": ["age", "smoker"]})
    assert "noise" not in {name for names in found.asked for name in names[:1]}
    assert (found.predictions == y[:12]).mean() > 0.6
    assert ((stable.stability >= 0.95) | stable.rows.notna().all(axis=1)).all()
    whole = expected.acquire(nothing, rows, budget=4, min_gain=0)
    assert whole.costs.max() <= 4


def test_classifiers_that_decide_otherwise_than_by_the_largest_probability(mixed: Any) -> None:
    X, y = mixed
    X = X[["age", "smoker"]].astype(float)
    tuned = FixedThresholdClassifier(LogisticRegression(), threshold=0.9, pos_label="well").fit(X, y)
    expected = tb.expect(tuned, X)
    found = expected.acquire(X.iloc[:10] * np.nan, X.iloc[:10], budget=2, objective="stability")
    np.testing.assert_array_equal(found.predictions[found.costs == 2], tuned.predict(X.iloc[:10])[found.costs == 2])


def test_digits_are_told_apart_better_by_questions_of_their_own() -> None:
    X, y = load_digits(return_X_y=True)
    X = (X > 7).astype(float)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:1200], order[1200:]
    regression = LogisticRegression(max_iter=1000).fit(X[train], y[train])
    leads = []
    for start in range(3):  # of the search for components, which decides as much as the questions do
        model = tb.conform(regression, X[train], n_components=20, covariance="diagonal", random_state=start)
        leads.append(lead_of_questions(model, X, y, train, test))
    assert np.mean(leads) >= 0.07


def lead_of_questions(model: Any, X: Any, y: Any, train: Any, test: Any) -> float:
    """Return how much more accurate four questions that follow the answers are than four that are the same for all."""
    static: list[int] = []
    rows = np.full(X[train].shape, np.nan)
    for _ in range(4):
        gains = model.next_feature(rows).gains.mean(axis=0)
        static.append(int(np.where(np.isin(range(64), static), -1, gains).argmax()))
        rows[:, static] = X[train][:, static]
    nothing = np.full(X[test].shape, np.nan)
    adaptive = (model.acquire(nothing, X[test], budget=4).predictions == y[test]).mean()
    nothing[:, static] = X[test][:, static]
    return float(adaptive - (model.predict(nothing) == y[test]).mean())


def test_estimators_that_are_not_fitted(mixed: Any) -> None:
    for classifier in (
        NaiveConformantClassifier(n_components=1, covariance="diagonal"),
        TrimmedClassifier(),
        ExpectedClassifier(LogisticRegression()),
    ):
        with pytest.raises(NotFittedError):
            classifier.next_feature(mixed[0])


def test_arrays_have_positions() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    rows = np.full((2, 4), np.nan)
    for classifier in (
        NaiveConformantClassifier(n_components=1, covariance="diagonal"),
        TrimmedClassifier(budget=3),
        ExpectedClassifier(LogisticRegression(max_iter=5000), density="gaussian", random_state=0),
    ):
        found = classifier.fit(X, y).next_feature(rows)
        assert set(found.questions) <= {0, 1, 2, 3}
        assert isinstance(found.feature[0], int)
        answered = classifier.acquire(rows, X[:2], budget=1)
        assert answered.rows.shape == (2, 4)
