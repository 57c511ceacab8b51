"""The comparison on rows with missing features: what it runs, and how it counts wins and judges claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from trimbench.papers.beyond import incomplete_methods
from trimbench.papers.beyond.incomplete_methods import Shape, compare_with_gaps, hidden_copies, split_tables
from trimbench.papers.beyond.missing_values import MissingValues, claim_lines, groups_of
from trimbench.papers.conformant.tasks import feature_codes
from trimbench.papers.data.masks import Missingness
from trimbench.papers.execution.job import arguments_of
from trimbench.papers.measures import brier_score, calibration_error, log_loss
from trimbench.papers.vocabulary.outcome import mean_of

from ..experiments import inputs_of, rows_of

SETTINGS: dict[str, Any] = {"datasets": ["iris"], "mechanism": ["mcar"], "missing": [0.5]}
METHODS = ["mixture", "nacl", "mean"]


def run_of(values: dict[tuple[str, str, float], dict[str, list[float]]]) -> pd.DataFrame:
    """Return rows as of jobs, from the log losses of methods on splits, by data set, mechanism and share."""
    rows = []
    for (dataset, mechanism, missing), losses in values.items():
        for split in range(len(losses["mixture"])):
            methods = [
                {"training": "complete", "method": name, "status": "ok", "log_loss": one[split], "brier": 0.1}
                | {"accuracy": 0.9, "calibration": 0.1, "us_per_row": 1.0, "fit_seconds": 1.0}
                for name, one in losses.items()
            ]
            methods.append({"training": "complete", "method": "patterns", "status": "not applicable", "reason": "many"})
            rows.append(
                {"dataset": dataset, "title": dataset, "mechanism": mechanism, "missing": missing, "split": split}
                | {"status": "ok", "job": f"{split}", "n_train": 400, "n_test": 100, "methods": methods}
            )
    return pd.DataFrame(rows)


def test_a_job_measures_every_method_it_can_use() -> None:
    experiment = MissingValues(**SETTINGS, incomplete=["mcar"], methods=METHODS, splits=1, numbers=["iris"])
    (found,) = rows_of(experiment).to_dict("records")
    assert (found["n_train"], found["n_test"], found["missing_percent"]) == (120, 30, 50.0)
    assert [(one["training"], one["method"]) for one in found["methods"]] == [
        (rows, name) for rows in ("complete", "incomplete") for name in METHODS
    ]
    for one in found["methods"]:
        assert one["status"] == "ok"
        assert 0 < one["log_loss"] < 2
        assert 0.3 < one["accuracy"] <= 1
        assert 0 <= one["brier"] < 1
        assert one["us_per_row"] > 0


def test_shares_belong_to_mechanisms() -> None:
    experiment = MissingValues(
        **{**SETTINGS, "mechanism": ["block", "mcar"]}, missing_at_random=[0.1, 0.5], incomplete=["block"], splits=1
    )
    cells = experiment.cells(inputs_of())
    places = [(cell.labels["mechanism"], cell.labels["missing"], cell.job.parameters["training"]) for cell in cells]
    assert places == [
        ("block", 0.5, ["complete", "incomplete"]),
        ("mcar", 0.1, ["complete"]),
        ("mcar", 0.5, ["complete"]),
    ]


def test_images_shrink_and_both_parts_share_one_mechanism() -> None:
    (cell,) = MissingValues(**{**SETTINGS, "datasets": ["digits"]}, methods=["mixture"], splits=1).cells(inputs_of())
    task = arguments_of(cell.job)["task"]
    size = {"numbers": False, "train_rows": 300, "test_rows": 100}
    whole, small = (split_tables(task, Shape(shrink=shrink, **size)) for shrink in (1, 2))
    assert (whole.train.shape, small.train.shape, small.test.shape) == ((300, 64), (300, 16), (100, 16))
    square = whole.train.reshape(300, 4, 2, 4, 2)[:, 1, :, 2].sum(axis=(1, 2))
    assert (small.train[:, 6] == (square >= 2)).all()
    rows, columns = np.vstack([whole.train, whole.test]), {str(place): own for place, own in enumerate(whole.columns)}
    how = (feature_codes(rows, whole.columns), Missingness("depends_on_features"), 0.5, np.random.default_rng(0))
    masked, gaps = hidden_copies(rows, 300, 2, columns, *how)
    assert masked.shape == (600, 64)
    assert (np.isnan(masked).sum(axis=1) == 32).all()
    assert (np.isnan(masked[:300]) != np.isnan(masked[300:])).any()
    observed = ~np.isnan(masked).any(axis=0)
    assert observed.sum() == 6
    assert not np.isnan(gaps[:, observed]).any()


def test_leads_and_claims_follow_from_the_losses() -> None:
    sets = ["adult", "covtype", "fashion", "mnist", "mnist_5v3", "splice"]
    surely, hardly = (
        {"mixture": [0.1, 0.2, 0.3], "nacl": [0.2, 0.3, 0.41]},
        {"mixture": [0.1, 0.2], "nacl": [0.1, 0.21]},
    )
    values = {(name, "mcar", 0.5): {**surely, "mean": [0.1, 0.2, 0.1]} for name in sets[:4]}
    values |= {(name, "mcar", 0.5): hardly for name in sets[4:]}
    experiment = MissingValues(**SETTINGS)
    outcome = experiment.outcome(run_of(values))
    summary, claims, means, _, statuses, measures = (table.frame for table in outcome.tables)
    nacl = summary[(summary["measure"] == "log loss") & (summary["against"] == "NaCL")].iloc[0]
    assert nacl[["cells", "wins", "draws", "losses", "better", "worse"]].tolist() == [6, 4, 2, 0, 6, 0]
    mean = summary[(summary["measure"] == "log loss") & (summary["against"] == "mean")].iloc[0]
    assert mean[["cells", "wins", "draws", "losses", "worse"]].tolist() == [4, 0, 4, 0, 4]
    assert claims["verdict"].tolist() == ["holds", "does not hold", "open"]
    assert claims["cells"].tolist() == ["6 of 6", "4 of 6", "6 of 42"]
    assert means["NaCL"].tolist() == pytest.approx([0.91 / 3] * 4 + [0.155] * 2)
    assert statuses[["times", "reason"]].to_numpy().tolist() == [[16, "many"]]
    line = measures[(measures["data"] == "Adult") & (measures["method"] == "NaCL")].iloc[0]
    expected = mean_of([0.1, 0.1, 0.11], test_per_train=0.25).with_ends
    assert line[["lead of mixture", "lead low", "lead high"]].tolist() == pytest.approx(expected)
    assert [figure.name for figure in outcome.figures] == sets


def test_a_failed_method_is_a_row_and_without_jobs_all_claims_are_open() -> None:
    rows = run_of({("iris", "mcar", 0.5): {"mixture": [0.1, 0.2], "nacl": [0.2, 0.3]}})
    for methods in rows["methods"]:
        methods[1] |= {"status": "failed", "reason": "ValueError: no"}
    (statuses,) = [table.frame for table in MissingValues(**SETTINGS).outcome(rows).tables if table.name == "status"]
    assert statuses[["method", "status", "times"]].to_numpy().tolist()[0] == ["NaCL", "failed", 2]
    outcome = MissingValues(**SETTINGS).outcome(rows.assign(status="failed"))
    assert {line["verdict"] for line in claim_lines(groups_of(rows.assign(status="failed")))} == {"open"}
    assert not outcome.figures


def test_a_method_that_raises_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ValueError("singular")

    monkeypatch.setattr(incomplete_methods, "fit_naive_bayes", broken)
    experiment = MissingValues(**SETTINGS, methods=["mixture", "naive_bayes"], splits=1, numbers=["iris"], seed=1)
    (cell,) = experiment.cells(inputs_of())
    methods: Any = compare_with_gaps(**arguments_of(cell.job))["methods"]
    mixture, bayes = methods
    assert mixture["status"] == "ok"
    failed = {"status": "failed", "reason": "ValueError: singular"}
    assert bayes == {"training": "complete", "method": "naive_bayes", **failed}


def test_measures_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), 200)
    truth = rng.integers(0, 3, 200)
    assert log_loss(truth, probabilities) == pytest.approx(metrics.log_loss(truth, probabilities))
    assert brier_score(truth, probabilities) == pytest.approx(
        metrics.brier_score_loss(truth, probabilities, labels=[0, 1, 2], scale_by_half=False)
    )
    error = 0.0
    for low in np.arange(0, 1, 0.1):
        top = probabilities.max(axis=1)
        here = (top >= low) & (top < low + 0.1)
        if here.any():
            right = probabilities[here].argmax(axis=1) == truth[here]
            error += here.mean() * abs(top[here].mean() - right.mean())
    assert calibration_error(truth, probabilities) == pytest.approx(error)
    assert log_loss(truth, np.eye(3)[truth]) == 0.0
    assert calibration_error(truth, np.eye(3)[truth]) == 0.0


def test_masks_that_depend_see_one_number_for_each_feature() -> None:
    rows = np.array([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert feature_codes(rows, [(0, 1, 2), (3,)]).tolist() == [[2, 1], [3, 0], [0, 1]]
