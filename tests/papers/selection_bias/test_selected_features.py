"""Estimates of the error after a choice, against loops that spell out what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from trimbench.papers.methods.selected_features import (
    bias_corrected_error,
    chosen_by_folds,
    held_out_errors,
    nested_error,
    penalised_regression,
    shrunken_centroids,
)


def smoothed(X: np.ndarray, y: np.ndarray, smoothing: float) -> GaussianNB:
    return GaussianNB(var_smoothing=smoothing).fit(X, y)


def dealt(y: np.ndarray, n_folds: int = 4) -> np.ndarray:
    return np.arange(len(y)) % n_folds


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=50)
    return rng.normal(size=(50, 6)) + 0.7 * y[:, None] * (np.arange(6) < 2), y


def test_held_out_nested_and_chosen(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    choices = [1e-9, 1.0, 100.0]

    def errors(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        wrong = np.zeros((len(y), 3), dtype=bool)
        for row in range(len(y)):
            others = np.arange(len(y)) % 4 != row % 4
            for place, one in enumerate(choices):
                wrong[row, place] = smoothed(X[others], y[others], one).predict(X[[row]])[0] != y[row]
        return wrong

    np.testing.assert_array_equal(held_out_errors(smoothed, X, y, choices, dealt(y)), errors(X, y))
    best = choices[int(errors(X, y).mean(axis=0).argmin())]
    chosen, model = chosen_by_folds(smoothed, X, y, choices, dealt(y))
    assert chosen == best == model.var_smoothing
    n_wrong = 0
    for fold in range(4):
        out = np.arange(50) % 4 == fold
        one = choices[int(errors(X[~out], y[~out]).mean(axis=0).argmin())]
        n_wrong += (smoothed(X[~out], y[~out], one).predict(X[out]) != y[out]).sum()
    assert nested_error(smoothed, X, y, choices, dealt(y), dealt) == n_wrong / 50


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, 5))
def test_the_bias_corrected_error_is_of_rows_outside_of_each_sample(seed: int, n_rows: int, n_settings: int) -> None:
    wrong = np.random.default_rng(seed).random((n_rows, n_settings)) < 0.4
    rng, errors = np.random.default_rng(seed), []
    for _ in range(500):
        drawn = rng.integers(n_rows, size=n_rows).tolist()
        best = min(range(n_settings), key=lambda one: (sum(wrong[row, one] for row in drawn), one))
        outside = [wrong[row, best] for row in range(n_rows) if row not in drawn]
        if outside:
            errors.append(sum(outside) / len(outside))
    found = bias_corrected_error(wrong, np.random.default_rng(seed))
    assert found == pytest.approx(np.mean(errors), abs=1e-12)
    same = np.repeat(wrong[:, :1], n_settings, axis=1)  # nothing to choose: nothing to correct
    assert bias_corrected_error(same, np.random.default_rng(seed)) == pytest.approx(same[:, 0].mean(), abs=0.2)


def test_a_basis_of_the_rows_changes_no_prediction(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows[0][:20], rows[1][:20]
    wide = np.hstack([X, np.random.default_rng(1).normal(size=(20, 60))])
    plain = LogisticRegression(C=0.1, max_iter=1000).fit(wide, y).predict_proba(wide)
    np.testing.assert_allclose(penalised_regression(wide, y, 0.1).predict_proba(wide), plain, atol=1e-3)
    assert (shrunken_centroids(wide, y, 1e6).deviations_ == 0).all()


def test_equal_centroids_do_not_decide_by_last_digits() -> None:
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 3000))
    model = shrunken_centroids(X, y, 1e6)
    assert len(np.unique(model.predict_proba(X).round(9))) == 1
    assert set(model.predict(X)) == {0}
    model = shrunken_centroids(X[:, :5] + y[:, None], y, 0.5)
    assert (model.predict(X[:, :5]) == model.predict_proba(X[:, :5]).argmax(axis=1)).all()


def test_a_fold_of_one_class_is_predicted_as_that_class() -> None:
    X, y = np.arange(8.0)[:, None], np.array([1, 0, 0, 0, 0, 0, 0, 0])
    wrong = held_out_errors(smoothed, X, y, [1.0], dealt(y, 8))
    assert wrong[0, 0]
