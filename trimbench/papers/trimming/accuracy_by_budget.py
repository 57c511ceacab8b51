"""Agreement and accuracy against the budget, for trimmings of a classifier that is learned from data."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs, dataset_of
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.checks import check_counts
from trimbench.papers.trimming.classifiers import CODE, LearnedOnSplits, Learning, Split
from trimbench.papers.validation import settings
from trimbench.trimming.engines.choice import EngineName
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd


@settings
class AccuracyByBudget(LearnedOnSplits):
    """Agreement and accuracy of trimmings of a learned naive Bayes classifier against the budget.

    The threshold applies to the class `positive`, by default the rarer one. A search stops after `evaluation_limit`
    evaluations of the criterion, and its optimality gap is reported.
    """

    datasets: list[str]
    budgets: list[int]
    splits: int = 1
    positive: str | None = None
    engine: EngineName = "auto"
    evaluation_limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis("datasets", self.datasets)
        check_axis("budgets", self.budgets)
        if min(self.budgets) < 0:
            raise ValueError(f"budgets must be 0 or more, got {self.budgets}")
        check_counts(splits=self.splits, evaluation_limit=self.evaluation_limit)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set, split and budget."""
        return [
            Cell.of(
                {"dataset": dataset, "split": split, "budget": budget},
                trim_learned,
                learning=self.learning(dataset, split, inputs),
                positive=self.positive,
                budget=budget,
                engine=self.engine,
                evaluation_limit=self.evaluation_limit,
            )
            for dataset in self.datasets
            for split in range(self.splits)
            for budget in self.budgets
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the splits, and their curves."""
        done = successes(rows)
        lines = [
            _line(dataset, budget, group)
            for dataset in self.datasets
            for budget in self.budgets
            if len(group := done[(done["dataset"] == dataset) & (done["budget"] == budget)])
        ]
        table = Table.of("Trimming learned classifiers: means over the splits", lines, _FORMATS)
        figures = [
            self._figure(dataset, ours) for dataset in self.datasets if len(ours := done[done["dataset"] == dataset])
        ]
        return Outcome((table,), figures, (), _NOTES)

    def _figure(self, dataset: str, done: pd.DataFrame) -> LineFigure:
        import pandas as pd

        points = [
            {"series": series, "x": budget, "y": values.mean(), "low": values.min(), "high": values.max()}
            for budget in self.budgets
            for series, column in _CURVES.items()
            if len(values := done[column][done["budget"] == budget])
        ]
        return LineFigure(
            f"{shown_name(dataset)}: trimming a naive Bayes classifier",
            "budget (number of features kept)",
            "probability",
            pd.DataFrame(points),
            name="" if len(self.datasets) == 1 else dataset,
            levels={"accuracy with all features": float(done["full_test_accuracy"].mean())},
            interval="range over the splits",
        )


def _line(dataset: str, budget: int, group: pd.DataFrame) -> dict[str, object]:
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


_CURVES = {
    "expected agreement (ECA)": "agreement",
    "agreement on test rows": "test_agreement",
    "accuracy on test rows": "test_accuracy",
}
_FORMATS = {
    "dataset": "",
    "budget": "",
    "splits": "",
    "ECA": ".4f",
    "largest gap": ".1e",
    "proven": "",
    **dict.fromkeys(("test agreement", "test accuracy", "full test accuracy"), ".4f"),
    "evaluations": ".0f",
    "seconds": ".2f",
}
_NOTES = (
    "The ECA of each trimming is exact; 'largest gap' bounds how much better any trimming within the budget could be, "
    "and 'proven' counts the splits whose trimming is proven optimal.",
    "Bars in the figure span the splits.",
)


@job_function(code=CODE)
def trim_learned(
    learning: Learning, positive: str | None, budget: float, engine: EngineName, evaluation_limit: int | None
) -> dict[str, Json]:
    """Learn a naive Bayes classifier on a split of a data set, trim it, and test both."""
    loaded = dataset_of(learning["dataset"])
    split = Split.of(loaded.features, loaded.target, learning)
    rarer = str(loaded.target.value_counts().index[-1])
    classifier = split.learned(positive or rarer, learning)
    start = time.perf_counter()
    trimming = trim(classifier, budget, engine=engine, evaluation_limit=evaluation_limit)
    seconds = time.perf_counter() - start
    return {
        "n_features": classifier.n_features,
        "n_test": len(split.test),
        "features": list(trimming.features),
        "agreement": trimming.agreement,
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        **split.tested(classifier, trimming.classifier),
        "log2_instances": math.log2(math.prod(classifier.cardinalities)),
    }
