"""Errors, log probability and squared error against the number of selected features, on simulated cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.comparison import (
    comparison_figures,
    comparison_tables,
    error_line,
    gains,
    loss_line,
)
from trimbench.papers.selection_bias.settings import (
    CORRECTIONS,
    SimulationPlan,
    check_at_least,
    labels_of_sizes,
    show_sizes,
    stem_of_sizes,
    with_sizes,
)
from trimbench.papers.study.plan import Cell, Outcome

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
        self._plan.check(self.class_sizes)
        self._plan.check_ks(self.ks)
        check_at_least(1, replicates=self.replicates)

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
                    cells.append(Cell({**labels_of_sizes(sizes), "k": k, "replicate": replicate}, job))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables and figures of the means over the replicates."""
        done = rows[rows["status"] == "ok"]
        errors: list[dict[str, Any]] = []
        losses: list[dict[str, Any]] = []
        reproduced: dict[str, float | None] = {}
        jobs: dict[str, list[str]] = {}
        for sizes in self.class_sizes:
            for k in self.ks:
                ours = with_sizes(done, sizes)
                ours = ours[ours["k"] == k]
                if ours.empty:
                    continue
                label = {**labels_of_sizes(sizes), "k": k, "replicates": len(ours)}
                # With all features there is no cut-off.
                cut_off = float(ours["gamma"].mean()) if k < self.n_features else None
                if k < self.n_features:
                    better = gains(ours)
                    row = f"{show_sizes(sizes)}, k = {k}"
                    reproduced |= {f"{row}/{name}": gain for name, gain in better.items()}
                    jobs[row] = list(ours["job"])
                for correction in CORRECTIONS:
                    errors.append(
                        {**label, "correction": correction, "cut-off": cut_off} | error_line(ours, correction)
                    )
                    losses.append({**label, "correction": correction} | loss_line(ours, correction))
        tables = comparison_tables(("n0", "n1"), errors, losses)
        figures = []
        for sizes in self.class_sizes:
            errors_of, losses_of = (with_sizes(table.frame, sizes) for table in tables)
            figures += comparison_figures(
                stem_of_sizes(sizes), show_sizes(sizes), errors_of, losses_of, self.n_features
            )
        notes = [
            *self._plan.notes(self.class_sizes),
            "Cut-off: smallest absolute correlation of a selected feature. se: standard error of the mean difference "
            "over replicates. Of lines that are right on average, one in twenty is not within 2 of them by chance.",
            "The model is calibrated on average over its prior of alpha; at the one alpha of these cases the average "
            "need not be exactly 0.",
        ]
        if self.n_features in self.ks:
            notes.append("With all features there is no selection and nothing to correct.")
        return Outcome(tables, figures, reproduced, notes, jobs=jobs)
