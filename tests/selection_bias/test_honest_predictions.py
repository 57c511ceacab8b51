"""What the slides claim of corrected predictions, on cases drawn from the model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trimbench.papers.measures import prediction_quality
from trimbench.papers.selection_bias.simulated_cases import MixtureSettings, ModelSettings, simulate, simulate_mixture
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.prior import Prior


def test_corrected_predictions_expect_the_errors_that_they_make() -> None:
    """The settings of the slides with 200 training cases, 20 replicates."""
    gaps: dict[tuple[int, bool], list[float]] = {}
    for replicate in range(20):
        data = simulate(ModelSettings(), np.random.default_rng([1, replicate]))
        for k in (1, 10, 100, 1000):
            model = fit_selection_corrected(data.X, data.y, k)
            for corrected, fitted in ((True, model), (False, model.uncorrected())):
                quality = prediction_quality(data.y_test, fitted.predict_proba(data.X_test))
                gaps.setdefault((k, corrected), []).append(quality.actual_error - quality.expected_error)
    for k, known in {1: 0.09, 10: 0.18, 100: 0.18, 1000: 0.07}.items():
        own, other = np.array(gaps[k, True]), np.array(gaps[k, False])
        assert abs(own.mean()) < 2 * own.std(ddof=1) / math.sqrt(20), k
        assert other.mean() == pytest.approx(known, abs=0.02)


def test_calibration_is_that_of_the_prior() -> None:
    """With alpha drawn from its prior, expected and actual errors agree on average; without correction they do not."""
    grid = Prior(n_alpha=30).alphas()
    gaps = []
    for replicate in range(200):
        rng = np.random.default_rng([3, replicate])
        drawn = ModelSettings(600, float(rng.choice(grid)), class_sizes=(25, 25), test_sizes=(150, 150))
        data = simulate(drawn, rng)
        model = fit_selection_corrected(data.X, data.y, 5, n_alpha=30)
        qualities = [
            prediction_quality(data.y_test, m.predict_proba(data.X_test)) for m in (model, model.uncorrected())
        ]
        gaps.append([quality.actual_error - quality.expected_error for quality in qualities])
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / math.sqrt(len(gaps))
    assert abs(mean[0]) < 2 * error[0]
    assert mean[1] > 5 * error[1]


def test_mixture_cases_have_the_moments_of_the_model() -> None:
    settings = MixtureSettings(n_features=3000, alpha=5.0, response=(0.05, 0.95), n_train=60, n_test=60)
    drawn = simulate_mixture(settings, np.random.default_rng(0))
    assert (drawn.X.shape, drawn.X_test.shape) == ((60, 3000), (60, 3000))
    assert set(drawn.y) == {0, 1}
    rare = MixtureSettings(n_features=1, alpha=5.0, response=(0.01, 0.01), n_train=4, n_test=1)
    assert 0 < simulate_mixture(rare, np.random.default_rng(0)).y.sum() < 4
    # With nearly deterministic response the latent groups are the classes.
    for y in (0, 1):
        share = drawn.X[drawn.y == y].mean(axis=0)
        assert np.polyfit(drawn.phi[y], share, 1)[0] > 0.75
    assert np.var(drawn.phi) == pytest.approx(1 / 12 + (1 / 6) / 6, rel=0.1)
