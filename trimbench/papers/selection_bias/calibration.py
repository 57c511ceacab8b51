"""Predicted against actual frequencies, in ten classes of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.selection_bias.simulated_cases import (
    CORRECTIONS,
    SimulatedCases,
    check_at_least,
    file_stem,
    show_sizes,
    size_labels,
)
from trimbench.papers.selection_bias.simulation import (
    NOTE,
    OverallTest,
    overall_table,
    overall_test,
    select_and_predict,
)
from trimbench.papers.validation import settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import Number, prediction_interval
from trimbench.papers.vocabulary.reported import Reported, printed_numbers
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd

_CATEGORIES = [f"{i / 10:.1f} - {(i + 1) / 10:.1f}" for i in range(10)]
_FORMATS = {"category": ""} | {
    f"{correction} {quantity}": ".1f" if quantity == "cases" else ".3f"
    for correction in CORRECTIONS
    for quantity in ("cases", "predicted", "actual")
}
# Category and quantity, as in the printed table.
_Place = tuple[str, str]


@settings
class Calibration(SimulatedCases):
    """How often y = 1 among test cases whose predicted probability is in each of ten classes, with k features selected.

    The first of the class sizes is held against the printed table number by number, each of them against the table as a
    whole. The jobs are shared with `Simulation`.
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
        """Return a table and a figure for each size, and the overall test of the printed table."""
        tables, figures, numbers = [], [], []
        tests: list[OverallTest] = []
        printed = printed_numbers("selection_bias/calibration")
        for sizes in self.class_sizes:
            ours, shown = successes(rows, **size_labels(sizes)), show_sizes(sizes)
            quantities = _quantities(ours)
            found = [_number(place, quantity, tuple(ours["job"])) for place, quantity in quantities.items()]
            replicated = {place: quantity.replicated for place, quantity in quantities.items()}
            test = overall_test(sizes, printed, replicated)
            tests += [test] if test is not None else []
            is_first = sizes == self.class_sizes[0]
            name = "" if is_first else file_stem(shown)
            if is_first and test is not None:
                numbers = [replace(n, probability=test.probabilities.get((n.row, n.quantity))) for n in found]
            title = f"Calibration: {self.k:,} of {self.n_features:,} features, {shown}"
            lines = [{"category": c} | {n.quantity: n.value for n in found if n.row == c} for c in _CATEGORIES]
            tables.append(Table.of(f"{title}, {len(ours)} replicates", lines, _FORMATS, name=name))
            figures.append(_figure(title, name, found))
        notes = [
            *self.notes(),
            "Numbers of cases are means over replicates; predicted and actual are those of all replicates taken "
            "together. Bars and intervals are 95 % prediction intervals for one more data set (Student's, from the "
            "spread over replicates in which the category has cases). The slides show one data set.",
            NOTE,
            "The probability of a printed number is that of any of the table being as far out.",
            _on_test_cases(printed),
        ]
        return Outcome([*tables, *overall_table(tests)], figures, numbers, notes)


class _Quantity(NamedTuple):
    """A quantity over all replicates taken together, and in each of them; None and NaN where there are no cases."""

    value: float | None
    replicated: NDArray[np.float64]


def _quantities(ours: pd.DataFrame) -> dict[_Place, _Quantity]:
    """Return for each correction and category the number of cases, the mean prediction and the frequency of y = 1."""
    return dict(_each_quantity(ours)) if len(ours) else {}


def _each_quantity(ours: pd.DataFrame) -> Iterator[tuple[_Place, _Quantity]]:
    for correction in CORRECTIONS:
        tables = (ours[f"{correction}_{key}"].tolist() for key in ("counts", "predicted_sums", "positives"))
        # One row for each category, one column for each replicate.
        all_counts, all_predicted, all_positives = (np.array(table, dtype=float).T for table in tables)
        for category, counts, predicted, positives in zip(
            _CATEGORIES, all_counts, all_predicted, all_positives, strict=True
        ):
            yield (category, f"{correction} cases"), _Quantity(float(counts.mean()), counts)
            for quantity, sums in (("predicted", predicted), ("actual", positives)):
                replicated = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
                value = float(sums.sum() / counts.sum()) if counts.any() else None
                yield (category, f"{correction} {quantity}"), _Quantity(value, replicated)


def _number(place: _Place, quantity: _Quantity, jobs: tuple[str, ...]) -> Number:
    if quantity.value is None:
        return Number(*place, None, jobs, reason="no prediction is in this category")
    known = quantity.replicated[~np.isnan(quantity.replicated)]
    return Number(*place, quantity.value, jobs, prediction_interval(known.tolist()))


def _on_test_cases(printed: Mapping[_Place, Reported]) -> str:
    """Return how many test cases of each class the printed table has."""
    found = []
    for correction in CORRECTIONS:
        cases, actual = (
            [printed[category, f"{correction} {quantity}"].value for category in _CATEGORIES]
            for quantity in ("cases", "actual")
        )
        ones = sum(round(n * share) for n, share in zip(cases, actual, strict=True))
        found.append(f"{ones:,} of {sum(cases):,.0f} ({correction})")
    return f"By the printed cases and frequencies, y = 1 in {' and '.join(found)} test cases."


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
