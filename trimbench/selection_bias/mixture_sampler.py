"""Markov chain of the binary mixture model: Gibbs for labels, Metropolis for theta, the grid for alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from trimbench.selection_bias.mixture_factor import MixtureFactor
from trimbench.selection_bias.simplex import log_rising


@dataclass(frozen=True, eq=False)
class MixtureData:
    """The data and grids that a chain conditions on.

    Attributes
    ----------
    values : ndarray of shape (n_cases, k + 1)
        The response in column 0, then the selected features: zeros and ones.
    alphas, alphas0 : ndarray
        Grids of alpha (features) and alpha0 (response), equally probable a priori.
    factor : MixtureFactor, optional
        Without it nothing is corrected.
    f1, f2 : float
        P(z = first) ~ Beta(f1, f2).
    """

    values: NDArray[np.int64]
    alphas: NDArray[np.float64]
    alphas0: NDArray[np.float64]
    factor: MixtureFactor | None
    f1: float
    f2: float


@dataclass(eq=False)
class State:
    """The current state of a chain.

    Attributes
    ----------
    z : ndarray of shape (n_cases,)
        Labels 0 and 1.
    ones : ndarray of shape (2, k + 1)
        Ones of each column in each latent group.
    sizes : ndarray of shape (2,)
        Cases in each latent group.
    theta : ndarray of shape (k + 1,)
    alpha, alpha0 : int
        Places in the grids.
    """

    z: NDArray[np.int64]
    ones: NDArray[np.int64]
    sizes: NDArray[np.int64]
    theta: NDArray[np.float64]
    alpha: int
    alpha0: int

    def concentrations(self, data: MixtureData) -> NDArray[np.float64]:
        """Return alpha0 for the response and alpha for each feature, of shape (k + 1,)."""
        result = np.full(len(self.theta), data.alphas[self.alpha])
        result[0] = data.alphas0[self.alpha0]
        return result


def start(data: MixtureData, rng: np.random.Generator) -> State:
    """Return a random state: labels at random, theta and the alphas from their priors."""
    z = rng.integers(0, 2, size=len(data.values))
    ones = np.stack([data.values[z == g].sum(axis=0) for g in (0, 1)])
    sizes = np.bincount(z, minlength=2)
    theta = np.asarray(rng.uniform(0.05, 0.95, size=data.values.shape[1]), dtype=np.float64)
    return State(z, ones, sizes, theta, int(rng.integers(len(data.alphas))), int(rng.integers(len(data.alphas0))))


def sweep(state: State, data: MixtureData, rng: np.random.Generator, theta_step: float, n_theta_steps: int) -> float:
    """Update every part of a state once, in place, and return the share of accepted proposals.

    Parameters
    ----------
    theta_step : float
        Metropolis proposals for theta are uniform within this distance.
    n_theta_steps : int
        Proposals for each theta.
    """
    _update_labels(state, data, rng)
    accepted = _update_theta(state, data, rng, theta_step, n_theta_steps)
    _update_alphas(state, data, rng)
    return accepted


def log_joint(state: State, data: MixtureData) -> float:
    """Return the log of the joint density of state and data, up to a constant."""
    labels = log_rising(np.array([data.f1, data.f2]), state.sizes).sum()
    columns = _log_columns(state, state.theta, state.concentrations(data))
    return float(labels + columns.sum() + _log_factor(state, data)[state.alpha])


def _log_factor(state: State, data: MixtureData) -> NDArray[np.float64]:
    if data.factor is None:
        return np.zeros(len(data.alphas))
    first1 = int(state.ones[0, 0])
    return data.factor.log_factor(int(state.sizes[0]) - first1, first1)


def _log_columns(
    state: State, theta: NDArray[np.float64], concentration: NDArray[np.float64], columns: slice = slice(None)
) -> NDArray[np.float64]:
    """Return log prod_g U(alpha theta, alpha (1 - theta), I_g, O_g) of some columns; leading axes broadcast."""
    result = np.zeros(np.broadcast_shapes(theta.shape, concentration.shape))
    first, second = concentration * theta, concentration * (1.0 - theta)
    for ones, size in zip(state.ones[:, columns], state.sizes, strict=True):
        result += log_rising(first, ones) + log_rising(second, size - ones) - log_rising(concentration, np.array(size))
    return result


def _update_labels(state: State, data: MixtureData, rng: np.random.Generator) -> None:
    concentration = state.concentrations(data)
    if_one, if_zero = concentration * state.theta, concentration * (1.0 - state.theta)
    prior = np.array([data.f1, data.f2])
    for case, threshold in zip(range(len(state.z)), rng.random(len(state.z)), strict=True):
        x, own = data.values[case], state.z[case]
        state.ones[own] -= x
        state.sizes[own] -= 1
        sizes = state.sizes[:, None]
        predictive = np.where(x == 1, if_one + state.ones, if_zero + sizes - state.ones) / (concentration + sizes)
        score = np.log(prior + state.sizes) + np.log(predictive).sum(axis=1)
        if data.factor is not None:
            first1 = int(state.ones[0, 0])
            first0 = int(state.sizes[0]) - first1
            y = int(x[0])
            score[0] += data.factor.log_factor(first0 + 1 - y, first1 + y)[state.alpha]
            score[1] += data.factor.log_factor(first0, first1)[state.alpha]
        new = int(threshold >= 1.0 / (1.0 + np.exp(np.clip(score[1] - score[0], -700.0, 700.0))))
        state.z[case] = new
        state.ones[new] += x
        state.sizes[new] += 1


def _update_theta(state: State, data: MixtureData, rng: np.random.Generator, step: float, n_steps: int) -> float:
    concentration = state.concentrations(data)
    density = _log_columns(state, state.theta, concentration)
    accepted_share = 0.0
    for _ in range(n_steps):
        proposal = state.theta + rng.uniform(-step, step, size=len(state.theta))
        inside = (proposal > 0.0) & (proposal < 1.0)
        proposal = np.where(inside, proposal, state.theta)
        proposed = _log_columns(state, proposal, concentration)
        accepted = inside & (np.log1p(-rng.random(len(proposal))) < proposed - density)
        state.theta, density = np.where(accepted, proposal, state.theta), np.where(accepted, proposed, density)
        accepted_share += float(accepted.mean()) / n_steps
    return accepted_share


def _update_alphas(state: State, data: MixtureData, rng: np.random.Generator) -> None:
    features, response = slice(1, None), slice(1)
    for_features = _log_columns(state, state.theta[features], data.alphas[:, None], features)
    state.alpha = _draw(for_features.sum(axis=1) + _log_factor(state, data), rng)
    for_response = _log_columns(state, state.theta[response], data.alphas0[:, None], response)
    state.alpha0 = _draw(for_response[:, 0], rng)


def _draw(log_weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    cumulative = np.cumsum(np.exp(log_weights - logsumexp(log_weights)))
    return min(int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")), len(cumulative) - 1)
