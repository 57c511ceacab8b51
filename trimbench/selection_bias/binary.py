"""Binary features: their counts, in blocks of cases, and the marginal likelihoods that follow from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp

from trimbench.selection_bias.features import Binariser, has_missing
from trimbench.selection_bias.prior import Prior, simpson_weights

# A sum of at most this many zeros and ones fits into a byte.
_ROWS = 255


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of all features.

    Attributes
    ----------
    ones : ndarray of shape (n_classes, n_features)
        I_yj.
    sizes : ndarray of shape (n_classes, n_features)
        n_yj, the cases of each class in which each feature was observed.
    complete : bool
        Whether no value is missing.
    """

    ones: NDArray[np.int64]
    sizes: NDArray[np.int64]
    complete: bool

    @classmethod
    def of(
        cls, X: NDArray[Any], response: NDArray[np.int64], n_classes: int, binariser: Binariser, rows: NDArray[np.int64]
    ) -> ClassCounts:
        """Count some rows of a checked table.

        Parameters
        ----------
        X : ndarray of shape (n_cases, n_features)
            NaN where a value is missing.
        response : ndarray of shape (n_cases,)
            0, ..., n_classes - 1.
        rows : ndarray of int
        """
        complete = not has_missing(X)
        ones, missing = np.zeros((2, n_classes, X.shape[1]), dtype=np.int64)
        for y in range(n_classes):
            members = rows[response[rows] == y]
            for start in range(0, len(members), _ROWS):
                block = X[members[start : start + _ROWS]]
                ones[y] += binariser.cut(block).sum(axis=0, dtype=np.uint8)
                if not complete:
                    missing[y] += np.isnan(block).sum(axis=0, dtype=np.uint8)
        numbers = np.bincount(response[rows], minlength=n_classes)
        return cls(ones, numbers[:, None] - missing, complete)

    def of_features(self, features: NDArray[np.int64]) -> ClassCounts:
        """Return the counts of some features."""
        return ClassCounts(self.ones[:, features], self.sizes[:, features], self.complete)


# Probabilities of the number of ones of a feature in a class, for all alphas and thetas at once.

# Bytes of one table: beyond this the alphas are processed in several parts.
_PART = 4 * 2**20


@dataclass(frozen=True, eq=False)
class CountTables:
    """P(I_y | alpha, theta) for both classes and some of the alphas.

    Attributes
    ----------
    alphas : slice
        Which of the prior's alphas.
    theta, weights : ndarray of shape (n_nodes,)
        Grid over theta, symmetric about 1/2, and its weights, which sum to 1.
    log_class0, log_class1 : ndarray of shape (n_alphas, n_nodes, n_y + 1)
        log P(I_y | alpha, theta), I_y in the last axis.
    class0, class1 : ndarray of the same shapes
        P(I_y | alpha, theta).
    """

    alphas: slice
    theta: NDArray[np.float64]
    weights: NDArray[np.float64]
    log_class0: NDArray[np.float64]
    log_class1: NDArray[np.float64]
    class0: NDArray[np.float64]
    class1: NDArray[np.float64]


def count_tables(prior: Prior, n0: int, n1: int, n_cases: int) -> Iterator[CountTables]:
    """Yield the tables of two classes, for a part of the alphas at a time.

    Parameters
    ----------
    n0, n1 : int
        Cases in each class.
    n_cases : int
        Determines, with alpha, the grid over theta; at least n0 + n1.
    """
    grids = [prior.theta_nodes(n_cases, alpha) for alpha in prior.alphas()]
    n_nodes = np.array([len(theta) for theta, _ in grids])
    row_bytes = 8 * (max(n0, n1) + 1)
    # Small tables are kept: leave-one-out needs those of two pairs of class sizes again and again.
    make = _kept_class_table if row_bytes * n_nodes.sum() <= _PART else _class_table
    start = 0
    while start < prior.n_alpha:
        # The number of nodes rises with alpha; a part has one grid.
        same_grid = int(np.searchsorted(n_nodes, n_nodes[start], side="right"))
        step = max(1, _PART // int(row_bytes * n_nodes[start]))
        part = slice(start, min(start + step, same_grid))
        start = part.stop
        theta, weights = grids[part.start]
        log_class0, class0 = make(prior, n0, n_cases, part.start, part.stop)
        log_class1, class1 = (log_class0, class0) if n0 == n1 else make(prior, n1, n_cases, part.start, part.stop)
        yield CountTables(part, theta, weights, log_class0, log_class1, class0, class1)


def _class_table(
    prior: Prior, n_y: int, n_cases: int, start: int, stop: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log P(I | alpha, theta), I = 0, ..., n_y, and its exponential.

    P(I | alpha, theta) = C(n_y, I) prod_{i<I} (alpha theta + i) prod_{i<n_y-I} (alpha (1 - theta) + i)
    / prod_{i<n_y} (alpha + i).
    """
    alphas = prior.alphas()[start:stop, None, None]
    theta, _ = prior.theta_nodes(n_cases, float(alphas[0, 0, 0]))
    n_nodes, half = len(theta), (len(theta) + 1) // 2
    steps = np.arange(n_y)
    scale = alphas + n_y  # so that sums of logs stay small and keep their digits
    rising = np.zeros((stop - start, n_nodes, n_y + 1))
    terms = (alphas * theta[:, None] + steps) / scale
    with np.errstate(divide="ignore"):  # theta = 0 is on the grid of Simpson's rule
        np.log(terms, out=terms)
    np.cumsum(terms, axis=2, out=rising[:, :, 1:])
    choices = np.arange(n_y + 1)
    constant = gammaln(n_y + 1) - gammaln(choices + 1) - gammaln(n_y - choices + 1)
    constant = constant - np.log((alphas + steps) / scale).sum(axis=2, keepdims=True)
    # The grid is symmetric: 1 - theta is the same grid from its end, and zeros are ones there.
    log_table, table = np.empty_like(rising), np.empty_like(rising)
    first, second = slice(0, half), slice(half, n_nodes)
    np.add(rising[:, first], rising[:, : n_nodes - half - 1 : -1, ::-1], out=log_table[:, first])
    log_table[:, first] += constant
    np.exp(log_table[:, first], out=table[:, first])
    for whole in (log_table, table):
        whole[:, second] = whole[:, n_nodes - half - 1 :: -1, ::-1]
        whole.flags.writeable = False
    return log_table, table


_kept_class_table = functools.lru_cache(maxsize=24)(_class_table)


# Marginal likelihood of a feature and posterior mean of its theta, for each alpha and each distinct (I_0, I_1).

# Below this a sum of products may have lost terms to underflow and is computed again from logs.
_TINY = 1e-250
# A cell of a matrix product costs about this much less than one of a sum over picked cells.
_PRODUCT_ADVANTAGE = 32
_PART_MARGINALS = 2**19


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
    step = max(1, _PART_MARGINALS // (len(tables.theta) * len(tables.class0)))
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


# Marginal likelihoods of features from their own counts, for any number of classes and cases.


def class_marginals(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Compute the marginals of features with given counts.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
        I_y and n_y.

    Notes
    -----
    As `marginals`, which sums tables of all counts that two classes can have: here only those that occur are computed,
    each from its own logarithm.
    """
    if prior.rule == "simpson":
        return by_the_slides_rule(prior, ones, sizes)
    return grid_marginals(prior, ones, sizes)


def grid_marginals(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Compute the marginals on the grid over theta that the adjustment factor uses."""
    from trimbench.selection_bias import kernels

    distinct = [np.unique(np.stack([i, n]), axis=1, return_inverse=True) for i, n in zip(ones, sizes, strict=True)]
    n_cases = int(sizes.sum(axis=0).max())
    result = Marginals(*np.empty((3, prior.n_alpha, ones.shape[1])))
    for place, alpha in enumerate(prior.alphas().tolist()):
        theta, weights = prior.theta_nodes(n_cases, alpha)
        inside = (theta > 0.0) & (theta < 1.0)  # at the ends only constant features have a probability
        theta, weights = theta[inside], weights[inside]
        terms = np.tile(np.log(weights), (ones.shape[1], 1))
        for (values, n_values), places in distinct:
            terms += kernels.log_probabilities(values, n_values, alpha, theta)[places.ravel()]
        largest = terms.max(axis=1)
        shares = np.exp(terms - largest[:, None])
        mass = shares.sum(axis=1)
        result.log_likelihood[place] = largest + np.log(mass)
        result.theta_mean[place] = shares @ theta / mass
        result.theta_rest[place] = shares @ theta[::-1] / mass
    return result
