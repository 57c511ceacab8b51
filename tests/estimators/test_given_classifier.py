"""The conformant classifier of a fitted logistic regression, alone or at the end of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import trimbench as tb
from tests.estimators.test_conformant_tables import people
from trimbench.estimators import NaiveConformantClassifier, TrimmedClassifier

TEXT, NUMBERS = ["sex", "town"], ["age", "rooms"]


def of_columns(numbers: Any = None) -> ColumnTransformer:
    return make_column_transformer(
        (StandardScaler() if numbers is None else numbers, NUMBERS),
        (OneHotEncoder(handle_unknown="ignore"), TEXT),
        ("passthrough", ["member"]),
    )


def regression() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


@pytest.mark.parametrize(
    "numbers",
    [
        StandardScaler(),
        make_pipeline(SimpleImputer(), MinMaxScaler()),
        KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        FunctionTransformer(np.log1p),
    ],
)
def test_a_pipeline_keeps_its_predictions(numbers: Any) -> None:
    X, y = people()
    given = make_pipeline(of_columns(numbers), regression()).fit(X, y)
    classifier = NaiveConformantClassifier(estimator=given).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X), given.predict_proba(X), rtol=0, atol=1e-12)
    assert classifier.logistic_regression_ is given[-1]
    width = given[-1].coef_.shape[1]
    assert classifier.get_feature_names_out().shape == (width,)
    assert len(classifier.model_.layout.categorical) == 2 + 2 * (width > 8)
    nothing = pd.DataFrame({name: [None] for name in X})
    np.testing.assert_allclose(classifier.predict_proba(nothing)[0], np.exp(classifier.model_.log_prior), atol=1e-12)


def test_it_is_the_model_of_the_estimator_that_encodes_itself() -> None:
    X, y = people()
    own = NaiveConformantClassifier().fit(X, y)
    numbers = [("number", StandardScaler(), NUMBERS), ("text", OneHotEncoder(), TEXT), ("rest", "passthrough", [2])]
    given = Pipeline([("columns", ColumnTransformer(numbers)), ("last", LogisticRegression(tol=1e-10))])
    given.set_params(last__solver="newton-cg").fit(X, y)
    classifier = NaiveConformantClassifier(estimator=given).fit(X, y)
    gaps = X.mask(np.random.default_rng(0).random(X.shape) < 0.4)
    np.testing.assert_allclose(classifier.predict_proba(gaps), own.predict_proba(gaps), atol=1e-6)
    np.testing.assert_allclose(classifier.explain(gaps.iloc[0]).evidence, own.explain(gaps.iloc[0]).evidence, atol=1e-5)
    unknown = gaps.assign(sex="diverse")
    ignoring = make_pipeline(of_columns(), regression()).fit(X, y)
    classifier = NaiveConformantClassifier(estimator=ignoring).fit(X, y)
    missing = classifier.predict_proba(gaps.assign(sex=None))
    np.testing.assert_array_equal(classifier.predict_proba(unknown), missing)


def test_a_plain_regression_on_an_array() -> None:
    X, y = people()
    rows = X[["member", "age"]].to_numpy(dtype=float)
    given = regression().fit(rows, y)
    classifier = NaiveConformantClassifier(estimator=given, n_components=2).fit(rows, y)
    np.testing.assert_allclose(classifier.predict_proba(rows), given.predict_proba(rows), rtol=0, atol=1e-12)
    assert classifier.model_.layout.real == (1,)
    assert classifier.get_feature_names_out().tolist() == ["x0", "x1"]


def test_the_best_of_a_search() -> None:
    X, y = people()
    search = GridSearchCV(make_pipeline(of_columns(), regression()), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    search.fit(X, y)
    classifier = NaiveConformantClassifier(estimator=search).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X), search.predict_proba(X), rtol=0, atol=1e-12)


def test_rows_with_gaps_teach_the_features() -> None:
    X, y = people()
    given = make_pipeline(of_columns(), regression()).fit(X, y)
    gaps = X.mask(np.random.default_rng(1).random(X.shape) < 0.3)
    classifier = NaiveConformantClassifier(estimator=given).fit(gaps, y)
    np.testing.assert_allclose(classifier.predict_proba(X), given.predict_proba(X), rtol=0, atol=1e-12)
    weighted = NaiveConformantClassifier(estimator=given).fit(X, y, sample_weight=np.arange(len(X)) % 3)
    np.testing.assert_allclose(weighted.predict_proba(X), given.predict_proba(X), rtol=0, atol=1e-12)


def test_selected_columns() -> None:
    X, y = people()
    rows = X[["age", "rooms", "member"]].to_numpy(dtype=float)
    given = make_pipeline(StandardScaler(), SelectKBest(k=1), regression()).fit(rows, y)
    classifier = NaiveConformantClassifier(estimator=given).fit(rows, y)
    np.testing.assert_allclose(classifier.predict_proba(rows), given.predict_proba(rows), rtol=0, atol=1e-12)
    assert classifier.get_feature_names_out().shape == (1,)


def test_frozen_estimators_are_cloned() -> None:
    X, y = people()
    given = make_pipeline(of_columns(), regression()).fit(X, y)
    frozen = NaiveConformantClassifier(estimator=FrozenEstimator(given))
    assert cross_val_score(frozen, X, y, cv=3).mean() > 0.6
    with pytest.raises(
        ValueError,
        match=r"estimator must be a fitted LogisticRegression, .* and wrap it in sklearn.frozen.FrozenEstimator",
    ):
        clone(NaiveConformantClassifier(estimator=given)).fit(X, y)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(), "must make each column of its logistic regression from one column of X, got one that depends on 'age'"),
        (Normalizer(), "got one that depends on 'age' and 'rooms'; leave such a step out"),
        (PolynomialFeatures(2), "got one that depends on 'age' and 'rooms'"),
        (KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), None),
        (OneHotEncoder(drop="first"), "makes 66 columns of column 'age' that are not one-hot, with exactly one 1"),
        (PolynomialFeatures((2, 2), include_bias=False), None),
    ],
)
def test_steps_that_are_understood_or_refused(step: Any, message: str | None) -> None:
    X, y = people()
    rows = X[["age", "rooms"]].astype(float)
    if isinstance(step, PolynomialFeatures) and message is None:
        rows = rows[["rooms"]]
    given = make_pipeline(step, regression()).fit(rows, y)
    classifier = NaiveConformantClassifier(estimator=given)
    if message is None:
        np.testing.assert_allclose(classifier.fit(rows, y).predict_proba(rows), given.predict_proba(rows), atol=1e-12)
        return
    with pytest.raises(ValueError, match=message):
        classifier.fit(rows, y)


def test_other_misuses_are_refused() -> None:
    X, y = people()
    rows = X[["member", "age"]].astype(float)
    given = regression().fit(rows, y)
    with pytest.raises(
        ValueError, match=r"estimator must be a fitted LogisticRegression, .* got RandomForestClassifier"
    ):
        NaiveConformantClassifier(estimator=RandomForestClassifier(2).fit(rows, y)).fit(rows, y)
    with pytest.raises(ValueError, match=r"estimator must be a fitted LogisticRegression, .* got RidgeClassifier"):
        NaiveConformantClassifier(estimator=RidgeClassifier().fit(rows, y)).fit(rows, y)
    with pytest.raises(ValueError, match="numeric must be left out with estimator, which is fitted"):
        NaiveConformantClassifier(estimator=given, numeric="cut").fit(rows, y)
    with pytest.raises(ValueError, match="categorical_features must be left out with estimator"):
        NaiveConformantClassifier(estimator=given, categorical_features=[1]).fit(rows, y)
    with pytest.raises(ValueError, match="class_weight must be left out with estimator"):
        NaiveConformantClassifier(estimator=given, class_weight={"no": 2}).fit(rows, y)
    with pytest.raises(ValueError, match=r"y must have the classes of estimator, \['no', 'yes'\], got 'maybe'"):
        NaiveConformantClassifier(estimator=given).fit(rows, np.where(X["age"] > 40, "maybe", y))
    with pytest.raises(ValueError, match="X must have the columns that estimator was fitted to, 2, got 1"):
        NaiveConformantClassifier(estimator=given).fit(rows[["age"]], y)
    text = make_pipeline(FunctionTransformer(lambda table: np.full(table.shape, "a")), given)
    with pytest.raises(ValueError, match="estimator must make numbers of the columns, got could not convert"):
        NaiveConformantClassifier(estimator=text).fit(rows, y)


def test_one_versus_rest_is_refused_of_weighted_rows_too() -> None:
    X, _ = people()
    rows = X[["member", "age"]].astype(float)
    given = SGDClassifier(loss="log_loss", random_state=0).fit(rows, np.arange(len(X)) % 3)
    for weights in (None, np.full(len(X), 2.0)):
        with pytest.raises(ValueError, match="must give probabilities that are the softmax"):
            NaiveConformantClassifier(estimator=given).fit(rows, np.arange(len(X)) % 3, sample_weight=weights)


@pytest.mark.parametrize("nested", [False, True])
def test_steps_that_do_nothing_and_sparse_coefficients(nested: bool) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.5
    X = pd.DataFrame(rng.random((80, 3)) < np.where(y, 0.8, 0.3)[:, None], columns=list("abc")).astype(float)
    first = Pipeline([("none", "passthrough"), ("also", None)]) if nested else "passthrough"
    last = LogisticRegression(l1_ratio=1.0, solver="liblinear")
    scaled = Pipeline([("first", first), ("scale", MinMaxScaler()), ("last", clone(last))]).fit(X, y)
    plain = Pipeline([("first", first), ("last", clone(last))]).fit(X, y)
    for given in (scaled, plain, clone(last).fit(X, y)):
        (given[-1] if isinstance(given, Pipeline) else given).sparsify()
        expected = given.predict_proba(X)
        for model in (tb.conform(given, X), NaiveConformantClassifier(estimator=given).fit(X, y)):
            np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-12)
        trimmed = TrimmedClassifier.from_fitted(given, rows=X, budget=3, rows_weight=0)
        assert (trimmed.predict(X) == given.predict(X)).all()
        assert set(tb.trim(given, 2, rows=X, rows_weight=0).features) <= set(X)
        np.testing.assert_array_equal(trimmed.feature_names_in_, list(X))
