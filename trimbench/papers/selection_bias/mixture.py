"""The binary mixture model on simulated cases, with and without correction."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.execution.job import seed_for
from trimbench.papers.measures import prediction_quality
from trimbench.papers.selection_bias.simulated_cases import (
    CORRECTIONS,
    MixtureSettings,
    check_at_least,
    check_ks,
    simulate_mixture,
)
from trimbench.papers.selection_bias.simulation import comparison_figures, comparison_tables
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.mixture import LEAST_SAMPLE_SIZE, R_HAT_LIMIT, mixture_priors

if TYPE_CHECKING:
    import pandas as pd

_CHAIN_FORMATS = {
    "k": "",
    "replicates": "",
    "correction": "",
    "mean log(alpha)": ".2f",
    "largest R-hat": ".3f",
    "smallest effective sample size": ".0f",
    "converged": "",
    "seconds": ".1f",
}


@settings
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
        mixture_priors(**dataclasses.asdict(self))


@settings
class Mixture:
    """Predictions of the mixture model, sampled by Markov chains, on cases drawn from it.

    `response` is P(y = 1 | z) in the two latent groups; features are drawn with `alpha`. Each fit has `n_chains`, which
    discard `n_warmup` sweeps and keep `n_draws`.
    """

    ks: list[int]
    response: list[float]
    prior: MixturePrior = MixturePrior()
    n_features: int = 2000
    alpha: float = 300.0
    n_train: int = 100
    n_test: int = 1000
    replicates: int = 2
    n_chains: int = 2
    n_warmup: int = 100
    n_draws: int = 200
    ties: Ties = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self._data  # refuses what cannot be drawn
        check_ks(self.ks, self.n_features)
        check_at_least(1, replicates=self.replicates)
        check_at_least(2, n_chains=self.n_chains)
        check_at_least(0, n_warmup=self.n_warmup)
        check_at_least(4, n_draws=self.n_draws)

    @property
    def _data(self) -> MixtureSettings:
        # It refuses anything but a pair.
        return MixtureSettings(self.n_features, self.alpha, self.response, self.n_train, self.n_test)  # type: ignore[arg-type]

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each replicate and number of features."""
        return [
            Cell.of(
                {"n": self.n_train, "k": k, "replicate": replicate},
                sample_mixture,
                data=self._data,
                data_seed=seed_for(purpose="mixture cases", replicate=replicate, seed=self.seed),
                prior=self.prior,
                ties=self.ties,
                k=k,
                chains={"n_chains": self.n_chains, "n_warmup": self.n_warmup, "n_draws": self.n_draws},
                chain_seed=seed_for(purpose="mixture chains", replicate=replicate, k=k, seed=self.seed),
            )
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return errors, losses and diagnostics of the chains, and their figures."""
        groups = [({"n": self.n_train, "k": k}, ours) for k in self.ks if len(ours := successes(rows, k=k))]
        errors, losses = comparison_tables(("n",), groups, self.n_features)
        chains = [_chain_line(labels["k"], correction, ours) for labels, ours in groups for correction in CORRECTIONS]
        diagnostics = Table.of("Markov chains", chains, _CHAIN_FORMATS, name="chains")
        notes = [
            "The slides show a figure without settings or numbers; these settings are ours.",
            f"{self.n_chains} chains of {self.n_draws} sweeps after {self.n_warmup} each; true log(alpha) "
            f"{math.log(self.alpha):.2f}. R-hat and effective sample size are the worst of log(alpha), log(alpha0) and "
            "the log of the joint density, over the replicates; empty where R-hat is not finite, as for chains that "
            "are stuck at different values. Converged: replicates in which every R-hat is at most "
            f"{R_HAT_LIMIT} and every effective sample size at least {LEAST_SAMPLE_SIZE:.0f}.",
        ]
        lagging = [
            f"k = {line['k']} {line['correction']}"
            for line in chains
            if line["converged"] != "{replicates} of {replicates}".format(**line)
        ]
        if lagging:
            notes.append(
                f"Warning: the chains have not converged in every replicate of {', '.join(lagging)}. These lines are "
                "rough; set n_draws or n_warmup for longer chains."
            )
        figures = comparison_figures(
            f"n = {self.n_train}", errors.frame, losses.frame, self.n_features, model="mixture model"
        )
        return Outcome((errors, losses, diagnostics), figures, (), notes)


def _chain_line(k: int, correction: str, ours: pd.DataFrame) -> dict[str, object]:
    """Return how well the chains have mixed, over the replicates."""
    return {
        "k": k,
        "replicates": len(ours),
        "correction": correction,
        "mean log(alpha)": float(ours[f"{correction}_mean_log_alpha"].mean()),
        "largest R-hat": _extreme(ours[f"{correction}_r_hat"], "max"),
        "smallest effective sample size": _extreme(ours[f"{correction}_effective_sample_size"], "min"),
        "converged": f"{int(ours[f'{correction}_converged'].sum())} of {len(ours)}",
        "seconds": float(ours[f"{correction}_seconds"].mean()),
    }


def _extreme(values: pd.Series[float], kind: str) -> float:
    """Return the largest or smallest value; NaN if one is not defined."""
    import pandas as pd

    return float(pd.to_numeric(values).agg(kind, skipna=False))


@job_function
def sample_mixture(
    data: Mapping[str, Any],
    data_seed: int,
    prior: Mapping[str, Any],
    ties: Ties,
    k: int,
    chains: Mapping[str, int],
    chain_seed: int,
) -> dict[str, Json]:
    """Draw cases from a mixture model, select k features, sample the model with and without correction, and predict.

    `data` are the fields of a `MixtureSettings`; `prior` and `chains` are arguments of
    `trimbench.fit_selection_corrected`.
    """
    cases = simulate_mixture(MixtureSettings(**data), np.random.default_rng(data_seed))
    from sklearn.exceptions import ConvergenceWarning

    given: dict[str, Any] = {**chains, **prior}
    result: dict[str, Json] = {}
    for name, correct in (("corrected", True), ("uncorrected", False)):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table says which chains have not converged
            found = fit_selection_corrected(
                cases.X, cases.y, k, correct, ties, features="mixture", random_state=chain_seed, **given
            )
        result[f"{name}_seconds"] = time.perf_counter() - start
        quality = prediction_quality(cases.y_test, found.predict_proba(cases.X_test))
        result |= {f"{name}_{key}": value for key, value in dataclasses.asdict(quality).items()}
        result["gamma"] = found.selection.gamma
        result[f"{name}_mean_log_alpha"] = float(found.log_alpha.mean())
        result[f"{name}_converged"] = found.converged
        for quantity in ("r_hat", "effective_sample_size"):
            value = getattr(found, quantity)
            # JSON has no number for what is not defined.
            result[f"{name}_{quantity}"] = value if math.isfinite(value) else None
    return result
