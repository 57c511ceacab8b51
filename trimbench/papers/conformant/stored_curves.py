"""The curves that the authors stored with their code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.configuration import configuration_folder

if TYPE_CHECKING:
    import pandas as pd


def stored_curves(dataset: str, measure: str) -> pd.DataFrame:
    """Return the authors' stored results of one data set, with all features observed first.

    The columns are method, percent, mean, std and runs; a data set without stored results has no rows. For Adult they
    stored a micro-averaged F1, which for one label per row is the accuracy.
    """
    import pandas as pd

    table = pd.read_csv(configuration_folder() / "reported" / "conformant_curves.csv")
    measures = {measure, "f1_micro"} if measure == "accuracy" else {measure}
    chosen = table[(table["dataset"] == dataset) & table["measure"].isin(measures)]
    return (
        chosen.rename(columns={"missing_percent": "percent"})
        .sort_values(["method", "percent"])[["method", "percent", "mean", "std", "runs"]]
        .reset_index(drop=True)
    )


def interpolated(curve: pd.DataFrame, percent: float) -> float | None:
    """Return the value of a stored curve (percent, mean) at a share of missing features; None beyond its ends."""
    if curve.empty or not curve["percent"].min() - 1e-9 <= percent <= curve["percent"].max() + 1e-9:
        return None
    return float(np.interp(percent, curve["percent"], curve["mean"]))
