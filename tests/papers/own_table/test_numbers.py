"""The numbers of a study are those of separate calls of the library, and its lines learn its model again."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier
from trimbench.papers.measures import calibration_error
from trimbench.papers.own_table import study
from trimbench.papers.own_table.confidence import CALIBRATED, CORRECTED, UNCORRECTED
from trimbench.papers.own_table.found import Judged, Steps, cross_fitted_loss, paired_difference, stability_of
from trimbench.papers.own_table.report import conclusions, model_lines, notes
from trimbench.papers.own_table.settings import StoredTable, StudySettings, keep_table
from trimbench.papers.own_table.steps import (
    INFORMATION,
    MOST_FREQUENT,
    STATED_ROWS,
    TRIMMING,
    choose_budget,
    encoded,
    keeping,
    reliability,
)
from trimbench.papers.own_table.study import Study, prepared
from trimbench.papers.own_table.table_reading import DETERMINES, ColumnCard, read_table
from trimbench.papers.own_table.tables import figures_of, tables_of
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.masks import Missingness, split_rows
from trimbench.reproduction.execution.job import seed_for
from trimbench.trimming.baselines import select_features
from trimbench.trimming.result import wilson_interval

from .studies import SMALL, breast_cancer, iris, studied

# Training rows at most, which are fewer than there are.
ROWS = 300


@pytest.fixture(scope="module")
def cancer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder = tmp_path_factory.mktemp("cancer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("TRIMBENCH_CACHE", raising=False)
        yield studied(breast_cancer(), "diagnosis", folder / "jobs", rows=ROWS, budgets=[2, 6])


Rows = tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]


def features_and_classes() -> tuple[pd.DataFrame, np.ndarray]:
    table = breast_cancer().astype({"texture": "category"})
    return table, table.pop("diagnosis").astype(str).to_numpy()


def chosen(rows: np.ndarray, labels: np.ndarray, most: int) -> np.ndarray:
    """Some rows by the rule of a study."""
    seed = seed_for(purpose="fewer rows", seed=0)
    return rows[split_rows(len(rows), most / len(rows), seed, labels[rows])[1]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Training and test rows of the study, split here by its rule alone."""
    X, y = features_and_classes()
    train, test = split_rows(len(y), 0.25, seed_for(purpose="own table", split=0, seed=0), y == "malignant")
    train = chosen(train, y == "malignant", ROWS)
    return X.iloc[train], y[train], X.iloc[test], y[test]


def as_numbers(X: pd.DataFrame, X_test: pd.DataFrame) -> list[np.ndarray]:
    """Training and test rows as standardised numbers, and zeros and ones for each known category; NaN elsewhere."""
    columns = []
    for name in X:
        column, both = X[name], (X[name], X_test[name])
        if column.dtype == "category":
            known = sorted(column.dropna().unique())
            columns += [[(part == one).where(part.isin(known)).astype(float) for part in both] for one in known]
        else:
            columns.append([(part - column.mean()) / column.std(ddof=0) for part in both])
    return [np.column_stack(parts) for parts in zip(*columns, strict=True)]


def test_the_trimming(cancer: Study, rows: Rows) -> None:
    X, y, X_test, y_test = rows
    assert cancer.findings.failures == 0
    model = TrimmedClassifier(budget=2, time_limit=None).fit(X, y)
    full = TrimmedClassifier(budget=6, rows_weight=0).fit(X, y)
    found = cancer.steps.trimmings[0]
    assert found["budget"] == found["cost"] == 2
    assert tuple(found["features"]) == model.features_
    assert found["accuracy"] == (model.predict(X_test) == y_test).mean()
    assert found["agreement"] == (model.predict(X_test) == full.predict(X_test)).mean()
    assert found["accuracy_low"] < found["accuracy"] < found["accuracy_high"]
    of_model, of_rows = model.trimming_, model.trimming_.rows_agreement
    assert found["rows_weight"] == of_rows.weight
    assert 0 < of_rows.weight < 1
    for end, ours, others in (
        ("", of_rows.value, of_model.agreement),
        ("_low", of_rows.interval[0], of_model.agreement_interval[0]),
        ("_high", of_rows.interval[1], of_model.agreement_interval[1]),
    ):
        assert (found[f"rows_agreement{end}"], found[f"model_agreement{end}"]) == (ours, others)
        assert found[f"blended_agreement{end}"] == of_rows.weight * ours + (1 - of_rows.weight) * others
    other = next(one for one in cancer.steps.frontier[0]["methods"] if one["method"] == INFORMATION)
    by_gain = select_features(full.trimming_.original, 2, by="information_gain").features
    assert sorted(other["features"]) == sorted(by_gain)
    left_out = [name for name in X if name not in other["features"]]
    alone = TrimmedClassifier(budget=6, required=other["features"], forbidden=left_out, rows_weight=0).fit(X, y)
    assert other["accuracy"] == (alone.predict(X_test) == y_test).mean()
    kept = keeping(X, y, other["features"], StoredTable(X, np.zeros(len(X), dtype=np.int64), ()))
    assert kept.trimming_.threshold_interval == alone.trimming_.threshold_interval


@pytest.fixture(scope="module")
def priced(flowers: Study, flower_jobs: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study of Iris with costs, and with one class against the rest."""
    costs = dict.fromkeys(iris().columns[:4], 2.0) | {"petal width (cm)": 0.5}
    folder = tmp_path_factory.mktemp("priced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("TRIMBENCH_CACHE", raising=False)
        store = shutil.copytree(flower_jobs, folder / "jobs")
        return studied(iris(), "species", store, costs=costs, budgets=[0.5, 2.5], positive="virginica")


def test_figures_and_lines_speak_of_costs_where_there_are_some(flowers: Study, priced: Study) -> None:
    assert [one["cost"] for one in flowers.steps.trimmings] == [2, 4]
    # Three features decide as all four do, which would cost 6.5.
    assert [one["budget"] for one in priced.steps.trimmings] == [0.5, 2.5, 6.5]
    assert [one["cost"] for one in priced.steps.trimmings] == [0.5, 2.5, 4.5]
    assert priced.steps.trimmings[0]["features"] == ["petal width (cm)"]
    for found, what, label, lines in (
        (flowers.steps, "number", "features kept", []),
        (priced.steps, "cost", "cost of the features kept", [f"costs = {priced.plan.costs!r}", "costs=costs"]),
    ):
        accuracy, agreement, calibration, gaps, confidence = figures_of(found)
        assert accuracy.title == f"Accuracy on test rows against {what} of features"
        assert agreement.x_label == label
        for figure, measure in ((accuracy, "accuracy"), (agreement, "agreement")):
            methods = [one for row in reversed(found.frontier) for one in row["methods"]]
            points = figure.points.set_index(["series", "x"])["y"].to_dict()
            assert points == {(one["method"], one["cost"]): one[measure] for one in methods}
        honest = calibration.points[calibration.points["series"] == "honest"]
        assert honest["x"].tolist() == honest["y"].tolist() == [calibration.points["x"].min(), 1.0]
        assert set(gaps.points["x"]) == {40.0}
        assert set(confidence.points["x"]) == {4}
        code = model_lines(found, "table.csv", "species")
        assert re.findall(r"costs = .*|costs=costs", code) == lines
        assert found.chosen is not None
        ours = found.choices[0]["methods"][0]
        assert ours["n_right"] == round(found.chosen["accuracy"] * found.choices[0]["n_test"])
        seconds = [one["method_seconds"] for one in (*methods, *found.baseline)]
        assert all(0 <= one < 60 for one in seconds)


def test_three_classes_and_one_against_the_rest(flowers: Study, priced: Study) -> None:
    for found, labels, note in (
        (flowers, ["setosa", "versicolor", "virginica"], "the 3 classes as they are"),
        (priced, ["other", "virginica"], "virginica and the other 2 classes"),
    ):
        assert found.findings.failures == 0
        assert found.steps.chosen is not None
        assert found.steps.chosen["model"]["classes"]["labels"] == labels
        assert any(note in one for one in found.findings.outcome.notes)
    assert prepared(breast_cancer(), "diagnosis", None, StudySettings(positive="benign")).positive is None
    taken = StoredTable(pd.DataFrame(), np.arange(3), ("other", "a", "other_"))
    assert taken.answers("a").tolist() == ["other__", "a", "other__"]


@pytest.mark.parametrize(("rows", "gap_rows", "said"), [(111, 112, ["To"]), (112, 111, ["Missing"])])
def test_notes_say_where_rows_are_left_out(rows: int, gap_rows: int, said: list[str]) -> None:
    """Of 150 rows, 112 are there to learn from."""
    plan = prepared(iris(), "species", None, StudySettings(**SMALL | {"rows": rows, "gap_rows": gap_rows}))
    nothing: list[Any] = [*([] for _ in range(7)), {}]
    empty = Steps(plan.table, plan.costs, plan.settings, *nothing)
    told = notes(empty)
    assert sum(one.endswith(" both parts: 112 to learn from and 38 to test on.") for one in told) == 1
    assert conclusions(empty) == ["What to keep: no trimming could be computed."]
    assert [one.split()[0] for one in told if one.startswith(("To save time", "Missing features: "))] == said


def test_a_budget_is_chosen_on_training_rows_and_tested_on_others(cancer: Study, rows: Rows) -> None:
    """Nested cross-validation by folds that know no labels: no row is tested by what has seen it."""
    X, y, *_ = rows
    table, labels = features_and_classes()

    def choice(X: pd.DataFrame, y: np.ndarray) -> tuple[int, list[float]]:
        folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
        right = {budget: np.zeros(len(y)) for budget in (2, 6)}
        for budget, (train, test) in itertools.product(right, folds):
            model = TrimmedClassifier(budget=budget, rows_weight=0).fit(X.iloc[train], y[train])
            right[budget][test] = model.predict(X.iloc[test]) == y[test]
        behind = right[6] - right[2]
        return 2 if behind.mean() <= behind.std() / np.sqrt(len(y)) else 6, [one.mean() for one in right.values()]

    kept, accuracy = cancer.steps.chosen, cancer.steps.accuracy
    assert kept is not None
    assert accuracy is not None
    assert (kept["budget"], cancer.steps.choices[0]["cross_validated"]) == choice(X, y)
    n_right = 0
    for test in np.array_split(np.random.default_rng(0).permutation(len(labels)), 5):
        train = chosen(np.setdiff1d(np.arange(len(labels)), test), labels == "malignant", ROWS)
        model = TrimmedClassifier(budget=choice(table.iloc[train], labels[train])[0])
        n_right += int((model.fit(table.iloc[train], labels[train]).predict(table.iloc[test]) == labels[test]).sum())
    assert accuracy.n_rows == len(table)
    assert accuracy.value == n_right / len(table)
    # A fold is a quarter of the rows that it learns from, and there are five.
    assert (accuracy.low, accuracy.high) == wilson_interval(n_right / 2.25, len(table) / 2.25)
    assert str(accuracy) in conclusions(cancer.steps)[0]


def test_where_rows_are_many_those_of_the_test_part_are_kept_for_the_end(
    cancer: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "FEW", 10)
    (cell,) = cancer.plan._choice()
    assert cell.labels["fold"] is None
    steps = dataclasses.replace(cancer.steps, choices=cancer.steps.choices[:1])
    assert not steps.is_nested
    assert steps.accuracy is not None
    assert steps.accuracy.n_rows == steps.frontier[0]["n_test"]
    assert steps.chosen is not None
    assert steps.accuracy.value == steps.chosen["accuracy"]
    assert steps.judged is not None
    mean, low, high = steps.judged.difference(TRIMMING, "naive_bayes")
    assert mean == pytest.approx(steps.chosen["accuracy"] - steps.trimmings[-1]["accuracy"])
    assert -1 <= low < mean < high <= 1


def test_a_difference_on_the_same_rows_is_as_wide_as_its_sample_says(cancer: Study) -> None:
    first = cancer.steps.choices[0]
    mean, low, high = paired_difference(6, 2, 50)
    rows = np.repeat([1.0, -1.0, 0.0], [6, 2, 42])
    assert mean == rows.mean()
    assert high - mean == pytest.approx(1.96 * np.sqrt((rows.var() + 2 / 50) / 50))
    folds = paired_difference(6, 2, 50, are_folds=True)
    assert folds[2] - mean == pytest.approx(1.5 * (mean - low)), "as if of the rows of 1 / 2.25 times as many"
    assert (paired_difference(3, 0, 3)[2], paired_difference(0, 3, 3)[1]) == (1, -1)
    for gained, lost in ((9, 0), (0, 9), (1, 0)):
        ours, naive_bayes = first["methods"][:2]
        ours = {**ours, "only": {**ours["only"], "naive_bayes": gained}}
        naive_bayes = {**naive_bayes, "only": {**naive_bayes["only"], TRIMMING: lost}}
        methods = [ours, naive_bayes, *first["methods"][2:]]
        found = dataclasses.replace(cancer.steps, choices=[{**first, "methods": methods}])
        assert ("so there may be none" in conclusions(found)[0]) == (gained + lost < 9)


def test_what_people_use_is_tested_on_the_same_rows(cancer: Study) -> None:
    """Each fold is learned from and tested anew with scikit-learn, with nothing but the rule of the folds."""
    table, labels = features_and_classes()
    judged = cancer.steps.judged
    assert judged is not None
    assert not judged.failures
    forest, frequent = np.zeros((2, len(labels)), dtype=bool)
    for test in np.array_split(np.random.default_rng(0).permutation(len(labels)), 5):
        train = chosen(np.setdiff1d(np.arange(len(labels)), test), labels == "malignant", ROWS)
        own = encoded(table.iloc[train], table.iloc[test])
        model = RandomForestClassifier(random_state=0).fit(own.train, labels[train])
        forest[test] = model.predict(own.test) == labels[test]
        frequent[test] = labels[test] == pd.Series(labels[train]).mode()[0]
    assert judged.n_right["random_forest"] == forest.sum()
    assert judged.n_right[MOST_FREQUENT] == frequent.sum()
    assert judged.only["random_forest", MOST_FREQUENT] == (forest & ~frequent).sum()
    for first, second in itertools.permutations(judged.n_right, 2):
        behind = judged.n_right[first] - judged.n_right[second]
        assert behind == judged.only[first, second] - judged.only[second, first]
    shown = next(one for one in tables_of(cancer.steps) if one.name == "classifiers")
    assert "wider because folds learn from shared rows" in shown.title
    assert shown.frame["accuracy"].is_monotonic_decreasing
    low, accuracy, high = (shown.frame[f"accuracy{end}"] for end in (" low", "", " high"))
    assert ((low < accuracy) & (accuracy < high)).all()


@pytest.mark.parametrize(("only", "said"), [(12, "The best is"), (3, "No best can be told: random forest leads")])
def test_the_best_is_said_only_where_it_can_be_told_from_the_next(cancer: Study, only: int, said: str) -> None:
    names, n_right = (TRIMMING, "random_forest", "boosted_trees"), (80, 80 + only, 70)
    pairs = {pair: only * (pair[0] == "random_forest") for pair in itertools.permutations(names, 2)}
    judged = Judged(100, dict(zip(names, n_right, strict=True)), pairs, False, {"logistic_regression": "no room"})
    found = dataclasses.replace(cancer.steps)
    vars(found)["judged"] = judged
    (sentence,) = (one for one in conclusions(found) if one.startswith("Beside what people use"))
    assert f"{said}" in sentence
    lines = next(one.frame for one in tables_of(found) if one.name == "classifiers").set_index("classifier")
    assert lines.loc[TRIMMING, "differs from the first"] == ("yes" if only == 12 else "no")
    assert lines.loc["logistic regression", "reason"] == "no room"
    assert "the difference from all features is not known" in conclusions(found)[0]


def test_the_lowest_loss_is_chosen_on_other_rows_than_it_is_measured_on(cancer: Study) -> None:
    (group,) = cancer.steps.gaps
    halves = {"nacl": [[1.0, 2.0], [0.3, 0.1]], "mean": [[1.5, 0.5], [0.4, 0.6]]}
    one = group.by_method["nacl"][0]
    rows = {name: {split: {**one, "halves": two} for split, two in enumerate(own)} for name, own in halves.items()}
    found = dataclasses.replace(group, by_method=rows)
    # Of the first split, one half chooses NaCL and the other half the mean; of the second, both choose NaCL.
    assert cross_fitted_loss(found, ["nacl", "mean"]) == pytest.approx((2.0 + 1.5 + 0.1 + 0.3) / 4)
    assert cross_fitted_loss(found, []) is None
    rows["mean"] = {split: {"status": "failed", "reason": "no room"} for split in rows["mean"]}
    assert cross_fitted_loss(found, ["nacl", "mean"]) is None
    measured = group.by_method["nacl"][0]
    n_test, n_first = cancer.findings.rows["n_test"].dropna().iloc[0], -(-142 // 2)
    assert n_test == 142
    mean = (n_first * measured["halves"][0] + (142 - n_first) * measured["halves"][1]) / 142
    assert measured["log_loss"] == pytest.approx(mean)


def test_the_accuracy_of_pure_noise_is_that_of_a_coin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some budget looks good on any test rows; what is stated has not seen them: pycaret/pycaret#1874."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise = pd.DataFrame(rng.normal(size=(80, 5))).assign(y=rng.choice(["a", "b"], 80))
        plan = prepared(noise, "y", None, StudySettings(budgets=[1], seed=seed))
        keep_table(plan.table, Cache.from_environment(offline=True))
        folds = [cell.job.parameters for cell in plan._choice() if cell.labels["fold"] is not None]
        tested: list[dict[str, Any]] = [choose_budget(**one) for one in folds]
        shares.append(Judged.of(tested, True).share(TRIMMING))
    values = np.array([share.value for share in shares])
    assert abs(values.mean() - 0.5) < 2.5 * 0.5 / np.sqrt(80 * len(shares))
    assert sum(share.low <= 0.5 <= share.high for share in shares) >= 2
    assert {share.n_rows for share in shares} == {80}


def test_methods_are_compared_by_differences_on_the_same_rows_and_splits(cancer: Study) -> None:
    tables = {table.name or "frontier": table.frame for table in tables_of(cancer.steps)}
    frontier, gaps, confidence = (tables[name] for name in ("frontier", "missing", "confidence"))
    ours = frontier[frontier["selected by"] == TRIMMING].set_index("budget")["accuracy"]
    others = frontier[(frontier["selected by"] != TRIMMING) & frontier["accuracy"].notna()]
    assert len(others) >= 2
    for row in others.to_dict("records"):
        assert row["difference from trimming"] == pytest.approx(row["accuracy"] - ours[row["budget"]])
        assert row["difference low"] < row["difference from trimming"] < row["difference high"]
        assert row["differs from trimming"] == (
            "yes" if row["difference low"] > 0 or row["difference high"] < 0 else "no"
        )
    for _, group in gaps.groupby(["missing", "share"]):
        best = group["log loss"].idxmin()
        np.testing.assert_allclose(
            group["behind the best"].drop(best), (group["log loss"] - group["log loss"][best]).drop(best)
        )
        assert not isinstance(group["differs from the best"][best], str)
        told = group["differs from the best"].drop(best)
        assert told.tolist() == ["yes" if low > 0 else "no" for low in group["behind low"].drop(best)]
    for table, what, low, high in (
        (gaps, "accuracy", "accuracy low", "accuracy high"),
        (confidence, "actual error", "actual low", "actual high"),
    ):
        assert table[what].between(table[low].clip(0, 1), table[high].clip(0, 1)).all()


@pytest.mark.parametrize(
    ("leads", "said"),
    [
        ([0.3], " One split is not enough to compare it with mean; splits=... takes more."),
        ([0.3, 0.3], " On the same splits, it is lower than that of mean by 0.300 (0.300 to 0.300)."),
        ([0.5, -0.1], " On the same splits, it is lower than that of mean by 0.200 (-"),
    ],
)
def test_the_best_method_can_be_told_from_the_next_or_not(cancer: Study, leads: list[float], said: str) -> None:
    (group,) = cancer.steps.gaps
    losses = {"nacl": [1.0] * len(leads), "mean": [1.0 + lead for lead in leads]}
    rows = {
        name: {split: {**group.by_method[name][0], "log_loss": loss} for split, loss in enumerate(own)}
        for name, own in losses.items()
    }
    gaps = [dataclasses.replace(group, by_method=rows, missing=missing) for missing in (0.2, 0.4)]
    found = dataclasses.replace(cancer.steps, gaps=gaps)
    (sentence,) = (one for one in conclusions(found) if one.startswith("Missing features"))
    assert said in sentence
    assert f"The others: mean {1 + np.mean(leads):.3f}{' (' if len(set(leads)) > 1 else '.'}" in sentence
    shown = next(table.frame for table in tables_of(found) if table.name == "missing")
    points = next(figure.points for figure in figures_of(found) if figure.name.startswith("missing"))
    assert not (shown["log loss low"] < 0).any()  # a log loss never is
    assert (shown["accuracy low"] < shown["accuracy high"]).all(), "also where it is the same on all splits"
    assert not (points["low"] < 0).any()
    rows["mean"] = {split: {"status": "failed", "reason": "no room"} for split in rows["mean"]}
    lines = next(table.frame for table in tables_of(found) if table.name == "missing").set_index("method")
    assert set(lines.loc["mean", "reason"]) == {f"failed: no room ({len(leads)} times)"}
    assert lines["log loss"].isna().tolist() == lines["calibration error"].isna().tolist() == [False, True] * 2


def test_the_confidence_after_selection(cancer: Study, rows: Rows) -> None:
    X, y, X_test, y_test = rows
    train, test = as_numbers(X, X_test)
    shown = figures_of(cancer.steps)[-1]
    points = shown.points.set_index("series")["y"]
    assert shown.methods == {name: name.split(",")[0] for name in points.index}
    found = {row["method"]: row for row in cancer.steps.confidence}
    assert len(found) == 8
    for method, title, how in (
        (UNCORRECTED, "uncorrected", {"correct": False, "calibrate": False}),
        (CORRECTED, "corrected", {"calibrate": False}),
        (CALIBRATED, "corrected and calibrated", {}),
    ):
        row = found[method]
        assert points[f"{title}, expected"] == row["expected_error"]
        assert points[f"{title}, actual"] == row["actual_error"]
        model = SelectionCorrectedNB(k=5, **how).fit(train, y)
        assert row["expected_error"] == pytest.approx(model.expected_error(test), rel=1e-12)
        assert row["actual_error"] == (model.predict(test) != y_test).mean()
        assert row["log_loss"] == pytest.approx(log_loss(y_test, model.predict_proba(test)), rel=1e-9)


@pytest.mark.parametrize(("expected_error", "is_too_low"), [(0.29, False), (0.24, True)])
def test_a_stated_error_that_the_correction_does_not_make_right(
    cancer: Study, expected_error: float, is_too_low: bool
) -> None:
    """Beyond chance: below the interval of the actual error, which begins at 0.25 here."""
    rows = [
        {**row, "expected_error": expected_error, "actual_error": 0.3, "accuracy_high": 0.75}
        for row in cancer.steps.confidence
    ]
    said = conclusions(dataclasses.replace(cancer.steps, confidence=rows))
    assert sum(one.startswith("After selecting 5 of 8 columns: error rate 30.0 % (25.0 to ") for one in said) == 1
    assert sum("With 5 columns the stated error is too low" in one for one in said) == is_too_low
    assert sum("BBC-CV) 30.0 % (25.0 to " in one for one in said) == 1


def test_a_kept_column_that_determines_the_target_is_said(cancer: Study) -> None:
    first, *others = cancer.steps.chosen["features"] if cancer.steps.chosen else []
    card = tuple(
        dataclasses.replace(one, notes=(DETERMINES,)) if one.name == first else one for one in cancer.steps.table.card
    )
    table = dataclasses.replace(cancer.steps.table, card=card)
    said = conclusions(dataclasses.replace(cancer.steps, table=table))
    assert others
    assert said[1].startswith(f"Check {first} first: it determines the target")
    assert not any(one.startswith("Check") for one in conclusions(cancer.steps))


def test_a_search_that_was_stopped_is_said(cancer: Study) -> None:
    def stopped(note: str) -> bool:
        return note.startswith("For the budgets 2, 6 the search was stopped after 20 s")

    methods = [{**one, "was_stopped": True} for one in cancer.steps.frontier[0]["methods"]]
    frontier = [{**row, "methods": methods} for row in cancer.steps.frontier]
    assert not any(map(stopped, notes(cancer.steps)))
    assert any(map(stopped, notes(dataclasses.replace(cancer.steps, frontier=frontier))))


def test_accuracy_and_calibration_of_all_features(cancer: Study, rows: Rows) -> None:
    X, y, X_test, y_test = rows
    train, test = as_numbers(X, X_test)
    filled, filled_test = (np.where(np.isnan(part), np.nanmean(train, axis=0), part) for part in (train, test))
    found = {row["classifier"]: row for row in cancer.steps.baseline}
    truth = (y_test == "malignant").astype(int)
    for name, model, part in (
        ("logistic_regression", fit_logistic_regression(filled, (y == "malignant").astype(int)), filled_test),
        ("boosted_trees", HistGradientBoostingClassifier(random_state=0).fit(train, y), test),
    ):
        probabilities = model.predict_proba(part)
        assert found[name]["accuracy"] == (probabilities.argmax(axis=1) == truth).mean()
        assert found[name]["log_loss"] == pytest.approx(log_loss(truth, probabilities), rel=1e-6)
        assert found[name]["calibration"] == pytest.approx(calibration_error(truth, probabilities), abs=1e-6)


def test_groups_of_similar_confidence() -> None:
    confidence = np.array([0.9, 0.6, 0.8, 0.7] * 13)
    probabilities = np.column_stack([confidence, 1 - confidence])
    low, high = reliability(np.where(confidence > 0.65, 0, 1), probabilities)
    assert low["confidence"] == pytest.approx(0.65)
    assert high["confidence"] == pytest.approx(0.85)
    assert (low["rows"], low["right"], high["rows"], high["right"]) == (26, 0.5, 26, 1.0)
    (one,) = reliability(np.zeros(3, dtype=np.int64), probabilities[:3])
    assert one["rows"] == 3
    for n_rows, n_groups in ((49, 1), (50, 2), (500, 10)):
        assert len(reliability(np.zeros(n_rows, dtype=np.int64), np.full((n_rows, 2), 0.5))) == n_groups


def test_the_explanations(cancer: Study, rows: Rows) -> None:
    X, y, *_ = rows
    model = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
    table, _ = features_and_classes()
    assert len(cancer.steps.explanations) == 2
    for one in cancer.steps.explanations:
        expected = model.explain(table.iloc[one["row"]], against=one["against"])
        assert [name for name, _ in one["features"]] == [table.columns[i] for i in expected.features]
        row = table.iloc[[one["row"]]]
        assert one["stability"] == pytest.approx(model.same_decision_probability(row)[0], abs=1e-9)
        assert one["stability"] == 1 or row.isna().any(axis=None)


def test_explanations_count_rows_as_the_card_does_and_show_dates(cancer: Study) -> None:
    """They count from 1; a date is one, not a number of days, and a name with a comma is quoted."""
    card = [ColumnCard("born", "date", 1, 0, ""), ColumnCard("height, cm", "number", 1, 0, "")]
    one = {**cancer.steps.explanations[0], "row": 108, "opposing": []}
    one["features"] = [["born", 18350.0], ["height, cm", 171.25], ["ward", "north"]]
    table = dataclasses.replace(cancer.steps.table, card=tuple(card))
    steps = dataclasses.replace(cancer.steps, table=table, explanations=[one])
    (found,) = (table for table in tables_of(steps) if table.name == "explanations")
    assert "counted from 1" in found.title
    assert found.frame["row"].tolist() == [109]
    assert found.frame["kept by"].tolist() == ["born = 2020-03-29, 'height, cm = 171.2', ward = north"]
    assert found.frame["although"].tolist() == [""]
    chosen = {**cancer.steps.trimmings[0], "features": ["height, cm", "age"], "budget": 2}
    chosen |= {"agreement_low": 0.9, "agreement_high": 1.0}
    kept = dataclasses.replace(cancer.steps)
    vars(kept)["chosen"] = chosen
    assert conclusions(kept)[0].startswith("What to keep: 'height, cm', age (2 of 6")
    assert "; the frontier has the test rows of one split." in conclusions(kept)[0]


def test_predictions_with_missing_features(cancer: Study) -> None:
    """What stays of each row decides: the same masks, hidden here, give the same predictions."""
    X, y = features_and_classes()
    parts = split_rows(len(y), 0.25, seed_for(purpose="own table", split=0, seed=0), y == "malignant")
    train, test = (chosen(part, y == "malignant", 200) if len(part) > 200 else part for part in parts)
    n = len(train)
    mask = Missingness().draw(4 * n + len(test), list(X.columns), 0.4, np.random.default_rng([0, 0, 400000]))
    hidden = X.iloc[test].mask(mask[4 * n :])
    model = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X.iloc[train], y[train])
    (group,) = cancer.steps.gaps
    assert group.values("nacl", "accuracy")[0] == (model.predict(hidden) == y[test]).mean()
    expected = log_loss(y[test], model.predict_proba(hidden))
    assert group.values("nacl", "log_loss")[0] == pytest.approx(expected, rel=1e-5)
    # Of the decisions, those of the rows without gaps of their own can be compared with what everything says.
    whole = X.iloc[test].notna().all(axis=1).to_numpy()
    one = group.by_method["nacl"][0]
    stays = model.predict(hidden[whole]) == model.predict(X.iloc[test][whole])
    assert one["stability"] == stays.mean()
    few = np.random.default_rng(whole.sum()).permutation(np.flatnonzero(whole))[:STATED_ROWS]
    assert len(few) < whole.sum()
    stated = model.same_decision_probability(hidden.iloc[few]).mean()
    assert one["stated_stability"] == pytest.approx(stated, rel=1e-5)
    found = stability_of(group, "nacl")
    assert found is not None
    found_stated, *share = found
    assert (found_stated, *share) == (one["stated_stability"], stays.mean(), *wilson_interval(stays.sum(), whole.sum()))
    assert stability_of(group, "mean") is None
    shown = next(one.frame for one in tables_of(cancer.steps) if one.name == "missing").set_index("method")
    assert shown.loc["NaCL", "stays"] == stays.mean()
    assert np.isnan(shown.loc["mean", "stays"])
    (sentence,) = (said for said in conclusions(cancer.steps) if said.startswith("Missing features"))
    assert f"stay once all values are known; {100 * stated:.1f} % are stated." in sentence


def test_splits_give_the_share_that_stays_an_interval(cancer: Study) -> None:
    (group,) = cancer.steps.gaps
    rows = {place: {**group.by_method["nacl"][0], "stability": one} for place, one in enumerate((0.9, 1.0))}
    found = stability_of(dataclasses.replace(group, by_method={"nacl": rows}), "nacl")
    assert found is not None
    stated, mean, low, high = found
    assert (mean, high) == (0.95, 1.0)
    assert 0 <= low < 0.95
    assert stated == group.by_method["nacl"][0]["stated_stability"]


def test_the_lines_learn_the_model_again(cancer: Study, capsys: pytest.CaptureFixture[str]) -> None:
    breast_cancer().to_csv("table.csv", index=False)
    exec(cancer.code, {})
    chosen = cancer.steps.chosen
    assert chosen is not None
    assert capsys.readouterr().out == f"features: {', '.join(chosen['features'])}\n"
    assert json.loads(Path("model.json").read_text(encoding="utf-8")) == chosen["model"]


def test_the_lines_name_no_home(cancer: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "anna"))
    lines = model_lines(cancer.steps, str(tmp_path / "anna/mine/table.csv"), "diagnosis")
    assert "read_table('~/mine/table.csv', 'diagnosis')" in lines
    assert "anna-old/t.csv" in model_lines(cancer.steps, str(tmp_path / "anna-old/t.csv"), "diagnosis")
    (tmp_path / "anna").mkdir()
    breast_cancer().to_csv(tmp_path / "anna/table.csv", index=False)
    assert read_table("~/table.csv", "diagnosis").name == "table"
