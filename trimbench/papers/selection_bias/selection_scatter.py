"""True against sample correlation of every feature, and the cut-offs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.selection_bias.settings import Replicated, file_stem, show_sizes, size_labels
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Number, numbers_of, prediction_interval
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.validation import settings
from trimbench.selection_bias.selection import class_counts, correlation, select_features
from trimbench.selection_bias.simulation import ModelSettings, simulate

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("n0", "n1", "k", "replicates", "cut-off", "low", "high", "mean sample", "mean true")


@settings
class SelectionScatter(Replicated):
    """How much stronger selected features look than they are, and the cut-off of each number of them.

    The figure shows the first replicate.
    """

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each size and replicate."""
        function = true_and_sample_correlations
        return [
            self.cell(function, sizes, {"replicate": replicate}, ks=self.ks, with_points=replicate == 0)
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the cut-offs and mean correlations, and a scatter plot for each size."""
        lines: list[dict[str, object]] = []
        figures: list[LineFigure] = []
        numbers: list[Number] = []
        for sizes in self.class_sizes:
            ours, shown = successes(rows, **size_labels(sizes)), show_sizes(sizes)
            for place, k in enumerate(self.ks if len(ours) else ()):
                cut_offs, sample, true = (
                    [float(values[place]) for values in ours[column]]
                    for column in ("gammas", "mean_sample", "mean_true")
                )
                cut_off, interval = float(np.mean(cut_offs)), prediction_interval(cut_offs)
                line: dict[str, object] = {**size_labels(sizes), "k": k, "replicates": len(ours), "cut-off": cut_off}
                line |= {"low": interval.low, "high": interval.high} if interval is not None else {}
                lines.append(line | {"mean sample": float(np.mean(sample)), "mean true": float(np.mean(true))})
                numbers += numbers_of(f"{shown}, k = {k}", {"cut-off": cut_off}, ours, {"cut-off": interval})
            first = ours[ours["replicate"] == 0].to_dict("records")
            figures += [self._scatter(shown, found["true"], found["sample"], found["gammas"]) for found in first]
        title = "Cut-offs, and mean absolute correlation of the selected features in the sample and in truth"
        table = Table.of(title, lines, dict.fromkeys(_COLUMNS[:3], "") | dict.fromkeys(_COLUMNS[3:], ".3f"))
        notes = [
            *self.notes(),
            "Low and high are the ends of a 95 % prediction interval for one more data set (Student's, from the spread "
            "over replicates). The mean true correlation is taken in the direction that the sample shows.",
        ]
        return Outcome((table,), figures, numbers, notes)

    def _scatter(self, shown: str, true: list[float], sample: list[float], gammas: list[float]) -> LineFigure:
        import pandas as pd

        points = pd.DataFrame({"series": "feature", "x": true, "y": sample})
        last = max(abs(points["x"]))
        equal = pd.DataFrame({"series": "sample = true", "x": [-last, last], "y": [-last, last]})
        levels: dict[str, float] = {}
        for k, gamma in zip(self.ks, gammas, strict=True):
            levels |= {f"k = {k:,}: {gamma:.2f}": gamma, f"k = {k:,}: −{gamma:.2f}": -gamma}
        return LineFigure(
            f"Correlation of features with the response, and cut-offs for k features ({shown})",
            "true correlation",
            "sample correlation",
            pd.concat([points, equal], ignore_index=True),
            name=file_stem(shown),
            levels=levels,
            marks={"feature": "cloud", "sample = true": "guide"},
        )


@job_function(code=("trimbench.selection_bias",))
def true_and_sample_correlations(
    data: Mapping[str, Any], data_seed: int, prior: Mapping[str, Any], ties: str, ks: list[int], with_points: bool
) -> dict[str, Json]:
    """Draw cases from the model, and compare each feature's true correlation with the one in the sample.

    Of the parameters that all such jobs have, only the data matters. `with_points` adds every feature's correlations.
    """
    cases = simulate(ModelSettings(**data), np.random.default_rng(data_seed))
    n0, n1 = data["class_sizes"]
    ones0, ones1 = class_counts(cases.X, cases.y)
    sample, true = correlation(ones0, ones1, n0, n1), cases.true_correlation
    selections = [select_features(ones0, ones1, n0, n1, k) for k in ks]
    chosen = [selection.features for selection in selections]
    result: dict[str, Json] = {
        "gammas": [selection.gamma for selection in selections],
        "mean_sample": [float(np.abs(sample[features]).mean()) for features in chosen],
        # The true correlation in the direction that the sample shows.
        "mean_true": [float((true[features] * np.sign(sample[features])).mean()) for features in chosen],
    }
    if with_points:
        result |= {"true": np.round(true, 6).tolist(), "sample": np.round(sample, 6).tolist()}
    return result
