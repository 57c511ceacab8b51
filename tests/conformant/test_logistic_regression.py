"""Logistic regressions: scikit-learn's optimum by either way, the certificate, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_matrix
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.conformant import logistic_regression


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


@pytest.fixture(params=[1500, 0], ids=["few parameters", "many"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic_regression, "_FEW_PARAMETERS", request.param)
    monkeypatch.setattr(logistic_regression, "_BLOCK_ROWS", 64)


@pytest.mark.usefixtures("_ways")
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


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_weights_count_rows(seed: int, n_classes: int) -> None:
    X, y = problem(n_classes, "binary", seed)
    times = np.random.default_rng(seed).integers(0, 3, len(X))
    repeated = np.repeat(np.arange(len(X)), times)
    weighted = tb.fit_logistic_regression(X, y, sample_weight=times, tol=1e-10)
    counted = tb.fit_logistic_regression(X[repeated], y[repeated], tol=1e-10)
    np.testing.assert_allclose(weighted.coef_, counted.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, counted.intercept_, atol=1e-6)


def test_correlations_of_columns_spare_products(monkeypatch: pytest.MonkeyPatch) -> None:
    count = [0]
    hessian = logistic_regression._ByteLoss.hessian

    def counted(loss: logistic_regression._ByteLoss, chances: np.ndarray) -> Any:
        product = hessian(loss, chances)

        def multiply(direction: np.ndarray) -> np.ndarray:
            count[0] += 1
            return product(direction)

        return multiply

    monkeypatch.setattr(logistic_regression, "_FEW_PARAMETERS", 0)
    monkeypatch.setattr(logistic_regression._ByteLoss, "hessian", counted)
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2000, 3))
    X = np.asarray(hidden @ rng.normal(size=(3, 40)) + 0.3 * rng.normal(size=(2000, 40)) > 0, dtype=np.uint8)
    y = (hidden @ rng.normal(size=(3, 4)) + rng.gumbel(size=(2000, 4))).argmax(axis=1)
    tb.fit_logistic_regression(X, y, tol=1e-8)
    with_correlations, count[0] = count[0], 0
    monkeypatch.setattr(logistic_regression.np.linalg, "inv", lambda matrix: np.eye(len(matrix)))
    tb.fit_logistic_regression(X, y, tol=1e-8)
    assert with_correlations < 0.7 * count[0], (with_correlations, count[0])


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


@pytest.mark.parametrize("changed", [256, -1, 0.5])
def test_what_is_no_byte_is_left_to_scikit_learn(changed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic_regression, "_FEW_PARAMETERS", 0)
    X, y = problem(3, "binary")
    assert logistic_regression._holds_bytes(X)
    wide = X.astype(float)
    assert logistic_regression._holds_bytes(wide)
    wide[200, 3] = changed
    assert not logistic_regression._holds_bytes(wide)
    found = tb.fit_logistic_regression(wide, y, 0.01, tol=1e-9)
    assert np.abs(gradient(wide, y, 0.01, np.ones(len(y)), found)).max() <= 1e-9


def test_conform_takes_it() -> None:
    X, y = problem(3, "binary")
    classifier = tb.fit_logistic_regression(X, y)
    model = tb.conform(classifier, X)
    np.testing.assert_allclose(model.predict_proba(X), classifier.predict_proba(X), atol=1e-12)


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_rows_reach_the_tolerance(n_classes: int) -> None:
    X, _ = problem(n_classes, "binary")
    y = X[:, :2].sum(axis=1) % 3 if n_classes == 3 else X[:, 0]
    found = tb.fit_logistic_regression(X, y, 1e6, tol=1e-9)
    assert found.gradient_norm_ <= 1e-9
    assert (found.predict(X) == y).all() or n_classes == 3


@pytest.mark.usefixtures("_ways")
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
        ({"sample_weight": np.zeros(300)}, "and not be zero in all rows"),
        ({"y": [0, 1]}, r"y must have one label for each of the 300 rows, got shape \(2,\)"),
        ({"y": np.zeros(300, int)}, "needs samples of at least 2 classes"),
        ({"y": np.linspace(0, 1, 300)}, "Unknown label type: continuous"),
        ({"X": np.full((300, 2), np.nan)}, "X must have finite numbers only; leave rows with missing values out"),
        ({"X": csr_matrix(np.full((300, 2), np.inf))}, "X must have finite numbers only"),
        ({"X": np.empty((300, 0))}, r"0 feature\(s\) \(shape=\(300, 0\)\)"),
        ({"X": [["a"]] * 300}, "X must hold real numbers"),
        ({"X": np.zeros(300)}, "X must have two dimensions"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    X, y = problem(3, "binary")
    with pytest.raises(ValueError, match=message):
        tb.fit_logistic_regression(**({"X": X, "y": y} | change))


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
