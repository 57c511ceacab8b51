"""The experiments on simulated cases: what they find at small sizes, share and draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from trimbench.papers.selection_bias.correlations import CorrelationTable, SelectionScatter
from trimbench.papers.selection_bias.simulated_cases import PriorSettings
from trimbench.papers.selection_bias.simulation import AlphaPosterior, Calibration, Runtime, Simulation, gains
from trimbench.reproduction.reporting.verdicts import compare
from trimbench.reproduction.vocabulary.numbers import Interval
from trimbench.reproduction.vocabulary.reported import Literature

from ..command_line import PROJECT
from ..experiments import inputs_of, keys_of, outcome_of, points_of, tables_of, values_of

SMALL: dict[str, Any] = {"n_features": 300, "test_sizes": [150, 150], "prior": PriorSettings(n_alpha=20)}
SMALL |= {"seed": 2018}


def test_simulation_shows_the_bias_and_its_correction() -> None:
    outcome = outcome_of(Simulation(class_sizes=[[20, 20]], ks=[5, 300], replicates=4, **SMALL))
    errors, losses = tables_of(outcome)[""], tables_of(outcome)["losses"].set_index(["k", "correction"])
    selected = errors[errors["k"] == 5].set_index("correction")
    gap = selected["actual error"] - selected["expected error"]
    np.testing.assert_allclose(gap, selected["actual - expected"])
    assert gap["uncorrected"] > 0.1
    assert abs(gap["corrected"]) < gap["uncorrected"] / 2
    everything = errors[errors["k"] == 300]
    assert len(set(everything["expected error"])) == 1, "nothing is selected, nothing corrected"
    assert losses.loc[(5, "corrected"), "AMLP"] < losses.loc[(5, "uncorrected"), "AMLP"]
    points = points_of(outcome)["minus_log_probability_n40"]
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


def test_calibration_shares_its_jobs_with_the_simulation() -> None:
    calibration = Calibration(class_sizes=[[20, 20]], k=5, replicates=3, **SMALL)
    assert keys_of(calibration) == keys_of(Simulation(class_sizes=[[20, 20]], ks=[5], replicates=3, **SMALL))
    table = tables_of(outcome_of(calibration))[""]
    assert table["category"].tolist()[0] == "0.0 - 0.1"
    for correction in ("corrected", "uncorrected"):
        assert table[f"{correction} cases"].sum() == pytest.approx(300)
        filled = table[f"{correction} cases"] > 0
        middle = table[f"{correction} predicted"].to_numpy(dtype=float)[filled]
        assert (np.floor(middle * 10).clip(0, 9) == np.flatnonzero(filled)).all()


def test_alpha_is_found_with_correction() -> None:
    prior = {"prior": PriorSettings(n_alpha=200)}
    outcome = outcome_of(AlphaPosterior(class_sizes=[[40, 40]], ks=[30], replicates=3, **SMALL | prior))
    table = tables_of(outcome)[""].set_index("correction")
    assert table["true log(alpha)"].iloc[0] == pytest.approx(math.log(300))
    off = (table["posterior mean"] - math.log(300)).abs()
    assert off["corrected"] < 1 < off["uncorrected"]
    for _, line in points_of(outcome)["k30"].groupby("series"):
        assert np.trapezoid(line["y"], line["x"]) == pytest.approx(1, abs=0.02)


def test_cut_offs_and_correlations() -> None:
    outcome = outcome_of(SelectionScatter(class_sizes=[[20, 20], [40, 40]], ks=[3, 30], replicates=2, **SMALL))
    table = tables_of(outcome)[""].set_index(["n0", "k"])
    assert (table["mean sample"] >= table["cut-off"]).all()
    assert (table["mean true"] < table["mean sample"]).all()
    assert table.loc[(20, 3), "cut-off"] > table.loc[(40, 3), "cut-off"] > table.loc[(40, 30), "cut-off"]
    assert ((table["low"] < table["cut-off"]) & (table["cut-off"] < table["high"])).all()
    assert (points_of(outcome)["n40"]["series"] == "feature").sum() == 300


def test_run_times_are_held_against_the_printed_ones() -> None:
    table = tables_of(outcome_of(Runtime(class_sizes=[[10, 10]], ks=[10, 300], repeats=1, **SMALL)))[""].set_index("k")
    assert table.loc[10, "corrected printed"] == 29.55
    assert table.loc[10, "corrected ratio"] == pytest.approx(29.55 / table.loc[10, "corrected ours"])
    assert math.isnan(table.loc[300, "corrected printed"])
    assert (table["uncorrected ours"] > 0).all()


def test_sizes_of_one_total_are_not_mixed_up() -> None:
    sizes = [[30, 30], [10, 50], [50, 10]]
    few: dict[str, Any] = {**SMALL, "class_sizes": sizes, "replicates": 2}
    simulation, calibration, scatter = map(
        outcome_of, (Simulation(ks=[5], **few), Calibration(k=5, **few), SelectionScatter(ks=[5], **few))
    )
    errors = tables_of(simulation)[""]
    assert errors[["n0", "n1"]].to_numpy().tolist() == [pair for pair in sizes for _ in range(2)]
    assert set(errors["replicates"]) == {2}
    assert set(errors["within 2 se"]) == {"– (too few replicates)"}
    assert errors["expected error"].nunique() == 6
    stems = {"n60", "n10_50", "n50_10"}
    assert {f"{name}_{stem}" for name in ("errors", "squared_error") for stem in stems} <= set(points_of(simulation))
    assert set(points_of(scatter)) == stems
    assert "n50_10" in points_of(calibration)
    notes = "\n".join(simulation.notes)
    assert "With n = 10 + 50, the share of y = 1 is 0.833 among training cases" in notes
    assert "With n = 30 + 30" not in notes
    assert "The slides say 100" not in notes


def test_replicates_and_sizes_have_seeds_of_their_own() -> None:
    given: dict[str, Any] = {"class_sizes": [[30, 30], [10, 50], [50, 10]], "ks": [1, 2], "replicates": 2}
    given |= {"test_sizes": [5, 5], "prior": PriorSettings(theta0=0.1)}
    jobs, again = (
        [cell.job.parameters for cell in Simulation(**given, seed=seed).cells(inputs_of())] for seed in (0, 1)
    )
    # One data set for each size and replicate, whatever is selected from it.
    assert len(jobs) == 12
    assert len({job["data_seed"] for job in jobs}) == 6
    assert all(job["data"]["theta0"] == job["prior"]["theta0"] == 0.1 for job in jobs)
    assert {job["data_seed"] for job in jobs}.isdisjoint(job["data_seed"] for job in again)


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


def test_the_table_of_correlations_is_the_printed_one() -> None:
    outcome = outcome_of(CorrelationTable())
    judged = compare(Literature.of(PROJECT).reported("selection_bias/correlation_table"), outcome.numbers)
    assert {one.verdict for one in judged} == {"exact", "within"}
    (odd,) = (one.reported for one in judged if one.verdict == "within")
    assert (odd.label, odd.value, values_of(outcome)[odd.label]) == ("I1 = 7/I0 = 7", -0.37, pytest.approx(-0.375))
    table = tables_of(outcome_of(CorrelationTable(n0=3, n1=2)))[""].set_index("I1")
    assert table.shape == (3, 4)
    assert table.loc[2, "I0 = 0"] == 1.0
