"""Names of columns survive: in models, explanations, tables of them and conversions; what errors advise works."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import trimbench as tb
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier
from trimbench.estimators.columns import column_names
from trimbench.selection_bias.mixture import MixtureSampler


def symptoms() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=100)
    rates = 0.2 + 0.5 * y[:, None] * np.array([1, 0, 1])
    return pd.DataFrame((rng.random((100, 3)) < rates).astype(float), columns=["fever", "rash", "cough"]), y


@pytest.mark.parametrize("n_components", [1, 2])
def test_models_and_explanations_have_the_names_of_columns(n_components: int) -> None:
    X, y = symptoms()
    model = tb.conform(LogisticRegression().fit(X, y), X, n_components=n_components)
    assert model.column_names == model.feature_names == tuple(X)
    found = model.explain(X.iloc[0], delta=0.9)
    assert found.names == tuple(X.columns[list(found.features)])
    assert set(found.table()["feature"]) == set(X)
    assert set(model.contrast(X.iloc[0]).names) <= set(X)
    gaps = X.mask(np.random.default_rng(1).random(X.shape) < 0.2)
    assert tb.conform(LogisticRegression().fit(X, y), gaps, n_components=n_components).column_names == tuple(X)


def test_a_model_of_an_array_has_none() -> None:
    X, y = symptoms()
    rows = X.to_numpy()
    model = tb.conform(LogisticRegression().fit(rows, y), rows, n_components=1)
    assert model.feature_names is None
    explanation = model.explain(rows[0])
    assert explanation.names == tuple(map(str, explanation.features))
    assert model.to_naive_bayes().feature_names == ("x0", "x1", "x2")


@pytest.mark.parametrize(("name", "variable"), [("rash", "class"), ("class", "class_"), ("class_", "class")])
def test_naive_bayes_and_its_trimming_have_them(name: str, variable: str) -> None:
    X, y = symptoms()
    X = X.rename(columns={"rash": name})  # the name of the class is another
    conformant = tb.conform(LogisticRegression().fit(X, y), X, n_components=1).to_naive_bayes()
    for model in conformant, tb.NaiveBayes.from_sklearn(BernoulliNB().fit(X, y)):
        assert (model.feature_names, model.class_variable) == (tuple(X), variable)
        assert tb.trim(tb.BayesianClassifier(model, positive="1"), 2).features == ("fever", "cough")


def test_one_hot_columns_have_the_name_they_share_and_estimators_that_of_the_raw_column() -> None:
    X, y = symptoms()
    raw = X.assign(town=np.random.default_rng(2).choice(["x", "y", "z"], len(X)))[["rash", "town"]]
    encoded = pd.get_dummies(raw, columns=["town"], dtype=float)
    model = tb.conform(LogisticRegression().fit(encoded, y), encoded, categorical=[[1, 2, 3]])
    assert model.feature_names == ("rash", "town")
    for names, shared in (("a_x", "a_y"), "a"), (("_x", "_y"), "_"), (("p", "q"), "p"), (("ab1", "ab2"), "ab"):
        two = pd.DataFrame(np.eye(2)[y], columns=list(names))
        assert tb.conform(LogisticRegression().fit(two, y), two, categorical=[[0, 1]]).feature_names == (shared,)
    equal = encoded.rename(columns=lambda name: name.replace("_", "="))
    model = tb.conform(LogisticRegression().fit(equal, y), equal, categorical=[[1, 2, 3]])
    assert model.feature_names == ("rash", "town")
    pipeline = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(raw, y)
    one = NaiveConformantClassifier(n_components=1).fit(raw, y)
    for classifier in (one, tb.conform(pipeline, raw, n_components=1)):
        assert set(classifier.explain(raw.iloc[0]).table()["feature"]) == {"rash", "town"}
        assert set(classifier.contrast(raw.iloc[0]).names) <= {"rash", "town"}


def logistic(X: Any, y: np.ndarray) -> LogisticRegression:
    return LogisticRegression().fit(X, y)


def explained(X: pd.DataFrame, y: np.ndarray) -> Any:
    model = tb.conform(logistic(X, y), X, n_components=1)
    return lambda rows: [model.explain(row).log_odds for _, row in rows.iloc[:9].iterrows()]


def chains(X: pd.DataFrame, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tb.fit_selection_corrected(
            X, y, k=2, features="mixture", sampler=MixtureSampler(n_chains=2, n_draws=4, n_warmup=2)
        )
    return found.predict_proba


FITTED: dict[str, Any] = {
    "conform": lambda X, y: tb.conform(logistic(X, y), X).predict_proba,
    "log_likelihood": lambda X, y: tb.conform(logistic(X, y), X).log_likelihood,
    "mixture": lambda X, y: tb.conform(logistic(X.to_numpy(), y), X, n_components=2).predict_proba,
    "explain": explained,
    "corrected": lambda X, y: tb.fit_selection_corrected(X, y, k=2).predict_proba,
    "uncorrected": lambda X, y: tb.fit_selection_corrected(X, y, k=2).uncorrected().predict,
    "gaussian": lambda X, y: tb.fit_selection_corrected(X, y, k=2, features="gaussian").log_odds,
    "discrete": lambda X, y: tb.fit_selection_corrected(X, y, k=2, features="categorical").predict_proba,
    "chains": chains,
}


@pytest.mark.parametrize("name", FITTED)
def test_what_was_fitted_on_a_frame_takes_columns_by_name(name: str) -> None:
    X, y = symptoms()
    ask = FITTED[name](X, y)
    np.testing.assert_array_equal(ask(X[["cough", "fever", "rash"]]), ask(X))
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*unseen at.*- pain.*now missing.*- rash"):
        ask(X.rename(columns={"rash": "pain"}))
    with pytest.raises(ValueError, match=r"(?s)unseen at.*- pain"):  # scikit-learn/scikit-learn#12936
        ask(X.assign(pain=1.0))
    if name != "explain":
        np.testing.assert_array_equal(ask(X.to_numpy()), ask(X))


def test_rows_of_the_fit_are_matched_by_the_names_of_the_classifier() -> None:
    X, y = symptoms()
    logistic, nothing = LogisticRegression().fit(X, y), np.full((1, 3), np.nan)
    expected = tb.conform(logistic, X).predict_proba(nothing)
    np.testing.assert_array_equal(tb.conform(logistic, X[["rash", "cough", "fever"]]).predict_proba(nothing), expected)


ESTIMATORS: list[Any] = [TrimmedClassifier(2, rows_weight=0), NaiveConformantClassifier(), SelectionCorrectedNB(k=2)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_frames_after_arrays_and_arrays_after_frames_are_warned_of_as_scikit_learn_does(estimator: Any) -> None:
    X, y = symptoms()
    on_frame, on_array = clone(estimator).fit(X, y), clone(estimator).fit(X.to_numpy(), y)
    expected = on_frame.predict_proba(X)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but"):
        np.testing.assert_array_equal(on_frame.predict_proba(X.to_numpy()), expected)
    with pytest.warns(UserWarning, match="X has feature names, but"):
        np.testing.assert_array_equal(on_array.predict_proba(X), expected)
    with pytest.raises(ValueError, match="must be in the same order"):
        on_frame.predict(X[["cough", "fever", "rash"]])


@pytest.mark.parametrize("names", [[0, 2, 1], [2, 5, 0]])  # no 1: scikit-learn/scikit-learn#30983
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_integers_as_names_are_names(estimator: Any, names: list[int]) -> None:
    X, y = symptoms()
    numbered = X.set_axis(names, axis=1)
    fitted = clone(estimator).fit(numbered, y)
    np.testing.assert_array_equal(fitted.predict_proba(numbered), clone(estimator).fit(X, y).predict_proba(X))
    for other in (numbered[sorted(names)], numbered.set_axis(range(3), axis=1)):
        with pytest.raises(ValueError, match=r"must be in the same order|unseen at fit time"):
            fitted.predict(other)


def test_integers_among_parameters_mean_names_or_positions_or_are_refused() -> None:
    assert column_names([2], [0, 2, 1], "forbidden") == column_names(["2"], ["a", "2"], "forbidden") == ["2"]
    assert column_names([1], ["0", "1"], "costs") == ["1"]
    assert column_names([2], ["a", "b", "c"], "costs") == ["c"]
    with pytest.raises(ValueError, match=r"forbidden must name columns among \['5', '7'\], got '1'"):
        column_names([1], [5, 7], "forbidden")
    with pytest.raises(ValueError, match="must say which column it means, got 1: the name of a column is '1', and"):
        column_names([1], ["1", "0"], "forbidden")
    X, y = symptoms()
    numbered = X.set_axis([2, 0, 1], axis=1)
    kept = TrimmedClassifier(1, forbidden=[2], rows_weight=0).fit(numbered, y)
    assert kept.features_ == ("1",)
    costly = TrimmedClassifier(1, costs={2: 5, 0: 1, 1: 1}, rows_weight=0).fit(numbered, y)
    assert costly.features_ == ("1",)
    coded = NaiveConformantClassifier(categorical_features=[0]).fit(numbered, y)
    assert coded.get_feature_names_out().tolist() == ["2", "0_0", "0_1", "1"]


def test_tables_of_arrow_keep_their_names_in_files(tmp_path: Path) -> None:
    X, y = symptoms()
    table = pytest.importorskip("pyarrow").Table.from_pandas(X)
    TrimmedClassifier(2, rows_weight=0).fit(table, y).save(tmp_path / "trimmed.json")
    loaded = TrimmedClassifier.load(tmp_path / "trimmed.json")
    assert loaded.feature_names_in_.tolist() == list(X)
    np.testing.assert_array_equal(loaded.predict(table), loaded.predict(X))
    with pytest.raises(ValueError, match="must be in the same order"):  # dmlc/xgboost#8910, lightgbm-org/LightGBM#6682
        loaded.predict(table.select(["rash", "cough", "fever"]))
    model = tb.conform(LogisticRegression().fit(X, y), table)
    np.testing.assert_array_equal(model.predict_proba(table.select(["rash", "cough", "fever"])), model.predict_proba(X))


# What an error advises works: the setting, or the table, is changed as it says.

_N = 40
TABLE = pd.DataFrame({"age": np.arange(_N) * 7 % 11 / 3, "size": np.arange(_N) * 5 % 13 / 4, "ward": ["u", "v"] * 20})
NUMBERS = TABLE[["age", "size"]]
SIDES = np.array(["a", "b"])[(np.arange(_N) * 7 % 5 < 2).astype(int)]
T, C, S = TrimmedClassifier, NaiveConformantClassifier, SelectionCorrectedNB

ADVICE: list[tuple[Any, dict[str, Any], pd.DataFrame, str, dict[str, Any], Any]] = [
    (T, {"budget": -1}, TABLE, "must be a number >= 0, got -1; 0 keeps only", {"budget": 0}, None),
    (T, {"required": ["agee"]}, TABLE, r"among \['age', 'size'", {"required": ["age"]}, None),
    (T, {"forbidden": "size"}, TABLE, "must be a sequence of names", {"forbidden": ["size"]}, None),
    (T, {"density": "bayes"}, TABLE, "must be one of naive_bayes", {"density": "naive_bayes"}, None),
    (T, {"costs": {"age": 1}}, TABLE[["age", "ward"]], "got none for 'ward'", {"costs": {"age": 1, "ward": 1}}, None),
    (T, {"costs": {"age": 1, "size": -1}}, NUMBERS, "named in forbidden", {"costs": None, "forbidden": ["size"]}, None),
    (T, {"budget": 1, "required": ["age", "size"]}, TABLE, "raise the budget", {"budget": 2}, None),
    (T, {"required": ["age"], "forbidden": ["age"]}, TABLE, "must not share a feature", {"forbidden": None}, None),
    (T, {}, TABLE.replace(0.0, np.inf), "mark a missing value with NaN", {}, lambda X: X.replace(np.inf, np.nan)),
    (T, {}, TABLE.set_axis(["a", "a", "b"], axis=1), "rename one", {}, lambda X: X.set_axis(["a", "c", "b"], axis=1)),
    (C, {"solver": "newtn"}, TABLE, "must be 'newton' or a function", {"solver": "newton"}, None),
    (C, {"n_components": 0}, TABLE, "must be 1 or more, or 'auto'", {"n_components": "auto"}, None),
    (C, {"categorical_features": ["wrd"]}, TABLE, r"'size', 'ward'\]", {"categorical_features": ["ward"]}, None),
    (C, {"estimator": LogisticRegression()}, NUMBERS, "call its fit first", {"estimator": 0}, None),
    (S, {"k": 99}, NUMBERS, "from 1 to 2", {"k": 2}, None),
    (S, {"n_alpha": 0}, NUMBERS, "got 0; use 100", {"n_alpha": 100}, None),
    (S, {"ties": "x"}, NUMBERS, "'exact' suits almost every use", {"ties": "exact"}, None),
    (S, {"features": "gaussian", "cuts": [0, 0]}, NUMBERS, "it is for 'binary' only", {"features": "binary"}, None),
    (S, {}, TABLE, "leave it out, or make numbers of it", {}, lambda X: X.drop(columns="ward")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "X", "advice", "change", "mend"), ADVICE, ids=[one[3] for one in ADVICE])
def test_advice_works_when_it_is_followed(
    kind: Any, given: dict[str, Any], X: pd.DataFrame, advice: str, change: dict[str, Any], mend: Any
) -> None:
    usual = {T: {"budget": 2}, C: {}, S: {"k": 1}}[kind]
    with pytest.raises((ValueError, TypeError), match=advice) as caught:
        kind(**usual | given).fit(X, SIDES)
    assert "\n" not in str(caught.value)
    mended = X if mend is None else mend(X)
    if "estimator" in change:
        change = {"estimator": LogisticRegression().fit(X, SIDES)}
    assert kind(**usual | given | change).fit(mended, SIDES).predict_proba(mended).shape == (_N, 2)
