"""Figure 7, scaling, budgets and selections on small networks and data, against direct computation."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.networks.test_contraction import enumerated
from tests.trimming import brute_force
from trimbench.papers.beyond.budgets import AccuracyByBudget, AgreementByBudget, Scaling, TwoSides
from trimbench.papers.beyond.rows import METHODS, BudgetedProblem, Rows
from trimbench.papers.trimming.figure7 import Figure7, binary_roots, draw_class
from trimbench.reproduction.configuration import Catalogue

from ..experiments import TOY, points_of, rows_of, values_of

GIVEN_TITLES = [
    "Figure 7 given the competition's evidence: agreement with the original, mean over the thresholds",
    "Agreement with the original at each threshold given the competition's evidence",
    "Settings (network, class and threshold) in which the trimming agrees more often given the competition's evidence",
    "Networks and classes that could not be computed within the limits given the competition's evidence",
]
THRESHOLDS = [0.2, 0.5, 0.8]
TWO_SIDES = {"cancer": TwoSides(dataset="breast_cancer", positive=["malignant"], negative=["benign"])}


def test_figure_7_is_what_its_definition_says(catalogue: Catalogue) -> None:
    experiment = Figure7(networks=["small"], thresholds=THRESHOLDS, classes=3)
    rows = rows_of(experiment, catalogue)
    network = tb.BayesianNetwork.read(catalogue.declared("network", "small")["path"])
    leaves = [node for node in network.nodes if not network.children(node)]
    assert sorted(rows["target"]) == sorted(node for node in network.nodes if not network.parents(node))
    for row in rows.to_dict("records"):
        assert (row["n_features"], row["budget"]) == (6, 2)
        for point in row["points"]:
            threshold = point["threshold"]
            classifier = tb.BayesianClassifier(
                network, row["target"], positive=network.states(row["target"])[-1], features=leaves, threshold=threshold
            )
            subsets = [s for n in range(3) for s in itertools.combinations(range(6), n)]
            best = max(brute_force.achievable_agreement(classifier, s) for s in subsets)
            assert point["agreement"] == pytest.approx(best, abs=1e-10)
            assert point["no_feature"] == pytest.approx(brute_force.achievable_agreement(classifier, ()), abs=1e-10)
            gain = [leaves.index(name) for name in tb.select_features(classifier, 2, by="information_gain").features]
            assert point["gain_same_threshold"] == pytest.approx(
                brute_force.expected_agreement(classifier, gain, threshold), abs=1e-10
            )
            assert point["gain_best_threshold"] == pytest.approx(
                brute_force.achievable_agreement(classifier, gain), abs=1e-10
            )
    outcome = experiment.outcome(rows)
    summary, lines, claim, refused = (table.frame for table in outcome.tables)
    assert summary[["engine", "proven"]].to_numpy().tolist() == [["dense", "3 of 3"]] * 3
    assert len(lines) == 9
    assert refused.empty
    assert (lines["lead"] >= 0).all()
    assert claim["number"].tolist()[0] == 9
    assert claim["at least as often as information gain"].tolist()[0] == 9
    assert claim["strictly more often"].tolist()[0] == int((lines["lead"] > 0).sum())
    values = values_of(outcome)
    assert values["all settings/at_least_as_often_percent"] == 100
    assert values["all settings/more_often_percent"] == pytest.approx(100 * (lines["lead"] > 0).mean())
    looking = lines[lines["no feature"] < 1 - 1e-9].groupby("class")["kept"].agg(["size", "nunique"])
    expected = 100 * (looking[looking["size"] > 1]["nunique"] > 1).mean()
    assert values["all settings/classes_with_other_features_percent"] == pytest.approx(expected)
    differ = len({frozenset(chosen) for chosen in rows["gain_features"]}) == len(rows)
    assert values["all settings/networks_with_other_gain_features_percent"] == 100 * differ
    figure, without_features = outcome.figures
    at_half = figure.points[(figure.points["series"] == "trimming") & (figure.points["x"] == 0.5)]["y"].item()
    assert at_half == pytest.approx(lines[lines["T"] == 0.5]["trimming"].mean())
    least = without_features.points.set_index("x")["y"]
    assert least.to_dict() == pytest.approx(lines.groupby("T")["no feature"].mean().to_dict())


@pytest.fixture
def with_evidence(catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The small network as files in a cache, with evidence on a root and two leaves."""
    own = Path(catalogue.folders[0]) / "network"
    network = tb.BayesianNetwork.read(own / "small.erg")
    seen = [("r1", 0), ("x0", 1), ("x4", 0)]
    evidence = "\n".join(["3", *(f"{network.nodes.index(node)} {state}" for node, state in seen)])
    folder = tmp_path / "cache/files"
    folder.mkdir(parents=True)
    files = {}
    for role, name, content in (
        ("network", "small.erg", (own / "small.erg").read_bytes()),
        ("evidence", "small.erg.evid", evidence.encode()),
    ):
        (folder / name).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        files[role] = {"path": name, "url": f"https://example.org/{name}", "sha256": sha256}
    (own / "observed.yaml").write_text(json.dumps({"format": "erg", "files": files}))
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    return catalogue


def given_evidence(network: tb.BayesianNetwork, target: str, features: list[str], evidence: dict[str, str]) -> Any:
    """The network of the target and the features alone, given the evidence: each depends on all before it."""
    names = [target, *features]
    joint = enumerated(network, [*names, *evidence])
    joint = joint[(..., *(network.states(node).index(state) for node, state in evidence.items()))]
    tables = {}
    for i, name in enumerate(names):
        part = joint.sum(axis=tuple(range(i + 1, len(names))))
        tables[name] = part / part.sum(axis=-1, keepdims=True)
    return tb.BayesianNetwork(
        {name: network.states(name) for name in names}, {name: names[:i] for i, name in enumerate(names)}, tables
    )


def test_figure_7_given_evidence_is_what_its_definition_says(with_evidence: Catalogue) -> None:
    experiment = Figure7(networks=["small"], evidence_networks=["observed"], thresholds=THRESHOLDS, classes=3)
    rows = rows_of(experiment, with_evidence)
    network = tb.BayesianNetwork.read(Path(with_evidence.folders[0]) / "network/small.erg")
    evidence = {"r1": "0", "x0": "1", "x4": "0"}
    leaves = [node for node in network.nodes if not network.children(node) and node not in evidence]
    given = rows[rows["evidence"] != "none"]
    *solved, last = given.to_dict("records")
    assert len(rows) == 6
    assert last["refused"] == "only 2 of the binary roots are not observed"
    assert {row["target"] for row in solved} == {"r0", "r2"}
    for row in solved:
        assert (row["n_features"], row["budget"]) == (4, 1)
        twin = given_evidence(network, row["target"], leaves, evidence)
        for point in row["points"]:
            threshold = point["threshold"]
            classifier = tb.BayesianClassifier(
                twin, row["target"], positive=twin.states(row["target"])[-1], features=leaves, threshold=threshold
            )
            best = max(brute_force.achievable_agreement(classifier, s) for s in [(), (0,), (1,), (2,), (3,)])
            assert point["agreement"] == pytest.approx(best, abs=1e-10)
            gain = [leaves.index(name) for name in row["gain_features"]]
            assert point["gain_same_threshold"] == pytest.approx(
                brute_force.expected_agreement(classifier, gain, threshold), abs=1e-10
            )


def test_what_is_given_evidence_stands_apart(with_evidence: Catalogue) -> None:
    both = Figure7(networks=["small"], evidence_networks=["observed"], thresholds=[0.5], classes=2)
    alone = Figure7(networks=["small"], thresholds=[0.5], classes=2)
    outcome, plain = (experiment.outcome(rows_of(experiment, with_evidence)) for experiment in (both, alone))
    assert [number.value for number in outcome.numbers] == [number.value for number in plain.numbers]
    assert [number.jobs for number in outcome.numbers] == [number.jobs for number in plain.numbers]
    titles = [table.title for table in plain.tables]
    assert [table.title for table in outcome.tables] == [*titles, *GIVEN_TITLES]
    seconds = ["seconds"]
    for one, other in zip(outcome.tables, plain.tables, strict=False):
        pd.testing.assert_frame_equal(
            one.frame.drop(columns=seconds, errors="ignore"), other.frame.drop(columns=seconds, errors="ignore")
        )
    names = [part.name for part in (*outcome.tables, *outcome.figures)]
    assert len(set(names)) == len(names)
    assert names[4:8] == [f"{name}given_evidence" for name in ("", "thresholds_", "claim_", "refused_")]
    assert names[-3:] == ["small", "no_feature", "observed_given_evidence"]
    assert "given the competition's evidence" in outcome.figures[-1].title
    assert set(outcome.tables[4].frame["network"]) == {"observed"}
    assert len(outcome.notes) == len(plain.notes) + 1


def test_a_network_without_declared_evidence_is_named(catalogue: Catalogue) -> None:
    experiment = Figure7(networks=["small"], evidence_networks=["small"], thresholds=[0.5])
    with pytest.raises(ValueError, match=r"network 'small' must be declared with an evidence file \(files\.evidence\)"):
        rows_of(experiment, catalogue)


def test_the_limit_on_operations_is_that_of_the_settings(catalogue: Catalogue) -> None:
    experiment = Figure7(networks=["small"], thresholds=[0.5], classes=1, max_operations=1000)
    rows = rows_of(experiment, catalogue)
    assert "max_operations = 1e+03" in rows["refused"].item()
    outcome = experiment.outcome(rows)
    assert [len(table.frame) for table in outcome.tables] == [0, 0, 0, 1]
    assert outcome.figures == outcome.numbers == []


def test_classes_are_drawn_without_repetition(catalogue: Catalogue) -> None:
    network = tb.BayesianNetwork.read(catalogue.declared("network", "small")["path"])
    drawn = [draw_class(binary_roots(network), "small", draw, 7) for draw in range(3)]
    assert len(set(drawn)) == 3
    assert [draw_class(binary_roots(network), "small", draw, 7) for draw in range(3)] == drawn
    with pytest.raises(ValueError, match=r"classes must be at most 3 for 'small' \(its binary roots\), got draw 4"):
        draw_class(binary_roots(network), "small", 3, 7)


def test_refused_networks_are_not_behind_the_numbers_of_figure_7(catalogue: Catalogue) -> None:
    experiment = Figure7(networks=["small"], thresholds=[0.5], classes=2)
    solved = rows_of(experiment, catalogue)
    refused = solved[:1].assign(job="refused", refused="needs a table of 2**40 entries; use fewer", points=None)
    failed = solved[:1].assign(job="failed", status="failed")
    outcome = experiment.outcome(pd.concat([refused, solved, failed], ignore_index=True))
    assert {"at_least_as_often_percent", "more_often_percent"} <= {one.quantity for one in outcome.numbers}
    assert {number.jobs for number in outcome.numbers} == {tuple(solved["job"])}
    assert outcome.tables[3].frame["reason"].tolist() == ["needs a table of 2**40 entries"]


def test_a_substitute_is_learned_on_data() -> None:
    experiment = Figure7(networks=[], thresholds=[0.5], substitutes=["toy"], problems=TOY, budget_divisor=5)
    rows = rows_of(experiment)
    (row,) = rows.to_dict("records")
    assert row["network"] == "substitute_toy"
    assert experiment.outcome(rows).figures[0].title.startswith("toy (substitute): ")
    assert row["engine"] == "DenseEngine"
    assert row["points"][0]["optimal"]
    assert row["points"][0]["agreement"] >= row["points"][0]["gain_best_threshold"] - 1e-12


def test_scaling_holds_certified_values_against_each_other() -> None:
    experiment = Scaling(datasets=list(TWO_SIDES), problems=TWO_SIDES, budgets=[2, 4], n_folds=2, evaluation_limit=5)
    rows = rows_of(experiment)
    assert set(rows["n_features"]) == {30}
    outcome = experiment.outcome(rows)
    agreement, test, baselines = (table.frame for table in outcome.tables)
    assert agreement["budget"].tolist() == [2, 4]
    assert (agreement["trimming"] + agreement["gap"] <= 1 + 1e-12).all()
    assert (agreement["interval width"] < 1e-3).all()
    assert agreement["trimming"].is_monotonic_increasing
    assert (agreement["trimming"] >= agreement["greedy accuracy, best T'"] - 1e-4).all()
    assert len(set(test["accuracy of all features"])) == 1
    assert len(baselines) == 2
    by_budget = outcome.figures[0]
    assert by_budget.x_scale == by_budget.y_scale == "log"
    drawn = by_budget.points[by_budget.points["series"] == "trimming"]
    assert drawn["y"].to_numpy() == pytest.approx(1 - agreement["trimming"])
    assert by_budget.methods["information gain"] == "information gain, best T'"
    assert set(by_budget.points["series"]) == {"trimming", "information gain", "greedy accuracy"}
    point = rows[rows["method"] == "information_gain"]["points"].item()[0]
    assert point["same_threshold_low"] <= point["same_threshold_high"]
    assert point["same_threshold_low"] <= point["best_threshold_high"]
    assert len(point["features"]) == 2


def scaling_of_toy(budgets: list[int], **sides: list[str]) -> Scaling:
    toy = TwoSides(dataset="example_simulated", positive=["1"], **sides)
    return Scaling(datasets=["toy"], problems={"toy": toy}, budgets=budgets, n_folds=3)


def test_scaling_of_a_small_classifier_is_exact() -> None:
    rows = rows_of(scaling_of_toy([3], negative=["0"]))
    point = rows[rows["method"] == "accuracy"]["points"].item()[0]
    assert point["best_threshold_low"] == point["best_threshold_high"]
    trimmed = rows[rows["method"] == "trimming"].iloc[0]
    assert trimmed["optimal"]
    assert trimmed["agreement_low"] >= point["best_threshold_high"] - 1e-12


def test_one_hot_features_and_left_out_classes() -> None:
    rows = rows_of(scaling_of_toy([2], negative=["0"], one_hot=["0", "1"]))
    assert set(rows["n_features"]) == {20}
    assert all("=" in name for name in rows.iloc[0]["features"])
    with pytest.raises(
        ValueError, match=r"positive and negative must be classes of 'example_simulated'.*got \['two'\]"
    ):
        rows_of(scaling_of_toy([2], negative=["two"]))


def test_a_declared_class_is_not_drawn(catalogue: Catalogue) -> None:
    own = Path(catalogue.folders[0]) / "network/small.yaml"
    own.write_text('format: erg\npath: small.erg\ntarget: x0\npositive: "0"\n')
    (row,) = rows_of(Figure7(networks=["small"], thresholds=[0.5], classes=3), catalogue).to_dict("records")
    assert row["target"] == "x0"
    assert row["n_features"] == 5


# Agreement and accuracy against the budget, and selections on test rows, on small networks and data.


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
    network = tb.BayesianNetwork.read(catalogue.declared("network", "small")["path"])
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
