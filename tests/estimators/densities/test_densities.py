"""Densities: their probabilities against sums over all values, their draws against their probabilities."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from trimbench.conformant.evidence import logsumexp
from trimbench.estimators.densities import gaussians, kernels
from trimbench.estimators.densities.density import responsibilities
from trimbench.estimators.densities.draws import RandomNumbers
from trimbench.estimators.densities.gaussians import GaussianMixture
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.neighbours import Neighbours
from trimbench.estimators.densities.products import ProductMixture

N_CATEGORIES = [0, 0, 3, 0]


def table(n_rows: int, seed: int = 0, gaps: float = 0.0) -> Any:
    """Draw rows of two numbers that depend on each other, a category, and a number with many zeros."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n_rows)
    rows = np.column_stack(
        [
            hidden + 0.3 * rng.normal(size=n_rows),
            np.exp(hidden + 0.3 * rng.normal(size=n_rows)),
            np.digitize(hidden + 0.5 * rng.normal(size=n_rows), [-0.5, 0.8]),
            np.maximum(np.round(3 * hidden), 0.0),
        ]
    )
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows


DENSITIES = [ProductMixture(3), GaussianMixture(1), GaussianMixture(2), Neighbours(0.3)]


def fitted(density: Any, gaps: float = 0.0) -> Any:
    rows = table(300, gaps=gaps)
    return density.fit(rows, Margins.of(rows, N_CATEGORIES), 0)


def test_bins_have_about_equally_many_values_and_frequent_values_have_their_own() -> None:
    rows = table(5000)
    margins = Margins.of(rows, N_CATEGORIES)
    bins = margins.bins(rows)
    for feature in range(4):
        own = slice(*margins.offsets[feature : feature + 2])
        counts = np.bincount(bins[:, feature], minlength=margins.n_bins[feature]) / len(rows)
        assert np.abs(counts - margins.shares[own]).max() < 0.01
    zeros = bins[rows[:, 3] == 0, 3]
    assert (zeros == zeros[0]).all()
    assert (bins[rows[:, 3] != 0, 3] != zeros[0]).all()
    outside = margins.bins(np.array([[-99.0, 1e9, 7.0, np.nan]]))
    assert outside.tolist() == [[0, margins.n_bins[1] - 1, -1, -1]]


def test_a_share_below_a_threshold_counts_the_values_of_the_bin() -> None:
    rows = np.arange(100.0)[:, None]
    margins = Margins.of(rows, [0])
    for threshold in (-1.0, 0.0, 3.5, 50.0, 98.0, 1e9):
        below = margins.below(0, np.array([threshold]))[0] @ margins.shares
        assert below == pytest.approx((rows <= threshold).mean())


def test_the_responsibilities_of_products_are_those_of_bayes_rule() -> None:
    density = fitted(ProductMixture(3))
    margins = density.margins
    rows = table(20, seed=1, gaps=0.4)
    bins = margins.bins(rows)
    for row, of_row in zip(density.log_joint(rows), bins, strict=True):
        places = [margins.offsets[j] + b for j, b in enumerate(of_row) if b >= 0]
        expected = np.exp(density.log_weights) * density.tables[places].prod(axis=0)
        assert np.exp(row) == pytest.approx(expected, rel=1e-10)
    # Summed over all values of what is hidden, the probabilities of whole rows are those of the known part.
    known = margins.middles[margins.offsets[0] + 3], np.nan, np.nan, margins.middles[margins.offsets[3]]
    values = [margins.middles[slice(*margins.offsets[j : j + 2])] for j in (1, 2)]
    whole = np.array([[known[0], a, b, known[3]] for a, b in itertools.product(*values)])
    total = np.exp(density.log_joint(whole)).sum(axis=0)
    assert total == pytest.approx(np.exp(density.log_joint(np.array([known])))[0], rel=1e-10)


@pytest.mark.parametrize("density", DENSITIES, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_draws_follow_the_conditional_probabilities(density: Any, gaps: float) -> None:
    fitted(density, gaps)
    rows = np.array([[1.0, np.nan, np.nan, 2.0], [np.nan, np.nan, 0.0, 0.0], [np.nan] * 4])
    numbers = RandomNumbers(4000, 4, 1)
    drawn = density.draw(rows, numbers)
    known = ~np.isnan(rows)
    assert (drawn.swapaxes(1, 2)[known] == rows[known][:, None]).all()
    margins = density.margins
    for n, row in enumerate(rows):
        for feature in np.flatnonzero(np.isnan(row)):
            expected = density.marginal(rows[[n]], feature)[0]
            assert expected.sum() == pytest.approx(1.0)
            counts = np.bincount(margins.bins(drawn[n])[:, feature], minlength=margins.n_bins[feature])
            # Four standard errors, and what the ends of the quantiles round.
            allowed = 4 * np.sqrt(expected * (1 - expected) / 4000) + 4e-3
            assert (np.abs(counts / 4000 - expected) < allowed).all()


@pytest.mark.parametrize("density", DENSITIES, ids=lambda d: type(d).__name__)
def test_what_is_drawn_of_a_row_does_not_depend_on_other_rows(density: Any) -> None:
    fitted(density)
    rows = table(30, seed=2, gaps=0.5)
    numbers = RandomNumbers(16, 4, 3)
    together = density.draw(rows, numbers)
    for place in (0, 7, 29):
        assert (density.draw(rows[[place]], numbers)[0] == together[place]).mean() > 0.99


@pytest.mark.parametrize("density", [ProductMixture(3), GaussianMixture(2)], ids=lambda d: type(d).__name__)
def test_incomplete_rows_teach_about_the_same_as_complete_ones(density: Any) -> None:
    rows = np.array([[1.5, np.nan, np.nan, np.nan], [-1.5, np.nan, np.nan, np.nan]])
    means = []
    for gaps in (0.0, 0.3):
        of_rows = table(1000, gaps=gaps)
        density.fit(of_rows, Margins.of(of_rows, N_CATEGORIES), 0)
        means.append(density.draw(rows, RandomNumbers(400, 4, 0)).mean(axis=1))
    assert np.abs(means[0] - means[1])[:, 2:].max() < 0.6
    assert means[1][0, 3] > means[1][1, 3] + 1


def test_normal_laws_of_rows_with_gaps_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 5, 5))
    covariances = roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(5)
    means = rng.normal(size=(2, 5))
    points = rng.normal(size=(40, 5))
    points[rng.random(points.shape) < 0.4] = np.nan
    points[:2] = np.nan
    found = gaussians.log_densities(points, means, covariances)
    for point, of_point in zip(points, found, strict=True):
        known = np.flatnonzero(~np.isnan(point))
        for k in range(2 if len(known) else 0):
            law = multivariate_normal(means[k, known], covariances[k][np.ix_(known, known)])
            assert of_point[k] == pytest.approx(law.logpdf(point[known]), rel=1e-10)
    assert kernels.log_densities(points, means, covariances) == pytest.approx(found, rel=1e-10, abs=1e-10)
    numbers = RandomNumbers(30, 5, 0, n_sets=3)
    normals = np.ascontiguousarray(norm.ppf(numbers.features))
    chosen = rng.integers(0, 2, size=(40, 30))
    slow = gaussians.conditional_draws(points, means, covariances, chosen, normals)
    fast = kernels.conditional_draws(points, means, covariances, chosen, normals)
    assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_the_moments_of_draws_are_the_conditional_ones() -> None:
    covariance = np.array([[[1.0, 0.8], [0.8, 1.0]]])
    points = np.array([[1.2, np.nan]])
    normals = norm.ppf(RandomNumbers(5000, 2, 0).features)
    drawn = gaussians.conditional_draws(points, np.zeros((1, 2)), covariance, np.zeros((1, 5000), dtype=int), normals)
    assert drawn[0, :, 1].mean() == pytest.approx(0.96, abs=0.01)
    assert drawn[0, :, 1].var() == pytest.approx(0.36, abs=0.01)
    means, variances = gaussians.conditional_moments(points, np.zeros((1, 2)), covariance, 1)
    assert (means.item(), variances.item()) == pytest.approx((0.96, 0.36))


def test_neighbours_weigh_donors_by_the_kernel_of_the_known_features() -> None:
    density = fitted(Neighbours(0.4))
    rows = table(5, seed=4, gaps=0.4)
    scores = density.margins.scores(density.donors)
    for row, shares in zip(rows, responsibilities(density, rows), strict=True):
        known = ~np.isnan(row)
        of_row = density.margins.scores(row[None])[0]
        squares = np.zeros(len(scores))
        for feature in np.flatnonzero(known):
            if feature == 2:
                squares += 2.0 * (density.donors[:, 2] != row[2])
            else:
                squares += (scores[:, feature] - of_row[feature]) ** 2
        logs = -squares / (2 * 0.4**2 * max(known.sum(), 1) ** (2 / 3))
        assert shares == pytest.approx(np.exp(logs - logsumexp(logs[None])[0]), abs=1e-12)


def test_numbers_of_draws_are_spread_evenly_and_always_the_same() -> None:
    numbers = RandomNumbers(64, 3, 7)
    assert (np.sort((numbers.features[0] * 64).astype(int), axis=0) == np.arange(64)[:, None]).all()
    assert (numbers.features == RandomNumbers(64, 3, 7).features).all()
    later = RandomNumbers(32, 3, 7, first=32)
    assert (later.features[0] == numbers.features[0, 32:]).all()
    shares = np.array([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5]])
    chosen = numbers.components(shares)
    for row, share in zip(chosen, shares, strict=True):
        assert np.bincount(row, minlength=3) / 64 == pytest.approx(share, abs=0.03)
