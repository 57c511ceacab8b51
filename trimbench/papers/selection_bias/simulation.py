"""Quality of predictions against the number of selected features, corrected or not, on simulated cases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.measures import calibration, prediction_quality
from trimbench.papers.selection_bias.simulated_cases import (
    CORRECTIONS,
    ModelSettings,
    Replicated,
    file_stem,
    show_sizes,
    simulate,
    size_labels,
)
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Label, Outcome, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import Draws, Number, Probability, numbers_of
from trimbench.papers.vocabulary.reported import Reported
from trimbench.papers.vocabulary.tables import Table
from trimbench.selection_bias.factors import Ties
from trimbench.selection_bias.fit import fit_selection_corrected

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


@job_function
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


# Tables and figures that compare predictions with and without correction over the number of features.


class Loss(NamedTuple):
    """A loss of predictive probabilities: its key in a job's result, its column in tables, its name in figures."""

    key: str
    title: str
    name: str


LOSSES = (
    Loss("minus_log_probability", "AMLP", "average minus log probability"),
    Loss("squared_error", "squared error", "average squared error"),
)
_ERROR_FORMATS = {
    "cut-off": ".3f",
    "expected error": ".4f",
    "expected error se": ".4f",
    "actual error": ".4f",
    "actual error se": ".4f",
    "actual - expected": ".4f",
    "se of difference": ".4f",
    "within 2 se": "",
}
_LOSS_FORMATS = {f"{loss.title}{end}": ".4f" for loss in LOSSES for end in ("", " se")}
# A standard error from fewer replicates is itself too uncertain to judge by.
_LEAST_REPLICATES = 5


def comparison_tables(
    sizes: Sequence[str], groups: Iterable[tuple[Mapping[str, Label], pd.DataFrame]], n_features: int
) -> tuple[Table, Table]:
    """Return the tables of errors and of losses: one line for each group of replicates and correction.

    A group has its labels, which are `sizes` and ``k``, and the rows of all replicates; `n_features` is p.
    """
    errors, losses = [], []
    for labels, ours in groups:
        # With all features there is no cut-off.
        cut_off = float(ours["gamma"].mean()) if labels["k"] != n_features else None
        for correction in CORRECTIONS:
            line = {**labels, "replicates": len(ours), "correction": correction}
            errors.append({**line, "cut-off": cut_off, **_errors(ours, correction)})
            losses.append({**line, **_losses(ours, correction)})
    columns = dict.fromkeys([*sizes, "k", "replicates", "correction"], "")
    losses_title = "Average minus log probability (AMLP) and average squared error, means over replicates"
    return (
        Table.of("Expected and actual error rates, means over replicates", errors, columns | _ERROR_FORMATS),
        Table.of(losses_title, losses, columns | _LOSS_FORMATS, name="losses"),
    )


def _errors(ours: pd.DataFrame, correction: str) -> dict[str, object]:
    """Return mean expected and actual error over replicates, their difference and its standard error."""
    expected, actual = ours[f"{correction}_expected_error"], ours[f"{correction}_actual_error"]
    gap, spread = float((actual - expected).mean()), _standard_error(actual - expected)
    within = "yes" if abs(gap) <= 2 * spread else "no"
    return {
        "expected error": float(expected.mean()),
        "expected error se": _standard_error(expected),
        "actual error": float(actual.mean()),
        "actual error se": _standard_error(actual),
        "actual - expected": gap,
        "se of difference": spread,
        "within 2 se": within if len(ours) >= _LEAST_REPLICATES else "– (too few replicates)",
    }


def _losses(ours: pd.DataFrame, correction: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for loss in LOSSES:
        values = ours[f"{correction}_{loss.key}"]
        found |= {loss.title: float(values.mean()), f"{loss.title} se": _standard_error(values)}
    return found


def _standard_error(values: pd.Series[float]) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan


def gains(rows: pd.DataFrame) -> dict[str, float]:
    """Return by how much the correction is better on average, in what the slides claim of it.

    ``less bias`` is how much closer the mean expected error is to the mean actual one; ``lower AMLP`` and ``lower
    squared error`` are uncorrected less corrected.
    """
    bias = {c: abs(float((rows[f"{c}_actual_error"] - rows[f"{c}_expected_error"]).mean())) for c in CORRECTIONS}
    found = {"less bias": bias["uncorrected"] - bias["corrected"]}
    for loss in LOSSES:
        found[f"lower {loss.title}"] = float((rows[f"uncorrected_{loss.key}"] - rows[f"corrected_{loss.key}"]).mean())
    return found


def comparison_figures(
    shown: str, errors: pd.DataFrame, losses: pd.DataFrame, n_features: int, model: str = ""
) -> list[LineFigure]:
    """Return the figures of errors, AMLP and squared error against k for one number of training cases.

    Titles name these cases as `shown`, and the `model` if there is another than naive Bayes; `errors` and `losses` are
    the lines of these cases in the tables of `comparison_tables`.
    """
    import pandas as pd

    shown_with_model = f"{model}, {shown}" if model else shown

    def figure(name: str, title: str, y_label: str, lines: list[pd.DataFrame], marks: Mapping[str, str]) -> LineFigure:
        return LineFigure(
            f"{title} ({shown_with_model})",
            f"features selected out of {n_features:,}",
            y_label,
            pd.concat(lines, ignore_index=True),
            name=f"{name}_{file_stem(shown)}",
            marks=marks,
            x_scale="log",
            interval="2 standard errors to either side",
            methods=methods,
        )

    lines: list[pd.DataFrame] = []
    marks: dict[str, str] = {}
    methods: dict[str, str] = {}
    for correction in reversed(CORRECTIONS):
        part = errors[errors["correction"] == correction]
        expected, actual = f"expected error, {correction}", f"{correction} (actual error)"
        marks[actual] = "reference"
        methods |= dict.fromkeys((expected, actual), correction)
        lines += [
            _with_interval(expected, part, "expected error"),
            _with_interval(actual, part, "actual error"),
        ]
    figures = [figure("errors", "Expected and actual error", "error rate", lines, marks)]
    for loss in LOSSES:
        lines = [_with_interval(c, losses[losses["correction"] == c], loss.title) for c in reversed(CORRECTIONS)]
        figures.append(figure(loss.key, loss.name.capitalize(), loss.name, lines, {}))
    return figures


def _with_interval(series: str, lines: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the points of a column against k, with 2 standard errors to either side."""
    import pandas as pd

    y, half = lines[column], 2 * lines[f"{column} se"]
    return pd.DataFrame({"series": series, "x": lines["k"], "y": y, "low": y - half, "high": y + half})


# The overall test of a printed table: whether the slides' one data set is like single data sets of ours.

_Key = TypeVar("_Key")
_COLUMNS = {
    **dict.fromkeys(("n0", "n1", "replicates", "numbers", "outside"), ""),
    "usual": ".1f",
    "most": "",
    "probability": ".3f",
    "smallest, one number": ".3f",
    "least, one number": ".3f",
    "smallest, all numbers": ".3f",
    "least, all numbers": ".3f",
}
NOTE = (
    "The overall test holds the printed numbers against the replicates, rounded to the printed digits: 'outside' is "
    "how many printed numbers are in the outer 5 % of theirs (this needs 39 replicates), 'usual' and 'most' are how "
    "many of one replicate are, and 'probability' is that of so many or more. 'Smallest' is the smallest two-sided "
    "tail probability of a printed number, taken for itself (one number) or as the most extreme of the table (all "
    "numbers), and 'least' the smallest that so many replicates can show. If the slides' data set was drawn as ours "
    "are, the last of them is a or less with a probability of at most a, and so is that of the count."
)


class OverallTest(NamedTuple):
    """The probabilities of printed numbers by their keys, as the most extreme of all, and the line of the test."""

    probabilities: Mapping[object, Probability]
    line: Mapping[str, object]


def overall_test(
    sizes: Sequence[int], printed: Mapping[_Key, Reported], replicated: Mapping[_Key, ArrayLike]
) -> OverallTest | None:
    """Hold printed numbers against replicates of the same numbers; None if no printed number has any.

    `replicated` has the value of every replicate in the same order, NaN for one that has none.
    """
    keys = [key for key in printed if key in replicated]
    values = np.array([replicated[key] for key in keys], dtype=float).T
    if not values.size:
        return None
    chosen = [printed[key] for key in keys]
    draws = Draws([one.value for one in chosen], values, [one.decimals for one in chosen])
    together = draws.together()
    single, adjusted = (min(found, key=lambda one: one.value) for found in (draws.alone(), together))
    line: dict[str, object] = {**size_labels(sizes), "replicates": len(values), **draws.outside().columns}
    line |= {"smallest, one number": single.value, "least, one number": single.least}
    line |= {"smallest, all numbers": adjusted.value, "least, all numbers": adjusted.least}
    return OverallTest(dict(zip(keys, together, strict=True)), line)


def overall_table(tests: Sequence[OverallTest]) -> list[Table]:
    """Return the table of the tests of several class sizes, in a list that is empty without any."""
    title = "Overall test: the printed numbers among those of single data sets"
    return [Table.of(title, [test.line for test in tests], _COLUMNS, name="overall")] if tests else []
