"""Marginal likelihoods and predictive distributions of Gaussian features, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.selection_bias.gaussian_moments import GaussianMoments


@dataclass(frozen=True, eq=False)
class GaussianPredictive:
    """Student distributions of a new value z of some features, for each class and alpha.

    p(z | c, alpha) is proportional to (S h)^(-1/2) (1 + (z - e)^2 / (S h))^(-n / 2), n the observed training cases.

    Attributes
    ----------
    location : ndarray of shape (n_features, n_classes, n_alpha)
        e.
    log_width : ndarray of the same shape
        log(S h).
    n_cases : ndarray of shape (n_features,)
    """

    location: NDArray[np.float64]
    log_width: NDArray[np.float64]
    n_cases: NDArray[np.int64]


def gaussian_log_likelihood(alphas: NDArray[np.float64], moments: GaussianMoments) -> NDArray[np.float64]:
    """Return log M of the features, relative to that of an infinite alpha, of shape (n_features, n_alpha).

    Notes
    -----
    M is proportional to prod_c (1 + n_c / alpha)^(-1/2) (sum_c w_c)^(-1/2) S^(-(n - 1) / 2), with
    w_c = n_c alpha / (n_c + alpha) and S = W + sum_c w_c (mean_c - m)^2, m the mean with these weights.
    """
    n = moments.sizes.sum(axis=0)[:, None]
    sizes = moments.sizes.T[:, :, None]
    weight, _, square = _pooled(alphas, moments)
    total = (moments.within + moments.between)[:, None]
    spread = np.log1p(sizes / alphas).sum(axis=1) + np.log(weight / n)
    found: NDArray[np.float64] = -0.5 * (spread + (n - 1) * np.log(square / total))
    return found


def gaussian_predictive(alphas: NDArray[np.float64], moments: GaussianMoments) -> GaussianPredictive:
    """Return the distributions of a new value.

    Notes
    -----
    e_c = (n_c mean_c + alpha m) / (n_c + alpha) and h_c = 1 + 1 / (n_c + alpha) + (alpha / (n_c + alpha))^2 / sum w.
    """
    sizes = moments.sizes.T[:, :, None]
    weight, middle, square = _pooled(alphas, moments)
    shrinkage = alphas / (sizes + alphas)
    location = (1.0 - shrinkage) * moments.means.T[:, :, None] + shrinkage * middle[:, None]
    factor = 1.0 + 1.0 / (sizes + alphas) + shrinkage**2 / weight[:, None]
    return GaussianPredictive(location, np.log(square[:, None] * factor), moments.sizes.sum(axis=0))


def _pooled(
    alphas: NDArray[np.float64], moments: GaussianMoments
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return sum w, m and S, each of shape (n_features, n_alpha)."""
    sizes, means = moments.sizes.T[:, :, None], moments.means.T[:, :, None]
    weights = sizes * (alphas / (sizes + alphas))
    weight = weights.sum(axis=1)
    middle = (weights * means).sum(axis=1) / weight
    square = moments.within[:, None] + (weights * (means - middle[:, None]) ** 2).sum(axis=1)
    return weight, middle, square
