"""Mixtures of normal laws with covariances for the normal scores of numbers, and of products for categories."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.evidence import logsumexp
from trimbench.estimators.densities.density import normalised, responsibilities
from trimbench.estimators.densities.draws import RandomNumbers, log_shares
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.products import (
    ProductMixture,
    clustered,
    indicators,
    values_of_components,
)

# Added to each variance: normal scores have variance 1.
_RIDGE = 1e-3
_MAX_STEPS, _TOLERANCE = 30, 1e-4
# How often gaps of the training rows are drawn again, and in how many ways.
_ROUNDS, _SETS = 3, 4096
# From this many multiplications on, compiled loops, which take a second to load, pay off.
_MANY = 2**22
# Of more numbers, covariances take too long.
MOST_NUMBERS = 128


class GaussianMixture:
    """A mixture of components with a covariance between numbers, on the scale of their normal scores.

    Drawn numbers are values of the training rows, so that they stay within bounds and whole where these are. Categories
    are independent within a component.

    Parameters
    ----------
    n_components : int

    Attributes
    ----------
    margins : Margins
    log_weights : ndarray of shape (n_components,)
    means : ndarray of shape (n_components, n_numbers)
    covariances : ndarray of shape (n_components, n_numbers, n_numbers)
    tables : ndarray of shape (n_all_bins, n_components)
        P(category | component); the bins of numbers have their share of all rows.
    """

    margins: Margins
    log_weights: Vector
    means: Matrix
    covariances: NDArray[np.float64]
    tables: Matrix

    def __init__(self, n_components: int) -> None:
        self.n_components = n_components

    @classmethod
    def of(
        cls, margins: Margins, log_weights: Vector, means: Matrix, covariances: NDArray[np.float64], tables: Matrix
    ) -> Self:
        """Return the mixture with these parameters."""
        found = cls(len(log_weights))
        found.margins, found._numeric = margins, np.flatnonzero(~margins.categorical)
        found.log_weights, found.means, found.covariances, found.tables = log_weights, means, covariances, tables
        found._log_tables = found._logarithms()
        return found

    def _logarithms(self) -> Matrix:
        """Return the logarithms of the probabilities of categories, 0 for the bins of numbers."""
        is_category = np.repeat(self.margins.categorical, self.margins.n_bins)
        return np.where(is_category[:, None], np.log(self.tables), 0.0)

    def fit(self, rows: Matrix, margins: Margins, random_state: int) -> Self:
        """Fit the mixture to coded rows; gaps are drawn from it again and again (stochastic EM)."""
        self.margins = margins
        self._numeric = np.flatnonzero(~margins.categorical)
        gaps = np.isnan(rows).any(axis=1)
        weights = clustered(margins, rows, self.n_components, random_state)
        if not gaps.any():
            return self._fitted(rows, weights)
        whole = rows.copy()
        density: ProductMixture | GaussianMixture = ProductMixture(self.n_components).fit(rows, margins, random_state)
        for turn in range(_ROUNDS):
            numbers = RandomNumbers(1, margins.n_features, random_state + turn, min(len(rows), _SETS))
            whole[gaps] = density.draw(rows[gaps], numbers)[:, 0]
            density = self._fitted(whole, weights)
            weights = responsibilities(self, whole)
        return self

    def _fitted(self, rows: Matrix, weights: Matrix) -> Self:
        points = self.margins.scores(rows)[:, self._numeric]
        seen = self._seen(rows)
        before = -np.inf
        for _ in range(_MAX_STEPS):
            self._maximise(points, seen, weights)
            joint = self._log_joint(points, seen)
            totals = logsumexp(joint)
            reached = float(totals.mean())
            if reached - before < _TOLERANCE * abs(reached):
                break
            weights, before = np.exp(joint - totals[:, None]), reached
        return self

    def _maximise(self, points: Matrix, seen: Any, weights: Matrix) -> None:
        margins, n_numbers = self.margins, points.shape[1]
        counts = weights.sum(axis=0)
        self.log_weights = log_shares(weights)
        self.means = (weights.T @ points + points.mean(axis=0)) / (counts + 1.0)[:, None]
        scatter = np.stack([_scatter(points - mean, of) for mean, of in zip(self.means, weights.T, strict=True)])
        pooled = scatter.sum(axis=0) / counts.sum()
        shared = _shrunk(pooled, len(points))
        covariances = (scatter + n_numbers * shared) / (counts + n_numbers)[:, None, None]
        self.covariances = covariances + _RIDGE * np.eye(n_numbers)
        shares = margins.shares[:, None]
        self.tables = np.repeat(shares, self.n_components, axis=1)
        if seen is not None:
            of_bins = np.repeat(np.arange(margins.n_features), margins.n_bins)
            smooth = seen.T @ weights + shares
            totals = np.add.reduceat(smooth, margins.offsets[:-1], axis=0)[of_bins]
            is_category = margins.categorical[of_bins]
            self.tables[is_category] = (smooth / totals)[is_category]
            self._log_tables = self._logarithms()

    def _log_joint(self, points: Matrix, seen: Any) -> Matrix:
        joint = log_densities(points, self.means, self.covariances) + self.log_weights
        return joint if seen is None else np.asarray(joint + seen @ self._log_tables)

    def log_joint(self, rows: Matrix) -> Matrix:
        """Return log P(component, known features) of each row, shape (n_rows, n_components)."""
        return self._log_joint(self.margins.scores(rows)[:, self._numeric], self._seen(rows))

    def _seen(self, rows: Matrix) -> Any:
        """Return which bins the known values are in, None if there are no categories."""
        return indicators(self.margins, rows) if self.margins.categorical.any() else None

    def marginal(self, rows: Matrix, feature: int) -> Matrix:
        """Return P(bin | known features) of a feature that all rows hide, shape (n_rows, n_bins)."""
        from scipy.special import ndtr

        margins = self.margins
        own = slice(*margins.offsets[feature : feature + 2])
        shares = responsibilities(self, rows)
        if margins.categorical[feature]:
            return np.asarray(shares @ self.tables[own].T)
        place = int(np.flatnonzero(self._numeric == feature)[0])
        points = margins.scores(rows)[:, self._numeric]
        means, variances = conditional_moments(points, self.means, self.covariances, place)
        low, high = (ends[own] for ends in margins.score_ranges)
        means, deviations = means[:, :, None], np.sqrt(variances)[:, :, None]
        chances = ndtr((high - means) / deviations) - ndtr((low - means) / deviations)
        return np.asarray(np.einsum("nk,nkb->nb", shares, chances))

    def draw(self, rows: Matrix, numbers: RandomNumbers) -> NDArray[np.float64]:
        """Complete each row, shape (n_rows, n_draws, n_features)."""
        from scipy.special import ndtr

        margins = self.margins
        points = margins.scores(rows)[:, self._numeric]
        chosen = numbers.components(normalised(self._log_joint(points, self._seen(rows))))
        completed = np.repeat(rows[:, None, :], numbers.n_draws, axis=1)
        places = np.flatnonzero(margins.categorical)
        if len(places):
            drawn = values_of_components(margins, self.tables, numbers, places.tolist())
            drawn = drawn[numbers.sets(len(rows))[:, None], np.arange(numbers.n_draws), chosen]
            absent = np.isnan(rows) & margins.categorical
            completed = np.where(absent[:, None, :], drawn, completed)
        normals = numbers.normals[:, :, self._numeric]
        scores = conditional_draws(points, self.means, self.covariances, chosen, normals)
        in_rows, in_points = np.nonzero(np.isnan(points))
        features = self._numeric[in_points]
        n_quantiles = margins.quantiles.shape[1]
        at = np.minimum((ndtr(scores[in_rows, :, in_points]) * n_quantiles).astype(np.intp), n_quantiles - 1)
        completed[in_rows, :, features] = margins.quantiles[features[:, None], at]
        return completed


def _scatter(points: Matrix, weights: Vector) -> Matrix:
    return np.asarray((points * weights[:, None]).T @ points)


def _shrunk(covariance: Matrix, n_rows: int) -> Matrix:
    """Return a covariance between numbers that is shrunk towards independence by what n rows leave uncertain.

    The share is that of Schäfer and Strimmer (2005) for a normal law.
    """
    variances = np.diag(covariance)
    scale = np.sqrt(np.outer(variances, variances)) + np.finfo(np.float64).tiny
    correlations = covariance / scale
    others = ~np.eye(len(covariance), dtype=bool)
    squares = correlations[others] ** 2
    uncertain = ((1 - squares) ** 2).sum() / max(n_rows - 1, 1)
    share = min(uncertain / max(squares.sum(), np.finfo(np.float64).tiny), 1.0) if squares.size else 0.0
    shrunk = (1 - share) * covariance
    np.fill_diagonal(shrunk, variances)
    return np.asarray(shrunk)


# Normal laws of rows with gaps: by compiled loops for many rows, else row by row.


def log_densities(points: Matrix, means: Matrix, covariances: NDArray[np.float64]) -> Matrix:
    """Return the log-density of the known numbers of each row in each component, shape (n_rows, n_components)."""
    known = ~np.isnan(points)
    if known.all() or (len(points) and (known == known[0]).all()):
        return _log_densities_alike(points, np.flatnonzero(known.all(axis=0)), means, covariances)
    if points.size * points.shape[1] * len(means) >= _MANY:
        from trimbench.estimators.densities import kernels

        return kernels.log_densities(points, means, covariances)
    rows = [
        _log_densities_alike(row[None], np.flatnonzero(of), means, covariances)
        for row, of in zip(points, known, strict=True)
    ]
    return np.concatenate(rows)


def _log_densities_alike(
    points: Matrix, known: NDArray[np.intp], means: Matrix, covariances: NDArray[np.float64]
) -> Matrix:
    """Return `log_densities` of rows in which the same numbers are known."""
    factors = np.linalg.cholesky(covariances[:, known[:, None], known])
    differences = points[:, known].T - means[:, known, None]
    solved = np.linalg.solve(factors, differences)
    levels = np.log(np.einsum("kii->ki", factors)).sum(axis=1) + 0.5 * len(known) * np.log(2 * np.pi)
    return np.asarray((-0.5 * (solved**2).sum(axis=1) - levels[:, None]).T)


def conditional_draws(
    points: Matrix,
    means: Matrix,
    covariances: NDArray[np.float64],
    chosen: NDArray[np.intp],
    normals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return draws of all numbers given the known ones, shape (n_rows, n_draws, n_numbers).

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_numbers)
    means, covariances : ndarray
        Of the components.
    chosen : ndarray of int, shape (n_rows, n_draws)
        The component of each draw.
    normals : ndarray of shape (n_sets, n_draws, n_numbers)
        Standard normal numbers; row i takes set i modulo n_sets.
    """
    if points.size * points.shape[1] * chosen.shape[1] >= _MANY:
        from trimbench.estimators.densities import kernels

        return kernels.conditional_draws(points, means, covariances, chosen, np.ascontiguousarray(normals))
    result = np.repeat(points[:, None, :], chosen.shape[1], axis=1)
    for n, point in enumerate(points):
        hidden = np.flatnonzero(np.isnan(point))
        for k in np.unique(chosen[n]):
            mean, covariance = _conditional(point, hidden, means[k], covariances[k])
            factor = np.linalg.cholesky(covariance)
            draws = np.flatnonzero(chosen[n] == k)
            result[n, draws[:, None], hidden] = mean + normals[n % len(normals)][draws[:, None], hidden] @ factor.T
    return result


def conditional_moments(
    points: Matrix, means: Matrix, covariances: NDArray[np.float64], feature: int
) -> tuple[Matrix, Matrix]:
    """Return mean and variance of a hidden number given the known ones, shape (n_rows, n_components) each."""
    centres, variances = np.empty((2, len(points), len(means)))
    for n, point in enumerate(points):
        known = np.flatnonzero(~np.isnan(point))
        within = covariances[:, known[:, None], known]
        weights = np.linalg.solve(within, covariances[:, known, feature][:, :, None])[:, :, 0]
        centres[n] = means[:, feature] + ((point[known] - means[:, known]) * weights).sum(axis=1)
        variances[n] = covariances[:, feature, feature] - (weights * covariances[:, known, feature]).sum(axis=1)
    return centres, np.maximum(variances, 1e-12)


def _conditional(point: Vector, hidden: NDArray[np.intp], mean: Vector, covariance: Matrix) -> tuple[Vector, Matrix]:
    """Return mean and covariance of the hidden numbers of a row given its known ones."""
    known = np.flatnonzero(~np.isnan(point))
    across = covariance[np.ix_(known, hidden)]
    weights = np.linalg.solve(covariance[np.ix_(known, known)], across)
    centre = mean[hidden] + (point[known] - mean[known]) @ weights
    return centre, covariance[np.ix_(hidden, hidden)] - across.T @ weights
