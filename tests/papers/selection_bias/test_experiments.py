"""The experiments on gene expression, mixtures, data without signal and data from the models' own priors."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB

from trimbench.papers.beyond.noise import METHODS, Drawn, Noise, SimulatedSets, cross_validated, folds_of, wrong_by_k
from trimbench.papers.beyond.prior_calibration import VARIANTS, PriorCalibration, Sizes, draw_mixture
from trimbench.papers.selection_bias.colon import Colon
from trimbench.papers.selection_bias.mixture import Mixture, MixturePrior
from trimbench.papers.selection_bias.simulated_cases import PriorSettings
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.settings import ConfigurationError

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


# The experiments on data without signal and on data from the models' own priors.


TINY = {"n_train": 12, "n_test": 30, "n_features": 30, "k": 2, "n_alpha": 5}


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "mixture"])
def test_the_posterior_places_the_true_alpha(variant: str) -> None:
    ranks = []
    for seed in range(30):
        draw = VARIANTS[variant](Sizes(**TINY), np.random.default_rng(seed))
        below, equal = draw.below["corrected"], draw.equal["corrected"]
        assert 0 <= below <= below + equal <= 1 + 1e-12
        ranks.append(below + equal / 2)
    # Uniform ranks have a standard deviation of 0.29.
    assert abs(np.mean(ranks) - 0.5) < 4 * 0.29 / 30**0.5


def test_cases_of_the_mixture_have_both_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    @dataclasses.dataclass
    class Fitted:
        log_alpha: np.ndarray
        converged: bool

    def fit(X: np.ndarray, y: np.ndarray, k: int, **settings: Any) -> Fitted:
        seen.append(y)
        return Fitted(np.full((4, 5), np.inf if settings["correct"] else -np.inf), settings["correct"])

    monkeypatch.setattr("trimbench.papers.beyond.prior_calibration.fit_selection_corrected", fit)
    draw = draw_mixture(Sizes(**TINY), np.random.default_rng(0))
    assert all(set(y) == {0, 1} for y in seen)
    assert draw.below == {"corrected": 0.0, "uncorrected": 1.0}
    assert not draw.converged


def test_prior_calibration_finds_what_is_wrong() -> None:
    """Corrected: uniform ranks and equal errors; uncorrected: all ranks high, and too sure by 0.1 everywhere."""
    steps = np.arange(100) / 100
    row: dict[str, Any] = {"status": "ok", "model": "binary", "first": 0, "converged": 100}
    noise = np.where(np.arange(100) % 2, 0.01, -0.01)
    for correction, ranks, gap in (("corrected", steps, 0.0), ("uncorrected", 0.9 + steps / 10, 0.1)):
        row |= {f"{correction}_expected_error": [0.2] * 100, f"{correction}_rank": ranks.tolist()}
        row[f"{correction}_actual_error"] = (0.2 + gap + noise).tolist()
    outcome = PriorCalibration(models={"binary": Sizes(**TINY)}).outcome(pd.DataFrame([row]))
    errors, ranked = (table.frame.set_index("correction") for table in outcome.tables)
    assert errors["within 2 standard errors of 0"].to_dict() == {"corrected": "yes", "uncorrected": "no"}
    assert errors.loc["uncorrected", "overconfidence"] == pytest.approx(0.1)
    assert ranked["bins outside their band"].to_dict() == {"corrected": "0 of 10", "uncorrected": "10 of 10"}
    assert (
        ranked.loc["uncorrected", "p-value (uniform ranks)"] < 1e-6 < ranked.loc["corrected", "p-value (uniform ranks)"]
    )


def test_naive_bayes_of_each_k_is_that_of_scikit_learn() -> None:
    split = Drawn(20.0, 0.3, 30, 200, 50, 10).split(np.random.default_rng(0))
    with np.errstate(invalid="ignore"):  # of constant features
        strength = np.abs(np.corrcoef(split.X.T, split.y)[-1, :-1])
    order = np.argsort(-np.nan_to_num(strength).round(12), kind="stable")
    ks = [1, 4, 20]
    expected = []
    for k in ks:
        model = BernoulliNB().fit(split.X[:, order[:k]], split.y)
        expected.append(int((model.predict(split.X_test[:, order[:k]]) != split.y_test).sum()))
    assert wrong_by_k(split.X, split.y, split.X_test, split.y_test, ks).tolist() == expected


def test_every_fold_leaves_out_both_classes() -> None:
    y = np.repeat([0, 1], [13, 27])
    folds = folds_of(y, 5, np.random.default_rng(0))
    for fold in range(5):
        assert np.bincount(y[folds == fold]).tolist() in ([3, 5], [2, 6], [3, 6], [2, 5])
    X = y[:, None].astype(np.uint8)
    assert cross_validated(X, y, [1], folds)[0] == 0.0


def test_features_of_a_block_are_correlated_within_the_classes() -> None:
    drawn = Drawn(None, 0.8, 10, 4000, 200, 2).split(np.random.default_rng(0))
    varied = drawn.X_test[drawn.y_test == 1].astype(float)
    middle = [j for j in range(0, 200, 2) if 0.3 < varied[:, j].mean() < 0.7 and 0.3 < varied[:, j + 1].mean() < 0.7]
    inside = [np.corrcoef(varied[:, j], varied[:, j + 1])[0, 1] for j in middle]
    between = [np.corrcoef(varied[:, j], varied[:, j - 2])[0, 1] for j in middle if j]
    assert np.mean(inside) == pytest.approx(2 / np.pi * np.arcsin(0.8), abs=0.08)
    assert abs(np.mean(between)) < 0.05


def test_verdicts_of_the_correction() -> None:
    """Closer to the truth than all methods but nested cross-validation, and as close as the uncorrected model."""
    gaps = dict.fromkeys(METHODS, 0.2) | {"corrected": 0.1, "uncorrected": 0.1, "nested": 0.0}
    rows = [
        {"status": "ok", "data": "none, rho = 0", "replicate": r, "p_value": p, "permutation_seconds": 1.0}
        | {f"{m}_expected": 0.5 - gap + 0.01 * (r % 2) for m, gap in gaps.items()}
        | {f"{m}_actual": 0.5 for m in METHODS}
        | {f"{m}_seconds": 0.1 for m in METHODS}
        for r, p in enumerate([0.01, 0.5, 0.6, 0.7])
    ]
    noise = Noise(simulated=SimulatedSets(signals={"none": None}, correlations=[0.0]), real_sets={}, real=[], ks=[1, 2])
    outcome = noise.outcome(pd.DataFrame(rows))
    verdicts = outcome.tables[1].frame.set_index("against")["the correction is"].to_dict()
    assert verdicts.pop(METHODS["nested"].title) == "worse"
    assert verdicts.pop(METHODS["uncorrected"].title) == "equal"
    assert set(verdicts.values()) == {"better"}
    assert outcome.tables[2].frame["share with p < 0.05"].tolist() == [0.25]
    assert "nested cross-validation: better on 0, equal on 0, worse on 1" in outcome.notes[0]
    # Each method is in one figure of errors, and in one of gaps.
    shown = [series for figure in outcome.figures for series in figure.points["series"].unique()]
    assert [shown.count(method.title) for method in METHODS.values()] == [2] * len(METHODS)
