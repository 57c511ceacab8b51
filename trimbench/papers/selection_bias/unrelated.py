"""How strongly features correlate with a response that they have nothing to do with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, gammaln


def share_beyond(bound: float, n0: int, n1: int, theta0: float = 0.0) -> float:
    r"""Return the probability that a feature unrelated to the response has a sample correlation beyond a bound.

    Parameters
    ----------
    bound : float
        Of the absolute correlation.
    n0, n1 : int
        Cases in each class.
    theta0 : float
        The feature's probability of a one is uniform from `theta0` to 1 - `theta0`, the same in both classes.

    Notes
    -----
    It is the sum, over the numbers of ones (I_0, I_1) with \|cor\| > bound, of C(n_0, I_0) C(n_1, I_1) times the mean
    of theta^s (1 - theta)^(n - s) with s = I_0 + I_1, an incomplete beta function.
    """
    ones0, ones1 = np.arange(n0 + 1)[:, None], np.arange(n1 + 1)
    ones, n = ones0 + ones1, n0 + n1
    log_mean = betaln(ones + 1, n - ones + 1)
    inside = betainc(ones + 1, n - ones + 1, 1 - theta0) - betainc(ones + 1, n - ones + 1, theta0)
    probability = np.exp(_log_choose(n0, ones0) + _log_choose(n1, ones1) + log_mean) * inside / (1 - 2 * theta0)
    # The correlation squared is difference^2 / spread; that of a constant is 0.
    difference, spread = (n0 * ones1 - n1 * ones0).astype(float), float(n0 * n1) * ones * (n - ones)
    return float(probability[difference**2 > bound**2 * spread].sum())


def probability_of_fewer(k: int, n_features: int, share: float) -> float:
    """Return the probability that fewer than k of independent features are where each is with probability `share`."""
    from scipy.stats import binom

    return float(binom.cdf(k - 1, n_features, share))


def _log_choose(n: int, r: NDArray[np.int64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
    return result
