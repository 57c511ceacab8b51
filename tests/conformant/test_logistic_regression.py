"""Logistic regression by Newton's method: scikit-learn's optimum, the certificate, and what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_matrix
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.conformant import logistic_regression
from trimbench.conformant.logistic_regression import LogisticLoss, Rows


def problem(n_classes: int, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X: np.ndarray = rng.integers(0, 2, (300, 12)).astype(np.uint8)
    X[:, 5] = 0  # says nothing
    X[:, 6] = X[:, 7]
    if kind == "counts":
        X = rng.integers(-3, 9, (300, 12))
    elif kind == "bytes as floats":
        X = X.astype(float) * 200
    elif kind == "real":
        X = X + rng.normal(size=X.shape)
    scores = (X / max(1.0, np.abs(X).max())) @ rng.normal(size=(12, n_classes)) + rng.gumbel(size=(300, n_classes))
    return X, scores.argmax(axis=1)


def gradient(X: np.ndarray, y: np.ndarray, C: float, weights: np.ndarray, classifier: Any) -> np.ndarray:
    """Return the gradient of the mean loss, for the stored vectors of weights and intercepts."""
    scores = X @ classifier.coef_.T + classifier.intercept_
    if len(classifier.classes_) == 2:
        residuals = (1 / (1 + np.exp(-scores))) - (y == classifier.classes_[1])[:, None]
    else:
        residuals = softmax(scores, axis=1) - (y[:, None] == classifier.classes_)
    residuals = residuals * weights[:, None]
    slopes = residuals.T @ X + classifier.coef_ / C
    return np.column_stack([slopes, residuals.sum(axis=0)]) / weights.sum()


@pytest.mark.parametrize("kind", ["binary", "counts", "bytes as floats", "real"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_finds_the_optimum_of_scikit_learn(kind: str, n_classes: int, weighted: bool) -> None:
    X, y = problem(n_classes, kind)
    weights = np.random.default_rng(1).uniform(0, 3, len(X)) if weighted else None
    labels = np.array(["ant", "bee", "cat", "dog", "eel"])[y]
    C = 0.7 if kind != "bytes as floats" else 1e-4
    ours = tb.fit_logistic_regression(X, labels, C, sample_weight=weights, tol=1e-9)
    theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    theirs.fit(X.astype(float), labels, sample_weight=weights)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X.astype(float)), atol=2e-6)
    ones = np.ones(len(X)) if weights is None else weights
    size = np.abs(gradient(X.astype(float), labels, C, ones, ours)).max()
    assert ours.gradient_norm_ == pytest.approx(size, abs=1e-13)
    assert size <= 1e-9


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_weights_count_rows(seed: int, n_classes: int) -> None:
    X, y = problem(n_classes, "binary", seed)
    times = np.random.default_rng(seed).integers(0, 3, len(X))
    repeated = np.repeat(np.arange(len(X)), times)
    weighted = tb.fit_logistic_regression(X, y, sample_weight=times, tol=1e-10)
    counted = tb.fit_logistic_regression(X[repeated], y[repeated], tol=1e-10)
    np.testing.assert_allclose(weighted.coef_, counted.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, counted.intercept_, atol=1e-6)
    some = tb.fit_logistic_regression(X, y, sample_weight=y != 0) if n_classes > 2 else weighted
    assert some.classes_.tolist() == list(range(n_classes > 2, n_classes))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["binary", "real", "sparse"])
def test_derivatives_are_those_of_the_loss(n_classes: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic_regression, "_BLOCK_ROWS", 64)
    X, y = problem(n_classes, "real" if kind == "real" else "binary")
    weights = np.random.default_rng(1).dirichlet(np.ones(len(X)))
    table = csr_matrix(X, dtype=float) if kind == "sparse" else X
    loss = LogisticLoss(Rows(table, np.float64), y, weights, n_classes, 0.3)
    rng = np.random.default_rng(2)
    at, direction = rng.normal(size=loss.shape), rng.normal(size=loss.shape)

    def directly(parameters: np.ndarray) -> float:
        scores = X @ parameters[:-1] + parameters[-1]
        scores = np.column_stack([0 * scores, scores]) if n_classes == 2 else scores
        losses = -log_softmax(scores, axis=1)[np.arange(len(X)), y]
        return float(weights @ losses + 0.15 * (parameters[:-1] ** 2).sum())

    value, slopes, probabilities = loss.evaluate(at)
    assert value == pytest.approx(directly(at), rel=1e-12)
    h = 1e-5
    numeric = (directly(at + h * direction) - directly(at - h * direction)) / (2 * h)
    assert (slopes * direction).sum() == pytest.approx(numeric, rel=1e-6)
    change = (loss.evaluate(at + h * direction)[1] - loss.evaluate(at - h * direction)[1]) / (2 * h)
    np.testing.assert_allclose(loss.hessian(probabilities)(direction), change, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("most_columns", "worth"), [(2000, 0), (2000, 1000), (3, 0)])
def test_the_preconditioner_is_symmetric_and_positive(
    n_classes: int, most_columns: int, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logistic_regression, "_MOST_GRAM_COLUMNS", most_columns)
    monkeypatch.setattr(logistic_regression, "_WORTH_PRODUCTS", worth)
    monkeypatch.setattr(logistic_regression, "_GRAM_ROWS_PER_COLUMN", 1000)  # every row
    X, y = problem(n_classes, "real")
    loss = LogisticLoss(Rows(X, np.float64), y, np.full(len(X), 1 / len(X)), n_classes, 0.1)
    probabilities = loss.evaluate(np.zeros(loss.shape))[2]
    size = loss.shape[0] * loss.shape[1]
    precondition = loss.preconditioner(probabilities)
    matrix = np.stack([precondition(unit.reshape(loss.shape)).ravel() for unit in np.eye(size)])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    values = np.linalg.eigvalsh(matrix)
    flat = loss.shape[0] if n_classes > 2 else 0  # along which all classes change alike
    np.testing.assert_allclose(values[:flat], 0, atol=1e-9)
    assert values[flat] > 1e-3
    if n_classes == 2 and most_columns == 2000:  # the inverse
        hessian = loss.hessian(probabilities)
        product = np.stack([hessian(precondition(unit.reshape(loss.shape))).ravel() for unit in np.eye(size)])
        np.testing.assert_allclose(product, np.eye(size), atol=1e-9)


def rare_values(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Four one-hot features with rare values, all of which depend on one another, as the classes do on them."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=n_rows)
    cuts = [-2.5, -1.0, 0.0, 0.3, 1.5, 2.8]
    codes = [np.digitize(hidden + 0.4 * rng.normal(size=n_rows), cuts) for _ in range(4)]
    X = np.hstack([np.eye(7, dtype=np.uint8)[code] for code in codes])
    return X, np.digitize(hidden + 0.5 * rng.normal(size=n_rows), [-2.0, 0.0, 0.2, 2.0])


def test_the_inverse_of_all_correlations_is_close_to_that_of_the_hessian() -> None:
    """Multiplied by the Hessian, it has eigenvalues near 1, and 0 where all classes change alike."""
    X, y = rare_values(4000)
    loss = LogisticLoss(Rows(X, np.float64), y, np.full(len(X), 1 / len(X)), 5, 1e-3)
    parameters = np.random.default_rng(1).normal(size=loss.shape)
    probabilities = loss.evaluate(parameters)[2]
    hessian, precondition = loss.hessian(probabilities), loss.preconditioner(probabilities)
    units = np.eye(loss.shape[0] * 5).reshape(-1, *loss.shape)
    values = np.linalg.eigvals(np.stack([precondition(hessian(unit)).ravel() for unit in units])).real
    values.sort()
    np.testing.assert_allclose(values[: loss.shape[0]], 0, atol=1e-9)
    assert values[loss.shape[0]] > 0.2
    assert values[-1] < 5


@pytest.mark.parametrize(("limit", "value"), [("_WORTH_PRODUCTS", 0), ("_MOST_GRAM_COLUMNS", 3)])
def test_all_preconditioners_lead_to_one_optimum(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rare_values(1000)
    expected = tb.fit_logistic_regression(X, y, tol=1e-11)
    monkeypatch.setattr(logistic_regression, limit, value)
    np.testing.assert_allclose(tb.fit_logistic_regression(X, y, tol=1e-11).coef_, expected.coef_, atol=1e-6)


def test_few_rows_are_not_worth_a_matrix_of_all_parameters() -> None:
    X, y = rare_values(4000)
    for n_rows, is_worth_it in ((40, False), (4000, True)):
        rows = slice(n_rows)
        loss = LogisticLoss(Rows(X[rows], np.float64), y[rows], np.full(n_rows, 1 / n_rows), 5, 1.0)
        assert loss._is_joint_worth_it == is_worth_it


def test_sparse_rows_and_names_of_columns() -> None:
    X, y = problem(3, "binary")
    dense = tb.fit_logistic_regression(X, y, tol=1e-10)
    for sparse in (csr_matrix(X), csc_array(X.astype(float))):
        found = tb.fit_logistic_regression(sparse, y, tol=1e-10)
        np.testing.assert_allclose(found.coef_, dense.coef_, atol=1e-7)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(12)])
    named = tb.fit_logistic_regression(frame, y)
    assert named.feature_names_in_.tolist() == list(frame)
    assert named.predict(frame).tolist() == dense.predict(X).tolist()
    assert named.n_iter_.shape == (1,)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_rows_reach_the_tolerance(n_classes: int) -> None:
    X, _ = problem(n_classes, "binary")
    y = X[:, :2].sum(axis=1) % 3 if n_classes == 3 else X[:, 0]
    found = tb.fit_logistic_regression(X, y, 1e6, tol=1e-9)
    assert found.gradient_norm_ <= 1e-9
    assert (found.predict(X) == y).all() or n_classes == 3


def test_an_unfinished_fit_warns() -> None:
    X, y = problem(3, "binary")
    with pytest.warns(ConvergenceWarning, match=r"the gradient is .* after 1 steps, more than tol=1e-06"):
        found = tb.fit_logistic_regression(X, y, max_iter=1)
    assert found.gradient_norm_ > 1e-6
    with pytest.warns(ConvergenceWarning):  # no float64 is so accurate: it ends where rounding leaves no progress
        found = tb.fit_logistic_regression(X, y, tol=1e-30, max_iter=1000)
    assert found.n_iter_[0] < 100
    assert found.gradient_norm_ < 1e-14


def test_one_row_of_each_class_and_no_information() -> None:
    found = tb.fit_logistic_regression([[0], [0]], ["a", "b"])
    assert found.coef_.tolist() == [[0.0]]
    assert found.predict_proba([[0]]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 0}, "C must be a positive number, got 0"),
        ({"C": np.inf}, "C must be a positive number, got inf"),
        ({"tol": True}, "tol must be a positive number, got True"),
        ({"max_iter": 0}, "max_iter must be a whole number, 1 or more, got 0"),
        ({"sample_weight": [1.0]}, r"sample_weight must have one number for each of the 300 rows, got shape \(1,\)"),
        ({"sample_weight": np.full(300, -1.0)}, "sample_weight must have finite numbers, 0 or more"),
        ({"sample_weight": np.zeros(300)}, "and not all be zero"),
        ({"sample_weight": np.full(300, 1e308)}, "with a finite sum"),
        ({"C": 1e-200, "sample_weight": np.full(300, 1e-200)}, "C times .* must be at least 1e-300, got C=1e-200"),
        ({"y": [0, 1]}, r"y must have one label for each of the 300 rows, got shape \(2,\)"),
        ({"y": np.zeros(300, int)}, r"y must have at least two classes in rows of positive weight, got \[0\]"),
        ({"y": ["a", None, "b"] * 100}, "y must have a label for every row, got none .* in 100 of 300 rows"),
        ({"y": np.linspace(0, 1, 300)}, "Unknown label type: continuous"),
        ({"X": np.full((300, 2), np.nan)}, "X must have finite numbers only; leave rows with missing values out"),
        ({"X": csr_matrix(np.full((300, 2), np.inf))}, "X must have finite numbers only"),
        ({"X": np.empty((300, 0))}, r"X must have at least one row and one column, got shape \(300, 0\)"),
        ({"X": [["a"]] * 300}, "X must hold real numbers"),
        ({"X": np.zeros(300)}, "X must have two dimensions"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    X, y = problem(3, "binary")
    with pytest.raises(ValueError, match=message):
        tb.fit_logistic_regression(**({"X": X, "y": y} | change))


@pytest.mark.parametrize("shift", [0, 0.5])
def test_tiny_weights_give_tiny_coefficients_without_a_warning(shift: float) -> None:
    X, y = problem(2, "binary")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny, small = (tb.fit_logistic_regression(X + shift, y, sample_weight=np.full(300, w)) for w in (1e-300, 1e-9))
    np.testing.assert_allclose(1e300 * tiny.coef_, 1e9 * small.coef_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_weights_of_the_columns_of_one_feature_add_up_to_nothing(n_classes: int) -> None:
    # Adding a number to all of them, and taking it from the intercept, changes nothing but the penalty. It is so small
    # here that only a fit to the optimum has them: the values of the first feature are rare.
    rng = np.random.default_rng(3)
    rare = np.append(rng.integers(0, 3, 397), [3, 4, 5])
    codes = np.column_stack([rare, rng.integers(0, 4, 400), rng.integers(0, 2, 400)])
    X = np.hstack([np.eye(codes[:, j].max() + 1, dtype=np.uint8)[codes[:, j]] for j in range(3)])
    y = (codes.sum(axis=1) + rng.integers(0, 3, 400)) % n_classes
    weights = rng.integers(1, 2000, 400)
    exact = tb.fit_logistic_regression(X, y, sample_weight=weights, tol=1e-12)
    for columns in (slice(0, 6), slice(6, 10), slice(10, 12)):
        assert np.abs(exact.coef_[:, columns].sum(axis=1)).max() < 1e-4
    rough = tb.fit_logistic_regression(X, y, sample_weight=weights, tol=1e-8)
    bound = np.sqrt(X.shape[1] * n_classes) * rough.gradient_norm_ * weights.sum()  # C = 1
    assert np.linalg.norm(rough.coef_ - exact.coef_) <= bound
