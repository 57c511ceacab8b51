"""Trimmed classifiers of raw tables: what they learn, keep and predict, also from JSON files."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

import trimbench as tb
from trimbench._numba import clock
from trimbench.estimators import TrimmedClassifier

BY_MODEL = {"rows_weight": 0}


def patients(n_rows: int = 240, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers, text, truth values, categories and gaps; four columns depend on the class."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n_rows) < 0.4
    frame = pd.DataFrame(
        {
            "fever": np.where(rng.random(n_rows) < 0.2, np.nan, 37 + 1.5 * ill + rng.normal(0, 0.6, n_rows)),
            "ward": rng.choice(["north", "south"], n_rows),
            "colour": np.where(rng.random(n_rows) < 0.8, np.where(ill, "pale", "rosy"), None),
            "cough": rng.random(n_rows) < np.where(ill, 0.7, 0.2),
            "grade": pd.Categorical(np.where(rng.random(n_rows) < 0.75, np.where(ill, 3, 1), 2)),
            "noise": rng.normal(size=n_rows),
        }
    )
    return frame, pd.Series(np.where(ill, "ill", "well"), name="state")


def test_raw_columns_become_a_trimmed_classifier() -> None:
    X, y = patients()
    trimmed = TrimmedClassifier(budget=2, **BY_MODEL).fit(X, y)
    assert trimmed.classes_.tolist() == ["ill", "well"]
    assert trimmed.classifier_.positive == "well"
    assert trimmed.get_support().sum() == 2
    assert trimmed.get_feature_names_out().tolist() == list(trimmed.features_)
    assert "noise" not in trimmed.features_
    assert trimmed.score(X, y) > 0.8
    np.testing.assert_allclose(trimmed.predict_proba(X).sum(axis=1), 1.0)
    assert trimmed.trimming_.optimal
    assert trimmed.trimming_.agreement > 0.85
    original, coded = trimmed.trimming_.original, trimmed.discretizer_.transform(X)
    assert trimmed.trimming_.agreement == pytest.approx(
        tb.expected_agreement(original, trimmed.features_, trimmed.classifier_.threshold), abs=1e-12
    )
    same = original.predict(coded) == trimmed.predict(X)
    assert same.mean() == pytest.approx(trimmed.trimming_.agreement, abs=0.1)


def test_arrays_of_objects_are_read_as_data_frames_are() -> None:
    X, y = patients()
    frame = TrimmedClassifier(budget=3, **BY_MODEL).fit(X, y)
    array = TrimmedClassifier(budget=3, **BY_MODEL).fit(X.drop(columns="grade").to_numpy(dtype=object), y)
    assert array.features_ == tuple(f"x{place}" for place in array.get_support(indices=True))
    without = TrimmedClassifier(budget=3, **BY_MODEL).fit(X.drop(columns="grade"), y)
    assert array.get_support().tolist() == without.get_support().tolist()
    assert array.predict(X.drop(columns="grade").to_numpy(dtype=object)).tolist() == (
        without.predict(X.drop(columns="grade")).tolist()
    )
    assert frame.transform(X).shape == (240, 3)
    frame.set_output(transform="pandas")
    assert frame.transform(X).equals(X[list(frame.features_)])


def test_columns_that_are_left_out_may_hold_anything_and_kept_ones_may_be_missing() -> None:
    X, y = patients()
    trimmed = TrimmedClassifier(budget=2, required=["fever"], **BY_MODEL).fit(X, y)
    expected = trimmed.predict(X).tolist()
    empty = X.copy()
    for name in set(X) - set(trimmed.features_):
        empty[name] = None
    assert trimmed.predict(empty).tolist() == expected
    gone = X.assign(fever=np.nan)
    assert set(trimmed.predict(gone)) <= {"ill", "well"}
    with pytest.raises(ValueError, match="column 'fever' must be finite, got infinity; mark"):
        trimmed.predict(X.assign(fever=np.inf))


@pytest.mark.parametrize("density", ["naive_bayes", "tree_augmented", "mixture"])
def test_a_stopped_search_fills_the_budget_and_says_so(density: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.trimming.problem.clock", itertools.count(10**9).__next__)
    X, y = (part[::2] for part in load_digits(return_X_y=True))
    trimmed = TrimmedClassifier(8, density=density, time_limit=1e-6)
    with pytest.warns(
        ConvergenceWarning, match=r"time_limit=1e-06 seconds: .* the 8 columns .* of 0\.\d+ at least.*99%.*=None may"
    ):
        trimmed.fit(X, y)
    assert len(trimmed.features_) == 8
    assert trimmed.trimming_.may_go_on
    assert trimmed.score(X, y) > 0.75  # 0.265 with the one column that the search had got to


@pytest.fixture
def _out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six columns are searched as dozens are, whose exact values are out of reach; bounds are from a coarse grid."""
    monkeypatch.setattr("trimbench.trimming.by_model.MAX_ENTRIES", 1)
    monkeypatch.setattr("trimbench.trimming.by_model._POINTS", 2**16)


@pytest.mark.usefixtures("_out_of_reach")
def test_a_search_that_does_not_try_exact_values_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.trimming.engines.log_odds._SECONDS_OF_STEP", 1e9)
    X, y = patients()
    equal = X[["cough", "noise"]].assign(opposite=~X["cough"])
    with pytest.warns(
        ConvergenceWarning, match=r"time_limit=3000 seconds, as exact values may take longer: .* by more than \d"
    ):
        TrimmedClassifier(1, rows_weight=0, time_limit=3000).fit(equal, y)
    # Without a rival, what is best needs no exact value.
    assert TrimmedClassifier(3, rows_weight=0, time_limit=3000).fit(X, y).trimming_.optimal


@pytest.mark.usefixtures("_out_of_reach")
def test_a_search_that_ends_without_a_time_limit_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.trimming.by_model._MOST_EVALUATIONS", 3)
    with pytest.warns(ConvergenceWarning, match=r"by the number of its evaluations: .*; trimming_\.resume\(\) may"):
        found = TrimmedClassifier(3, rows_weight=0, time_limit=None).fit(*patients()).trimming_
    assert found.resume().upper_bound <= found.upper_bound


@pytest.mark.parametrize("density", ["naive_bayes", "tree_augmented"])
def test_the_result_on_a_slow_machine_is_the_same_or_a_warning_says_why(
    density: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = patients()
    expected = TrimmedClassifier(2, density=density, time_limit=None).fit(X, y)
    for slowness in (1.0, 1e2, 1e4, 1e6):
        for name in ("problem.clock", "sampled.seconds_now"):
            monkeypatch.setattr(f"trimbench.trimming.{name}", lambda factor=slowness: factor * clock())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            found = TrimmedClassifier(2, density=density).fit(X, y)
        assert len(found.features_) == 2
        same = found.features_ == expected.features_ and found.predict(X).tolist() == expected.predict(X).tolist()
        assert same or [warning.category for warning in caught] == [ConvergenceWarning]
        assert slowness > 1.0 or not caught


def test_costs_groups_and_required_columns_by_name_or_position() -> None:
    X, y = patients()
    costs = {"visit": 1.0, "cough": 1.0, "ward": 1.0, 4: 3.0, "noise": 1.0}
    trimmed = TrimmedClassifier(budget=2, costs=costs, groups={"visit": ["fever", 2]}, required=[3], **BY_MODEL)
    trimmed.fit(X, y)
    assert trimmed.features_ == ("fever", "colour", "cough")
    by_series = TrimmedClassifier(budget=2, costs=pd.Series(dict.fromkeys(X, 1.0)), forbidden=["fever"], **BY_MODEL)
    assert "fever" not in by_series.fit(X, y).features_
    by_place = TrimmedClassifier(budget=2, costs=[3, 1, 1, 1, 1, 1], **BY_MODEL).fit(X, y)
    assert "fever" not in by_place.features_


def test_a_required_column_may_say_nothing() -> None:
    X, y = patients()
    trimmed = TrimmedClassifier(budget=2, required=["noise"], **BY_MODEL).fit(X, y)
    assert trimmed.discretizer_.rules[5].categories == ("any",)
    assert "noise" in trimmed.features_
    assert len(trimmed.features_) == 2


@pytest.mark.parametrize("density", ["naive_bayes", "tree_augmented", "mixture"])
@pytest.mark.parametrize("cut", ["mdl", "mean", "median"])
def test_several_classes_are_told_apart(density: str, cut: str) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    trimmed = TrimmedClassifier(budget=1, density=density, cut=cut, **BY_MODEL).fit(X, names)
    assert isinstance(trimmed.trimming_.original, tb.BayesianClassifier)
    assert trimmed.predict_proba(X).shape == (150, 3)
    if cut == "mdl":
        assert trimmed.features_ in [("x2",), ("x3",)]
        assert trimmed.score(X, names) > 0.93
    with pytest.raises(ValueError, match=r"threshold must be 0\.5 for 3 classes"):
        TrimmedClassifier(threshold=0.3).fit(X, y)


@pytest.mark.parametrize("rows_weight", [0, 1.0, "auto"])
def test_of_equal_columns_the_first_is_kept(rows_weight: Any) -> None:
    X, y = patients()
    twice = pd.concat([X.add_suffix(" again"), X], axis=1)
    for table, is_again in ((twice, True), (twice[twice.columns[::-1]], False)):
        (kept,) = TrimmedClassifier(1, rows_weight=rows_weight).fit(table, y).features_
        assert kept.endswith(" again") == is_again


def test_the_threshold_is_that_of_the_second_class() -> None:
    X, y = patients()
    bold = TrimmedClassifier(budget=6, threshold=0.95, **BY_MODEL).fit(X, y)
    shy = TrimmedClassifier(budget=6, threshold=0.05, **BY_MODEL).fit(X, y)
    assert (bold.predict(X) == "well").sum() < (shy.predict(X) == "well").sum()
    posterior = bold.predict_proba(X)[:, 1]
    assert (bold.predict(X) == "well").tolist() == (posterior >= bold.classifier_.threshold).tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 3}, "threshold must be a probability in [0, 1], got 3"),
        ({"forbidden": [9]}, "forbidden must have positions from 0 to 5, got 9"),
        ({"groups": [["fever"]]}, "groups must be a mapping from the name of a group to its columns, got list"),
        ({"groups": {"g": ["gone"]}}, "groups['g'] must name columns among"),
        ({"costs": {"gone": 1}}, "costs must name columns among"),
    ],
)
def test_bad_parameters_are_explained(settings: dict[str, Any], message: str) -> None:
    X, y = patients(60)
    with pytest.raises(ValueError) as caught:
        TrimmedClassifier(**settings).fit(X, y)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_strange_columns_are_explained() -> None:
    X, y = patients()
    with pytest.raises(ValueError, match="names of the columns of X must be distinct, got 'ward' more than once"):
        TrimmedClassifier().fit(X.rename(columns={"noise": "ward"}), y)
    half = pd.Series(["\ud800", "a"] * (len(X) // 2), dtype=object)
    named = X.set_axis(pd.Index(["\ud800", *X.columns[1:]], dtype=object), axis=1)
    cases = [("names of the columns of X", named, y), ("labels of y", X, half), ("values of column 'ward'", X, y)]
    for what, rows, labels in cases:
        with pytest.raises(ValueError, match=re.escape(rf"{what} must be text that UTF-8 can encode, got '\ud800'")):
            TrimmedClassifier().fit(rows.assign(ward=half) if "ward" in what else rows, labels)
    with pytest.raises(ValueError, match=r"column 'noise' must hold numbers, .*complex"):
        TrimmedClassifier().fit(X.assign(noise=X["noise"] + 1j), y)


def test_bad_tables_are_explained() -> None:
    X, y = patients(60)
    with pytest.raises(ValueError, match="y must have at least two classes, got one class"):
        TrimmedClassifier().fit(X, ["ill"] * 60)
    for labels in (y.where(y == "ill", None), y.where(y == "ill", pd.NA), y.where(y == "ill").astype("string")):
        with pytest.raises(ValueError, match=r"y must have a label for every row, got none .* of 60 rows; drop those"):
            TrimmedClassifier().fit(X, labels)


@pytest.mark.parametrize("states", [["yes", "no"], ["c", "a", "b"]])
def test_classes_are_sorted_as_scores_expect(states: list[str]) -> None:
    rng = np.random.default_rng(0)
    network = tb.BayesianNetwork(
        {"class": states, "x": ["0", "1"]},
        {"x": ["class"]},
        {"class": np.full(len(states), 1 / len(states)), "x": rng.dirichlet([1, 1], size=len(states))},
    )
    rows = network.sample(300, rng)
    trimmed = TrimmedClassifier.from_fitted(network, target="class", budget=1)
    assert trimmed.classes_.tolist() == sorted(states)
    whole = tb.BayesianClassifier(network, "class")
    expected = whole.predict_proba(rows[["x"]])[:, [whole.class_names.index(name) for name in sorted(states)]]
    np.testing.assert_allclose(trimmed.predict_proba(rows[["x"]]), expected, atol=1e-12)


def test_a_fitted_estimator_keeps_its_cut_and_the_names_of_its_columns() -> None:
    X, y = patients()
    frame = X[["noise"]].assign(fever=X["fever"].fillna(37.0))
    fitted = BernoulliNB(binarize=37.5).fit(frame, y)
    trimmed = TrimmedClassifier.from_fitted(fitted, budget=1)
    assert trimmed.features_ == ("fever",)
    assert trimmed.predict(frame).tolist() == fitted.predict(frame).tolist()
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        trimmed.predict(frame[["fever", "noise"]])
    with pytest.raises(ValueError, match="column 'fever' must have no missing values, got 1 of 240 rows"):
        trimmed.predict(frame.assign(fever=[None, *[1.0] * 239]))
    codes = CategoricalNB().fit([[0, 1], [1, 0], [2, 1]], [0, 1, 1])
    unknown = TrimmedClassifier.from_fitted(codes, budget=2)
    with pytest.raises(ValueError, match=r"column 'x0' must hold values among \['0', '1', '2'\], got '7'"):
        unknown.predict([[7, 0]])


def test_fitted_models_and_networks_give_the_distribution() -> None:
    network = tb.BayesianNetwork(
        {"c": ["no", "maybe", "yes"], "x": ["0", "1"], "y": ["low", "high"]},
        {"x": ["c"], "y": ["c", "x"]},
        {
            "c": [0.3, 0.3, 0.4],
            "x": [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]],
            "y": [[[0.9, 0.1], [0.8, 0.2]], [[0.1, 0.9], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]],
        },
    )
    rows = network.sample(50, np.random.default_rng(0))
    trimmed = TrimmedClassifier.from_fitted(network, target="c", budget=2)
    assert trimmed.predict(rows[["x", "y"]]).tolist() == tb.BayesianClassifier(network, "c").predict(rows).tolist()
    model = tb.NaiveBayes([0.5, 0.5], [[[0.9, 0.1], [0.2, 0.8]]], feature_names=["x"], class_names=["n", "p"])
    binary = TrimmedClassifier.from_fitted(model, budget=1, threshold=0.9)
    expected = tb.BayesianClassifier(model, positive="p", threshold=0.9).predict(rows)
    assert binary.predict(rows[["x"]]).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="target must be a node of the network"):
        TrimmedClassifier.from_fitted(network)
    with pytest.raises(ValueError, match=r"estimator must be a fitted LogisticRegression, BernoulliNB .* that is not"):
        TrimmedClassifier.from_fitted(LogisticRegression())
    with pytest.raises(TypeError, match=r"model must be a fitted BernoulliNB, CategoricalNB or .*, got dict"):
        TrimmedClassifier.from_fitted({})
    with pytest.raises(TypeError, match=r"got BayesianClassifier, .* trim it with tb\.trim\(classifier, budget\)"):
        TrimmedClassifier.from_fitted(tb.BayesianClassifier(model, positive="p"))
    with pytest.raises(ValueError, match="must be fitted"):
        TrimmedClassifier.from_fitted(BernoulliNB())
    fitted = BernoulliNB().fit([[0, 1], [1, 0]], [0, 1])
    with pytest.raises(ValueError, match=r"target must be left out for a fitted BernoulliNB.*got 'c'"):
        TrimmedClassifier.from_fitted(fitted, target="c", budget=1)


def fitted(**settings: Any) -> tuple[TrimmedClassifier, pd.DataFrame]:
    X, y = patients()
    return TrimmedClassifier(**{"budget": 2, "rows_weight": 0} | settings).fit(X, y), X


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"budget": 3, "threshold": 0.25, "cut": "mean"},
        {"costs": {0: 2.0, "ward": 1, "colour": 1, "cough": 1, "grade": np.float64(1), "noise": 1}},
        {"groups": {"visit": ["fever", 2]}, "required": ["cough"], "forbidden": [4]},
        {"costs": pd.Series(dict.fromkeys(patients(20)[0], 1.0))},
        {"budget": np.inf, "density": "tree_augmented"},
        {"density": "tree_augmented"},
        {"density": "mixture", "n_components": 2},
    ],
)
def test_what_was_saved_predicts_the_same(tmp_path: Path, settings: dict[str, Any]) -> None:
    trimmed, X = fitted(**settings)
    trimmed.save(tmp_path / "trimmed.json")
    again = TrimmedClassifier.load(tmp_path / "trimmed.json")
    assert again.predict(X).tolist() == trimmed.predict(X).tolist()
    np.testing.assert_allclose(again.predict_proba(X), trimmed.predict_proba(X), rtol=1e-13)
    assert again.get_support().tolist() == trimmed.get_support().tolist()
    assert again.get_feature_names_out().tolist() == trimmed.get_feature_names_out().tolist()
    assert again.trimming_ is None
    y = patients()[1]
    assert clone(again).fit(X, y).predict(X).tolist() == trimmed.predict(X).tolist()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "trimmed.json").read_text()


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        [True, False],
        [1.5, 2.0],
        ["a", "b"],
        ["a", "b", "c"],
        [np.datetime64("2020-01-31T12:00:00.123456789"), np.datetime64("2021-02-01")],
        [np.timedelta64(90, "s"), np.timedelta64(1, "D")],
    ],
)
def test_labels_keep_their_type(tmp_path: Path, labels: list[Any]) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(labels), size=90)
    X = (rng.random((90, 4)) < 0.2 + 0.3 * codes[:, None]).astype(float)
    y = np.array(labels)[codes] if labels[0] not in (1.5,) else np.array(["1.5", "2"])[codes]
    trimmed = TrimmedClassifier(budget=2, rows_weight=0).fit(X, y)
    trimmed.save(tmp_path / "trimmed.json")
    again = TrimmedClassifier.load(tmp_path / "trimmed.json")
    assert again.classes_.dtype == trimmed.classes_.dtype
    assert again.predict(X).tolist() == trimmed.predict(X).tolist()
    assert not hasattr(again, "feature_names_in_")


def test_labels_of_objects_and_fitted_models(tmp_path: Path) -> None:
    X, y = patients()
    objects = TrimmedClassifier(budget=1, rows_weight=0).fit(X, y.to_numpy(dtype=object))
    objects.save(tmp_path / "objects.json")
    assert TrimmedClassifier.load(tmp_path / "objects.json").predict(X).tolist() == objects.predict(X).tolist()
    table = np.random.default_rng(0).random((50, 3))
    whole = TrimmedClassifier.from_fitted(BernoulliNB(binarize=0.5).fit(table, table[:, 0] > 0.4), budget=1)
    whole.save(tmp_path / "fitted.json")
    again = TrimmedClassifier.load(tmp_path / "fitted.json")
    assert again.predict(table).tolist() == whole.predict(table).tolist()
    with pytest.raises(ValueError, match="must have no missing values"):
        again.predict(np.full((1, 3), np.nan))


def test_only_the_kept_columns_are_written(tmp_path: Path) -> None:
    trimmed, _ = fitted(budget=1)
    trimmed.save(tmp_path / "trimmed.json")
    content = json.loads((tmp_path / "trimmed.json").read_text())
    assert content["format"] == "trimbench.TrimmedClassifier/1"
    assert [column["name"] for column in content["columns"] if "categories" in column] == list(trimmed.features_)
    assert [feature["name"] for feature in content["classifier"]["model"]["features"]] == list(trimmed.features_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": [{"name": "x"}]}, ": columns must have every feature of the classifier, got none called"),
        ({"classifier": {"kind": "Forest"}}, ": kind of classifier must be one of BayesianClassifier, ArgMax"),
        ({"classifier": None}, "lacks an entry or has one of the wrong type: TypeError"),
        ({"parameters": {"depth": 3}}, "lacks an entry or has one of the wrong type: TypeError"),
        ({"classes": {"type": "<U4", "labels": ["ill"]}}, "classes must be those of the classifier, ['well', 'ill']"),
        ({"columns": [{"name": "fever"}] * 2}, ": columns must be distinct, got 'fever' more than once"),
        ({"classes": {"type": "<i8", "labels": [10**30]}}, "has one of the wrong type: OverflowError"),
        *(({"fever": {"cuts": cuts}}, "cuts of column 'fever' must be 1 ascending finite numbers, got")
          for cuts in ([np.nan], ["0.5"], [True], [np.inf], [], [0.4, 0.5], "5")),
        *(({"fever": {"cuts": cuts, "categories": ["a", "b", "missing"], "missing": None}}, "must be 2 ascending")
          for cuts in ([1, 1], [2, 1], [1, np.nan])),
        ({"fever": {"fallback": "none"}}, "fallback of column 'fever' must be one of its categories, got 'none'"),
        ({"fever": {"categories": ["a", "a"]}}, "categories of column 'fever' must be distinct, got 'a' more than"),
        ({"fever": {"categories": ["a", "b", "missing"]}}, "categories of column 'fever' must be its values ["),
    ],
)  # fmt: skip
def test_a_file_without_a_trimmed_classifier_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    trimmed, _ = fitted(required=["fever"], cut="mean")
    path = tmp_path / "trimmed.json"
    trimmed.save(path)
    content = json.loads(path.read_text()) | change
    content["columns"] = [column | content.get(column["name"], {}) for column in content["columns"]]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        TrimmedClassifier.load(path)
    assert str(caught.value).startswith(str(path))


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        TrimmedClassifier().save(tmp_path / "trimmed.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("settings", [{}, BY_MODEL, {"density": "mixture", "n_components": 2, "threshold": 0.4}])
def test_several_budgets_learn_once_and_find_what_each_finds_alone(settings: dict[str, Any]) -> None:
    X, y = patients()
    template = TrimmedClassifier(budget=99, **settings)
    several = template.fit_budgets(X, y, [2, 0, 6])
    assert not hasattr(template, "classes_")
    assert template.budget == 99
    for budget, found in zip([2, 0, 6], several, strict=True):
        alone = TrimmedClassifier(budget=budget, **settings).fit(X, y)
        assert found.get_params() == alone.get_params()
        assert found.features_ == alone.features_
        assert found.trimming_.agreement_interval == alone.trimming_.agreement_interval
        np.testing.assert_array_equal(found.predict_proba(X), alone.predict_proba(X))
    assert template.fit_budgets(X, y, []) == []


def test_a_budget_for_all_columns_needs_no_search() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 40)) + y[:, None]).add_prefix("x")
    X["constant"] = 1.0
    fitted = TrimmedClassifier(budget=41).fit(X, y)
    found = fitted.trimming_
    assert found.n_evaluations == 0
    assert found.optimal
    assert found.rows_agreement.weight == 0
    assert found.rows_agreement.value == 1.0
    assert len(found.features) == sum(len(rule.categories) > 1 for rule in fitted.discretizer_.rules) > 20
