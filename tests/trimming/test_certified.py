"""Certified bounds and losses against exact values, and trimming of classifiers that only they can reach."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import trimbench as tb
from tests.trimming import brute_force
from tests.trimming.brute_force import beta_classifier
from trimbench.trimming.engines.bounds import CertifiedEngine, certain_bound, removal_losses, rounded_sums
from trimbench.trimming.engines.log_odds import WeightSums
from trimbench.trimming.engines.table import DenseEngine
from trimbench.trimming.problem import Limits, checked_choice
from trimbench.trimming.search.exchange import select_forward


def random_case(seed: int) -> tuple[tb.BayesianClassifier, list[int]]:
    rng = np.random.default_rng(seed)
    cardinalities = rng.integers(1, 4, size=rng.integers(1, 8)).tolist()
    threshold = float(rng.choice([0.1, 0.3, 0.5, 0.9]))
    classifier = brute_force.random_classifier(rng, cardinalities, threshold, coarse=seed % 4 == 0)
    return classifier, [i for i in range(classifier.n_features) if rng.random() < 0.5]


def test_bounds_hold_the_exact_agreement_of_any_model() -> None:
    widths = []
    for seed in range(300):
        classifier, subset = random_case(seed)
        names = [classifier.features[i] for i in subset]
        threshold = 0.05 + 0.9 * np.random.default_rng(seed).random()
        low, high = tb.expected_agreement(classifier, names, threshold, n_points=2**10, interval=True)
        exact = tb.expected_agreement(classifier, names, threshold, engine="dense")
        assert low <= exact <= high, seed
        widths.append(high - low)
    assert np.median(widths) < 1e-9


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_large_kept_side_is_bounded_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.trimming.engines.bounds._EXACT_INSTANCES", 1)
    classifier, subset = random_case(seed)
    names = [classifier.features[i] for i in subset]
    low, high = tb.expected_agreement(classifier, names, 0.37, n_points=2**12, interval=True)
    assert low <= tb.expected_agreement(classifier, names, 0.37) <= high


def test_the_best_threshold_is_found() -> None:
    narrow = 0
    for seed in range(40):
        classifier, subset = random_case(seed)
        names = [classifier.features[i] for i in subset]
        found = CertifiedEngine(classifier, 2**16).agreement(subset)
        best, _ = tb.maximum_achievable_agreement(classifier, names)
        # Many ties leave wide bounds; the threshold is then the one with the better guarantee.
        if found.high - found.low < 1e-6:
            narrow += 1
            assert tb.expected_agreement(classifier, names, found.threshold) == pytest.approx(best, abs=1e-6)
    assert narrow >= 30


def test_rounded_tails_surround_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.dirichlet(np.ones(3), size=2) for _ in range(7)]
    exact = WeightSums(tables)
    group = tuple(range(7))
    queries = np.linspace(-6, 6, 41)
    above = exact.tails(group, queries)
    for n_points in (2**7, 2**10, 2**13):
        for side, sums in enumerate(rounded_sums(tables, n_points)):
            assert sums.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
            assert sums.probabilities.size <= n_points
            assert (sums.tails(queries + sums.slack) <= above[side] + 1e-12).all()
            assert (sums.tails(queries - sums.slack) >= above[side] - 1e-12).all()


@pytest.mark.parametrize("seed", range(50))
def test_no_trimming_exceeds_the_upper_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, rng.integers(2, 4, size=6).tolist(), 0.5, coarse=seed % 3 == 0)
    costs = np.where(rng.random(6) < 0.2, 0.0, rng.uniform(0.2, 2.0, size=6)).tolist()  # free features count, too
    budget = float(rng.uniform(0, 3))
    bound = CertifiedEngine(classifier, 2**10).upper_bound(checked_choice(classifier.features, budget, costs))
    assert tb.trim(classifier, budget, costs).agreement <= bound + 1e-12


@pytest.mark.usefixtures("coarse_grid")
def test_the_upper_bound_says_something_about_strong_classifiers() -> None:
    # Forty weak features determine the class almost surely, three of them do not.
    likelihood = [[0.7, 0.3], [0.3, 0.7]]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.5, 0.5], [likelihood] * 60), positive="0")
    trimming = tb.trim(classifier, 3, evaluation_limit=200)
    assert trimming.agreement == pytest.approx(0.784, abs=0.01)
    assert trimming.agreement < trimming.upper_bound < 0.87
    assert not trimming.optimal


def test_hundreds_of_features_are_trimmed_with_a_narrow_interval() -> None:
    rng = np.random.default_rng(5)
    strength = rng.uniform(0.5, 0.75, size=200)
    tables = [[[p, 1 - p], [1 - p, p]] for p in strength]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="1")
    trimming = tb.trim(classifier, 8)
    low, high = trimming.agreement_interval
    assert high - low < 1e-5
    strongest = {f"x{i}" for i in np.argsort(-strength)[:8]}
    assert len(strongest & set(trimming.features)) >= 7
    rows = classifier.model.sample(20_000, np.random.default_rng(6))
    observed = float((classifier.predict(rows) == trimming.classifier.predict(rows)).mean())
    assert abs(observed - trimming.agreement) < 5 * (trimming.agreement * (1 - trimming.agreement) / 20_000) ** 0.5
    hurried = tb.trim(classifier, 8, time_limit=0.1)  # less than a fine grid takes
    coarse = CertifiedEngine(classifier, 2**13).agreement(hurried.kept, hurried.threshold)
    assert coarse.low == hurried.agreement_interval[0] <= trimming.upper_bound


def test_costs_are_kept_by_forward_selection() -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(8), [2] * 12, 0.5)
    costs = np.random.default_rng(9).uniform(0.5, 2.0, size=12).tolist()
    kept = select_forward(classifier, checked_choice(classifier.features, 5.0, costs), lambda _: True).kept
    assert len(set(kept)) == len(kept)
    assert 3.0 < sum(costs[i] for i in kept) <= 5.0
    best = tb.trim(classifier, 5.0, costs).agreement
    found, _ = tb.maximum_achievable_agreement(classifier, [classifier.features[i] for i in kept])
    assert found >= best - 0.05


@pytest.mark.parametrize("seed", range(75))
def test_bounds_hold_at_ties_and_with_zeros(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, rng.integers(2, 4, size=5).tolist(), 0.5, coarse=seed % 3 > 0)
    if not classifier.prior.all():
        return
    classifier = classifier.with_threshold(float(rng.choice([0.1, 0.5, 0.75, 0.9])))
    engine = CertifiedEngine(classifier, 2**14)
    chosen = rng.permutation(5)[: rng.integers(0, 4)].tolist()
    names = [classifier.features[i] for i in chosen]
    exact, (_, high) = tb.maximum_achievable_agreement(classifier, names)
    posteriors = [p / (p + q) for p, q in brute_force.instances(classifier, chosen).values() if p + q > 0]
    for threshold in {high, *posteriors, 0.3} - {0.0, 1.0}:
        found = engine.agreement(chosen, threshold)
        true = tb.expected_agreement(classifier, names, threshold)
        assert found.low - 1e-12 <= true <= found.high + 1e-12, (threshold, found, true)
    assert engine.highest_agreement(chosen) >= exact - 1e-12
    best = engine.agreement(chosen)
    assert 0 < best.threshold < 1
    assert best.low - 1e-12 <= tb.expected_agreement(classifier, names, best.threshold) <= best.high + 1e-12


def certain() -> tb.BayesianClassifier:
    """One class rules out a value of each of 20 features, so that their sum is beyond the log-odds of any threshold."""
    tables = [[[0, 1], [0.9, 0.1]]] * 20 + [[[0.52, 0.48], [0.5, 0.5]]] * 46
    return tb.BayesianClassifier(tb.NaiveBayes([0.3, 0.7], tables, class_names=["ill", "well"]), positive="ill")


@pytest.mark.usefixtures("coarse_grid")
@pytest.mark.parametrize("budget", [17, 20])
def test_a_certificate_holds_for_the_threshold_that_is_given(budget: int) -> None:
    trimming = tb.trim(certain(), budget)
    assert 0 < trimming.threshold < 1
    assert trimming.agreement_interval[0] > 0.99
    rows = certain().model.to_network().sample(4000, np.random.default_rng(0))
    agree = (trimming.classifier.predict(rows) == certain().predict(rows)).mean()
    assert agree >= trimming.agreement_interval[0] - 0.01


def test_nothing_affordable_and_nothing_removed() -> None:
    low = np.random.default_rng(1).uniform(0.1, 0.5, size=60)
    tables = [[[1 - a, a], [0.9 - a, a + 0.1]] for a in low]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="0")
    nothing = tb.trim(classifier, 0)
    assert nothing.features == ()
    assert nothing.agreement <= nothing.upper_bound < nothing.agreement + 1e-4
    assert tb.trim(classifier, 60).features == classifier.features


@pytest.mark.parametrize("distance", [2e-11, -2e-11, 3e-13, -3e-13])
@pytest.mark.parametrize("n_points", [20, 2**12])
def test_bounds_hold_for_instances_next_to_the_threshold(distance: float, n_points: int) -> None:
    tables = [[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]]]
    log_odds = math.log(0.4 / 0.6) + math.log(0.8 / 0.3) + math.log(0.6 / 0.1) + distance
    threshold = 1.0 / (1.0 + math.exp(-log_odds))
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="0", threshold=threshold)
    for kept in ((0, 1, 2), (0, 1), (0,), ()):
        exact = DenseEngine.build(classifier).agreement(kept, threshold)
        found = CertifiedEngine(classifier, n_points).agreement(kept, threshold)
        assert found.low <= exact <= found.high


def loss(classifier: tb.BayesianClassifier, removed: set[int]) -> float:
    kept = [name for i, name in enumerate(classifier.features) if i not in removed]
    return 1.0 - tb.maximum_achievable_agreement(classifier, kept)[0]


@pytest.mark.parametrize("n_points", [2**6, 2**10, 2**15])
def test_losses_are_certain_on_200_models(n_points: int) -> None:
    found = []
    for seed in range(200):
        classifier, _ = random_case(seed)
        if not classifier.prior.all():
            continue
        order = np.random.default_rng(seed).permutation(classifier.n_features).tolist()
        gone, *groups = np.array_split(order, [len(order) // 4, len(order) // 2])
        losses = removal_losses(classifier, [part.tolist() for part in groups], gone.tolist(), n_points)
        for part, certain in zip(groups, losses, strict=True):
            exact = loss(classifier, {*part.tolist(), *gone.tolist()})
            assert certain <= exact + 1e-13, seed
            if exact > 1e-6:
                found.append(certain / exact)
    if n_points == 2**15:
        assert np.median(found) > 0.999
        assert np.mean(np.array(found) == 0) < 0.05


@pytest.mark.parametrize("n_features", [10, 11])
def test_ties_lose_for_certain(n_features: int) -> None:
    # All sums are multiples of one weight: they lie at the edges of the windows.
    model = tb.NaiveBayes([0.5, 0.5], [[[0.7, 0.3], [0.3, 0.7]]] * n_features)
    classifier = tb.BayesianClassifier(model, positive="0")
    certain = removal_losses(classifier, [[0]], [], 2**13)[0]
    assert 0.9 * loss(classifier, {0}) < certain <= loss(classifier, {0}) + 1e-13


def test_a_large_group_loses_at_least_what_a_part_of_it_does() -> None:
    classifier = beta_classifier(14, 2.0)
    certain = removal_losses(classifier, [list(range(9))], [12, 13], 2**13)[0]
    assert 0.0 < certain <= loss(classifier, {*range(9), 12, 13}) + 1e-13


def test_thousands_of_features_with_one_value_change_no_sum() -> None:
    tables = [np.array([[0.9, 0.1], [0.2, 0.8]]), *[np.ones((2, 1))] * 3000, np.array([[0.6, 0.4], [0.5, 0.5]])]
    many, few = WeightSums(tables).sums(tuple(range(3002))), WeightSums([tables[0], tables[-1]]).sums((0, 1))
    np.testing.assert_array_equal(many.weight, few.weight)
    np.testing.assert_array_equal(many.positive, few.positive)


@pytest.mark.parametrize("seed", range(40))
def test_no_subset_exceeds_the_certain_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, rng.integers(2, 4, size=6).tolist(), 0.4)
    costs = rng.choice([0.0, 0.5, 1.0, 1.7], size=5).tolist()
    names = classifier.features
    groups = {"g": [names[0], names[1]]}
    prices = dict(zip(["g", *names[2:]], costs, strict=True))
    choice = checked_choice(names, 2.0, prices, groups=groups, forbidden=[names[5]] * (seed % 2))
    bound = certain_bound(classifier, choice, Limits(1e-9 if seed % 3 else None))
    for size in range(len(choice.units) + 1):
        for units in itertools.combinations(range(len(choice.units)), size):
            kept = choice.features(units)
            if choice.is_affordable(kept):
                assert 1.0 - loss(classifier, set(range(6)) - set(kept)) <= bound + 1e-12


@pytest.mark.parametrize("n_features", [26, 34, 50, 100])
@pytest.mark.parametrize("concentration", [0.7, 20.0])
@pytest.mark.parametrize("seconds", [1e-6, 0.05])
def test_a_stopped_search_has_a_bound(n_features: int, concentration: float, seconds: float) -> None:
    for budget in (4, int(0.75 * n_features)):
        found = tb.trim(beta_classifier(n_features, concentration), budget, time_limit=seconds)
        low, high = found.agreement_interval
        assert low <= high <= found.upper_bound < 1.0
        assert len(found.features) == budget or seconds > 1e-6
