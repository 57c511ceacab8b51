"""Features of several categories: enumeration with quadrature, simulation, and the binary case."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2_contingency, dirichlet_multinomial

import trimbench as tb
from trimbench.selection_bias.categorical import (
    can_enumerate,
    compositions,
    enumerated_categories,
    log_rising,
    simplex_nodes,
    simulated_categories,
    strengths,
)
from trimbench.selection_bias.factors import Simulation
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import squared_ratio

from . import brute_force


def draw(
    rng: np.random.Generator, n0: int, n1: int, categories: list[int], alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat([0, 1], [n0, n1])
    columns = []
    for v in categories:
        theta = np.maximum(rng.dirichlet(np.ones(v)), 1e-6)
        phi = rng.dirichlet(alpha * theta, size=2)
        columns.append([rng.choice(v, p=phi[label]) for label in y])
    return np.array(columns).T, y


def strength(counts0: np.ndarray, counts1: np.ndarray) -> Fraction:
    """Return the square of Cramer's V of two classes."""
    return squared_ratio(counts1.tolist(), (counts0 + counts1).tolist())


@pytest.mark.parametrize(("v", "n"), [(2, 7), (3, 6), (4, 3), (5, 2)])
def test_nodes_integrate_polynomials_over_the_simplex_exactly(v: int, n: int) -> None:
    theta, weights = simplex_nodes(v, n)
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-13)
    for powers in compositions(n + 1, v):
        # E prod theta_i^a_i under Dirichlet(1, ..., 1)
        exact = math.exp(gammaln(v) + gammaln(powers + 1).sum() - gammaln(v + n + 1))
        assert weights @ (theta**powers).prod(axis=1) == pytest.approx(exact, rel=1e-11)


def test_compositions_are_all_there() -> None:
    for n, v in [(0, 2), (4, 2), (5, 3), (3, 4)]:
        found = compositions(n, v)
        expected = [c for c in itertools.product(range(n + 1), repeat=v) if sum(c) == n]
        assert sorted(map(tuple, found.tolist())) == sorted(expected)


def test_rising_factorials_keep_their_digits() -> None:
    for a in (1e-8, 0.3, 999.9, 1000.1, 1e6, 1e10):
        for c in (0, 1, 2, 50, 700):
            expected = math.fsum(math.log(a + i) for i in range(c))
            assert float(log_rising(np.array(a), np.array(c))) == pytest.approx(expected, rel=1e-13, abs=1e-11)


def test_strength_is_that_of_chi_squared() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        table = rng.integers(1, 9, size=(2, 3))
        n0, n1 = (int(s) for s in table.sum(axis=1))
        expected = chi2_contingency(table, correction=False).statistic
        assert float(strength(table[0], table[1])) == pytest.approx(expected / (n0 + n1), rel=1e-12)
        assert strengths(table[0], table[1], n0, n1) == pytest.approx(expected * n0 * n1, rel=1e-12)
    for a, b in [(2, 5), (0, 7), (7, 0), (3, 3)]:
        binary = strength(np.array([7 - a, a]), np.array([9 - b, b]))
        assert binary == brute_force.ratio((a, b), (7, 9))


def weakness_by_quadrature(alpha: float, n0: int, n1: int, cut: Fraction) -> tuple[float, float]:
    """Three categories: all pairs of counts, probabilities from scipy, adaptive quadrature over the triangle."""
    ways = [compositions(n, 3) for n in (n0, n1)]
    kinds = [
        [(a, b) for a in ways[0] for b in ways[1] if test(strength(a, b))]
        for test in (lambda s: s < cut, lambda s: s == cut)
    ]

    @functools.cache
    def tables(first: float, second: float) -> list[dict[tuple[int, ...], float]]:
        theta = np.array([first, second, 1 - first - second])
        return [
            {tuple(c): float(dirichlet_multinomial.pmf(c, alpha * theta, n)) for c in w}
            for w, n in zip(ways, (n0, n1), strict=True)
        ]

    def integrand(second: float, first: float, pairs: list[Any]) -> float:
        one, other = tables(first, second)
        return math.fsum(one[tuple(a)] * other[tuple(b)] for a, b in pairs)

    less, equal = (
        2 * dblquad(integrand, 0, 1, 0, lambda first: 1 - first, args=(pairs,), epsabs=0, epsrel=1e-8)[0]
        if pairs
        else 0.0
        for pairs in kinds
    )
    return less, equal


def test_enumerated_factor_is_that_of_adaptive_quadrature() -> None:
    alphas = np.array([0.8, 60.0])
    cut = strength(np.array([2, 0, 0]), np.array([0, 1, 1]))
    found = enumerated_categories(alphas, 3, 2, 2, cut)
    for place, alpha in enumerate(alphas):
        less, equal = weakness_by_quadrature(float(alpha), 2, 2, cut)
        assert math.exp(found.log_below[place]) == pytest.approx(less, rel=1e-7)
        assert math.exp(found.log_tied[place]) == pytest.approx(equal, rel=1e-7)


@pytest.mark.parametrize(("v", "n0", "n1"), [(2, 9, 6), (3, 7, 5), (4, 4, 5), (5, 3, 3)])
def test_simulation_agrees_with_enumeration(v: int, n0: int, n1: int) -> None:
    alphas = np.array([1.5, 20.0, 500.0])
    first, second = np.eye(v, dtype=int)[0] * n0, np.eye(v, dtype=int)[0] * (n1 - 2) + np.eye(v, dtype=int)[1] * 2
    cut = strength(first, second)
    exact = enumerated_categories(alphas, v, n0, n1, cut)
    n = 60_000
    drawn = simulated_categories(alphas, v, n0, n1, cut, n, np.random.default_rng(v))
    assert (exact.log_error == 0).all()
    for kind in ("log_below", "log_tied"):
        p = np.exp(getattr(exact, kind))
        share = np.exp(getattr(drawn, kind))
        assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / n) + 1 / n).all()
    less = np.exp(exact.log_below)
    np.testing.assert_allclose(drawn.log_error, np.sqrt((1 - less) / (less * n)), rtol=0.05)


def test_predictions_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(2)
    categories = [3, 2, 3, 2, 3]
    X, y = draw(rng, 4, 5, categories, 3.0)
    model = tb.fit_selection_corrected(
        X, y, 2, n_categories=categories, prior=Prior(n_alpha=2), features="categorical", calibrate=False
    )
    # Integrals over theta from draws of a fine, independent grid: the midpoints of a lattice over the simplex.
    side = 400
    t = (np.arange(side) + 0.5) / side
    first, second = (g.ravel() for g in np.meshgrid(t, t, indexing="ij"))
    theta3 = np.stack([1 - np.sqrt(first), np.sqrt(first) * (1 - second), np.sqrt(first) * second], axis=1)
    theta2 = np.stack([t, 1 - t], axis=1)

    def joint(alpha: float, j: int, label: int, value: int) -> float:
        v = categories[j]
        theta = theta3 if v == 3 else theta2
        result = np.zeros(len(theta))
        for c in (0, 1):
            counts = np.bincount(X[y == c, j], minlength=v)
            if c == label:
                phi = (counts + alpha * theta) / (alpha + counts.sum())
                result += np.log(phi[:, value])
            a = alpha * theta
            result += (gammaln(a + counts) - gammaln(a)).sum(axis=1) + gammaln(alpha) - gammaln(alpha + counts.sum())
        return float(logsumexp(result) - math.log(len(theta)))

    for case in X[:2]:
        scores = np.empty((2, 2))
        for label in (0, 1):
            for place, alpha in enumerate(model.alpha_grid):
                parts = [joint(float(alpha), int(j), label, int(case[j])) for j in model.selected]
                scores[label, place] = sum(parts) + model.log_adjustment[place] + math.log((y == label).sum() + 1)
        expected = logsumexp(scores[1]) - logsumexp(scores)
        assert math.log(model.predict_proba(case[None])[0, 1]) == pytest.approx(expected, abs=2e-3)


def test_factor_of_mixed_features_is_the_product_over_numbers_of_categories() -> None:
    rng = np.random.default_rng(3)
    categories = [2, 3, 2, 3, 3, 2, 3, 2]
    X, y = draw(rng, 5, 6, categories, 2.0)
    model = tb.fit_selection_corrected(
        X, y, 3, ties="less", n_categories=categories, prior=Prior(n_alpha=4), features="categorical", calibrate=False
    )
    counts = [[np.bincount(X[y == c, j], minlength=v) for c in (0, 1)] for j, v in enumerate(categories)]
    ratios = [strength(c[0], c[1]) for c in counts]
    cut = sorted(ratios, reverse=True)[2]
    assert [ratios[j] for j in model.selected] == sorted(ratios, reverse=True)[:3]
    expected = np.zeros(4)
    for v in (2, 3):
        n_out = sum(c == v for j, c in enumerate(categories) if j not in model.selected)
        expected += n_out * enumerated_categories(model.alpha_grid, v, 5, 6, cut).log_below
    np.testing.assert_allclose(model.log_adjustment, expected, rtol=1e-12)
    simulated = tb.fit_selection_corrected(
        X,
        y,
        3,
        ties="less",
        n_categories=categories,
        prior=Prior(n_alpha=4),
        simulation=Simulation(factor="simulate", n_simulations=20_000),
        features="categorical",
        calibrate=False,
    )
    assert (simulated.log_adjustment_error > 0).all()
    assert (np.abs(simulated.log_adjustment - expected) < 5 * simulated.log_adjustment_error).all()


def test_too_much_to_enumerate_is_reported() -> None:
    assert not can_enumerate(4, 100, 100, 100)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, size=(200, 3)), rng.integers(0, 2, size=200)
    with pytest.raises(ValueError, match=r"factor='enumerate' would take too long for 4 categories and 200 cases; use"):
        tb.fit_selection_corrected(
            X, y, 1, simulation=Simulation(factor="enumerate"), features="categorical", calibrate=False
        )
