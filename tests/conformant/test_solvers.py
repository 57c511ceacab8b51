"""The solver of conformant learning against the mathematics."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant import brute_force
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.layout import FeatureLayout, FeatureStatistics
from trimbench.conformant.problem import ReducedProblem, Solution, reduce_problem, solve_newton


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


def test_real_valued_features_by_numerical_integration() -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 300)
    X = np.column_stack([rng.normal(3 * y, 2), rng.random(300) < 0.4])
    classifier = LogisticRegression().fit(X, y)
    model = tb.conform(classifier, X, smoothing=0.0, real=[0])
    means, variances = model.components[0].real_moments
    prior = np.exp(model.log_prior)
    assert prior @ means[0] == pytest.approx(X[:, 0].mean(), abs=1e-9)
    spread = variances[0] + prior @ means[0] ** 2 - (prior @ means[0]) ** 2
    assert spread == pytest.approx(X[:, 0].var(), abs=1e-9)
    assert (means[0, 1] - means[0, 0]) / variances[0] == pytest.approx(classifier.coef_[0, 0], abs=1e-9)
    for observed in (0.0, 1.0):

        def density(x: float, value: float = observed) -> float:
            return float(np.exp(model.log_likelihood([[x, value]])[0]))

        def weighted(x: float, value: float = observed) -> float:
            return float(np.exp(model.log_likelihood([[x, value]])[0]) * classifier.predict_proba([[x, value]])[0, 1])

        total, expected = integrate.quad(density, -40, 40)[0], integrate.quad(weighted, -40, 40)[0]
        assert math.log(total) == pytest.approx(model.log_likelihood([[np.nan, observed]])[0], abs=1e-8)
        assert expected / total == pytest.approx(model.predict_proba([[np.nan, observed]])[0, 1], abs=1e-8)


def test_a_real_valued_model_is_linear_discriminant_analysis_where_that_is_the_truth() -> None:
    """Weights of two Gaussians with a common variance give back their means and variance."""
    rng = np.random.default_rng(6)
    y = rng.random(400_000) < 0.3
    X = rng.normal(np.where(y, 2.0, -1.0), 1.5)[:, None]
    slope, prior = 3.0 / 1.5**2, math.log(0.3 / 0.7) - (4 - 1) / (2 * 1.5**2)
    classifier = brute_force.fake_classifier(np.array([[0.0, slope]]), np.array([0.0, prior]))
    means, variances = tb.conform(classifier, X, real=[0]).components[0].real_moments
    np.testing.assert_allclose(means[0], [-1, 2], atol=0.02)
    assert variances[0] == pytest.approx(1.5**2, abs=0.02)


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


def test_weights_without_regularisation() -> None:
    rng = np.random.default_rng(8)
    X = (rng.random((300, 40)) < 0.3).astype(float)
    y = (X[:, :5].sum(axis=1) > 1).astype(int)
    classifier = LogisticRegression(C=1e6, max_iter=20_000).fit(X, y)
    assert np.abs(classifier.coef_).max() > 10
    model = tb.conform(classifier, X, smoothing=0)
    assert model.residual < 1e-10
    assert model.conformity_error(X) < 1e-12


def test_a_categorical_feature_is_not_a_set_of_binary_ones() -> None:
    rng = np.random.default_rng(9)
    X = np.eye(4)[rng.integers(0, 4, 500)]
    y = rng.random(500) < X @ [0.1, 0.4, 0.6, 0.9]
    classifier = LogisticRegression(C=100).fit(X, y)
    as_group = tb.conform(classifier, X, smoothing=0, categorical=[[0, 1, 2, 3]])
    missing = np.full((1, 4), np.nan)
    # All that is missing is one value: its expected prediction is the mean over the training rows.
    expected = classifier.predict_proba(X).mean(axis=0)
    np.testing.assert_allclose(as_group.predict_proba(missing)[0], expected, atol=1e-10)
    independent = tb.conform(classifier, X, smoothing=0)
    assert independent.log_likelihood(X).mean() < as_group.log_likelihood(X).mean() - 0.1


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
