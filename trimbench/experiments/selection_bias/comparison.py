"""Tables and figures that compare predictions with and without correction over the number of features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trimbench.experiments.plan import LineFigure, Table
from trimbench.experiments.selection_bias.settings import CORRECTIONS

if TYPE_CHECKING:
    import pandas as pd

_LOSSES = {"minus_log_probability": "AMLP", "squared_error": "squared error"}
_ERROR_COLUMNS = [
    *("n", "k", "replicates", "correction", "cut-off", "expected error", "actual error", "actual - expected"),
    *("se of difference", "within 2 se"),
]
_LOSS_COLUMNS = [
    *("n", "k", "replicates", "correction"),
    *(f"{title}{end}" for title in _LOSSES.values() for end in ("", " se")),
]


def comparison_tables(errors: list[dict[str, Any]], losses: list[dict[str, Any]]) -> tuple[Table, Table]:
    """Return the tables of lines that begin with n, k, replicates and correction.

    Parameters
    ----------
    errors, losses : list of dict
        Lines as `error_line` and `loss_line` complete them.
    """
    import pandas as pd

    return (
        Table(
            "",
            "Expected and actual error rates, means over replicates",
            pd.DataFrame(errors, columns=_ERROR_COLUMNS),
            {"cut-off": ".3f"}
            | dict.fromkeys(("expected error", "actual error", "actual - expected", "se of difference"), ".4f"),
        ),
        Table(
            "losses",
            "Average minus log probability (AMLP) and average squared error, means over replicates",
            pd.DataFrame(losses, columns=_LOSS_COLUMNS),
            dict.fromkeys(_LOSS_COLUMNS[4:], ".4f"),
        ),
    )


def error_line(ours: pd.DataFrame, correction: str) -> dict[str, Any]:
    """Return mean expected and actual error over replicates, their difference and its standard error."""
    expected, actual = ours[f"{correction}_expected_error"], ours[f"{correction}_actual_error"]
    gap, spread = float((actual - expected).mean()), _standard_error(actual - expected)
    within = "–" if math.isnan(spread) else ("yes" if abs(gap) <= 2 * spread else "no")
    return {
        "expected error": float(expected.mean()),
        "actual error": float(actual.mean()),
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


def _standard_error(values: pd.Series) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan


def comparison_figures(n: int, tables: Sequence[Table], n_features: int) -> list[LineFigure]:
    """Return the figures of errors, AMLP and squared error against k for one number of training cases.

    Parameters
    ----------
    n : int
    tables : sequence of Table
        As `comparison_tables` makes them.
    n_features : int
    """
    import pandas as pd

    errors, losses = (table.frame[table.frame["n"] == n] for table in tables)
    lines = [
        pd.DataFrame({"series": f"{kind} error, {correction}", "x": part["k"], "y": part[f"{kind} error"]})
        for correction in reversed(CORRECTIONS)
        for part in [errors[errors["correction"] == correction]]
        for kind in ("actual", "expected")
    ]
    figures = [
        LineFigure(
            f"errors_n{n}",
            f"Expected and actual error with and without correction (n = {n})",
            f"features selected out of {n_features}",
            "error rate",
            pd.concat(lines, ignore_index=True),
            marks={"actual error, corrected": "points"},  # it nearly coincides with the other actual error
            x_scale="log",
        )
    ]
    for key, title in _LOSSES.items():
        points = pd.DataFrame(
            {
                "series": losses["correction"],
                "x": losses["k"],
                "y": losses[title],
                "low": losses[title] - 2 * losses[f"{title} se"].fillna(0),
                "high": losses[title] + 2 * losses[f"{title} se"].fillna(0),
            }
        )
        figures.append(
            LineFigure(
                f"{key}_n{n}",
                f"{title[0].upper()}{title[1:]} with and without correction (n = {n}; band: 2 standard errors)",
                f"features selected out of {n_features}",
                "average minus log probability" if title == "AMLP" else "average squared error",
                points,
                x_scale="log",
            )
        )
    return figures
