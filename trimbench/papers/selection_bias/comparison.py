"""Tables and figures that compare predictions with and without correction over the number of features."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trimbench.papers.selection_bias.settings import CORRECTIONS, file_stem
from trimbench.papers.study.cells import Label
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd


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
