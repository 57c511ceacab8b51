"""The promise of conformant models: complete rows are classified by the classifier itself, whatever is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

import trimbench as tb
from trimbench.estimators import NaiveConformantClassifier


def random_table(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Numbers that hang together, binary columns and categories, in different numbers of each."""
    n_numbers, n_binary, n_categories = int(rng.integers(0, 5)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
    if not n_numbers + n_binary + n_categories:
        n_numbers = 2
    common = rng.normal(0, 1, (n_rows, 1))
    numbers = (common + rng.normal(0, rng.uniform(0.1, 2), (n_rows, n_numbers))) * 10.0 ** rng.integers(-2, 4)
    table = pd.DataFrame(numbers, columns=[f"number{i}" for i in range(n_numbers)])
    for i in range(n_binary):
        table[f"flag{i}"] = (common[:, 0] + rng.normal(0, 1, n_rows) > 0.3).astype(int)
    for i in range(n_categories):
        table[f"kind{i}"] = rng.choice(["x", "y", "z"], n_rows, p=[0.5, 0.3, 0.2])
    return table.sample(frac=1, axis=1, random_state=int(rng.integers(2**31)))


def random_pipeline(rng: np.random.Generator, table: pd.DataFrame) -> Pipeline:
    """Scaled numbers, one-hot categories, and a logistic regression of any strength."""
    steps = []
    numbers, kinds = ([name for name in table if str(name).startswith(start)] for start in ("number", "kind"))
    if numbers:
        scaler: Any = [StandardScaler(), MinMaxScaler(), RobustScaler(), "passthrough"][int(rng.integers(4))]
        steps.append(("numbers", scaler, numbers))
    if kinds:
        steps.append(("kinds", OneHotEncoder(drop=[None, "if_binary"][int(rng.integers(2))]), kinds))
    columns = ColumnTransformer(steps, remainder="passthrough", sparse_threshold=0)
    return make_pipeline(columns, LogisticRegression(C=10.0 ** rng.integers(-2, 4), max_iter=300, tol=1e-2))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(seed=st.integers(0, 2**32))
@settings(max_examples=300)
def test_a_complete_row_is_classified_by_the_classifier_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, int(rng.integers(40, 140)))
    labels = np.arange(len(table)) % int(rng.integers(2, 5))
    fitted = random_pipeline(rng, table).fit(table, labels)
    rows = table.sample(frac=0.5, random_state=0)
    training = table.mask(rng.random(table.shape) < 0.2) if rng.random() < 0.3 else table
    training = pd.concat([training, table.head(20)])  # of each column some values
    model = tb.conform(fitted, training)
    expected = fitted.predict_proba(rows)
    np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=1e-10)
    top = np.sort(expected, axis=1)
    sure = top[:, -1] - top[:, -2] > 1e-9
    assert (model.predict(rows)[sure] == fitted.predict(rows)[sure]).all()
    gaps = rows.mask(rng.random(rows.shape) < 0.5)
    assert np.isfinite(model.predict_proba(gaps)).all()


def test_the_choice_is_an_attribute_and_can_be_fixed() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(0, 1, (300, 1))
    X = common + rng.normal(0, 0.4, (300, 5))
    y = X[:, 0] + rng.normal(0, 0.5, 300) > 0
    chosen = NaiveConformantClassifier().fit(X, y)
    assert chosen.covariance_ == "full"
    assert chosen.n_components_ == chosen.model_.n_components
    for n_components, covariance in ((1, "diagonal"), (2, "diagonal"), (3, "full")):
        fixed = NaiveConformantClassifier(n_components=n_components, covariance=covariance).fit(X, y)  # type: ignore[arg-type]
        assert (fixed.n_components_, fixed.covariance_) == (n_components, covariance)
        np.testing.assert_allclose(fixed.predict_proba(X), chosen.predict_proba(X), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="covariance must be one of auto, full, diagonal, got 'tied'"):
        NaiveConformantClassifier(covariance="tied").fit(X, y)  # type: ignore[arg-type]


def test_weights_of_rows_are_repetitions_where_these_are_few() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(0, 1, (120, 1)) + rng.normal(0, 0.4, (120, 4))
    y = X[:, 0] + rng.normal(0, 0.5, 120) > 0
    times = rng.integers(1, 4, 120)
    weighted = NaiveConformantClassifier().fit(X, y, times)
    repeated = NaiveConformantClassifier().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    gaps = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    np.testing.assert_allclose(weighted.predict_proba(gaps), repeated.predict_proba(gaps), atol=1e-6)
    for weights in (times / 2, times * 1000):
        alone = NaiveConformantClassifier().fit(X, y, weights)
        assert (alone.n_components_, alone.covariance_) == (1, "diagonal")


@pytest.mark.parametrize("gaps", [False, True])
def test_incomplete_rows_teach_the_covariance(gaps: bool) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(0, 1, (300, 1)) + rng.normal(0, 0.3, (300, 5))
    y = X[:, 0] + rng.normal(0, 0.5, 300) > 0
    training = np.where(rng.random(X.shape) < 0.2, np.nan, X) if gaps else X
    test = np.where(rng.random(X.shape) < 0.6, np.nan, X)

    def loss(classifier: Any) -> float:
        return -float(classifier.fit(training, y).predict_log_proba(test)[np.arange(300), y.astype(int)].mean())

    ours, plain = NaiveConformantClassifier(), NaiveConformantClassifier(n_components=1, covariance="diagonal")
    assert loss(ours) < loss(plain) - 0.02
    assert ours.covariance_ == "full"
