"""Predicted against actual frequencies, in ten classes of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.selection_bias.settings import (
    CORRECTIONS,
    SimulatedCases,
    check_at_least,
    file_stem,
    show_sizes,
    size_labels,
)
from trimbench.papers.selection_bias.simulation import select_and_predict
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Number, prediction_interval
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_CATEGORIES = [f"{i / 10:.1f} - {(i + 1) / 10:.1f}" for i in range(10)]
_FORMATS = {"category": ""} | {
    f"{correction} {quantity}": ".1f" if quantity == "cases" else ".3f"
    for correction in CORRECTIONS
    for quantity in ("cases", "predicted", "actual")
}


@settings
class Calibration(SimulatedCases):
    """How often y = 1 among test cases whose predicted probability is in each of ten classes, with k features selected.

    The first of the class sizes is held against the printed table. The jobs are shared with `Simulation`.
    """

    k: int = 1000
    replicates: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, replicates=self.replicates)
        if not 1 <= self.k <= self.n_features:
            raise ValueError(f"k must be a number from 1 to n_features={self.n_features}, got {self.k}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each size and replicate."""
        return [
            self.cell(select_and_predict, sizes, {"k": self.k, "replicate": replicate}, k=self.k)
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return a table and a figure for each size."""
        tables, figures, numbers = [], [], []
        for sizes in self.class_sizes:
            ours, shown = successes(rows, **size_labels(sizes)), show_sizes(sizes)
            found = list(_numbers(ours))
            is_first = sizes == self.class_sizes[0]
            name = "" if is_first else file_stem(shown)
            numbers += found if is_first else []
            title = f"Calibration: {self.k:,} of {self.n_features:,} features, {shown}"
            lines = [{"category": c} | {n.quantity: n.value for n in found if n.row == c} for c in _CATEGORIES]
            tables.append(Table.of(f"{title}, {len(ours)} replicates", lines, _FORMATS, name=name))
            figures.append(_figure(title, name, found))
        notes = [
            *self.notes(),
            "Numbers of cases are means over replicates; predicted and actual are those of all replicates taken "
            "together. Bars and intervals are 95 % prediction intervals for one more data set (Student's, from the "
            "spread over replicates in which the category has cases). The slides show one data set.",
        ]
        return Outcome(tables, figures, numbers, notes)


def _numbers(ours: pd.DataFrame) -> Iterator[Number]:
    """Give for each correction and category the number of cases, the mean prediction and the frequency of y = 1."""
    if ours.empty:
        return
    jobs = tuple(ours["job"])
    for correction in CORRECTIONS:
        tables = (ours[f"{correction}_{key}"].tolist() for key in ("counts", "predicted_sums", "positives"))
        # One row for each category, one column for each replicate.
        all_counts, all_predicted, all_positives = (np.array(table, dtype=float).T for table in tables)
        for category, counts, predicted, positives in zip(
            _CATEGORIES, all_counts, all_predicted, all_positives, strict=True
        ):
            interval = prediction_interval(counts.tolist())
            yield Number(category, f"{correction} cases", float(counts.mean()), jobs, interval)
            filled = counts > 0
            for quantity, sums in (("predicted", predicted), ("actual", positives)):
                place = (category, f"{correction} {quantity}")
                if filled.any():
                    interval = prediction_interval((sums[filled] / counts[filled]).tolist())
                    yield Number(*place, float(sums.sum() / counts.sum()), jobs, interval)
                else:
                    yield Number(*place, None, jobs, reason="no prediction is in this category")


def _figure(title: str, name: str, numbers: Sequence[Number]) -> LineFigure:
    import pandas as pd

    found = {(number.row, number.quantity): number for number in numbers}
    points = []
    for correction in reversed(CORRECTIONS):
        for category in _CATEGORIES:
            predicted, actual = (found.get((category, f"{correction} {q}")) for q in ("predicted", "actual"))
            # Where a category is empty in every replicate there is nothing to draw.
            if predicted is None or actual is None or actual.value is None:
                continue
            bar = actual.interval
            low, high = np.clip((bar.low, bar.high), 0, 1) if bar is not None else (np.nan, np.nan)
            points.append({"series": correction, "x": predicted.value, "y": actual.value, "low": low, "high": high})
    points += [{"series": "predicted = actual", "x": x, "y": x} for x in (0.0, 1.0)] if points else []
    return LineFigure(
        title,
        "mean predicted probability of y = 1",
        "frequency of y = 1",
        pd.DataFrame(points, columns=["series", "x", "y", "low", "high"]),
        name=name,
        marks={"predicted = actual": "guide"},
        interval="95 % prediction interval for one more data set",
    )
