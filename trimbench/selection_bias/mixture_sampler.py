"""Markov chain of the binary mixture model: Gibbs for labels, Metropolis for theta, a grid for alpha; its factor."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from trimbench.selection_bias.binary import count_tables
from trimbench.selection_bias.factors import DiscardProbabilities, Ties
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import Selection, strong_bounds, weak_counts

# Updates of labels and theta in a sweep. With many features drawing alpha takes longest, and labels mix most slowly.
_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class MixtureData:
    """The data and grids that a chain conditions on.

    Attributes
    ----------
    values : ndarray of int, shape (n_cases, k + 1)
        The response in column 0, then the selected features: zeros and ones.
    alphas, alphas0 : ndarray
        Grids of alpha (features) and alpha0 (response), equally probable a priori.
    factor : MixtureFactor, optional
        None for no correction.
    f1, f2 : float
        P(z = first) ~ Beta(f1, f2).
    """

    values: NDArray[np.int64]
    alphas: NDArray[np.float64]
    alphas0: NDArray[np.float64]
    factor: MixtureFactor | None
    f1: float
    f2: float


class KnownFactors:
    """The adjustment factors that one chain has needed so far, in arrays that compiled loops can read."""

    def __init__(self, data: MixtureData) -> None:
        n1 = int(data.values[:, 0].sum())
        shape = (0, 0) if data.factor is None else (len(data.values) - n1 + 1, n1 + 1)
        self.places = np.full(shape, -1, dtype=np.int64)
        self._factor = data.factor
        self._n_known = 0
        # One row for each alpha: the loop over the labels reads the factors at one alpha.
        self._rows = np.zeros((len(data.alphas), 64))

    def at(self, alpha: int) -> NDArray[np.float64]:
        """Return the known factors at one alpha, in the order that `places` gives."""
        known: NDArray[np.float64] = self._rows[alpha]
        return known

    def of(self, first0: int, first1: int) -> NDArray[np.float64]:
        """Return log A for each alpha, and remember it; zeros without correction.

        Parameters
        ----------
        first0, first1 : int
            Cases of the first latent group with y = 0 and with y = 1.
        """
        if self._factor is None:
            return self._rows[:, 0]
        place = int(self.places[first0, first1])
        if place < 0:
            place = self._n_known
            if place == self._rows.shape[1]:
                self._rows = np.concatenate([self._rows, np.empty_like(self._rows)], axis=1)
            self._rows[:, place] = self._factor.log_factor(first0, first1)
            self.places[first0, first1] = place
            self._n_known += 1
        return self._rows[:, place]


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
    factors : KnownFactors
    """

    z: NDArray[np.int64]
    ones: NDArray[np.int64]
    sizes: NDArray[np.int64]
    theta: NDArray[np.float64]
    alpha: int
    alpha0: int
    factors: KnownFactors

    def concentrations(self, data: MixtureData) -> NDArray[np.float64]:
        """Return alpha0 for the response and alpha for each feature, of shape (k + 1,)."""
        result = np.full(len(self.theta), data.alphas[self.alpha])
        result[0] = data.alphas0[self.alpha0]
        return result

    def log_factor(self) -> NDArray[np.float64]:
        """Return the log of the adjustment factor of the current labels, for each alpha."""
        first1 = int(self.ones[0, 0])
        return self.factors.of(int(self.sizes[0]) - first1, first1)


def start(data: MixtureData, rng: np.random.Generator) -> State:
    """Return a random state: labels at random, theta uniform from 0.05 to 0.95, the alphas from their priors."""
    z = rng.integers(0, 2, size=len(data.values))
    ones = np.stack([data.values[z == g].sum(axis=0) for g in (0, 1)])
    sizes = np.bincount(z, minlength=2)
    theta = np.asarray(rng.uniform(0.05, 0.95, size=data.values.shape[1]), dtype=np.float64)
    alpha, alpha0 = int(rng.integers(len(data.alphas))), int(rng.integers(len(data.alphas0)))
    return State(z, ones, sizes, theta, alpha, alpha0, KnownFactors(data))


def sweep(state: State, data: MixtureData, rng: np.random.Generator, theta_step: float, n_theta_steps: int) -> float:
    """Update labels and theta in rounds, then the alphas, in place, and return the share of accepted proposals.

    Parameters
    ----------
    theta_step : float
        Metropolis proposals for theta are uniform within this distance.
    n_theta_steps : int
        Proposals for each theta in each round.
    """
    from trimbench.selection_bias import kernels

    accepted, concentrations = 0, state.concentrations(data)
    for _ in range(_ROUNDS):
        _update_labels(state, data, rng.random(len(state.z)))
        steps = rng.uniform(-theta_step, theta_step, size=(n_theta_steps, len(state.theta)))
        thresholds = rng.random(steps.shape)
        accepted += kernels.update_theta(state.theta, concentrations, state.ones, state.sizes, steps, thresholds)
    counts = (state.theta, state.ones, state.sizes)
    state.alpha = kernels.draw_alpha(data.alphas, state.log_factor(), *counts, 1, rng.random())
    state.alpha0 = kernels.draw_alpha(data.alphas0, np.zeros(len(data.alphas0)), *counts, 0, rng.random())
    return float(accepted / (_ROUNDS * steps.size))


def log_joint(state: State, data: MixtureData) -> float:
    """Return the log of the joint density of state and data, up to a constant."""
    from trimbench.selection_bias import kernels

    counts = (state.ones, state.sizes)
    labels = kernels.log_rising(data.f1, state.sizes[0]) + kernels.log_rising(data.f2, state.sizes[1])
    response = kernels.log_columns(state.theta, data.alphas0[state.alpha0], *counts, 0, 1)
    features = kernels.log_columns(state.theta, data.alphas[state.alpha], *counts, 1, len(state.theta))
    return float(labels + response + features + state.log_factor()[state.alpha])


def _update_labels(state: State, data: MixtureData, thresholds: NDArray[np.float64]) -> None:
    """Run through the cases; whenever a factor is not known, compute it and go on."""
    from trimbench.selection_bias import kernels

    concentration = state.concentrations(data)
    if_one, if_zero = concentration * state.theta, concentration * (1.0 - state.theta)
    prior = np.array([data.f1, data.f2])
    case, factors = 0, state.factors
    while True:
        case = kernels.update_labels(
            case,
            data.values,
            state.z,
            state.ones,
            state.sizes,
            if_one,
            if_zero,
            prior,
            factors.places,
            factors.at(state.alpha),
            thresholds,
        )
        if case == len(state.z):
            return
        y, own = int(data.values[case, 0]), int(state.z[case])
        first1 = int(state.ones[0, 0]) - (y if own == 0 else 0)
        first0 = int(state.sizes[0]) - (1 if own == 0 else 0) - first1
        factors.of(first0, first1)
        factors.of(first0 + 1 - y, first1 + y)


# Adjustment factor of the binary mixture model, given the latent labels.

# Bytes of the tables that are kept, one for each size of the smaller group that the chains visit.
_KEPT = 256 * 2**20


class _Memo:
    """A cache of arrays. Threads that ask for the same one wait for the first of them to compute it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrays: OrderedDict[Hashable, Future[NDArray[np.float64]]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, compute: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return an array, computed if it is not kept; the least recently used are dropped when all are too large."""
        with self._lock:
            is_new = key not in self._arrays
            found = self._arrays.setdefault(key, Future())
            self._arrays.move_to_end(key)
        if is_new:
            try:
                found.set_result(compute())
            except BaseException as error:
                found.set_exception(error)
                raise
            self._forget(found.result().nbytes)
        return found.result()

    def _forget(self, added: int) -> None:
        with self._lock:
            self._size += added
            while self._size > _KEPT and next(iter(self._arrays.values())).done():
                self._size -= self._arrays.popitem(last=False)[1].result().nbytes


@dataclass(frozen=True, eq=False)
class MixtureFactor:
    """Adjustment factors for all labellings; computed when first needed, and kept. Threads can share them."""

    prior: Prior
    selection: Selection
    sizes: tuple[int, int]
    ties: Ties
    _joint: _Memo = field(default_factory=_Memo, repr=False)
    _factors: _Memo = field(default_factory=_Memo, repr=False)

    def log_factor(self, first0: int, first1: int) -> NDArray[np.float64]:
        """Return log A for each alpha, of shape (n_alpha,).

        Parameters
        ----------
        first0, first1 : int
            Cases of the first latent group with y = 0 and with y = 1.
        """
        key = self._smaller(first0, first1)
        return self._factors.get(key, lambda: self._compute(*key))

    def probabilities(self, first0: int, first1: int) -> DiscardProbabilities:
        """Return the probabilities that a feature is weaker than the cut-off, and that it is exactly as strong."""
        from trimbench.selection_bias import kernels

        first0, first1 = self._smaller(first0, first1)
        n0, n1 = self.sizes
        size = first0 + first1
        joint = self._joint.get(size, lambda: self._joint_of_sums(size))
        upper, upper_equal = _upper_bounds(Fraction(self.selection.cut), n0, n1)
        shares = kernels.strong_and_equal(first0, first1, n0, n1, upper, upper_equal, _log_factorials(n0 + n1))
        strong, equal = shares.reshape(2, -1) @ joint.reshape(len(joint), -1).T
        with np.errstate(divide="ignore"):
            log_below, log_at_most = (np.log1p(-np.minimum(rest, 1.0)) for rest in (strong + equal, strong))
            return DiscardProbabilities(log_below, np.log(equal), log_at_most, np.zeros_like(log_below))

    def _smaller(self, first0: int, first1: int) -> tuple[int, int]:
        """Return the counts of the smaller group: which of them is called the first does not matter."""
        second0, second1 = self.sizes[0] - first0, self.sizes[1] - first1
        return min((first0 + first1, first0, first1), (second0 + second1, second0, second1))[1:]

    def _compute(self, first0: int, first1: int) -> NDArray[np.float64]:
        n_discarded = self.selection.n_discarded
        if n_discarded == 0:
            return np.zeros(self.prior.n_alpha)
        return self.probabilities(first0, first1).log_factor(n_discarded, self.selection.n_tied, self.ties)

    def _joint_of_sums(self, size: int) -> NDArray[np.float64]:
        """Return P(s_1, s_2 | alpha), theta integrated out, s_1 ones among the first `size` cases and s_2 in the rest.

        x -> 1 - x maps (s_1, s_2) to (size - s_1, n - size - s_2), which is as strongly correlated: each pair stands
        for both, of shape (n_alpha, size // 2 + 1, n - size + 1).
        """
        n, half = sum(self.sizes), size // 2 + 1
        grid, (first, second) = count_tables(self.prior, (size, n - size), n)
        table = np.empty((self.prior.n_alpha, half, n - size + 1))
        for part, nodes in zip(table, grid.parts, strict=True):
            weights, rest = 2.0 * grid.weights[nodes], second[:, nodes].T
            part[:] = (first[:half, nodes] * weights) @ rest
            part += ((first[::-1, nodes][:half] * weights) @ rest)[:, ::-1]
        if size % 2 == 0:
            table[:, -1] *= 0.5
        return table


@functools.lru_cache(maxsize=4)
def _upper_bounds(cut: Fraction, n0: int, n1: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each I_0 + I_1 = s, the smallest I_1 with correlation > gamma, and with correlation >= gamma.

    n0 + n1 + 2 where there is none. At fixed s the correlation rises in I_1, so that one value at most equals gamma.
    """
    at_least, above = strong_bounds(weak_counts((n0, n1), cut), n0, n1)
    bounds = []
    for limit in (above, at_least):
        smallest = np.full(n0 + n1 + 1, n0 + n1 + 2, dtype=np.int64)
        for i1 in range(n1, -1, -1):
            smallest[i1 : i1 + limit[i1] + 1] = i1
        bounds.append(smallest)
    return bounds[0], bounds[1]


@functools.lru_cache(maxsize=4)
def _log_factorials(n: int) -> NDArray[np.float64]:
    return np.asarray(gammaln(np.arange(n + 1) + 1.0), dtype=np.float64)
