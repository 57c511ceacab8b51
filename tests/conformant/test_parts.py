"""Parts of explanations and measures, each against its definition on small inputs."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from scipy.special import ndtr

import trimbench as tb
from tests.conformant.brute_force_explanations import random_case
from trimbench.conformant.decision_problem import DecisionProblem, HiddenFeature
from trimbench.conformant.margin_tails import _convolve, _Rounded, _rounded
from trimbench.conformant.metrics import calibration_error
from trimbench.conformant.needed_odds import _largest_sums
from trimbench.conformant.probabilistic_explanations import _around, _tabulated
from trimbench.conformant.same_decision import SameDecision


def random_problem(seed: int, most: int) -> DecisionProblem:
    model, row = random_case(seed, most)
    winner = int(model.decision_scores(row[None])[0].argmax())
    return DecisionProblem.of(model, row, winner, tuple(k for k in range(len(model.classes)) if k != winner))


@pytest.mark.parametrize("left", range(5))
def test_largest_sums_of_rows(left: int) -> None:
    steps = np.random.default_rng(left).normal(size=(4, 30))
    best, forced_in, forced_out = _largest_sums(steps, left)
    sets = [chosen for size in range(left + 1) for chosen in itertools.combinations(range(4), size)]
    sums = np.array([steps[list(chosen)].sum(axis=0) for chosen in sets])
    assert best == pytest.approx(sums.max(axis=0), abs=1e-12)
    for row in range(4):
        has = np.array([row in chosen for chosen in sets])
        assert forced_out[row] == pytest.approx(sums[~has].max(axis=0), abs=1e-12)
        if left:
            assert forced_in[row] == pytest.approx(sums[has].max(axis=0), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_an_exchange_of_features_is_approximated_as_the_set_that_it_gives(seed: int) -> None:
    """With sums of means and variances made here."""
    problem = random_problem(seed, 6)
    decision = SameDecision(problem, np.arange(len(problem.hidden)))
    none = np.array([-1])
    base, others = problem.candidates[:3].tolist(), problem.candidates[3:].tolist()
    removed, added = [*base, -1], [*others, -1]
    found = decision.approximate(base, np.array(removed), np.array(added))
    for (r, a), value in np.ndenumerate(found):
        kept = [one for one in (*base, added[a]) if one not in (removed[r], -1)]
        again = decision.approximate(kept, none, none)[0, 0]
        assert value == pytest.approx(again, abs=1e-9)
        means = np.array([one.means for one in problem.hidden])
        spread = np.array([one.chances.T @ one.values**2 - one.means**2 + one.variances for one in problem.hidden])
        hidden = [place for place in range(len(problem.hidden)) if place not in kept]
        mean = problem.base + problem.shown[kept].sum(axis=0) + means[hidden].sum(axis=0)
        deviation = np.sqrt(np.maximum(spread[hidden].sum(axis=0), 1e-12))
        logs = problem.log_prior + problem.evidence[kept].sum(axis=0)
        posterior = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        assert value == pytest.approx(1 - posterior @ ndtr(-mean / deviation).sum(axis=1), abs=1e-6)


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


def test_where_no_set_keeps_the_class_with_the_probability() -> None:
    for seed in range(0, 500, 5):  # those with missing values
        problem = random_problem(seed, 6)
        found, best, (low, high) = _tabulated(problem, 1.0, 1)
        if not found.sets:
            assert found.size_lower_bound == int(problem.observed.sum()) + 1
            assert found.complete
            assert set(best) <= set(problem.candidates.tolist())
            assert 0 <= low <= high < 1
            return
    pytest.fail("every case had a set")


def test_bounds_of_a_probability_are_probabilities() -> None:
    assert _around(1.0)[1] == 1.0
    assert _around(0.0)[0] == 0.0
    assert _around(0.5) == pytest.approx((0.5, 0.5), abs=1e-8)


def test_the_calibration_error_by_hand() -> None:
    """Two bins: of 0.9 and 0.92 one is right; 0.6 is right, predicted as the second class."""
    probabilities = np.array([[0.9, 0.1], [0.92, 0.08], [0.4, 0.6]])
    expected = (abs(0.9 + 0.92 - 1) + abs(0.6 - 1)) / 3
    assert calibration_error(np.array([0, 1, 1]), probabilities) == pytest.approx(expected, abs=1e-12)


def test_what_is_not_given_is_what_the_documentation_says() -> None:
    """One pseudo-count, one component, one explanation; changing them would change published numbers."""
    wanted = {
        tb.conform: {"solver": "newton", "smoothing": 1.0, "n_components": 1, "seed": 0},
        tb.ConformantModel.explain: {"max_sets": 1},
    }
    for function, defaults in wanted.items():
        found = inspect.signature(function).parameters
        assert {name: found[name].default for name in defaults} == defaults
