"""Errors, log probability and squared error against the number of selected features, on simulated cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.execution.job import Job
from trimbench.experiments.plan import Cell, Outcome
from trimbench.experiments.selection_bias import jobs
from trimbench.experiments.selection_bias.comparison import (
    comparison_figures,
    comparison_tables,
    error_line,
    loss_line,
)
from trimbench.experiments.selection_bias.settings import CORRECTIONS, SimulationPlan

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Simulation:
    """Predictions with and without correction on cases drawn from the model.

    Attributes
    ----------
    n_features : int
        p.
    alpha : float
        With which the cases are drawn.
    class_sizes : list of [n0, n1]
        Training cases.
    test_sizes : [n0, n1]
    ks : list of int
        Numbers of features to select.
    replicates : int
    prior : dict
    ties : str
    seed : int
    """

    class_sizes: list[Any]
    test_sizes: list[int]
    ks: list[int]
    prior: dict[str, Any]
    n_features: int = 10_000
    alpha: float = 300.0
    replicates: int = 20
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        self._plan.check(self.class_sizes, self.ks, self.replicates)

    @property
    def _plan(self) -> SimulationPlan:
        return SimulationPlan(self.n_features, self.alpha, self.test_sizes, self.prior, self.ties, self.seed)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each size, replicate and number of features."""
        cells = []
        for sizes in self.class_sizes:
            for replicate in range(self.replicates):
                parameters = self._plan.parameters(sizes, replicate)
                for k in self.ks:
                    job = Job.create(jobs.select_and_predict, parameters | {"k": k})
                    cells.append(Cell({"n": sum(sizes), "k": k, "replicate": replicate}, job))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables and figures of the means over the replicates."""
        done = rows[rows["status"] == "ok"]
        errors: list[dict[str, Any]] = []
        losses: list[dict[str, Any]] = []
        for sizes in self.class_sizes:
            for k in self.ks:
                ours = done[(done["n"] == sum(sizes)) & (done["k"] == k)]
                if ours.empty:
                    continue
                label = {"n": sum(sizes), "k": k, "replicates": len(ours)}
                cut_off = float(ours["gamma"].mean())
                for correction in CORRECTIONS:
                    errors.append(
                        {**label, "correction": correction, "cut-off": cut_off} | error_line(ours, correction)
                    )
                    losses.append({**label, "correction": correction} | loss_line(ours, correction))
        tables = comparison_tables(errors, losses)
        figures = [
            figure for sizes in self.class_sizes for figure in comparison_figures(sum(sizes), tables, self.n_features)
        ]
        notes = [
            "The slides say 100 training cases, but their cut-offs and calibration fit 200 (100 of each class); both "
            "are run.",
            "Cut-off: smallest absolute correlation of a selected feature. se: standard error of the mean difference "
            "over replicates. With all features there is no selection and nothing to correct.",
        ]
        return Outcome(tables, figures, {}, notes)
