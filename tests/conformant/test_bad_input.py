"""Bad input gets an error that says what is wrong and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import trimbench as tb
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.statistics import FeatureStatistics

X = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 0], [0, 0, 0]], dtype=float)
Y = np.array([0, 0, 0, 1, 1, 0])
FITTED = LogisticRegression().fit(X, Y)
MODEL = tb.conform(FITTED, X)


def changed(row: int, column: int, value: float) -> np.ndarray:
    table = X.copy()
    table[row, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (X[:, :2], "X must have the 3 columns that the logistic regression has weights for, got 2"),
        (X[0], "X must have two dimensions"),
        (X[:0], "X must have at least one row, got 0"),
        (changed(2, 1, np.nan), r"X\[2, 1\] must not be missing here; leave rows with missing values out"),
        (changed(2, 1, np.inf), r"X\[2, 1\] must be finite; mark a missing value with NaN; got inf"),
        (changed(2, 1, 0.5), r"X\[2, 1\] must be 0, 1 or NaN; binarise the column, or name it in real; got 0.5"),
        (X.astype(str), "X must hold numbers, got values of type"),
        (np.array([["a", 1, 2]], dtype=object), "X must hold numbers, and NaN where a value is missing"),
    ],
)
def test_training_rows(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.conform(FITTED, table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (X[:, :2], "X must have the 3 columns"),
        (changed(1, 0, -np.inf), r"X\[1, 0\] must be finite"),
        (changed(1, 0, 2), r"X\[1, 0\] must be 0, 1 or NaN"),
    ],
)
def test_rows_to_predict(table: Any, message: str) -> None:
    for call in (MODEL.predict_proba, MODEL.predict, MODEL.log_likelihood):
        with pytest.raises(ValueError, match=message):
            call(table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "simplex"}, "solver must be one of newton, gpkit, cvxpy, got 'simplex'"),
        ({"smoothing": -1}, "smoothing must be a number >= 0, got -1"),
        ({"smoothing": float("nan")}, "smoothing must be a number >= 0, got nan"),
        ({"smoothing": True}, "smoothing must be a number >= 0, got True"),
        ({"categorical": [[0, 7]]}, "categorical and real must name columns from 0 to 2, got 7"),
        ({"categorical": [[0, 1]], "real": [1]}, r"must name each column at most once, got \[1\] twice"),
        ({"categorical": [[]]}, "each feature of categorical must have at least one column"),
        ({"categorical": [[0, 1]]}, r"exactly one 1 among the columns \[0, 1\] of a categorical feature, .* in row 0"),
        ({"solver": "gpkit", "real": [0]}, "solver='gpkit' takes discrete features only; use solver='newton'"),
    ],
)
def test_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.conform(FITTED, X, **arguments)


def test_a_categorical_feature_that_is_missing_in_part() -> None:
    table = np.array([[1, 0], [0, 1], [1, 0]], dtype=float)
    model = tb.conform(LogisticRegression().fit(table, [0, 1, 0]), table, categorical=[[0, 1]])
    with pytest.raises(ValueError, match=r"or NaN in all of them, got \[nan, 0.0\] in row 0"):
        model.predict_proba([[np.nan, 0]])


def test_classifiers() -> None:
    with pytest.raises(
        ValueError, match="got LogisticRegression without coef_, intercept_, classes_; call its fit first"
    ):
        tb.conform(LogisticRegression(), X)
    with pytest.raises(ValueError, match="got OneVsRestClassifier without coef_"):
        tb.conform(OneVsRestClassifier(LogisticRegression()).fit(X, Y), X)
    infinite = LogisticRegression().fit(X, Y)
    infinite.coef_ = infinite.coef_ * np.inf
    with pytest.raises(ValueError, match="weights and biases must be finite; fit the logistic regression with"):
        tb.conform(infinite, X)


def test_probabilities_that_are_no_softmax() -> None:
    class OneVersusRest(LogisticRegression):
        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            odds = 1 / (1 + np.exp(-self.decision_function(X)))
            return odds / odds.sum(axis=1, keepdims=True)

    classifier = OneVersusRest().fit(X, [0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match="must give the softmax of linear scores"):
        tb.conform(classifier, X)


def test_weights_and_means_of_different_size() -> None:
    layout, statistics = FeatureLayout.of(3), FeatureStatistics.of(X, FeatureLayout.of(3))
    with pytest.raises(
        ValueError, match=r"weights must have shape \(n_columns, n_classes\) = \(3, 2\) .* got shapes \(4, 2\)"
    ):
        conform_to_statistics(np.zeros((4, 2)), np.zeros(2), np.arange(2), layout, statistics)
    with pytest.raises(ValueError, match="weights and means must be of one length, got 4 weights for each class and 3"):
        conform_to_statistics(np.zeros((4, 2)), np.zeros(2), np.arange(2), FeatureLayout.of(4), statistics)


def test_all_missing_gives_the_prior() -> None:
    predicted = MODEL.predict_proba(np.full((2, 3), np.nan))
    np.testing.assert_allclose(predicted, np.exp([MODEL.log_prior] * 2), atol=1e-15)


def test_conformity_of_real_valued_features_is_not_a_table() -> None:
    model = tb.conform(FITTED, X, real=[0])
    with pytest.raises(ValueError, match="conformity_error takes discrete features only"):
        model.conformity_error(X)
    with pytest.raises(ValueError, match="to_naive_bayes takes binary features only"):
        model.to_naive_bayes()
