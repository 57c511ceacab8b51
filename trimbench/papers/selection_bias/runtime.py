"""Seconds for all predictions against the number of selected features."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench._checks import check_positive
from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.selection_bias.simulated_cases import (
    CORRECTIONS,
    ModelSettings,
    SimulatedCases,
    check_at_least,
    check_ks,
    simulate,
)
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import Number, numbers_of
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected

if TYPE_CHECKING:
    import pandas as pd

_FORMATS = {"k": ""} | {
    f"{correction} {quantity}": spec
    for correction in reversed(CORRECTIONS)
    for quantity, spec in (("printed", ".2f"), ("ours", ".3f"), ("ratio", ".0f"))
}


@settings
class PrintedSeconds:
    """The seconds that the slides print, by number of features."""

    corrected: dict[str, float]
    uncorrected: dict[str, float]

    def __post_init__(self) -> None:
        for correction in CORRECTIONS:
            for k, seconds in getattr(self, correction).items():
                if not k.isdecimal():
                    raise ValueError(f"keys of {correction} must be numbers of features, in quotes, got {k!r}")
                check_positive(f"{correction}.{k}", seconds)

    def of(self, correction: str) -> dict[int, float]:
        """Return the seconds with or without correction."""
        found: dict[str, float] = getattr(self, correction)
        return {int(k): seconds for k, seconds in found.items()}


@settings
class Runtime(SimulatedCases):
    """Time from the training cases to the predictions of all test cases, on one core; one pair of class sizes.

    Each time is the median of `repeats` measurements; `printed` are seconds to draw and to divide by.
    """

    ks: list[int]
    printed: PrintedSeconds
    repeats: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sizes  # refuses several pairs
        check_ks(self.ks, self.n_features)
        check_at_least(1, repeats=self.repeats)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the one job."""
        return [self.cell(prediction_seconds, self.sizes, {}, ks=self.ks, repeats=self.repeats)]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return seconds, printed seconds and their ratio."""
        import pandas as pd

        done = successes(rows)
        seconds = {
            correction: dict(zip(self.ks, values, strict=True))
            for correction in reversed(CORRECTIONS)
            for values in done.get(f"{correction}_seconds", ())
        }
        lines: list[dict[str, object]] = [{"k": k} for k in self.ks if seconds]
        points: list[dict[str, object]] = []
        for correction, ours in seconds.items():
            printed = self.printed.of(correction)
            for line, (k, measured) in zip(lines, ours.items(), strict=True):
                line |= {f"{correction} ours": measured}
                if k in printed:
                    line |= {f"{correction} printed": printed[k], f"{correction} ratio": printed[k] / measured}
            points += [{"series": correction, "x": k, "y": measured} for k, measured in ours.items()]
            points += [{"series": f"{correction} (printed)", "x": k, "y": printed[k]} for k in self.ks if k in printed]
        title = f"Seconds for {sum(self.test_sizes):,} test cases, {sum(self.sizes)} training cases"
        figure = LineFigure(
            title,
            f"features selected out of {self.n_features:,}",
            "seconds",
            pd.DataFrame(points, columns=["series", "x", "y"]),
            marks={f"{correction} (printed)": "reference" for correction in CORRECTIONS},
            x_scale="log",
            y_scale="log",
            methods={f"{correction} (printed)": correction for correction in CORRECTIONS},
        )
        notes = [
            "Printed seconds are those of the authors' program on their machine, for 2,000 test cases and, as the "
            "slides say, 100 training cases. The slides do not say how fine its grids are.",
            f"Ours run from the selection to the predictions of {sum(self.test_sizes)} test cases with "
            f"{sum(self.sizes)} training cases, the median of {self.repeats} on one core, one after another.",
        ]
        numbers = self._numbers(seconds, done) if seconds else []
        return Outcome((Table.of(title, lines, _FORMATS),), (figure,), numbers, notes)

    def _numbers(self, seconds: Mapping[str, Mapping[int, float]], done: pd.DataFrame) -> list[Number]:
        """Return the counterparts of printed seconds, and the claim that selection takes less than all features."""
        numbers: list[Number] = []
        for correction, ours in seconds.items():
            printed = self.printed.of(correction)
            for k in (k for k in self.ks if k in printed):
                numbers += numbers_of(f"k = {k}", {f"{correction} seconds": ours[k]}, done)
        selected = [k for k in self.ks if k < self.n_features]
        if selected and self.n_features in self.ks:
            ratio = seconds["corrected"][max(selected)] / seconds["uncorrected"][self.n_features]
            numbers += numbers_of("corrected", {"seconds by those of all features": ratio}, done)
        return numbers


@job_function
def prediction_seconds(
    data: Mapping[str, Any], data_seed: int, prior: Mapping[str, Any], ties: Ties, ks: list[int], repeats: int
) -> dict[str, Json]:
    """Measure the time from the data to all predictions, on one core: the median after one that does not count.

    All numbers of features are one job, so that none is measured while another runs. The other parameters are those of
    `trimbench.papers.selection_bias.simulation.select_and_predict`.
    """
    from threadpoolctl import threadpool_limits

    cases = simulate(ModelSettings(**data), np.random.default_rng(data_seed))
    medians: dict[str, list[float]] = {"corrected_seconds": [], "uncorrected_seconds": []}
    with threadpool_limits(1):
        for k in ks:
            for name, correct in (("corrected", True), ("uncorrected", False)):
                times = []
                for _ in range(repeats + 1):
                    start = time.perf_counter()
                    model = fit_selection_corrected(cases.X, cases.y, k, correct=correct, ties=ties, **prior)
                    model.predict_proba(cases.X_test)
                    times.append(time.perf_counter() - start)
                medians[f"{name}_seconds"].append(statistics.median(times[1:]))
    return dict(medians)
