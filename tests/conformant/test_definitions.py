"""Single functions of the package against their definitions, on problems small enough to try everything."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.brute_force_explanations import changed_probabilities, random_case, random_mixture
from trimbench.conformant import mixture as conformant_mixture
from trimbench.conformant import probabilistic
from trimbench.conformant.distribution import _shared_name
from trimbench.conformant.explanations import _greedy, contrast
from trimbench.conformant.mixture import MixturePrior, clusters
from trimbench.conformant.probabilistic import SetSearch, _around, _largest_sums, _Node
from trimbench.conformant.same_decision import (
    DecisionProblem,
    HiddenFeature,
    SameDecision,
    _convolve,
    _Rounded,
    _rounded,
)
from trimbench.papers.conformant import imputers
from trimbench.papers.conformant.imputers import fit_mixture

Array = NDArray[np.float64]
NONE = np.array([-1])


def problem_of(model: tb.ConformantModel, row: Array) -> DecisionProblem:
    """Of keeping the predicted class against all others."""
    winner = int(model.decision_scores(row[None])[0].argmax())
    return DecisionProblem.of(model, row, winner, tuple(k for k in range(len(model.classes)) if k != winner))


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_sums_of_a_few_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, left = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    steps = rng.normal(size=(n, 2))
    sets = [set(one) for size in range(left + 1) for one in itertools.combinations(range(n), size)]

    def largest(allowed: list[set[int]]) -> Array:
        return np.max([steps[sorted(one)].sum(axis=0) for one in allowed], axis=0)

    best, forced_in, forced_out = _largest_sums(steps, left)
    np.testing.assert_allclose(best, largest(sets), atol=1e-12)
    for row in range(n):
        np.testing.assert_allclose(forced_in[row], largest([one for one in sets if row in one]), atol=1e-12)
        np.testing.assert_allclose(forced_out[row], largest([one for one in sets if row not in one]), atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_the_quick_probability_is_that_of_normal_margins(seed: int, n_components: int) -> None:
    model, row = random_mixture(seed, 6, n_components)
    problem = problem_of(model, row)
    decision = SameDecision(problem, np.arange(len(problem.hidden)))
    observed = set(np.flatnonzero(problem.observed).tolist())
    some = sorted(observed)[: len(observed) // 2]
    others = sorted(observed - set(some))

    def by_definition(shown: list[int]) -> float:
        logs = problem.log_prior + problem.evidence[shown].sum(axis=0)
        states = np.exp(logs) / np.exp(logs).sum()
        mean = np.tile(problem.base + problem.shown[shown].sum(axis=0), (problem.n_states, 1))
        variance = np.zeros_like(mean)
        for place in set(range(len(problem.hidden))) - set(shown):
            feature = problem.hidden[place]
            first = feature.chances.T @ feature.values
            mean += first
            variance += feature.chances.T @ feature.values**2 - first**2
        return float(1 - states @ norm.cdf(0, mean, np.sqrt(np.maximum(variance, 1e-12))).sum(axis=1))

    assert decision.approximate(some, NONE, NONE)[0, 0] == pytest.approx(by_definition(some), abs=1e-9)
    found = decision.approximate(some, np.array(some, dtype=np.intp), np.array(others, dtype=np.intp))
    for (i, out), (j, into) in itertools.product(enumerate(some), enumerate(others)):
        assert found[i, j] == pytest.approx(by_definition([one for one in some if one != out] + [into]), abs=1e-9)


def test_the_fine_grid_has_narrower_bounds_than_the_coarse_one() -> None:
    model, row = random_case(8)
    problem = problem_of(model, row)
    decision = SameDecision(problem, np.arange(len(problem.hidden)))
    coarse, fine = decision.bounds([], 0.0), decision.bounds([], 0.0, precise=True)
    kept = 1 - changed_probabilities(model, row)[0]
    assert coarse[0] <= fine[0] <= kept <= fine[1] <= coarse[1]
    assert [grid for grid, tails in decision._grids.items() if tails] == [0, 1]
    assert decision._grids[1][0]._step * 4 < decision._grids[0][0]._step


def test_a_probability_that_no_set_reaches_is_that_of_the_best_set() -> None:
    compared = 0
    for seed in range(0, 100, 5):  # of these, some have missing features
        model, row = random_case(seed, 8)
        kept = 1 - changed_probabilities(model, row)
        for delta in (0.9, 0.99):
            found = model.explain(row, delta=delta)
            low, high = found.probability
            assert 0 <= low <= high <= 1
            if np.nanmax(kept) < delta - 1e-9:
                compared += 1
                assert low <= np.nanmax(kept) <= high, seed
                assert kept[sum(1 << i for i in found.features)] == pytest.approx(np.nanmax(kept), abs=1e-9)
    assert compared >= 3


def test_a_real_feature_that_never_varied_adds_its_one_value() -> None:
    X = np.column_stack([np.full(6, 2.5), np.tile([0.0, 1.0], 3), np.linspace(-1, 1, 6)])
    weights = np.array([[0.0, 0.7, -1.5], [0.0, 1.0, 2.0], [0.0, 0.5, 0.25]])
    model = tb.conform(fake_classifier(weights, np.array([0.1, 0.0, -0.1])), X, real=[0, 2])
    problem = DecisionProblem.of(model, X[0], 0, (1, 2))
    place = next(place for place, columns in enumerate(model.layout.features) if columns == (0,))
    feature = problem.hidden[place]
    assert len(problem.hidden) == 3
    np.testing.assert_allclose(feature.values, [2.5 * (weights[0, 0] - weights[0, 1:])])
    np.testing.assert_array_equal(feature.chances, np.ones((1, 3)))
    assert not feature.is_real


def test_showing_more_never_hurts_where_all_values_are_the_best() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([0.0, -0.5])), X)
    assert SetSearch(problem_of(model, X[3]), 0.9, 100)._monotone
    three = tb.conform(fake_classifier(np.eye(3)[:2], np.zeros(3)), X)
    assert not SetSearch(problem_of(three, X[3]), 0.9, 100)._monotone


def search_of_three_classes() -> SetSearch:
    X = np.vstack([np.zeros(3), np.eye(3)])
    model = tb.conform(fake_classifier(np.eye(3), np.zeros(3)), X)
    return SetSearch(problem_of(model, X[1]), 0.9, 100)


def test_features_that_speak_for_nothing_are_not_among_the_strongest() -> None:
    search = search_of_three_classes()
    search._worth = np.array([0.0, 1.0, -1.0])
    everything = _Node(np.zeros(0, dtype=np.intp), np.arange(3))
    assert search._strongest(everything, 3) == [1]


def test_a_feature_that_one_bound_forbids_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    search, nobody = search_of_three_classes(), np.zeros(3, dtype=bool)
    answers = iter([(nobody, np.array([True, False, True])), (np.array([False, False, True]), ~nobody)])
    monkeypatch.setattr(probabilistic, "decided_by_odds", lambda *_: next(answers))
    node = search._decided([np.ones(3), np.ones(3)], np.zeros(0, dtype=np.intp), np.arange(3), 2)
    assert node is not None
    assert (node.shown.tolist(), node.undecided.tolist()) == ([2], [0])


@pytest.mark.parametrize("reached", [True, False])
def test_all_candidates_are_tried_where_the_path_ends_before(reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_of_three_classes()
    full = search.problem.candidates.tolist()
    monkeypatch.setattr(search, "_path", lambda: (full[:1], [0.0, 0.0]))
    monkeypatch.setattr(search, "_reaches", lambda chosen: reached and chosen == full)
    assert search._greedy() == (tuple(full) if reached else None)


def test_a_greedy_cover_stops_as_soon_as_it_is_one() -> None:
    assert _greedy(np.array([[1.0], [2.0], [2.0]]), np.array([2.0])) == (1,)
    assert _greedy(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([1.0, 3.0])) == (1, 0)


def test_one_contrastive_set_is_listed_unless_more_are_asked_for() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, -1.5])), X)
    assert len(contrast(model, X[3], max_sets=5).sets) == 2
    assert len(contrast(model, X[3]).sets) == 1


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_density_of_a_prior_is_that_of_its_counts(smoothing: float) -> None:
    rng = np.random.default_rng(3)
    classifier = fake_classifier(rng.normal(size=(5, 2)), rng.normal(size=2))
    values = [np.hstack([np.eye(3)[rng.integers(0, 3, 30)], rng.random((30, 2)) < p]) for p in (0.3, 0.6)]
    prior = MixturePrior(tb.conform(classifier, values[0], categorical=[[0, 1, 2]]).components[0], 0.0, smoothing)
    first, second = (prior.maximise(clusters(prior.model, X, 1, 0)) for X in values)

    def by_definition(mixture: tb.ConformantModel) -> float:
        (part,) = mixture.components
        of_values = part.log_probabilities.sum() + part.log_complements[part.layout.binary].sum()
        return smoothing * float(part.log_prior.sum() + of_values)

    # It is known up to a constant.
    found = prior.log_density(first) - prior.log_density(second)
    assert found == pytest.approx(by_definition(first) - by_definition(second), abs=1e-8)
    if not smoothing:
        assert prior.log_density(first) == 0


def test_a_mixture_of_binary_columns_takes_at_most_so_many_steps() -> None:
    rows = (np.random.default_rng(0).random((40, 5)) < 0.5).astype(float)
    for n in (1, 4):
        found = fit_mixture(rows, 3, max_iterations=n, tolerance=-np.inf)
        assert len(found.log_likelihoods) == n


def test_a_single_component_of_binary_columns_has_their_frequencies() -> None:
    rows = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0]])
    found = fit_mixture(rows, 1)
    c = imputers._PSEUDO_COUNT
    np.testing.assert_allclose(found.theta[:, 0], [(3 + c) / (4 + 2 * c), (1 + c) / (3 + 2 * c)])


@pytest.mark.parametrize("winner", [0, 1])
def test_a_feature_without_evidence_supports_the_second_class_alone(winner: int) -> None:
    # An even prediction is the first class, so that the second one needs what the first one does not.
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = tb.conform(fake_classifier(np.array([[0.0, 3.0], [0.0, 0.0]]), np.array([0.0, -1.5])), X)
    found = model.explain(X[winner])
    assert found.evidence[1] == 0
    assert set(found.support) == ({0, 1} if winner else {0})


def test_an_explanation_against_all_classes_names_none() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    three = tb.conform(fake_classifier(np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 1.0]]), np.zeros(3)), X)
    assert three.explain(X[3], delta=0.9).against is None
    assert three.explain(X[3], 1, delta=0.9).against == 1
    two = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 2.0]]), np.zeros(2)), X)
    assert two.explain(X[3], delta=0.9).against == 0


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (["a_x", "a_y"], "a"),
        (["town=x", "town=y"], "town"),
        (["_x", "_y"], "_"),
        (["p", "q"], "p"),
        (["ab1", "ab2"], "ab"),
    ],
)
def test_one_hot_columns_share_the_beginning_of_their_names(names: list[str], shared: str) -> None:
    assert _shared_name(names) == shared


def test_the_worth_of_features_does_not_depend_on_how_unlikely_the_row_is() -> None:
    model, row = random_mixture(1, 6, 2)
    problem = problem_of(model, row)
    unlikely = replace(problem, log_prior=problem.log_prior - 2000)
    np.testing.assert_allclose(unlikely.worth, problem.worth, atol=1e-9)
    assert np.isfinite(problem.worth).all()


def test_learning_a_mixture_ends_with_the_first_small_gain() -> None:
    rng = np.random.default_rng(2)
    X = (rng.random((80, 6)) < np.where(np.arange(80)[:, None] % 2, 0.25, 0.65)).astype(float)
    classifier = fake_classifier(rng.normal(size=(6, 2)), np.zeros(2))
    found = tb.conform(classifier, X, n_components=2)
    gains = np.diff(found.objectives) / np.abs(found.objectives[1:])
    assert len(gains) > 1
    assert gains[-1] < conformant_mixture._TOLERANCE
    assert (gains[:-1] >= conformant_mixture._TOLERANCE).all()


def test_rounding_of_a_term_is_bounded() -> None:
    """Mean and largest distance of the errors of values in cells, by many values of each cell."""
    rng = np.random.default_rng(0)
    values, chances, width, step = rng.normal(size=(9, 1)), rng.dirichlet(np.ones(9), size=2).T, 0.03, 0.2
    feature = HiddenFeature(values, chances, np.array([width]), chances.T @ values, np.zeros((2, 1)))
    found = _rounded(feature, 0, step, None)
    cells = values + np.linspace(-width / 2, width / 2, 101)
    errors = cells - found.low - step * np.rint((values - values.min()) / step)
    mean, _, farthest = found.errors
    assert mean == pytest.approx(chances.T @ errors.mean(axis=1), abs=1e-12)
    assert farthest == pytest.approx(np.abs(errors[None] - mean[:, None, None]).max(axis=(1, 2)), abs=1e-12)
    merged = [chances[np.rint((values[:, 0] - values.min()) / step) == shift].sum(axis=0) for shift in found.shifts]
    assert found.chances == pytest.approx(np.array(merged), abs=1e-15)


@pytest.mark.parametrize("shifts", [[0], [0, 3], [0, 1, 4], list(range(60))])
def test_sums_of_terms_are_convolutions(shifts: list[int]) -> None:
    rng = np.random.default_rng(1)
    before = rng.random((2, 5))
    chances = rng.random((len(shifts), 2))
    table = np.zeros((2, 80))
    table[:, :5] = before
    reached = _convolve(table, 5, _Rounded(0.0, np.array(shifts), chances, np.zeros((3, 2)), 0.0))
    assert reached == 5 + shifts[-1]
    for state in range(2):
        dense = np.zeros(shifts[-1] + 1)
        dense[shifts] = chances[:, state]
        assert table[state, :reached] == pytest.approx(np.convolve(before[state], dense), abs=1e-12)


def test_bounds_of_a_probability_are_probabilities() -> None:
    assert _around(1.0)[1] == 1.0
    assert _around(0.0)[0] == 0.0
    assert _around(0.5) == pytest.approx((0.5, 0.5), abs=1e-8)


def test_what_is_not_given_is_what_the_documentation_says() -> None:
    """One pseudo-count, one component, one explanation; changing them would change published numbers."""
    wanted = {
        tb.conform: {"solver": "newton", "smoothing": 1.0, "n_components": 1, "sample_weight": None, "random_state": 0},
        tb.ConformantModel.explain: {"max_sets": 1},
    }
    for function, defaults in wanted.items():
        found = inspect.signature(function).parameters
        assert {name: found[name].default for name in defaults} == defaults
