"""Explanations of mixtures against all sets of features and all completions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.brute_force_explanations import compare, compare_search, completions, random_mixture
from tests.conformant.test_mixtures import real_problem
from trimbench.conformant import explanations


@pytest.mark.parametrize("n_components", [2, 3])
def test_explanations_are_all_smallest_sets(n_components: int) -> None:
    assert sum(compare(seed, 8, n_components) for seed in range(8)) > 50


def test_the_search_for_many_features_agrees_with_all_sets() -> None:
    assert sum(compare_search(seed, 6, 3) for seed in range(8)) > 15


def test_certain_sets_do_not_depend_on_the_density() -> None:
    for seed in range(1, 5):
        (mixture, row), (model, _) = random_mixture(seed, 10, 3), random_mixture(seed, 10, 1)
        if not np.isnan(row).any():
            found = [one.explain(row, delta=1.0, max_sets=1000) for one in (mixture, model)]
            assert {frozenset(one) for one in found[0].sets} == {frozenset(one) for one in found[1].sets}


def smallest_losses(model: tb.ConformantModel, row: np.ndarray) -> set[frozenset[int]]:
    features = model.layout.features
    observed = [place for place, columns in enumerate(features) if not np.isnan(row[columns[0]])]
    winner = int(model.decision_scores(row[None])[0].argmax())
    for size in range(1, len(observed) + 1):
        sets = set()
        for chosen in itertools.combinations(observed, size):
            other = row.copy()
            other[[column for place in chosen for column in features[place]]] = np.nan
            scores = model.decision_scores(other[None])[0]
            if scores.max() > scores[winner]:
                sets.add(frozenset(chosen))
        if sets:
            return sets
    return set()


def test_losses_are_all_smallest_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    n_sets = 0
    for seed in range(10):
        mixture, row = random_mixture(seed, 6, 3)
        rows, nothing = completions(mixture)[1], np.full((1, len(row)), np.nan)
        against_prior = np.flatnonzero(mixture.predict(rows) != mixture.predict(nothing))
        if against_prior.size and not np.isnan(row).any():
            row = rows[against_prior[seed % len(against_prior)]]  # which the loss of all features surely changes
        expected = smallest_losses(mixture, row)
        n_sets += len(expected)
        found = mixture.contrast(row, by="loss", max_sets=1000)
        assert {frozenset(one) for one in found.sets} == expected, seed
        assert found.complete
        if not expected:
            assert (found.features, found.becomes) == ((), None)
            continue
        assert found.size_lower_bound == len(found.features)
        assert mixture.predict(found.row[None])[0] != found.predicted
        monkeypatch.setattr(explanations, "_MOST_ROWS", 0)
        greedy = mixture.contrast(row, by="loss")
        assert (greedy.size_lower_bound, greedy.complete) == (1, False)
        if greedy.features:  # it may miss all sets
            assert len(greedy.features) >= len(found.features)
            assert mixture.predict(greedy.row[None])[0] != found.predicted
        monkeypatch.undo()
    assert n_sets >= 8


def test_changes_of_complete_rows_are_those_of_the_classifier() -> None:
    for seed in (1, 2, 3, 4):
        (mixture, row), (model, _) = random_mixture(seed, 9, 2), random_mixture(seed, 9, 1)
        for mine, other in zip(
            mixture.contrast(row, max_sets=100).sets, model.contrast(row, max_sets=100).sets, strict=True
        ):
            assert set(mine) == set(other)
        row[0] = np.nan
        if not np.isnan(row).all() and (0,) in mixture.layout.features:
            with pytest.raises(ValueError, match="x must have no missing value for by='change'"):
                mixture.contrast(row)


def test_evidence_is_what_the_loss_of_a_feature_costs() -> None:
    mixture, row = random_mixture(7, 6, 2)
    found = mixture.explain(row, delta=0.9)
    scores = mixture.decision_scores(np.vstack([row, row]))[0]
    winner, second = np.argsort(-scores)[:2]
    for place, columns in enumerate(mixture.layout.features):
        other = row.copy()
        other[list(columns)] = np.nan
        lost = mixture.decision_scores(other[None])[0]
        expected = scores[winner] - scores[second] - (lost[winner] - lost[second])
        assert found.evidence[place] == pytest.approx(expected, abs=1e-10)


def test_real_valued_features_by_numerical_integration() -> None:
    X, _, regression = real_problem()
    weights = np.column_stack([np.zeros(5), 3 * regression.coef_[0]])
    classifier = fake_classifier(weights, np.array([0.0, regression.intercept_[0]]))
    mixture = tb.conform(classifier, X, real=[0], categorical=[[2, 3, 4]], n_components=3)
    row = np.array([2.5, 1.0, 0.0, 1.0, 0.0])
    found = mixture.explain(row, delta=0.7)
    hidden = [i for i in range(3) if i not in found.features]
    columns = mixture.layout.features

    def share(keeps: bool) -> float:
        total = 0.0
        values = [[0.0, 1.0] if i == 1 else list(np.eye(3)) for i in hidden if i]
        for chosen in itertools.product(*values):
            other = row.copy()
            for place, value in zip([i for i in hidden if i], chosen, strict=True):
                other[list(columns[place])] = value

            def density(x: float, other: np.ndarray = other) -> float:
                instance = other.copy()
                instance[0] = x
                kept = mixture.predict(instance[None])[0] == found.predicted
                return float(np.exp(mixture.log_likelihood(instance[None])[0])) * (kept or not keeps)

            if 0 in hidden:
                slope, rest = weights[0, 1], other[1:] @ weights[1:, 1] + regression.intercept_[0]
                points = sorted({-2.0, 2.0, float(np.clip(-rest / slope, -9, 9))})
                total += integrate.quad(density, -10, 10, points=points, limit=200)[0]
            else:
                total += density(row[0])
        return total

    probability = share(True) / share(False)
    assert found.probability[0] - 1e-6 <= probability <= found.probability[1] + 1e-6
    assert found.probability[1] - found.probability[0] < 0.02


def test_what_cannot_be_asked_of_a_mixture() -> None:
    mixture, row = random_mixture(1, 5, 2)
    with pytest.raises(ValueError, match="delta must be given to explain a model of 2 components"):
        mixture.explain(row)
