"""Predictions against the share of missing features, on any data set."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from pydantic import PositiveInt

from trimbench.papers.conformant.encoded_rows import rows_at_hand
from trimbench.papers.conformant.evaluation import MEASURES, check_missing, evaluation_cells
from trimbench.papers.conformant.mask_means import curves, means_table, summarise, title_of
from trimbench.papers.conformant.protocol import Encoding, Task, make_task
from trimbench.papers.data.missingness import Mechanism, Missingness, Rounding
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.validation import settings, unknown

if TYPE_CHECKING:
    import pandas as pd

_NOTES = (
    "Means over random masks; bars are 95 % confidence intervals of the mean. Constants for imputation are those of "
    "the training rows. The axis of entropies is logarithmic: that of max imputation can be far above the others.",
)


@settings
class MissingFeatures:
    """Every method against the share of missing features, on data sets of the user's choice.

    Data sets need no protocol. `mechanism`, `rounding` and `rates` are those of a
    `trimbench.papers.data.missingness.Missingness`; `repetitions` counts the random masks for each fraction.
    """

    datasets: list[str]
    missing: list[float]
    repetitions: PositiveInt = 3
    encoding: Encoding = "paper"
    mechanism: Mechanism = "mcar"
    rounding: Rounding = "down"
    rates: dict[str, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_missing(self.missing, Missingness(self.mechanism, self.rounding, self.rates))

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set, fraction and repetition."""
        cells = []
        for name in self.datasets:
            task = make_task(inputs, name, self.encoding, self.seed)
            cells += evaluation_cells(task, self.missing, self.repetitions, self._missingness(task), self.seed)
        return cells

    def _missingness(self, task: Task) -> Missingness:
        """Return how features of a data set go missing, without what its mechanism ignores."""
        rates = self.rates if self.mechanism == "rates" else {}
        if rates and (rows := rows_at_hand(task)):
            for feature in rates:
                if feature not in rows.features:
                    raise unknown(f"rates: a feature of {task.name}", rows.features, feature)
        image = task.protocol.image if self.mechanism == "block" and task.protocol.image else None
        return Missingness(self.mechanism, self.rounding, rates, image)

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the repetitions, and their curves."""
        tables, figures = [], []
        for name in self.datasets:
            done, shown_name = successes(rows, dataset=name), title_of(rows, name)
            for measure, title in MEASURES.items():
                stem = f"{name}_{measure}" if len(self.datasets) > 1 else measure
                main = "" if (name, measure) == (self.datasets[0], "accuracy") else stem
                summary = summarise(done, measure)
                tables.append(means_table(f"{shown_name}: {title}", summary, main))
                if len(summary) and measure != "f1_weighted":
                    figures.append(curves(main, f"{shown_name}: {title.split(' to ')[0]}", measure, title, summary))
        tables.sort(key=lambda table: table.name != "")
        return Outcome(tables, sorted(figures, key=lambda figure: figure.name != ""), (), _NOTES)
