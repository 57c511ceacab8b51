"""Predicted against actual frequencies, in ten classes of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.execution.job import Job
from trimbench.experiments.plan import Cell, LineFigure, Outcome, Table
from trimbench.experiments.selection_bias import jobs
from trimbench.experiments.selection_bias.settings import CORRECTIONS, SimulationPlan, mean_and_range

if TYPE_CHECKING:
    import pandas as pd

_CATEGORIES = [f"{i / 10:.1f} - {(i + 1) / 10:.1f}" for i in range(10)]


@dataclass(frozen=True)
class Calibration:
    """How often y = 1 among test cases whose predicted probability is in each of ten classes.

    Attributes
    ----------
    k : int
        Features to select.
    class_sizes : list of [n0, n1]
        Training cases; the first is held against the printed table.
    n_features, alpha, test_sizes, replicates, prior, ties, seed
        As for `Simulation`, with which the jobs are shared.
    """

    class_sizes: list[Any]
    test_sizes: list[int]
    prior: dict[str, Any]
    k: int = 1000
    n_features: int = 10_000
    alpha: float = 300.0
    replicates: int = 20
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        self._plan.check(self.class_sizes, [self.k], self.replicates)

    @property
    def _plan(self) -> SimulationPlan:
        return SimulationPlan(self.n_features, self.alpha, self.test_sizes, self.prior, self.ties, self.seed)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each size and replicate."""
        return [
            Cell(
                {"n": sum(sizes), "k": self.k, "replicate": replicate},
                Job.create(jobs.select_and_predict, self._plan.parameters(sizes, replicate) | {"k": self.k}),
            )
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return a table and a figure for each size."""
        import pandas as pd

        tables, figures = [], []
        reproduced: dict[str, float | None] = {}
        intervals: dict[str, tuple[float, float]] = {}
        for place, sizes in enumerate(self.class_sizes):
            n = sum(sizes)
            ours = rows[(rows["status"] == "ok") & (rows["n"] == n)]
            lines: list[dict[str, Any]] = [{"category": category} for category in _CATEGORIES]
            points = [{"series": "predicted = actual", "x": x, "y": x} for x in (0.0, 1.0)]
            for correction in CORRECTIONS if len(ours) else ():
                for category, line in enumerate(lines):
                    found = _summary(ours, correction, category)
                    line |= {f"{correction} {quantity}": mean for quantity, (mean, _) in found.items()}
                    if place == 0:
                        for quantity, (mean, interval) in found.items():
                            key = f"{_CATEGORIES[category]}/{correction} {quantity}"
                            reproduced[key], intervals[key] = mean, interval
                    points.append(
                        {
                            "series": correction,
                            "x": found["predicted"][0],
                            "y": found["actual"][0],
                            "low": found["actual"][1][0],
                            "high": found["actual"][1][1],
                        }
                    )
            title = f"{self.k} features selected out of {self.n_features}, {n} training cases"
            # Where every class is empty in every replicate there is nothing to draw.
            drawn = (
                pd.DataFrame(points).dropna(subset=["y"]) if len(ours) else pd.DataFrame(columns=["series", "x", "y"])
            )
            tables.append(Table(f"n{n}" if place else "", _title(title, ours), _frame(lines), _FORMATS))
            figures.append(
                LineFigure(
                    f"n{n}" if place else "",
                    f"Calibration: {title}",
                    "mean predicted probability of y = 1",
                    "frequency of y = 1",
                    drawn,
                    marks={"predicted = actual": "guide"},
                )
            )
        return Outcome(tables, figures, reproduced, _NOTES, intervals)


_NOTES = [
    "Numbers of cases are means over replicates; predicted and actual are those of all replicates taken together; "
    "bands and intervals hold 95 % of the replicates. The slides show one data set.",
    "The slides say 100 training cases, but their table fits 200 (100 of each class); both are run.",
]
_COLUMNS = ["category", *(f"{c} {q}" for c in CORRECTIONS for q in ("cases", "predicted", "actual"))]
_FORMATS = {c: ".1f" if c.endswith("cases") else ".3f" for c in _COLUMNS[1:]}


def _title(title: str, ours: pd.DataFrame) -> str:
    return f"Calibration: {title}, {len(ours)} replicates"


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(lines, columns=_COLUMNS)


def _summary(ours: pd.DataFrame, correction: str, category: int) -> dict[str, tuple[float, tuple[float, float]]]:
    """Return number of cases, mean prediction and frequency: over all replicates, and the range of single ones."""
    counts, predicted, positives = (
        np.array([row[category] for row in ours[f"{correction}_{key}"]], dtype=float)
        for key in ("counts", "predicted_sums", "positives")
    )
    found = {"cases": mean_and_range(counts.tolist())}
    filled = counts > 0
    for name, sums in (("predicted", predicted), ("actual", positives)):
        if not filled.any():
            found[name] = (float("nan"), (float("nan"), float("nan")))
            continue
        _, interval = mean_and_range((sums[filled] / counts[filled]).tolist())
        found[name] = (float(sums.sum() / counts.sum()), interval)
    return found
