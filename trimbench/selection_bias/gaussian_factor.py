r"""Adjustment factor for Gaussian features: the probability that the F statistic of a feature is small.

Given alpha, B = sum_c n_c (mean_c - mean)^2 = sigma^2 sum_i lambda_i Z_i^2 with independent standard normal Z_i, and
the sum of squares within the classes is W = sigma^2 chi^2_{n - C}: eta^2 = B / (B + W), and F with it, are pivotal.
lambda_i = 1 + d_i / alpha, where d_1, ..., d_{C-1} are the eigenvalues of the matrix diag(n_1, ..., n_C) on what is
orthogonal to (sqrt(n_1), ..., sqrt(n_C)). With two classes lambda = 1 + 2 n_0 n_1 / (n alpha) and F / lambda has the F
distribution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

# Relative to the probability, what the terms left out may have.
_TOLERANCE = 1e-16


def log_gaussian_adjustment(
    alphas: NDArray[np.float64], sizes: NDArray[np.int64], cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the adjustment factor, and a bound on what it may be too small, each of shape (n_alpha,).

    Parameters
    ----------
    alphas : ndarray of shape (n_alpha,)
    sizes : ndarray of shape (n_classes, n_discarded)
        Cases of each class in which each discarded feature was observed: of two classes or more, and more cases than
        classes.
    cut : float
        eta^2 of the last selected feature.
    """
    patterns, repeats = np.unique(np.sort(sizes, axis=0), axis=1, return_counts=True)
    log_factor, error = np.zeros((2, len(alphas)))
    for pattern, n_features in zip(patterns.T, repeats.tolist(), strict=True):
        probability, left_out = weak_probability(alphas, pattern[pattern > 0], cut)
        log_factor += n_features * np.log(probability)
        error += n_features * left_out / probability
    return log_factor, error


def weak_probability(
    alphas: NDArray[np.float64], sizes: NDArray[np.int64], cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(eta^2 < cut | alpha), and what it may be too small, each of shape (n_alpha,).

    Parameters
    ----------
    alphas : ndarray of shape (n_alpha,)
    sizes : ndarray of shape (n_classes,)
        n_c, each at least 1, of two classes or more.
    cut : float
        In (0, 1].
    """
    spread = 1.0 + between_eigenvalues(sizes) / alphas[:, None]
    return ratio_probability(spread, int(sizes.sum()) - len(sizes), cut)


def between_eigenvalues(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return d_1, ..., d_{C-1}, increasing, all between the smallest and the largest n_c; 2 n_0 n_1 / n if C = 2."""
    root = np.sqrt(sizes / sizes.sum())
    projection = np.eye(len(sizes)) - np.outer(root, root)
    found = np.linalg.eigvalsh(projection * sizes @ projection)[1:]
    result: NDArray[np.float64] = np.clip(found, sizes.min(), sizes.max()).astype(np.float64)
    return result


def ratio_probability(
    spread: NDArray[np.float64], n_within: int, cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return P(B / (B + W) < cut) for B = sum_i lambda_i Z_i^2 and W = chi^2_m, and what it may be too small.

    Parameters
    ----------
    spread : ndarray of shape (n_alpha, q)
        lambda_i, increasing.
    n_within : int
        m.

    Notes
    -----
    B is a mixture of the distributions of lambda_1 chi^2_{q + 2k} with weights c_k >= 0 that sum to 1 (Ruben, 1962), so
    that the probability is the sum of c_k I(q / 2 + k, m / 2), I the incomplete beta function at the same point. With
    a_i = 1 - lambda_1 / lambda_i, k c_k = sum_i sum_{j=1}^k a_i^j c_{k-j} / 2. All terms are positive, so that they
    lose no digits, and as c_{k+1} / c_k <= R = a_q max(1, (k + q / 2) / (k + 1)) and I falls in k, those after the k-th
    are at most c_k I R / (1 - R). With two classes the first term is all.
    """
    q = spread.shape[1]
    ratios = 1.0 - spread[:, :1] / spread
    point = cut / (cut + spread[:, 0] * (1.0 - cut))
    total, left_out = np.zeros((2, len(spread)))
    open_ones = np.arange(len(spread))
    weights, sums = np.sqrt(1.0 - ratios).prod(axis=1), np.zeros_like(ratios)
    k = 0
    while len(open_ones):
        terms = weights * betainc(0.5 * q + k, 0.5 * n_within, point[open_ones])
        total[open_ones] += terms
        growth = ratios[:, -1] * max(1.0, (k + 0.5 * q) / (k + 1.0))
        with np.errstate(divide="ignore"):
            rest = np.where(growth < 1.0, terms * growth / np.abs(1.0 - growth), np.inf)
        left_out[open_ones] = rest
        going = rest > _TOLERANCE * total[open_ones]
        open_ones, ratios, sums, weights = open_ones[going], ratios[going], sums[going], weights[going]
        k += 1
        sums = ratios * (sums + weights[:, None])
        weights = sums.sum(axis=1) / (2.0 * k)
    return np.minimum(total, 1.0), left_out
