"""Parts of the searches and solvers, one at a time, each against its definition."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.brute_force_explanations import changed_probabilities, random_case, random_mixture
from trimbench.conformant import explanations, probabilistic, same_decision
from trimbench.conformant import mixture as conformant_mixture
from trimbench.conformant.decision_problem import DecisionProblem, HiddenFeature, _cells
from trimbench.conformant.margin_tails import (
    HIDDEN,
    SHOWN,
    UNDECIDED,
    MarginTails,
    _convolve,
    _Rounded,
    _rounded,
    _two_point_proxy,
)
from trimbench.conformant.mixture import MixturePrior, Tilts, clusters
from trimbench.conformant.probabilistic import SetSearch, _Node, decided_by_odds
from trimbench.conformant.same_decision import SameDecision

Array = NDArray[np.float64]
NONE = np.array([-1])


def problem_of(model: tb.ConformantModel, row: Array) -> DecisionProblem:
    """Of keeping the predicted class against all others."""
    winner = int(model.decision_scores(row[None])[0].argmax())
    return DecisionProblem.of(model, row, winner, tuple(k for k in range(len(model.classes)) if k != winner))


def many_features(n_features: int = 20, n_classes: int = 2) -> tuple[tb.ConformantModel, Array]:
    rng = np.random.default_rng(5)
    X = (rng.random((60, n_features)) < 0.4).astype(float)
    weights, biases = rng.normal(size=(n_features, n_classes)), rng.normal(size=n_classes)
    return tb.conform(fake_classifier(weights, biases), X), X[0]


def test_a_feature_without_which_the_odds_are_too_small_must_be_shown() -> None:
    """The odds of the first state must be 3: evidence of 2 is needed, that of 0.1 is not enough, and -9 ruins them."""
    problem: Any = SimpleNamespace(
        log_prior=np.log([0.5, 0.5]), evidence=np.array([[2.0, 0.0], [0.1, 0.0], [0.0, 9.0]])
    )
    decided = decided_by_odds(problem, np.array([0.1, -0.3]), np.array([], dtype=int), np.arange(3), 2)
    assert decided is not None
    assert decided[0].tolist() == [True, False, False]
    assert decided[1].tolist() == [True, True, False]
    alone = decided_by_odds(problem, np.array([0.1, -0.3]), np.array([], dtype=int), np.arange(3), 1)
    assert alone is not None
    assert alone[1].tolist() == [True, False, False]
    assert decided_by_odds(problem, np.array([0.1, -0.9]), np.array([], dtype=int), np.arange(3), 2) is None
    assert decided_by_odds(problem, np.array([-0.1, -0.9]), np.array([], dtype=int), np.arange(3), 2) is None


def test_bounds_do_not_depend_on_what_was_asked_before() -> None:
    model, row = many_features()
    problem, rng = problem_of(model, row), np.random.default_rng(1)
    order = np.arange(20)
    asked = MarginTails(problem, 0, 2**10, order)
    for _ in range(12):
        modes = rng.choice([SHOWN, HIDDEN, HIDDEN, UNDECIDED], size=20)
        modes[: rng.integers(20)] = HIDDEN
        fresh = MarginTails(problem, 0, 2**10, order).bounds(modes)
        for found, expected in zip(asked.bounds(modes), fresh, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_the_variance_proxy_of_two_points(chance: float) -> None:
    """By Kearns and Saul, E exp(s (x - p)) <= exp(s^2 proxy / 2), with equality for one s where p is not 1/2."""
    proxy = _two_point_proxy(chance)
    s = np.linspace(-12, 12, 2401)
    exponent = np.log(chance * np.exp(s * (1 - chance)) + (1 - chance) * np.exp(-s * chance))
    assert (exponent <= s**2 * proxy / 2 + 1e-12).all()
    assert np.nanmax(exponent[s != 0] / (s[s != 0] ** 2 / 2)) == pytest.approx(proxy, rel=1e-4)


def test_the_rounding_of_two_values_has_the_proxy_of_their_distance() -> None:
    feature = HiddenFeature.discrete(np.array([[0.0], [0.26]]), np.array([[0.9, 0.3], [0.1, 0.7]]))
    mean, proxies, absolute = _rounded(feature, 0, 0.1, None).errors
    errors = np.array([0.0, -0.04])
    assert mean == pytest.approx([-0.004, -0.028])
    assert proxies == pytest.approx([0.04**2 * _two_point_proxy(0.9), 0.04**2 * _two_point_proxy(0.3)])
    assert absolute == pytest.approx([np.abs(errors - m).max() for m in mean])


def test_an_undecided_real_feature_adds_at_least_what_it_shows() -> None:
    """The middle of a cell stands for all of it, of which the upper end is half the width above."""
    feature = HiddenFeature(
        *(np.array([[0.0], [0.5]]), np.full((2, 1), 0.5), np.array([0.5]), np.zeros((1, 1)), np.zeros((1, 1)))
    )
    rounded = _rounded(feature, 0, 0.01, 0.6)
    assert (rounded.low + 0.01 * rounded.shifts).tolist() == pytest.approx([0.6, 0.75], abs=0.006)


def test_the_highest_and_lowest_amounts_are_those_of_possible_values() -> None:
    feature = HiddenFeature.discrete(np.array([[0.0, 3.0], [2.0, 1.0], [9.0, -9.0]]), np.array([[0.5], [0.5], [0.0]]))
    assert feature.highest.tolist() == [2.0, 3.0]
    assert feature.lowest.tolist() == [0.0, 1.0]


def test_cells_of_both_tails_are_equally_exact() -> None:
    cells = _cells(np.zeros(1), np.ones(1), np.ones(1))
    np.testing.assert_allclose(cells.chances[:, 0], cells.chances[::-1, 0], rtol=1e-9)
    assert cells.chances.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("winner", "rival"), [(0, 1), (1, 0)])
def test_a_row_that_is_even_keeps_its_own_class(winner: int, rival: int) -> None:
    """The first class wins ties; where all features are observed, the second one keeps what it has."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, -1.0]]), np.zeros(2)), X)
    even, with_gap = np.array([1.0, 1.0]), np.array([1.0, np.nan])
    assert DecisionProblem.of(model, even, winner, (rival,)).base[0] > 0
    assert (DecisionProblem.of(model, with_gap, winner, (rival,)).base[0] > 0) == (winner == 0)
    clear = np.array([1.0, 0.0])
    assert (DecisionProblem.of(model, clear, 1, (0,)).base[0] > 0) is np.False_


def test_without_features_to_show_exponential_bounds_are_those_of_none() -> None:
    model, row = many_features(6)
    decision = SameDecision(problem_of(model, row), np.arange(6))
    shown, undecided, nothing = np.array([1]), np.array([0, 2, 3]), np.array([], dtype=int)
    (found,), (expected,) = (decision.exponential_bounds(shown, some, 0) for some in (undecided, nothing))
    np.testing.assert_array_equal(found, expected)
    (more,) = decision.exponential_bounds(shown, undecided, 2)
    assert (more >= expected).all()


def test_every_smallest_set_is_listed_and_said_to_be_every_one() -> None:
    compared = 0
    for seed in range(30):
        model, row = random_case(seed, 7)
        kept = 1 - changed_probabilities(model, row)
        if np.isnan(kept).any() or len(model.classes) > 2:
            continue
        delta = 0.9
        reaching = [mask for mask in range(len(kept)) if kept[mask] >= delta]
        size = min(mask.bit_count() for mask in reaching)
        smallest = {mask for mask in reaching if mask.bit_count() == size}
        if len(smallest) < 2 or min(abs(kept - delta)) < 1e-6:
            continue
        compared += 1
        for max_sets in (len(smallest) - 1, len(smallest), len(smallest) + 1):
            found, _ = SetSearch(problem_of(model, row), delta, 10**6).run(max_sets)
            masks = {sum(1 << feature for feature in chosen) for chosen in found.sets}
            assert masks <= smallest
            assert len(masks) == min(max_sets, len(smallest))
            assert found.complete == (max_sets >= len(smallest) and max_sets > 1)
    assert compared >= 3


def test_certainty_has_a_probability_of_one() -> None:
    model, row = many_features(6)
    assert model.explain(row, delta=1.0).probability == (1.0, 1.0)


def test_what_stays_uncertain_is_bounded_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a feature is missing, no set may be certain; the probability is then that of all that is observed."""
    model, row = many_features(12)
    strongest = np.argsort(np.abs(model.weights[:, 1] - model.weights[:, 0]))[-6:]
    row[strongest] = np.nan
    exact = model.explain(row, delta=1.0)
    assert not exact.sufficient
    monkeypatch.setattr(probabilistic, "_TABLE_ENTRIES", 0)
    low, high = model.explain(row, delta=1.0).probability
    assert low - 1e-9 <= exact.probability[0] <= exact.probability[1] <= high + 1e-9
    decision = SameDecision(problem_of(model, row), np.arange(12))
    assert (low, high) == decision.bounds(np.flatnonzero(~np.isnan(row)).tolist(), 1.0, precise=True)
    assert high - low < 1e-3


@pytest.mark.parametrize("most_rows", [0, 20_000])
def test_losses_are_taken_one_by_one_where_there_are_too_many(most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "_MOST_ROWS", most_rows)
    model, row = many_features(6, 3)
    scores = model.decision_scores(row[None])[0]
    winner = int(scores.argmax())
    rivals = tuple(k for k in range(3) if k != winner)
    found, classes = explanations.smallest_losses(model, row, winner, rivals, 1)
    (chosen,) = found.sets
    left = model.decision_scores(np.where(np.isin(np.arange(6), chosen), np.nan, row)[None])[0]
    assert left.argmax() == classes[0] != winner
    for feature in chosen:  # none is lost in vain
        fewer = [one for one in chosen if one != feature]
        assert model.decision_scores(np.where(np.isin(np.arange(6), fewer), np.nan, row)[None])[0].argmax() == winner
    assert found.complete == (most_rows > 0 and found.complete)


@pytest.mark.parametrize("most_rows", [0, 20_000])
def test_a_class_that_no_loss_changes_has_no_set(most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "_MOST_ROWS", most_rows)
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = tb.conform(fake_classifier(np.array([[0.0, 0.1], [0.0, 0.1]]), np.array([0.0, 5.0])), X)
    found, classes = explanations.smallest_losses(model, X[3], 1, (0,), 1)
    assert (found.sets, classes) == ((), ())
    # Trying them all proves it; losing one after the other does not.
    assert found.complete == (most_rows > 0)


def test_fewer_distinct_rows_than_components_are_no_reason_to_warn() -> None:
    X = np.tile([[0.0, 1.0], [1.0, 0.0]], (10, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 0.5]]), np.zeros(2)), X, n_components=3)
    assert len(model.components) == 3


def test_the_variance_proxy_is_finite_near_certainty() -> None:
    assert _two_point_proxy(1e-12) == pytest.approx(1 / (2 * math.log(1e12)), rel=1e-6)
    assert _two_point_proxy(0.0) > 0


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
    assert fine[1] - fine[0] < 0.25 * (coarse[1] - coarse[0])


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


def test_a_greedy_cover_stops_as_soon_as_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "_MAX_STEPS", 0)  # nothing better is looked for
    for gains, needed, chosen in (([[1], [2], [2]], [2], (1,)), ([[1, 0], [0, 3]], [1, 3], (1, 0))):
        assert explanations.smallest_covers(np.array(gains, float), np.array(needed, float), 1).sets == (chosen,)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_density_of_a_prior_is_that_of_its_counts(smoothing: float) -> None:
    rng = np.random.default_rng(3)
    classifier = fake_classifier(rng.normal(size=(5, 2)), rng.normal(size=2))
    values = [np.hstack([np.eye(3)[rng.integers(0, 3, 30)], rng.random((30, 2)) < p]) for p in (0.3, 0.6)]
    prior = MixturePrior(tb.conform(classifier, values[0], categorical=[[0, 1, 2]]).components[0], 0.0, smoothing)
    first, second = (prior.maximise(clusters(prior.model, X, 1, 0)) for X in values)

    def by_definition(mixture: Tilts) -> float:
        (part,) = mixture.model().components
        of_values = part.log_probabilities.sum() + part.log_complements[part.layout.binary].sum()
        return smoothing * float(part.log_prior.sum() + of_values)

    # It is known up to a constant.
    found = prior.log_density(first) - prior.log_density(second)
    assert found == pytest.approx(by_definition(first) - by_definition(second), abs=1e-8)
    if not smoothing:
        assert prior.log_density(first) == 0


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


def test_what_is_not_given_is_what_the_documentation_says() -> None:
    """One pseudo-count, what held-out rows ask for, one explanation; changing them would change published numbers."""
    wanted = {
        tb.conform: {
            "solver": "newton",
            "smoothing": 1.0,
            "n_components": "auto",
            "covariance": "auto",
            "random_state": 0,
        },
        tb.ConformantModel.explain: {"max_sets": 1},
    }
    for function, defaults in wanted.items():
        found = inspect.signature(function).parameters
        assert {name: found[name].default for name in defaults} == defaults


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_the_same_decision_probability_adds_up_all_completions(
    seed: int, n_components: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(60, 6)).astype(float)
    classifier = fake_classifier(rng.normal(0, 1.5, (6, 2 + seed % 2)), rng.normal(size=2 + seed % 2))
    model = tb.conform(classifier, X, n_components=n_components, covariance="diagonal")
    rows = np.where(rng.random((5, 6)) < 0.5, np.nan, X[:5])
    rows[0] = X[0]
    expected = []
    for row in rows:
        full = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
        full = full[np.where(np.isnan(row), True, full == row).all(axis=1)]
        chances = np.exp(model.log_likelihood(full) - model.log_likelihood(row[None]))
        expected.append(float(chances[model.predict(full) == model.predict(row[None])].sum()))
    assert model.same_decision_probability(rows) == pytest.approx(expected, abs=1e-10)
    monkeypatch.setattr(same_decision, "_MOST_COMPLETIONS", 0)
    low, high = model.same_decision_probability(rows, interval=True)
    assert (low <= np.array(expected) + 1e-9).all()
    assert (np.array(expected) <= high + 1e-9).all()
    if seed % 2 == 0:
        assert (high - low).max() < 2e-3


@pytest.mark.parametrize(("most", "off"), [(2**20, 0.0), (0, 1e-5)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_components", [1, 2])
def test_the_same_decision_probability_adds_up_numbers_and_categories(
    n_components: int, n_classes: int, most: int, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All completions of categories, and for numbers the normal distribution; then categories on a grid."""
    rng = np.random.default_rng(n_components)
    X = np.hstack([rng.normal(size=(80, 3)), rng.integers(0, 2, (80, 4)), np.eye(3)[rng.integers(0, 3, 80)]])
    classifier = fake_classifier(rng.normal(size=(10, n_classes)), rng.normal(size=n_classes))
    kinds: Any = {"real": [0, 1, 2], "categorical": [[7, 8, 9]], "covariance": "diagonal"}
    model = tb.conform(classifier, X, n_components=n_components, **kinds)
    monkeypatch.setattr(same_decision, "_MOST_COMPLETIONS", most)
    for row, hidden in zip(X, ([0], [0, 1, 3], [0, 4, 7, 8, 9], [2, 3, 4, 5, 6, 7, 8, 9], range(10)), strict=False):
        row[list(hidden)] = np.nan
        low, high = model.same_decision_probability(row[None], interval=True)
        of_rivals = stays_by_states(model, row)
        lost = (1 - of_rivals).sum()
        assert 1 - lost - 2 * off * len(of_rivals) - 1e-11 <= low[0] <= max(1 - lost, 0) + 1e-11
        assert of_rivals.min() - 1e-11 <= high[0] <= of_rivals.min() + 2 * off + 1e-11


def stays_by_states(model: tb.ConformantModel, row: Array) -> Array:
    """P(no lower score than each other class) of a row with a missing number, by the definition of a mixture."""
    known = ~np.isnan(row)
    winner = int(model.decision_scores(row[None])[0].argmax())
    categories = np.array([[*bits, *one] for bits in itertools.product([0.0, 1.0], repeat=4) for one in np.eye(3)])
    categories = categories[np.where(known[3:], categories == row[3:], True).all(axis=1)]
    total, stays = 0.0, np.zeros(len(model.classes))
    for share, part in zip(np.exp(model.log_weights), model.components, strict=True):
        means, variances = part.real_moments
        ones, zeros = np.exp(part.log_probabilities), np.exp(part.log_complements)
        for k, prior in enumerate(np.exp(part.log_prior)):
            seen = share * prior * np.prod(norm.pdf(row[:3], means[:, k], np.sqrt(variances))[known[:3]])
            for own in categories:
                of_bits = np.where(own[:4] == 1, ones[3:7, k], zeros[3:7, k])
                chance = seen * np.prod(of_bits) * ones[7:, k][own[4:] == 1][0]
                difference = model.weights[:, [winner]] - model.weights
                mean = model.biases[winner] - model.biases + own @ difference[3:]
                mean = mean + np.where(known[:3], row[:3], means[:, k]) @ difference[:3]
                variance = np.where(known[:3], 0, variances) @ difference[:3] ** 2
                stays += chance * norm.cdf(mean / np.sqrt(np.maximum(variance, 1e-300)))
                total += chance
    return np.delete(stays / total, winner)


def test_the_same_decision_probability_of_real_features_is_that_of_draws() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    classifier = fake_classifier(rng.normal(size=(3, 2)), np.zeros(2))
    model = tb.conform(classifier, X, real=[0, 1, 2], n_components=1, covariance="diagonal")
    row = np.array([0.4, np.nan, np.nan])
    drawn, _ = model.sample(200_000, np.random.default_rng(1))
    near = drawn[np.abs(drawn[:, 0] - 0.4) < 0.02]
    near[:, 0] = 0.4
    kept = (model.predict(near) == model.predict(row[None])).mean()
    assert model.same_decision_probability(row[None])[0] == pytest.approx(kept, abs=0.03)
