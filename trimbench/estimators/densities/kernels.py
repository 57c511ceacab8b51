"""Compiled conditional normal laws of rows with gaps; `trimbench.estimators.densities.gaussians` has their twins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled_sums


@compiled_sums
def _factor(covariance: NDArray[np.float64], places: NDArray[np.int64], factor: NDArray[np.float64]) -> None:
    """Write the Cholesky factor of the chosen rows and columns of a covariance."""
    for i in range(len(places)):
        for j in range(i + 1):
            total = covariance[places[i], places[j]]
            for t in range(j):
                total -= factor[i, t] * factor[j, t]
            factor[i, j] = np.sqrt(max(total, 1e-12)) if i == j else total / factor[j, j]


@compiled_sums
def log_densities(
    rows: NDArray[np.float64], means: NDArray[np.float64], covariances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log-density of the known numbers of each row, shape (n_rows, n_components)."""
    n_rows, n_features = rows.shape
    n_components = len(means)
    result = np.empty((n_rows, n_components))
    factors = np.empty((n_components, n_features, n_features))
    solved = np.empty(n_features)
    known = np.empty(n_features, dtype=np.int64)
    n_known = -1
    for n in range(n_rows):
        # Rows with the gaps of the row before share its factors.
        same = n_known >= 0
        at = 0
        for j in range(n_features):
            if not np.isnan(rows[n, j]):
                same = same and at < n_known and known[at] == j
                known[at] = j
                at += 1
        same = same and at == n_known
        n_known = at
        for k in range(n_components):
            factor = factors[k]
            if not same:
                _factor(covariances[k], known[:n_known], factor)
            total = -0.5 * n_known * np.log(2 * np.pi)
            for i in range(n_known):
                value = rows[n, known[i]] - means[k, known[i]]
                for t in range(i):
                    value -= factor[i, t] * solved[t]
                solved[i] = value / factor[i, i]
                total -= 0.5 * solved[i] * solved[i] + np.log(factor[i, i])
            result[n, k] = total
    return result


@compiled_sums
def conditional_draws(
    rows: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    chosen: NDArray[np.int64],
    normals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return draws of all numbers given the known ones, shape (n_rows, n_draws, n_features); known ones stay."""
    n_rows, n_features = rows.shape
    n_draws = chosen.shape[1]
    result = np.empty((n_rows, n_draws, n_features))
    factor = np.empty((n_features, n_features))
    weights = np.empty((n_features, n_features))
    left = np.empty((n_features, n_features))
    spread = np.empty((n_features, n_features))
    solved, centre = np.empty(n_features), np.empty(n_features)
    known, hidden = np.empty(n_features, dtype=np.int64), np.empty(n_features, dtype=np.int64)
    for n in range(n_rows):
        n_known, n_hidden = 0, 0
        for j in range(n_features):
            if np.isnan(rows[n, j]):
                hidden[n_hidden] = j
                n_hidden += 1
            else:
                known[n_known] = j
                n_known += 1
                for d in range(n_draws):
                    result[n, d, j] = rows[n, j]
        for k in range(len(means)):
            if not np.any(chosen[n] == k):
                continue
            covariance = covariances[k]
            _factor(covariance, known[:n_known], factor)
            for j in range(n_hidden):
                centre[j] = means[k, hidden[j]]
                for i in range(n_hidden):
                    left[i, j] = covariance[hidden[i], hidden[j]]
            for i in range(n_known):
                value = rows[n, known[i]] - means[k, known[i]]
                for j in range(n_hidden):
                    weights[i, j] = covariance[known[i], hidden[j]]
                for t in range(i):
                    share = factor[i, t]
                    value -= share * solved[t]
                    for j in range(n_hidden):
                        weights[i, j] -= share * weights[t, j]
                solved[i] = value / factor[i, i]
                for j in range(n_hidden):
                    weights[i, j] /= factor[i, i]
                    centre[j] += weights[i, j] * solved[i]
                for a in range(n_hidden):
                    share = weights[i, a]
                    for b in range(a + 1):
                        left[a, b] -= share * weights[i, b]
            _factor(left, np.arange(n_hidden), spread)
            for d in range(n_draws):
                if chosen[n, d] == k:
                    numbers = normals[n % len(normals), d]
                    for a in range(n_hidden):
                        value = centre[a]
                        for b in range(a + 1):
                            value += spread[a, b] * numbers[hidden[b]]
                        result[n, d, hidden[a]] = value
    return result
