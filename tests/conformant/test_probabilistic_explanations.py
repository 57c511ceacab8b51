"""Probabilistic explanations, also of mixtures, against all sets of features and all completions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.brute_force_explanations import (
    agreeing,
    changed_probabilities,
    compare,
    compare_search,
    completions,
    random_case,
    random_mixture,
)
from tests.conformant.test_mixtures import real_problem
from trimbench.conformant import explanations
from trimbench.conformant.probabilistic import SetSearch
from trimbench.conformant.same_decision import DecisionProblem, MarginTails


def test_brute_force_is_the_definition() -> None:
    for seed in range(1, 5):
        model, row = random_case(seed, 5)
        _, rows, chances = completions(model)
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        mask, predicted = agreeing(model, rows, row), model.predict(row[None])[0]
        changed = changed_probabilities(model, row)
        for bits in range(2**model.layout.n_features):
            same = (mask & bits) == bits
            other = model.predict(rows[same]) != predicted
            assert changed[bits] == pytest.approx(chances[same][other].sum() / chances[same].sum(), abs=1e-12)


@pytest.mark.parametrize("block", range(5))
def test_explanations_are_all_smallest_sets(block: int) -> None:
    assert sum(compare(seed, 10) for seed in range(1000 + 30 * block, 1030 + 30 * block)) > 250


def test_a_row_without_any_observed_feature() -> None:
    for seed in range(4):
        model, row = random_case(seed, 4)
        found = model.explain(np.full(len(row), np.nan), delta=0.5 if seed % 3 else 0.3)
        assert (found.features, found.size_lower_bound) == ((), 0 if found.sufficient else 1)
        assert found.complete


def test_the_search_for_many_features_agrees_with_all_sets() -> None:
    assert sum(compare_search(seed, 8) for seed in range(40)) > 120


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


def real_model() -> tuple[tb.ConformantModel, np.ndarray]:
    rng = np.random.default_rng(5)
    y = rng.random(300) < 0.5
    X = rng.normal(size=(300, 4)) + np.outer(y, [1.5, 1.0, 0.5, -1.0])
    X[:, 3] = X[:, 3] > 0
    return tb.conform(LogisticRegression().fit(X, y), X, real=[0, 1, 2]), X


def test_real_features_against_the_normal_distribution() -> None:
    from scipy.stats import norm

    model, X = real_model()
    means, variances = model.components[0].real_moments
    proven = 0
    for row in X[:6]:
        winner = int(model.decision_scores(row[None])[0].argmax())
        slopes = model.weights[:, winner] - model.weights[:, 1 - winner]
        base = model.biases[winner] - model.biases[1 - winner]
        kept = {}
        for bits in itertools.product([False, True], repeat=4):
            shown = np.array(bits)
            posterior = model.predict_proba(np.where(shown, row, np.nan)[None])[0]
            total = 0.0
            for k in range(2):
                one = np.exp(model.components[0].log_probabilities[3, k])
                for value, chance in ((row[3], 1.0),) if shown[3] else ((0.0, 1 - one), (1.0, one)):
                    hidden = ~shown[:3]
                    centre = base + slopes[3] * value + slopes[:3][~hidden] @ row[:3][~hidden]
                    centre += slopes[:3][hidden] @ means[hidden, k]
                    deviation = np.sqrt(slopes[:3][hidden] ** 2 @ variances[hidden])
                    above = norm.sf(0, centre, deviation) if deviation else float(centre >= 0)
                    total += posterior[k] * chance * above
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
    assert proven >= 16


def test_many_features_are_explained_with_proven_bounds() -> None:
    rng = np.random.default_rng(2)
    X = (rng.random((100, 60)) < 0.4).astype(float)
    weights, biases = np.stack([np.zeros(60), rng.normal(0, 0.8, 60)], axis=1), np.zeros(2)
    model = tb.conform(fake_classifier(weights, biases), X)
    drawn = (rng.random((200_000, 60)) < 0.5).astype(float)
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


def test_a_row_with_missing_features_may_have_no_explanation() -> None:
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, -0.9])), X)
    for delta in (0.99, 1):
        found = model.explain([1.0, np.nan], delta=delta)
        assert not found.sufficient or found.probability[0] >= delta
    nothing = model.explain([np.nan, np.nan], delta=1)
    assert (nothing.sufficient, nothing.optimal, nothing.complete, nothing.features) == (False, False, True, ())
    assert 0 < nothing.probability[0] <= nothing.probability[1] < 1


def test_ties_are_won_by_the_first_class() -> None:
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    model = tb.conform(fake_classifier(np.array([[0.0, 2.0], [0.0, -2.0]]), np.zeros(2)), X)
    even = model.explain([1.0, 1.0], delta=1)
    # The second feature alone makes the scores even at worst.
    assert (even.predicted, even.features) == (0, (1,))
    assert model.explain([1.0, 0.0], delta=1).features == (0, 1)


@pytest.mark.parametrize("delta", [0, -1, 1.5, np.nan, True, "0.9"])
def test_delta_is_checked(delta: object) -> None:
    model, row = random_case(1, 4)
    with pytest.raises(ValueError, match="delta must be a probability above 0 and up to 1, got"):
        model.explain(row, delta=delta)  # type: ignore[call-overload]


def test_parameters_are_checked() -> None:
    model, row = random_case(1, 4)
    with pytest.raises(ValueError, match="max_sets must be a whole number, 1 or more, got 0"):
        model.explain(row, delta=0.9, max_sets=0)
    with pytest.raises(ValueError, match=r"max_evaluations must be a whole number, 1 or more, got 0.5"):
        model.explain(row, delta=0.9, max_evaluations=0.5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="against must be one of"):
        model.explain(row, against="nobody", delta=0.9)
    with pytest.raises(ValueError, match="x must be one row of"):
        model.explain(row[None], delta=0.9)


@pytest.mark.parametrize("n_components", [2, 3])
def test_explanations_of_mixtures_are_all_smallest_sets(n_components: int) -> None:
    assert sum(compare(seed, 8, n_components) for seed in range(8)) > 50


def test_the_search_for_many_features_of_mixtures_agrees_with_all_sets() -> None:
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
