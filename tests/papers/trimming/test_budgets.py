"""Agreement and accuracy against the budget, and selections on test rows, on small networks and data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.papers.beyond.budgets import AccuracyByBudget, AgreementByBudget
from trimbench.papers.beyond.rows import METHODS, BudgetedProblem, Rows
from trimbench.papers.configuration import Catalogue

from ..experiments import points_of, rows_of


def curve_rows(splits: int, budgets: list[int]) -> pd.DataFrame:
    random = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "dataset": "d",
            "split": split,
            "budget": budget,
            "status": "ok",
            "agreement": 0.9,
            "upper_bound": 0.9 + 0.01 * split - 1e-15,
            "optimal": split == 0,
            "test_agreement": random.random(),
            "test_accuracy": 0.5 + 0.1 * split,
            "full_test_accuracy": 0.75,
            "n_evaluations": 10 + split,
            "method_seconds": 0.1,
        }
        for budget in budgets
        for split in range(splits)
    )


def test_the_curve_averages_over_splits_and_spans_them() -> None:
    outcome = AccuracyByBudget(datasets=["d"], budgets=[1, 2], splits=3).outcome(curve_rows(3, [1, 2]))
    line = outcome.tables[0].frame.iloc[0]
    assert (line["splits"], line["proven"], line["evaluations"]) == (3, 1, 11)
    assert line["largest gap"] == pytest.approx(0.02)
    assert line["test accuracy"] == pytest.approx(0.6)
    points = outcome.figures[0].points
    accuracy = points[(points["series"] == "accuracy on test rows") & (points["x"] == 1)].iloc[0]
    assert (accuracy["low"], accuracy["y"], accuracy["high"]) == pytest.approx((0.5, 0.6, 0.7))
    assert outcome.figures[0].levels == {"accuracy with all features": 0.75}


def test_each_data_set_has_a_figure() -> None:
    names = ["breast_cancer", "example_simulated"]
    experiment = AccuracyByBudget(datasets=names, budgets=[1, 2], splits=2, evaluation_limit=5)
    rows = rows_of(experiment)
    figures = points_of(experiment.outcome(rows))
    assert list(figures) == names
    for points in figures.values():
        assert len(points) == 6
        assert (points["low"] <= points["y"]).all()
    assert (rows["agreement"] <= rows["upper_bound"] + 1e-12).all()
    # More features never agree less often.
    wide = rows.pivot_table(index=["dataset", "split"], columns="budget", values="agreement")
    assert (wide[1] <= wide[2] + 1e-12).all()


def test_curves_are_the_best_trimmings_of_every_budget(catalogue: Catalogue) -> None:
    own = Path(catalogue.folders[0]) / "network/small.yaml"
    own.write_text('format: erg\npath: small.erg\ntarget: r0\npositive: "1"\n')
    experiment = AgreementByBudget(networks=["small"], thresholds=[0.3, 0.5])
    rows = rows_of(experiment, catalogue)
    outcome = experiment.outcome(rows)
    smallest, lines = (table.frame for table in outcome.tables)
    network = tb.BayesianNetwork.read(catalogue.network_mapping("small")["path"])
    leaves = [node for node in network.nodes if not network.children(node) and node != "r0"]
    for line in lines.to_dict("records"):
        classifier = tb.BayesianClassifier(network, "r0", positive="1", features=leaves, threshold=line["T"])
        assert line["ECA"] == pytest.approx(tb.trim(classifier, line["budget"]).agreement, abs=1e-10)
    assert lines["budget"].tolist() == [*range(7)] * 2
    for line in smallest.to_dict("records"):
        ours = lines[lines["T"] == line["T"]]
        assert ours[ours["budget"] == line["ECA >= 0.9"]]["ECA"].item() >= 0.9
        assert (ours[ours["budget"] < line["ECA >= 0.9"]]["ECA"] < 0.9).all()
    assert len(outcome.figures[0].points) == 14


def test_a_network_without_a_class_has_no_curve(catalogue: Catalogue) -> None:
    with pytest.raises(ValueError, match=r"network 'small': `target` and `positive` must be declared, or set.*r0, r1"):
        rows_of(AgreementByBudget(networks=["small"], thresholds=[0.5]), catalogue)
    (row,) = rows_of(
        AgreementByBudget(networks=["small"], thresholds=[0.5], target="r1", positive="0"), catalogue
    ).to_dict("records")
    assert row["n_features"] == 6
    with pytest.raises(ValueError, match="target and positive must be given together, got 'r1' and None"):
        AgreementByBudget(networks=["small"], thresholds=[0.5], target="r1")


WINE = {"wine": BudgetedProblem(dataset="wine", positive=["class_0"], negative=["class_1", "class_2"], budget=3)}


@pytest.fixture(scope="module")
def experiment() -> Rows:
    return Rows(datasets=list(WINE), problems=WINE, splits=2, candidates={"sequential": 6, "recursive": 8})


@pytest.fixture(scope="module")
def rows(experiment: Rows) -> pd.DataFrame:
    return rows_of(experiment)


def test_every_method_keeps_to_the_budget(rows: pd.DataFrame) -> None:
    for row in rows.to_dict("records"):
        assert [found["method"] for found in row["methods"]] == list(METHODS)
        assert (row["n_features"], row["budget"]) == (13, 3)
        for found in row["methods"]:
            assert 1 <= len(found["features"]) <= 3
            assert 0.5 < found["test_agreement"] <= 1
            assert ("cross_fitted" in found) == (found["method"] in ("rows", "blend"))


def test_tables_hold_means_leads_and_counts(experiment: Rows, rows: pd.DataFrame) -> None:
    outcome = experiment.outcome(rows)
    agreement, accuracy, summary, promise, single = (table.frame for table in outcome.tables)
    assert len(agreement) == len(accuracy) == len(METHODS)
    assert len(single) == 2 * len(METHODS)
    for title in ("model", "rows", "blend", "RFE"):
        values = single[single["selected by"] == title]["agreement"].to_numpy()
        model = single[single["selected by"] == "model"]["agreement"].to_numpy()
        line = agreement[agreement["selected by"] == title].iloc[0]
        assert line["mean"] == pytest.approx(values.mean())
        if title == "model":
            assert math.isnan(line["lead"])
            continue
        assert line["lead"] == pytest.approx((values - model).mean())
        assert (line["wins"], line["losses"]) == ((values > model).sum(), (values < model).sum())
        ours = summary[(summary["selected by"] == title) & (summary["quantity"] == "agreement")].iloc[0]
        assert ours["mean lead"] == pytest.approx(line["lead"])
        assert ours["splits won"] == line["wins"]
        assert ours["certainly ahead"] == int(line["lead low"] > 0)
    gap = promise["cross-fitted"] - promise["test rows"]
    assert promise["optimism"].to_numpy() == pytest.approx(gap.to_numpy())
    assert [figure.name for figure in outcome.figures] == ["", "labels"]
    drawn = outcome.figures[0].points
    assert drawn["y"].to_numpy() == pytest.approx(
        agreement[agreement["selected by"].isin(["rows", "blend"])]["lead"].to_numpy()
    )
