"""The experiments on selection bias: their settings, and what they find."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from trimbench.papers.configuration import Catalogue, ConfigurationError, configuration_folder
from trimbench.papers.study.running import make_experiment
from trimbench.papers.selection_bias.comparison import gains
from trimbench.papers.selection_bias.settings import SimulationPlan, mean_and_interval
from trimbench.selection_bias.metrics import prediction_quality
from trimbench.selection_bias.model import fit_selection_corrected
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.simulation import MixtureSettings, ModelSettings, simulate, simulate_mixture

from ..command_line import Answer

Command = Callable[..., Answer]
FAMILY = "experiment=selection_bias/"
SMALL = ("n_features=300", "test_sizes=[150,150]", "prior.n_alpha=20", "executor=serial", "offline=true")


def results(tmp_path: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(tmp_path / f"results/selection_bias/{name}.csv")


def test_the_table_of_correlations_is_the_printed_one(command: Command, tmp_path: Path) -> None:
    answer = command(f"{FAMILY}correlation_table", "executor=serial")
    assert "Reported numbers: 135; reproduced: 134 exact, 1 within.\n" in answer.out
    compared = results(tmp_path, "correlation_table")
    (odd,) = compared[compared["verdict"] == "within"].to_dict("records")
    assert (odd["cell"], odd["reported"], odd["reproduced"]) == ("I1 = 7/I0 = 7", -0.37, -0.375)
    assert command(f"{FAMILY}correlation_table", "n0=3", "n1=2", "executor=serial").code == 0
    table = results(tmp_path, "correlation_table_table").set_index("I1")
    assert table.shape == (3, 4)
    assert table.loc[2, "I0 = 0"] == 1.0


def test_simulation_shows_the_bias_and_its_correction(command: Command, tmp_path: Path) -> None:
    answer = command(f"{FAMILY}simulation", *SMALL, "class_sizes=[[20,20]]", "ks=[5,300]", "replicates=4")
    assert answer.code == 0, answer.err
    errors = results(tmp_path, "simulation_table")
    selected = errors[errors["k"] == 5].set_index("correction")
    gap = selected["actual error"] - selected["expected error"]
    np.testing.assert_allclose(gap, selected["actual - expected"])
    assert gap["uncorrected"] > 0.1
    assert abs(gap["corrected"]) < gap["uncorrected"] / 2
    everything = errors[errors["k"] == 300]
    assert len(set(everything["expected error"])) == 1, "nothing is selected, nothing corrected"
    losses = results(tmp_path, "simulation_losses").set_index(["k", "correction"])
    assert losses.loc[(5, "corrected"), "AMLP"] < losses.loc[(5, "uncorrected"), "AMLP"]
    points = results(tmp_path, "simulation_minus_log_probability_n40_points")
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


def test_claims_of_the_slides_have_a_row_for_each_selection() -> None:
    path = configuration_folder() / "experiment/selection_bias/simulation.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    reported = Catalogue((configuration_folder(),)).mapping("reported", "selection_bias")
    claimed = list(reported["selection_bias/simulation"]["numbers"])
    assert claimed == [f"n = {a + b}, k = {k}" for a, b in settings["class_sizes"] for k in settings["ks"][:-1]]


def test_calibration_shares_its_jobs_with_the_simulation(command: Command, tmp_path: Path) -> None:
    sizes = ("class_sizes=[[20,20]]", "replicates=3")
    command(f"{FAMILY}simulation", *SMALL, *sizes, "ks=[5]")
    answer = command(f"{FAMILY}calibration", *SMALL, *sizes, "k=5")
    assert "calibration: 3 stored, 0 to run" in answer.err
    table = results(tmp_path, "calibration_table")
    assert table["category"].tolist()[0] == "0.0 - 0.1"
    for correction in ("corrected", "uncorrected"):
        assert table[f"{correction} cases"].sum() == pytest.approx(300)
        filled = table[f"{correction} cases"] > 0
        middle = table[f"{correction} predicted"].to_numpy()[filled]
        assert (np.floor(middle * 10).clip(0, 9) == np.flatnonzero(filled)).all()
    compared = results(tmp_path, "calibration")
    assert set(compared["verdict"]) == {"not attempted"}, "other settings than the slides'"


def test_alpha_is_found_with_correction(command: Command, tmp_path: Path) -> None:
    answer = command(
        f"{FAMILY}alpha_posterior", *SMALL[:2], "prior.n_alpha=200", *SMALL[3:],
        "class_sizes=[40,40]", "ks=[30]", "replicates=3",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    table = results(tmp_path, "alpha_posterior").set_index("correction")
    assert table["true log(alpha)"].iloc[0] == pytest.approx(math.log(300))
    off = (table["posterior mean"] - math.log(300)).abs()
    assert off["corrected"] < 1 < off["uncorrected"]
    points = results(tmp_path, "alpha_posterior_k30_points")
    for _, line in points.groupby("series"):
        assert np.trapezoid(line["y"], line["x"]) == pytest.approx(1, abs=0.02)


def test_cut_offs_and_correlations(command: Command, tmp_path: Path) -> None:
    command(f"{FAMILY}selection_scatter", *SMALL, "class_sizes=[[20,20],[40,40]]", "ks=[3,30]", "replicates=2")
    table = results(tmp_path, "selection_scatter_table").set_index(["n0", "k"])
    assert (table["mean sample"] >= table["cut-off"]).all()
    assert (table["mean true"] < table["mean sample"]).all()
    assert table.loc[(20, 3), "cut-off"] > table.loc[(40, 3), "cut-off"] > table.loc[(40, 30), "cut-off"]
    assert ((table["low"] < table["cut-off"]) & (table["cut-off"] < table["high"])).all()
    points = results(tmp_path, "selection_scatter_n40_points")
    assert (points["series"] == "feature").sum() == 300


def test_run_times_are_held_against_the_printed_ones(command: Command, tmp_path: Path) -> None:
    command(f"{FAMILY}runtime", *SMALL, "class_sizes=[10,10]", "ks=[10,300]", "repeats=1")
    table = results(tmp_path, "runtime_table").set_index("k")
    assert table.loc[10, "corrected printed"] == 29.55
    assert table.loc[10, "corrected ratio"] == pytest.approx(29.55 / table.loc[10, "corrected ours"])
    assert math.isnan(table.loc[300, "corrected printed"])
    assert (table["uncorrected ours"] > 0).all()


def test_colon_on_the_real_data(command: Command, given_folder: Path, tmp_path: Path) -> None:
    answer = command(f"{FAMILY}colon", "executor=serial", "offline=true", "splits=1")
    if "data not available" in answer.out:
        pytest.skip("TRIMBENCH_CACHE does not hold the data set colon")
    subsets = results(tmp_path, "colon_subsets")
    assert len(subsets) == 10
    assert (subsets["corrected AMLP"] < subsets["uncorrected AMLP"]).sum() >= 9
    means = results(tmp_path, "colon_table").set_index(["split", "correction"])
    n_lower = (subsets["corrected AMLP"] < subsets["uncorrected AMLP"]).sum()
    assert means.loc[("all", "corrected"), "lower AMLP"] == f"{n_lower} of 10"
    assert (subsets["corrected expected error"] > subsets["uncorrected expected error"]).all()
    rows = results(tmp_path, "colon_rows")
    assert rows["n_cases"].tolist() == [62]
    assert rows["n_positive"].tolist() == [40]
    assert len(json.loads(rows["corrected_actual_error"][0])) == 10


def test_corrected_predictions_expect_the_errors_that_they_make() -> None:
    """The settings of the slides with 200 training cases, 20 replicates."""
    gaps: dict[tuple[int, bool], list[float]] = {}
    for replicate in range(20):
        data = simulate(ModelSettings(), np.random.default_rng([1, replicate]))
        for k in (1, 10, 100, 1000):
            model = fit_selection_corrected(data.X, data.y, k)
            for corrected, fitted in ((True, model), (False, model.uncorrected())):
                quality = prediction_quality(data.y_test, fitted.predict_proba(data.X_test))
                gaps.setdefault((k, corrected), []).append(quality.actual_error - quality.expected_error)
    for k, known in {1: 0.09, 10: 0.18, 100: 0.18, 1000: 0.07}.items():
        corrected, uncorrected = np.array(gaps[k, True]), np.array(gaps[k, False])
        assert abs(corrected.mean()) < 2 * corrected.std(ddof=1) / math.sqrt(20), k
        assert uncorrected.mean() == pytest.approx(known, abs=0.02)


def test_calibration_is_that_of_the_prior() -> None:
    """With alpha drawn from its prior, expected and actual errors agree on average; without correction they do not."""
    grid = Prior(n_alpha=30).alphas()
    gaps = []
    for replicate in range(200):
        rng = np.random.default_rng([3, replicate])
        drawn = ModelSettings(600, float(rng.choice(grid)), class_sizes=(25, 25), test_sizes=(150, 150))
        data = simulate(drawn, rng)
        model = fit_selection_corrected(data.X, data.y, 5, n_alpha=30)
        qualities = [
            prediction_quality(data.y_test, m.predict_proba(data.X_test)) for m in (model, model.uncorrected())
        ]
        gaps.append([quality.actual_error - quality.expected_error for quality in qualities])
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / math.sqrt(len(gaps))
    assert abs(mean[0]) < 2 * error[0]
    assert mean[1] > 5 * error[1]


def test_mixture_reports_its_chains(command: Command, tmp_path: Path) -> None:
    answer = command(
        f"{FAMILY}mixture", "n_features=200", "n_train=30", "n_test=100", "ks=[4]", "replicates=2", "n_warmup=40",
        "n_draws=60", "prior.n_alpha=15", "executor=serial",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    chains = results(tmp_path, "mixture_chains").set_index("correction")
    assert (chains["largest R-hat"] > 0.9).all()
    assert (chains["smallest effective sample size"] > 1).all()
    assert chains.loc["corrected", "mean log(alpha)"] > chains.loc["uncorrected", "mean log(alpha)"]


def test_mixture_cases_have_the_moments_of_the_model() -> None:
    settings = MixtureSettings(n_features=3000, alpha=5.0, response=(0.05, 0.95), n_train=60, n_test=60)
    drawn = simulate_mixture(settings, np.random.default_rng(0))
    assert (drawn.X.shape, drawn.X_test.shape) == ((60, 3000), (60, 3000))
    assert set(drawn.y) == {0, 1}
    # With nearly deterministic response the latent groups are the classes.
    for y in (0, 1):
        share = drawn.X[drawn.y == y].mean(axis=0)
        assert np.polyfit(drawn.phi[y], share, 1)[0] > 0.75
    assert np.var(drawn.phi) == pytest.approx(1 / 12 + (1 / 6) / 6, rel=0.1)


@pytest.mark.parametrize(
    ("experiment", "settings", "message"),
    [
        ("simulation", ["ks=[0]"], "ks must be numbers from 1 to n_features=10000, got 0"),
        ("simulation", ["ks=[]"], "ks must be a list of at least one value, each once, got []"),
        ("simulation", ["class_sizes=[[5,5],[5,5]]"], "class_sizes must be a list of at least one value, each once"),
        ("simulation", ["class_sizes=[7]"], "class_sizes must be pairs of whole numbers"),
        ("simulation", ["class_sizes=[[0,7]]"], "class_sizes must be two whole numbers, 1 or more"),
        ("simulation", ["test_sizes=[0,0]"], "test_sizes must be two whole numbers, not both 0"),
        ("simulation", ["alpha=-1"], "alpha must be a positive number, got -1"),
        ("simulation", ["replicates=0"], "replicates must be 1 or more, got 0"),
        ("simulation", ["class_sizes=[[true,7]]"], "class_sizes must be pairs of whole numbers"),
        ("simulation", ["class_sizes=[[7,'7']]"], "class_sizes must be pairs of whole numbers"),
        ("simulation", ["replicates=true"], "replicates has no valid value"),
        ("simulation", ["prior.rate='5'"], "prior.rate must be a positive number, got '5'"),
        ("simulation", ["prior.n_alpha=true"], "prior.n_alpha must be a whole number, 1 or more, got True"),
        ("simulation", ["prior.shape=0"], "prior.shape must be a positive number, got 0"),
        ("simulation", ["+prior.shap=1"], "prior: a key must be one of f0, f1, n_alpha,"),
        ("simulation", ["ties=none"], "ties must be one of exact, less, less_equal, got 'none'"),
        ("calibration", ["k=10001"], "k must be a number from 1 to n_features=10000, got 10001"),
        ("alpha_posterior", ["class_sizes=[1,2,3]"], "class_sizes must be pairs of whole numbers"),
        ("correlation_table", ["n0=0"], "n0 must be 1 or more, got 0"),
        ("runtime", ["+printed.both={1: 2.0}"], "printed must have the keys ['corrected', 'uncorrected'], got"),
        ("runtime", ["repeats=0"], "repeats must be 1 or more, got 0"),
        ("runtime", ["printed={corrected: {1: soon}}"], "printed.corrected must be positive seconds for numbers of"),
        ("runtime", ["printed={corrected: 3}"], "printed.corrected must be positive seconds for numbers of"),
        ("colon", ["datasets=[]"], "datasets must be a list of at least one value, each once, got []"),
        ("colon", ["datasets=[digits]"], "datasets must have two classes of at least 2 cases for leave-one-out, got"),
        ("colon", ["positive=tumour"], "positive: a class of colon must be one of 0, 1, got 'tumour'"),
        ("colon", ["prior.theta0=true"], "prior.theta0 must be in [0, 0.5), got True"),
        ("colon", ["splits=0"], "splits must be 1 or more, got 0"),
        (
            "colon",
            ["n_subsets=500"],
            "n_subsets times k must be at most 2000, the number of features of colon, got 500",
        ),
        ("mixture", ["ks=[2001]"], "ks must be numbers from 1 to n_features=2000, got [2001]"),
        ("mixture", ["n_chains=1"], "n_chains must be 2 or more, got 1"),
        ("mixture", ["response=[0.5]"], "response must be two probabilities between 0 and 1"),
        ("mixture", ["response=[0.1,0.9,0.5]"], "response must be two probabilities between 0 and 1"),
        ("mixture", ["+prior.shap=1"], "prior: a key must be one of f1, f2, n_alpha, n_theta_adjust, rate, rate0"),
        ("mixture", ["prior.shape0=-1"], "prior.shape0 must be a positive number, got -1"),
        ("mixture", ["prior.rate0=wide"], "prior.rate0 must be a positive number, got 'wide'"),
        ("mixture", ["prior.f2=true"], "prior.f2 must be a positive number, got True"),
        ("mixture", ["prior.n_alpha=0"], "prior.n_alpha must be a whole number, 1 or more, got 0"),
        ("mixture", ["n_train=2"], "n_train must be a whole number, 4 or more, got 2"),
    ],
)
def test_settings_that_cannot_be(command: Command, experiment: str, settings: list[str], message: str) -> None:
    answer = command(f"{FAMILY}{experiment}", *settings, "executor=serial", "offline=true")
    assert answer.code == 2, answer.out
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_every_printed_number_has_a_place() -> None:
    """What the slides print is declared once, under keys that the experiments give."""
    mapping: dict[str, Any] = Catalogue((configuration_folder(),)).mapping("reported", "selection_bias")
    counts = {name: sum(map(len, entry["numbers"].values())) for name, entry in mapping.items() if name != "paper"}
    assert counts == {
        "selection_bias/correlation_table": 135,
        "selection_bias/selection_scatter": 8,  # four numbers, held against both sizes
        "selection_bias/calibration": 60,
        "selection_bias/runtime": 10,  # nine times, and that selection takes less than all features
        "selection_bias/simulation": 16,  # claims
        "selection_bias/colon": 3,
    }
    assert all(
        re.fullmatch(r"n = (100|200), k = 10*", row) for row in mapping["selection_bias/selection_scatter"]["numbers"]
    )
    with pytest.raises(ConfigurationError, match="a key must be one of"):
        make_experiment("x", {"runner": "trimbench.papers.selection_bias.colon:Colon", "prior": {}, "q": 1}, ())


def test_sizes_of_one_total_are_not_mixed_up(command: Command, tmp_path: Path) -> None:
    sizes = [(30, 30), (10, 50), (50, 10)]
    shown = f"class_sizes={json.dumps(sizes)}".replace(" ", "")
    few = (*SMALL, shown, "replicates=2")
    answers = [
        command(f"{FAMILY}simulation", *few, "ks=[5]"),
        command(f"{FAMILY}calibration", *few, "k=5"),
        command(f"{FAMILY}selection_scatter", *few, "ks=[5]"),
    ]
    assert [answer.code for answer in answers] == [0, 0, 0]
    errors = results(tmp_path, "simulation_table")
    assert list(zip(errors["n0"], errors["n1"], strict=True)) == [pair for pair in sizes for _ in range(2)]
    assert set(errors["replicates"]) == {2}
    assert set(errors["within 2 se"]) == {"– (too few replicates)"}
    assert errors["expected error"].nunique() == 6
    folder = tmp_path / "results/selection_bias"
    for stem in ("n60", "n10_50", "n50_10"):
        for name in ("simulation_errors", "simulation_squared_error", "selection_scatter"):
            assert (folder / f"{name}_{stem}.png").is_file()
    assert (folder / "calibration_n50_10.png").is_file()
    notes = (folder / "simulation.md").read_text(encoding="utf-8")
    assert "With n = 10 + 50, the share of y = 1 is 0.833 among training cases" in notes
    assert "With n = 30 + 30" not in notes
    assert "The slides say 100" not in notes
    seeds = SimulationPlan(300, 300.0, (150, 150), {}, "exact", 1)
    assert len({seeds.parameters(pair, 0)["seed"] for pair in sizes}) == 3


def test_a_prediction_interval_holds_one_more_value() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 5, 20):
        inside = 0
        for _ in range(2000):
            values = rng.normal(size=n + 1)
            mean, interval = mean_and_interval(values[:-1].tolist())
            assert mean == pytest.approx(values[:-1].mean())
            assert interval is not None
            inside += interval[0] <= values[-1] <= interval[1]
        assert inside / 2000 == pytest.approx(0.95, abs=0.015)
    assert mean_and_interval([3.0]) == (3.0, None)


def test_equal_losses_are_won_by_neither() -> None:
    """Two subsets: one tie, one that the correction wins."""
    catalogue = Catalogue((configuration_folder(),))
    values = catalogue.mapping("experiment", "selection_bias/colon") | {"n_subsets": 2, "splits": 1}
    quantities = ("expected_error", "actual_error", "minus_log_probability", "squared_error")
    row: dict[str, Any] = {"status": "ok", "dataset": "colon", "split": 0, "job": "one"}
    row |= {f"{c}_{q}": [0.5, 0.25] for c in ("corrected", "uncorrected") for q in quantities}
    row["uncorrected_minus_log_probability"] = [0.5, 0.75]
    outcome = make_experiment("colon", values, ()).outcome(pd.DataFrame([row]))
    means = outcome.tables[0].frame.set_index(["split", "correction"])
    assert means.loc[("all", "corrected"), "lower AMLP"] == "1 of 2"
    assert means.loc[("all", "uncorrected"), "lower AMLP"] == "0 of 2"


def test_undefined_r_hat_is_told() -> None:
    """One replicate of two has chains that stand still apart from each other."""
    values = {"ks": [4], "response": [0.1, 0.9], "prior": {}}
    row: dict[str, Any] = {"status": "ok", "n": 100, "k": 4, "gamma": 0.3}
    for correction in ("corrected", "uncorrected"):
        for quantity in ("expected_error", "actual_error", "minus_log_probability", "squared_error", "mean_log_alpha"):
            row[f"{correction}_{quantity}"] = 0.5
        row |= {f"{correction}_r_hat": 1.01, f"{correction}_effective_sample_size": 50.0, f"{correction}_seconds": 1.0}
        row[f"{correction}_converged"] = True
    bad = row | {"corrected_r_hat": None, "corrected_effective_sample_size": None, "corrected_converged": False}
    values["runner"] = "trimbench.papers.selection_bias.mixture:Mixture"
    outcome = make_experiment("mixture", values, ()).outcome(pd.DataFrame([row, bad]))
    chains = outcome.tables[2].frame.set_index("correction")
    assert math.isnan(chains.loc["corrected", "largest R-hat"])
    assert chains.loc["uncorrected", "largest R-hat"] == 1.01
    assert chains["converged"].to_dict() == {"corrected": "1 of 2", "uncorrected": "2 of 2"}
    (warning,) = [note for note in outcome.notes if note.startswith("Warning")]
    assert "the chains have not converged in every replicate of k = 4 corrected." in warning
