"""Confidence intervals from independent samples, valid for every sample size."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri


def binomial_interval(successes: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability: it holds it with at least the given confidence."""
    tail = 0.5 * (1.0 - confidence)
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1.0 - tail)) if successes < n else 1.0
    return low, high


def rows_for_width(share: float, width: float, confidence: float) -> int:
    """Return for how many rows the interval of a probability near `share` is at most about so wide."""
    spread = float(ndtri(0.5 + 0.5 * confidence))
    # The interval is widest at one half; a share next to 1 is not known exactly.
    variance = max(share * (1.0 - share), 0.002)
    return math.ceil(1.05 * 4.0 * variance * (spread / width) ** 2 + 8.0 * spread / width)


def mean_upper_bound(values: NDArray[np.float64], width: float, confidence: float) -> float:
    """Return an upper bound on the mean of which `values` are independent draws from an interval of the given width.

    The empirical Bernstein bound of Maurer and Pontil (2009), Theorem 4.
    """
    n = values.size
    logarithm = math.log(2.0 / (1.0 - confidence))
    spread = math.sqrt(2.0 * float(values.var(ddof=1)) * logarithm / n)
    return float(values.mean()) + spread + 7.0 * width * logarithm / (3.0 * (n - 1))
