"""What the figures of the selection-bias slides draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from trimbench.papers.selection_bias.alpha_posterior import AlphaPosterior
from trimbench.papers.selection_bias.runtime import Runtime
from trimbench.papers.selection_bias.selection_scatter import SelectionScatter

COMMON: dict[str, Any] = {"n0": 20, "n1": 20, "status": "ok", "replicate": 0, "job": "one"}
SIZES: dict[str, Any] = {"class_sizes": [[20, 20]], "test_sizes": [1, 1], "replicates": 1}
# Means and standard deviations of log(alpha).
NORMAL = {"corrected": (5.7, 0.05), "uncorrected": (3.0, 0.1)}


def posterior(grid: NDArray[np.float64]) -> dict[str, Any]:
    """Return what a job returns where both posteriors are normal; both are known up to a factor."""
    found: dict[str, Any] = {**COMMON, "k": 1, "log_alpha": grid.tolist()}
    for correction, (mean, deviation) in NORMAL.items():
        found[f"{correction}_log_density"] = (-0.5 * ((grid - mean) / deviation) ** 2 - 1).tolist()
        found[f"{correction}_mean_log_alpha"] = mean
    return found


def test_a_posterior_is_smooth_between_the_values_of_its_grid() -> None:
    found = posterior(np.linspace(0, 12, 400))
    (figure,) = AlphaPosterior(ks=[1], **SIZES).outcome(pd.DataFrame([found])).figures
    for correction, (mean, deviation) in NORMAL.items():
        drawn = figure.points[figure.points["series"] == correction]
        exact = np.exp(-0.5 * ((drawn["x"] - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
        assert drawn["y"].to_numpy() == pytest.approx(exact, rel=0.02, abs=1e-6)
        assert np.ptp(np.diff(drawn["x"])) < 1e-12
    assert figure.points["x"].min() == pytest.approx(3.0 - 4 * 0.1 - 0.5, abs=0.1)
    assert figure.points["x"].max() == pytest.approx(5.7 + 4 * 0.05 + 0.5, abs=0.1)


def test_a_posterior_on_one_value_is_a_point() -> None:
    (figure,) = AlphaPosterior(ks=[1], **SIZES).outcome(pd.DataFrame([posterior(np.array([4.0]))])).figures
    assert figure.points["x"].tolist() == [4.0, 4.0]


def test_each_cut_off_has_a_label() -> None:
    found = {**COMMON, "true": [0.1, -0.1], "sample": [0.2, -0.2], "gammas": [0.31, 0.12]}
    found |= {"mean_sample": [0.3, 0.2], "mean_true": [0.1, 0.1]}
    (figure,) = SelectionScatter(ks=[1, 1000], **SIZES).outcome(pd.DataFrame([found])).figures
    assert figure.levels == {
        "k = 1: 0.31": 0.31,
        "k = 1: −0.31": -0.31,
        "k = 1,000: 0.12": 0.12,
        "k = 1,000: −0.12": -0.12,
    }


def test_printed_seconds_have_the_colours_of_ours() -> None:
    rows = pd.DataFrame([COMMON | {"corrected_seconds": [1.0], "uncorrected_seconds": [0.5]}])
    (figure,) = Runtime(ks=[1], class_sizes=[[20, 20]], test_sizes=[1, 1]).outcome(rows).figures
    assert figure.methods == {"corrected (printed)": "corrected", "uncorrected (printed)": "uncorrected"}
    assert set(figure.methods) <= set(figure.points["series"])
