"""Compiled loops of `mixture_factor`; the module imports numba, so it is imported only when a factor is computed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled, compiled_sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A probability below this counts as 0: smaller ones are slow to compute with, and add nothing to any sum.
_NOTHING = 1e-280


@compiled
def count_probabilities(size: int, alpha: float, theta: Floats) -> Floats:
    """Return P(s | alpha, theta) of s = 0, ..., size ones among cases of one group, of shape (n_nodes, size + 1).

    By the recurrence of the beta-binomial distribution in both directions from its mean, and then normalised, which
    needs no logarithm and cannot overflow. `theta` is symmetric about 1/2.
    """
    n_nodes = theta.size
    table = np.zeros((n_nodes, size + 1))
    for node in range(n_nodes):
        first, second = alpha * theta[node], alpha * theta[n_nodes - 1 - node]
        row = table[node]
        mean = int(size * theta[node])
        row[mean] = total = 1.0
        for s in range(mean, size):
            row[s + 1] = row[s] * ((size - s) * (first + s)) / ((s + 1) * (second + size - s - 1))
            if row[s + 1] < _NOTHING:
                row[s + 1] = 0.0
                break
            total += row[s + 1]
        for s in range(mean, 0, -1):
            row[s - 1] = row[s] * (s * (second + size - s)) / ((size - s + 1) * (first + s - 1))
            if row[s - 1] < _NOTHING:
                row[s - 1] = 0.0
                break
            total += row[s - 1]
        row /= total
    return table


@compiled_sums
def joint_of_sums(alpha: float, theta: Floats, weights: Floats, size1: int, size2: int, joint: Floats) -> None:
    """Write P(s_1, s_2 | alpha), theta integrated out, for s_1 up to size1 / 2.

    x -> 1 - x maps (s_1, s_2) to (size1 - s_1, size2 - s_2), which is as probable and as strongly correlated: each pair
    stands for both.

    Parameters
    ----------
    joint : ndarray of shape (size1 // 2 + 1, size2 + 1)
        Is written.
    """
    first, second = count_probabilities(size1, alpha, theta), count_probabilities(size2, alpha, theta)
    joint[:] = 0.0
    for node in range(theta.size):
        for s1 in range(joint.shape[0]):
            weight = weights[node] * first[node, s1] * (1.0 if 2 * s1 == size1 else 2.0)
            if weight > _NOTHING:
                for s2 in range(size2 + 1):
                    joint[s1, s2] += weight * second[node, s2]


@compiled
def hypergeometric(size0: int, size1: int, n_rows: int, log_factorial: Floats) -> Floats:
    """Return P(H = h | s): of s ones among size0 + size1 cases, h fall on the size1; of shape (n_rows, size1 + 1)."""
    table = np.zeros((n_rows, size1 + 1))
    for s in range(n_rows):
        log_all = log_factorial[size0 + size1] - log_factorial[s] - log_factorial[size0 + size1 - s]
        for h in range(max(0, s - size0), min(s, size1) + 1):
            log_ways1 = log_factorial[size1] - log_factorial[h] - log_factorial[size1 - h]
            log_ways0 = log_factorial[size0] - log_factorial[s - h] - log_factorial[size0 - s + h]
            table[s, h] = math.exp(log_ways0 + log_ways1 - log_all)
    return table


@compiled
def strong_and_equal(
    first0: int, first1: int, n0: int, n1: int, upper: Integers, upper_equal: Integers, log_factorial: Floats
) -> Floats:
    """Return P(stronger than the cut-off | s_1, s_2) and P(equal to it | s_1, s_2).

    I_1 = H_1 + H_2 with hypergeometric H_g; for a given s_1 + s_2 the strong values of I_1 are those at both ends.

    Parameters
    ----------
    first0, first1 : int
        Cases of the first group with y = 0 and y = 1.
    upper, upper_equal : ndarray of int, shape (n0 + n1 + 1,)
        For each s_1 + s_2 the smallest I_1 with a correlation above the cut-off, and at least as large as it.

    Returns
    -------
    ndarray of shape (2, (first0 + first1) // 2 + 1, n0 + n1 - first0 - first1 + 1)
    """
    n, most = n0 + n1, n1 - first1
    n_rows, n_columns = (first0 + first1) // 2 + 1, n - first0 - first1 + 1
    ones1 = hypergeometric(first0, first1, n_rows, log_factorial)
    exactly = hypergeometric(n0 - first0, most, n_columns, log_factorial)
    # below[s_2, t] = P(H_2 < t | s_2) and above[s_2, t] = P(H_2 >= t | s_2)
    below, above = np.zeros((n_columns, most + 2)), np.zeros((n_columns, most + 2))
    for s2 in range(n_columns):
        for h2 in range(most + 1):
            below[s2, h2 + 1] = below[s2, h2] + exactly[s2, h2]
            above[s2, most - h2] = above[s2, most - h2 + 1] + exactly[s2, most - h2]
    shares = np.zeros((2, n_rows, n_columns))
    for s1 in range(n_rows):
        low, high = max(0, s1 - first0), min(s1, first1)
        for s2 in range(n_columns):
            total = s1 + s2
            # The lower end mirrors the upper one under x -> 1 - x.
            top, bottom = upper[total], n1 - upper[n - total]
            top_equal, bottom_equal = upper_equal[total], n1 - upper_equal[n - total]
            strong, equal = 0.0, 0.0
            for h1 in range(low, high + 1):
                at_top, at_bottom = max(top - h1, 0), bottom - h1 + 1
                chance = 0.0
                if at_top <= most:
                    chance += above[s2, at_top]
                if at_bottom > 0:
                    chance += below[s2, min(at_bottom, most + 1)]
                strong += ones1[s1, h1] * chance
                if top_equal < top and 0 <= top_equal - h1 <= most:
                    equal += ones1[s1, h1] * exactly[s2, top_equal - h1]
                if bottom_equal > bottom and 0 <= bottom_equal - h1 <= most:
                    equal += ones1[s1, h1] * exactly[s2, bottom_equal - h1]
            shares[0, s1, s2], shares[1, s1, s2] = strong, equal
    return shares


@compiled_sums
def totals(joint: Floats, shares: Floats) -> Floats:
    """Return the sum over (s_1, s_2) of the joint probability times each share, of shape (2, n_alpha)."""
    n_alpha = joint.shape[0]
    result = np.zeros((2, n_alpha))
    for alpha in range(n_alpha):
        strong, equal = 0.0, 0.0
        for s1 in range(joint.shape[1]):
            for s2 in range(joint.shape[2]):
                strong += joint[alpha, s1, s2] * shares[0, s1, s2]
                equal += joint[alpha, s1, s2] * shares[1, s1, s2]
        result[0, alpha], result[1, alpha] = strong, equal
    return result
