"""The experiments on gene expression data and on mixture models."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trimbench.papers.configuration import Catalogue
from trimbench.papers.selection_bias.colon import Colon
from trimbench.papers.selection_bias.mixture import Mixture, MixturePrior
from trimbench.papers.selection_bias.simulated_cases import PriorSettings
from trimbench.papers.validation import ConfigurationError

from ..command_line import PROJECT, Command, table_of, write
from ..experiments import keys_of, outcome_of, points_of, rows_of, tables_of


@pytest.mark.usefixtures("undrawn")
def test_colon_on_the_real_data(command: Command, given_folder: Path) -> None:
    words = ("experiment=selection_bias/colon", "executor=serial", "offline=true", "splits=1", "prior.n_alpha=20")
    answer = command(*words)
    if "data not available" in answer.out:
        pytest.skip("TRIMBENCH_CACHE does not hold the data set colon")
    subsets = table_of("selection_bias/colon_subsets")
    assert len(subsets) == 10
    assert (subsets["corrected AMLP"] < subsets["uncorrected AMLP"]).sum() >= 9
    means = table_of("selection_bias/colon").set_index(["split", "correction"])
    n_lower = (subsets["corrected AMLP"] < subsets["uncorrected AMLP"]).sum()
    assert means.loc[("all", "corrected"), "lower AMLP"] == f"{n_lower} of 10"
    assert (subsets["corrected expected error"] > subsets["uncorrected expected error"]).all()
    rows = table_of("selection_bias/colon_rows")
    assert rows["n_cases"].tolist() == [62]
    assert rows["n_positive"].tolist() == [40]
    assert len(json.loads(rows["corrected_actual_error"][0])) == 10


def test_mixture_reports_its_chains() -> None:
    sizes = {"n_features": 200, "n_train": 30, "n_test": 100, "replicates": 2, "n_warmup": 40, "n_draws": 60}
    experiment = Mixture(ks=[4], response=[0.1, 0.9], prior=MixturePrior(n_alpha=15), **sizes)
    chains = tables_of(outcome_of(experiment))["chains"].set_index("correction")
    assert (chains["largest R-hat"] > 0.9).all()
    assert (chains["smallest effective sample size"] > 1).all()
    assert chains.loc["corrected", "mean log(alpha)"] > chains.loc["uncorrected", "mean log(alpha)"]


def test_neither_prediction_wins_on_equal_losses() -> None:
    """Two subsets: one tie, one that the correction wins."""
    quantities = ("expected_error", "actual_error", "minus_log_probability", "squared_error")
    row: dict[str, Any] = {"status": "ok", "dataset": "colon", "split": 0, "job": "a", "n_cases": 62, "n_positive": 40}
    row |= {f"{c}_{q}": [0.5, 0.25] for c in ("corrected", "uncorrected") for q in quantities}
    row["uncorrected_minus_log_probability"] = [0.5, 0.75]
    outcome = Colon(datasets=["colon"], n_subsets=2, splits=1).outcome(pd.DataFrame([row]))
    means = outcome.tables[0].frame.set_index(["split", "correction"])
    assert means.loc[("all", "corrected"), "lower AMLP"] == "1 of 2"
    assert means.loc[("all", "uncorrected"), "lower AMLP"] == "0 of 2"


def test_chains_that_have_not_converged_are_named() -> None:
    """One replicate of two has chains that stand still apart from each other."""
    row: dict[str, Any] = {"status": "ok", "job": "one", "n": 100, "k": 4, "gamma": 0.3}
    for correction in ("corrected", "uncorrected"):
        for quantity in ("expected_error", "actual_error", "minus_log_probability", "squared_error", "mean_log_alpha"):
            row[f"{correction}_{quantity}"] = 0.5
        row |= {f"{correction}_r_hat": 1.01, f"{correction}_effective_sample_size": 50.0, f"{correction}_seconds": 1.0}
        row[f"{correction}_converged"] = True
    bad = row | {
        "job": "two",
        "corrected_r_hat": None,
        "corrected_effective_sample_size": None,
        "corrected_converged": False,
    }
    outcome = Mixture(ks=[4], response=[0.1, 0.9]).outcome(pd.DataFrame([row, bad]))
    chains = outcome.tables[2].frame.set_index("correction")
    assert math.isnan(chains.loc["corrected", "largest R-hat"])
    assert chains.loc["uncorrected", "largest R-hat"] == 1.01
    assert chains["converged"].to_dict() == {"corrected": "1 of 2", "uncorrected": "2 of 2"}
    (warning,) = [note for note in outcome.notes if note.startswith("Warning")]
    assert "the chains have not converged in every replicate of k = 4 corrected." in warning


def test_data_without_declared_facts_is_read(tmp_path: Path) -> None:
    """Three classes, then two, in a table of the user's own."""
    lines = ["g1,g2,g3,g4,state", *(f"{i},{-i},{i % 3},{i * i % 7},{'ab'[i % 2]}" for i in range(12))]
    declaration = "kind: csv\npath: genes.csv\ntarget: state\n"
    write(tmp_path / "dataset", {"genes.yaml": declaration, "genes.csv": "\n".join([*lines, "1,2,3,4,c"]) + "\n"})
    catalogue = Catalogue((tmp_path, *PROJECT.folders))
    experiment = Colon(datasets=["genes"], n_subsets=2, k=1, splits=1, prior=PriorSettings(n_alpha=4))
    with pytest.raises(ConfigurationError, match="datasets must have two classes of at least 2 cases"):
        keys_of(experiment, catalogue)
    (tmp_path / "dataset/genes.csv").write_text("\n".join(lines) + "\n")
    rows = rows_of(experiment, catalogue)
    assert rows["n_positive"].tolist() == [6]
    assert "errors_genes" in points_of(experiment.outcome(rows))
    with pytest.raises(
        ConfigurationError, match="n_subsets times k must be at most 4, the number of features of genes, got 2 times 3"
    ):
        keys_of(replace(experiment, k=3), catalogue)
