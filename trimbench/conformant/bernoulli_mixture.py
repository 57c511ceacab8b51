"""A mixture of independent binary columns, learned by expectation-maximisation from rows with missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.reduced_problem import Matrix, Vector

_PSEUDO_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class BernoulliMixture:
    """Mixture weights and the probability of 1 of each column in each component.

    Attributes
    ----------
    log_weights : ndarray of shape (n_components,)
    theta : ndarray of shape (n_columns, n_components)
    log_likelihoods : tuple of float
        Mean log-likelihood of the observed values before each step: it never falls (up to the pseudo-counts).
    """

    log_weights: Vector
    theta: Matrix
    log_likelihoods: tuple[float, ...]

    def responsibilities(self, gaps: Matrix) -> tuple[Matrix, Vector]:
        """Return P(component | observed values) of each row, and log P(observed values)."""
        known = ~np.isnan(gaps)
        ones = np.where(known, gaps, 0.0)
        log_odds, log_zero = np.log(self.theta) - np.log1p(-self.theta), np.log1p(-self.theta)
        joint = self.log_weights + ones @ log_odds + known.astype(np.float64) @ log_zero
        top = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - top)
        total = shares.sum(axis=1, keepdims=True)
        return shares / total, (top + np.log(total))[:, 0]

    def fill(self, gaps: Matrix) -> Matrix:
        """Return the rows with missing values replaced by their expectations."""
        shares, _ = self.responsibilities(gaps)
        return np.where(np.isnan(gaps), shares @ self.theta.T, gaps)


def fit_mixture(
    rows: NDArray[Any], n_components: int, *, seed: int = 0, max_iterations: int = 100, tolerance: float = 1e-6
) -> BernoulliMixture:
    """Learn a mixture by expectation-maximisation, until the mean log-likelihood gains less than `tolerance`.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
        Zeros and ones, NaN where missing.
    n_components : int
        At least 1; at most one for each row is used.
    """
    if n_components < 1:
        raise ValueError(f"n_components must be 1 or more, got {n_components}")
    table = np.asarray(rows, dtype=np.float64)
    rng = np.random.default_rng(seed)
    known = (~np.isnan(table)).astype(np.float64)
    ones = np.where(known > 0, table, 0.0)
    n_components = min(n_components, len(table))
    shares = rng.dirichlet(np.full(n_components, 0.2), size=len(table))
    history: list[float] = []
    while True:
        weights = (shares.sum(axis=0) + _PSEUDO_COUNT) / (len(table) + _PSEUDO_COUNT * n_components)
        theta = (ones.T @ shares + _PSEUDO_COUNT) / (known.T @ shares + 2 * _PSEUDO_COUNT)
        mixture = BernoulliMixture(np.log(weights), theta, tuple(history))
        shares, likelihoods = mixture.responsibilities(table)
        history.append(float(likelihoods.mean()))
        if len(history) > max_iterations or (len(history) > 1 and history[-1] - history[-2] < tolerance):
            return mixture
