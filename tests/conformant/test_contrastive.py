"""Contrastive explanations against all sets and all values, and explanations as tables and images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force_explanations import random_case
from trimbench.conformant.explanations import smallest_covers


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


@pytest.mark.parametrize("by", ["change", "loss"])
def test_contrastive_sets_are_all_smallest_sets(by: str) -> None:
    for seed in range(60):
        model, row = random_case(seed, 6)
        observed = [i for i, columns in enumerate(model.layout.features) if not np.isnan(row[columns[0]])]
        expected: set[frozenset[int]] = set()
        for size in range(len(observed) + 1):
            expected = {frozenset(s) for s in itertools.combinations(observed, size) if flips(model, row, s, by)}
            if expected:
                break
        found = model.contrast(row, by=by, max_sets=1000)  # type: ignore[arg-type]
        assert found.complete
        assert {frozenset(one) for one in found.sets} == expected
        assert len(found.sets) == len(expected)
        if expected:
            scores = dict(zip(model.classes.tolist(), model.decision_scores(found.row[None])[0], strict=True))
            assert scores[found.becomes] >= scores[found.predicted]
            assert model.predict(found.row[None])[0] != found.predicted
            changed = ~((found.row == row) | (np.isnan(found.row) & np.isnan(row)))
            assert set(model.layout.feature_of_column[changed]) == set(found.features)
            assert len(model.contrast(row, by=by).sets) == 1  # type: ignore[arg-type]
        else:
            assert (found.features, found.becomes) == ((), None)


def test_contrastive_and_certain_explanations_meet() -> None:
    # Each smallest contrastive set has a feature of each set that keeps the class for certain.
    for seed in range(1, 40):
        model, row = random_case(seed, 8)
        if np.isnan(row).any():
            continue
        certain = model.explain(row, delta=1, max_sets=1000)
        for one in model.contrast(row, max_sets=1000).sets:
            assert all(set(one) & set(other) for other in certain.sets)


def test_one_real_feature_reaches_any_class() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    model = tb.conform(LogisticRegression().fit(X, X[:, 0] + X[:, 1] > 0), X, real=[0, 1, 2])
    found = model.contrast(X[0], max_sets=5)
    assert len(found.features) == 1
    assert len(found.sets) == 3
    assert model.predict(found.row[None])[0] == found.becomes != found.predicted
    assert np.flatnonzero(found.row != X[0]).tolist() == list(found.features)


def test_parameters_are_checked() -> None:
    model, row = random_case(1, 4)
    with pytest.raises(ValueError, match="by must be one of change, loss, got 'magic'"):
        model.contrast(row, by="magic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_sets must be a whole number, 1 or more, got True"):
        model.contrast(row, max_sets=True)
    with pytest.raises(ValueError, match="against must be one of"):
        model.contrast(row, against="nobody")


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
