"""Errors, log probability and squared error against the number of selected features, on simulated cases."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.selection_bias.comparison import comparison_figures, comparison_tables, gains
from trimbench.papers.selection_bias.settings import Replicated, show_sizes, size_labels
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Number, numbers_of
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.validation import settings
from trimbench.selection_bias.adjustment import Ties
from trimbench.selection_bias.metrics import calibration, prediction_quality
from trimbench.selection_bias.model import fit_selection_corrected
from trimbench.selection_bias.simulation import ModelSettings, simulate

if TYPE_CHECKING:
    import pandas as pd


@settings
class Simulation(Replicated):
    """Predictions with and without correction on cases drawn from the model."""

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each size, replicate and number of features."""
        return [
            self.cell(select_and_predict, sizes, {"k": k, "replicate": replicate}, k=k)
            for sizes in self.class_sizes
            for replicate in range(self.replicates)
            for k in self.ks
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables and figures of the means over the replicates."""
        places = [{**size_labels(sizes), "k": k} for sizes in self.class_sizes for k in self.ks]
        groups = [(labels, ours) for labels in places if len(ours := successes(rows, **labels))]
        numbers: list[Number] = []
        for labels, ours in groups:
            if labels["k"] < self.n_features:
                better = gains(ours)
                row = f"{show_sizes((labels['n0'], labels['n1']))}, k = {labels['k']}"
                numbers += numbers_of(row, {name: better[name] for name in ("less bias", "lower AMLP")}, ours)
        errors, losses = comparison_tables(("n0", "n1"), groups, self.n_features)
        figures: list[LineFigure] = []
        for n0, n1 in self.class_sizes:
            # Both tables have the same lines.
            here = (errors.frame["n0"] == n0) & (errors.frame["n1"] == n1)
            shown = show_sizes((n0, n1))
            figures += comparison_figures(shown, errors.frame[here], losses.frame[here], self.n_features)
        notes = [
            *self.notes(),
            "Cut-off: smallest absolute correlation of a selected feature. se: standard error of the mean difference "
            "over replicates. Of lines that are right on average, one in twenty is not within 2 of them by chance.",
            "The model is calibrated on average over its prior of alpha; at the one alpha of these cases the average "
            "need not be exactly 0.",
        ]
        if self.n_features in self.ks:
            notes.append("With all features there is no selection and nothing to correct.")
        return Outcome((errors, losses), figures, numbers, notes)


@job_function(code=("trimbench.selection_bias",))
def select_and_predict(
    data: Mapping[str, Any], data_seed: int, prior: Mapping[str, Any], ties: Ties, k: int
) -> dict[str, Json]:
    """Draw cases from the model, select k features, and predict test cases with and without correction.

    `data` are the fields of a `ModelSettings`, `prior` those of a `Prior`.
    """
    cases = simulate(ModelSettings(**data), np.random.default_rng(data_seed))
    model = fit_selection_corrected(cases.X, cases.y, k, ties=ties, **prior)
    result: dict[str, Json] = {"gamma": model.gamma, "n_tied": model.selection.n_tied}
    for name, fitted in (("corrected", model), ("uncorrected", model.uncorrected())):
        probabilities = fitted.predict_proba(cases.X_test)
        quality = prediction_quality(cases.y_test, probabilities)
        bins = calibration(cases.y_test, probabilities)
        result |= {f"{name}_{key}": value for key, value in dataclasses.asdict(quality).items()}
        result |= {f"{name}_{field.name}": getattr(bins, field.name).tolist() for field in dataclasses.fields(bins)}
    return result
