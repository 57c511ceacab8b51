"""Compiled loops of `mixture_sampler`; the module imports numba, so it is imported only when a chain runs.

`values` holds the response in column 0, then the selected features; `ones` and `sizes` count in the two latent groups.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# From here on Stirling's series of log Gamma, with five terms, is exact to rounding.
_FAR = 10.0
# Ratios of probabilities that are multiplied before their logarithm is taken: their product stays within range.
_TOGETHER = 8


@compiled
def log_rising(a: float, count: int) -> float:
    """Return log of a (a + 1) ... (a + count - 1)."""
    near = 1.0
    while count > 0 and a < _FAR:
        near *= a
        a += 1.0
        count -= 1
    if count == 0:
        return math.log(near)
    end = a + count
    main = (end - 0.5) * math.log1p(count / a) + count * (math.log(a) - 1.0)
    return math.log(near) + main + _stirling_rest(end) - _stirling_rest(a)


@compiled
def _stirling_rest(a: float) -> float:
    """Return the terms of Stirling's series of log Gamma(a) that vanish as a grows."""
    inverse = 1.0 / a
    square = inverse * inverse
    rest = 1.0 / 1680.0 - square / 1188.0
    return inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * rest)))


@compiled
def log_numerator(theta: float, concentration: float, ones: Integers, sizes: Integers, column: int) -> float:
    """Return the log of prod_g U(alpha theta, alpha (1 - theta), I_g, O_g), without its denominators."""
    first, second = concentration * theta, concentration * (1.0 - theta)
    total = 0.0
    for g in range(2):
        total += log_rising(first, ones[g, column]) + log_rising(second, sizes[g] - ones[g, column])
    return total


@compiled
def log_columns(theta: Floats, concentration: float, ones: Integers, sizes: Integers, start: int, stop: int) -> float:
    """Return the sum of log prod_g U(alpha theta, alpha (1 - theta), I_g, O_g) over some columns."""
    total = 0.0
    for column in range(start, stop):
        total += log_numerator(theta[column], concentration, ones, sizes, column)
    return total - (stop - start) * (log_rising(concentration, sizes[0]) + log_rising(concentration, sizes[1]))


@compiled
def log_prior_odds(x: Integers, ones: Integers, sizes: Integers, if_one: Floats, if_zero: Floats) -> float:
    """Return log P(x | first group) - log P(x | second group), given the other cases."""
    total, ratio = 0.0, 1.0
    for column in range(x.size):
        concentration = if_one[column] + if_zero[column]
        if x[column]:
            ratio *= (if_one[column] + ones[0, column]) / (if_one[column] + ones[1, column])
        else:
            ratio *= (if_zero[column] + sizes[0] - ones[0, column]) / (if_zero[column] + sizes[1] - ones[1, column])
        ratio *= (concentration + sizes[1]) / (concentration + sizes[0])
        if column % _TOGETHER == _TOGETHER - 1:
            total += math.log(ratio)
            ratio = 1.0
    return total + math.log(ratio)


@compiled
def update_labels(
    case: int,
    values: Integers,
    z: Integers,
    ones: Integers,
    sizes: Integers,
    if_one: Floats,
    if_zero: Floats,
    prior: Floats,
    places: Integers,
    log_factors: Floats,
    thresholds: Floats,
) -> int:
    """Draw the label of each case given all others, from a case on, in place.

    Parameters
    ----------
    if_one, if_zero : ndarray of shape (k + 1,)
        alpha theta and alpha (1 - theta).
    prior : ndarray of shape (2,)
        f1 and f2.
    places : ndarray of int, shape (n0 + 1, n1 + 1)
        For the numbers of cases of the first group with y = 0 and y = 1, the place of log A in `log_factors`, -1 where
        it is not known yet; empty without correction.
    log_factors : ndarray of shape (n_known,)
        At the current alpha.
    thresholds : ndarray of shape (n_cases,)
        Uniform random numbers.

    Returns
    -------
    int
        The case for which a factor is needed that is not known; the number of cases if all have been updated.
    """
    n, width = values.shape
    while case < n:
        x, own = values[case], z[case]
        without = sizes[0] - (own == 0)
        score = math.log(prior[0] + without) - math.log(prior[1] + n - 1 - without)
        if places.size:
            first1 = ones[0, 0] - (own == 0) * x[0]
            first0 = without - first1
            joined, left = places[first0 + 1 - x[0], first1 + x[0]], places[first0, first1]
            if joined < 0 or left < 0:
                return case
            score += log_factors[joined] - log_factors[left]
        for column in range(width):
            ones[own, column] -= x[column]
        sizes[own] -= 1
        score += log_prior_odds(x, ones, sizes, if_one, if_zero)
        new = 0 if thresholds[case] * (1.0 + math.exp(min(max(-score, -700.0), 700.0))) < 1.0 else 1
        for column in range(width):
            ones[new, column] += x[column]
        sizes[new] += 1
        z[case] = new
        case += 1
    return case


@compiled
def update_theta(
    theta: Floats, concentrations: Floats, ones: Integers, sizes: Integers, steps: Floats, thresholds: Floats
) -> int:
    """Propose steps for each theta, in place, and return how many were accepted.

    Parameters
    ----------
    steps, thresholds : ndarray of shape (n_steps, k + 1)
        What is added to theta, and the random numbers that decide about it.
    """
    accepted = 0
    for column in range(theta.size):
        density = log_numerator(theta[column], concentrations[column], ones, sizes, column)
        for step in range(steps.shape[0]):
            proposal = theta[column] + steps[step, column]
            if not 0.0 < proposal < 1.0:
                continue
            proposed = log_numerator(proposal, concentrations[column], ones, sizes, column)
            if math.log1p(-thresholds[step, column]) < proposed - density:
                theta[column], density = proposal, proposed
                accepted += 1
    return accepted


@compiled
def draw_alpha(
    alphas: Floats, log_factors: Floats, theta: Floats, ones: Integers, sizes: Integers, start: int, threshold: float
) -> int:
    """Return the place of an alpha that is drawn given all else.

    Parameters
    ----------
    log_factors : ndarray of shape (n_alpha,)
    start : int
        0 for the response and alpha0, which is alone; 1 for the features and alpha.
    threshold : float
        Uniform random number.
    """
    stop = theta.size if start else 1
    weights = np.empty(alphas.size)
    for place in range(alphas.size):
        weights[place] = log_factors[place] + log_columns(theta, alphas[place], ones, sizes, start, stop)
    weights = np.exp(weights - weights.max())
    left = threshold * weights.sum()
    for place in range(alphas.size - 1):
        left -= weights[place]
        if left < 0.0:
            return place
    return alphas.size - 1
