"""Errors, log probability and squared error against the number of selected features, on simulated cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.execution.job import Job
from trimbench.experiments.plan import Cell, LineFigure, Outcome, Table
from trimbench.experiments.selection_bias import jobs
from trimbench.experiments.selection_bias.settings import CORRECTIONS, SimulationPlan

if TYPE_CHECKING:
    import pandas as pd

_LOSSES = {"minus_log_probability": "AMLP", "squared_error": "squared error"}


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
        import pandas as pd

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
                    errors.append({**label, "correction": correction, "cut-off": cut_off} | _errors(ours, correction))
                    losses.append({**label, "correction": correction} | _losses(ours, correction))
        tables = (
            Table(
                "",
                "Expected and actual error rates, means over replicates",
                pd.DataFrame(errors, columns=_ERROR_COLUMNS),
                {"cut-off": ".3f", "within 2 se": ""}
                | dict.fromkeys(("expected error", "actual error", "actual - expected", "se of difference"), ".4f"),
            ),
            Table(
                "losses",
                "Average minus log probability (AMLP) and average squared error, means over replicates",
                pd.DataFrame(losses, columns=_LOSS_COLUMNS),
                dict.fromkeys(_LOSS_COLUMNS[4:], ".4f"),
            ),
        )
        figures = [figure for sizes in self.class_sizes for figure in _figures(sum(sizes), tables, self.n_features)]
        notes = [
            "The slides say 100 training cases, but their cut-offs and calibration fit 200 (100 of each class); both "
            "are run.",
            "Cut-off: smallest absolute correlation of a selected feature. se: standard error of the mean difference "
            "over replicates. With all features there is no selection and nothing to correct.",
        ]
        return Outcome(tables, figures, {}, notes)


_ERROR_COLUMNS = [
    *("n", "k", "replicates", "correction", "cut-off", "expected error", "actual error", "actual - expected"),
    *("se of difference", "within 2 se"),
]
_LOSS_COLUMNS = [
    "n",
    "k",
    "replicates",
    "correction",
    *(f"{title}{end}" for title in _LOSSES.values() for end in ("", " se")),
]


def _errors(ours: pd.DataFrame, correction: str) -> dict[str, Any]:
    expected, actual = ours[f"{correction}_expected_error"], ours[f"{correction}_actual_error"]
    gap, spread = float((actual - expected).mean()), _standard_error(actual - expected)
    within = "–" if math.isnan(spread) else ("yes" if abs(gap) <= 2 * spread else "no")
    return {
        "expected error": float(expected.mean()),
        "actual error": float(actual.mean()),
        "actual - expected": gap,
        "se of difference": spread,
        "within 2 se": within,
    }


def _losses(ours: pd.DataFrame, correction: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, title in _LOSSES.items():
        values = ours[f"{correction}_{key}"]
        found |= {title: float(values.mean()), f"{title} se": _standard_error(values)}
    return found


def _standard_error(values: pd.Series) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _figures(n: int, tables: Sequence[Table], n_features: int) -> list[LineFigure]:
    import pandas as pd

    errors, losses = (table.frame[table.frame["n"] == n] for table in tables)
    figures = []
    for correction in reversed(CORRECTIONS):
        part = errors[errors["correction"] == correction]
        lines = [
            pd.DataFrame({"series": f"{kind} error", "x": part["k"], "y": part[f"{kind} error"]})
            for kind in ("expected", "actual")
        ]
        figures.append(
            LineFigure(
                f"errors_{correction}_n{n}",
                f"Expected and actual error, {correction} (n = {n})",
                f"features selected out of {n_features}",
                "error rate",
                pd.concat(lines, ignore_index=True),
                x_scale="log",
            )
        )
    for key, title in _LOSSES.items():
        points = pd.DataFrame(
            {
                "series": losses["correction"],
                "x": losses["k"],
                "y": losses[title],
                "low": losses[title] - 2 * losses[f"{title} se"].fillna(0),
                "high": losses[title] + 2 * losses[f"{title} se"].fillna(0),
            }
        )
        figures.append(
            LineFigure(
                f"{key}_n{n}",
                f"{title[0].upper()}{title[1:]} with and without correction (n = {n}; band: 2 standard errors)",
                f"features selected out of {n_features}",
                "average minus log probability" if title == "AMLP" else "average squared error",
                points,
                x_scale="log",
            )
        )
    return figures
