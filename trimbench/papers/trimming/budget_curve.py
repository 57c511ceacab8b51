"""Agreement and accuracy against the budget, on a classifier that is learned from data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table, check_axis
from trimbench.papers.trimming import jobs
from trimbench.trimming.classifier import checked_threshold
from trimbench.trimming.engines import check_engine

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BudgetCurve:
    """Agreement and accuracy of trimmings of a learned naive Bayes classifier against the budget.

    Attributes
    ----------
    datasets : list of str
    budgets : list of int
    splits : int
        Number of random splits.
    positive : str, optional
        Class that the threshold speaks of; default: the rarer one.
    threshold, smoothing, test_fraction : float
    engine : str
    evaluation_limit : int, optional
        After so many evaluations of the criterion a search is stopped; its optimality gap is then reported.
    seed : int
    """

    datasets: list[str]
    budgets: list[int]
    splits: int = 1
    positive: str | None = None
    threshold: float = 0.5
    smoothing: float = 1.0
    test_fraction: float = 0.2
    engine: str = "auto"
    evaluation_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        checked_threshold(self.threshold)
        check_engine(self.engine)
        if self.splits < 1:
            raise ValueError(f"splits must be 1 or more, got {self.splits}")
        check_axis("datasets", self.datasets)
        check_axis("budgets", self.budgets)
        if min(self.budgets) < 0:
            raise ValueError(f"budgets must be numbers >= 0, got {self.budgets}")
        if not 0 < self.test_fraction < 1:
            raise ValueError(f"test_fraction must be between 0 and 1, got {self.test_fraction}")
        if not 0 <= self.smoothing < math.inf:
            raise ValueError(f"smoothing must be a number >= 0, got {self.smoothing}")
        if self.evaluation_limit is not None and self.evaluation_limit < 1:
            raise ValueError(f"evaluation_limit must be 1 or more, or null, got {self.evaluation_limit}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set, split and budget."""
        cells = []
        for dataset in self.datasets:
            declaration = catalogue.dataset(dataset)
            # Data without a declared fingerprint (a user's own) is read once to know what it is.
            sha256 = declaration.facts.sha256 or load_dataset(declaration, cache).sha256
            for split in range(self.splits):
                for budget in self.budgets:
                    parameters = {
                        "dataset": catalogue.dataset_mapping(dataset),
                        "name": dataset,
                        "positive": self.positive,
                        "budget": budget,
                        "threshold": self.threshold,
                        "smoothing": self.smoothing,
                        "test_fraction": self.test_fraction,
                        "split_seed": seed_for(purpose="split", dataset=dataset, split=split, seed=self.seed),
                        "engine": self.engine,
                        "evaluation_limit": self.evaluation_limit,
                    }
                    job = Job.create(jobs.trim_learned, parameters, {f"dataset/{dataset}": sha256})
                    labels = {"dataset": dataset, "split": split, "budget": budget}
                    cells.append(Cell(labels, job, (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the splits, and their curves."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines: list[dict[str, Any]] = []
        figures = []
        for dataset in self.datasets:
            ours = done[done["dataset"] == dataset]
            points: list[dict[str, Any]] = []
            for budget in self.budgets:
                group = ours[ours["budget"] == budget]
                if len(group):
                    lines.append(_curve_line(dataset, budget, group))
                    points += _points(budget, group)
            if points:
                figures.append(
                    LineFigure(
                        "" if len(self.datasets) == 1 else dataset,
                        f"Trimming a naive Bayes classifier ({dataset})",
                        "budget (number of features kept)",
                        "probability",
                        pd.DataFrame(points),
                        {"accuracy with all features": float(ours["full_test_accuracy"].mean())},
                        interval="range over the splits",
                    )
                )
        frame = pd.DataFrame(lines, columns=_CURVE_COLUMNS)
        table = Table("", "Trimming learned classifiers: means over the splits", frame, _CURVE_FORMATS)
        notes = [
            "ECA is exact for the trimming that is given; 'largest gap' bounds how much better any trimming within the "
            "budget could be, and 'proven' counts the splits whose trimming is proven optimal.",
            "Bars in the figure span the splits.",
        ]
        return Outcome((table,), figures, {}, notes)


def _curve_line(dataset: str, budget: int, group: pd.DataFrame) -> dict[str, Any]:
    gap = (group["upper_bound"] - group["agreement"]).clip(lower=0)
    return {
        "dataset": dataset,
        "budget": budget,
        "splits": len(group),
        "ECA": group["agreement"].mean(),
        "largest gap": gap.max(),
        "proven": int(group["optimal"].sum()),
        "test agreement": group["test_agreement"].mean(),
        "test accuracy": group["test_accuracy"].mean(),
        "full test accuracy": group["full_test_accuracy"].mean(),
        "evaluations": group["n_evaluations"].mean(),
        "seconds": group["method_seconds"].mean(),
    }


def _points(budget: int, group: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "series": series,
            "x": budget,
            "y": group[column].mean(),
            "low": group[column].min(),
            "high": group[column].max(),
        }
        for series, column in _CURVES.items()
    ]


_CURVE_COLUMNS = [
    "dataset",
    "budget",
    "splits",
    "ECA",
    "largest gap",
    "proven",
    "test agreement",
    "test accuracy",
    "full test accuracy",
    "evaluations",
    "seconds",
]
_CURVES = {"expected agreement (ECA)": "agreement", "accuracy on test rows": "test_accuracy"}
_CURVE_FORMATS = {
    "ECA": ".4f",
    "largest gap": ".1e",
    "test agreement": ".4f",
    "test accuracy": ".4f",
    "full test accuracy": ".4f",
    "evaluations": ".0f",
    "seconds": ".2f",
}
