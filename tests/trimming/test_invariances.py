"""Changes of a problem that must not change how often its best trimming agrees."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import distributions
from tests.trimming import brute_force

BUDGETS = st.sampled_from([0.0, 0.05, 0.3, 1.0, 1.7, 3.0, 100.0])
THRESHOLDS = st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.8, 1.0])


@st.composite
def problems(
    draw: st.DrawFn, most: int, *, is_naive: bool | None = None, is_coarse: bool | None = None
) -> tuple[tb.BayesianClassifier, list[float], np.random.Generator]:
    """Classifiers with up to `most` features, and their costs."""
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, most))
    coarse = draw(st.booleans()) if is_coarse is None else is_coarse
    # Thresholds of zero and one make all instances ties of a kind: they have few decisions to compare.
    threshold = draw(THRESHOLDS) if coarse else draw(st.floats(0.05, 0.95))
    if draw(st.booleans()) if is_naive is None else is_naive:
        classifier = brute_force.random_classifier(rng, rng.integers(2, 4, n).tolist(), threshold, coarse=coarse)
    else:
        classifier = brute_force.random_network_classifier(rng, n, threshold, coarse=coarse)
    return classifier, rng.choice([0.0, 0.1, 0.2, 0.5, 1.0, 2.5], n).tolist(), rng


def check(found: tb.Trimming, best: tb.Trimming) -> None:
    assert found.optimal
    assert found.agreement == pytest.approx(best.agreement, abs=1e-10)
    reached = tb.expected_agreement(found.original, found.features, found.threshold)
    assert reached == pytest.approx(best.agreement, abs=1e-10)


def like(classifier: tb.BayesianClassifier, model: Any) -> tb.BayesianClassifier:
    """Return a classifier of another model with the same class and threshold."""
    return tb.BayesianClassifier(model, positive=classifier.positive, threshold=classifier.threshold)


@given(problem=problems(8, is_naive=True), budget=BUDGETS)
@settings(max_examples=20)
def test_orders_of_features_and_values_and_the_unit_of_costs_do_not_matter(problem: Any, budget: float) -> None:
    classifier, costs, rng = problem
    best = tb.trim(classifier, budget, costs)
    order = rng.permutation(classifier.n_features)
    tables = [rng.permutation(classifier.model.likelihoods[i], axis=1) for i in order]
    permuted = like(classifier, tb.NaiveBayes(classifier.model.prior, tables))
    check(tb.trim(permuted, budget, [costs[i] for i in order]), best)
    check(tb.trim(classifier, 4 * budget, [4 * cost for cost in costs]), best)


@given(problem=problems(6, is_coarse=False), budget=BUDGETS)
@settings(max_examples=20)
def test_either_class_may_be_the_positive_one(problem: Any, budget: float) -> None:
    """P(c | f) >= T is P(not c | f) <= 1 - T: without ties, the agreement is the same."""
    classifier, costs, _ = problem
    exchanged = tb.BayesianClassifier(
        classifier.model,
        classifier.target,
        positive=classifier.negative,
        features=classifier.features,
        threshold=1 - classifier.threshold,
    )
    check(tb.trim(exchanged, budget, costs), tb.trim(classifier, budget, costs))


@given(problem=problems(5, is_naive=True), budget=BUDGETS)
@settings(max_examples=20)
def test_a_constant_may_be_bought_with_a_feature(problem: Any, budget: float) -> None:
    classifier, costs, _ = problem
    n, model = classifier.n_features, classifier.model
    wider = like(classifier, tb.NaiveBayes(model.prior, [*model.likelihoods, np.ones((2, 1))]))
    prices = {"test": costs[0]} | {f"x{i}": cost for i, cost in enumerate(costs) if i}
    found = tb.trim(wider, budget, prices, groups={"test": ["x0", f"x{n}"]})
    check(found, tb.trim(classifier, budget, costs))


@given(problem=problems(6, is_naive=True), budget=BUDGETS)
@settings(max_examples=20)
def test_a_leaf_that_nobody_observes_makes_naive_bayes_a_network(problem: Any, budget: float) -> None:
    classifier, costs, rng = problem
    network, above = brute_force.network_of(classifier), classifier.features[0]
    states = {node: network.states(node) for node in network.nodes} | {"leaf": ("0", "1")}
    parents = {node: network.parents(node) for node in network.nodes} | {"leaf": (above,)}
    tables = {node: network.table(node) for node in network.nodes}
    tables["leaf"] = distributions(rng, (network.cardinality(above), 2), coarse=bool(rng.random() < 0.5))
    wider = tb.BayesianClassifier(
        tb.BayesianNetwork(states, parents, tables),
        classifier.target,
        positive=classifier.positive,
        features=classifier.features,
        threshold=classifier.threshold,
    )
    check(tb.trim(wider, budget, costs), tb.trim(classifier, budget, costs))


@given(problem=problems(11, is_naive=True))
@settings(max_examples=5)
def test_a_curve_has_what_each_engine_finds_for_each_budget(problem: Any) -> None:
    classifier, costs, _ = problem
    budgets = [0.3, 1.0, 3.0]
    for budget, best in zip(budgets, tb.trimming_curve(classifier, budgets, costs), strict=True):
        for engine in ("dense", "log_odds"):
            check(tb.trim(classifier, budget, costs, engine=engine), best)


@given(problem=problems(5), budget=BUDGETS, thresholds=st.lists(st.floats(0.02, 0.98), min_size=1, max_size=3))
@settings(max_examples=20)
def test_budgets_and_thresholds_are_trimmed_together_as_apart(
    problem: Any, budget: float, thresholds: list[float]
) -> None:
    classifier, costs, _ = problem
    pairs = list(itertools.product(thresholds, (budget, 0.3)))
    found = tb.trimming_curve(classifier, [budget, 0.3], costs, thresholds=thresholds)
    for (threshold, within), trimming in zip(pairs, found, strict=True):
        assert trimming.original.threshold == threshold
        check(trimming, tb.trim(classifier.with_threshold(threshold), within, costs))
