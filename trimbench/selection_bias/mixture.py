"""The binary mixture model, with or without correction for feature selection, and the convergence of its chains."""

from __future__ import annotations

import functools
import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from trimbench._checks import check_positive, check_whole, is_number
from trimbench.networks.values import in_order
from trimbench.selection_bias.binary import ClassCounts
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.features import Binariser
from trimbench.selection_bias.mixture_sampler import MixtureData, MixtureFactor, log_joint, start, sweep
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import Selection, select


@dataclass(frozen=True)
class MixtureSampler:
    """The Markov chains that sample a mixture model, and the prior of what only that model has.

    Attributes
    ----------
    shape0, rate0 : float
        alpha0 ~ Inverse-Gamma(shape0, rate0).
    n_chains, n_warmup, n_draws : int
        Number of chains, each from a random state; sweeps that each discards, and keeps.
    theta_step : float
        Metropolis proposals for theta are uniform within this distance, in (0, 1].
    n_theta_steps : int
        Proposals for each theta in each of the five rounds of a sweep; a round also updates every label.
    n_jobs : int
        Number of threads in which chains run at the same time; the posterior is the same for any number.
    random_state : int
        Seed of the chains.

    Raises
    ------
    ValueError
        When a value is out of range.
    """

    shape0: float = 0.5
    rate0: float = 5.0
    n_chains: int = 4
    n_warmup: int = 200
    n_draws: int = 500
    theta_step: float = 0.2
    n_theta_steps: int = 5
    n_jobs: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        check_positive("shape0", self.shape0)
        check_positive("rate0", self.rate0)
        for name in ("n_chains", "n_draws", "n_theta_steps", "n_jobs"):
            check_whole(name, getattr(self, name), 1)
        check_whole("n_warmup", self.n_warmup, 0)
        check_whole("random_state", self.random_state, 0)
        if not is_number(self.theta_step) or not 0 < self.theta_step <= 1:
            raise ValueError(f"theta_step must be in (0, 1], got {self.theta_step!r}")

    def alphas0(self, n_alpha: int) -> NDArray[np.float64]:
        """Return the grid of alpha0, of shape (n_alpha,)."""
        return Prior(shape=self.shape0, rate=self.rate0, n_alpha=n_alpha).alphas()


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """Draws from the posterior of a mixture model, made by `fit_selection_corrected(features="mixture")`.

    Attributes
    ----------
    selection : Selection
    binariser : Binariser
    f1, f0 : float
    log_alpha, log_alpha0, log_joint : ndarray of shape (n_chains, n_draws)
    theta : ndarray of shape (n_chains, n_draws, k + 1)
        theta of the response, then of the selected features.
    ones : ndarray of shape (n_chains, n_draws, 2, k + 1)
        Ones of these columns in each latent group.
    sizes : ndarray of shape (n_chains, n_draws, 2)
        Cases in each latent group.
    labels : ndarray of shape (n_chains, n_draws, n_cases)
    acceptance : float
        Share of accepted proposals for theta.
    """

    selection: Selection
    binariser: Binariser
    f1: float
    f0: float
    log_alpha: NDArray[np.float64]
    log_alpha0: NDArray[np.float64]
    log_joint: NDArray[np.float64]
    theta: NDArray[np.float64]
    ones: NDArray[np.int64]
    sizes: NDArray[np.int64]
    labels: NDArray[np.int8]
    acceptance: float
    column_names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        n_chains, n_draws = self.log_alpha.shape
        return f"{type(self).__name__}({self.selection.in_words}, {n_chains} chains of {n_draws:,} draws)"

    @property
    def selected(self) -> NDArray[np.int64]:
        """Numbers of the selected features, from the largest absolute correlation to the smallest."""
        return self.selection.features

    def diagnostics(self) -> dict[str, Convergence]:
        """Return R-hat and effective sample size of log(alpha), log(alpha0) and the log of the joint density.

        None of them depends on which latent group is called the first.
        """
        return {name: convergence(getattr(self, name)) for name in ("log_alpha", "log_alpha0", "log_joint")}

    @functools.cached_property
    def r_hat(self) -> float:
        """The largest R-hat of `diagnostics`; NaN if one is not defined."""
        return float(np.max([found.r_hat for found in self.diagnostics().values()]))

    @functools.cached_property
    def effective_sample_size(self) -> float:
        """The smallest effective sample size of `diagnostics`; NaN if one is not defined."""
        return float(np.min([found.effective_sample_size for found in self.diagnostics().values()]))

    @property
    def converged(self) -> bool:
        """Whether the chains have converged in every quantity of `diagnostics`; see `Convergence.converged`."""
        return Convergence(self.r_hat, self.effective_sample_size).converged

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return P(y = 0 | x) and P(y = 1 | x), of shape (n_cases, 2).

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
            All features of the training cases; only the selected ones are used. A missing value (NaN, masked, None or
            the missing value of pandas) drops out of the product over the features.

        Returns
        -------
        ndarray of shape (n_cases, 2)
            Ratio of the means over the draws of P(x, y) for both y.
        """
        codes = self.binariser.codes(in_order(X, self.column_names), self.selected)
        x, seen = (codes == 1).astype(np.float64), codes >= 0
        joint = np.full((len(x), 2), -np.inf)
        for chain, draw in np.ndindex(self.log_alpha.shape):
            joint = np.logaddexp(joint, self._log_case(x, None if seen.all() else seen, chain, draw))
        log_odds = joint[:, 1] - joint[:, 0]
        return np.stack([expit(-log_odds), expit(log_odds)], axis=1)

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate at threshold 1/2 that the predictions imply: the mean of min(p, 1 - p)."""
        return float(self.predict_proba(X).min(axis=1).mean())

    def _log_case(
        self, x: NDArray[np.float64], seen: NDArray[np.bool_] | None, chain: int, draw: int
    ) -> NDArray[np.float64]:
        """Return log P(x, y | one draw) for y = 0 and y = 1, from the `seen` values of x (None for all)."""
        theta, ones, sizes = self.theta[chain, draw], self.ones[chain, draw], self.sizes[chain, draw, :, None]
        concentration = np.full(theta.shape, math.exp(self.log_alpha[chain, draw]))
        concentration[0] = math.exp(self.log_alpha0[chain, draw])
        # The second is written out, as 1 - p loses digits where p is close to 1.
        log_one = np.log((concentration * theta + ones) / (concentration + sizes))
        log_zero = np.log((concentration * (1.0 - theta) + sizes - ones) / (concentration + sizes))
        groups = np.log(np.array([self.f1, self.f0]) + sizes[:, 0])
        zeros = log_zero[:, 1:].sum(axis=1) if seen is None else seen @ log_zero[:, 1:].T
        features = x @ (log_one - log_zero)[:, 1:].T + zeros + groups
        return np.stack([np.logaddexp(*(features + response[:, 0]).T) for response in (log_zero, log_one)], axis=1)


def sample_mixture(
    table: NDArray[Any],
    response: NDArray[np.int64],
    k: int,
    prior: Prior,
    sampler: MixtureSampler,
    *,
    unlabelled: NDArray[Any] | None = None,
    correct: bool = True,
    ties: Ties = "exact",
    column_names: tuple[str, ...] | None = None,
) -> MixturePosterior:
    """Select features and sample the mixture model, see `trimbench.fit_selection_corrected`.

    Parameters
    ----------
    table : ndarray of shape (n_cases, n_features)
        Without missing values.
    response : ndarray of shape (n_cases,)
        Zeros and ones.
    """
    binariser = Binariser.fit(table, unlabelled)
    counts = ClassCounts.of(table, response, 2, binariser, np.arange(len(response)))
    selection = select(counts.ones, counts.sizes, k)
    values = np.column_stack([response, binariser.codes(table, selection.features)]).astype(np.int64)
    n1 = int(response.sum())
    sizes = (len(response) - n1, n1)
    factor = MixtureFactor(prior, selection, sizes, ties) if correct and selection.n_discarded else None
    data = MixtureData(values, prior.alphas(), sampler.alphas0(prior.n_alpha), factor, prior.f1, prior.f0)
    run = functools.partial(_run, data, sampler)
    children = np.random.SeedSequence(sampler.random_state).spawn(sampler.n_chains)
    if sampler.n_jobs == 1:
        chains = [run(child) for child in children]
    else:
        with ThreadPoolExecutor(sampler.n_jobs, thread_name_prefix="mixture") as threads:
            chains = list(threads.map(run, children))
    kept = {name: np.stack([chain[name] for chain in chains]) for name in chains[0]}
    acceptance = float(kept.pop("acceptance").mean())
    posterior = MixturePosterior(
        selection, binariser, prior.f1, prior.f0, acceptance=acceptance, column_names=column_names, **kept
    )
    if not posterior.converged:
        _warn(posterior)
    return posterior


def _warn(posterior: MixturePosterior) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"the chains of the mixture model have not converged: R-hat {posterior.r_hat:.3g} (at most {R_HAT_LIMIT} is "
        f"needed), effective sample size {posterior.effective_sample_size:.3g} (at least {LEAST_SAMPLE_SIZE:.0f}); "
        "both need two chains of four draws. Raise n_draws or n_warmup before you trust this posterior",
        ConvergenceWarning,
        stacklevel=5,
    )


def _run(data: MixtureData, sampler: MixtureSampler, seed: np.random.SeedSequence) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    state = start(data, rng)
    kept: dict[str, list[object]] = {
        name: [] for name in ("log_alpha", "log_alpha0", "log_joint", "theta", "ones", "sizes", "labels", "acceptance")
    }
    for step in range(sampler.n_warmup + sampler.n_draws):
        accepted = sweep(state, data, rng, sampler.theta_step, sampler.n_theta_steps)
        if step < sampler.n_warmup:
            continue
        kept["log_alpha"].append(math.log(data.alphas[state.alpha]))
        kept["log_alpha0"].append(math.log(data.alphas0[state.alpha0]))
        kept["log_joint"].append(log_joint(state, data))
        kept["theta"].append(state.theta.copy())
        kept["ones"].append(state.ones.copy())
        kept["sizes"].append(state.sizes.copy())
        kept["labels"].append(state.z.astype(np.int8))
        kept["acceptance"].append(accepted)
    return {name: np.array(values) for name, values in kept.items()}


# Whether Markov chains have converged: split R-hat and effective sample size, both of the ranks of the draws.

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
        Rank-normalised split R-hat, the larger of those of the draws and of their distances from the median; near 1
        where the chains agree. Chains start at random places, so it is 1 if several chains all stay at one value, as
        they do when the posterior is concentrated on one point of the grid. Infinite if they stay at different values,
        NaN for fewer than two chains of four draws.
    effective_sample_size : float
        Bulk effective sample size of all chains together.
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
    # Antithetic chains are worth more than independent draws; their gain is limited.
    return float(m * n / max(time, 1.0 / math.log10(m * n)))


def _autocovariance(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n] / n, dtype=np.float64)
