"""The binary mixture model on simulated cases, with and without correction."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.comparison import (
    comparison_figures,
    comparison_tables,
    error_line,
    loss_line,
)
from trimbench.papers.selection_bias.settings import CORRECTIONS, check_at_least
from trimbench.papers.study.plan import Cell, Outcome, Table, check_axis
from trimbench.papers.validation import unknown
from trimbench.selection_bias.adjustment import check_ties
from trimbench.selection_bias.mixture import R_HAT_LIMIT, mixture_priors
from trimbench.selection_bias.simulation import MixtureSettings

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Mixture:
    """Predictions of the mixture model, sampled by Markov chains, on cases drawn from it.

    Attributes
    ----------
    ks : list of int
        Numbers of features to select.
    n_features : int
        p.
    alpha : float
        With which the features are drawn.
    response : list of float
        P(y = 1 | z) in the two latent groups.
    n_train, n_test : int
    replicates : int
    n_chains, n_warmup, n_draws : int
        Chains for each fit; sweeps thrown away and kept in each.
    prior : dict
        Of the fit: shape and rate of alpha, shape0 and rate0 of alpha0, f1 and f2 of P(z), and the grids.
    ties : str
    seed : int
    """

    ks: list[int]
    response: list[float]
    prior: dict[str, Any]
    n_features: int = 2000
    alpha: float = 300.0
    n_train: int = 100
    n_test: int = 1000
    replicates: int = 2
    n_chains: int = 2
    n_warmup: int = 100
    n_draws: int = 200
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        check_ties(self.ties)
        check_axis("ks", self.ks)
        settings = self._data
        if not 1 <= min(self.ks) <= max(self.ks) <= settings.n_features:
            raise ValueError(f"ks must be numbers from 1 to n_features={settings.n_features}, got {self.ks}")
        check_at_least(1, replicates=self.replicates)
        check_at_least(2, n_chains=self.n_chains)
        check_at_least(0, n_warmup=self.n_warmup)
        check_at_least(4, n_draws=self.n_draws)
        known = list(inspect.signature(mixture_priors).parameters)
        for key in self.prior:
            if key not in known:
                raise unknown("prior: a key", known, str(key))
        try:
            mixture_priors(**self.prior)
        except ValueError as error:
            raise ValueError(f"prior.{error}") from error

    @property
    def _data(self) -> MixtureSettings:
        response = tuple(self.response)  # of the right length or refused
        return MixtureSettings(self.n_features, self.alpha, response, self.n_train, self.n_test)  # type: ignore[arg-type]

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each replicate and number of features."""
        data = {
            "n_features": self.n_features,
            "alpha": self.alpha,
            "response": self.response,
            "n_train": self.n_train,
            "n_test": self.n_test,
        }
        cells = []
        for replicate in range(self.replicates):
            for k in self.ks:
                parameters = {
                    "data": data,
                    "prior": dict(self.prior),
                    "ties": self.ties,
                    "k": k,
                    "n_chains": self.n_chains,
                    "n_warmup": self.n_warmup,
                    "n_draws": self.n_draws,
                    "data_seed": seed_for(purpose="mixture cases", replicate=replicate, seed=self.seed),
                    "chain_seed": seed_for(purpose="mixture chains", replicate=replicate, k=k, seed=self.seed),
                }
                cells.append(
                    Cell(
                        {"n": self.n_train, "k": k, "replicate": replicate}, Job.create(jobs.sample_mixture, parameters)
                    )
                )
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return errors, losses and diagnostics of the chains, and their figures."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        errors: list[dict[str, Any]] = []
        losses: list[dict[str, Any]] = []
        chains: list[dict[str, Any]] = []
        for k in self.ks:
            ours = done[done["k"] == k]
            if ours.empty:
                continue
            label = {"n": self.n_train, "k": k, "replicates": len(ours)}
            # With all features there is no cut-off.
            cut_off = float(ours["gamma"].mean()) if k < self.n_features else None
            for correction in CORRECTIONS:
                errors.append({**label, "correction": correction, "cut-off": cut_off} | error_line(ours, correction))
                losses.append({**label, "correction": correction} | loss_line(ours, correction))
                chains.append(
                    {
                        "k": k,
                        "replicates": len(ours),
                        "correction": correction,
                        "mean log(alpha)": float(ours[f"{correction}_mean_log_alpha"].mean()),
                        "largest R-hat": _extreme(ours[f"{correction}_r_hat"], "max"),
                        "smallest effective sample size": _extreme(ours[f"{correction}_effective_sample_size"], "min"),
                        "converged": f"{int(ours[f'{correction}_converged'].sum())} of {len(ours)}",
                        "seconds": float(ours[f"{correction}_seconds"].mean()),
                    }
                )
        tables = comparison_tables(("n",), errors, losses)
        formats = {
            **{"mean log(alpha)": ".2f", "largest R-hat": ".3f", "smallest effective sample size": ".0f"},
            "seconds": ".1f",
        }
        columns = ["k", "replicates", "correction", *list(formats)[:-1], "converged", "seconds"]
        diagnostics = Table("chains", "Markov chains", pd.DataFrame(chains, columns=columns), formats)
        notes = [
            "The slides show a figure without settings or numbers; these settings are ours.",
            f"{self.n_chains} chains of {self.n_draws} sweeps after {self.n_warmup} each; true log(alpha) "
            f"{math.log(self.alpha):.2f}. R-hat and effective sample size are the worst of log(alpha), log(alpha0) and "
            "the log of the joint density, over the replicates, from ArviZ; empty where R-hat is not finite, as of "
            "chains that stand still at different values. Converged: replicates in which every R-hat is at most "
            f"{R_HAT_LIMIT}.",
        ]
        lagging = [found for found in chains if found["converged"].split(" of ")[0] != str(found["replicates"])]
        if lagging:
            shown = ", ".join(f"k = {found['k']} {found['correction']}" for found in lagging)
            notes.append(
                f"Warning: the chains have not converged in every replicate of {shown}. These lines are rough; set "
                "n_draws or n_warmup for longer chains."
            )
        errors_of, losses_of = (table.frame for table in tables)
        figures = comparison_figures(f"n{self.n_train}", f"n = {self.n_train}", errors_of, losses_of, self.n_features)
        return Outcome((*tables, diagnostics), figures, {}, notes)


def _extreme(values: pd.Series, kind: str) -> float:
    """Return the largest or smallest value; NaN if one is not defined."""
    import pandas as pd

    return float(pd.to_numeric(values).agg(kind, skipna=False))
