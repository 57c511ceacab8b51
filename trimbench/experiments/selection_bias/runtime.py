"""Seconds for all predictions against the number of selected features."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Runtime:
    """Time from the training cases to the predictions of all test cases, on one core.

    Attributes
    ----------
    ks : list of int
    printed : dict
        For "corrected" and "uncorrected", the printed seconds by k, to draw and to divide by.
    repeats : int
        Measurements of each time, of which the median counts.
    class_sizes : [n0, n1]
    n_features, alpha, test_sizes, prior, ties, seed
        As for `Simulation`.
    """

    class_sizes: list[int]
    test_sizes: list[int]
    ks: list[int]
    prior: dict[str, Any]
    printed: dict[str, Any]
    n_features: int = 10_000
    alpha: float = 300.0
    repeats: int = 3
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        self._plan.check([self.class_sizes], self.ks, self.repeats)
        if not set(self.printed) <= set(CORRECTIONS):
            raise ValueError(f"printed must have the keys {list(CORRECTIONS)}, got {list(self.printed)}")

    @property
    def _plan(self) -> SimulationPlan:
        return SimulationPlan(self.n_features, self.alpha, self.test_sizes, self.prior, self.ties, self.seed)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each number of features."""
        parameters = self._plan.parameters(self.class_sizes, 0) | {"repeats": self.repeats}
        return [
            Cell({"n": sum(self.class_sizes), "k": k}, Job.create(jobs.prediction_seconds, parameters | {"k": k}))
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return seconds, printed seconds and their ratio."""
        import pandas as pd

        lines: list[dict[str, Any]] = []
        points: list[dict[str, Any]] = []
        reproduced: dict[str, float | None] = {}
        for found in rows[rows["status"] == "ok"].to_dict("records"):
            k = int(found["k"])
            line: dict[str, Any] = {"k": k}
            for correction in reversed(CORRECTIONS):
                seconds = float(found[f"{correction}_seconds"])
                printed = self._printed(correction, k)
                line |= {f"{correction} printed": printed, f"{correction} ours": seconds}
                line[f"{correction} ratio"] = printed / seconds if printed is not None else None
                reproduced[f"k = {k}/{correction} seconds"] = seconds
                points.append({"series": f"{correction}, ours", "x": k, "y": seconds})
                if printed is not None:
                    points.append({"series": f"{correction}, printed", "x": k, "y": printed})
            lines.append(line)
        columns = ["k", *(f"{c} {q}" for c in reversed(CORRECTIONS) for q in ("printed", "ours", "ratio"))]
        formats = {c: ".0f" if c.endswith("ratio") else ".2f" if c.endswith("printed") else ".3f" for c in columns[1:]}
        title = f"Seconds for {sum(self.test_sizes)} test cases, {sum(self.class_sizes)} training cases"
        figure = LineFigure(
            "",
            title,
            f"features selected out of {self.n_features}",
            "seconds",
            pd.DataFrame(points, columns=["series", "x", "y"]),
            marks={"corrected, printed": "points"},  # it coincides with the other printed line
            x_scale="log",
            y_scale="log",
        )
        table = Table("", title, pd.DataFrame(lines, columns=columns), formats)
        notes = [
            "Printed seconds are those of the authors' program, on their machine, with coarser grids (not stated in "
            "the slides; the R package's defaults are 5 alphas and 41 and 41 thetas). Ours are from selection to "
            "predictions, median of several, on one core.",
        ]
        return Outcome((table,), (figure,), reproduced, notes)

    def _printed(self, correction: str, k: int) -> float | None:
        found = {int(key): float(value) for key, value in self.printed.get(correction, {}).items()}
        return found.get(k)
