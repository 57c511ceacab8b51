"""Predicted against actual frequencies, in ten classes of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.papers.selection_bias.simulation import overall_tables, select_and_predict

_CATEGORIES = [f"{i / 10:.1f} - {(i + 1) / 10:.1f}" for i in range(10)]
_FORMATS = {"category": ""} | {
    f"{correction} {quantity}": ".1f" if quantity == "cases" else ".3f"
    for correction in sim.CORRECTIONS
    for quantity in ("cases", "predicted", "actual")
}
# Category and quantity, as in the printed table.
_Place = tuple[str, str]


@vocab.settings
class Calibration(sim.SimulatedCases):
    """How often y = 1 among test cases whose predicted probability is in each of ten classes, with k features selected.

    The stated class sizes (or the first, without them) are compared with the printed table number by number, and
    explained by the inferred ones; each pair of sizes is compared with the table as a whole. The jobs are shared with
    `Simulation`.
    """

    k: int = 1000
    replicates: vocab.Count = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        sim.check_ks([self.k], self.n_features, "k must be a number")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each size and replicate."""
        return [
            self.cell(select_and_predict, sizes, {"k": self.k, "replicate": replicate})
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return a table and a figure for each size, and the overall test of the printed table."""
        tables, figures = [], []
        found: dict[tuple[int, int], list[vocab.Number]] = {}
        tests: dict[tuple[int, int], vocab.Held[_Place]] = {}
        printed = vocab.printed_numbers("selection_bias/calibration")
        for n0, n1 in self.class_sizes:
            ours, shown = vocab.successes(rows, **sim.size_labels((n0, n1))), sim.show_sizes((n0, n1))
            found[n0, n1], replicated = _quantities(ours)
            if test := vocab.held_against(printed, replicated):
                tests[n0, n1] = test
            name = "" if [n0, n1] == self.class_sizes[0] else sim.file_stem(shown)
            title = f"Calibration: {self.k:,} of {self.n_features:,} features, {shown}"
            lines = [{"category": c} | {n.quantity: n.value for n in found[n0, n1] if n.row == c} for c in _CATEGORIES]
            tables.append(vocab.Table.of(f"{title}, {len(ours)} replicates", lines, _FORMATS, name=name))
            figures.append(_figure(title, name, found[n0, n1]))
        numbers = found.get(sim.STATED_SIZES, next(iter(found.values())))
        if sim.STATED_SIZES in found and (inferred := tests.get(sim.INFERRED_SIZES)):
            others = {(n.row, n.quantity): n for n in found[sim.INFERRED_SIZES]}
            numbers = [_explained(n, others, inferred) for n in numbers]
        return vocab.Outcome([*tables, *overall_tables(tests)], figures, numbers, self.notes())


def _quantities(ours: pd.DataFrame) -> tuple[list[vocab.Number], dict[_Place, Sequence[float]]]:
    """Return for each correction and category the number of cases, the mean prediction and the frequency of y = 1.

    They are those of all replicates taken together, and of each replicate, NaN where a category has no cases.
    """
    numbers: list[vocab.Number] = []
    replicated: dict[_Place, Sequence[float]] = {}
    for correction in sim.CORRECTIONS if len(ours) else ():
        # One row for each replicate, one column for each category.
        counts, predicted, positives = (
            np.array(ours[f"{correction}_{key}"].tolist(), dtype=float)
            for key in ("counts", "predicted_sums", "positives")
        )
        for place, category in enumerate(_CATEGORIES):
            n = counts[:, place]
            values = {"cases": (float(n.mean()), n)}
            for quantity, sums in (("predicted", predicted[:, place]), ("actual", positives[:, place])):
                each = np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)
                values[quantity] = (float(sums.sum() / n.sum()) if n.any() else np.nan, each)
            for quantity, (value, each) in values.items():
                row, name = category, f"{correction} {quantity}"
                replicated[row, name] = each.tolist()
                interval = vocab.mean_of(each[~np.isnan(each)], "prediction").interval
                numbers.append(
                    vocab.Number(row, name, value, tuple(ours["job"]), interval)
                    if n.any() or quantity == "cases"
                    else vocab.Number(row, name, None, tuple(ours["job"]), reason="no prediction is in this category")
                )
    return numbers, replicated


def _explained(number: vocab.Number, others: Mapping[_Place, vocab.Number], test: vocab.Held[_Place]) -> vocab.Number:
    """Return a number of the stated sizes with that of the inferred sizes, and how far out the printed one is there."""
    place = number.row, number.quantity
    probability, value = test.together.get(place), others[place].value
    probability = probability and replace(probability, setup=sim.INFERRED_SETUP)
    explanation = None if value is None else vocab.Explanation(sim.INFERRED_SETUP, value, others[place].interval)
    return replace(number, explanation=explanation, probability=probability)


def _figure(title: str, name: str, numbers: Sequence[vocab.Number]) -> vocab.LineFigure:
    found = {(number.row, number.quantity): number for number in numbers}
    points = []
    for correction in reversed(sim.CORRECTIONS):
        for category in _CATEGORIES:
            predicted, actual = (found.get((category, f"{correction} {q}")) for q in ("predicted", "actual"))
            # Where a category is empty in every replicate there is nothing to draw.
            if predicted is None or actual is None or actual.value is None:
                continue
            bar = actual.interval
            low, high = np.clip((bar.low, bar.high), 0, 1) if bar is not None else (np.nan, np.nan)
            points.append((correction, predicted.value, actual.value, low, high))
    return vocab.LineFigure.against_diagonal(
        title,
        ("mean predicted probability of y = 1", "frequency of y = 1"),
        points,
        (0.0, 1.0),
        mark="",
        diagonal="predicted = actual",
        name=name,
        interval="95 % prediction interval for one more data set",
    )
