"""Probabilities of the number of ones of a feature in a class, for all alphas and thetas at once.

Everything that the method integrates over theta is a sum of products of these: the adjustment factor over a region of
(I_0, I_1), the marginal likelihood of a feature at its own (I_0, I_1).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from trimbench.selection_bias.prior import Prior

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
