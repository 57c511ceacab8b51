"""Binary features: their counts, in blocks of cases, and the marginal likelihoods that follow from them."""

from __future__ import annotations

import functools
import itertools
import math
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
    """

    ones: NDArray[np.int64]
    sizes: NDArray[np.int64]

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
        return cls(ones, numbers[:, None] - missing)

    def __add__(self, other: ClassCounts) -> ClassCounts:
        """Return the counts of the cases of both."""
        n_classes = max(len(self.ones), len(other.ones))
        counts = np.zeros((2, n_classes, self.ones.shape[1]), dtype=np.int64)
        for one in (self, other):
            counts[:, : len(one.ones)] += one.ones, one.sizes
        return ClassCounts(counts[0], counts[1])


# Probabilities of the number of ones of a feature in a class, for all alphas and thetas at once.

# With more cases, tables of all counts take longer than the compiled loops that do without them.
MOST_TABLED = 1000
# Entries of tables that are kept: leave-one-out needs those of a few class sizes again and again.
_KEPT = 2**20


@dataclass(frozen=True, eq=False)
class HalfGrid:
    """The nodes of theta up to 1/2 for all alphas, one alpha after another.

    The nodes 1 - theta have the same weights; 1/2 itself is a node of either half, with half of its weight.

    Attributes
    ----------
    alpha, theta, weights : ndarray of shape (n_nodes,)
        The weights of each alpha sum to 1/2.
    starts : ndarray of shape (n_alpha,)
        First node of each alpha.
    """

    alpha: NDArray[np.float64]
    theta: NDArray[np.float64]
    weights: NDArray[np.float64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, prior: Prior, n_cases: int) -> HalfGrid:
        """Take the grids of `Prior.theta_nodes`."""
        halves = []
        for alpha in prior.alphas().tolist():
            theta, weights = prior.theta_nodes(n_cases, alpha)
            half = (len(theta) + 1) // 2
            weights = weights[:half].copy()
            weights[-1] *= 0.5 if len(theta) % 2 else 1.0
            halves.append((np.full(half, alpha), theta[:half], weights))
        starts = np.cumsum([0, *(len(theta) for _, theta, _ in halves[:-1])])
        alphas, thetas, all_weights = (np.concatenate(one) for one in zip(*halves, strict=True))
        return cls(alphas, thetas, all_weights, starts)

    def integrals(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sums over the nodes of each alpha, in the last axis."""
        return np.add.reduceat(values * self.weights, self.starts, axis=-1)

    @functools.cached_property
    def parts(self) -> list[slice]:
        """The nodes of each alpha."""
        return [slice(*ends) for ends in itertools.pairwise([*self.starts.tolist(), len(self.theta)])]


def count_tables(prior: Prior, sizes: tuple[int, ...], n_cases: int) -> tuple[HalfGrid, list[NDArray[np.float64]]]:
    """Return the half grid and, for each class, P(I_y | alpha, theta) of all counts, of shape (n_y + 1, n_nodes).

    Parameters
    ----------
    sizes : tuple of int
        Cases of each class.
    n_cases : int
        Determines, with alpha, the grid over theta; at least all cases.
    """
    grid = half_grid(prior, n_cases)
    make = _kept_table if (max(sizes) + 1) * len(grid.theta) <= _KEPT else _count_table
    tables = {n_y: make(grid, n_y) for n_y in set(sizes)}
    return grid, [tables[n_y] for n_y in sizes]


def _count_table(grid: HalfGrid, n_y: int) -> NDArray[np.float64]:
    """Return P(I | alpha, theta), I = 0, ..., n_y.

    From near the mean outwards by P(I + 1) / P(I) = (n - I) (a + I) / ((I + 1) (b + n - I - 1)), a = alpha theta and
    b = alpha (1 - theta), and then normalised: nothing underflows that matters.
    """
    a, b = grid.alpha * grid.theta, grid.alpha * (1.0 - grid.theta)
    first = (n_y * grid.theta).astype(np.int64)
    beginning = [np.flatnonzero(first == i) for i in range(n_y + 1)]
    table = np.zeros((n_y + 1, len(a)))
    p, growth = np.zeros((2, len(a)))
    for i, start in enumerate(beginning):
        if i:
            np.add(a, i - 1.0, out=growth)
            growth /= b + (n_y - i)
            p *= growth
            p *= (n_y - i + 1.0) / i
        p[start] = 1.0
        table[i] = p
    p.fill(0.0)
    for i in range(n_y, 0, -1):
        p[beginning[i]] = 1.0
        np.add(b, float(n_y - i), out=growth)
        growth /= np.maximum(a + (i - 1.0), 1e-200)  # 0 / 0 is reached by no walk
        p *= growth
        p *= i / (n_y - i + 1.0)
        table[i - 1] += p
    table /= table.sum(axis=0)
    table.flags.writeable = False
    return table


half_grid = functools.lru_cache(maxsize=8)(HalfGrid.of)
_kept_table = functools.lru_cache(maxsize=16)(_count_table)


# Marginal likelihood of a feature and posterior mean of its theta, for each alpha and each distinct (I_0, I_1, ...).

# Below this a product may have lost digits to underflow, and the sum is computed again from logs.
_TINY = 1e-250
# A cell of a matrix product costs about this much less than one of a sum over picked cells.
_PRODUCT_ADVANTAGE = 32
_PART_MARGINALS = 2**19


@dataclass(frozen=True, eq=False)
class Marginals:
    """Marginal likelihoods and posterior means of features.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_alpha, n_features)
        log M, M = integral over theta of prod_y U(alpha theta, alpha (1 - theta), I_y, O_y).
    theta_mean, theta_rest : ndarray of shape (n_alpha, n_features)
        Posterior means of theta and of 1 - theta.
    """

    log_likelihood: NDArray[np.float64]
    theta_mean: NDArray[np.float64]
    theta_rest: NDArray[np.float64]


def marginals(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Compute the marginals of features with distinct counts.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
        I_y and n_y.

    References
    ----------
    Li, Zhang and Neal (2008), "Predictions for test cases (II)".
    """
    if prior.rule == "simpson":
        return by_the_slides_rule(prior, ones, sizes)
    n = int(sizes[:, 0].sum())
    n_distinct = sum(len(np.unique(i)) for i in ones)
    if (sizes == sizes[:, :1]).all() and (n <= MOST_TABLED or (n <= 3 * MOST_TABLED and 5 * n_distinct > n)):
        return tabled_marginals(prior, ones, tuple(sizes[:, 0].tolist()))
    return grid_marginals(prior, ones, sizes)


def tabled_marginals(prior: Prior, ones: NDArray[np.int64], sizes: tuple[int, ...]) -> Marginals:
    """Compute the marginals from tables of all counts that classes of these sizes can have."""
    grid, tables = count_tables(prior, sizes, sum(sizes))
    found = [np.unique(i, return_inverse=True) for i in ones]
    # The other half of the grid has the probabilities of the mirrored counts.
    halves = [[table[values] for table, (values, _) in zip(tables, found, strict=True)]]
    halves += [[table[n_y - values] for table, n_y, (values, _) in zip(tables, sizes, found, strict=True)]]
    places = [place for _, place in found]
    sums = np.zeros((3, prior.n_alpha, ones.shape[1]))
    kinds = (np.ones_like(grid.theta), grid.theta, 1.0 - grid.theta)
    if len(sizes) == 2 and math.prod(len(values) for values, _ in found) <= _PRODUCT_ADVANTAGE * ones.shape[1]:
        for place, nodes in enumerate(grid.parts):
            for (left, right), order in zip(halves, ((0, 1, 2), (0, 2, 1)), strict=True):
                for total, kind in zip(sums[:, place], order, strict=True):
                    weights = grid.weights[nodes] * kinds[kind][nodes]
                    total += ((left[:, nodes] * weights) @ right[:, nodes].T)[tuple(places)]
    else:
        step = max(1, _PART_MARGINALS // len(grid.theta))
        for start in range(0, ones.shape[1], step):
            part = slice(start, start + step)
            for half, order in zip(halves, ((0, 1, 2), (0, 2, 1)), strict=True):
                product = math.prod((table[place[part]] for table, place in zip(half, places, strict=True)), start=1.0)
                for total, kind in zip(sums, order, strict=True):
                    total[:, part] += grid.integrals(product * kinds[kind]).T
    mass, theta_sum, rest_sum = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        result = Marginals(np.log(mass), theta_sum / mass, rest_sum / mass)
    numbers = np.array(sizes)[:, None]
    result.log_likelihood[...] -= (gammaln(numbers + 1) - gammaln(ones + 1) - gammaln(numbers - ones + 1)).sum(axis=0)
    if len(lost := np.flatnonzero((mass < _TINY).any(axis=0))):
        again = grid_marginals(prior, ones[:, lost], np.repeat(numbers, len(lost), axis=1))
        for name in ("log_likelihood", "theta_mean", "theta_rest"):
            getattr(result, name)[:, lost] = getattr(again, name)
    return result


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
        Share of ones among all cases, m_j.
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


def grid_marginals(prior: Prior, ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Marginals:
    """Compute the marginals from the log-probability of each count that occurs, for any number of cases."""
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
