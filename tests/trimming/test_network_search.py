"""Trimming of classifiers on general networks: exact tables and Algorithm 1 against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.extras import needs_pysdd
from tests.trimming import brute_force
from trimbench.trimming.engines.choice import EngineName, make_engine
from trimbench.trimming.engines.circuit import SddEngine
from trimbench.trimming.engines.sdd import CircuitError
from trimbench.trimming.engines.table import DenseEngine
from trimbench.trimming.problem import Limits, checked_choice
from trimbench.trimming.sampled import trim_by_sampling


def case(seed: int, n_features: int = 4) -> tb.BayesianClassifier:
    rng = np.random.default_rng(seed)
    threshold = float(rng.choice([0.1, 0.3, 0.5, 0.8]))
    return brute_force.random_network_classifier(rng, n_features, threshold, coarse=seed % 2 == 0)


@needs_pysdd
def test_a_network_without_a_table_is_given_to_the_sdd_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = case(1)
    expected = tb.trim(classifier, 2).agreement
    monkeypatch.setattr("trimbench.trimming.engines.table.MAX_ENTRIES", 4)
    monkeypatch.setattr("trimbench.trimming.engines.choice._MOSTLY_DETERMINISTIC", 0.0)
    assert tb.trim(classifier, 2).agreement == pytest.approx(expected, abs=1e-9)


def test_more_features_can_agree_less() -> None:
    """The maximum achievable agreement is not monotone outside naive Bayes: Algorithm 1 must look at small subsets."""
    found = False
    for seed in range(200):
        classifier = case(seed, 3)
        pair = tb.maximum_achievable_agreement(classifier, ["f0", "f1"])[0]
        single = tb.maximum_achievable_agreement(classifier, ["f0"])[0]
        found = found or pair < single - 1e-6
    assert found


@given(st.integers(0, 10**6), st.data())
@settings(max_examples=40)
def test_what_is_bought_together_is_kept_together(seed: int, data: st.DataObject) -> None:
    """The best of all subsets of units, by enumeration, with and without a feature that is required."""
    classifier = case(seed)
    names = data.draw(st.permutations(classifier.features))
    groups = {"g": names[: data.draw(st.integers(1, 4))]}
    required = names[: data.draw(st.integers(0, 1))]
    forbidden = names[3:] if data.draw(st.booleans()) and len(groups["g"]) < 4 else []
    choice = checked_choice(classifier.features, 2, groups=groups, required=required, forbidden=forbidden)
    allowed = brute_force.allowed_subsets(choice)
    best = max(brute_force.achievable_agreement(classifier, kept) for kept in allowed)
    for limit in (None, 1, 5):
        found = tb.trim(
            classifier, 2, groups=groups, required=required, forbidden=forbidden, evaluation_limit=limit, engine="dense"
        )
        assert found.kept in allowed
        assert found.agreement <= best + 1e-12 <= found.upper_bound + 2e-12
        assert limit or (found.optimal and found.agreement == pytest.approx(best, abs=1e-12))


def test_the_rest_of_a_group_is_kept_where_it_makes_no_difference() -> None:
    # Only x0 matters, but x1 is bought with it; and a classifier that always says the same has what it must keep.
    network = tb.BayesianNetwork(
        {name: ["0", "1"] for name in ("c", "x0", "x1", "x2")},
        {"x0": ["c"], "x1": ["x0"], "x2": ["x1"]},
        {"c": [0.4, 0.6], **{name: [[0.8, 0.2], [0.3, 0.7]] for name in ("x0", "x1", "x2")}},
    )
    classifier = tb.BayesianClassifier(network, "c", positive="1")
    choice = checked_choice(classifier.features, 1, groups={"g": ["x0", "x1"]})
    assert trim_by_sampling(classifier, choice, Limits())[0].features == ("x0", "x1")
    rng = np.random.default_rng(0)
    constant = brute_force.random_classifier(rng, [2] * 24, 0.0)
    kept = tb.trim(constant, 1, groups={"g": ["x3", "x5"]}, required=["x5"]).features
    assert kept == ("x3", "x5")


def test_features_default_to_all_variables_but_the_class() -> None:
    network = tb.BayesianNetwork(
        {"c": ["a", "b"], "h": ["0", "1"], "x": ["0", "1"]},
        {"h": ["c"], "x": ["h"]},
        {"c": [0.4, 0.6], "h": [[0.9, 0.1], [0.2, 0.8]], "x": [[0.7, 0.3], [0.1, 0.9]]},
    )
    classifier = tb.BayesianClassifier(network, "c", positive="a")
    assert (classifier.features, classifier.negative) == (("h", "x"), "b")
    given = tb.BayesianClassifier(network, "c", positive="a", evidence={"h": "1"})
    assert given.features == ("x",)
    assert given.prior.tolist() == pytest.approx([0.04 / 0.52, 0.48 / 0.52])
    assert classifier.prior.tolist() == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize("seed", range(10))
def test_information_gain(seed: int) -> None:
    for classifier in (case(seed), brute_force.random_classifier(np.random.default_rng(seed), [2, 3, 2, 2], 0.5)):
        gains = [mutual_information(classifier, [i]) for i in range(4)]
        chosen = tb.select_features(classifier, 2, by="information_gain").features
        assert sorted(gains)[-2:] == pytest.approx(
            sorted(gains[classifier.features.index(name)] for name in chosen), abs=1e-12
        )
        first, second = tb.select_features(classifier, 2, joint=True, by="information_gain").features
        assert first == chosen[0]
        start = classifier.features.index(first)
        pairs = [mutual_information(classifier, [start, i]) for i in range(4) if i != start]
        assert mutual_information(classifier, [start, classifier.features.index(second)]) == pytest.approx(max(pairs))


def mutual_information(classifier: tb.BayesianClassifier, features: list[int]) -> float:
    joint = np.array(list(brute_force.instances(classifier, features).values())).T

    def entropy(masses: np.ndarray) -> float:
        seen = masses[masses > 0]
        return float(-(seen * np.log(seen)).sum())

    return entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.reshape(-1))


@pytest.mark.parametrize(
    ("engine", "seed"),
    [("auto", 3), ("auto", None), ("dense", 4), ("dense", None), ("log_odds", None)]
    + [pytest.param("sdd", seed, marks=needs_pysdd) for seed in (3, None)],
)
def test_one_engine_serves_all_thresholds(engine: EngineName, seed: int | None) -> None:
    thresholds = [0.0, 0.2, 0.5, 0.9]
    classifier = brute_force.random_classifier(np.random.default_rng(2), [2, 3, 2], 0.4) if seed is None else case(seed)
    built = make_engine(classifier, engine)
    found = tb.trimming_curve(classifier, [1], thresholds=thresholds, engine=engine if seed else built)
    for threshold, trimming in zip(thresholds, found, strict=True):
        alone = tb.trim(classifier.with_threshold(threshold), 1)
        assert trimming.original.threshold == threshold
        assert trimming.agreement == pytest.approx(alone.agreement, abs=1e-9)
        assert trimming.optimal
        own = tb.trim(classifier.with_threshold(threshold), 1, engine=built.with_threshold(threshold))
        assert own.agreement == pytest.approx(alone.agreement, abs=1e-9)


@needs_pysdd
def test_deterministic_networks_are_compiled_and_others_contracted(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = case(2)
    assert isinstance(make_engine(classifier), DenseEngine)
    monkeypatch.setattr("trimbench.trimming.engines.choice._MANY_NODES", 1)
    monkeypatch.setattr("trimbench.trimming.engines.choice._MOSTLY_DETERMINISTIC", 0.0)
    assert isinstance(make_engine(classifier), SddEngine)

    def fails(_: object, *, timeout: float) -> SddEngine:
        raise CircuitError("too large")

    monkeypatch.setattr("trimbench.trimming.engines.choice.SddEngine.of", fails)
    assert isinstance(make_engine(classifier), DenseEngine), "where the circuit is too large, the table is tried"


def test_a_curve_of_more_features_than_a_table_has_is_searched_for_each_budget() -> None:
    model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]]] * 30)
    classifier = tb.BayesianClassifier(model, positive="0")
    for budget, trimming in zip((1, 2), tb.trimming_curve(classifier, [1, 2]), strict=True):
        assert trimming.features == tb.trim(classifier, budget).features
