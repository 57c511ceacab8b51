"""Probabilistic explanations, also of mixtures, against all sets of features and all completions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.brute_force_explanations import (
    changed_probabilities,
    compare,
    compare_search,
    random_case,
    random_mixture,
)
from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.margin_tails import MarginTails
from trimbench.conformant.probabilistic import SetSearch


@pytest.mark.parametrize(
    ("seeds", "most_features", "n_components", "n_compared"),
    [*((range(n, n + 30), 10, 1, 250) for n in range(1000, 1120, 30)), (range(8), 8, 2, 50), (range(8), 8, 3, 50)],
)
def test_explanations_are_all_smallest_sets(
    seeds: range, most_features: int, n_components: int, n_compared: int
) -> None:
    assert sum(compare(seed, most_features, n_components) for seed in seeds) > n_compared


@pytest.mark.parametrize(
    ("seeds", "most_features", "n_components", "n_proven"), [(range(30), 8, 1, 90), (range(8), 6, 3, 15)]
)
def test_the_search_for_many_features_agrees_with_all_sets(
    seeds: range, most_features: int, n_components: int, n_proven: int
) -> None:
    assert sum(compare_search(seed, most_features, n_components) for seed in seeds) > n_proven


def test_rows_with_missing_features_may_have_no_explanation() -> None:
    for seed in range(4):
        model, row = random_case(seed, 4)
        found = model.explain(np.full(len(row), np.nan), delta=0.5 if seed % 3 else 0.3)
        assert (found.features, found.size_lower_bound) == ((), 0 if found.sufficient else 1)
        assert found.complete
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, -0.9])), X)
    for delta in (0.99, 1):
        found = model.explain([1.0, np.nan], delta=delta)
        assert not found.sufficient or found.probability[0] >= delta
    nothing = model.explain([np.nan, np.nan], delta=1)
    assert (nothing.sufficient, nothing.optimal, nothing.complete, nothing.features) == (False, False, True, ())
    assert 0 < nothing.probability[0] <= nothing.probability[1] < 1


def test_margins_are_bounded_for_every_division() -> None:
    for seed in range(1, 13):
        model, row = random_case(seed, 6)
        winner = int(model.decision_scores(row[None])[0].argmax())
        rival = (winner + 1) % len(model.classes)
        problem = DecisionProblem.of(model, row, winner, (rival,))
        n_features = model.layout.n_features
        changed = changed_probabilities(model, row, rival)
        for n_points in (20, 1000):
            tails = MarginTails(problem, 0, n_points, np.arange(n_features))
            for bits in np.random.default_rng(seed).permutation(np.flatnonzero(~np.isnan(changed)))[:20].tolist():
                modes = np.array([0 if bits >> i & 1 else 1 for i in range(n_features)])
                shown = np.flatnonzero(modes == 0)
                weights = np.exp(problem.log_prior + problem.evidence[shown].sum(axis=0))
                weights /= weights.sum()
                lower, upper = tails.bounds(modes)
                assert weights @ lower - 1e-12 <= 1 - changed[bits] <= weights @ upper + 1e-12
                # Whatever becomes of an undecided feature, its bound holds.
                free = np.array([i for i in problem.candidates if modes[i] == 1], dtype=int)
                relaxed = modes.copy()
                relaxed[free] = 2
                assert (tails.bounds(relaxed)[1] >= lower - 1e-12).all()
                shown_too = modes.copy()
                shown_too[free] = 0
                assert (tails.bounds(relaxed)[1] >= tails.bounds(shown_too)[0] - 1e-12).all()


@pytest.mark.parametrize(("n_components", "n_proven"), [(1, 16), (2, 16)])
def test_real_features_against_the_normal_distribution(n_components: int, n_proven: int) -> None:
    rng = np.random.default_rng(5)
    y = rng.random(300) < 0.5
    X = rng.normal(size=(300, 4)) + np.outer(y, [1.5, 1.0, 0.5, -1.0])
    X[:, 3] = X[:, 3] > 0
    model = tb.conform(
        LogisticRegression().fit(X, y), X, real=[0, 1, 2], n_components=n_components, covariance="diagonal"
    )
    parts = [tb.ConformantModel.of(part) for part in model.components]
    proven = 0
    for row in X[:6]:
        winner = int(model.decision_scores(row[None])[0].argmax())
        slopes = model.weights[:, winner] - model.weights[:, 1 - winner]
        base = model.biases[winner] - model.biases[1 - winner]
        kept = {}
        for bits in itertools.product([False, True], repeat=4):
            shown = np.array(bits)
            seen = np.where(shown, row, np.nan)[None]
            shares = np.exp(model.log_weights + [part.log_likelihood(seen)[0] for part in parts])
            total = 0.0
            for part, k in itertools.product(range(n_components), range(2)):
                means, variances = model.components[part].real_moments
                one = np.exp(model.components[part].log_probabilities[3, k])
                chance_of_state = shares[part] / shares.sum() * parts[part].predict_proba(seen)[0, k]
                for value, chance in ((row[3], 1.0),) if shown[3] else ((0.0, 1 - one), (1.0, one)):
                    hidden = ~shown[:3]
                    centre = base + slopes[3] * value + slopes[:3][~hidden] @ row[:3][~hidden]
                    centre += slopes[:3][hidden] @ means[hidden, k]
                    deviation = np.sqrt(slopes[:3][hidden] ** 2 @ variances[hidden])
                    above = norm.sf(0, centre, deviation) if deviation else float(centre >= 0)
                    total += chance_of_state * chance * above
            kept[frozenset(np.flatnonzero(shown).tolist())] = total
        for delta in (0.7, 0.9, 0.95):
            found = model.explain(row, delta=delta)
            smallest = min(len(one) for one, value in kept.items() if value >= delta)
            assert found.size_lower_bound <= smallest
            assert len(found.features) == smallest or not found.optimal
            proven += found.optimal
            value = kept[frozenset(found.features)]
            assert found.probability[0] - 1e-9 <= value <= found.probability[1] + 1e-9
            assert found.probability[1] - found.probability[0] < 0.02
        # Only if all real-valued features are shown can none of them take the class away.
        assert set(model.explain(row, delta=1).features) >= {0, 1, 2}
    assert proven >= n_proven


def test_many_features_are_explained_with_proven_bounds() -> None:
    rng = np.random.default_rng(2)
    X = (rng.random((100, 60)) < 0.4).astype(float)
    weights, biases = np.stack([np.zeros(60), rng.normal(0, 0.8, 60)], axis=1), np.zeros(2)
    model = tb.conform(fake_classifier(weights, biases), X)
    drawn = (rng.random((50_000, 60)) < 0.5).astype(float)
    for row in X[:3]:
        found = model.explain(row, delta=0.8, max_sets=3)
        assert found.sufficient
        assert found.size_lower_bound <= len(found.features)
        assert found.probability[1] - found.probability[0] < 0.01
        # By importance weights, an independent estimate.
        shown = list(found.features)
        completed = drawn.copy()
        completed[:, shown] = row[shown]
        logs = model.log_likelihood(completed)
        importance = np.exp(logs - logs.max())
        same = model.predict(completed) == found.predicted
        estimate = importance @ same / importance.sum()
        error = 5 * np.sqrt(importance**2 @ (same - estimate) ** 2) / importance.sum()
        assert found.probability[0] - error <= estimate <= found.probability[1] + error


def test_more_effort_never_loosens_what_is_proven() -> None:
    model, row = random_case(22, 14)
    winner = int(model.decision_scores(row[None])[0].argmax())
    problem = DecisionProblem.of(model, row, winner, (1 - winner,))
    few, _ = SetSearch(problem, 0.9, 1).run(1)
    many, _ = SetSearch(problem, 0.9, 500).run(1)
    assert few.size_lower_bound <= many.size_lower_bound
    assert len(many.sets[0]) <= len(few.sets[0])


def test_ties_are_won_by_the_first_class() -> None:
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    model = tb.conform(fake_classifier(np.array([[0.0, 2.0], [0.0, -2.0]]), np.zeros(2)), X)
    even = model.explain([1.0, 1.0], delta=1)
    # The second feature alone makes the scores even at worst.
    assert (even.predicted, even.features) == (0, (1,))
    assert model.explain([1.0, 0.0], delta=1).features == (0, 1)


def test_changes_of_complete_rows_are_those_of_the_classifier() -> None:
    for seed in (1, 2, 3, 4):
        (mixture, row), (model, _) = random_mixture(seed, 9, 2), random_mixture(seed, 9, 1)
        for mine, other in zip(
            mixture.contrast(row, max_sets=100).sets, model.contrast(row, max_sets=100).sets, strict=True
        ):
            assert set(mine) == set(other)


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
