"""The simulator of the model and the measures of predictions."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from trimbench.papers.measures import calibration, prediction_quality
from trimbench.papers.selection_bias.simulated_cases import ModelSettings, simulate, simulate_gaussian


def test_simulation_has_the_moments_of_the_model() -> None:
    settings = ModelSettings(20_000, alpha=4.0, theta0=0.1, class_sizes=(3, 5), test_sizes=(2, 1))
    drawn = simulate(settings, np.random.default_rng(0))
    assert (drawn.X.shape, drawn.X_test.shape) == ((8, 20_000), (3, 20_000))
    assert (drawn.y.tolist(), drawn.y_test.tolist()) == ([0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1])
    # theta ~ U(.1, .9): Var(phi) = Var(theta) + E theta(1 - theta) / (alpha + 1); classes share theta only.
    variance, mean_spread = 0.64 / 12, 0.25 - 0.64 / 12
    assert np.var(drawn.phi) == pytest.approx(variance + mean_spread / 5, rel=0.03)
    assert np.cov(drawn.phi)[0, 1] == pytest.approx(variance, rel=0.05)
    for y in (0, 1):
        for X, labels in ((drawn.X, drawn.y), (drawn.X_test, drawn.y_test)):
            share = X[labels == y].mean(axis=0)
            np.testing.assert_allclose(share.mean(), drawn.phi[y].mean(), atol=0.01)
            # Regression of the cases on their phi has slope 1 in the right class.
            assert np.polyfit(drawn.phi[y], share, 1)[0] == pytest.approx(1, abs=0.05)


def test_true_correlation_is_that_of_many_cases() -> None:
    settings = ModelSettings(5, alpha=3.0, class_sizes=(60_000, 140_000), test_sizes=(0, 0))
    drawn = simulate(settings, np.random.default_rng(1))
    sample = [np.corrcoef(drawn.X[:, j], drawn.y)[0, 1] for j in range(5)]
    np.testing.assert_allclose(sample, drawn.true_correlation, atol=0.01)


def test_many_features_need_little_more_memory_than_their_values() -> None:
    tracemalloc.start()
    drawn = simulate(ModelSettings(100_000, class_sizes=(20, 20), test_sizes=(50, 50)), np.random.default_rng(5))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 2**20
    # Also in the last block each case follows its own probabilities.
    assert drawn.X[20:, -5000:].mean() == pytest.approx(drawn.phi[1, -5000:].mean(), abs=0.01)
    assert drawn.X_test[:50, -5000:].mean() == pytest.approx(drawn.phi[0, -5000:].mean(), abs=0.01)


def test_measures_of_a_few_predictions() -> None:
    y = np.array([1, 0, 1, 0])
    p = np.array([0.9, 0.2, 0.4, 0.5])
    found = prediction_quality(y, np.stack([1 - p, p], axis=1))
    assert found.expected_error == pytest.approx((0.1 + 0.2 + 0.4 + 0.5) / 4)
    assert found.actual_error == pytest.approx(2 / 4)  # 0.4 is wrong, and 0.5 predicts class 1
    assert found.minus_log_probability == pytest.approx(-math.log(0.9 * 0.8 * 0.4 * 0.5) / 4)
    assert found.squared_error == pytest.approx((0.01 + 0.04 + 0.36 + 0.25) / 4)
    certain = prediction_quality(np.array([1]), np.array([[1e-200, 1.0]]))
    assert certain.expected_error == 1e-200
    assert np.isfinite(prediction_quality(np.array([0]), np.array([[0.0, 1.0]])).minus_log_probability)


def test_calibration_adds_up() -> None:
    rng = np.random.default_rng(0)
    p = np.append(rng.random(500), [0.0, 0.1, 1.0])
    y = (rng.random(503) < p).astype(int)
    found = calibration(y, np.stack([1 - p, p], axis=1))
    for bin_ in range(10):
        inside = (p >= bin_ / 10) & ((p < (bin_ + 1) / 10) | (bin_ == 9))
        assert found.counts[bin_] == inside.sum()
        assert found.predicted_sums[bin_] == pytest.approx(p[inside].sum())
        assert found.positives[bin_] == y[inside].sum()


def test_gaussian_simulation_has_the_moments_of_the_model() -> None:
    drawn = simulate_gaussian(20_000, 4.0, (30, 50), (10, 0), np.random.default_rng(0))
    assert (drawn.X.shape, drawn.X_test.shape, drawn.phi.shape) == ((80, 20_000), (10, 20_000), (2, 20_000))
    assert (np.bincount(drawn.y).tolist(), drawn.y_test.tolist()) == ([30, 50], [0] * 10)
    variance = ((drawn.X - drawn.phi[drawn.y]) ** 2).mean(axis=0)
    tests = ((drawn.X_test - drawn.phi[0]) ** 2).mean(axis=0)
    # 1 / variance is too large by 80 / 78 on average.
    assert (tests / variance).mean() == pytest.approx(80 / 78, rel=0.02)
    assert ((drawn.phi[1] - drawn.phi[0]) ** 2 / variance).mean() == pytest.approx(2 / 4 * 80 / 78, rel=0.05)
