"""Names of columns survive: in models, explanations, tables of them and conversions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import trimbench as tb
from trimbench.estimators import NaiveConformantClassifier


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
    model = tb.conform(LogisticRegression().fit(rows, y), rows)
    assert model.feature_names is None
    explanation = model.explain(rows[0])
    assert explanation.names == tuple(map(str, explanation.features))
    assert model.to_naive_bayes().feature_names == ("x0", "x1", "x2")


def test_naive_bayes_and_its_trimming_have_them() -> None:
    X, y = symptoms()
    model = tb.conform(LogisticRegression().fit(X, y), X).to_naive_bayes()
    assert model.feature_names == tuple(X)
    assert tb.trim(tb.BayesianClassifier(model, positive="1"), 2).features == ("fever", "cough")


def test_one_hot_columns_have_the_name_they_share_and_estimators_that_of_the_raw_column() -> None:
    X, y = symptoms()
    raw = X.assign(town=np.random.default_rng(2).choice(["x", "y", "z"], len(X)))[["rash", "town"]]
    encoded = pd.get_dummies(raw, columns=["town"], dtype=float)
    model = tb.conform(LogisticRegression().fit(encoded, y), encoded, categorical=[[1, 2, 3]])
    assert model.feature_names == ("rash", "town")
    pipeline = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(raw, y)
    for classifier in (NaiveConformantClassifier().fit(raw, y), tb.conform(pipeline, raw)):
        assert set(classifier.explain(raw.iloc[0]).table()["feature"]) == {"rash", "town"}
        assert set(classifier.contrast(raw.iloc[0]).names) <= {"rash", "town"}
