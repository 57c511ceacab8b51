"""Bad input gets an error that says what is wrong and what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

import trimbench as tb
from trimbench.conformant.problem import solve_newton

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
        (X[:, :2], "X must have 3 columns, like the rows of the fit, got 2"),
        (X[0], "X must have two dimensions"),
        (X[:0], "X must have at least one row, got 0"),
        (np.where([False, True, False], np.nan, X), "must have an observed value in each column, got none in column 1"),
        (changed(2, 1, np.inf), r"X\[2, 1\] must be finite; mark a missing value with NaN; got inf"),
        (changed(2, 1, 0.5), r"X\[2, 1\] must be 0, 1 or NaN; binarise the column, or name it in real; got 0.5"),
        (X.astype(str), "X must hold real numbers, got values of type"),
        (np.array([["a", 1, 2]], dtype=object), "X must hold numbers, and NaN where a value is missing"),
        ([[0, 1, 0], [1, 0]], "X must hold numbers, and NaN where a value is missing, got .*inhomogeneous"),
        (sparse.csr_matrix(X), r"X must be dense, got a sparse csr_matrix; use X\.toarray\(\)"),
    ],
)
def test_training_rows(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.conform(FITTED, table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (X[:, :2], "X must have 3 columns"),
        (changed(1, 0, -np.inf), r"X\[1, 0\] must be finite"),
        (changed(1, 0, 2), r"X\[1, 0\] must be 0, 1 or NaN"),
        (sparse.csr_matrix(X), r"X must be dense"),
    ],
)
def test_rows_to_predict(table: Any, message: str) -> None:
    for call in (MODEL.predict_proba, MODEL.predict, MODEL.log_likelihood):
        with pytest.raises(ValueError, match=message):
            call(table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "gpkit"}, "solver must be 'newton' or a function of a ReducedProblem, got 'gpkit'; .* solve_gpkit"),
        ({"smoothing": -1}, "smoothing must be a number >= 0, got -1"),
        ({"smoothing": float("nan")}, "smoothing must be a number >= 0, got nan"),
        ({"smoothing": True}, "smoothing must be a number >= 0, got True"),
        ({"n_components": 0}, "n_components must be 1 or more, or 'auto', got 0"),
        ({"n_components": True}, "n_components must be 1 or more, or 'auto', got True"),
        ({"n_components": 2.0}, "n_components must be 1 or more, or 'auto', got 2.0"),
        ({"n_components": "many"}, "n_components must be 1 or more, or 'auto', got 'many'"),
        ({"n_components": 7}, "n_components must be at most the number of rows, 6, got 7"),
        (
            {"solver": solve_newton, "n_components": 2},
            "solver must be 'newton' for incomplete rows, several components and a covariance, got solve_newton",
        ),
        ({"categorical": [[0, 7]]}, "categorical and real must name columns from 0 to 2, got 7"),
        ({"categorical": [[0, 1]], "real": [1]}, r"must name each column at most once, got \[1\] twice"),
        ({"categorical": [0, 1]}, r"each feature of categorical must be a list of columns, got 0; write \[0\] for one"),
        ({"categorical": 3}, r"categorical must be a list of lists of columns, got 3; write \[\[0, 1\]\], say"),
        ({"categorical": "ab"}, "categorical must be a list of lists of columns, got 'ab'"),
        ({"real": 0}, r"real must be a list of columns, got 0; write \[0\] for one column"),
        ({"real": [0.5]}, "real must name columns by their position, a whole number, got 0.5"),
        ({"real": np.array([True, False, False])}, "got np.True_; np.flatnonzero gives the positions of a mask"),
        ({"real": [-1]}, "categorical and real must name columns from 0 to 2, got -1"),
        ({"categorical": [[]]}, "each feature of categorical must have at least one column"),
        ({"categorical": [[0, 1]]}, r"exactly one 1 among the columns \[0, 1\] of a categorical feature, .* in row 0"),
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
    infinite = LogisticRegression().fit(X, Y)
    infinite.coef_ = infinite.coef_ * np.inf
    with pytest.raises(ValueError, match="weights and biases must be finite; fit the logistic regression with"):
        tb.conform(infinite, X)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (
            OneVsRestClassifier(LogisticRegression()),
            "got OneVsRestClassifier without coef_, .*, or fit LogisticRegression",
        ),
        (SVC(kernel="linear"), "got SVC without predict_proba; fit LogisticRegression to the same data"),
        (LinearSVC(), "got LinearSVC without predict_proba"),
        (RidgeClassifier(), "got RidgeClassifier without predict_proba"),
        (Perceptron(), "got Perceptron without predict_proba"),
        (SGDClassifier(loss="modified_huber", random_state=0), "got SGDClassifier with other probabilities"),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_without_a_softmax(classifier: Any, message: str, n_classes: int) -> None:
    rng = np.random.default_rng(2)
    table = (rng.random((200, 4)) < 0.4).astype(float)
    labels = np.minimum(table[:, 0] + table[:, 1] + (rng.random(200) < 0.3), n_classes - 1).astype(int)
    with pytest.raises(ValueError, match=message):
        tb.conform(clone(classifier).fit(table, labels), table)


def test_one_wrong_probability_far_down_is_found() -> None:
    """The first rows are almost certain."""
    rng = np.random.default_rng(4)
    table = np.sort((rng.random((3000, 2)) < 0.5).astype(float), axis=0)
    classifier = SGDClassifier(loss="modified_huber", random_state=0).fit(table, table[:, 0])
    classifier.coef_, classifier.intercept_ = np.array([[20.3, 0.0]]), np.array([-20.0])
    with pytest.raises(ValueError, match="clipped, say"):
        tb.conform(classifier, table)


def test_logistic_regressions_of_other_kinds() -> None:
    rng = np.random.default_rng(3)
    table = (rng.random((200, 4)) < 0.4).astype(float)
    labels = (table[:, 0] + rng.random(200) > 0.8).astype(int)
    for classifier in (
        SGDClassifier(loss="log_loss", random_state=0),
        LogisticRegression(fit_intercept=False),
        LogisticRegression(solver="liblinear"),
    ):
        model = tb.conform(classifier.fit(table, labels), table)
        np.testing.assert_allclose(model.predict_proba(table), classifier.predict_proba(table), atol=1e-12)
    thin = LogisticRegression().fit(table, labels)
    expected = thin.predict_proba(table)
    np.testing.assert_allclose(tb.conform(thin.sparsify(), table).predict_proba(table), expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"SGDClassifier with other probabilities \(one-versus-rest"):
        tb.conform(SGDClassifier(loss="log_loss", random_state=0).fit(table, rng.integers(0, 3, 200)), table)


def weights_alone(**changed: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"coef_": np.ones((1, 3)), "intercept_": [-1.0], "classes_": ["no", "yes"], **changed})


def test_weights_chosen_by_hand() -> None:
    model = tb.conform(weights_alone(), X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(1 - X.sum(axis=1))), atol=1e-15)
    assert model.predict([[1, 1, 1]])[0] == "yes"
    assert tb.conform(weights_alone(intercept_=-1.0), X).predict_proba(X).tolist() == model.predict_proba(X).tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"intercept_": [0.0, 0.0]}, r"intercept_ must be one number, .* coef_, which has 1, got shape \(2,\)"),
        ({"intercept_": []}, r"intercept_ must be one number, .* got shape \(0,\)"),
        ({"coef_": np.ones((2, 3)), "intercept_": [1.0]}, r"one for each row of coef_, which has 2, got shape \(1,\)"),
        ({"coef_": np.ones((3, 3))}, r"coef_ must have one row of weights for each class, .* \(3, 3\) for 2 classes"),
        ({"coef_": "heavy"}, "coef_ must hold real numbers, got values of type"),
        ({"coef_": np.ones((1, 4))}, "X must have 4 columns, like the rows of the fit, got 3"),
        ({"classes_": ["yes"]}, r"classes_ must be a list of at least two classes, got \['yes'\]"),
    ],
)
def test_weights_that_do_not_fit_together(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.conform(weights_alone(**changed), X)


def test_a_missing_value_of_a_data_frame_is_explained_around_but_not_judged() -> None:
    frame = pd.DataFrame(X).astype("Int64")
    frame.iloc[2, 0] = pd.NA
    assert MODEL.explain(frame.iloc[2]).support == MODEL.explain(changed(2, 0, np.nan)[2]).support
    with pytest.raises(ValueError, match=r"X\[2, 0\] must not be missing here"):
        MODEL.conformity_error(frame)


def test_conformity_of_real_valued_features_is_not_a_table() -> None:
    model = tb.conform(FITTED, X, real=[0])
    with pytest.raises(ValueError, match="conformity_error takes discrete features only"):
        model.conformity_error(X)
    with pytest.raises(ValueError, match="to_naive_bayes takes binary features only"):
        model.to_naive_bayes()


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_units_without_squares_are_refused(unit: float) -> None:
    weights = SimpleNamespace(coef_=np.array([[1 / unit]]), intercept_=np.zeros(1), classes_=np.array([0, 1]))
    with pytest.raises(ValueError, match="X must have real columns whose squares a float can hold, got column 0"):
        tb.conform(weights, np.array([[1.0], [2.0], [-2.0]]) * unit, real=[0])


TWO = tb.conform(FITTED, X, n_components=2)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda: MODEL.explain(X[:1]), r"x must be one row of 3 values, got shape \(1, 3\)"),
        (lambda: MODEL.explain(X[:1], delta=0.9), "x must be one row of 3 values"),
        (lambda: MODEL.explain([0.5, 1, 0]), "must be 0, 1 or NaN"),
        (lambda: MODEL.explain(X[0], against="nobody", delta=0.9), "against must be one of"),
        (lambda: MODEL.explain(X[0], delta=0.9, max_sets=0), "max_sets must be a whole number, 1 or more, got 0"),
        (
            lambda: MODEL.explain(X[0], delta=0.9, max_evaluations=0.5),  # type: ignore[call-overload]
            r"max_evaluations must be a whole number, 1 or more, got 0.5",
        ),
        *(
            (
                lambda delta=delta: MODEL.explain(X[0], delta=delta),
                "delta must be a probability above 0 and up to 1, got",
            )
            for delta in (0, -1, 1.5, np.nan, True, "0.9")
        ),
        (lambda: TWO.explain(X[0]), "delta must be given to explain a model of 2 components"),
        (lambda: MODEL.contrast(X[0], by="magic"), "by must be one of change, loss, got 'magic'"),  # type: ignore[arg-type]
        (lambda: MODEL.contrast(X[0], max_sets=True), "max_sets must be a whole number, 1 or more, got True"),
        (lambda: MODEL.contrast(X[0], against="nobody"), "against must be one of"),
        (lambda: TWO.contrast(changed(0, 0, np.nan)[0]), "x must have no missing value for by='change'"),
        (lambda: TWO.to_naive_bayes(), "to_naive_bayes takes one component, got 2"),
        (lambda: MODEL.sample(-1, np.random.default_rng(0)), "n_rows must be 0 or more, got -1"),
    ],
)
def test_questions(question: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        question()


def test_a_classifier_without_weights_is_sent_to_expect() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    forest = RandomForestClassifier(5).fit(rows, rows[:, 0] > 0)
    with pytest.raises(ValueError, match=r"got RandomForestClassifier without .*; complete .* with trimbench.expect"):
        tb.conform(forest, rows)
