"""Gaussian features: closed forms with numerical integration, F statistics, and what must change nothing."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betainc, logsumexp
from scipy.stats import f as f_distribution
from sklearn.feature_selection import f_classif

import trimbench as tb
from trimbench.selection_bias.gaussian import (
    GaussianMoments,
    between_eigenvalues,
    gaussian_log_likelihood,
    ratio_probability,
    weak_probability,
)
from trimbench.selection_bias.prior import Prior

ALPHAS = np.array([0.4, 3.0, 50.0])


def draw(seed: int, sizes: tuple[int, ...], p: int, alpha: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    means = rng.normal(size=(len(sizes), p)) / math.sqrt(alpha)
    return rng.normal(size=(len(y), p)) + means[y], y


def moments_of(X: np.ndarray, y: np.ndarray) -> GaussianMoments:
    return GaussianMoments.of(X, y, int(y.max()) + 1, np.arange(len(y)))


def log_evidence(x: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """The marginal likelihood up to a constant, from contrasts: they do not depend on nu, and sigma integrates out."""
    n = len(x)
    contrasts = np.linalg.svd(np.eye(n) - 1 / n)[0][:, : n - 1].T
    same = (y[:, None] == y).astype(float)
    covariance = contrasts @ (np.eye(n) + same / alpha) @ contrasts.T
    values = contrasts @ x
    square = values @ np.linalg.solve(covariance, values)
    return float(-0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * (n - 1) * math.log(square))


@pytest.mark.parametrize("sizes", [(4, 5), (3, 1, 4), (2, 2, 3, 2)])
def test_marginal_likelihood_is_that_of_contrasts(sizes: tuple[int, ...]) -> None:
    X, y = draw(1, sizes, 6)
    found = gaussian_log_likelihood(ALPHAS, moments_of(X, y))
    for j in range(6):
        expected = np.array([log_evidence(X[:, j], y, alpha) for alpha in (*ALPHAS, 1e9)])
        np.testing.assert_allclose(found[j], expected[:3] - expected[3], rtol=1e-6, atol=1e-7)


def ratio_by_quadrature(spread: np.ndarray, n_within: int, cut: float) -> float:
    """Two eigenvalues: B is chi^2_2 times a function of an angle, over which it is integrated."""

    def inside(angle: float) -> float:
        scale = spread[0] * math.cos(angle) ** 2 + spread[1] * math.sin(angle) ** 2
        return float(betainc(1.0, n_within / 2, cut / (cut + scale * (1 - cut))))

    return quad(inside, 0, math.pi / 2, epsabs=0, epsrel=1e-12, limit=500)[0] / (math.pi / 2)


@pytest.mark.parametrize(("sizes", "cut"), [((5, 3, 9), 0.4), ((2, 80, 30), 0.05), ((40, 1, 3), 0.9)])
def test_series_is_quadrature_over_the_angle(sizes: tuple[int, ...], cut: float) -> None:
    found, left_out = weak_probability(ALPHAS, np.array(sizes), cut)
    assert (left_out <= 1e-15 * found).all()
    values = between_eigenvalues(np.array(sizes))
    for place, alpha in enumerate(ALPHAS):
        expected = ratio_by_quadrature(1 + values / alpha, sum(sizes) - 3, cut)
        assert found[place] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n0", "n1", "cut"), [(3, 9, 0.3), (50, 50, 0.02), (1, 2, 0.99)])
def test_two_classes_are_a_scaled_f_distribution(n0: int, n1: int, cut: float) -> None:
    n = n0 + n1
    statistic = (n - 2) * cut / (1 - cut)
    closed = f_distribution.cdf(statistic / (1 + 2 * n0 * n1 / (n * ALPHAS)), 1, n - 2)
    found, left_out = weak_probability(ALPHAS, np.array([n0, n1]), cut)
    np.testing.assert_allclose(found, closed, rtol=1e-12)
    assert (left_out == 0).all()


@pytest.mark.parametrize("q", [1, 2, 5])
def test_equal_eigenvalues_are_a_scaled_f_distribution(q: int) -> None:
    # Nearly equal ones take the series, which for equal ones is a single term.
    for spread in (np.full((1, q), 3.0), 3.0 + 1e-13 * np.arange(q)[None, :]):
        closed = f_distribution.cdf((20 / q) * 0.25 / 3.0, q, 20)
        assert ratio_probability(spread, 20, 0.2)[0][0] == pytest.approx(closed, rel=1e-12)
    assert between_eigenvalues(np.full(q + 1, 6)) == pytest.approx([6.0] * q, rel=1e-12)


@pytest.mark.parametrize("sizes", [(8, 8), (12, 3), (5, 9, 4), (7, 2, 2, 11)])
def test_weak_features_are_as_frequent_in_simulation(sizes: tuple[int, ...]) -> None:
    n_drawn = 40_000
    for alpha in ALPHAS:
        X, y = draw(3, sizes, n_drawn, alpha)
        ratios = moments_of(X, y).squared_ratios
        for cut in (0.1, 0.4):
            p = weak_probability(np.array([alpha]), np.array(sizes), cut)[0][0]
            assert abs((ratios < cut).mean() - p) < 4.5 * math.sqrt(p * (1 - p) / n_drawn)


def test_features_are_ranked_by_f() -> None:
    X, y = draw(4, (9, 12, 7), 40)
    F = f_classif(X, y)[0]
    # Sums of squares without centring would lose all digits.
    model = tb.fit_selection_corrected(X + 1e8, y, 12, features="gaussian", calibrate=False)
    assert model.selected.tolist() == np.argsort(-F)[:12].tolist()
    eta2 = model.gamma**2
    assert 25 * eta2 / (2 * (1 - eta2)) == pytest.approx(np.sort(F)[-12], rel=1e-6)


def definition(X: np.ndarray, y: np.ndarray, k: int, prior: Prior, case: np.ndarray, correct: bool) -> np.ndarray:
    """Log probabilities of the classes from the evidence of all cases with a new one, feature by feature."""
    n_classes = int(y.max()) + 1
    seen = [~np.isnan(column) for column in X.T]
    strengths = []
    for column, s in zip(X.T, seen, strict=True):
        total = ((column[s] - column[s].mean()) ** 2).sum()
        within = sum(
            ((column[s & (y == c)] - column[s & (y == c)].mean()) ** 2).sum()
            for c in range(n_classes)
            if any(s & (y == c))
        )
        strengths.append(1 - within / total)
    order = np.argsort(-np.array(strengths), kind="stable")
    scores = np.zeros((n_classes, prior.n_alpha))
    for place, alpha in enumerate(prior.alphas().tolist()):
        for j in order[k:] if correct else []:
            sizes = np.array([(seen[j] & (y == c)).sum() for c in range(n_classes)])
            scores[:, place] += np.log(
                weak_probability(np.array([alpha]), sizes[sizes > 0], strengths[order[k - 1]])[0]
            )
        for c, j in itertools.product(range(n_classes), order[:k]):
            new = [] if np.isnan(case[j]) else [case[j]]
            x, labels = np.append(X[seen[j], j], new), np.append(y[seen[j]], [c] * len(new))
            scores[c, place] += log_evidence(x, labels, alpha)
    found = logsumexp(scores, axis=1) + np.log(np.bincount(y) + 1.0)
    result: np.ndarray = found - logsumexp(found)
    return result


@pytest.mark.parametrize("sizes", [(6, 9), (5, 4, 7)])
@pytest.mark.parametrize("share_missing", [0.0, 0.15])
def test_predictions_are_those_of_the_definition(sizes: tuple[int, ...], share_missing: float) -> None:
    X, y = draw(5, sizes, 12, 2.0)
    X = np.where(np.random.default_rng(0).random(X.shape) < share_missing, np.nan, 40.0 + 3.0 * X)
    model = tb.fit_selection_corrected(X, y, 4, prior=Prior(n_alpha=5), features="gaussian", calibrate=False)
    for fitted, correct in ((model, True), (model.uncorrected(), False)):
        cases = np.concatenate([X[:3], 1e14 * X[:1]])  # the last is far out, where products would overflow
        for case, ours in zip(cases, fitted.log_probabilities(cases), strict=True):
            np.testing.assert_allclose(ours, definition(X, y, 4, model.prior, case, correct), rtol=1e-8, atol=1e-8)
    if len(sizes) == 2:
        np.testing.assert_allclose(model.predict_proba(X), np.exp(model.log_probabilities(X)), rtol=1e-10)


def test_all_features_are_no_selection() -> None:
    X, y = draw(6, (7, 8), 9)
    model = tb.fit_selection_corrected(X, y, 9, features="gaussian", calibrate=False)
    assert (model.log_adjustment == 0).all()
    np.testing.assert_array_equal(model.predict_proba(X), model.uncorrected().predict_proba(X))
    without = tb.fit_selection_corrected(X, y, 4, correct=False, features="gaussian", calibrate=False)
    np.testing.assert_array_equal(
        without.predict_proba(X),
        tb.fit_selection_corrected(X, y, 4, features="gaussian", calibrate=False).uncorrected().predict_proba(X),
    )


@given(
    seed=st.integers(0, 10**6),
    sizes=st.sampled_from([(4, 5), (9, 2), (3, 4, 5)]),
    shift=st.floats(-1e3, 1e3),
    log_scale=st.floats(-200, 200),
    sign=st.sampled_from([-1.0, 1.0]),
)
@settings(max_examples=50)
def test_shift_and_scale_of_features_change_nothing(
    seed: int, sizes: tuple[int, ...], shift: float, log_scale: float, sign: float
) -> None:
    X, y = draw(seed, sizes, 8)
    scales = sign * 10.0 ** (log_scale * np.linspace(0, 1, 8))
    first = tb.fit_selection_corrected(X, y, 3, prior=Prior(n_alpha=10), features="gaussian", calibrate=False)
    second = tb.fit_selection_corrected(
        (X + shift) * scales, y, 3, prior=Prior(n_alpha=10), features="gaussian", calibrate=False
    )
    assert second.selected.tolist() == first.selected.tolist()
    np.testing.assert_allclose(second.alpha_posterior, first.alpha_posterior, rtol=1e-8)
    np.testing.assert_allclose(
        second.log_probabilities((X + shift) * scales), first.log_probabilities(X), rtol=1e-8, atol=1e-9
    )


@given(data=st.data(), n=st.integers(4, 12), p=st.integers(1, 6))
@settings(max_examples=60)
def test_all_is_finite_whatever_the_data(data: st.DataObject, n: int, p: int) -> None:
    values = st.sampled_from([0.0, 1.0, -1.0, 3.5, 1e-320, 1e300, -1.7e308, 1e15, 1e15 + 1])
    X = np.array(data.draw(st.lists(st.lists(values, min_size=p, max_size=p), min_size=n, max_size=n)))
    y = np.arange(n) % data.draw(st.integers(2, 3))
    n_useful = int((moments_of(X, y).squared_ratios > 0).sum())
    k = data.draw(st.sampled_from(sorted({p, *range(1, n_useful + 1)})))
    model = tb.fit_selection_corrected(X, y, k, prior=Prior(n_alpha=5), features="gaussian", calibrate=False)
    for probabilities in (model.predict_proba(X), model.uncorrected().predict_proba(-X[::-1])):
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(model.log_adjustment).any()


def test_constant_features_say_nothing() -> None:
    X, y = draw(7, (8, 9), 10)
    with_constants = np.column_stack([np.full(17, 3.0), X, np.full(17, np.nan)])
    for k in (3, 10):
        model, more = (
            tb.fit_selection_corrected(table, y, k, features="gaussian", calibrate=False)
            for table in (X, with_constants)
        )
        assert more.selected.tolist() == (model.selected + 1).tolist()
        np.testing.assert_allclose(more.predict_proba(with_constants), model.predict_proba(X), rtol=1e-10)
    whole = tb.fit_selection_corrected(with_constants, y, 12, features="gaussian", calibrate=False)
    np.testing.assert_allclose(whole.predict_proba(with_constants), model.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("sizes", [(15, 25), (12, 10, 14)])
def test_the_correction_is_calibrated(sizes: tuple[int, ...]) -> None:
    """Data sets from the prior: the expected error is right on average, the uncorrected one too small."""
    gaps: dict[bool, list[float]] = {True: [], False: []}
    rng = np.random.default_rng(0)
    alphas = Prior(n_alpha=20).alphas()
    train, rest = np.arange(sum(sizes)), np.arange(sum(sizes), sum(sizes) + 300)
    shares = np.add(sizes, 1) / (sum(sizes) + len(sizes))
    for _ in range(40):
        y = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), rng.choice(len(sizes), size=300, p=shares)])
        means = rng.normal(size=(len(sizes), 300)) / math.sqrt(rng.choice(alphas))
        X = rng.normal(size=(len(y), 300)) + means[y]
        model = tb.fit_selection_corrected(
            X[train], y[train], 5, prior=Prior(n_alpha=20), features="gaussian", calibrate=False
        )
        for correct, fitted in ((True, model), (False, model.uncorrected())):
            gaps[correct].append((fitted.predict(X[rest]) != y[rest]).mean() - fitted.expected_error(X[rest]))
    mean, error = (np.array([f(gaps[c]) for c in (True, False)]) for f in (np.mean, np.std))
    error /= math.sqrt(40)
    assert abs(mean[0]) < 3.5 * error[0]
    assert mean[1] > 4 * error[1]
