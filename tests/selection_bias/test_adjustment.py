"""The adjustment factor against enumeration with adaptive quadrature, and against simulation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom

from trimbench.selection_bias import binary
from trimbench.selection_bias.binary import tabled_marginals
from trimbench.selection_bias.factors import (
    DiscardProbabilities,
    Halves,
    Simulation,
    discard_probabilities,
    log_adjustment,
    merged,
    tabled_probabilities,
    walked_probabilities,
)
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import DiscardedGroup, Selection, select, weak_counts

from . import brute_force


def tabled(prior: Prior, n0: int, n1: int, cut: tuple[int, int]) -> DiscardProbabilities:
    return tabled_probabilities(prior, (n0, n1), brute_force.ratio(cut, (n0, n1)))


def selected(ones0: list[int], ones1: list[int], n0: int, n1: int, k: int) -> Selection:
    return select(np.array([ones0, ones1]), np.repeat([[n0], [n1]], len(ones0), axis=1), k)


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ((4, 4), (1, 3)),
        ((8, 14), (2, 9)),
        ((3, 12), (2, 1)),
        ((1, 1), (0, 1)),
        ((2, 19), (2, 5)),
        ((11, 6), (1, 4)),
        ((5, 5), (0, 1)),
        ((3, 4, 3), (0, 3, 1)),
        ((2, 2, 2, 3), (2, 0, 1, 1)),
        ((6, 1, 2), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("theta0", [0.0, 0.2])
def test_factor_is_that_of_enumeration_and_quadrature(
    sizes: tuple[int, ...], cut: tuple[int, ...], theta0: float
) -> None:
    prior, gamma2 = Prior(n_alpha=4, theta0=theta0), brute_force.ratio(cut, sizes)
    found = discard_probabilities(prior, sizes, gamma2)
    assert (found.log_error == 0).all()
    for place, alpha in enumerate(prior.alphas().tolist()):
        less, equal = brute_force.weakness(alpha, sizes, gamma2, theta0)
        assert found.log_below[place] == pytest.approx(math.log(less), rel=1e-8, abs=1e-12)
        assert found.log_tied[place] == pytest.approx(math.log(equal), rel=1e-8)
        assert found.log_at_most[place] == pytest.approx(math.log(less + equal), rel=1e-8, abs=1e-12)


def test_simpsons_rule_comes_near_and_converges() -> None:
    exact = tabled(Prior(), 20, 30, (5, 17)).log_below
    errors = [
        np.abs(tabled(Prior(rule="simpson", n_theta_adjust=n), 20, 30, (5, 17)).log_below - exact).max()
        for n in (25, 100, 400)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 1e-4


@pytest.mark.parametrize("cut", [(24, 0), (10, 0), (1, 0), (97, 1)])
def test_tiny_probabilities_keep_their_digits(cut: tuple[int, int]) -> None:
    n0, n1, prior = 99, 1, Prior(n_alpha=10, theta0=0.45)
    alpha = float(prior.alphas()[-1])
    nodes, weights = np.polynomial.legendre.leggauss(60)
    theta, counts0, counts1 = 0.5 + 0.05 * nodes, np.arange(n0 + 1), np.arange(n1 + 1)
    table = [
        betabinom.pmf(c, n, alpha * theta[:, None], alpha * (1 - theta[:, None]))
        for c, n in ((counts0, n0), (counts1, n1))
    ]
    cells = np.einsum("t,ti,tj->ij", weights / 2, *table)
    gamma2 = brute_force.ratio(cut, (n0, n1))
    weaker = [[brute_force.ratio((i0, i1), (n0, n1)) < gamma2 for i1 in counts1.tolist()] for i0 in counts0.tolist()]
    less = cells[np.array(weaker)].sum()
    found = tabled(prior, n0, n1, cut).log_below[-1]
    assert less < 1e-4 or cut == (97, 1)
    assert found == pytest.approx(math.log(less), rel=1e-9)


# Finding the roots takes most of the time of an exact integral.
legendre = functools.cache(np.polynomial.legendre.leggauss)


def exact_nodes(self: Prior, n_cases: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Enough nodes, for any alpha, to integrate polynomials of degree n + 1 exactly."""
    roots, weights = legendre(n_cases // 2 + 2)
    return 0.5 + 0.25 * (roots - roots[::-1]), 0.5 * weights


Result = TypeVar("Result")


def with_few_and_exact_nodes(patch: pytest.MonkeyPatch, compute: Callable[[], Result]) -> tuple[Result, Result]:
    usual = compute()
    patch.setattr(Prior, "theta_nodes", exact_nodes)
    binary.half_grid.cache_clear()
    exact = compute()
    binary.half_grid.cache_clear()
    return usual, exact


@pytest.mark.parametrize(("n0", "n1"), [(8, 6), (31, 30), (20, 180), (250, 250)])
def test_few_nodes_for_small_alpha_are_enough(n0: int, n1: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    prior = Prior(shape=0.3, rate=3.0, n_alpha=30)
    theta = rng.uniform(size=30)
    drawn = np.stack([rng.binomial(n0, theta), rng.binomial(n1, theta)], axis=1)
    pairs = np.unique(np.concatenate([drawn, [[0, 0], [0, n1], [n0, 0], [n0, n1], [1, 0]]]), axis=0)
    cut = (n0 // 3, n1 // 2 + 1)
    (found, weakness), (exact, exact_weakness) = with_few_and_exact_nodes(
        monkeypatch, lambda: (tabled_marginals(prior, pairs.T, (n0, n1)), tabled(prior, n0, n1, cut))
    )
    np.testing.assert_allclose(found.log_likelihood, exact.log_likelihood, atol=1e-9)
    np.testing.assert_allclose(found.theta_mean, exact.theta_mean, rtol=1e-9)
    np.testing.assert_allclose(weakness.log_below, exact_weakness.log_below, rtol=1e-9)
    np.testing.assert_allclose(weakness.log_tied, exact_weakness.log_tied, atol=1e-9)


@pytest.mark.parametrize(
    ("n0", "n1", "cut"), [(1000, 1000, (470, 530)), (1900, 100, (900, 60)), (1000, 1000, (100, 900))]
)
def test_log_of_the_factor_keeps_nine_digits_at_two_thousand_cases(
    n0: int, n1: int, cut: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, exact = with_few_and_exact_nodes(monkeypatch, lambda: tabled(Prior(n_alpha=3), n0, n1, cut).log_below)
    np.testing.assert_allclose(usual, exact, rtol=1e-9)
    # The whole table of a feature's counts sums to 1: nothing is lost to underflow.
    assert np.isfinite(usual).all()
    assert (usual < 0).all()


def test_factor_at_two_thousand_cases_against_independent_sums() -> None:
    # One alpha, one class size, all cells in logs from gamma functions and 1,001 nodes of another rule.
    from scipy.special import betaln, gammaln, logsumexp

    n0 = n1 = 1000
    cut = (450, 560)
    prior = Prior(n_alpha=3)
    alpha = float(prior.alphas()[1])
    nodes, weights = np.polynomial.legendre.leggauss(400)
    theta, weights = 0.5 + 0.5 * nodes, 0.5 * weights
    ones = np.arange(n0 + 1)
    a, b = alpha * theta[:, None], alpha * (1 - theta[:, None])
    log_p = (
        gammaln(n0 + 1) - gammaln(ones + 1) - gammaln(n0 - ones + 1) + betaln(a + ones, b + n0 - ones) - betaln(a, b)
    )
    bounds = weak_counts((n0, n1), brute_force.ratio(cut, (n0, n1))).low - 1
    below = np.logaddexp.accumulate(log_p, axis=1)
    terms = [below[:, bounds[i]] + log_p[:, i] + np.log(weights) for i in range(n1 + 1) if bounds[i] >= 0]
    expected = math.log1p(-2 * math.exp(logsumexp(np.array(terms))))
    assert tabled(prior, n0, n1, cut).log_below[1] == pytest.approx(expected, rel=1e-9)


def test_nothing_discarded_nothing_corrected() -> None:
    chosen = selected([1, 0], [2, 3], 3, 3, 2)
    assert not np.any(log_adjustment(Prior(), chosen, "exact", Simulation()))


def test_a_prior_that_excludes_what_was_seen() -> None:
    # Only constant features are weaker than the cut-off; with theta near 1/2 and a large alpha they hardly occur.
    chosen = selected([1999, 0], [1, 0], 2000, 1, 1)
    prior = Prior(theta0=0.4999, n_alpha=2, shape=300.0, rate=1e12)
    with pytest.raises(ValueError, match=r"the discarded features have probability 0 under the prior at every alpha"):
        log_adjustment(prior, chosen, "less", Simulation())


@given(sizes=st.lists(st.integers(1, 13), min_size=3, max_size=6).map(tuple), data=st.data())
@settings(max_examples=40)
def test_halves_give_the_digits_of_walks(sizes: tuple[int, ...], data: st.DataObject) -> None:
    cut = brute_force.ratio([data.draw(st.integers(0, n_y)) for n_y in sizes], sizes)
    if cut == 0:
        return
    prior = Prior(n_alpha=3, theta0=data.draw(st.sampled_from([0.0, 0.1])))
    halves = Halves.of(prior, sizes, cut)
    assert halves is not None
    found, walked = halves.probabilities(prior), walked_probabilities(prior, sizes, cut)
    for kind in ("log_below", "log_tied", "log_at_most"):
        np.testing.assert_allclose(getattr(found, kind), getattr(walked, kind), rtol=1e-9, atol=1e-11)


def test_many_classes_are_no_simulation() -> None:
    sizes = (20,) * 8
    found = discard_probabilities(Prior(n_alpha=3), sizes, brute_force.ratio((3, 5, 9, 12, 8, 8, 10, 2), sizes))
    drawn = discard_probabilities(
        Prior(n_alpha=3), sizes, brute_force.ratio((3, 5, 9, 12, 8, 8, 10, 2), sizes), Simulation("simulate")
    )
    assert (found.log_error == 0).all()
    assert (np.abs(found.log_below - drawn.log_below) < 5 * drawn.log_error + 1e-12).all()


def test_simulated_factor_agrees_with_enumeration() -> None:
    prior, sizes = Prior(n_alpha=12), (14, 9, 11)
    cut = brute_force.ratio((3, 5, 6), sizes)
    exact = discard_probabilities(prior, sizes, cut)
    drawn = discard_probabilities(prior, sizes, cut, Simulation("simulate", n_simulations=20_000))
    assert (drawn.log_error > 0).all()
    difference = drawn.log_below - exact.log_below
    assert (np.abs(difference) < 5 * drawn.log_error + 1e-12).all()
    np.testing.assert_allclose(drawn.log_tied, exact.log_tied, atol=0.3)
    with pytest.raises(ValueError, match="factor='enumerate' would take too long for 9 classes and 540 cases; use"):
        discard_probabilities(prior, (60,) * 9, Fraction(1, 9), Simulation("enumerate"))
    rare = discard_probabilities(prior, (700, 600, 800), Fraction(1, 977), Simulation("simulate", n_simulations=2000))
    np.testing.assert_array_equal(rare.log_tied, rare.log_below)


def test_merged_groups_keep_their_features() -> None:
    rng = np.random.default_rng(0)
    sizes = {tuple(pair) for pair in rng.integers(45_000, 50_000, size=(300, 2)).tolist()}
    groups = tuple(DiscardedGroup(pair, 2, int(place == 0)) for place, pair in enumerate(sorted(sizes)))
    found = merged(groups, Prior())
    assert len(found) < 100
    assert sum(group.n_discarded for group in found) == 2 * len(groups)
    assert groups[0] in found
    few = groups[:3]
    assert merged(few, Prior(n_alpha=2)) == list(few)
