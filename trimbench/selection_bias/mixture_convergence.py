"""Whether Markov chains have converged: split R-hat and effective sample size, both of the ranks of the draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

# Chains whose R-hat is larger have not mixed.
R_HAT_LIMIT = 1.05
# With a smaller effective sample size neither R-hat nor a mean over the draws can be relied on.
LEAST_SAMPLE_SIZE = 100.0


@dataclass(frozen=True)
class Convergence:
    """How well the chains have mixed, for one quantity.

    Attributes
    ----------
    r_hat : float
        Rank-normalised split R-hat, the larger of that of the draws and of their distances from the median; near 1
        where the chains agree. Chains start at random places, so it is 1 if several chains all stay at one value, as
        they do when the posterior is concentrated on one point of the grid. Infinite if they stay at different values,
        NaN if there are too few draws: it needs at least four of each of two chains.
    effective_sample_size : float
        Of all chains together, for the bulk of the distribution.
    """

    r_hat: float
    effective_sample_size: float

    @property
    def converged(self) -> bool:
        """Whether R-hat is at most `R_HAT_LIMIT` and the effective sample size at least `LEAST_SAMPLE_SIZE`."""
        return self.r_hat <= R_HAT_LIMIT and self.effective_sample_size >= LEAST_SAMPLE_SIZE


def convergence(draws: NDArray[np.float64]) -> Convergence:
    """Return how well chains have mixed.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws)

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021): Rank-normalization, folding, and localization: an improved
    R-hat for assessing convergence of MCMC. Bayesian Analysis 16.
    """
    n_chains, n_draws = draws.shape
    if n_chains < 2 or n_draws < 4:
        return Convergence(math.nan, math.nan)
    if (draws == draws[0, 0]).all():
        return Convergence(1.0, float(draws.size))
    half = n_draws // 2
    split = np.concatenate([draws[:, :half], draws[:, n_draws - half :]])
    ranks = _normal_scores(split)
    folded = _normal_scores(np.abs(split - np.median(split)))
    r_hats = [_r_hat(ranks), _r_hat(folded)]
    return Convergence(max(r_hats), _effective_sample_size(ranks))


def _normal_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = rankdata(values, method="average").reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)), dtype=np.float64)


def _r_hat(chains: NDArray[np.float64]) -> float:
    """Return the root of the variance of all draws over the mean variance within a chain."""
    n = chains.shape[1]
    within, between = float(chains.var(axis=1, ddof=1).mean()), float(chains.mean(axis=1).var(ddof=1))
    if within == 0.0:  # no chain moves
        return math.inf if between else 1.0
    return math.sqrt((n - 1) / n + between / within)


def _effective_sample_size(chains: NDArray[np.float64]) -> float:
    """Return the number of draws over the autocorrelation time, by Geyer's initial monotone sequence."""
    m, n = chains.shape
    covariance = _autocovariance(chains).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + float(chains.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return math.nan
    correlation = 1.0 - (within - covariance) / total
    correlation[0] = 1.0
    pairs = correlation[: 2 * (n // 2)].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else len(pairs)
    beyond = max(float(correlation[2 * stop]), 0.0) if 2 * stop < n else 0.0
    time = 2.0 * float(np.minimum.accumulate(pairs[:stop]).sum()) - 1.0 + beyond
    # Chains that alternate have less than one draw's worth of noise; their gain is limited.
    return float(m * n / max(time, 1.0 / math.log10(m * n)))


def _autocovariance(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n] / n, dtype=np.float64)
