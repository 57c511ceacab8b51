"""Means over random masks, as tables and as curves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trimbench.conformant.additive import FILLS
from trimbench.papers.conformant.evaluation import METHODS, MIXTURE
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.numbers import confidence_interval
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd

_SUMMARY = ["missing", "percent", "method", "mean", "low", "high", "n"]


def title_of(rows: pd.DataFrame, dataset: str) -> str:
    """Return the name of a data set in titles."""
    return shown_name(dataset, str(rows.loc[rows["dataset"] == dataset, "title"].iloc[0]))


def summarise(done: pd.DataFrame, measure: str, methods: Iterable[str] = METHODS) -> pd.DataFrame:
    """Return mean and 95 % confidence interval over the masks, for each share of missing features and method.

    Fractions that hide the same number of features are one share. The columns are missing, percent, method, mean, low,
    high (NaN for a single mask) and n; `methods` are keys of the results of one data set, `done`.
    """
    import pandas as pd

    lines = []
    wanted = [name for name in methods if f"{name}/{measure}" in done.columns]
    if not wanted:  # no job has succeeded
        return pd.DataFrame(columns=_SUMMARY)
    shares = done["missing"].map(done.groupby("missing")["missing_percent"].mean().round(9))
    for _, group in done.groupby(shares):
        place = {"missing": group["missing"].min(), "percent": float(group["missing_percent"].mean())}
        for method in wanted:
            values = group[f"{method}/{measure}"].dropna()
            if values.empty:
                continue
            found = confidence_interval(values.tolist())
            low, high = (found.low, found.high) if found else (math.nan, math.nan)
            lines.append(place | {"method": method, "mean": values.mean(), "low": low, "high": high, "n": len(values)})
    return pd.DataFrame(lines, columns=_SUMMARY)


def means_table(title: str, summary: pd.DataFrame, name: str) -> Table:
    """Return a summary as a table with a line for each share and a column for each method."""
    lines = []
    for percent, group in summary.groupby("percent"):
        means = dict(zip(group["method"].map(METHODS), group["mean"], strict=True))
        lines.append({"missing (%)": percent, "masks": int(group["n"].max()), **means})
    titles = [METHODS[method] for method in summary["method"].unique()]
    return Table.of(title, lines, {"missing (%)": ".1f", "masks": "", **dict.fromkeys(titles, ".4f")}, name=name)


def curves(
    name: str, title: str, measure: str, y_label: str, summary: pd.DataFrame, references: pd.DataFrame | None = None
) -> LineFigure:
    """Return a figure of a summary, each method followed by its reference (percent, method, mean) if there is one."""
    import pandas as pd

    points: list[dict[str, object]] = []
    marks, methods = {}, {}
    for method in summary["method"].unique():
        ours, label = summary[summary["method"] == method], _legend(method)
        methods[label] = METHODS[method]
        for line in ours.itertuples():
            points.append({"series": label, "x": line.percent, "y": line.mean, "low": line.low, "high": line.high})
        theirs = references[references["method"] == method] if references is not None else ours[:0]
        for line in theirs.itertuples():
            beside = f"{label} (authors)"
            marks[beside], methods[beside] = "reference", METHODS[method]
            points.append({"series": beside, "x": line.percent, "y": line.mean})
    # By cross entropy, max imputation is orders of magnitude worse than the others.
    logarithmic = measure == "cross_entropy" and bool((summary["mean"] > 0).all())
    return LineFigure(
        title,
        "missing features (%)",
        y_label,
        pd.DataFrame(points),
        name=name,
        marks=marks,
        y_scale="log" if logarithmic else "linear",
        interval="95 % confidence interval of the mean over masks",
        methods=methods,
    )


def with_mixture(title: str, summary: pd.DataFrame) -> str:
    """Return the title of a figure, which says so if one of its lines is a mixture."""
    return f"{title}, with a mixture (beyond the paper)" if MIXTURE in summary["method"].to_numpy() else title


def _legend(method: str) -> str:
    return f"{METHODS[method]} imputation" if method in FILLS else METHODS[method]
