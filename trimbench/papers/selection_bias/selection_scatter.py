"""True against sample correlation of every feature, and the cut-offs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.settings import (
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


@dataclass(frozen=True)
class SelectionScatter:
    """How much stronger selected features look than they are.

    Attributes
    ----------
    ks : list of int
        Numbers of features to select: each has a cut-off.
    class_sizes : list of [n0, n1]
        Training cases.
    n_features, alpha, test_sizes, replicates, prior, ties, seed
        As for `Simulation`, whose data this is; the first replicate is drawn.
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
        """Return one job for each size and replicate."""
        cells = []
        for sizes in self.class_sizes:
            for replicate in range(self.replicates):
                parameters = self._plan.parameters(sizes, replicate)
                parameters |= {"ks": self.ks, "with_points": replicate == 0}
                job = Job.create(jobs.true_and_sample_correlations, parameters)
                cells.append(Cell({**labels_of_sizes(sizes), "replicate": replicate}, job))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the cut-offs and mean correlations, and a scatter plot for each size."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines: list[dict[str, Any]] = []
        figures = []
        reproduced: dict[str, float | None] = {}
        intervals: dict[str, tuple[float, float]] = {}
        jobs: dict[str, list[str]] = {}
        for sizes in self.class_sizes:
            ours = with_sizes(done, sizes).to_dict("records")
            for place, k in enumerate(self.ks if ours else []):
                line: dict[str, Any] = {**labels_of_sizes(sizes), "k": k, "replicates": len(ours)}
                row = f"{show_sizes(sizes)}, k = {k}"
                key = f"{row}/cut-off"
                jobs[row] = [found["job"] for found in ours]
                cut_off, interval = mean_and_interval([found["gammas"][place] for found in ours])
                reproduced[key] = line["cut-off"] = cut_off
                if interval is not None:
                    intervals[key] = line["low"], line["high"] = interval
                for name in ("sample", "true"):
                    line[f"mean {name}"] = float(np.mean([found[f"mean_{name}"][place] for found in ours]))
                lines.append(line)
            figures += [self._scatter(found, sizes) for found in ours if found["replicate"] == 0]
        columns = ["n0", "n1", "k", "replicates", "cut-off", "low", "high", "mean sample", "mean true"]
        table = Table(
            "",
            "Cut-offs, and mean absolute correlation of the selected features in the sample and in truth",
            pd.DataFrame(lines, columns=columns),
            dict.fromkeys(columns[3:], ".3f"),
        )
        notes = [
            *self._plan.notes(self.class_sizes),
            "Low and high are the ends of a 95 % prediction interval for one more data set (Student's, from the spread "
            "over replicates). The mean true correlation is taken in the direction that the sample shows.",
        ]
        return Outcome((table,), figures, reproduced, notes, intervals, jobs)

    def _scatter(self, found: dict[Any, Any], sizes: list[int]) -> LineFigure:
        import pandas as pd

        points = pd.DataFrame({"series": "feature", "x": found["true"], "y": found["sample"]})
        last = max(abs(points["x"]))
        equal = pd.DataFrame({"series": "sample = true", "x": [-last, last], "y": [-last, last]})
        levels: dict[str, float] = {}
        for k, gamma in zip(self.ks, found["gammas"], strict=True):
            levels |= {f"k = {k}": gamma, f"k = {k} ": -gamma}
        return LineFigure(
            stem_of_sizes(sizes),
            f"Correlation of features with the response ({show_sizes(sizes)})",
            "true correlation",
            "sample correlation",
            pd.concat([points, equal], ignore_index=True),
            levels,
            {"feature": "cloud", "sample = true": "guide"},
        )
