"""The mixture model: its factor by enumeration, its chain against the exact posterior of tiny data."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln
from sklearn.exceptions import ConvergenceWarning

import trimbench as tb
from tests.extras import needs_arviz
from tests.selection_bias.settings import grouped
from trimbench.selection_bias.factors import Ties, tabled_probabilities
from trimbench.selection_bias.mixture import MixturePosterior, convergence
from trimbench.selection_bias.mixture_sampler import MixtureFactor
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import DiscardedGroup, Selection

from . import brute_force


def factor_at(
    prior: Prior, cut: tuple[int, int], n0: int, n1: int, ties: Ties = "exact", n_tied: int = 0, p: int = 10
) -> MixtureFactor:
    groups = (DiscardedGroup((n0, n1), p - 4, n_tied),) if p > 4 else ()
    selection = Selection(np.arange(4), np.ones(p), brute_force.ratio(cut, (n0, n1)), groups)
    return MixtureFactor(prior, selection, (n0, n1), ties)


def group_probability(i0: int, i1: int, sizes: tuple[int, int], alpha: float, theta: float) -> float:
    """Return P(n01, n11) of one latent group with these numbers of cases with y = 0 and y = 1."""
    choices = math.comb(sizes[0], i0) * math.comb(sizes[1], i1)
    return float(choices * math.exp(brute_force.log_u(i0 + i1, sum(sizes), alpha, theta)))


def weakness_by_enumeration(
    alpha: float, first: tuple[int, int], second: tuple[int, int], gamma2: Fraction
) -> tuple[float, float]:
    n0, n1 = first[0] + second[0], first[1] + second[1]
    cells = list(
        itertools.product(range(first[0] + 1), range(first[1] + 1), range(second[0] + 1), range(second[1] + 1))
    )
    value = {c: brute_force.ratio((c[0] + c[2], c[1] + c[3]), (n0, n1)) for c in cells}
    less = [c for c in cells if value[c] < gamma2]
    equal = [c for c in cells if value[c] == gamma2]

    @functools.cache
    def tables(theta: float) -> list[dict[tuple[int, ...], float]]:
        return [
            {(i0, i1): group_probability(i0, i1, sizes, alpha, theta) for i0, i1 in brute_force.counts_of(sizes)}
            for sizes in (first, second)
        ]

    def f(theta: float, chosen: list[tuple[int, int, int, int]]) -> float:
        one, other = tables(theta)
        return math.fsum(one[c[:2]] * other[c[2:]] for c in chosen)

    results = [brute_force.integral(lambda theta, c=chosen: f(theta, c)) if chosen else 0.0 for chosen in (less, equal)]  # type: ignore[misc]
    return results[0], results[1]


@pytest.mark.parametrize(
    ("first", "second", "cut"),
    [
        ((2, 1), (2, 3), (1, 3)),
        ((0, 0), (4, 3), (0, 2)),
        ((3, 0), (0, 4), (1, 3)),
        ((1, 2), (3, 1), (1, 2)),
        ((2, 2), (2, 2), (3, 1)),
    ],
)
def test_factor_is_that_of_enumeration_and_quadrature(
    first: tuple[int, int], second: tuple[int, int], cut: tuple[int, int]
) -> None:
    n0, n1 = first[0] + second[0], first[1] + second[1]
    prior = Prior(n_alpha=3)
    factor = factor_at(prior, cut, n0, n1)
    found = factor.probabilities(*first)
    for place, alpha in enumerate(prior.alphas()):
        less, equal = weakness_by_enumeration(float(alpha), first, second, brute_force.ratio(cut, (n0, n1)))
        assert math.exp(found.log_below[place]) == pytest.approx(less, rel=1e-8)
        assert math.exp(found.log_tied[place]) == pytest.approx(equal, rel=1e-8)
        assert math.exp(found.log_at_most[place]) == pytest.approx(less + equal, rel=1e-8)
    # The names of the groups do not matter, and ties count as they do in the naive Bayes model.
    np.testing.assert_allclose(factor.probabilities(*second).log_below, found.log_below, rtol=1e-10)
    for ties, expected in {
        "exact": 4 * found.log_below + 2 * found.log_tied,
        "less": 6 * found.log_below,
        "less_equal": 6 * found.log_at_most,
    }.items():
        tied = factor_at(prior, cut, n0, n1, ties, n_tied=2)  # type: ignore[arg-type]
        np.testing.assert_allclose(tied.log_factor(*first), expected, rtol=1e-10)
        np.testing.assert_allclose(tied.log_factor(*second), expected, rtol=1e-10)


def test_without_discarded_features_there_is_no_factor() -> None:
    assert not factor_at(Prior(n_alpha=3), (1, 3), 4, 4, p=4).log_factor(2, 2).any()


def test_tables_of_sums_are_forgotten_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = [(2, 1), (3, 3), (2, 1)]
    kept, forgetful = (factor_at(Prior(n_alpha=3), (1, 3), 4, 4) for _ in range(2))
    expected = [kept.probabilities(*split).log_below for split in splits]
    monkeypatch.setattr("trimbench.selection_bias.mixture_sampler._KEPT", 0)
    np.testing.assert_array_equal([forgetful.probabilities(*split).log_below for split in splits], expected)


def test_groups_that_are_the_classes_give_the_naive_bayes_factor() -> None:
    prior = Prior(n_alpha=6)
    factor = factor_at(prior, (7, 18), 25, 30)
    expected = tabled_probabilities(prior, (25, 30), brute_force.ratio((7, 18), (25, 30)))
    np.testing.assert_allclose(factor.probabilities(25, 0).log_below, expected.log_below, rtol=1e-9)
    np.testing.assert_allclose(factor.probabilities(0, 30).log_tied, expected.log_tied, rtol=1e-9)


# --- the chain


def quiet(*arguments: Any, **settings: Any) -> MixturePosterior:
    """Fit with chains that need not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return tb.fit_selection_corrected(*arguments, **grouped(features="mixture", **settings))


X_TINY = np.array(
    [[1, 0, 1, 0, 1], [1, 1, 0, 1, 0], [1, 0, 0, 1, 1], [0, 1, 1, 0, 0], [0, 0, 1, 0, 1], [0, 1, 0, 1, 1]]
)
Y_TINY = np.array([1, 1, 1, 0, 0, 1])
PRIOR = {"n_alpha": 3, "shape": 1.0, "rate": 4.0, "shape0": 0.8, "rate0": 2.0, "f1": 1.5, "f0": 0.7}


def exact_posterior(posterior: MixturePosterior, x_new: list[int]) -> dict[str, Any]:
    """Sum over all labels and both grids, theta by adaptive quadrature."""
    prior = Prior(shape=1.0, rate=4.0, n_alpha=3)
    alphas, alphas0 = prior.alphas(), Prior(shape=0.8, rate=2.0, n_alpha=3).alphas()
    columns = np.column_stack([Y_TINY, X_TINY[:, posterior.selected]])
    selection = posterior.selection
    memo: dict[Any, float] = {}

    def column(alpha: float, ones: tuple[int, int], sizes: tuple[int, int]) -> float:
        key = (alpha, *sorted(zip(ones, sizes, strict=True)))
        if key not in memo:
            memo[key] = brute_force.feature_integral(alpha, ones, sizes)
        return memo[key]

    def mass(z: np.ndarray, table: np.ndarray) -> np.ndarray:
        sizes = (int((z == 0).sum()), int((z == 1).sum()))
        labels = math.exp(betaln(1.5 + sizes[0], 0.7 + sizes[1]))
        ones = [tuple(int(table[z == g, j].sum()) for g in (0, 1)) for j in range(table.shape[1])]
        of_alpha = [math.prod(column(float(a), o, sizes) for o in ones[1:]) for a in alphas]  # type: ignore[arg-type, misc]
        of_alpha0 = [column(float(a), ones[0], sizes) for a in alphas0]  # type: ignore[arg-type]
        return labels * np.outer(of_alpha, of_alpha0)

    factors: dict[tuple[int, int], np.ndarray] = {}

    def factor(z: np.ndarray) -> np.ndarray:
        first = (int(((z == 0) & (Y_TINY == 0)).sum()), int(((z == 0) & (Y_TINY == 1)).sum()))
        if first not in factors:
            second = (int((Y_TINY == 0).sum()) - first[0], int(Y_TINY.sum()) - first[1])
            n_tied, n_out = selection.n_tied, selection.n_discarded
            pairs = [weakness_by_enumeration(float(a), first, second, Fraction(selection.cut)) for a in alphas]
            factors[first] = np.array([less ** (n_out - n_tied) * equal**n_tied for less, equal in pairs])
        return factors[first][:, None]

    total = np.zeros((3, 3))
    together = 0.0
    predictive = np.zeros(2)
    for z in map(np.array, itertools.product((0, 1), repeat=6)):
        here = mass(z, columns) * factor(z)
        total += here
        together += here.sum() * (z[0] == z[3])
        for y_new, z_new in itertools.product((0, 1), repeat=2):
            grown = mass(np.append(z, z_new), np.vstack([columns, [y_new, *x_new]]))
            predictive[y_new] += (grown * factor(z)).sum()
    return {
        "alpha": total.sum(axis=1) / total.sum(),
        "alpha0": total.sum(axis=0) / total.sum(),
        "together": together / total.sum(),
        "predictive": predictive[1] / predictive.sum(),
    }


@needs_arviz
def test_chain_has_the_exact_posterior() -> None:
    from arviz_stats.base import array_stats

    found = tb.fit_selection_corrected(
        X_TINY,
        Y_TINY,
        2,
        **grouped(features="mixture", n_warmup=100, n_draws=1500, random_state=1, theta_step=0.5, **PRIOR),
    )
    x_new = [1, 0]
    exact = exact_posterior(found, x_new)

    def agrees(draws: np.ndarray, expected: float) -> None:
        error = draws.std() / math.sqrt(float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean")))
        assert abs(draws.mean() - expected) < 4 * error

    for name in ("alpha", "alpha0"):
        draws = getattr(found, f"log_{name}")
        values = np.unique(draws)
        assert len(values) == 3
        for value, expected in zip(values, exact[name], strict=True):
            agrees((draws == value).astype(float), expected)
    agrees((found.labels[:, :, 0] == found.labels[:, :, 3]).astype(float), exact["together"])
    row = np.zeros((1, 5), dtype=int)
    row[0, found.selected] = x_new
    assert found.predict_proba(row)[0, 1] == pytest.approx(exact["predictive"], abs=0.01)
    for quantity in found.diagnostics().values():
        assert quantity.r_hat < 1.01
        assert quantity.effective_sample_size > 400
    assert found.converged


def test_a_missing_value_drops_out_of_the_product() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, size=(10, 5)), np.repeat([0, 1], 5)
    model = quiet(X, y, 2, n_alpha=4, n_chains=2, n_warmup=2, n_draws=5)
    gone = model.selected[0]
    without = dataclasses.replace(
        model,
        selection=dataclasses.replace(model.selection, features=model.selected[1:]),
        theta=np.delete(model.theta, 1, axis=-1),
        ones=np.delete(model.ones, 1, axis=-1),
    )
    hidden = np.ma.MaskedArray(X, mask=np.arange(5) == np.full((10, 1), gone))
    np.testing.assert_allclose(model.predict_proba(hidden), without.predict_proba(X), rtol=1e-12)


def test_chains_that_have_not_converged_are_reported() -> None:
    short = {"n_warmup": 0, "n_draws": 8, "n_alpha": 5}
    with pytest.warns(ConvergenceWarning, match=r"have not converged: R-hat .*, effective sample size .* \(at least"):
        found = tb.fit_selection_corrected(X_TINY, Y_TINY, 1, **grouped(features="mixture", n_chains=2, **short))
    assert not found.converged
    with pytest.warns(ConvergenceWarning, match=r"R-hat nan .*; both need two chains of four draws"):
        single = tb.fit_selection_corrected(X_TINY, Y_TINY, 1, **grouped(features="mixture", n_chains=1, **short))
    assert math.isnan(single.r_hat)
    assert not single.converged


def test_chains_that_stand_still() -> None:
    apart = convergence(np.repeat([[1.0], [2.0]], 8, axis=1))
    assert (apart.r_hat, apart.converged) == (math.inf, False)
    together = convergence(np.ones((2, 80)))
    assert (together.r_hat, together.effective_sample_size, together.converged) == (1.0, 160.0, True)


@needs_arviz
@pytest.mark.parametrize(("memory", "shift"), [(0.0, 0.0), (0.9, 0.0), (-0.8, 0.0), (0.5, 0.05)])
def test_convergence_is_that_of_arviz(memory: float, shift: float) -> None:
    from arviz_stats.base import array_stats

    draws = np.random.default_rng(0).normal(size=(4, 300)) + shift * np.arange(4)[:, None]
    for step in range(1, 300):
        draws[:, step] += memory * draws[:, step - 1]
    found = convergence(draws)
    assert found.r_hat == pytest.approx(float(array_stats.rhat(draws, chain_axis=0, draw_axis=1)), rel=1e-9)
    size = float(array_stats.ess(draws, chain_axis=0, draw_axis=1))
    assert found.effective_sample_size == pytest.approx(size, rel=0.02)


def test_the_two_posteriors_differ_by_the_correction() -> None:
    rng = np.random.default_rng(3)
    X, y = brute_force.random_data(rng, 20, 20, 300, alpha=100.0)
    settings: dict[str, Any] = {"n_chains": 2, "n_warmup": 50, "n_draws": 100, "n_alpha": 30}
    corrected = quiet(X, y, 4, **settings)
    plain = quiet(X, y, 4, correct=False, **settings)
    assert corrected.log_alpha.mean() > plain.log_alpha.mean()
    assert corrected.expected_error(X) > plain.expected_error(X)
    assert 0 < corrected.acceptance < 1
    assert corrected.theta.shape == (2, 100, 5)
    assert (corrected.sizes.sum(axis=2) == 40).all()
    # Counts and labels of each draw belong together.
    columns = np.column_stack([y, X[:, corrected.selected]])
    for g in (0, 1):
        np.testing.assert_array_equal(corrected.ones[1, 7, g], columns[corrected.labels[1, 7] == g].sum(axis=0))
    again = quiet(X, y, 4, **settings, n_jobs=2)  # in threads, which share the factors
    np.testing.assert_array_equal(again.predict_proba(X), corrected.predict_proba(X))
    everything = quiet(X[:, :3], y, 3, **settings)
    np.testing.assert_array_equal(
        everything.predict_proba(X[:, :3]), quiet(X[:, :3], y, 3, correct=False, **settings).predict_proba(X[:, :3])
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_chains": 0}, "n_chains must be a whole number, 1 or more, got 0"),
        ({"n_jobs": 0}, "n_jobs must be a whole number, 1 or more, got 0"),
        ({"n_draws": 0}, "n_draws must be a whole number, 1 or more, got 0"),
        ({"n_warmup": -1}, "n_warmup must be a whole number, 0 or more, got -1"),
        ({"theta_step": 0.0}, "theta_step must be in (0, 1], got 0.0"),
        ({"rate0": -1.0}, "rate0 must be a positive number, got -1.0"),
        ({"shape0": "wide"}, "shape0 must be a positive number, got 'wide'"),
        ({"f0": True}, "f0 must be a positive number, got True"),
        ({"theta_step": None}, "theta_step must be in (0, 1], got None"),
        ({"random_state": -1}, "random_state must be a whole number, 0 or more, got -1"),
    ],
)
def test_bad_input_is_reported(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"X": X_TINY, "y": Y_TINY, "k": 1} | arguments
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.fit_selection_corrected(**grouped(features="mixture", **given))
