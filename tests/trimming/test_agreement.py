"""Agreement measures against their definitions, and the paper's propositions as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from tests.trimming.test_invariances import problems
from trimbench.trimming.engines.choice import EngineName


@st.composite
def classifiers_with_subset(draw: st.DrawFn, *, general: bool = False) -> tuple[tb.BayesianClassifier, list[int]]:
    """A small classifier, and some of its features."""
    classifier, _, _ = draw(problems(4 if general else 5, is_naive=not general))
    return classifier, draw(st.lists(st.sampled_from(range(classifier.n_features)), unique=True))


def names(classifier: tb.BayesianClassifier, subset: list[int]) -> list[str]:
    return [classifier.features[i] for i in subset]


@pytest.mark.parametrize(("engine", "general"), [("dense", False), ("log_odds", False), ("auto", True)])
@given(data=st.data(), threshold=st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]) | st.floats(0.001, 0.999))
@settings(max_examples=150)
def test_measures_equal_their_definitions_at_every_threshold_of_the_interval(
    engine: EngineName, general: bool, data: st.DataObject, threshold: float
) -> None:
    classifier, subset = data.draw(classifiers_with_subset(general=general))
    chosen = names(classifier, subset)
    assert tb.expected_agreement(classifier, chosen, threshold, engine=engine) == pytest.approx(
        brute_force.expected_agreement(classifier, subset, threshold), abs=1e-12
    )
    assert tb.maximum_potential_agreement(classifier, chosen, engine=engine) == pytest.approx(
        brute_force.potential_agreement(classifier, subset), abs=1e-12
    )
    value, (low, high) = tb.maximum_achievable_agreement(classifier, chosen, engine=engine)
    assert value == pytest.approx(brute_force.achievable_agreement(classifier, subset), abs=1e-11)
    assert 0 <= low < high <= 1 or low == high == 0
    for reached in {high, 0.5 * (low + high) if low < high else high}:
        assert brute_force.expected_agreement(classifier, subset, reached) == pytest.approx(value, abs=1e-11)


@pytest.mark.parametrize("general", [False, True])
@given(data=st.data())
@settings(max_examples=100)
def test_propositions_1_to_3(general: bool, data: st.DataObject) -> None:
    classifier, subset = data.draw(classifiers_with_subset(general=general))
    chosen = names(classifier, subset)
    same = tb.expected_agreement(classifier, classifier.features, classifier.threshold)
    assert same == pytest.approx(1.0, abs=1e-12)
    potential = tb.maximum_potential_agreement(classifier, chosen)
    achievable, _ = tb.maximum_achievable_agreement(classifier, chosen)
    assert achievable <= potential + 1e-12  # Proposition 1
    if not general:
        assert achievable == pytest.approx(potential, abs=1e-11)  # Proposition 3
    for position in range(len(chosen)):  # Proposition 2 and Corollary 1
        fewer = chosen[:position] + chosen[position + 1 :]
        assert tb.maximum_potential_agreement(classifier, fewer) <= potential + 1e-12
        assert tb.maximum_achievable_agreement(classifier, fewer)[0] <= potential + 1e-12


@pytest.mark.parametrize("general", [False, True])
@given(data=st.data(), threshold=st.sampled_from([0.0, 0.25, 0.5, 0.9]))
@settings(max_examples=60)
def test_proposition_4_and_equations_2_and_3(general: bool, data: st.DataObject, threshold: float) -> None:
    classifier, subset = data.draw(classifiers_with_subset(general=general))
    chosen = names(classifier, subset)
    by_decisions = sum(
        mass * same for mass, same in brute_force.same_decision_probabilities(classifier, subset, threshold)
    )
    assert tb.expected_agreement(classifier, chosen, threshold) == pytest.approx(by_decisions, abs=1e-11)
    # Equations 2 and 3: SDP with T' = 0 is the probability of a positive decision.
    decided = brute_force.same_decision_probabilities(classifier, subset, 0.0)
    potential = sum(mass * max(same, 1 - same) for mass, same in decided)
    assert tb.maximum_potential_agreement(classifier, chosen) == pytest.approx(potential, abs=1e-11)
    seen = [joint for joint in brute_force.instances(classifier, subset).values() if sum(joint)]
    above = [brute_force.positive(joint, threshold) for joint in seen]
    by_sides = sum(
        mass * (same if is_above else 1 - same) for is_above, (mass, same) in zip(above, decided, strict=True)
    )
    assert tb.expected_agreement(classifier, chosen, threshold) == pytest.approx(by_sides, abs=1e-11)


@pytest.mark.parametrize("general", [False, True])
@given(data=st.data(), threshold=st.floats(0, 1))
@settings(max_examples=60)
def test_a_threshold_between_two_posteriors_changes_nothing(
    general: bool, data: st.DataObject, threshold: float
) -> None:
    classifier, subset = data.draw(classifiers_with_subset(general=general))
    seen = [joint for joint in brute_force.instances(classifier, subset).values() if sum(joint)]
    posteriors = sorted({joint[0] / sum(joint) for joint in seen})
    assume(all(abs(one - threshold) > 1e-9 for one in posteriors))
    assume(threshold < 1)
    agreements = {
        one: tb.expected_agreement(classifier, names(classifier, subset), one) for one in (threshold, *posteriors, 1.0)
    }
    least = min(one for one in (*posteriors, 1.0) if one > threshold)
    assert agreements[threshold] == pytest.approx(agreements[least], abs=1e-11)
    best, _ = tb.maximum_achievable_agreement(classifier, names(classifier, subset))
    assert best == pytest.approx(max(agreements.values()), abs=1e-11)


@given(data=st.data(), budget=st.integers(0, 6))
@settings(max_examples=60)
def test_subsets_that_exhaust_the_budget_suffice_for_naive_bayes(data: st.DataObject, budget: int) -> None:
    classifier, _ = data.draw(classifiers_with_subset())
    n = classifier.n_features
    costs = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    chosen = [[i for i in range(n) if bits >> i & 1] for bits in range(2**n)]
    left = {tuple(one): budget - sum(costs[i] for i in one) for one in chosen}
    best = {one: brute_force.achievable_agreement(classifier, one) for one in left if left[one] >= 0}
    full = [one for one in best if all(i in one or costs[i] > left[one] for i in range(n))]
    assert max(best[one] for one in full) == pytest.approx(max(best.values()), abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_large_subsets_are_not_written_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, [2, 3, 2, 2, 2, 2], 0.4, coarse=seed % 3 == 0)
    chosen = list(classifier.features[: 4 + seed % 3])
    exact, interval = tb.maximum_achievable_agreement(classifier, chosen, engine="dense")
    at_threshold = [tb.expected_agreement(classifier, chosen, t, engine="dense") for t in (0.0, 0.3, 0.4, 1.0)]
    for limit in ("MAX_INSTANCES", "_MOST_SORTED"):
        monkeypatch.setattr(f"trimbench.trimming.engines.log_odds.{limit}", 4)
    value, (low, high) = tb.maximum_achievable_agreement(classifier, chosen, engine="log_odds")
    assert value == pytest.approx(exact, abs=1e-11)
    assert low < high
    if seed % 3:  # without ties
        assert (low, high) == pytest.approx(interval, abs=1e-9)
    found = [tb.expected_agreement(classifier, chosen, t, engine="log_odds") for t in (0.0, 0.3, 0.4, 1.0)]
    assert found == pytest.approx(at_threshold, abs=1e-11)
