"""Each compiled loop against its definition on small inputs, by SciPy's functions and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, gammaln
from scipy.stats import betabinom, hypergeom

from trimbench.selection_bias import kernels

from .brute_force import log_count, log_u, ratio

SIZES = np.array([3, 2, 4])


def test_the_logarithm_of_a_rising_factorial() -> None:
    for a, count in itertools.product((0.001, 0.7, 9.5, 10.0, 10.5, 80.0), (0, 1, 2, 9, 15, 400)):
        expected = math.fsum(math.log(a + i) for i in range(count))
        assert kernels.log_rising(a, count) == pytest.approx(expected, rel=2e-13, abs=2e-13)


def test_stirlings_series_from_its_first_use_on() -> None:
    """The last term counts where the series begins."""
    for x in (0.01, 1.0, 8.0, 9.9, 10.0, 10.25, 16.5, 40.0):
        expected = math.lgamma(x) - ((x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi))
        assert kernels.stirling_error(x) == pytest.approx(expected, abs=3e-14)


class _Groups:
    """A state of the mixture sampler: labels of the latent groups, counts and parameters."""

    def __init__(self, seed: int, n_columns: int = 10, n_cases: int = 7) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = np.asfortranarray(self.rng.integers(0, 2, size=(n_cases, n_columns)))  # as the sampler has them
        self.z = self.rng.integers(0, 2, size=n_cases)
        self.theta = self.rng.uniform(0.1, 0.9, size=n_columns)
        self.alphas = self.rng.uniform(0.5, 20.0, size=n_columns)
        self.prior = np.array([0.7, 1.9])

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        ones = np.array([self.values[self.z == g].sum(axis=0) for g in range(2)])
        return ones, np.array([(self.z == g).sum() for g in range(2)])

    def log_column(self, column: int, theta: float, alpha: float) -> float:
        ones, sizes = self.counts()
        a, b = alpha * theta, alpha * (1 - theta)
        return float(sum(betaln(a + ones[g, column], b + sizes[g] - ones[g, column]) - betaln(a, b) for g in (0, 1)))

    def log_joint(self) -> float:
        """log P(z) + log P(values | z, theta, alpha)."""
        _, sizes = self.counts()
        total = betaln(self.prior[0] + sizes[0], self.prior[1] + sizes[1])
        return float(
            total + sum(self.log_column(j, self.theta[j], self.alphas[j]) for j in range(self.values.shape[1]))
        )


@pytest.mark.parametrize("seed", range(5))
def test_the_probability_of_columns(seed: int) -> None:
    state = _Groups(seed)
    ones, sizes = state.counts()
    for start, stop, alpha in ((0, 1, 3.0), (1, 10, 0.4), (2, 7, 30.0)):
        expected = sum(state.log_column(j, state.theta[j], alpha) for j in range(start, stop))
        found = kernels.log_columns(state.theta, alpha, ones, sizes, start, stop)
        assert found == pytest.approx(expected, rel=1e-11)
    shift = sum(gammaln(3.0 + size) - gammaln(3.0) for size in sizes)
    numerator = kernels.log_numerator(state.theta[4], 3.0, ones, sizes, 4)
    assert numerator - shift == pytest.approx(state.log_column(4, state.theta[4], 3.0), rel=1e-11)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_labels_are_drawn_given_all_others(seed: int, corrected: bool) -> None:
    """Each label by the joint probability of both choices, times the factor of the selection."""
    state = _Groups(seed)
    n = len(state.z)
    response = state.values[:, 0]
    n0, n1 = int((response == 0).sum()), int(response.sum())
    factors = state.rng.uniform(0.1, 3.0, size=(n0 + 1, n1 + 1))
    places = np.arange(factors.size).reshape(factors.shape) if corrected else np.empty((0, 0), dtype=np.int64)
    thresholds = state.rng.random(n)
    expected = _Groups(seed)
    for case in range(2, n):
        logs = []
        for group in (0, 1):
            expected.z[case] = group
            first = expected.z == 0
            factor = factors[(first & (response == 0)).sum(), (first & (response == 1)).sum()] if corrected else 1.0
            logs.append(expected.log_joint() + math.log(factor))
        expected.z[case] = int(thresholds[case] >= 1 / (1 + math.exp(logs[1] - logs[0])))
    ones, sizes = state.counts()
    end = kernels.update_labels(
        *(2, state.values, state.z, ones, sizes, state.alphas * state.theta, state.alphas * (1 - state.theta)),
        *(state.prior, places, np.log(factors).ravel(), thresholds),
    )
    assert end == n
    assert state.z.tolist() == expected.z.tolist()
    for found, again in zip((ones, sizes), state.counts(), strict=True):
        assert (found == again).all()


def test_labels_wait_for_a_factor_that_is_not_known() -> None:
    state = _Groups(3)
    ones, sizes = state.counts()
    response = state.values[:, 0]
    n0, n1 = int((response == 0).sum()), int(response.sum())
    first = state.z == 0
    for known in (None, ((first & (response == 0)).sum(), (first & (response == 1)).sum())):
        places = np.full((n0 + 1, n1 + 1), -1)
        if known is not None:
            places[known] = 0  # that of the present labels alone is not enough
        before = state.z.copy()
        end = kernels.update_labels(
            *(0, state.values, state.z, ones, sizes, state.alphas * state.theta, state.alphas * (1 - state.theta)),
            *(state.prior, places, np.zeros(1), np.full(len(state.z), 0.5)),
        )
        assert end == 0
        assert (state.z == before).all()


@pytest.mark.parametrize("seed", range(4))
def test_theta_moves_by_the_metropolis_rule(seed: int) -> None:
    state = _Groups(seed)
    ones, sizes = state.counts()
    steps = state.rng.normal(0.0, 0.4, size=(5, len(state.theta)))
    thresholds = state.rng.random(steps.shape)
    expected, accepted, outside = state.theta.copy(), 0, 0
    for (step, column), change in np.ndenumerate(steps):
        proposal = expected[column] + change
        outside += not 0 < proposal < 1
        if 0 < proposal < 1:
            odds = state.log_column(column, proposal, state.alphas[column])
            odds -= state.log_column(column, expected[column], state.alphas[column])
            if 1 - thresholds[step, column] < math.exp(odds):
                expected[column] = proposal
                accepted += 1
    found = kernels.update_theta(state.theta, state.alphas, ones, sizes, steps, thresholds)
    assert outside > 0
    assert 0 < found == accepted < steps.size - outside
    assert state.theta == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("start", [0, 1])
def test_alpha_is_drawn_given_all_else(start: int) -> None:
    state = _Groups(1)
    ones, sizes = state.counts()
    alphas, log_factors = np.array([0.3, 2.0, 9.0, 40.0]), np.array([0.4, -0.3, 0.1, 0.2])
    columns = range(1, 10) if start else range(1)
    logs = [f + sum(state.log_column(j, state.theta[j], a) for j in columns) for a, f in zip(alphas, log_factors)]  # noqa: B905
    shares = np.exp(np.array(logs) - max(logs))
    ends = np.cumsum(shares / shares.sum())
    thresholds = np.concatenate([[0.0, 1 - 1e-16], ends[:-1] - 1e-9, ends[:-1] + 1e-9])
    for threshold in thresholds:
        found = kernels.draw_alpha(alphas, log_factors, state.theta, ones, sizes, start, threshold)
        assert found == np.searchsorted(ends, threshold, side="right").clip(max=3)


@pytest.mark.parametrize("cut", [0.25, 0.1, float(ratio([1, 1, 1], SIZES.tolist())), 0.9])
def test_the_probability_of_weak_features_by_lattices(cut: float) -> None:
    """The same points by SciPy's quantiles, with the ratio of each table itself."""
    rng = np.random.default_rng(1)
    alpha, theta, weights, n_points = 2.0, np.array([0.2, 0.5, 0.7]), np.array([0.3, 0.5, 0.2]), 9
    shifts = rng.random((2, 3, 2))
    golden = np.roots([1, 0, -1, -1])[0].real  # x^3 = x + 1
    expected = np.zeros((2, 2))
    for shift, (node, t), point in itertools.product(range(2), enumerate(theta), range(n_points)):
        of_class = [betabinom(n, alpha * t, alpha * (1 - t)) for n in SIZES]
        u = (shifts[shift, node] + point * golden ** -np.array([1.0, 2.0])) % 1.0
        outer = [int(one.ppf(share)) for one, share in zip(of_class[1:], u, strict=True)]
        for first in range(SIZES[0] + 1):
            found = float(ratio([first, *outer], SIZES.tolist()))
            share = weights[node] / n_points * of_class[0].pmf(first)
            is_equal = abs(found - cut) < 1e-12
            expected[:, shift] += share * np.array([found < cut and not is_equal, is_equal])
    result = kernels.sampled_weakness(alpha, theta, weights, SIZES, cut, shifts, n_points)
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_quotient_of_logarithms_has_the_digits_of_the_difference() -> None:
    assert kernels.log_quotient(1e-20, 1.0, 1.0) == pytest.approx(1e-20, rel=1e-12)
    assert kernels.log_quotient(-1.0 + 1e-20, 1.0, 1e-20) == pytest.approx(math.log(1e-20), rel=1e-12)


def test_ones_that_fall_on_a_class() -> None:
    log_factorial = gammaln(np.arange(10) + 1)
    found = kernels.hypergeometric(5, 3, 9, log_factorial)
    expected = [[hypergeom.pmf(h, 8, 3, s) for h in range(4)] for s in range(9)]
    assert found == pytest.approx(np.array(expected), rel=1e-12, abs=1e-15)


@given(n=st.integers(1, 150), alpha=st.sampled_from([1e-6, 0.4, 3.0, 50.0, 1e4, 1e8]), theta=st.floats(1e-6, 1 - 1e-6))
@settings(max_examples=40)
def test_walks_are_beta_binomial_and_leave_out_less_than_they_say(n: int, alpha: float, theta: float) -> None:
    mass = np.full(n + 2, np.nan)
    first, last = kernels.walk(n, alpha * theta, alpha * (1.0 - theta), mass)
    exact = np.exp([log_count(i, n, alpha, theta) for i in range(n + 1)])
    np.testing.assert_allclose(mass[first : last + 1], exact[first : last + 1], rtol=1e-9)
    assert exact[:first].sum() <= 1.01 * kernels.TAIL
    assert exact[last + 1 :].sum() <= 1.01 * kernels.TAIL
    ones = np.arange(n + 1)
    logs = kernels.log_probabilities(ones, np.full(n + 1, n), alpha, np.array([theta]))[:, 0]
    expected = [log_u(i, n, alpha, theta) for i in range(n + 1)]
    np.testing.assert_allclose(logs, expected, rtol=1e-10, atol=1e-10)


def test_walks_leave_out_something() -> None:
    first, last = kernels.walk(10**6, 3e5, 7e5, np.empty(10**6 + 2))
    assert last - first < 20 * math.sqrt(0.3 * 0.7 * 2e6)
