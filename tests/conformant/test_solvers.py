"""The solver of conformant learning against the mathematics."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant import brute_force
from trimbench._typing import Matrix, Vector
from trimbench.conformant.coding import reduce_problem
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.problem import ReducedProblem, Solution, _step, solve_all, solve_newton
from trimbench.conformant.rows import FeatureStatistics


def inexact(problem: ReducedProblem) -> Solution:
    return Solution(problem.start(), 0.01, 0.0, 3)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (inexact, "solver inexact left a moment residual of 0.01, .* 1e-05; use solver='newton'"),
        ("newton", "solver 'newton' left a moment residual of 0.01, .* 1e-05; use more smoothing, or stronger"),
    ],
)
def test_an_inaccurate_solution_is_refused(solver: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.conformant.conform.solve_newton", inexact)
    layout, X = FeatureLayout.of(2), np.eye(2)
    with pytest.raises(RuntimeError, match=message):
        conform_to_statistics(np.eye(2), np.zeros(2), np.arange(2), layout, FeatureStatistics.of(X, layout), solver)


def test_real_valued_features_have_the_moments_of_the_rows_and_the_slopes_of_the_classifier() -> None:
    """Weights of two Gaussians with a common variance give back their means and variance."""
    rng = np.random.default_rng(6)
    y = rng.random(100_000) < 0.3
    X = rng.normal(np.where(y, 2.0, -1.0), 1.5)[:, None]
    slope, bias = 3.0 / 1.5**2, math.log(0.3 / 0.7) - (4 - 1) / (2 * 1.5**2)
    model = tb.conform(
        brute_force.fake_classifier(np.array([[0.0, slope]]), np.array([0.0, bias])), X, real=[0], n_components=1
    )
    (means,), (variance,) = model.components[0].real_moments
    np.testing.assert_allclose(means, [-1, 2], atol=0.03)
    assert variance == pytest.approx(1.5**2, abs=0.03)
    assert (means[1] - means[0]) / variance == pytest.approx(slope, abs=1e-9)
    exact = tb.conform(
        brute_force.fake_classifier(np.array([[0.0, slope]]), np.zeros(2)), X, smoothing=0, real=[0], n_components=1
    )
    (means,), (variance,) = exact.components[0].real_moments
    prior = np.exp(exact.log_prior)
    assert prior @ means == pytest.approx(X.mean(), abs=1e-9)
    assert variance + prior @ means**2 - (prior @ means) ** 2 == pytest.approx(X.var(), abs=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 1e-10, 1.0])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_newton_solves_saturated_problems(scale: float, smoothing: float) -> None:
    rng = np.random.default_rng(7)
    for n_columns, n_classes in ((784, 10), (200, 2), (30, 7)):
        weights, biases = rng.normal(0, scale, (n_columns, n_classes)), rng.normal(0, scale, n_classes)
        means = rng.uniform(0.001, 0.999, n_columns)
        statistics = FeatureStatistics(1000, means, means * (1 - means))
        layout = FeatureLayout.of(n_columns)
        solution = solve_newton(reduce_problem(weights, biases, layout, statistics, smoothing).problem)
        assert solution.residual < 1e-10


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_components_solved_together_are_those_solved_alone(smoothing: float, scale: float) -> None:
    rng = np.random.default_rng(8)
    layout = FeatureLayout.of(30, [[0, 1, 2], [3, 4]], [5, 6, 7])
    weights, biases = rng.normal(0, scale, (30, 4)), rng.normal(0, scale, 4)
    alone = []
    for _ in range(6):
        means = rng.uniform(0.05, 0.95, 30)
        means[:3], means[3:5] = rng.dirichlet([3, 3, 3]), rng.dirichlet([3, 3])
        alone.append(
            reduce_problem(
                weights, biases, layout, FeatureStatistics(50, means, means * (1 - means)), smoothing
            ).problem
        )
    shared = alone[0]  # the weights of all
    together = replace(
        shared,
        means=np.stack([problem.means for problem in alone]),
        real_moments=np.tile(np.asarray(shared.real_moments), (6, 1)),
        pseudo=np.full(6, smoothing / 50),
    )
    parameters, at, _ = solve_all(together, np.stack([together.of(z).start() for z in range(6)]))
    for z in range(6):
        solution = solve_newton(together.of(z))
        np.testing.assert_allclose(parameters[z], solution.parameters, rtol=1e-6, atol=1e-6)
        assert at.at(z).value == pytest.approx(solution.value, rel=1e-12)
    assert at.residual.max() < 1e-10


@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=4),
    n_classes=st.integers(2, 4),
    smoothing=st.sampled_from([0.0, 1.0]),
    damping=st.sampled_from([1e-14, 0.1]),
)
@settings(max_examples=40)
def test_a_step_solves_the_system_of_the_whole_hessian(
    seed: int, sizes: list[int], n_classes: int, smoothing: float, damping: float
) -> None:
    """Of features with few values and with many, and of numbers."""
    problem = problem_of(np.random.default_rng(seed), sizes, n_classes, smoothing, scale=1.0)
    point = problem.start() + 0.1
    at = problem.evaluate(point)
    hessian = np.stack([gradient_slope(problem, point, place) for place in range(point.size)])
    step = _step(problem, at, np.array([damping]))[0]
    np.testing.assert_allclose(-hessian @ step + damping * step, at.gradient[0], rtol=1e-6, atol=1e-8)


def problem_of(
    rng: np.random.Generator, sizes: list[int], n_classes: int, smoothing: float, scale: float
) -> ReducedProblem:
    """Return the problem of one component with features of so many values, three binary ones and two numbers."""
    n_columns = sum(sizes) + 5
    places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    layout = FeatureLayout.of(n_columns, [place.tolist() for place in places], [n_columns - 2, n_columns - 1])
    means = np.concatenate([*(rng.dirichlet(np.ones(size)) for size in sizes), rng.uniform(0.05, 0.95, 5)])
    means = np.maximum(means, 1e-6)
    weights, biases = rng.normal(0, scale, (n_columns, n_classes)), rng.normal(0, scale, n_classes)
    statistics = FeatureStatistics(100, means, means * (1 - means))
    problem = reduce_problem(weights, biases, layout, statistics, smoothing).problem
    several = np.asarray(problem.real_moments)[None]
    return replace(problem, means=problem.means[None], real_moments=several, pseudo=np.array([problem.pseudo]))


def gradient_slope(problem: ReducedProblem, at: Matrix, place: int) -> Vector:
    """Return the derivative of the gradient in one parameter, by central differences."""
    step = np.zeros(at.shape)
    step[0, place] = 1e-5
    slope: Vector = (problem.evaluate(at + step).gradient - problem.evaluate(at - step).gradient)[0] / 2e-5
    return slope


@pytest.mark.parametrize("smoothing", [0.0, 1e-10, 1.0])
def test_features_of_many_values_are_solved_where_they_are_saturated(smoothing: float) -> None:
    rng = np.random.default_rng(9)
    for scale in (1.0, 5.0, 20.0):
        problem = problem_of(rng, [40, 3, 12, 25], 2, smoothing, scale)
        assert solve_newton(problem.of(0)).residual < 1e-8


def test_parameters_move_with_the_moments_of_each_feature() -> None:
    """A feature that has no weights in the classifier is then where it belongs, and densities still exist."""
    rng = np.random.default_rng(10)
    before = problem_of(rng, [3, 6], 3, 1.0, scale=0.0)
    moments = np.asarray(before.real_moments) * np.array([1.0, 0.01, 1.0, 50.0]) + np.array([0.05, 0.0, -0.3, 0.0])
    after = replace(before, means=rng.dirichlet(np.ones(11), size=1)[:, : before.n_free], real_moments=moments)
    parameters, _, _ = solve_all(before, before.start())
    moved = after.moved(parameters, before)
    assert after.is_allowed(moved).all()
    assert after.evaluate(moved).residual.max() < 1e-10
    with_weights = problem_of(rng, [3, 6], 3, 1.0, scale=2.0)
    np.testing.assert_allclose(with_weights.moved(parameters, with_weights), parameters, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("seed", "n_rows", "smoothing"), [(72, 2, 0.0), (31, 1, 1.0), (55, 1, 1.0), (229, 1, 1.0)])
def test_singular_steps_are_damped_more(seed: int, n_rows: int, smoothing: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.choice([-700.0, 0.0, 700.0], size=(3, 400))
    by_hand = SimpleNamespace(classes_=np.arange(3), coef_=weights, intercept_=700 * rng.normal(size=3))
    if seed % 12 > 5:
        by_hand.coef_ = rng.normal(size=(3, 400)) * 700
    rows = rng.integers(0, 2, (n_rows, 400))
    message = ""
    try:
        residual = tb.conform(by_hand, rows, smoothing=smoothing).residual
    except RuntimeError as error:  # as documented, where the moments cannot be met in floating point
        residual, message = math.inf, str(error)
    assert residual < 1e-5 or re.search("left a moment residual .* use more smoothing", message)


def test_thousands_of_features_conform_to_rounding() -> None:
    rng = np.random.default_rng(15)
    n_columns, n_classes = 20_000, 20
    means = rng.uniform(0.01, 0.99, n_columns)
    weights, biases = rng.normal(0, 0.1, (n_columns, n_classes)), rng.normal(0, 1, n_classes)
    statistics = FeatureStatistics(10_000, means, means * (1 - means))
    model = conform_to_statistics(
        weights, biases, np.arange(n_classes), FeatureLayout.of(n_columns), statistics, smoothing=0
    )
    rows = (rng.random((20, n_columns)) < means).astype(float)
    assert model.conformity_error(rows) < 1e-12
    np.testing.assert_allclose(np.exp(model.log_prior).sum(), 1, atol=1e-13)
    assert np.exp(model.log_prior) @ np.exp(model.components[0].log_probabilities).T == pytest.approx(means, abs=1e-10)


def test_a_model_that_does_not_conform_is_reported() -> None:
    rng = np.random.default_rng(16)
    X = (rng.random((100, 3)) < 0.5).astype(float)
    model = tb.conform(LogisticRegression().fit(X, X[:, 0]), X)
    expected = model.predict_proba(X)
    shift = np.array([0.1, 0])
    (component,) = model.components
    object.__setattr__(component, "log_prior", component.log_prior + shift)
    odds = np.log(expected) + shift
    other = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    assert model.conformity_error(X) == pytest.approx(np.abs(other - expected).max(), rel=1e-9)
