"""The binary mixture model on simulated cases, with and without correction."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pandas as pd

from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.papers.selection_bias.simulation import comparison_figures, comparison_tables, gains
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import FLAG, NOTHING, NUMBER, POSITIVE, SHARE, job, seed_for, timed
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.mixture import LEAST_SAMPLE_SIZE, R_HAT_LIMIT, MixtureSampler
from trimbench.selection_bias.prior import Prior


@vocab.settings
class MixturePrior:
    """Priors of alpha (`shape`, `rate`), of alpha0 (`shape0`, `rate0`) and of P(z) (`f1`, `f2`), and sizes of grids."""

    shape: float = 0.5
    rate: float = 5.0
    shape0: float = 0.5
    rate0: float = 5.0
    f1: float = 1.0
    f2: float = 1.0
    n_alpha: int = 100
    n_theta_adjust: int = 100

    def __post_init__(self) -> None:
        self.models()

    def models(self) -> tuple[Prior, MixtureSampler]:
        """Return the prior, whose f0 is `f2`, and the sampler; ValueError if a value is out of range."""
        shared = {name: getattr(self, name) for name in ("shape", "rate", "f1", "n_alpha", "n_theta_adjust")}
        return Prior(**shared, f0=self.f2), MixtureSampler(shape0=self.shape0, rate0=self.rate0)


@vocab.settings
class Mixture:
    """Predictions of the mixture model, sampled by Markov chains, on cases drawn from it.

    `response` is P(y = 1 | z) in the two latent groups; features are drawn with `alpha`. Each fit has `n_chains`, which
    discard `n_warmup` sweeps and keep `n_draws`.
    """

    ks: vocab.Axis[int]
    response: Annotated[
        list[float],
        vocab.must("two probabilities between 0 and 1", lambda p: len(p) == 2 and min(p) > 0 and max(p) < 1),
    ]
    prior: MixturePrior = MixturePrior()
    n_features: vocab.Count = 2000
    alpha: vocab.Positive = 300.0
    n_train: Annotated[int, vocab.at_least(4)] = 100
    n_test: vocab.Count = 1000
    replicates: vocab.Count = 2
    n_chains: Annotated[int, vocab.at_least(2)] = 2
    n_warmup: vocab.Natural = 100
    n_draws: Annotated[int, vocab.at_least(4)] = 200
    ties: Ties = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        sim.check_ks(self.ks, self.n_features)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each replicate and number of features."""
        first, second = self.response
        data = sim.MixtureSettings(self.n_features, self.alpha, (first, second), self.n_train, self.n_test)
        return [
            vocab.Cell.of(
                {"n": self.n_train, "k": k, "replicate": replicate},
                sample_mixture,
                self,
                data=data,
                data_seed=seed_for(purpose="mixture cases", replicate=replicate, seed=self.seed),
                chains={"n_chains": self.n_chains, "n_warmup": self.n_warmup, "n_draws": self.n_draws},
                chain_seed=seed_for(purpose="mixture chains", replicate=replicate, k=k, seed=self.seed),
            )
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return errors, losses and diagnostics of the chains, and their figures."""
        errors, losses = comparison_tables(("n",), rows, self.n_features)
        stacked = sim.by_correction(rows)
        groups = list(vocab.groups(stacked, "k", "correction"))
        lines = [{"k": labels["k"], **_chain(ours, labels["correction"])} for labels, ours in groups]
        diagnostics = vocab.Table.of("Markov chains", lines, _CHAIN_COLUMNS, name="chains")
        notes = [
            f"{self.n_chains} chains of {self.n_draws} sweeps after {self.n_warmup} each; true log(alpha) "
            f"{math.log(self.alpha):.2f}. R-hat and effective sample size are the worst of log(alpha), log(alpha0) and "
            "the log of the joint density, over the replicates; empty where R-hat is not finite, as for chains that "
            "are stuck at different values. Converged: replicates in which every R-hat is at most "
            f"{R_HAT_LIMIT} and every effective sample size at least {LEAST_SAMPLE_SIZE:.0f}."
        ]
        lagging = [f"k = {one['k']} {one['correction']}" for one, ours in groups if not ours["converged"].all()]
        if lagging:
            notes.append(
                f"Warning: the chains have not converged in every replicate of {', '.join(lagging)}. These lines are "
                "rough; set n_draws or n_warmup for longer chains."
            )
        figures = comparison_figures(
            f"n = {self.n_train}", errors.frame, losses.frame, self.n_features, model="mixture model"
        )
        done = vocab.successes(rows)
        numbers = vocab.numbers_of("binary mixture models", gains(done), done) if len(done) else []
        return vocab.Outcome((errors, losses, diagnostics), figures, numbers, notes)


def _chain(ours: pd.DataFrame, correction: str) -> dict[str, object]:
    """Return the diagnostics of the replicates; NaN where one of them is not defined."""
    return {
        "replicates": len(ours),
        "correction": correction,
        "mean log(alpha)": ours["mean_log_alpha"].mean(),
        "largest R-hat": float(pd.to_numeric(ours["r_hat"]).max(skipna=False)),
        "smallest effective sample size": float(pd.to_numeric(ours["effective_sample_size"]).min(skipna=False)),
        "converged": f"{int(ours['converged'].sum())} of {len(ours)}",
        "seconds": ours["seconds"].mean(),
    }


_CHAIN_COLUMNS = {
    **{"k": "", "replicates": "", "correction": "", "mean log(alpha)": ".2f", "largest R-hat": ".3f"},
    **{"smallest effective sample size": ".0f", "converged": "", "seconds": ".1f"},
}
_CHAINS = {
    **{"seconds": POSITIVE, "mean_log_alpha": NUMBER, "converged": FLAG},
    **{"r_hat": POSITIVE | NOTHING, "effective_sample_size": POSITIVE | NOTHING},
}


@job({"gamma": SHARE, **sim.both(sim.QUALITY | _CHAINS)})
def sample_mixture(
    data: sim.MixtureSettings,
    data_seed: int,
    prior: MixturePrior,
    ties: Ties,
    k: int,
    chains: Mapping[str, int],
    chain_seed: int,
) -> dict[str, vocab.Json]:
    """Draw cases from a mixture model, select k features, sample the model with and without correction, and predict.

    `chains` are arguments of `MixtureSampler`.
    """
    cases = sim.simulate_mixture(data, np.random.default_rng(data_seed))
    from sklearn.exceptions import ConvergenceWarning

    shared, sampler = prior.models()
    sampler = replace(sampler, **chains, random_state=chain_seed)
    given: dict[str, Any] = {"features": "mixture", "prior": shared, "sampler": sampler, "calibrate": False}
    result: dict[str, vocab.Json] = {}
    for name, correct in (("corrected", True), ("uncorrected", False)):
        fit: Callable[[], Any] = functools.partial(fit_selection_corrected, cases.X, cases.y, k, correct, ties, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table says which chains have not converged
            found, result[f"{name}_seconds"] = timed(fit)
        result |= sim.quality_of(name, cases.y_test, found.predict_proba(cases.X_test))
        result["gamma"] = found.selection.gamma
        result[f"{name}_mean_log_alpha"] = float(found.log_alpha.mean())
        result[f"{name}_converged"] = found.converged
        for quantity in ("r_hat", "effective_sample_size"):
            value = getattr(found, quantity)
            # JSON has neither infinity nor NaN.
            result[f"{name}_{quantity}"] = value if math.isfinite(value) else None
    return result
