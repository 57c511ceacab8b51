"""Tables and figures that compare predictions with and without correction over the number of features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trimbench.papers.selection_bias.settings import CORRECTIONS
from trimbench.papers.study.plan import LineFigure, Table

if TYPE_CHECKING:
    import pandas as pd

_LOSSES = {"minus_log_probability": "AMLP", "squared_error": "squared error"}
_LABELS = ["k", "replicates", "correction"]
_ERROR_COLUMNS = [
    *("cut-off", "expected error", "expected error se", "actual error", "actual error se"),
    *("actual - expected", "se of difference", "within 2 se"),
]
_LOSS_COLUMNS = [f"{title}{end}" for title in _LOSSES.values() for end in ("", " se")]
# A standard error from fewer replicates is itself too uncertain to judge by.
_LEAST_REPLICATES = 5
_INTERVAL = "2 standard errors to either side"


def comparison_tables(
    sizes: Sequence[str], errors: list[dict[str, Any]], losses: list[dict[str, Any]]
) -> tuple[Table, Table]:
    """Return the tables of lines that begin with sizes, k, replicates and correction.

    Parameters
    ----------
    sizes : sequence of str
        The columns that tell the training cases apart.
    errors, losses : list of dict
        Lines as `error_line` and `loss_line` complete them.
    """
    import pandas as pd

    return (
        Table(
            "",
            "Expected and actual error rates, means over replicates",
            pd.DataFrame(errors, columns=[*sizes, *_LABELS, *_ERROR_COLUMNS]),
            {"cut-off": ".3f"}
            | dict.fromkeys([name for name in _ERROR_COLUMNS if name not in ("cut-off", "within 2 se")], ".4f"),
        ),
        Table(
            "losses",
            "Average minus log probability (AMLP) and average squared error, means over replicates",
            pd.DataFrame(losses, columns=[*sizes, *_LABELS, *_LOSS_COLUMNS]),
            dict.fromkeys(_LOSS_COLUMNS, ".4f"),
        ),
    )


def error_line(ours: pd.DataFrame, correction: str) -> dict[str, Any]:
    """Return mean expected and actual error over replicates, their difference and its standard error."""
    expected, actual = ours[f"{correction}_expected_error"], ours[f"{correction}_actual_error"]
    gap, spread = float((actual - expected).mean()), _standard_error(actual - expected)
    enough = len(ours) >= _LEAST_REPLICATES
    within = ("yes" if abs(gap) <= 2 * spread else "no") if enough else "– (too few replicates)"
    return {
        "expected error": float(expected.mean()),
        "expected error se": _standard_error(expected),
        "actual error": float(actual.mean()),
        "actual error se": _standard_error(actual),
        "actual - expected": gap,
        "se of difference": spread,
        "within 2 se": within,
    }


def loss_line(ours: pd.DataFrame, correction: str) -> dict[str, Any]:
    """Return mean AMLP and squared error over replicates, and their standard errors."""
    found: dict[str, Any] = {}
    for key, title in _LOSSES.items():
        values = ours[f"{correction}_{key}"]
        found |= {title: float(values.mean()), f"{title} se": _standard_error(values)}
    return found


def gains(rows: pd.DataFrame) -> dict[str, float]:
    """Return by how much the correction is better on average, in what the slides claim of it.

    Parameters
    ----------
    rows : DataFrame
        Columns ``<correction>_<quantity>`` for the expected and actual error, AMLP and squared error.

    Returns
    -------
    dict
        ``less bias``: how much closer the mean expected error is to the mean actual one; ``lower AMLP`` and
        ``lower squared error``: uncorrected less corrected.
    """
    bias = {
        correction: abs(float((rows[f"{correction}_actual_error"] - rows[f"{correction}_expected_error"]).mean()))
        for correction in CORRECTIONS
    }
    found = {"less bias": bias["uncorrected"] - bias["corrected"]}
    for key, title in _LOSSES.items():
        found[f"lower {title}"] = float((rows[f"uncorrected_{key}"] - rows[f"corrected_{key}"]).mean())
    return found


def _standard_error(values: pd.Series) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan


def comparison_figures(
    stem: str, shown: str, errors: pd.DataFrame, losses: pd.DataFrame, n_features: int
) -> list[LineFigure]:
    """Return the figures of errors, AMLP and squared error against k for one number of training cases.

    Parameters
    ----------
    stem : str
        How files call the training cases.
    shown : str
        How titles call them.
    errors, losses : DataFrame
        Their part of the tables that `comparison_tables` makes.
    n_features : int
    """
    import pandas as pd

    x_label = f"features selected out of {n_features:,}"
    lines, marks = [], {}
    for correction in reversed(CORRECTIONS):
        part = errors[errors["correction"] == correction]
        actual = f"{correction} (actual error)"
        marks[actual] = "reference"
        lines += [
            _with_interval(f"expected error, {correction}", part, "expected error"),
            _with_interval(actual, part, "actual error"),
        ]
    points = pd.concat(lines, ignore_index=True)
    title = f"Expected and actual error ({shown})"
    figures = [
        LineFigure(
            f"errors_{stem}", title, x_label, "error rate", points, marks=marks, x_scale="log", interval=_INTERVAL
        )
    ]
    for key, title in _LOSSES.items():
        quantity = "average minus log probability" if title == "AMLP" else "average squared error"
        ordered = losses.sort_values("correction", ascending=False, kind="stable")
        points = _with_interval(ordered["correction"], ordered, title)
        figures.append(
            LineFigure(
                f"{key}_{stem}",
                f"{quantity.capitalize()} ({shown})",
                x_label,
                quantity,
                points,
                x_scale="log",
                interval=_INTERVAL,
            )
        )
    return figures


def _with_interval(series: str | pd.Series, lines: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the points of a column against k, with 2 standard errors to either side."""
    import pandas as pd

    half = 2 * lines[f"{column} se"]
    return pd.DataFrame(
        {
            "series": series,
            "x": lines["k"],
            "y": lines[column],
            "low": lines[column] - half,
            "high": lines[column] + half,
        }
    )
