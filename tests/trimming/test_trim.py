"""The search for trimmings against brute force over all subsets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from tests.trimming.test_invariances import BUDGETS, problems
from trimbench.trimming.engines.choice import EngineName


@pytest.mark.parametrize(("engine", "general"), [("dense", False), ("log_odds", False), ("auto", True)])
@given(data=st.data(), budget=BUDGETS)
@settings(max_examples=100)
def test_trim_finds_the_optimum(engine: EngineName, general: bool, data: st.DataObject, budget: float) -> None:
    classifier, costs, _ = data.draw(problems(4 if general else 5, is_naive=not general))
    trimming = tb.trim(classifier, budget, costs, engine=engine)
    subsets = brute_force.affordable_subsets(costs, budget)
    best = max(brute_force.achievable_agreement(classifier, subset) for subset in subsets)
    kept = tuple(classifier.features.index(name) for name in trimming.features)
    assert kept in subsets
    assert trimming.optimal
    assert trimming.agreement == pytest.approx(best, abs=1e-11)
    assert trimming.upper_bound >= trimming.agreement
    reached = brute_force.expected_agreement(classifier, kept, trimming.threshold)
    assert reached == pytest.approx(trimming.agreement, abs=1e-11)
    low, high = trimming.threshold_interval
    assert low < trimming.threshold <= high or trimming.threshold == low == high == 0
    assert (trimming.classifier.features, trimming.classifier.threshold) == (trimming.features, trimming.threshold)


@pytest.mark.parametrize("general", [False, True])
@given(data=st.data(), budget=BUDGETS)
@settings(max_examples=60)
def test_same_decision_selection_is_exhaustive_and_moving_the_threshold_never_loses(
    general: bool, data: st.DataObject, budget: float
) -> None:
    classifier, costs, _ = data.draw(problems(4 if general else 5, is_naive=not general))
    selection = tb.select_features(classifier, budget, costs)
    subsets = brute_force.affordable_subsets(costs, budget)
    values = {subset: brute_force.expected_agreement(classifier, subset, classifier.threshold) for subset in subsets}
    best = max(values.values())
    assert selection.agreement == pytest.approx(best, abs=1e-12)
    assert selection.n_evaluations == sum(1 for subset in subsets if subset)
    first = min((s for s, value in values.items() if value >= best - 1e-10), key=lambda s: (len(s), s))
    assert selection.features == tuple(classifier.features[i] for i in first)
    assert tb.trim(classifier, budget, costs).agreement >= selection.agreement - 1e-12


def test_a_split_lattice_gives_the_same_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(3), [2, 3, 2, 2, 3, 2, 2, 2], 0.5)
    whole = tb.select_features(classifier, 3)
    monkeypatch.setattr("trimbench.trimming.engines.table._MAX_LEVEL_ENTRIES", 64)
    assert tb.select_features(classifier, 3) == whole
    assert whole.n_evaluations == 8 + math.comb(8, 2) + math.comb(8, 3)


def test_everything_affordable_removes_nothing() -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(2), [2, 2, 2], 0.3)
    trimming = tb.trim(classifier, math.inf)
    assert trimming.features == classifier.features
    assert (trimming.agreement, trimming.threshold, trimming.n_evaluations) == (1.0, 0.3, 0)


def test_a_network_of_naive_bayes_structure_is_accepted() -> None:
    model = brute_force.random_classifier(np.random.default_rng(9), [2, 3], 0.5).model
    network = model.to_network()
    classifier = tb.BayesianClassifier(network, "class", positive="1")
    assert classifier.prior.tolist() == model.prior[::-1].tolist()
    assert classifier.is_naive_bayes
    assert not tb.BayesianClassifier(network, "x0", positive="1").is_naive_bayes


def test_forgetting_tables_of_sums_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(12), [2, 3] * 5, 0.4)
    whole = tb.trim(classifier, 4, engine="log_odds")
    monkeypatch.setattr("trimbench.trimming.engines.log_odds._CACHE_BYTES", 1000)
    again = tb.trim(classifier, 4, engine="log_odds")
    assert again == whole


@pytest.mark.parametrize("budget", [1, 2])
def test_few_subsets_are_enumerated(budget: int) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(3), [2] * 12, 0.4)
    trimming = tb.trim(classifier, budget, engine="dense", evaluation_limit=100)
    assert trimming.optimal
    assert trimming.n_evaluations == math.comb(12, budget)
    subsets = itertools.combinations(classifier.features, budget)
    best = max(tb.maximum_achievable_agreement(classifier, list(subset))[0] for subset in subsets)
    assert trimming.agreement == pytest.approx(best, abs=1e-11)
