"""Parts of the searches and solvers, one at a time, each against its definition."""

from __future__ import annotations

import itertools
import math
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from tests.conformant.brute_force_explanations import changed_probabilities, random_case
from tests.conformant.test_definitions import problem_of
from trimbench.conformant import explanations, probabilistic
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.probabilistic import SetSearch, decided_by_odds
from trimbench.conformant.problem import ReducedProblem, _blocks, _step
from trimbench.conformant.same_decision import (
    HIDDEN,
    SHOWN,
    UNDECIDED,
    DecisionProblem,
    HiddenFeature,
    MarginTails,
    SameDecision,
    _cells,
    _rounded,
    _two_point_proxy,
)
from trimbench.papers.conformant.figure6 import explain_by_weight

Array = NDArray[np.float64]


def many_features(n_features: int = 20, n_classes: int = 2) -> tuple[tb.ConformantModel, Array]:
    rng = np.random.default_rng(5)
    X = (rng.random((60, n_features)) < 0.4).astype(float)
    weights, biases = rng.normal(size=(n_features, n_classes)), rng.normal(size=n_classes)
    return tb.conform(fake_classifier(weights, biases), X), X[0]


@pytest.mark.parametrize("seed", range(8))
def test_features_are_decided_where_no_choice_has_the_odds(seed: int) -> None:
    """Sets that reach what is needed have all features that must be shown, and none that may not."""
    rng = np.random.default_rng(seed)
    gain = np.array([[0.2, -0.3], [0.1, 0.3, -0.4], [0.0, 0.2, -0.4]][seed % 3])
    problem: Any = SimpleNamespace(
        log_prior=np.log(rng.dirichlet(np.ones(len(gain)))), evidence=rng.normal(size=(5, len(gain)))
    )
    shown, undecided, left = np.array([4]), np.arange(4), 1 + seed % 3
    feasible = [
        set(chosen)
        for size in range(left + 1)
        for chosen in itertools.combinations(range(4), size)
        if np.exp(problem.log_prior + problem.evidence[[4, *chosen]].sum(axis=0)) @ gain >= 0
    ]
    with np.errstate(divide="raise"):  # a gain of 0 needs no odds
        gain_of_both = gain[gain != 0] if seed % 3 != 2 else gain
        decided = decided_by_odds(problem, gain_of_both, shown, undecided, left)
    if decided is None:
        assert not feasible
        return
    must, may = decided
    for chosen in feasible:
        assert set(np.flatnonzero(must).tolist()) <= chosen <= set(np.flatnonzero(may).tolist())


def test_a_feature_without_which_the_odds_are_too_small_must_be_shown() -> None:
    """The odds of the first state must be 3: evidence of 2 is needed, that of 0.1 is not enough, and -9 ruins them."""
    problem: Any = SimpleNamespace(
        log_prior=np.log([0.5, 0.5]), evidence=np.array([[2.0, 0.0], [0.1, 0.0], [0.0, 9.0]])
    )
    decided = decided_by_odds(problem, np.array([0.1, -0.3]), np.array([], dtype=int), np.arange(3), 2)
    assert decided is not None
    assert decided[0].tolist() == [True, False, False]
    assert decided[1].tolist() == [True, True, False]
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


@pytest.mark.parametrize("real", [[], [4, 5]])
def test_a_step_solves_the_damped_newton_equation(real: list[int]) -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([np.eye(3)[rng.integers(3, size=40)], rng.random((40, 1)) < 0.3, rng.normal(size=(40, 2)) + 1])
    X[:, 4:] = X[:, 4:] if real else X[:, 4:] > 1
    weights, biases = rng.normal(size=(6, 3)) * 0.5, rng.normal(size=3)
    problem: ReducedProblem = (
        tb.conform(fake_classifier(weights, biases), X, categorical=[[0, 1, 2]], real=real, smoothing=0.5)
        .components[0]
        .coding.problem
    )
    point = problem.start()
    at = problem.evaluate(point)
    width = 1e-6
    hessian = np.array(
        [
            (problem.evaluate(point + move).gradient - problem.evaluate(point - move).gradient) / (2 * width)
            for move in width * np.eye(len(point))
        ]
    )
    step = _step(problem, at, 0.5)
    np.testing.assert_allclose(0.5 * step - hessian @ step, at.gradient, atol=1e-6)
    assert sum(rows.size for rows, _ in _blocks(problem, at)) == len(point)
    assert problem.owner.tolist() == ([0, 0, 1, 2, 2, 3, 3] if real else [0, 0, 1, 2, 3])


def test_columns_of_a_layout_are_its_text() -> None:
    assert repr(FeatureLayout(2)) == "FeatureLayout(n_columns=2, categorical=(), real=())"


def test_a_class_of_rows_without_weight_is_none() -> None:
    X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), ["a", "b", "c", "b"]
    fitted = tb.fit_logistic_regression(X, y, sample_weight=[1.0, 1.0, 0.0, 2.0])
    assert fitted.classes_.tolist() == ["a", "b"]


def test_a_categorical_feature_is_as_strong_as_its_largest_difference() -> None:
    X = np.column_stack([np.eye(3)[[0, 1, 2, 0, 1, 2]], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]])
    # Flipping the binary feature costs 3; another value of the categorical one 0.5 - (-2) = 2.5 at most.
    model = tb.conform(
        fake_classifier(np.array([[0, 0.5], [0, 0.0], [0, -2.0], [0, 3.0]]), np.zeros(2)), X, categorical=[[0, 1, 2]]
    )
    explanation = model.explain(X[3])
    assert explanation.predicted == model.classes[1]
    assert set(explanation.support) == {0, 1}
    assert explain_by_weight(model, explanation, X[3]) == (1, 0)[: len(explanation.features)]
    weaker = tb.conform(
        fake_classifier(np.array([[0, 0.5], [0, 0.0], [0, -2.0], [0, 2.4]]), np.zeros(2)), X, categorical=[[0, 1, 2]]
    )
    explanation = weaker.explain(X[3])
    assert explain_by_weight(weaker, explanation, X[3]) == (0, 1)[: len(explanation.features)]


def test_an_explanation_takes_names() -> None:
    model, row = many_features(3)
    named = model.explain(row).named(["age", "sex", "town"])
    assert named.feature_names == ("age", "sex", "town")
    assert named.named(None).feature_names is None


def test_fewer_distinct_rows_than_components_are_no_reason_to_warn() -> None:
    X = np.tile([[0.0, 1.0], [1.0, 0.0]], (10, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tb.conform(fake_classifier(np.array([[0.0, 1.0], [0.0, 0.5]]), np.zeros(2)), X, n_components=3)
    assert len(model.components) == 3


def test_the_variance_proxy_is_finite_near_certainty() -> None:
    assert _two_point_proxy(1e-12) == pytest.approx(1 / (2 * math.log(1e12)), rel=1e-6)
    assert _two_point_proxy(0.0) > 0
