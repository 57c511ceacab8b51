"""Methods for rows with missing features, each against a second way to compute it, and their comparison."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB

from trimbench.conformant.layout import FeatureLayout
from trimbench.papers.beyond.missing_values import MissingValues, claim_lines, groups_of
from trimbench.papers.conformant.protocols import feature_codes
from trimbench.papers.measures import brier_score, calibration_error, log_loss
from trimbench.papers.methods import missing_features
from trimbench.papers.methods.missing_features import (
    METHODS,
    JointNormal,
    NotApplicableError,
    Shape,
    Training,
    columns_for_trees,
    compare_with_gaps,
    enough_bins,
    fit_naive_bayes,
    hidden_copies,
    split_tables,
)
from trimbench.reproduction.data.masks import Missingness
from trimbench.reproduction.execution.job import arguments_of
from trimbench.reproduction.vocabulary.numbers import mean_of

from ..experiments import inputs_of, rows_of

SETTINGS: dict[str, Any] = {"datasets": ["iris"], "mechanism": ["mcar"], "missing": [0.5]}
COMPARED = ["mixture", "nacl", "mean"]


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
    experiment = MissingValues(**SETTINGS, incomplete=["mcar"], methods=COMPARED, splits=1, numbers=["iris"])
    (found,) = rows_of(experiment).to_dict("records")
    assert (found["n_train"], found["n_test"], found["missing_percent"]) == (120, 30, 50.0)
    assert [(one["training"], one["method"]) for one in found["methods"]] == [
        (rows, name) for rows in ("complete", "incomplete") for name in COMPARED
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
    summary, near, claims, means, _, statuses, measures = (table.frame for table in outcome.tables)
    counts = near.set_index("method")[["cells", "lowest", "within a standard error", "worse than the mean"]]
    # The mean is lowest on four sets, but by no more than a standard error.
    assert counts.loc["mixture of NaCL"].tolist() == [6, 2, 6, 0]
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

    monkeypatch.setattr(missing_features, "fit_naive_bayes", broken)
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


# Methods for rows with gaps, each against a second way to compute what it says.


BINARY = [(0,), (1,), (2, 3, 4)]


def training(*, complete: bool = True) -> Training:
    """Return 120 flowers of Iris; the masked rows lack the first or the last two measurements."""
    table, labels = load_iris(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(table))[:120]
    rows, labels = ((table - table.mean(axis=0)) / table.std(axis=0))[chosen], labels[chosen].astype(np.int64)
    masked = rows.copy()
    masked[::2, :2], masked[1::2, 2:] = np.nan, np.nan
    columns = [(column,) for column in range(4)]
    layout = FeatureLayout.of(4, real=range(4))
    return Training(rows if complete else masked, labels, masked, 3, columns, True, 1.0, 1.0, 0, layout)


@pytest.mark.parametrize("complete", [True, False])
def test_every_method_predicts_each_row_alone(complete: bool) -> None:
    given = training(complete=complete)
    gaps = given.masked[:6]
    for name, method in METHODS.items():
        try:
            predict = method.fit(given)
        except NotApplicableError:
            assert name == "mean_indicators" if complete else name in ("trees", "masked_regression")
            continue
        together = predict(gaps)
        assert together.sum(axis=1) == pytest.approx(1.0), name
        assert (together.argmax(axis=1) == given.labels[:6]).mean() > 0.6, name
        alone = np.vstack([predict(gaps[[place]]) for place in range(6)])
        # Rounding decides which of several equally near neighbours count.
        assert alone == pytest.approx(together, abs=0.02 if name == "knn" else 1e-9), name


def test_trees_of_few_rows_need_no_more_bins_than_there_are_rows() -> None:
    own = training()
    table, labels = own.with_gaps(masked=True)
    for rows, of_rows in ((own.rows, own.labels), (table, labels)):
        shown = {
            n_bins: HistGradientBoostingClassifier(max_iter=10, early_stopping=False, random_state=0, max_bins=n_bins)
            .fit(rows, of_rows)
            .predict_proba(own.masked)
            for n_bins in (255, enough_bins(len(own.rows)))
        }
        np.testing.assert_array_equal(*shown.values())
    assert [enough_bins(n) for n in (1, 30, 1000)] == [2, 30, 255]


def wide(n_columns: int, *, complete: bool, most: int | None) -> Training:
    """Return 40 rows of which the first five columns tell the class, and the others little."""
    rng = np.random.default_rng(2)
    labels = np.arange(40) % 2
    rows = rng.normal(size=(40, n_columns)) * 0.3
    rows[:, :5] += 4 * labels[:, None] * rng.normal(1, 0.1, size=(40, 5))
    masked = np.where(rng.random(rows.shape) < 0.2, np.nan, rows)
    columns = [(column,) for column in range(n_columns)]
    layout = FeatureLayout.of(n_columns, real=range(n_columns))
    own = rows if complete else masked
    return Training(own, labels, masked, 2, columns, True, 1.0, 1.0, 0, layout, most)


@pytest.mark.parametrize("complete", [True, False])
def test_in_wide_tables_chained_equations_fill_the_columns_that_weigh_most(complete: bool) -> None:
    whole, part = (wide(30, complete=complete, most=most) for most in (None, 5))
    gaps = whole.masked[:8]
    filled = missing_features._chained_in_part(part, 5)(gaps)
    means = missing_features.fit_imputer("mean", whole.rows)(gaps)
    equations = missing_features._imputer(whole, whole.rows[:, :5], "mice")(gaps[:, :5])
    np.testing.assert_array_equal(filled, np.hstack([equations, means[:, 5:]]))
    assert not np.array_equal(filled[:, :5], means[:, :5])
    learn = METHODS["iterative"].fit
    assert not np.array_equal(learn(part)(gaps), learn(whole)(gaps))
    same = wide(30, complete=complete, most=30)
    np.testing.assert_array_equal(learn(same)(gaps), learn(whole)(gaps))


def test_a_class_that_no_training_row_has_keeps_its_column() -> None:
    every = training(complete=False)
    kept = every.labels != 1
    labels = every.labels[kept]
    given = dataclasses.replace(every, rows=every.rows[kept], labels=labels, masked=every.masked[kept])
    for name in ("mixture", "nacl", "mean", "normal", "patterns", "naive_bayes"):
        found = METHODS[name].fit(given)(given.masked)
        assert (found.argmax(axis=1) == labels).mean() > 0.9, name
        assert found[:, 1].max() < 0.05, name


def test_a_complete_row_gets_what_the_classifier_says() -> None:
    given = training()
    expected = given.classifier.predict_proba(given.rows)
    for name in ("mixture", "nacl", "mean", "knn", "iterative", "normal"):
        assert METHODS[name].fit(given)(given.rows) == pytest.approx(expected, abs=1e-9), name


def test_patterns_are_regressions_of_what_is_observed() -> None:
    given = training()
    predict = METHODS["patterns"].fit(given)
    of_pattern = given.regression(given.rows[:, 2:], given.labels).predict_proba(given.rows[:1, 2:])
    assert predict(given.masked[:1]) == pytest.approx(of_pattern * 120 / 121 + 1 / 363)
    unknown = given.rows[:1].copy()
    unknown[0, 0] = np.nan
    assert predict(unknown) == pytest.approx(np.bincount(given.labels)[None] / 120), "no such rows were seen"


def test_the_normal_expectation_is_the_integral() -> None:
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(3, 3))
    normal = JointNormal.of(rng.normal(size=(500, 3)) @ mixing)
    classifier = SimpleNamespace(coef_=np.array([[1.0, -2.0, 0.5]]), intercept_=np.array([0.3]), classes_=np.arange(2))
    gaps = np.array([[0.4, np.nan, np.nan], [np.nan, 1.0, -1.0]])
    found = normal.expected_probabilities(classifier, gaps)[:, 1]
    filled = normal.fill(gaps)
    precision = np.linalg.inv(normal.covariance)
    for row, filled_row, probability in zip(gaps, filled, found, strict=True):
        missing = np.isnan(row)
        left = np.linalg.inv(precision[np.ix_(missing, missing)])
        shift = precision[np.ix_(missing, ~missing)] @ (row - normal.means)[~missing]
        mean = normal.means[missing] - left @ shift
        assert filled_row[missing] == pytest.approx(mean)
        drawn = np.random.default_rng(2).multivariate_normal(mean, left, 100_000)
        scores = 0.3 + drawn @ classifier.coef_[0, missing] + row[~missing] @ classifier.coef_[0, ~missing]
        assert probability == pytest.approx(np.mean(1 / (1 + np.exp(-scores))), abs=0.03)


def test_moments_of_incomplete_rows_come_close() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 4)) + 2.0
    whole = JointNormal.of(rows)
    part = JointNormal.of(np.where(rng.random(rows.shape) < 0.3, np.nan, rows))
    assert part.means == pytest.approx(whole.means, abs=0.15)
    assert part.covariance == pytest.approx(whole.covariance, abs=0.1 * whole.covariance.max())
    assert np.linalg.eigvalsh(part.covariance).min() > 0


def test_naive_bayes_is_that_of_scikit_learn_and_sums_over_what_is_missing() -> None:
    rng = np.random.default_rng(5)
    rows = np.hstack([rng.integers(0, 2, (200, 2)), np.eye(3)[rng.integers(0, 3, 200)]]).astype(float)
    labels = (rows[:, 0] + rng.random(200) > 0.8).astype(np.int64)
    predict = fit_naive_bayes(rows[:, :2], labels, 2, BINARY[:2], False, 1.0)
    theirs = BernoulliNB(class_prior=(np.bincount(labels) + 1) / 202).fit(rows[:, :2], labels)
    assert predict(rows[:, :2]) == pytest.approx(theirs.predict_proba(rows[:, :2]))
    predict = fit_naive_bayes(rows, labels, 2, BINARY, False, 1.0)
    row = np.array([[1.0, np.nan, np.nan, np.nan, np.nan]])
    prior = (np.bincount(labels) + 1) / 202
    assert predict(np.full((1, 5), np.nan))[0] == pytest.approx(prior), "nothing observed leaves the prior"
    ones = np.array([(rows[labels == k, 0].sum() + 1) / ((labels == k).sum() + 2) for k in (0, 1)])
    assert predict(row)[0] == pytest.approx(prior * ones / (prior * ones).sum())
    shares = np.array([(rows[labels == k, 4].sum() + 1) / ((labels == k).sum() + 3) for k in (0, 1)])
    row[0, 2:] = 0.0, 0.0, 1.0
    assert predict(row)[0] == pytest.approx(prior * ones * shares / (prior * ones * shares).sum())


def test_gaussian_naive_bayes_is_that_of_scikit_learn() -> None:
    given = training()
    predict = fit_naive_bayes(given.rows, given.labels, 3, given.columns, True, 0.0)
    theirs = GaussianNB(var_smoothing=1e-3).fit(given.rows, given.labels)  # its columns have equal variances
    assert predict(given.rows) == pytest.approx(theirs.predict_proba(given.rows), abs=5e-3)
    part = given.rows.copy()
    part[:, 1:] = np.nan
    of_one = GaussianNB(var_smoothing=1e-3).fit(given.rows[:, :1], given.labels)
    assert predict(part) == pytest.approx(of_one.predict_proba(given.rows[:, :1]), abs=5e-3)


def test_boosted_trees_of_few_rows_need_one_column() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 6)), np.arange(40) % 2
    rows[:, 0], rows[:, 1] = np.nan, labels
    assert columns_for_trees(rows).tolist() == [1, 2, 3, 4, 5]
    few, own = rows[:39], labels[:39]
    assert columns_for_trees(few).tolist() == [1]
    found = [
        HistGradientBoostingClassifier(random_state=0).fit(few[:, seen], own).predict_proba(few[:, seen])
        for seen in ([1], [1, 2, 3, 4, 5])
    ]
    assert np.array_equal(*found)
    trees = HistGradientBoostingClassifier(random_state=0).fit(rows[:, 1:], labels)
    assert trees.score(rows[:, 1:], labels) == 1.0
