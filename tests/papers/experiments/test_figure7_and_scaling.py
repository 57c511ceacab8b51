"""Figure 7 and the scaling experiment on small networks and data, against direct computation."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.networks.network_writers import encode_ergo
from tests.trimming import brute_force
from trimbench.networks.contraction import ContractionTooLarge
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import run_job_function
from trimbench.papers.trimming import figure7_jobs
from trimbench.papers.trimming.curves import Curves
from trimbench.papers.trimming.figure7 import Figure7
from trimbench.papers.trimming.scaling import Scaling

THRESHOLDS = [0.2, 0.5, 0.8]
TWO_SIDES = {"digits_1v7": {"dataset": "digits", "positive": ["1"], "negative": ["7"]}}


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """The project's declarations and a user's own network with three binary roots."""
    rng = np.random.default_rng(0)
    roots: dict[str, list[str]] = {f"r{i}": [] for i in range(3)}
    parents = {**roots, **{f"x{i}": [f"r{i % 3}", f"r{(i + 1) % 3}"] for i in range(6)}}
    states = {node: ["0", "1"] for node in parents}
    tables = {node: rng.dirichlet(np.ones(2), size=(2,) * len(above)) for node, above in parents.items()}
    folder = tmp_path / "own/network"
    folder.mkdir(parents=True)
    (folder / "small.erg").write_text(encode_ergo(tb.BayesianNetwork(states, parents, tables)))
    (folder / "small.yaml").write_text("format: erg\npath: small.erg\n")
    return Catalogue((tmp_path / "own", configuration_folder()))


def rows_of(experiment: Any, catalogue: Catalogue) -> pd.DataFrame:
    cells = experiment.cells(catalogue, Cache.from_environment(offline=True))
    return pd.DataFrame(
        [{**cell.labels, "status": "ok", "job": cell.job.key, **run_job_function(cell.job)} for cell in cells]
    )


def test_figure_7_is_what_its_definition_says(catalogue: Catalogue) -> None:
    experiment = Figure7(["small"], THRESHOLDS, classes=3)
    rows = rows_of(experiment, catalogue)
    network = tb.BayesianNetwork.read(catalogue.network_mapping("small")["path"])
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
            gain = [leaves.index(name) for name in tb.select_by_information_gain(classifier, 2)]
            assert point["gain_same_threshold"] == pytest.approx(
                brute_force.expected_agreement(classifier, gain, threshold), abs=1e-10
            )
            assert point["gain_best_threshold"] == pytest.approx(
                brute_force.achievable_agreement(classifier, gain), abs=1e-10
            )
    outcome = experiment.outcome(rows)
    summary, lines, claim, refused = (table.frame for table in outcome.tables)
    assert len(summary) == 3
    assert len(lines) == 9
    assert refused.empty
    assert (lines["lead"] >= 0).all()
    assert claim["number"].tolist()[0] == 9
    assert claim["at least as often as information gain"].tolist()[0] == 9
    assert claim["strictly more often"].tolist()[0] == int((lines["lead"] > 0).sum())
    assert outcome.reproduced["all settings/at_least_as_often_percent"] == 100
    assert outcome.reproduced["all settings/more_often_percent"] == pytest.approx(100 * (lines["lead"] > 0).mean())
    (figure,) = outcome.figures
    at_half = figure.points[(figure.points["series"] == "trimming") & (figure.points["x"] == 0.5)]["y"].item()
    assert at_half == pytest.approx(lines[lines["T"] == 0.5]["trimming"].mean())


def test_classes_are_drawn_without_repetition(catalogue: Catalogue) -> None:
    network = tb.BayesianNetwork.read(catalogue.network_mapping("small")["path"])
    drawn = [figure7_jobs.draw_class(network, "small", draw, 7) for draw in range(3)]
    assert len(set(drawn)) == 3
    assert [figure7_jobs.draw_class(network, "small", draw, 7) for draw in range(3)] == drawn
    with pytest.raises(ValueError, match=r"classes must be at most 3 for 'small' \(its binary roots\), got draw 4"):
        figure7_jobs.draw_class(network, "small", 3, 7)


def test_a_network_that_is_too_large_is_a_row_with_the_reason(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ContractionTooLarge("needs a table of 2**40 entries")

    monkeypatch.setattr("trimbench.papers.trimming.figure7_jobs.make_engine", refuse)
    experiment = Figure7(["small"], THRESHOLDS, classes=1)
    outcome = experiment.outcome(rows_of(experiment, catalogue))
    assert outcome.tables[3].frame["reason"].tolist() == ["needs a table of 2**40 entries"]
    assert outcome.tables[0].frame.empty
    assert outcome.tables[2].frame.empty
    assert outcome.figures == []


def test_a_substitute_is_learned_on_data(catalogue: Catalogue) -> None:
    problems = {"toy": {"dataset": "example_simulated", "positive": "1"}}
    experiment = Figure7([], [0.5], substitutes=["toy"], problems=problems, budget_divisor=5)
    (row,) = rows_of(experiment, catalogue).to_dict("records")
    assert row["network"] == "substitute_toy"
    assert row["engine"] == "DenseEngine"
    assert row["points"][0]["optimal"]
    assert row["points"][0]["agreement"] >= row["points"][0]["gain_best_threshold"] - 1e-12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"networks": []}, "networks and substitutes must be a list of at least one value"),
        ({"thresholds": []}, "thresholds must be a list of at least one value"),
        ({"thresholds": [1.5]}, r"threshold must be a probability in \[0, 1\], got 1.5"),
        ({"classes": 0}, "classes and budget_divisor must be 1 or more, got 0 and 3"),
        ({"smoothing": 0.0}, "smoothing must be a positive number, got 0.0"),
        ({"engine": "fast"}, "engine must be one of"),
    ],
)
def test_wrong_settings_of_figure_7(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Figure7(**{"networks": ["cpcs54"], "thresholds": [0.5]} | settings)


def test_scaling_holds_certified_values_against_each_other(catalogue: Catalogue) -> None:
    experiment = Scaling(list(TWO_SIDES), TWO_SIDES, [2, 6], n_folds=3, evaluation_limit=20)
    rows = rows_of(experiment, catalogue)
    assert set(rows["n_features"]) == {64}
    agreement, test, baselines = (table.frame for table in experiment.outcome(rows).tables)
    assert agreement["budget"].tolist() == [2, 6]
    assert (agreement["trimming"] + agreement["gap"] <= 1 + 1e-12).all()
    assert (agreement["interval width"] < 1e-3).all()
    assert agreement["trimming"].is_monotonic_increasing
    assert (agreement["trimming"] >= agreement["greedy accuracy, best T'"] - 1e-4).all()
    assert len(set(test["accuracy of all features"])) == 1
    assert len(baselines) == 2
    point = rows[rows["method"] == "information_gain"]["points"].item()[0]
    assert point["same_threshold_low"] <= point["same_threshold_high"]
    assert point["same_threshold_low"] <= point["best_threshold_high"]
    assert len(point["features"]) == 2


def test_scaling_of_a_small_classifier_is_exact(catalogue: Catalogue) -> None:
    toy = {"toy": {"dataset": "example_simulated", "positive": ["1"], "negative": ["0"]}}
    rows = rows_of(Scaling(["toy"], toy, [3], n_folds=3), catalogue)
    point = rows[rows["method"] == "accuracy"]["points"].item()[0]
    assert point["best_threshold_low"] == point["best_threshold_high"]
    trimmed = rows[rows["method"] == "trimming"].iloc[0]
    assert trimmed["optimal"]
    assert trimmed["agreement_low"] >= point["best_threshold_high"] - 1e-12


def test_one_hot_features_and_left_out_classes(catalogue: Catalogue) -> None:
    toy = {"toy": {"dataset": "example_simulated", "positive": ["1"], "negative": ["0"], "one_hot": ["0", "1"]}}
    rows = rows_of(Scaling(["toy"], toy, [2], n_folds=3), catalogue)
    assert set(rows["n_features"]) == {20}
    assert all("=" in name for name in rows.iloc[0]["features"])
    wrong = {"toy": {"dataset": "example_simulated", "positive": ["1"], "negative": ["two"]}}
    with pytest.raises(
        ValueError, match=r"positive and negative must be classes of 'example_simulated'.*got \['two'\]"
    ):
        rows_of(Scaling(["toy"], wrong, [2]), catalogue)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"datasets": []}, "datasets must be a list of at least one value"),
        (
            {"datasets": ["x"]},
            r"datasets must be among the names in problems, .*, got 'x'; define it with \+problems.x=",
        ),
        (
            {"datasets": ["a"], "problems": {"a": {"dataset": "digits"}}},
            "problems.a must have the keys dataset, positive, negative, got",
        ),
        ({"budgets": [0]}, "budgets must be numbers of features, 1 or more"),
        ({"threshold": 1.0}, "threshold and test_fraction must be strictly between 0 and 1"),
        ({"smoothing": 0.0}, "smoothing must be a positive number"),
        ({"evaluation_limit": 0}, "evaluation_limit must be 1 or more, or null"),
    ],
)
def test_wrong_settings_of_scaling(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scaling(**{"datasets": list(TWO_SIDES), "problems": TWO_SIDES, "budgets": [2]} | settings)


def test_figure_7_on_published_networks(given_folder: Path, command: Any, tmp_path: Path) -> None:
    answer = command(
        "experiment=trimming/figure7",
        "networks=[cpcs54,s386,bn_2]",
        "classes=2",
        "thresholds=[0.3,0.6]",
        "offline=true",
    )
    assert answer.code == 0, answer.err
    assert "## trimming/figure7: complete" in answer.out
    folder = tmp_path / "results/trimming"
    summary = pd.read_csv(folder / "figure7_table.csv").set_index("network")
    assert summary.loc["s386", "engine"].tolist() == ["sdd", "sdd"]
    assert summary.loc["cpcs54", "engine"].tolist() == ["dense", "dense"]
    assert (summary["smallest lead"] >= 0).all()
    assert set(summary["proven"]) == {"2 of 2"}
    refused = pd.read_csv(folder / "figure7_refused.csv")
    assert refused["network"].tolist() == ["bn_2", "bn_2"]
    assert refused["reason"].str.contains("max_entries = 2**26", regex=False).all()
    lines = pd.read_csv(folder / "figure7_thresholds.csv")
    assert len(lines) == 2 * (2 * 2 + 2)


def test_scaling_on_splice(given_folder: Path, command: Any, tmp_path: Path) -> None:
    answer = command("experiment=trimming/scaling", "datasets=[splice]", "budgets=[4]", "offline=true")
    assert answer.code == 0, answer.err
    (line,) = pd.read_csv(tmp_path / "results/trimming/scaling.csv").to_dict("records")
    assert line["features"] == 240
    assert line["interval width"] < 1e-3
    assert line["trimming"] > line["greedy accuracy, best T'"]


def test_curves_are_the_best_trimmings_of_every_budget(catalogue: Catalogue) -> None:
    own = Path(catalogue.folders[0]) / "network/small.yaml"
    own.write_text('format: erg\npath: small.erg\ntarget: r0\npositive: "1"\n')
    experiment = Curves(["small"], [0.3, 0.5])
    rows = rows_of(experiment, catalogue)
    outcome = experiment.outcome(rows)
    smallest, lines = (table.frame for table in outcome.tables)
    network = tb.BayesianNetwork.read(catalogue.network_mapping("small")["path"])
    for line in lines.to_dict("records"):
        classifier = tb.BayesianClassifier(network, "r0", positive="1", threshold=line["T"])
        assert line["ECA"] == pytest.approx(tb.trim(classifier, line["budget"]).agreement, abs=1e-10)
    assert lines["budget"].tolist() == [*range(7)] * 2
    for line in smallest.to_dict("records"):
        ours = lines[lines["T"] == line["T"]]
        assert ours[ours["budget"] == line["ECA >= 0.9"]]["ECA"].item() >= 0.9
        assert (ours[ours["budget"] < line["ECA >= 0.9"]]["ECA"] < 0.9).all()
    assert len(outcome.figures[0].points) == 14


def test_a_network_without_a_class_has_no_curve(catalogue: Catalogue) -> None:
    with pytest.raises(ValueError, match=r"network 'small': `target` and `positive` must be declared, or set.*r0, r1"):
        rows_of(Curves(["small"], [0.5]), catalogue)
    (row,) = rows_of(Curves(["small"], [0.5], target="r1", positive="0"), catalogue).to_dict("records")
    assert row["n_features"] == 6
    with pytest.raises(ValueError, match="target and positive must be given together, got 'r1' and None"):
        Curves(["small"], [0.5], target="r1")


def test_a_declared_class_is_not_drawn(catalogue: Catalogue) -> None:
    own = Path(catalogue.folders[0]) / "network/small.yaml"
    own.write_text('format: erg\npath: small.erg\ntarget: x0\npositive: "0"\n')
    (row,) = rows_of(Figure7(["small"], [0.5], classes=3), catalogue).to_dict("records")
    assert row["target"] == "x0"
    assert row["n_features"] == 5
