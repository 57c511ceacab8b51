"""Seconds for all predictions against the number of selected features."""

from __future__ import annotations

import functools
import math
import statistics
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
        done, printed = vocab.successes(rows), vocab.printed_numbers("selection_bias/runtime")
        results = {f"{correction}_seconds": f"{correction} ours" for correction in sim.CORRECTIONS}
        table = vocab.unlisted(rows, "k", self.ks, [*results]).rename(columns=results).reindex(columns=[*_FORMATS])
        points: list[tuple[str, int, float]] = []
        numbers: list[vocab.Number] = []
        for correction in reversed(sim.CORRECTIONS):
            names = [(f"k = {k}", f"{correction} seconds") for k in table["k"]]
            theirs = np.array([printed[name].value if name in printed else math.nan for name in names])
            ours = table[f"{correction} ours"]
            table[f"{correction} printed"], table[f"{correction} ratio"] = theirs, theirs / ours
            for series, found in ((correction, ours), (f"{correction} (printed)", theirs)):
                points += [(series, *one) for one in zip(table["k"], found, strict=True) if not math.isnan(one[1])]
            pairs = zip(names, ours, strict=True)
            numbers += [vocab.number_of(*name, seconds, done) for name, seconds in pairs if name in printed]
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
        # What the correction costs on one machine: the authors', and this one.
        selected = table[table["k"] < self.n_features]
        with_it, without = (selected[f"{correction} ours"] for correction in sim.CORRECTIONS)
        ratios = selected[["k"]].assign(
            **{"printed ratio": selected["corrected printed"] / selected["uncorrected printed"]},
            **{"our ratio": with_it / without, "our milliseconds more": 1000 * (with_it - without)},
        )
        if len(selected) and self.n_features in self.ks:
            most = int(selected["k"].to_numpy().argmax())
            of_all = table["uncorrected ours"][table["k"] == self.n_features].iloc[0]
            claims = {
                "seconds by those of all features": float(with_it.iloc[most] / of_all),
                "seconds by uncorrected ones": float(with_it.iloc[most] / without.iloc[most]),
            }
            numbers += vocab.numbers_of("corrected", claims, done)
        tables = (
            vocab.Table.of(title, table.to_dict("records"), _FORMATS),
            vocab.Table.of(_RATIOS_TITLE, ratios.to_dict("records"), _RATIOS, name="ratios"),
        )
        return vocab.Outcome(tables, (figure,), numbers, [note, _WHY])


_RATIOS_TITLE = "Seconds with the correction by those without"
_RATIOS = {"k": "", **dict.fromkeys(["printed ratio", "our ratio"], ".3f"), "our milliseconds more": ".1f"}
_WHY = (
    "Ratios of two times on one machine have a table of their own. The correction adds a few milliseconds here, which "
    "show where the predictions themselves take tens of them: the slides' take seconds to half an hour."
)


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
