"""The method as it is defined, slowly: exact fractions, enumeration, adaptive quadrature."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.integrate import quad


def ratio(ones: Sequence[int], sizes: Sequence[int]) -> Fraction:
    """Return eta^2, the share of the variance of 0/1 values that lies between the classes."""
    pairs = [(int(i), int(n_y)) for i, n_y in zip(ones, sizes, strict=True) if n_y]
    n = sum(n_y for _, n_y in pairs)
    mean = Fraction(sum(i for i, _ in pairs), n)
    if mean in (0, 1):
        return Fraction(0)
    return sum(n_y * (Fraction(i, n_y) - mean) ** 2 for i, n_y in pairs) / (n * mean * (1 - mean))


def counts_of(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all numbers of ones that classes of these sizes can have."""
    return list(itertools.product(*(range(n_y + 1) for n_y in sizes)))


def log_count(ones: int, n_y: int, alpha: float, theta: float) -> float:
    """Return log P(I_y | alpha, theta)."""
    return math.log(math.comb(n_y, ones)) + log_u(ones, n_y, alpha, theta)


def log_u(ones: int, n_y: int, alpha: float, theta: float) -> float:
    """Return log U(alpha theta, alpha (1 - theta), I, n_y - I) as a product of quotients near 1."""
    factors = [alpha * theta + i for i in range(ones)] + [alpha * (1 - theta) + i for i in range(n_y - ones)]
    return math.fsum(math.log(factor / (alpha + i)) for i, factor in enumerate(factors))


def integral(f: Callable[[float], float], low: float = 0.0, high: float = 1.0, points: Any = None) -> float:
    """Integrate a smooth function to about 13 digits."""
    value, error = quad(f, low, high, epsabs=0, epsrel=1e-12, limit=400, points=points)
    assert error <= 1e-10 * abs(value)
    return float(value)


@functools.lru_cache(maxsize=1024)
def weakness(alpha: float, sizes: tuple[int, ...], cut: Fraction, theta0: float = 0.0) -> tuple[float, float]:
    """Return P(eta^2 < cut) and P(eta^2 = cut) by enumeration of all counts (I_0, I_1, ...)."""
    values = {cell: ratio(cell, sizes) for cell in counts_of(sizes)}

    @functools.cache
    def tables(theta: float) -> list[list[float]]:
        return [[math.exp(log_count(i, n_y, alpha, theta)) for i in range(n_y + 1)] for n_y in sizes]

    def probability(chosen: list[tuple[int, ...]]) -> float:
        if not chosen:
            return 0.0

        def f(theta: float) -> float:
            return math.fsum(math.prod(t[i] for t, i in zip(tables(theta), cell, strict=True)) for cell in chosen)

        return integral(f, theta0, 1 - theta0) / (1 - 2 * theta0)

    less = probability([cell for cell, value in values.items() if value < cut])
    equal = probability([cell for cell, value in values.items() if value == cut])
    return less, equal


@functools.lru_cache(maxsize=1024)
def feature_integral(
    alpha: float, ones: tuple[int, ...], sizes: tuple[int, ...], theta0: float = 0.0, power: int = 0
) -> float:
    """Return the integral over theta of theta^power prod_y U(...), the prior of theta included."""

    def f(theta: float) -> float:
        return theta**power * math.exp(sum(log_u(i, n_y, alpha, theta) for i, n_y in zip(ones, sizes, strict=True)))

    return integral(f, theta0, 1 - theta0) / (1 - 2 * theta0)


def random_data(
    rng: np.random.Generator, n0: int, n1: int, p: int, alpha: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw binary features from the model."""
    theta = rng.uniform(0.02, 0.98, size=p)
    phi = rng.beta(alpha * theta, alpha * (1 - theta), size=(2, p))
    y = rng.permutation(np.repeat([0, 1], [n0, n1]))
    return (rng.random((n0 + n1, p)) < phi[y]).astype(int), y


def drawn_cases(seed: int, sizes: tuple[int, ...], p: int, alpha: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw binary features, as floats, from the model of several classes."""
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.05, 0.95, size=p)
    phi = rng.beta(alpha * theta, alpha * (1 - theta), size=(len(sizes), p))
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return (rng.random((len(y), p)) < phi[y]).astype(float), y
