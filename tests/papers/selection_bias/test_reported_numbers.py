"""The experiments, with the settings of the slides, give exactly the numbers that the slides print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from omegaconf import OmegaConf

from trimbench.papers.configuration import configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.planning import make_experiment
from trimbench.papers.vocabulary.reported import Literature, check_numbers

from ..command_line import PROJECT, Command, table_of

QUALITY = {
    f"{correction}_{quantity}": 0.25
    for correction in ("corrected", "uncorrected")
    for quantity in ("expected_error", "actual_error", "minus_log_probability", "squared_error")
}
BINS = {
    f"{correction}_{name}": [number] * 10
    for correction in ("corrected", "uncorrected")
    for name, number in (("counts", 10), ("predicted_sums", 0.5), ("positives", 1))
}
PROFILE = ("replicates", "simulation_replicates", "posterior_replicates", "mixture_replicates", "mixture_draws")
# How many numbers are reported, and a result of one job.
EXPECTED: dict[str, tuple[int, Mapping[str, Any]]] = {
    "correlation_table": (135, {"correlation": [[0.5] * 9] * 15}),
    "selection_scatter": (4, {name: [0.5] * 4 for name in ("gammas", "mean_sample", "mean_true", "true", "sample")}),
    "calibration": (60, BINS),
    "runtime": (11, {"corrected_seconds": [1.0] * 5, "uncorrected_seconds": [2.0] * 5}),
    "simulation": (12, {"gamma": 0.5} | QUALITY),
    "alpha_posterior": (
        4,
        {f"{c}_mean_log_alpha": 5.0 for c in ("corrected", "uncorrected")}
        | {f"{c}_{name}": [0.0, 1.0] for c in ("corrected", "uncorrected") for name in ("log_alpha", "log_density")},
    ),
    "mixture": (
        3,
        QUALITY
        | {"gamma": 0.5}
        | {
            f"{c}_{name}": 1.0
            for c in ("corrected", "uncorrected")
            for name in ("mean_log_alpha", "r_hat", "effective_sample_size", "converged", "seconds")
        },
    ),
    "colon": (6, {"n_cases": 62, "n_positive": 40} | {name: [value] * 10 for name, value in QUALITY.items()}),
}


def test_all_reported_numbers_are_tried() -> None:
    reported = Literature.of(PROJECT).experiments
    assert {f"selection_bias/{name}" for name in EXPECTED} == {name for name in reported if name.startswith("sel")}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_experiment_gives_what_is_reported(name: str, tmp_path: Path) -> None:
    config = OmegaConf.load(configuration_folder() / f"experiment/selection_bias/{name}.yaml")
    config = OmegaConf.merge({"profile": dict.fromkeys(PROFILE, 4)}, config)
    values: Any = OmegaConf.to_container(config, resolve=True)
    experiment = make_experiment(name, values, ("profile",))
    n_reported, result = EXPECTED[name]
    rows = [
        {**cell.labels, "status": "ok", "job": cell.job.key, **result}
        for cell in experiment.cells(Inputs(PROJECT, Cache((), tmp_path)))
    ]
    outcome = experiment.outcome(pd.DataFrame(rows))
    reported = Literature.of(PROJECT).reported(f"selection_bias/{name}")
    assert len(reported) == len(outcome.numbers) == n_reported
    check_numbers(reported, outcome.numbers, complete=True)
    assert all(number.jobs for number in outcome.numbers)
    # A verdict reads prediction intervals alone.
    assert {one.interval.kind for one in outcome.numbers if one.interval is not None} <= {"prediction"}


def test_the_table_of_correlations_is_the_printed_one(command: Command) -> None:
    answer = command("experiment=selection_bias/correlation_table", "executor=serial")
    assert "135 of 135 identities hold" in answer.out
    compared = table_of("selection_bias/correlation_table")
    (odd,) = compared[compared["verdict"] == "within"].to_dict("records")
    assert (odd["cell"], odd["reported"], odd["reproduced"]) == ("I1 = 7/I0 = 7", -0.37, -0.375)
    command("experiment=selection_bias/correlation_table", "n0=3", "n1=2", "executor=serial", code=0)
    table = table_of("selection_bias/correlation_table").set_index("I1")
    assert table.shape == (3, 4)
    assert table.loc[2, "I0 = 0"] == 1.0
