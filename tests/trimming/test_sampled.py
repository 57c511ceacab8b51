"""Trimming by sampling: intervals and bounds hold at least as often as stated, and large models are answered."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.stats import binom

import trimbench as tb
from tests.networks.random_models import random_network
from tests.trimming.brute_force import tree_augmented
from trimbench.networks.inference.joint import ContractionTooLarge, joint_distribution
from trimbench.networks.sampling import RowSampler
from trimbench.trimming.problem import Limits, checked_choice
from trimbench.trimming.sampled import (
    binomial_interval,
    mean_upper_bound,
    rows_for_width,
    trim_by_sampling,
    upper_bound,
)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less work for upper bounds and exact posteriors."""
    monkeypatch.setattr("trimbench.trimming.sampled._LOOKUPS_PER_SECOND", 10**6)
    monkeypatch.setattr("trimbench.trimming.search.exchange._SECONDS", 0.3)


def test_intervals_and_bounds_cover_the_exact_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both hold with probability 0.9 at least; 10 models of which each may miss by chance."""
    for name, value in (("_SEARCH_ROWS", 4000), ("_BOUND_ROWS", 2000), ("_LOOKUPS_PER_SECOND", 10**5)):
        monkeypatch.setattr(f"trimbench.trimming.sampled.{name}", value)
    missed = {"interval": 0, "bound": 0}
    for seed in range(10):
        classifier = tree_augmented(8, seed, coarse=seed % 2 == 0)
        choice = checked_choice(classifier.features, 3)
        found = trim_by_sampling(classifier, choice, Limits(), seed=seed, confidence=0.9, width=0.05)[0]
        exact = tb.expected_agreement(classifier, found.features, found.threshold, engine="dense")
        missed["interval"] += not found.agreement_interval[0] <= exact <= found.agreement_interval[1]
        missed["bound"] += found.upper_bound < tb.trim(classifier, 3, engine="dense").agreement
        assert found.agreement_interval[1] - found.agreement_interval[0] <= 0.055
    # With the stated confidence, more than 3 misses of 10 have a probability below 1.3 %.
    assert binom.sf(3, 10, 0.1) < 0.013
    assert max(missed.values()) <= 3


def test_few_rows_bound_less_and_none_nothing() -> None:
    every = tree_augmented(9, 1)
    hidden = tb.BayesianClassifier(every.model, "c", positive="1", features=every.features[2:])
    choice = checked_choice(hidden.features, 2)
    rows = hidden.draw(2500, np.random.default_rng(1))
    bounds = [upper_bound(hidden, choice, rows[:500], rows[500:], 0.9, work) for work in (10**8, 10**5, 10**3)]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[1] < bounds[2] == 1.0


@pytest.mark.usefixtures("quick")
def test_few_subsets_are_all_tried() -> None:
    for seed in range(3):
        classifier = tree_augmented(9, seed)
        choice = checked_choice(classifier.features, 3)
        found = trim_by_sampling(classifier, choice, Limits())[0]
        best = tb.trim(classifier, 3, engine="dense").agreement
        assert tb.expected_agreement(classifier, found.features, found.threshold, engine="dense") >= best - 0.01
    assert trim_by_sampling(classifier, choice, Limits())[0] == found, "the seed decides the answer"


@pytest.mark.usefixtures("quick")
def test_costs_groups_required_and_forbidden_features_are_kept_to() -> None:
    classifier = tree_augmented(30, 1)
    costs = {"blood": 2.0} | {f"x{i}": 1.0 for i in range(3, 30)}
    groups = {"blood": ["x0", "x1", "x2"]}
    choice = checked_choice(classifier.features, 5, costs, groups=groups, required=["x7"], forbidden=["x8", "x9"])
    found = trim_by_sampling(classifier, choice, Limits(None, 400), width=0.1)[0]
    assert 7 in found.kept
    assert not {8, 9} & set(found.kept)
    assert choice.is_affordable(found.kept)


def test_the_features_that_matter_are_enough() -> None:
    network = tree_augmented(12, 5).model
    assert isinstance(network, tb.BayesianNetwork)
    leaf = next(name for name in network.nodes if not network.children(name))
    classifier = tb.BayesianClassifier(network, leaf, positive="1")
    found = trim_by_sampling(classifier, checked_choice(classifier.features, 2), Limits())[0]
    assert set(found.features) == set(network.parents(leaf))
    assert (found.agreement, found.confidence, found.upper_bound) == (1.0, 1.0, 1.0)
    assert found.agreement_interval == (1.0, 1.0)


@pytest.mark.usefixtures("quick")
def test_sixty_features_with_a_narrow_interval() -> None:
    classifier = tree_augmented(60, 7)
    trimming = tb.trim(classifier, 10)
    low, high = trimming.agreement_interval
    assert len(trimming.features) == 10
    assert low <= trimming.agreement <= high <= trimming.upper_bound < 1.0
    assert high - low <= 0.01
    assert (trimming.confidence, trimming.optimal) == (0.99, False)
    rows = classifier.model.sample(20_000, np.random.default_rng(11))
    agreed = float((trimming.classifier.predict(rows) == classifier.predict(rows)).mean())
    assert low - 0.01 <= agreed <= high + 0.01
    limited = tb.trim(classifier, 10, time_limit=0.5)
    assert limited.agreement_interval[0] > 0.5


@pytest.mark.usefixtures("quick")
def test_a_mixture_beyond_the_table_is_trimmed() -> None:
    rng = np.random.default_rng(4)
    components = tb.NaiveBayes(
        rng.dirichlet(np.ones(4)), [rng.dirichlet([1.0, 1.0], size=4) for _ in range(40)], class_variable="part"
    )
    classifier = tb.BayesianClassifier(tb.NaiveBayesMixture(components, ["a", "a", "b", "b"]), positive="a")
    trimming = tb.trim(classifier, 5)
    assert trimming.confidence == 0.99
    low, high = trimming.agreement_interval
    assert 0.6 < low < high < low + 0.011


@pytest.mark.parametrize("evidence", [{}, {"c": "1"}, {"x3": "0"}, {"x3": "0", "x5": "1", "c": "0"}])
def test_rows_are_drawn_given_the_evidence(evidence: dict[str, str]) -> None:
    network = tree_augmented(6, 8).model
    assert isinstance(network, tb.BayesianNetwork)
    free = [node for node in network.nodes if node not in evidence]
    columns = free[::2]
    rows = RowSampler.of(network, columns, evidence).draw(40_000, np.random.default_rng(2))
    exact = joint_distribution(network, columns, evidence=evidence).reshape(-1)
    places = np.ravel_multi_index(tuple(rows.T.astype(int)), (2,) * len(columns))
    seen = np.bincount(places, minlength=exact.size) / len(rows)
    assert np.abs(seen - exact).max() < 5 * math.sqrt(0.25 / len(rows))


def test_impossible_evidence_is_not_drawn() -> None:
    network = tb.BayesianNetwork(
        {"c": ["0", "1"], "x": ["0", "1"]}, {"x": ["c"]}, {"c": [1.0, 0.0], "x": [[1.0, 0.0], [0.0, 1.0]]}
    )
    for evidence in ({"c": "1"}, {"x": "1"}):
        with pytest.raises(ValueError, match="evidence must have a probability above 0"):
            RowSampler.of(network, ["x" if "c" in evidence else "c"], evidence)


@pytest.mark.usefixtures("quick")
def test_evidence_below_the_features_is_trimmed() -> None:
    network = tree_augmented(40, 9).model
    assert isinstance(network, tb.BayesianNetwork)
    leaf = next(name for name in reversed(network.nodes) if not network.children(name))
    classifier = tb.BayesianClassifier(network, "c", positive="1", evidence={leaf: "1"})
    trimming = tb.trim(classifier, 4)
    assert trimming.agreement_interval[1] - trimming.agreement_interval[0] <= 0.01
    assert leaf not in trimming.features


def test_too_many_hidden_variables_are_refused() -> None:
    rng = np.random.default_rng(0)
    names = [f"h{i}" for i in range(40)]
    parents = {name: [str(p) for p in rng.choice(names[:i], min(i, 4), replace=False)] for i, name in enumerate(names)}
    leaves = {f"f{i}": [str(p) for p in rng.choice(names, 4, replace=False)] for i in range(40)}
    network = random_network(rng, parents | leaves)
    classifier = tb.BayesianClassifier(network, "h0", positive="1", features=list(leaves))
    with pytest.raises(ContractionTooLarge, match="give the classifier more features, so that fewer variables"):
        tb.trim(classifier, 3, time_limit=1.0)


def test_expensive_rows_are_few_without_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = tree_augmented(12, seed=3)
    features = [f"x{i}" for i in range(6)]
    hidden = tb.BayesianClassifier(classifier.model, "c", positive="1", features=features)
    choice = checked_choice(features, 2)
    operations = hidden.rows.operations
    assert operations > 0
    # A minute is enough for 1,000 rows to search on, and for 4/3 as many to judge.
    monkeypatch.setattr("trimbench.trimming.sampled._OPERATIONS_PER_SECOND", operations * 1000 / (0.3 * 60))
    with_rows: list[int] = []

    def noted(agreed: int, n_rows: int, confidence: float) -> tuple[float, float]:
        with_rows.append(n_rows)
        return binomial_interval(agreed, n_rows, confidence)

    monkeypatch.setattr("trimbench.trimming.sampled.binomial_interval", noted)
    trim_by_sampling(hidden, choice, Limits())
    assert 1300 <= with_rows[0] <= 1334


def test_binomial_intervals_cover() -> None:
    for n, chance in ((20, 0.5), (200, 0.97), (1000, 0.2)):
        covered = 0.0
        for k in range(n + 1):
            low, high = binomial_interval(k, n, 0.95)
            covered += float(binom.pmf(k, n, chance)) * (low <= chance <= high)
        assert covered >= 0.95
    low, high = binomial_interval(0, 50, 0.9)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.05 ** (1 / 50))
    n = rows_for_width(0.9, 0.01, 0.99)
    low, high = binomial_interval(round(0.9 * n), n, 0.99)
    assert high - low <= 0.01


def test_bounds_on_means_hold() -> None:
    rng = np.random.default_rng(6)
    missed = sum(mean_upper_bound(rng.beta(2, 5, size=100), 1.0, 0.9) < 2 / 7 for _ in range(300))
    assert missed <= 30


@pytest.mark.usefixtures("quick")
def test_exact_posteriors_fill_a_large_budget() -> None:
    """With 16 features, hardly two rows look alike; averages over rows that do say nothing about more features."""
    classifier = tree_augmented(40, 7)
    few = trim_by_sampling(classifier, checked_choice(classifier.features, 6), Limits())[0]
    many = trim_by_sampling(classifier, checked_choice(classifier.features, 16), Limits())[0]
    assert len(many.features) > 10
    assert many.agreement_interval[0] > few.agreement_interval[1] + 0.02


def test_little_time_gives_a_subset_all_the_same() -> None:
    classifier = tree_augmented(40, 2)
    start = time.process_time()
    found = trim_by_sampling(classifier, checked_choice(classifier.features, 8), Limits(0.3))[0]
    assert time.process_time() - start < 0.5
    assert len(found.features) <= 8
    assert found.agreement_interval[0] > 0.4


def test_no_time_gives_a_bound_all_the_same() -> None:
    classifier = tree_augmented(40, 2)
    hidden = tb.BayesianClassifier(classifier.model, "c", positive="1", features=classifier.features[1:])
    for original in (classifier, hidden):
        found = trim_by_sampling(original, checked_choice(original.features, 8), Limits(1e-3))[0]
        assert found.agreement_interval[1] <= found.upper_bound < 1.0


@pytest.mark.usefixtures("quick")
def test_a_search_on_drawn_rows_that_was_limited_can_go_on() -> None:
    classifier = tree_augmented(40, 3)
    stopped = tb.trim(classifier, 3, evaluation_limit=10)
    assert stopped.confidence < 1.0
    whole = tb.trim(classifier, 3)
    assert stopped.n_evaluations < whole.n_evaluations
    finished = stopped.resume()
    assert (finished.features, finished.agreement) == (whole.features, whole.agreement)
    assert whole.resume() is whole
    assert finished.resume() is finished
