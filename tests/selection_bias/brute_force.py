"""The method as it is defined, slowly: exact fractions, enumeration, adaptive quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaincinv, gammaln


def squared_correlation(ones0: int, ones1: int, n0: int, n1: int) -> Fraction:
    """Return the squared correlation of the 0/1 columns themselves."""
    n, total = n0 + n1, ones0 + ones1
    if total in (0, n):
        return Fraction(0)
    mean_x, mean_y = Fraction(total, n), Fraction(n1, n)
    covariance = Fraction(ones1, n) - mean_x * mean_y
    return covariance**2 / (mean_x * (1 - mean_x) * mean_y * (1 - mean_y))


def log_count(ones: int, n_y: int, alpha: float, theta: float) -> float:
    """Return log P(I_y | alpha, theta)."""
    choices = gammaln(n_y + 1) - gammaln(ones + 1) - gammaln(n_y - ones + 1)
    return float(choices + log_u(ones, n_y, alpha, theta))


def log_u(ones: int, n_y: int, alpha: float, theta: float) -> float:
    """Return log U(alpha theta, alpha (1 - theta), I, n_y - I) as a product of quotients near 1."""
    factors = [alpha * theta + i for i in range(ones)] + [alpha * (1 - theta) + i for i in range(n_y - ones)]
    return math.fsum(math.log(factor / (alpha + i)) for i, factor in enumerate(factors))


def integral(f: Callable[[float], float], low: float = 0.0, high: float = 1.0, points: Any = None) -> float:
    """Integrate a smooth function to about 13 digits."""
    value, error = quad(f, low, high, epsabs=0, epsrel=1e-12, limit=400, points=points)
    assert error <= 1e-10 * abs(value)
    return float(value)


def weakness(
    alpha: float, n0: int, n1: int, cut: tuple[int, int] | Fraction, theta0: float = 0.0
) -> tuple[float, float]:
    """Return P(|cor| < gamma) and P(|cor| = gamma) by enumeration of all (I_0, I_1)."""
    gamma2 = cut if isinstance(cut, Fraction) else squared_correlation(*cut, n0, n1)
    cells = [(a, b, squared_correlation(a, b, n0, n1)) for a in range(n0 + 1) for b in range(n1 + 1)]

    def probability(chosen: list[tuple[int, int]]) -> float:
        if not chosen:
            return 0.0

        def f(theta: float) -> float:
            first = [math.exp(log_count(a, n0, alpha, theta)) for a in range(n0 + 1)]
            second = [math.exp(log_count(b, n1, alpha, theta)) for b in range(n1 + 1)]
            return math.fsum(first[a] * second[b] for a, b in chosen)

        return integral(f, theta0, 1 - theta0) / (1 - 2 * theta0)

    less = probability([(a, b) for a, b, c in cells if c < gamma2])
    equal = probability([(a, b) for a, b, c in cells if c == gamma2])
    return less, equal


def feature_integral(
    alpha: float, ones: tuple[int, int], n: tuple[int, int], theta0: float = 0.0, power: int = 0
) -> float:
    """Return the integral over theta of theta^power prod_y U(...), the prior of theta included."""

    def f(theta: float) -> float:
        return theta**power * math.exp(sum(log_u(ones[y], n[y], alpha, theta) for y in (0, 1)))

    return integral(f, theta0, 1 - theta0) / (1 - 2 * theta0)


def joint(
    alpha: float, x: list[int], y: int, ones: list[tuple[int, int]], n: tuple[int, int], theta0: float = 0.0
) -> float:
    """Return P(x*, x_train | alpha, y*, y_train) as a product of integrals over theta_j."""
    result = 1.0
    for value, counts in zip(x, ones, strict=True):

        def f(theta: float, value: int = value, counts: tuple[int, int] = counts) -> float:
            phi = (counts[y] + alpha * theta) / (alpha + n[y])
            likelihood = math.exp(sum(log_u(counts[c], n[c], alpha, theta) for c in (0, 1)))
            return (phi if value else 1 - phi) * likelihood

        result *= integral(f, theta0, 1 - theta0) / (1 - 2 * theta0)
    return result


def alpha_at(level: float, shape: float, rate: float) -> float:
    """Return the alpha whose 1 / alpha is the quantile of Gamma(shape, rate) at a level."""
    return float(rate / gammaincinv(shape, level))


def random_data(
    rng: np.random.Generator, n0: int, n1: int, p: int, alpha: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw binary features from the model."""
    theta = rng.uniform(0.02, 0.98, size=p)
    phi = rng.beta(alpha * theta, alpha * (1 - theta), size=(2, p))
    y = rng.permutation(np.repeat([0, 1], [n0, n1]))
    return (rng.random((n0 + n1, p)) < phi[y]).astype(int), y
