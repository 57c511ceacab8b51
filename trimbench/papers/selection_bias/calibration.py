"""Predicted against actual frequencies, in ten classes of predictions."""

from __future__ import annotations

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
    mean_and_interval,
    show_sizes,
    stem_of_sizes,
    with_sizes,
)
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table

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
        self._plan.check(self.class_sizes)
        check_at_least(1, replicates=self.replicates)
        if not 1 <= self.k <= self.n_features:
            raise ValueError(f"k must be a number from 1 to n_features={self.n_features}, got {self.k}")

    @property
    def _plan(self) -> SimulationPlan:
        return SimulationPlan(self.n_features, self.alpha, self.test_sizes, self.prior, self.ties, self.seed)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each size and replicate."""
        return [
            Cell(
                {**labels_of_sizes(sizes), "k": self.k, "replicate": replicate},
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
        jobs: dict[str, list[str]] = {}
        for place, sizes in enumerate(self.class_sizes):
            ours = with_sizes(rows[rows["status"] == "ok"], sizes)
            lines: list[dict[str, Any]] = [{"category": category} for category in _CATEGORIES]
            points: list[dict[str, Any]] = []
            if place == 0 and len(ours):
                jobs = {category: list(ours["job"]) for category in _CATEGORIES}
            for correction in reversed(CORRECTIONS) if len(ours) else ():
                for category, line in enumerate(lines):
                    found = _summary(ours, correction, category)
                    line |= {f"{correction} {quantity}": mean for quantity, (mean, _) in found.items()}
                    for quantity, (mean, interval) in found.items() if place == 0 else ():
                        key = f"{_CATEGORIES[category]}/{correction} {quantity}"
                        reproduced[key] = mean
                        if interval is not None:
                            intervals[key] = interval
                    mean, interval = found["actual"]
                    low, high = np.clip(interval or (np.nan, np.nan), 0, 1)
                    points.append(
                        {"series": correction, "x": found["predicted"][0], "y": mean, "low": low, "high": high}
                    )
            title = f"{self.k:,} of {self.n_features:,} features, {show_sizes(sizes)}"
            # Where a category is empty in every replicate there is nothing to draw.
            drawn = [point for point in points if not np.isnan(point["y"])]
            drawn += [{"series": "predicted = actual", "x": x, "y": x} for x in (0.0, 1.0)] if drawn else []
            name = stem_of_sizes(sizes) if place else ""
            tables.append(Table(name, _title(title, ours), _frame(lines), _FORMATS))
            figures.append(
                LineFigure(
                    name,
                    f"Calibration: {title}",
                    "mean predicted probability of y = 1",
                    "frequency of y = 1",
                    pd.DataFrame(drawn, columns=["series", "x", "y", "low", "high"]),
                    marks={"predicted = actual": "guide"},
                    interval="95 % prediction interval for one more data set",
                )
            )
        notes = [
            *self._plan.notes(self.class_sizes),
            "Numbers of cases are means over replicates; predicted and actual are those of all replicates taken "
            "together. Bars and intervals are 95 % prediction intervals for one more data set (Student's, from the "
            "spread over replicates in which the category has cases). The slides show one data set.",
        ]
        return Outcome(tables, figures, reproduced, notes, intervals, jobs)


_COLUMNS = ["category", *(f"{c} {q}" for c in CORRECTIONS for q in ("cases", "predicted", "actual"))]
_FORMATS = {c: ".1f" if c.endswith("cases") else ".3f" for c in _COLUMNS[1:]}


def _title(title: str, ours: pd.DataFrame) -> str:
    return f"Calibration: {title}, {len(ours)} replicates"


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(lines, columns=_COLUMNS)


def _summary(ours: pd.DataFrame, correction: str, category: int) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """Return number of cases, mean prediction and frequency over all replicates, and intervals for one more."""
    counts, predicted, positives = (
        np.array([row[category] for row in ours[f"{correction}_{key}"]], dtype=float)
        for key in ("counts", "predicted_sums", "positives")
    )
    found = {"cases": mean_and_interval(counts.tolist())}
    filled = counts > 0
    for name, sums in (("predicted", predicted), ("actual", positives)):
        if not filled.any():
            found[name] = (float("nan"), None)
            continue
        _, interval = mean_and_interval((sums[filled] / counts[filled]).tolist())
        found[name] = (float(sums.sum() / counts.sum()), interval)
    return found
