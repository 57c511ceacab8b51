"""Gaussian features: their moments and predictive distributions, and their adjustment factor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, logsumexp

from trimbench.networks.values import is_constant
from trimbench.selection_bias.features import checked_cases
from trimbench.selection_bias.selection import Selection

# Numbers of a block of cases, classes and alphas, which stays in the cache of the processor.
_BLOCK_ENTRIES = 2**15
# A factor is at most 1e213, so that a product up to this has room for one more.
_LARGE = 1e90


@dataclass(frozen=True, eq=False)
class GaussianFeatures:
    """Selected features that are Gaussian in each class.

    Attributes
    ----------
    alphas : ndarray of shape (n_alpha,)
    n_features : int
        Number of features of the training cases.
    columns : ndarray of int
        Numbers of the selected features that vary.
    moments : GaussianMoments
        Moments of these.
    """

    alphas: NDArray[np.float64]
    n_features: int
    columns: NDArray[np.int64]
    moments: GaussianMoments

    @cached_property
    def _predictive(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return gaussian_predictive(self.alphas, self.moments)

    def log_scores(self, X: ArrayLike, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `trimbench.selection_bias.model.Features`."""
        values = checked_cases(X, self.n_features)
        result = np.empty((len(values), len(offsets)))
        step = max(1, _BLOCK_ENTRIES // offsets.size)
        for start in range(0, len(values), step):
            cases = values[start : start + step][:, self.columns]
            z = standardised(cases, self.moments.centres, self.moments.scales)
            result[start : start + step] = logsumexp(
                offsets + _log_densities(*self._predictive, self.moments, z), axis=2
            )
        return result


def _log_densities(
    location: NDArray[np.float64], log_width: NDArray[np.float64], moments: GaussianMoments, z: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sums of log p(z | c, alpha) over the features, of shape (n_cases, n_classes, n_alpha)."""
    n_features, *shape = location.shape
    seen = ~np.isnan(z)
    log_widths = log_width.reshape(n_features, math.prod(shape))
    widths = np.exp(0.5 * log_widths)
    locations = location.reshape(n_features, math.prod(shape)) / widths
    result = -0.5 * (seen.astype(np.float64) @ log_widths)
    numbers = moments.sizes.sum(axis=0)
    for n_cases in np.unique(numbers):
        members = np.flatnonzero(numbers == n_cases)
        result -= 0.5 * n_cases * _log_product(z[:, members], widths[members], locations[members])
    return result.reshape(len(z), *shape)


def _log_product(
    z: NDArray[np.float64], widths: NDArray[np.float64], locations: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log prod_j (1 + (z_j / width_j - location_j)^2) with few logarithms, which take most of the time."""
    product = np.ones((len(z), widths.shape[1]))
    terms, result = np.empty_like(product), np.zeros_like(product)
    for j, column in enumerate(z.T):
        missing = np.isnan(column)
        np.multiply.outer(column, 1.0 / widths[j], out=terms)
        terms -= locations[j]
        terms *= terms
        terms += 1.0
        if missing.any():
            terms[missing] = 1.0
        product *= terms
        if product.max() > _LARGE:
            result += np.log(product)
            product.fill(1.0)
    return result + np.log(product)


# Adjustment factor for Gaussian features: the probability that the F statistic of a feature is small.

# Maximum sum of the omitted terms, relative to the probability.
_TOLERANCE = 1e-16


def log_gaussian_adjustment(
    alphas: NDArray[np.float64], selection: Selection
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the adjustment factor, and a bound on how much too small it is, each of shape (n_alpha,)."""
    log_factor, error = np.zeros((2, len(alphas)))
    for group in selection.groups:
        probability, left_out = weak_probability(alphas, np.array(group.sizes), float(selection.cut))
        log_factor += group.n_discarded * np.log(probability)
        error += group.n_discarded * left_out / probability
    return log_factor, error


def weak_probability(
    alphas: NDArray[np.float64], sizes: NDArray[np.int64], cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(eta^2 < cut | alpha), and a bound on how much too small it is, each of shape (n_alpha,).

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
    """Return the eigenvalues d_1 <= ... <= d_{C-1}, all from min n_c to max n_c; for two classes 2 n_0 n_1 / n."""
    root = np.sqrt(sizes / sizes.sum())
    projection = np.eye(len(sizes)) - np.outer(root, root)
    found = np.linalg.eigvalsh(projection * sizes @ projection)[1:]
    result: NDArray[np.float64] = np.clip(found, sizes.min(), sizes.max()).astype(np.float64)
    return result


def ratio_probability(
    spread: NDArray[np.float64], n_within: int, cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return P(B / (B + W) < cut) for B = sum_i lambda_i Z_i^2 and W = chi^2_m, and a bound on the omitted terms.

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


# Marginal likelihoods and predictive distributions of Gaussian features, in closed form.


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
    found = -0.5 * (spread + (n - 1) * np.log(square / total))
    return np.asarray(found, dtype=np.float64)


def gaussian_predictive(
    alphas: NDArray[np.float64], moments: GaussianMoments
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return e and log(S h) of Student's distributions of a new value, of shape (n_features, n_classes, n_alpha).

    Notes
    -----
    p(z | c, alpha) is proportional to (S h)^(-1/2) (1 + (z - e)^2 / (S h))^(-n / 2), n the observed training cases,
    e_c = (n_c mean_c + alpha m) / (n_c + alpha) and h_c = 1 + 1 / (n_c + alpha) + (alpha / (n_c + alpha))^2 / sum w.
    """
    sizes = moments.sizes.T[:, :, None]
    weight, middle, square = _pooled(alphas, moments)
    shrinkage = alphas / (sizes + alphas)
    location = (1.0 - shrinkage) * moments.means.T[:, :, None] + shrinkage * middle[:, None]
    factor = 1.0 + 1.0 / (sizes + alphas) + shrinkage**2 / weight[:, None]
    return location, np.log(square[:, None] * factor)


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


# Means and variances of real features in each class, in units in which nothing overflows or cancels.

# Values of a block of rows, which stays in the cache of the processor.
_BLOCK_ENTRIES_MOMENTS = 2**17
# An eta^2 up to this is the rounding error of a feature that does not depend on the response.
_NOTHING = 1e-12
# Further out all classes are equally unlikely, to all digits.
_FARTHEST = 1e100


@dataclass(frozen=True, eq=False)
class GaussianMoments:
    """Moments of some features, as z = (x - centre) / scale, which is from -1 to 1.

    Attributes
    ----------
    sizes : ndarray of shape (n_classes, n_features)
        n_cj, the cases of each class in which each feature was observed.
    means : ndarray of shape (n_classes, n_features)
        Mean of z in each class; 0 where the class has no observed case.
    within, between : ndarray of shape (n_features,)
        Sums of squares of z about the means of the classes, and of these means about the overall mean.
    centres, scales : ndarray of shape (n_features,)
        Middle and half of the range of x; a scale of 0 means that the feature is constant.
    """

    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    within: NDArray[np.float64]
    between: NDArray[np.float64]
    centres: NDArray[np.float64]
    scales: NDArray[np.float64]

    @classmethod
    def of(
        cls, X: NDArray[Any], response: NDArray[np.int64], n_classes: int, rows: NDArray[np.int64]
    ) -> GaussianMoments:
        """Take the moments of some rows of a checked table, in three passes over blocks of them.

        Parameters
        ----------
        X : ndarray of shape (n_cases, n_features)
            NaN where a value is missing.
        response : ndarray of shape (n_cases,)
            0, ..., n_classes - 1.
        rows : ndarray of int
        """
        low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
        for block, _ in _blocks(X, rows):
            low, high = np.fmin(low, np.fmin.reduce(block, axis=0)), np.fmax(high, np.fmax.reduce(block, axis=0))
        unseen = low > high
        low[unseen] = high[unseen] = 0.0
        centres, scales = 0.5 * low + 0.5 * high, np.where(is_constant(low, high), 0.0, 0.5 * high - 0.5 * low)
        sizes, sums = np.zeros((n_classes, X.shape[1]), dtype=np.int64), np.zeros((n_classes, X.shape[1]))

        def scaled() -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
            return ((standardised(block, centres, scales), members) for block, members in _blocks(X, rows))

        # A single block is scaled once; more of them may not fit into memory.
        kept = tuple(scaled()) if len(rows) * X.shape[1] <= _BLOCK_ENTRIES_MOMENTS else None
        for z, members in kept or scaled():
            missing, classes = np.isnan(z), np.eye(n_classes)[response[members]].T
            sums += classes @ _filled(z, missing)
            sizes += (classes @ ~missing).astype(np.int64)
        means = sums / np.maximum(sizes, 1)
        within = np.zeros(X.shape[1])
        for z, members in kept or scaled():
            rest = z - means[response[members]]
            rest = _filled(rest, np.isnan(rest))
            within += np.einsum("ij,ij->j", rest, rest)
        overall = (sizes * means).sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)
        between = (sizes * (means - overall) ** 2).sum(axis=0)
        return cls(sizes, means, within, between, centres, scales)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Whether each feature varies, and was observed in two classes or more and in more cases than those classes."""
        n_seen = (self.sizes > 0).sum(axis=0)
        found: NDArray[np.bool_] = (self.scales > 0.0) & (n_seen > 1) & (self.sizes.sum(axis=0) > n_seen)
        return found

    @property
    def squared_ratios(self) -> NDArray[np.float64]:
        """eta^2 of each feature, the share of its variance that lies between the classes; 0 if not informative."""
        total = self.within + self.between
        found = np.divide(self.between, total, out=np.zeros_like(total), where=self.informative & (total > 0.0))
        found[found <= _NOTHING] = 0.0
        return found

    def of_features(self, features: NDArray[np.int64]) -> GaussianMoments:
        """Return the moments of some features."""
        per_class = (self.sizes[:, features], self.means[:, features])
        rest = (values[features] for values in (self.within, self.between, self.centres, self.scales))
        return GaussianMoments(*per_class, *rest)


def standardised(X: NDArray[Any], centres: NDArray[np.float64], scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return z = (x - centre) / scale, and 0 for constant features; NaN stays."""
    with np.errstate(over="ignore"):
        z = (X.astype(np.float64, copy=False) - centres) / np.where(scales > 0.0, scales, np.inf)
    found: NDArray[np.float64] = np.clip(z, -_FARTHEST, _FARTHEST, out=z)
    return found


def _blocks(X: NDArray[Any], rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Yield some rows at a time, in floating point, with their numbers."""
    step = max(1, _BLOCK_ENTRIES_MOMENTS // X.shape[1])
    whole = np.array_equal(rows, np.arange(len(X)))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        yield X[part if whole else rows[part]].astype(np.float64, copy=False), rows[part]


def _filled(z: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the values with 0 in place of what is missing."""
    return np.where(missing, 0.0, z) if missing.any() else z
