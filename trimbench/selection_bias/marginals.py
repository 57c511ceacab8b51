"""Marginal likelihood of a feature and posterior mean of its theta, for each alpha and each distinct (I_0, I_1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp

from trimbench.selection_bias.count_tables import CountTables, count_tables
from trimbench.selection_bias.prior import Prior, simpson_weights

# Below this a sum of products may have lost terms to underflow and is computed again from logs.
_TINY = 1e-250
# A cell of a matrix product costs about this much less than one of a sum over picked cells.
_PRODUCT_ADVANTAGE = 32
_PART = 2**19


@dataclass(frozen=True, eq=False)
class Marginals:
    """What the predictions need to know about features with some (I_0, I_1).

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_alpha, n_pairs)
        log M, M = integral over theta of prod_y U(alpha theta, alpha (1 - theta), I_y, O_y).
    theta_mean, theta_rest : ndarray of shape (n_alpha, n_pairs)
        Posterior means of theta and of 1 - theta.
    """

    log_likelihood: NDArray[np.float64]
    theta_mean: NDArray[np.float64]
    theta_rest: NDArray[np.float64]


def marginals(
    prior: Prior,
    pairs: NDArray[np.int64],
    n0: int,
    n1: int,
    observe: Callable[[CountTables], None] | None = None,
) -> Marginals:
    """Compute the marginals of distinct pairs.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        I_0 and I_1.
    observe : callable, optional
        Called with the tables of each part of the alphas, for other sums over them.

    References
    ----------
    Li, Zhang and Neal (2008), "Predictions for test cases (II)".
    """
    if prior.rule == "simpson":
        if observe:
            for tables in count_tables(prior, n0, n1, n0 + n1):
                observe(tables)
        return by_the_slides_rule(prior, pairs.T, np.repeat([[n0], [n1]], len(pairs), axis=1))
    sums = np.empty((3, prior.n_alpha, len(pairs)))
    for tables in count_tables(prior, n0, n1, n0 + n1):
        sums[:, tables.alphas] = _integrals(tables, pairs)
        if observe:
            observe(tables)
    mass, theta_sum, rest_sum = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        result = Marginals(np.log(mass), theta_sum / mass, rest_sum / mass)
    lost = np.flatnonzero((mass < _TINY).any(axis=0))
    if len(lost):
        for tables in count_tables(prior, n0, n1, n0 + n1):
            _mend(result, tables, pairs, lost)
    for y, n_y in enumerate((n0, n1)):
        result.log_likelihood[...] -= gammaln(n_y + 1) - gammaln(pairs[:, y] + 1) - gammaln(n_y - pairs[:, y] + 1)
    return result


def _integrals(tables: CountTables, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the integrals of P(I_0) P(I_1) times 1, theta and 1 - theta, of shape (3, n_alphas, n_pairs)."""
    kinds = (tables.weights, tables.weights * tables.theta, tables.weights * tables.theta[::-1])
    values0, places0 = np.unique(pairs[:, 0], return_inverse=True)
    values1, places1 = np.unique(pairs[:, 1], return_inverse=True)
    if len(values0) * len(values1) <= _PRODUCT_ADVANTAGE * len(pairs):
        left, right = tables.class0[:, :, values0], tables.class1[:, :, values1]
        whole = [(left * kind[:, None]).transpose(0, 2, 1) @ right for kind in kinds]
        return np.stack([table[:, places0, places1] for table in whole])
    result = np.empty((3, len(tables.class0), len(pairs)))
    step = max(1, _PART // (len(tables.theta) * len(tables.class0)))
    for start in range(0, len(pairs), step):
        part = slice(start, start + step)
        product = tables.class0[:, :, pairs[part, 0]] * tables.class1[:, :, pairs[part, 1]]
        result[:, :, part] = np.einsum("akp,tk->tap", product, np.stack(kinds), optimize=True)
    return result


def _mend(result: Marginals, tables: CountTables, pairs: NDArray[np.int64], lost: NDArray[np.int64]) -> None:
    """Compute the marginals of some pairs again from logs, for the alphas of one part."""
    log_weights, rest = np.log(tables.weights), tables.theta[::-1]
    for pair in lost:
        i0, i1 = pairs[pair]
        terms = tables.log_class0[:, :, i0] + tables.log_class1[:, :, i1] + log_weights
        log_mass = logsumexp(terms, axis=1, keepdims=True)
        posterior = np.exp(terms - log_mass)
        result.log_likelihood[tables.alphas, pair] = log_mass[:, 0]
        result.theta_mean[tables.alphas, pair] = posterior @ tables.theta
        result.theta_rest[tables.alphas, pair] = posterior @ rest


def by_the_slides_rule(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Integrate each feature by Simpson's rule on a grid that is dense near its share of ones.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
        I_y and n_y.
    """
    result = Marginals(*np.empty((3, prior.n_alpha, ones.shape[1])))
    alphas = prior.alphas()[:, None]
    for column, (total, n) in enumerate(zip(ones.sum(axis=0), sizes.sum(axis=0), strict=True)):
        theta, weights = slides_grid(total / n if n else 0.5, prior.theta0, prior.n_theta)
        inside = np.clip(theta, 1e-300, 1.0 - 1e-16)
        first, second = alphas * inside, alphas * (1.0 - inside)
        terms = sum(
            betaln(first + i, second + n_y - i) - betaln(first, second)
            for i, n_y in zip(ones[:, column], sizes[:, column], strict=True)
        )
        # At the ends of the whole range the integrand is 1 for a constant feature, else 0.
        terms[:, theta <= 0.0] = 0.0 if total == 0 else -np.inf
        terms[:, theta >= 1.0] = 0.0 if total == n else -np.inf
        with np.errstate(divide="ignore"):
            terms = terms + np.log(weights)
        log_mass = logsumexp(terms, axis=1, keepdims=True)
        posterior = np.exp(terms - log_mass)
        result.log_likelihood[:, column] = log_mass[:, 0]
        result.theta_mean[:, column] = posterior @ theta
        result.theta_rest[:, column] = posterior @ (1.0 - theta)
    return result


def slides_grid(share: float, theta0: float, n_theta: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the grid over theta for one feature, and weights that sum to about 1.

    Parameters
    ----------
    share : float
        Ones of the feature among all cases, m_j.
    n_theta : int
        N; the grid has 2 N + 1 points.

    Returns
    -------
    theta, weights : ndarray of shape (2 N + 1,)
        Images of evenly spaced u under T(u) = ((u - c)^3 + c^3) / D, c = 1 / (1 + (1 / m - 1)^(1/3)),
        D = (1 - c)^3 + c^3; Simpson's weights times T'(u), divided by the width of theta's range.
    """
    centre = 1.0 / (1.0 + (1.0 / share - 1.0) ** (1.0 / 3.0)) if 0.0 < share < 1.0 else float(share)
    scale = (1.0 - centre) ** 3 + centre**3
    ends = [float(np.cbrt(end * scale - centre**3)) + centre for end in (theta0, 1.0 - theta0)]
    u = np.linspace(ends[0], ends[1], 2 * n_theta + 1)
    theta = np.clip(((u - centre) ** 3 + centre**3) / scale, theta0, 1.0 - theta0)
    theta[[0, -1]] = theta0, 1.0 - theta0
    weights = simpson_weights(2 * n_theta + 1) * (ends[1] - ends[0]) * 3.0 * (u - centre) ** 2 / scale
    return theta, weights / (1.0 - 2.0 * theta0)
