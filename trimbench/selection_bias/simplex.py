"""Integration over the probabilities of several categories, and counts of several categories."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, roots_jacobi

MAX_CATEGORIES = 5
# Nodes in each direction: a product of them has to fit into memory.
_MOST_NODES = {2: 400, 3: 120, 4: 40, 5: 18}
_FAR = 1e3


@functools.lru_cache(maxsize=8)
def simplex_nodes(n_categories: int, n_cases: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a grid over theta ~ Dirichlet(1, ..., 1) and its weights.

    Parameters
    ----------
    n_categories : int
        V, from 2 to 5.
    n_cases : int
        The integrands are polynomials of degree n_cases + 1 at most, for which n_cases / 2 + 1 nodes in each direction
        are exact; 4.5 sqrt(n_cases) resolve them. At most 120 (V = 3), 40 (V = 4) or 18 (V = 5) are taken.

    Returns
    -------
    theta : ndarray of shape (n_nodes, V)
        Rows sum to 1.
    weights : ndarray of shape (n_nodes,)
        They sum to 1.

    Notes
    -----
    theta_1 = t_1, theta_2 = (1 - t_1) t_2, ... with independent t_i ~ Beta(1, V - i): a product of Gauss and Jacobi
    rules.
    """
    n_nodes = min(n_cases // 2 + 2, max(20, math.ceil(4.5 * math.sqrt(n_cases))), _MOST_NODES[n_categories])
    rules = []
    for left in range(n_categories - 1, 0, -1):
        roots, weights = roots_jacobi(n_nodes, left - 1, 0.0)
        rules.append((0.5 * (1.0 + roots), weights / weights.sum()))
    grids = np.meshgrid(*(t for t, _ in rules), indexing="ij")
    theta = np.empty((grids[0].size, n_categories))
    rest = np.ones(grids[0].size)
    for place, t in enumerate(grids):
        theta[:, place] = rest * t.ravel()
        rest = rest * (1.0 - t.ravel())
    theta[:, -1] = rest
    weights = functools.reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    theta.flags.writeable = weights.flags.writeable = False
    return theta, weights


def compositions(n: int, n_categories: int) -> NDArray[np.int64]:
    """Return all ways to distribute n cases over the categories, of shape (n_ways, n_categories)."""
    bars = np.array(list(itertools.combinations(range(n + n_categories - 1), n_categories - 1)), dtype=np.int64)
    bars = bars.reshape(-1, n_categories - 1)
    ends = np.full((len(bars), 1), n + n_categories - 1)
    return np.diff(np.hstack([np.full((len(bars), 1), -1), bars, ends]), axis=1) - 1


def log_rising(a: NDArray[np.float64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log of a (a + 1) ... (a + c - 1) = log Gamma(a + c) - log Gamma(a), without loss of digits for large a.

    Parameters
    ----------
    count : ndarray of int
        c >= 0; broadcasts with `a`.
    """
    # Stirling's series of both, where the two logs of Gamma would be large and nearly equal.
    large = np.maximum(a, _FAR)
    end = large + count
    far = (end - 0.5) * np.log1p(count / large) + count * (np.log(large) - 1.0)
    far += (1.0 / end - 1.0 / large) / 12.0 - (1.0 / end**3 - 1.0 / large**3) / 360.0
    small = np.minimum(a, _FAR)
    return np.where(a > _FAR, far, gammaln(small + count) - gammaln(small))


def log_count_probabilities(
    alpha: float, theta: NDArray[np.float64], counts: NDArray[np.int64], n: int
) -> NDArray[np.float64]:
    """Return log P(c | alpha, theta) of counts in one class, Dirichlet-multinomial with parameter alpha theta.

    Parameters
    ----------
    theta : ndarray of shape (n_nodes, n_categories)
    counts : ndarray of shape (n_ways, n_categories)
        Rows sum to n.

    Returns
    -------
    ndarray of shape (n_nodes, n_ways)
    """
    result = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1) - log_rising(np.array(alpha), np.array(n))
    possible = np.arange(n + 1)
    for category in range(theta.shape[1]):
        rising = log_rising(alpha * theta[:, category, None], possible)
        result = result + rising[:, counts[:, category]]
    return np.asarray(result, dtype=np.float64)
