"""The prior of the model and the grids on which its integrals are computed."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, roots_legendre

from trimbench._checks import check_one_of, check_positive, check_whole, is_number

Rule = Literal["gauss", "simpson"]
RULES: tuple[Rule, ...] = ("gauss", "simpson")

# Beyond these the model no longer changes with alpha, and its tables would lose digits.
_ALPHA_RANGE = (1e-10, 1e10)


@dataclass(frozen=True)
class Prior:
    """Prior of the naive Bayes model, and how finely its integrals are computed.

    Attributes
    ----------
    shape, rate : float
        a and b of ``alpha ~ Inverse-Gamma(a, b)``, whose density is proportional to alpha^(-a - 1) exp(-b / alpha).
    theta0 : float
        ``theta_j ~ Uniform(theta0, 1 - theta0)``, in [0, 0.5).
    f0, f1 : float
        ``psi ~ Beta(f1, f0)``, psi = P(y = 1); with more classes they must be equal, psi ~ Dirichlet(f1, ..., f1).
    n_alpha : int
        Number of values of alpha.
    n_theta : int
        N of the slides' grid over theta for the predictions, of 2 N + 1 points; used by the rule "simpson" only.
    n_theta_adjust : int
        N of the grid over theta for the adjustment factor, of 2 N + 1 points.
    rule : {"gauss", "simpson"}
        How integrals over theta are computed. All integrands are polynomials in theta of degree n + 1 at most (n
        training cases), so the Gauss-Legendre rule with n / 2 + 2 nodes is exact: "gauss" takes that many, but at most
        2 n_theta_adjust + 1 (or 4.5 sqrt(n) if that is larger), and for small alpha just enough for about nine
        digits. "simpson" is the rule of the slides.

    Raises
    ------
    ValueError
        When a value is out of range.
    """

    shape: float = 0.5
    rate: float = 5.0
    theta0: float = 0.0
    f0: float = 1.0
    f1: float = 1.0
    n_alpha: int = 100
    n_theta: int = 20
    n_theta_adjust: int = 100
    rule: Rule = "gauss"

    def __post_init__(self) -> None:
        for name in ("shape", "rate", "f0", "f1"):
            check_positive(name, getattr(self, name), f"; the slides use {_USUAL[name]}")
        for name in ("n_alpha", "n_theta", "n_theta_adjust"):
            check_whole(name, getattr(self, name), 1, f"; use {_USUAL[name]}")
        if not is_number(self.theta0) or not 0 <= self.theta0 < 0.5:
            raise ValueError(f"theta0 must be in [0, 0.5), got {self.theta0!r}; 0 leaves the whole range to theta")
        check_one_of("rule", self.rule, RULES)

    def alphas(self) -> NDArray[np.float64]:
        """Return the grid of alpha in increasing order, of shape (n_alpha,).

        The values are the quantiles of the prior at the midpoints (i - 1/2) / n_alpha, so that each has the same
        weight.
        """
        levels = (np.arange(self.n_alpha, 0, -1) - 0.5) / self.n_alpha
        with np.errstate(divide="ignore", over="ignore"):
            alphas = self.rate / gammaincinv(self.shape, levels)
        return np.clip(alphas, *_ALPHA_RANGE)

    def log_density_of_log_alpha(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log of the prior density of log(alpha), without its constant."""
        result: NDArray[np.float64] = -self.shape * np.log(alphas) - self.rate / alphas
        return result

    def pseudo_counts(self, n_classes: int) -> tuple[float, ...]:
        """Return the pseudo-counts of the classes; raise ValueError for more than two of them if f0 and f1 differ."""
        if n_classes > 2 and self.f0 != self.f1:
            raise ValueError(
                f"f0 and f1 must be equal for {n_classes} classes, got f0={self.f0} and f1={self.f1}; leave both at 1"
            )
        return (self.f0, *(self.f1,) * (n_classes - 1))

    def theta_nodes(self, n_cases: int, alpha: float = math.inf) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a grid over theta that is symmetric about 1/2, and its weights.

        Parameters
        ----------
        n_cases : int
            Number of training cases n: the integrands are polynomials of degree n + 1 at most.
        alpha : float
            With a small alpha the integrands are wide, and fewer nodes suffice.

        Returns
        -------
        nodes : ndarray of shape (n_nodes,)
            Increasing.
        weights : ndarray of shape (n_nodes,)
            They sum to 1: the density of theta is part of them.
        """
        width = 1.0 - 2.0 * self.theta0
        if self.rule == "simpson":
            n_points = 2 * self.n_theta_adjust + 1
            return np.linspace(self.theta0, 1.0 - self.theta0, n_points), simpson_weights(n_points)
        # An integrand can be as narrow as 1 / sqrt(n); 4.5 sqrt(n) nodes resolve it to rounding error. With a small
        # alpha it is as wide as that of fewer cases, which two beta-binomial distributions of n / 2 cases give.
        enough = max(2 * self.n_theta_adjust + 1, math.ceil(4.5 * math.sqrt(n_cases)))
        effective = n_cases / (1.0 + 0.5 * n_cases / alpha)
        enough = min(enough, 16 * math.ceil((12.0 + 5.0 * math.sqrt(effective)) / 16))
        roots, weights = _legendre(min(n_cases // 2 + 2, enough))
        return 0.5 + 0.5 * width * roots, weights


def log_shares(prior: Prior, class_sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log P(y) given the cases of each class, both of shape (n_classes,)."""
    counts = class_sizes + np.array(prior.pseudo_counts(len(class_sizes)))
    found: NDArray[np.float64] = np.log(counts) - np.log(counts.sum())
    return found


_USUAL = {"shape": 0.5, "rate": 5, "f0": 1, "f1": 1, "n_alpha": 100, "n_theta": 20, "n_theta_adjust": 100}


@functools.lru_cache(maxsize=64)
def _legendre(n_nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes on [-1, 1], exactly symmetric, and weights that sum to 1."""
    roots, weights = roots_legendre(n_nodes)
    roots, weights = 0.5 * (roots - roots[::-1]), 0.5 * (weights + weights[::-1])
    weights /= weights.sum()
    roots.flags.writeable = weights.flags.writeable = False
    return roots, weights


def simpson_weights(n_points: int) -> NDArray[np.float64]:
    """Return Simpson's weights on [0, 1] for an odd number of points."""
    weights = np.full(n_points, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return weights / (3.0 * (n_points - 1))
