"""Seconds for all predictions against the number of selected features."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.execution.job import POSITIVE, job, listed, timed
from trimbench.papers.selection_bias import simulated_cases as sim
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected
from trimbench.selection_bias.prior import Prior

_FORMATS = {"k": ""} | {
    f"{correction} {quantity}": spec
    for correction in reversed(sim.CORRECTIONS)
    for quantity, spec in (("printed", ".2f"), ("ours", ".3f"), ("ratio", ".0f"))
}


@vocab.settings
class Runtime(sim.SimulatedCases):
    """Time from the training cases to the predictions of all test cases, on one core; one pair of class sizes.

    Each time is the median of `repeats` measurements.
    """

    ks: vocab.Axis[int]
    repeats: vocab.Count = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.sizes  # refuses several pairs
        sim.check_ks(self.ks, self.n_features)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the one job."""
        return [self.cell(prediction_seconds, self.sizes, {})]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return seconds, printed seconds and their ratio."""
        done = vocab.successes(rows)
        printed = _printed()
        seconds = {
            correction: dict(zip(self.ks, values, strict=True))
            for correction in reversed(sim.CORRECTIONS)
            for values in done.get(f"{correction}_seconds", ())
        }
        lines: list[dict[str, object]] = [{"k": k} for k in self.ks if seconds]
        points: list[tuple[str, int, float]] = []
        for correction, ours in seconds.items():
            theirs = {k: printed[correction, k] for k in self.ks if (correction, k) in printed}
            for line, (k, measured) in zip(lines, ours.items(), strict=True):
                line |= {f"{correction} ours": measured}
                if k in theirs:
                    line |= {f"{correction} printed": theirs[k], f"{correction} ratio": theirs[k] / measured}
            points += [(correction, k, measured) for k, measured in ours.items()]
            points += [(f"{correction} (printed)", k, value) for k, value in theirs.items()]
        title = f"Seconds for {sum(self.test_sizes):,} test cases, {sum(self.sizes)} training cases"
        figure = vocab.LineFigure.of(
            title,
            (f"features selected out of {self.n_features:,}", "seconds"),
            points,
            marks={f"{correction} (printed)": "reference" for correction in sim.CORRECTIONS},
            x_scale="log",
            y_scale="log",
            methods={f"{correction} (printed)": correction for correction in sim.CORRECTIONS},
        )
        note = (
            f"Ours run from the selection to the predictions of {sum(self.test_sizes)} test cases with "
            f"{sum(self.sizes)} training cases, the median of {self.repeats} on one core, one after another."
        )
        numbers = [
            vocab.number_of(f"k = {k}", f"{correction} seconds", measured, done)
            for correction, ours in seconds.items()
            for k, measured in ours.items()
            if (correction, k) in printed
        ]
        selected = [k for k in self.ks if k < self.n_features]
        if seconds and selected and self.n_features in self.ks:
            with_correction, without = seconds["corrected"][max(selected)], seconds["uncorrected"]
            ratios = {
                "seconds by those of all features": with_correction / without[self.n_features],
                "seconds by uncorrected ones": with_correction / without[max(selected)],
            }
            numbers += vocab.numbers_of("corrected", ratios, done)
        tables = (vocab.Table.of(title, lines, _FORMATS), _ratios(seconds, printed, selected))
        return vocab.Outcome(tables, (figure,), numbers, [note, _WHY])


_RATIOS = {"k": "", **dict.fromkeys(["printed ratio", "our ratio"], ".3f"), "our milliseconds more": ".1f"}
_WHY = (
    "Ratios of two times on one machine have a table of their own. The correction adds a few milliseconds here, which "
    "show where the predictions themselves take tens of them: the slides' take seconds to half an hour."
)


def _ratios(
    seconds: Mapping[str, Mapping[int, float]], printed: Mapping[tuple[str, int], float], selected: Sequence[int]
) -> vocab.Table:
    """Return what the correction costs on one machine: the authors', and this one."""
    lines = []
    for k in selected if seconds else ():
        ours, without = (seconds[correction][k] for correction in sim.CORRECTIONS)
        theirs = [printed[correction, k] for correction in sim.CORRECTIONS if (correction, k) in printed]
        shown = {"printed ratio": theirs[0] / theirs[1]} if len(theirs) == len(sim.CORRECTIONS) else {}
        lines.append({"k": k, **shown, "our ratio": ours / without, "our milliseconds more": 1000 * (ours - without)})
    return vocab.Table.of("Seconds with the correction by those without", lines, _RATIOS, name="ratios")


def _printed() -> dict[tuple[str, int], float]:
    """Return the seconds that the slides print, with or without correction, by number of features."""
    return {
        (quantity.removesuffix(" seconds"), int(row.removeprefix("k = "))): one.value
        for (row, quantity), one in vocab.printed_numbers("selection_bias/runtime").items()
        if quantity.endswith(" seconds")
    }


@job(sim.both({"seconds": listed(POSITIVE)}))
def prediction_seconds(
    data: sim.ModelSettings, data_seed: int, prior: Prior, ties: Ties, ks: list[int], repeats: int
) -> dict[str, vocab.Json]:
    """Measure the time from the data to all predictions, on one core: the median after one that does not count.

    All numbers of features are one job, so that none is measured while another runs. The other parameters are those of
    `trimbench.papers.selection_bias.simulation.select_and_predict`.
    """
    from threadpoolctl import threadpool_limits

    cases = sim.simulate(data, np.random.default_rng(data_seed))

    def predict(k: int, correct: bool) -> object:
        model = fit_selection_corrected(cases.X, cases.y, k, correct=correct, ties=ties, **asdict(prior))
        return model.predict_proba(cases.X_test)

    medians: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for k in ks:
            for name, correct in (("corrected", True), ("uncorrected", False)):
                times = [timed(functools.partial(predict, k, correct))[1] for _ in range(repeats + 1)]
                medians.setdefault(f"{name}_seconds", []).append(statistics.median(times[1:]))
    return dict(medians)
