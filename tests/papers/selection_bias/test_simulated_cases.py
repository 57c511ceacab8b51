"""The experiments on simulated cases: what they find at small sizes, share and draw."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.selection_bias.alpha_posterior import AlphaPosterior
from trimbench.papers.selection_bias.calibration import Calibration
from trimbench.papers.selection_bias.simulated_cases import PriorSettings
from trimbench.papers.selection_bias.simulation import Simulation, gains
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import Interval

from ..command_line import Command, file_of, table_of

pytestmark = pytest.mark.usefixtures("undrawn")

FAMILY = "experiment=selection_bias/"
SMALL = ("n_features=300", "test_sizes=[150,150]", "prior.n_alpha=20", "executor=serial", "offline=true")


def test_simulation_shows_the_bias_and_its_correction(command: Command) -> None:
    command(f"{FAMILY}simulation", *SMALL, "class_sizes=[[20,20]]", "ks=[5,300]", "replicates=4", code=0)
    errors = table_of("selection_bias/simulation")
    selected = errors[errors["k"] == 5].set_index("correction")
    gap = selected["actual error"] - selected["expected error"]
    np.testing.assert_allclose(gap, selected["actual - expected"])
    assert gap["uncorrected"] > 0.1
    assert abs(gap["corrected"]) < gap["uncorrected"] / 2
    everything = errors[errors["k"] == 300]
    assert len(set(everything["expected error"])) == 1, "nothing is selected, nothing corrected"
    losses = table_of("selection_bias/simulation_losses").set_index(["k", "correction"])
    assert losses.loc[(5, "corrected"), "AMLP"] < losses.loc[(5, "uncorrected"), "AMLP"]
    points = table_of("selection_bias/simulation_minus_log_probability_n40_points")
    assert set(points.columns) == {"series", "x", "y", "low", "high"}


def test_gains_are_what_the_correction_makes_better() -> None:
    rows = pd.DataFrame(
        {
            "uncorrected_expected_error": [0.1, 0.1],
            "uncorrected_actual_error": [0.3, 0.2],
            "corrected_expected_error": [0.2, 0.3],
            "corrected_actual_error": [0.2, 0.2],
            "uncorrected_minus_log_probability": [0.5, 0.7],
            "corrected_minus_log_probability": [0.5, 0.6],
            "uncorrected_squared_error": [0.2, 0.2],
            "corrected_squared_error": [0.2, 0.3],
        }
    )
    found = gains(rows)
    assert found == pytest.approx({"less bias": 0.15 - 0.05, "lower AMLP": 0.05, "lower squared error": -0.05})


def test_calibration_shares_its_jobs_with_the_simulation(command: Command) -> None:
    sizes = ("class_sizes=[[20,20]]", "replicates=3")
    command(f"{FAMILY}simulation", *SMALL, *sizes, "ks=[5]")
    answer = command(f"{FAMILY}calibration", *SMALL, *sizes, "k=5")
    assert "calibration: 3 stored, 0 to run" in answer.err
    table = table_of("selection_bias/calibration")
    assert table["category"].tolist()[0] == "0.0 - 0.1"
    for correction in ("corrected", "uncorrected"):
        assert table[f"{correction} cases"].sum() == pytest.approx(300)
        filled = table[f"{correction} cases"] > 0
        middle = table[f"{correction} predicted"].to_numpy()[filled]
        assert (np.floor(middle * 10).clip(0, 9) == np.flatnonzero(filled)).all()
    assert "What the paper reports is for other settings than n_features=300, " in answer.out
    assert "verdict" not in table, "other settings than the slides'"


def test_alpha_is_found_with_correction(command: Command) -> None:
    command(
        f"{FAMILY}alpha_posterior",
        *SMALL[:2],
        "prior.n_alpha=200",
        *SMALL[3:],
        "class_sizes=[40,40]",
        "ks=[30]",
        "replicates=3",
        code=0,
    )
    table = table_of("selection_bias/alpha_posterior").set_index("correction")
    assert table["true log(alpha)"].iloc[0] == pytest.approx(math.log(300))
    off = (table["posterior mean"] - math.log(300)).abs()
    assert off["corrected"] < 1 < off["uncorrected"]
    points = table_of("selection_bias/alpha_posterior_k30_points")
    for _, line in points.groupby("series"):
        assert np.trapezoid(line["y"], line["x"]) == pytest.approx(1, abs=0.02)


def test_cut_offs_and_correlations(command: Command) -> None:
    command(f"{FAMILY}selection_scatter", *SMALL, "class_sizes=[[20,20],[40,40]]", "ks=[3,30]", "replicates=2")
    table = table_of("selection_bias/selection_scatter").set_index(["n0", "k"])
    assert (table["mean sample"] >= table["cut-off"]).all()
    assert (table["mean true"] < table["mean sample"]).all()
    assert table.loc[(20, 3), "cut-off"] > table.loc[(40, 3), "cut-off"] > table.loc[(40, 30), "cut-off"]
    assert ((table["low"] < table["cut-off"]) & (table["cut-off"] < table["high"])).all()
    points = table_of("selection_bias/selection_scatter_n40_points")
    assert (points["series"] == "feature").sum() == 300


def test_run_times_are_held_against_the_printed_ones(command: Command) -> None:
    command(f"{FAMILY}runtime", *SMALL, "class_sizes=[10,10]", "ks=[10,300]", "repeats=1")
    table = table_of("selection_bias/runtime").set_index("k")
    assert table.loc[10, "corrected printed"] == 29.55
    assert table.loc[10, "corrected ratio"] == pytest.approx(29.55 / table.loc[10, "corrected ours"])
    assert math.isnan(table.loc[300, "corrected printed"])
    assert (table["uncorrected ours"] > 0).all()


def test_sizes_of_one_total_are_not_mixed_up(command: Command) -> None:
    sizes = [(30, 30), (10, 50), (50, 10)]
    shown = f"class_sizes={json.dumps(sizes)}".replace(" ", "")
    few = (*SMALL, shown, "replicates=2")
    for name, chosen in (("simulation", "ks=[5]"), ("calibration", "k=5"), ("selection_scatter", "ks=[5]")):
        command(f"{FAMILY}{name}", *few, chosen, code=0)
    errors = table_of("selection_bias/simulation")
    assert list(zip(errors["n0"], errors["n1"], strict=True)) == [pair for pair in sizes for _ in range(2)]
    assert set(errors["replicates"]) == {2}
    assert set(errors["within 2 se"]) == {"– (too few replicates)"}
    assert errors["expected error"].nunique() == 6
    for stem in ("n60", "n10_50", "n50_10"):
        for name in ("simulation_errors", "simulation_squared_error", "selection_scatter"):
            assert file_of(f"selection_bias/{name}_{stem}.png").is_file()
    assert file_of("selection_bias/calibration_n50_10.png").is_file()
    notes = file_of("selection_bias/simulation.md").read_text(encoding="utf-8")
    assert "With n = 10 + 50, the share of y = 1 is 0.833 among training cases" in notes
    assert "With n = 30 + 30" not in notes
    assert "The slides say 100" not in notes


def test_replicates_and_sizes_have_seeds_of_their_own(tmp_path: Path) -> None:
    inputs = Inputs(Catalogue(()), Cache((), tmp_path))
    sizes = [[30, 30], [10, 50], [50, 10]]
    prior = PriorSettings(theta0=0.1)
    experiment = Simulation(class_sizes=sizes, test_sizes=[5, 5], ks=[1, 2], replicates=2, prior=prior)
    jobs = [cell.job.parameters for cell in experiment.cells(inputs)]
    # One data set for each size and replicate, whatever is selected from it.
    assert len(jobs) == 12
    assert len({job["data_seed"] for job in jobs}) == 6
    assert all(job["data"]["theta0"] == job["prior"]["theta0"] == 0.1 for job in jobs)
    again = Simulation(class_sizes=sizes, test_sizes=[5, 5], ks=[1, 2], replicates=2, prior=prior, seed=1)
    assert {job["data_seed"] for job in jobs}.isdisjoint(
        cell.job.parameters["data_seed"] for cell in again.cells(inputs)
    )


def test_a_category_without_predictions_says_so() -> None:
    """Two replicates: two predictions in the first category of both, one in the last category of the first."""
    row = {"n0": 20, "n1": 20, "status": "ok"}
    rows = [row | {"job": "a"}, row | {"job": "b"}]
    for correction in ("corrected", "uncorrected"):
        rows[0] |= {f"{correction}_counts": [2, *[0] * 8, 1], f"{correction}_predicted_sums": [0.1, *[0] * 8, 1.0]}
        rows[1] |= {f"{correction}_counts": [2, *[0] * 9], f"{correction}_predicted_sums": [0.1, *[0] * 9]}
        rows[0][f"{correction}_positives"] = [1, *[0] * 8, 1]
        rows[1][f"{correction}_positives"] = [0] * 10
    outcome = Calibration(class_sizes=[[20, 20]], test_sizes=[1, 1]).outcome(pd.DataFrame(rows))
    found = {(number.row, number.quantity): number for number in outcome.numbers}
    assert len(found) == 60
    assert {number.jobs for number in found.values()} == {("a", "b")}
    first, last = (found[category, "corrected actual"] for category in ("0.0 - 0.1", "0.9 - 1.0"))
    assert (first.value, last.value, last.interval) == (0.25, 1.0, None)
    assert isinstance(first.interval, Interval)
    assert first.interval.kind == "prediction"
    cases = found["0.9 - 1.0", "corrected cases"]
    assert cases.value == 0.5
    empty = found["0.4 - 0.5", "corrected predicted"]
    assert (empty.value, empty.reason) == (None, "no prediction is in this category")
    assert found["0.4 - 0.5", "corrected cases"].value == 0.0
    drawn = outcome.figures[0].points
    assert drawn["low"].dropna().between(0, 1).all()
    assert (drawn["series"] == "corrected").sum() == 2


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


def test_the_table_of_correlations_is_the_printed_one(command: Command) -> None:
    command("experiment=selection_bias/correlation_table", "executor=serial")
    compared = table_of("selection_bias/correlation_table")
    (odd,) = compared[compared["verdict"] == "within"].to_dict("records")
    assert (odd["cell"], odd["reported"], odd["reproduced"]) == ("I1 = 7/I0 = 7", -0.37, -0.375)
    command("experiment=selection_bias/correlation_table", "n0=3", "n1=2", "executor=serial", code=0)
    table = table_of("selection_bias/correlation_table").set_index("I1")
    assert table.shape == (3, 4)
    assert table.loc[2, "I0 = 0"] == 1.0
