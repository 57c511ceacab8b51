"""True against sample correlation of every feature, and the cut-offs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.execution.job import Job
from trimbench.experiments.plan import Cell, LineFigure, Outcome, Table
from trimbench.experiments.selection_bias import jobs
from trimbench.experiments.selection_bias.settings import SimulationPlan, mean_and_range

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
        self._plan.check(self.class_sizes, self.ks, self.replicates)

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
                cells.append(Cell({"n": sum(sizes), "replicate": replicate}, job))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the cut-offs and mean correlations, and a scatter plot for each size."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines: list[dict[str, Any]] = []
        figures = []
        reproduced: dict[str, float | None] = {}
        intervals: dict[str, tuple[float, float]] = {}
        for sizes in self.class_sizes:
            n = sum(sizes)
            ours = done[done["n"] == n].to_dict("records")
            for place, k in enumerate(self.ks if ours else []):
                line: dict[str, Any] = {"n": n, "k": k, "replicates": len(ours)}
                key = f"n = {n}, k = {k}/cut-off"
                reproduced[key], intervals[key] = mean_and_range([found["gammas"][place] for found in ours])
                line |= {"cut-off": reproduced[key], "low": intervals[key][0], "high": intervals[key][1]}
                for name in ("sample", "true"):
                    line[f"mean {name}"] = mean_and_range([found[f"mean_{name}"][place] for found in ours])[0]
                lines.append(line)
            figures += [self._scatter(found, n) for found in ours if found["replicate"] == 0]
        columns = ["n", "k", "replicates", "cut-off", "low", "high", "mean sample", "mean true"]
        table = Table(
            "",
            "Cut-offs, and mean absolute correlation of the selected features in the sample and in truth",
            pd.DataFrame(lines, columns=columns),
            dict.fromkeys(columns[3:], ".3f"),
        )
        notes = [
            "The slides say 100 training cases, but their cut-offs fit 200 (100 of each class); both are run.",
            "Low and high are the 2.5 and 97.5 percent quantiles over replicates. The mean true correlation is taken "
            "in the direction that the sample shows.",
        ]
        return Outcome((table,), figures, reproduced, notes, intervals)

    def _scatter(self, found: dict[Any, Any], n: int) -> LineFigure:
        import pandas as pd

        points = pd.DataFrame({"series": "feature", "x": found["true"], "y": found["sample"]})
        last = max(abs(points["x"]))
        equal = pd.DataFrame({"series": "sample = true", "x": [-last, last], "y": [-last, last]})
        levels: dict[str, float] = {}
        for k, gamma in zip(self.ks, found["gammas"], strict=True):
            levels |= {f"k = {k}": gamma, f"k = {k} ": -gamma}
        return LineFigure(
            f"n{n}",
            f"Selection of features by their correlation with the response (n = {n})",
            "true correlation",
            "sample correlation",
            pd.concat([points, equal], ignore_index=True),
            levels,
            {"feature": "cloud", "sample = true": "guide"},
        )
