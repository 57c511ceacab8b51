"""Sufficient and contrastive explanations against all sets and all values, and as tables and images."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force import fake_classifier, instances
from tests.conformant.brute_force_explanations import random_mixture
from tests.conformant.problems import Case, cases, hide
from trimbench.conformant import explanations
from trimbench.conformant.explanations import smallest_covers
from trimbench.papers.conformant.figure6 import explain_by_weight


def without(model: tb.ConformantModel, row: np.ndarray, removed: set[int]) -> np.ndarray:
    left = row.copy()
    for place in removed:
        left[list(model.layout.features[place])] = np.nan
    return left


def shortest(model: tb.ConformantModel, row: np.ndarray) -> tuple[set[int], int]:
    """Definitions 4 and 5: the support features and the size of the smallest explanation.

    Expected predictions are compared by their log-odds, which do not round to 1.
    """

    def log_odds(of: np.ndarray) -> float:
        scores = model.decision_scores(of[None])[0]
        return float(scores[1] - scores[0])

    whole = log_odds(row)
    positive = whole > 0  # an even prediction is the first class
    observed = [place for place, columns in enumerate(model.layout.features) if not np.isnan(row[columns[0]])]
    support = set()
    for place in observed:
        expected = log_odds(without(model, row, {place}))
        if (expected <= whole) if positive else (expected > whole):
            support.add(place)
    for size in range(len(support) + 1):
        for chosen in itertools.combinations(sorted(support), size):
            if (log_odds(without(model, row, support - set(chosen))) > 0) == positive:
                return support, size
    raise AssertionError("the whole support always keeps the class")


@given(case=cases(max_binary=8, max_classes=2), seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_explanations_are_minimal(case: Case, seed: int) -> None:
    model = tb.conform(case.classifier, case.X, smoothing=case.smoothing, categorical=case.categorical)
    rng = np.random.default_rng(seed)
    for row in (*case.X[:2], *hide(case.X[2:4], case.categorical, rng)):
        found = model.explain(row)
        support, size = shortest(model, row)
        # Evidence within rounding of nothing may fall on either side.
        clear = {place for place in range(model.layout.n_features) if abs(found.evidence[place]) > 1e-12}
        assert set(found.support) & clear == support & clear
        assert len(found.features) == size
        kept = model.decision_scores(without(model, row, set(found.support) - set(found.features))[None])[0]
        labels = list(model.classes)
        assert model.classes[int(np.argmax(kept))] == found.predicted == model.predict(row[None])[0]
        odds = kept[labels.index(found.predicted)] - kept[labels.index(found.against)]
        assert found.kept_log_odds == pytest.approx(odds, abs=1e-9)
        assert sorted(found.support + found.opposing) == [
            place for place, columns in enumerate(model.layout.features) if not np.isnan(row[columns[0]])
        ]
        by_weight = explain_by_weight(model, found, row)
        assert len(by_weight) == size
        assert set(by_weight) <= set(found.support)


def test_a_row_without_any_value_needs_nothing() -> None:
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    nothing = tb.conform(LogisticRegression().fit(X, [0, 1, 1, 0]), X).explain([np.nan, np.nan])
    assert (nothing.features, nothing.support, nothing.opposing) == ((), (), ())


def test_several_classes_need_an_opponent() -> None:
    rng = np.random.default_rng(4)
    X = (rng.random((200, 6)) < 0.5).astype(float)
    y = np.array(["a", "b", "c"])[(X[:, 0] + 2 * X[:, 1]).astype(int) % 3]
    model = tb.conform(LogisticRegression(C=10).fit(X, y), X, n_components=1, covariance="diagonal")
    predicted = model.predict(X[:1])[0]
    others = [label for label in ["a", "b", "c"] if label != predicted]
    with pytest.raises(ValueError, match=f"the class to compare the predicted one, '{predicted}', with, as"):
        model.explain(X[0])
    with pytest.raises(ValueError, match=f"got '{predicted}' .the predicted class is '{predicted}'"):
        model.explain(X[0], against=predicted)
    with pytest.raises(ValueError, match="got 'd'"):
        model.explain(X[0], against="d")
    for other in others:
        explained = model.explain(X[0], against=other)
        assert (explained.predicted, explained.against) == (predicted, other)
        left = without(model, X[0], set(explained.support) - set(explained.features))
        scores = dict(zip(model.classes, model.predict_proba(left[None])[0], strict=True))
        assert scores[predicted] > scores[other]


def test_an_even_prediction_is_the_first_class() -> None:
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    classifier = LogisticRegression().fit(X, [0, 1, 1, 0])
    classifier.coef_, classifier.intercept_ = np.array([[2.0, -2.0]]), np.array([0.0])
    model = tb.conform(classifier, X)
    even = np.array([1.0, 1.0])
    assert model.predict_proba(even[None]).tolist() == [[0.5, 0.5]]
    explained = model.explain(even)
    assert explained.predicted == model.predict(even[None])[0] == classifier.predict(even[None])[0] == 0
    assert (explained.support, explained.opposing) == ((1,), (0,))
    # Without its support the row would be of the other class.
    assert explained.features == (1,)
    assert explained.kept_log_odds == 0
    classifier.coef_ = np.zeros((1, 2))
    nothing = tb.conform(classifier, X).explain(even)
    assert (nothing.predicted, nothing.features, nothing.log_odds) == (0, (), 0)


def flips(model: tb.ConformantModel, row: np.ndarray, places: tuple[int, ...], by: str) -> bool:
    """Whether the change (to any values) or the loss of these features gives another class."""
    predicted, groups = model.predict(row[None])[0], set(model.layout.categorical)
    choices = []
    for place in places:
        columns = model.layout.features[place]
        if by == "loss":
            choices.append([np.full(len(columns), np.nan)])
        elif columns in groups:
            choices.append(list(np.eye(len(columns))))
        else:
            choices.append([np.zeros(1), np.ones(1)])
    for values in itertools.product(*choices):
        other = row.copy()
        for place, value in zip(places, values, strict=True):
            other[list(model.layout.features[place])] = value
        if model.predict(other[None])[0] != predicted:
            return True
    return False


@pytest.mark.parametrize(("by", "n_components", "n_seeds"), [("change", 1, 60), ("loss", 1, 60), ("loss", 3, 10)])
def test_contrastive_sets_are_all_smallest_sets(
    by: Any, n_components: int, n_seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_sets = 0
    for seed in range(n_seeds):
        model, row = random_mixture(seed, 6, n_components)
        rows, nothing = instances(model), np.full((1, len(row)), np.nan)
        against_prior = np.flatnonzero(model.predict(rows) != model.predict(nothing))
        if n_components > 1 and against_prior.size and not np.isnan(row).any():
            row = rows[against_prior[seed % len(against_prior)]]  # which the loss of all features surely changes
        observed = [i for i, columns in enumerate(model.layout.features) if not np.isnan(row[columns[0]])]
        expected: set[frozenset[int]] = set()
        for size in range(len(observed) + 1):
            expected = {frozenset(s) for s in itertools.combinations(observed, size) if flips(model, row, s, by)}
            if expected:
                break
        n_sets += len(expected)
        found = model.contrast(row, by=by, max_sets=1000)
        assert found.complete
        assert {frozenset(one) for one in found.sets} == expected, seed
        assert len(found.sets) == len(expected)
        if not expected:
            assert (found.features, found.becomes) == ((), None)
            continue
        scores = dict(zip(model.classes.tolist(), model.decision_scores(found.row[None])[0], strict=True))
        assert scores[found.becomes] >= scores[found.predicted]
        assert model.predict(found.row[None])[0] != found.predicted
        assert found.size_lower_bound == len(found.features)
        changed = ~((found.row == row) | (np.isnan(found.row) & np.isnan(row)))
        assert set(model.layout.feature_of_column[changed]) == set(found.features)
        assert len(model.contrast(row, by=by).sets) == 1
        if n_components > 1:
            with monkeypatch.context() as patch:
                patch.setattr(explanations, "_MOST_ROWS", 0)
                greedy = model.contrast(row, by=by)
            assert (greedy.size_lower_bound, greedy.complete) == (1, False)
            if greedy.features:  # it may miss all sets
                assert len(greedy.features) >= len(found.features)
                assert model.predict(greedy.row[None])[0] != found.predicted
    assert n_sets >= 8


def test_one_real_feature_reaches_any_class() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    model = tb.conform(LogisticRegression().fit(X, X[:, 0] + X[:, 1] > 0), X, real=[0, 1, 2])
    found = model.contrast(X[0], max_sets=5)
    assert len(found.features) == 1
    assert len(found.sets) == 3
    assert model.predict(found.row[None])[0] == found.becomes != found.predicted
    assert np.flatnonzero(found.row != X[0]).tolist() == list(found.features)


def test_covers_of_several_requirements() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        gains = rng.integers(0, 6, (7, 3)).astype(float)
        needed = rng.integers(0, 15, 3).astype(float)
        found = smallest_covers(gains, needed, 1000)
        expected: list[tuple[int, ...]] = []
        for size in range(8):
            those = itertools.combinations(range(7), size)
            expected = [chosen for chosen in those if (gains[list(chosen)].sum(axis=0) >= needed).all()]
            if expected:
                break
        assert {frozenset(one) for one in found.sets} == {frozenset(one) for one in expected}
        assert found.complete


def test_a_search_for_covers_that_stops_is_honest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.conformant.explanations._MAX_STEPS", 30)
    rng = np.random.default_rng(0)
    gains = rng.random((30, 4))
    found = smallest_covers(gains, np.full(4, 5.0), 1)
    assert not found.complete
    assert found.size_lower_bound <= len(found.sets[0])
    assert (gains[list(found.sets[0])].sum(axis=0) >= 5).all()


def test_explanations_become_tables_and_images() -> None:
    X = (np.random.default_rng(0).random((60, 6)) < 0.5).astype(float)
    model = tb.conform(LogisticRegression().fit(X, X[:, 0] + X[:, 1] > 0.5), X)
    for found in (model.explain(X[0]), model.explain(X[0], delta=0.9), model.contrast(X[0])):
        table = found.table(list("abcdef"))
        assert set(table["feature"][table["chosen"]]) == {"abcdef"[i] for i in found.features}
        assert (table["evidence"].abs().diff().dropna() <= 0).all()
        assert sorted(found.table()["feature"]) == list(range(6))
        image = found.image(X[0], (2, 3))
        assert np.flatnonzero(~np.isnan(image).ravel()).tolist() == sorted(found.features)
        assert (image.ravel()[list(found.features)] == X[0, list(found.features)]).all()
    with pytest.raises(ValueError, match=r"shape must be \(height, width\) with 6 pixels in all, got \(2, 2\)"):
        found.image(X[0], (2, 2))
    with pytest.raises(ValueError, match="feature_names must have one name for each of 6 features, got 2"):
        found.table(["a", "b"])


@pytest.mark.parametrize(("weight", "first"), [(3.0, 1), (2.4, 0)])
def test_the_baseline_takes_the_largest_weights(weight: float, first: int) -> None:
    X = np.column_stack([np.eye(3)[[0, 1, 2, 0, 1, 2]], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]])
    # Flipping the binary feature costs its weight; another value of the categorical one 0.5 - (-2) = 2.5 at most.
    classifier = fake_classifier(np.array([[0, 0.5], [0, 0.0], [0, -2.0], [0, weight]]), np.zeros(2))
    model = tb.conform(classifier, X, categorical=[[0, 1, 2]])
    explanation = model.explain(X[3])
    assert explanation.predicted == model.classes[1]
    assert set(explanation.support) == {0, 1}
    assert explain_by_weight(model, explanation, X[3]) == (first, 1 - first)[: len(explanation.features)]
