"""Posterior distribution of log(alpha) with and without correction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.settings import (
    CORRECTIONS,
    SimulationPlan,
    check_at_least,
    labels_of_sizes,
    make_prior,
)
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table
from trimbench.selection_bias.prior import Prior

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class AlphaPosterior:
    """Whether the posterior of log(alpha) covers the value that the cases were drawn with.

    Attributes
    ----------
    ks : list of int
    class_sizes : [n0, n1]
        Training cases.
    n_features, alpha, test_sizes, replicates, prior, ties, seed
        As for `Simulation`, whose data this is; the first replicate is drawn.
    """

    class_sizes: list[int]
    test_sizes: list[int]
    ks: list[int]
    prior: dict[str, Any]
    n_features: int = 10_000
    alpha: float = 300.0
    replicates: int = 20
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        self._plan.check([self.class_sizes])
        self._plan.check_ks(self.ks)
        check_at_least(1, replicates=self.replicates)

    @property
    def _plan(self) -> SimulationPlan:
        return SimulationPlan(self.n_features, self.alpha, self.test_sizes, self.prior, self.ties, self.seed)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each replicate and number of features."""
        cells = []
        for replicate in range(self.replicates):
            parameters = self._plan.parameters(self.class_sizes, replicate)
            for k in self.ks:
                job = Job.create(jobs.posterior_of_alpha, parameters | {"k": k})
                cells.append(Cell({**labels_of_sizes(self.class_sizes), "k": k, "replicate": replicate}, job))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return posterior means and coverage, and a figure for each k."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines: list[dict[str, Any]] = []
        figures = []
        truth = math.log(self.alpha)
        for k in self.ks:
            ours = done[done["k"] == k].to_dict("records")
            for correction in CORRECTIONS if ours else ():
                covered = [_covers(found, correction, truth) for found in ours]
                means = [found[f"{correction}_mean_log_alpha"] for found in ours]
                lines.append(
                    {
                        "k": k,
                        "correction": correction,
                        "replicates": len(ours),
                        "true log(alpha)": truth,
                        "posterior mean": float(np.mean(means)),
                        "se": float(np.std(means, ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan,
                        "truth in central 95 %": float(np.mean(covered)),
                    }
                )
            figures += [_figure(found, k, self.n_features, truth) for found in ours if found["replicate"] == 0]
        columns = ["k", "correction", "replicates", "true log(alpha)", "posterior mean", "se", "truth in central 95 %"]
        table = Table(
            "",
            "Posterior of log(alpha): means over replicates, and how often its central 95 % hold the truth",
            pd.DataFrame(lines, columns=columns),
            dict.fromkeys(columns[3:6], ".3f") | {columns[6]: ".2f"},
        )
        n_alpha = make_prior(self.prior).n_alpha
        notes = ["The figures show the first replicate; the slides show one data set and print no number."]
        if n_alpha > Prior().n_alpha:
            notes.append(
                f"The grid has {n_alpha} values of alpha, more than the {Prior().n_alpha} of predictions, to draw "
                "narrow posteriors."
            )
        return Outcome((table,), figures, {}, notes)


def _density(found: dict[Any, Any], correction: str) -> tuple[np.ndarray, np.ndarray]:
    """Return log(alpha) and its posterior density, which integrates to 1 over the grid."""
    x, y = np.array(found["log_alpha"]), np.exp(np.array(found[f"{correction}_log_density"]))
    # A grid of one value has no width to integrate over.
    return x, y / np.trapezoid(y, x) if len(x) > 1 else y


def _covers(found: dict[Any, Any], correction: str, truth: float) -> bool:
    x, y = _density(found, correction)
    if len(x) < 2:
        return False
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x))])
    return bool(0.025 <= np.interp(truth, x, cumulative) <= 0.975)


def _figure(found: dict[Any, Any], k: int, n_features: int, truth: float) -> LineFigure:
    import pandas as pd

    parts = []
    for correction in reversed(CORRECTIONS):
        x, y = _density(found, correction)
        parts.append(pd.DataFrame({"series": correction, "x": x, "y": y}))
    points = pd.concat(parts, ignore_index=True)
    # What is far below the peak everywhere only stretches the axis.
    seen = points.loc[points["y"] > 1e-3 * points["y"].max(), "x"]
    inside = points["x"].between(min(seen.min(), truth) - 0.5, max(seen.max(), truth) + 0.5)
    return LineFigure(
        f"k{k}",
        f"Posterior of log(alpha), {k:,} feature{'s' if k > 1 else ''} selected out of {n_features:,}",
        "log(alpha)",
        "density",
        points[inside].reset_index(drop=True),
        marks=dict.fromkeys(CORRECTIONS, "density"),
        verticals={f"truth ({truth:.2f})": truth},
    )
