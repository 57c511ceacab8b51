"""Predictive probabilities against integration of the definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import trimbench as tb
from tests.selection_bias.settings import grouped
from trimbench.papers.measures import prediction_quality
from trimbench.papers.selection_bias.simulated_cases import MixtureSettings, ModelSettings, simulate, simulate_mixture
from trimbench.selection_bias.binary import by_the_slides_rule, tabled_marginals
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import ranked

from . import brute_force
from .brute_force import drawn_cases, ratio


@given(f=st.tuples(*2 * [st.integers(1, 4)]), n=st.tuples(*2 * [st.integers(0, 9)]))
def test_the_probability_of_the_class_is_that_of_the_slides_and_their_exponents_are_not(
    f: tuple[int, int], n: tuple[int, int]
) -> None:
    def of_one_more(exponents: tuple[int, int]) -> Fraction:
        """Return P(y*, y) / P(y) by integrals over psi with such exponents in the prior."""
        (e0, e1), (n0, n1) = exponents, n
        numerator, denominator = (
            Fraction(math.factorial(e0 + n0) * math.factorial(e1 + more), math.factorial(e0 + n0 + e1 + more + 1))
            for more in (n1 + 1, n1)
        )
        return numerator / denominator

    said = Fraction(f[1] + n[1], sum(f) + sum(n))
    pseudo_counts = Prior(f0=f[0], f1=f[1]).pseudo_counts(2)
    assert pseudo_counts == f
    assert of_one_more((f[0] - 1, f[1] - 1)) == said
    assert (of_one_more(f) == said) == (f[0] + n[0] == f[1] + n[1])


def test_simpsons_rule_of_the_slides_comes_near() -> None:
    pairs = np.array([[0, 0], [10, 12], [10, 0], [3, 7], [1, 0]])
    exact = tabled_marginals(Prior(n_alpha=9), pairs.T, (10, 12))
    for n_theta, tolerance in ((20, 3e-3), (200, 2e-6)):
        near = by_the_slides_rule(Prior(n_alpha=9, n_theta=n_theta), pairs.T, np.repeat([[10], [12]], 5, axis=1))
        np.testing.assert_allclose(near.log_likelihood, exact.log_likelihood, atol=tolerance)
        np.testing.assert_allclose(near.theta_mean, exact.theta_mean, rtol=tolerance)
        np.testing.assert_allclose(near.theta_mean + near.theta_rest, 1, rtol=1e-12)
    X, y = brute_force.random_data(np.random.default_rng(0), 10, 12, 30)
    slides, gauss = (
        tb.fit_selection_corrected(X, y, 4, prior=Prior(rule=rule), calibrate=False).predict_proba(X)
        for rule in ("simpson", "gauss")
    )
    np.testing.assert_allclose(slides, gauss, atol=1e-3)


def test_opposite_counts_of_many_cases_do_not_underflow() -> None:
    n = 1000
    pairs = np.array([[0, n], [n, 0], [0, 0], [n, n], [400, 600]])
    found = tabled_marginals(Prior(), pairs.T, (n, n))
    assert np.isfinite(found.log_likelihood).all()
    np.testing.assert_allclose(found.theta_mean + found.theta_rest, 1, rtol=1e-9)
    np.testing.assert_allclose(found.log_likelihood[:, 0], found.log_likelihood[:, 1], rtol=1e-12)
    np.testing.assert_allclose(found.log_likelihood[:, 2], found.log_likelihood[:, 3], rtol=1e-12)
    # As alpha grows the two classes share phi, and the likelihood is a Beta function of both counts.
    nearly_equal = tabled_marginals(Prior(shape=300.0, rate=1e12, n_alpha=1), pairs.T, (n, n)).log_likelihood[0, 0]
    assert nearly_equal == pytest.approx(2 * math.lgamma(n + 1) - math.lgamma(2 * n + 2), rel=1e-6)


def expected_probabilities(
    model: Any, X: np.ndarray, y: np.ndarray, case: np.ndarray, *, theta0: float = 0.0, correct: bool = True
) -> np.ndarray:
    """Integrate the definition, without the prior of the classes; NaN is missing, in training cases and in the new."""
    n_classes = int(y.max()) + 1
    seen = [[X[(y == c) & ~np.isnan(X[:, j]), j] for c in range(n_classes)] for j in range(X.shape[1])]
    ones = [tuple(int(v.sum()) for v in of_classes) for of_classes in seen]
    sizes = [tuple(len(v) for v in of_classes) for of_classes in seen]
    values = [ratio(i, n) for i, n in zip(ones, sizes, strict=True)]
    chosen = sorted(range(len(values)), key=lambda j: (-values[j], j))[: len(model.selected)]
    assert model.selected.tolist() == chosen
    gamma2 = values[chosen[-1]]
    scores = np.zeros((n_classes, len(model.alpha_grid)))
    likelihood = np.zeros(len(model.alpha_grid))
    for place, alpha in enumerate(model.alpha_grid.tolist()):
        for j in set(range(len(values))) - set(chosen) if correct else ():
            less, equal = brute_force.weakness(alpha, sizes[j], gamma2, theta0)
            scores[:, place] += math.log(equal if values[j] == gamma2 else less)
        np.testing.assert_allclose(model.log_adjustment[place], scores[0, place], rtol=1e-8)
        for j in chosen:
            likelihood[place] += math.log(brute_force.feature_integral(alpha, ones[j], sizes[j], theta0))
        for j, label in itertools.product(chosen, range(n_classes)):
            mass, moment = (
                brute_force.feature_integral(alpha, ones[j], sizes[j], theta0, power=power) for power in (0, 1)
            )
            one = (ones[j][label] * mass + alpha * moment) / (alpha + sizes[j][label])
            scores[label, place] += math.log(mass if np.isnan(case[j]) else one if case[j] else mass - one)
    np.testing.assert_allclose(model.log_likelihood, likelihood, rtol=1e-9)
    found = logsumexp(scores, axis=1)
    return np.exp(found - found.max())


@pytest.mark.parametrize(
    ("sizes", "share", "pseudo_counts", "settings"),
    [
        ((3, 4, 3), 0.0, (1, 1, 1), {}),
        ((4, 3, 2), 0.15, (0.5, 0.5, 0.5), {}),
        ((6, 5), 0.2, (1, 1), {}),
        ((5, 8), 0.0, (0.7, 2.5), {"theta0": 0.15}),
        ((5, 8), 0.0, (0.7, 2.5), {"correct": False}),
    ],
)
def test_predictions_are_those_of_the_definition_at_the_grid_of_alpha(
    sizes: tuple[int, ...], share: float, pseudo_counts: tuple[float, ...], settings: dict[str, Any]
) -> None:
    X, y = drawn_cases(len(sizes), sizes, 4)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < share] = np.nan
    X = np.hstack([X, X])  # so that a discarded feature equals the last selected one
    cases = rng.integers(0, 2, size=(3, 8)).astype(float)
    model = tb.fit_selection_corrected(
        X, y, 3, **grouped(n_alpha=3, f0=pseudo_counts[0], f1=pseudo_counts[1], **settings)
    )
    cases[1, model.selected[0]] = np.nan
    cases[2] = np.nan
    found, counts = model.predict_proba(cases), np.add(sizes, pseudo_counts)
    for case, probabilities in zip(cases, found, strict=True):
        expected = counts * expected_probabilities(model, X, y, case, **settings)
        np.testing.assert_allclose(probabilities, expected / expected.sum(), rtol=1e-8)
    np.testing.assert_allclose(found[2], counts / counts.sum(), rtol=1e-12)
    assert model.expected_error(cases) == pytest.approx((1 - found.max(axis=1)).mean())
    assert model.predict(cases).tolist() == found.argmax(axis=1).tolist()
    assert (model.log_adjustment_error == 0).all()
    assert model.selection.n_tied > 0
    posterior = np.exp(model.log_adjustment + model.log_likelihood)
    np.testing.assert_allclose(model.alpha_posterior, posterior / posterior.sum(), rtol=1e-8)
    # The prior is Inverse-Gamma(1/2, 5), whose density is that of log(alpha) here.
    density, alphas = model.log_alpha_density - np.log(posterior), model.alpha_grid
    np.testing.assert_allclose(density - density[0], -0.5 * np.log(alphas / alphas[0]) - 5 / alphas + 5 / alphas[0])


def test_grid_of_alpha_holds_the_quantiles_of_the_prior() -> None:
    from scipy.stats import invgamma

    alphas = Prior(shape=1.3, rate=4.0, n_alpha=11).alphas()
    np.testing.assert_allclose(invgamma(1.3, scale=4.0).cdf(alphas), (np.arange(11) + 0.5) / 11, rtol=1e-10)


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n0, n1, p = draw(st.integers(1, 20)), draw(st.integers(1, 20)), draw(st.integers(1, 15))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X, y = brute_force.random_data(rng, n0, n1, p, draw(st.sampled_from([0.1, 5.0, 1000.0])))
    return X, y


@given(data=tables(), k=st.integers(1, 15), ties=st.sampled_from(["exact", "less", "less_equal"]))
@settings(max_examples=100)
def test_all_is_finite_whatever_the_data(data: tuple[np.ndarray, np.ndarray], k: int, ties: str) -> None:
    X, y = data
    k = min(k, X.shape[1])
    ones = np.stack([X[y == c].sum(axis=0) for c in (0, 1)])
    n_useful = int((ranked(ones, np.repeat(np.bincount(y)[:, None], X.shape[1], axis=1))[1] > 0).sum())
    if n_useful < k < X.shape[1]:
        said = f"k must be at most {n_useful}, the number" if n_useful else "X must have a feature that depends on y"
        with pytest.raises(ValueError, match=said):
            tb.fit_selection_corrected(X, y, k, calibrate=False)
        return
    model = tb.fit_selection_corrected(X, y, k, ties=ties, prior=Prior(n_alpha=10), calibrate=False)  # type: ignore[arg-type]
    probabilities = model.predict_proba(X)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-14)
    assert np.isfinite(model.log_adjustment).all()
    assert model.alpha_posterior.sum() == pytest.approx(1)
    assert 0 < model.expected_error(X) <= 0.5


@pytest.mark.parametrize("sizes", [(95, 5), (1900, 100)])
def test_unbalanced_classes_constant_features_and_ties(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes[0])
    X, y = brute_force.random_data(rng, *sizes, 60, alpha=20.0)
    X[:, 5], X[:, 6], X[:, 7] = 0, 1, X[:, 8]
    X[:, 9] = y  # tells the classes apart
    for k in (1, 3, 30, 60):
        model = tb.fit_selection_corrected(X, y, k, prior=Prior(n_alpha=20), calibrate=False)
        assert model.selected[0] == 9
        probabilities = model.predict_proba(X)
        assert np.isfinite(probabilities).all()
        assert np.isfinite(np.log(probabilities[np.arange(len(y)), y])).all()
        assert np.isfinite(model.log_adjustment).all()
    tied = next(
        k
        for k in range(1, 59)
        if tb.fit_selection_corrected(X, y, k, prior=Prior(n_alpha=1), calibrate=False).selection.n_tied
    )
    exact, less, less_equal = (
        tb.fit_selection_corrected(X, y, tied, ties=ties, prior=Prior(n_alpha=20), calibrate=False).log_adjustment
        for ties in ("exact", "less", "less_equal")  # type: ignore[arg-type]
    )
    assert (exact < less).all()
    assert (less < less_equal).all()


def test_correction_moves_alpha_up_and_predictions_towards_a_half() -> None:
    rng = np.random.default_rng(1)
    X, y = brute_force.random_data(rng, 40, 40, 800, alpha=300.0)
    model = tb.fit_selection_corrected(X, y, 10, calibrate=False)
    plain = model.uncorrected()
    assert np.average(np.log(model.alpha_grid), weights=model.alpha_posterior) > np.average(
        np.log(plain.alpha_grid), weights=plain.alpha_posterior
    )
    assert model.expected_error(X) > plain.expected_error(X)
    direct = tb.fit_selection_corrected(X, y, 10, correct=False, calibrate=False)
    np.testing.assert_array_equal(direct.predict_proba(X), plain.predict_proba(X))


def test_calibration_is_that_of_the_prior() -> None:
    """With alpha drawn from its prior, expected and actual errors agree on average; without correction they do not."""
    grid = Prior(n_alpha=30).alphas()
    gaps = []
    for replicate in range(200):
        rng = np.random.default_rng([3, replicate])
        drawn = ModelSettings(600, float(rng.choice(grid)), class_sizes=(25, 25), test_sizes=(150, 150))
        data = simulate(drawn, rng)
        model = fit_selection_corrected(data.X, data.y, 5, prior=Prior(n_alpha=30), calibrate=False)
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
