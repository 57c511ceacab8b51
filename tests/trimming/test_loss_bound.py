"""Certain losses against exact ones, and the bounds of stopped searches that follow from them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming.costs import checked_choice
from trimbench.trimming.engines.bounds import certain_bound, removal_losses
from trimbench.trimming.limits import Limits


def beta_classifier(n_features: int, concentration: float, seed: int = 0) -> tb.BayesianClassifier:
    chances = np.random.default_rng(seed).beta(concentration, concentration, size=(n_features, 2))
    model = tb.NaiveBayes([0.4, 0.6], [np.stack([both, 1 - both], axis=1) for both in chances])
    return tb.BayesianClassifier(model, positive="0")


def loss(classifier: tb.BayesianClassifier, removed: set[int]) -> float:
    kept = [name for i, name in enumerate(classifier.features) if i not in removed]
    return 1.0 - tb.maximum_achievable_agreement(classifier, kept)[0]


@pytest.mark.parametrize("n_points", [2**6, 2**10, 2**15])
def test_losses_are_certain_on_200_models(n_points: int) -> None:
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        cardinalities = rng.integers(1, 4, size=rng.integers(1, 8)).tolist()
        threshold = float(rng.choice([0.1, 0.3, 0.5, 0.75, 0.9]))
        classifier = brute_force.random_classifier(rng, cardinalities, threshold, coarse=seed % 3 == 0)
        if not classifier.prior.all():
            continue
        order = rng.permutation(classifier.n_features).tolist()
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


@pytest.mark.parametrize("n_features", [26, 40, 60, 100])
@pytest.mark.parametrize("concentration", [0.7, 2.0, 20.0])
@pytest.mark.parametrize("seconds", [1e-6, 0.05])
def test_a_stopped_search_of_a_large_budget_has_a_bound(n_features: int, concentration: float, seconds: float) -> None:
    found = tb.trim(beta_classifier(n_features, concentration), int(0.75 * n_features), time_limit=seconds)
    low, high = found.agreement_interval
    assert low <= high <= found.upper_bound < 1.0
