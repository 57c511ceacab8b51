"""The estimator predicts what the function does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_score

import trimbench as tb
from tests.selection_bias.brute_force import random_data
from trimbench.estimators import SelectionCorrectedNB
from trimbench.selection_bias.features import known_cuts


def test_predictions_are_those_of_the_function() -> None:
    X, y = random_data(np.random.default_rng(0), 20, 15, 40)
    labels = np.array(["well", "ill"])[y]  # in alphabetical order "ill" comes first, so that y = 1 is "well"
    fitted = SelectionCorrectedNB(k=4, shape=1.0, n_alpha=20).fit(X, labels)
    model = tb.fit_selection_corrected(X, 1 - y, 4, shape=1.0, n_alpha=20)
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert fitted.selected_.tolist() == model.selected.tolist()
    np.testing.assert_array_equal(fitted.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X) == "well", model.predict(X) == 1)
    np.testing.assert_array_equal(fitted.decision_function(X), model.log_odds(X))
    assert fitted.expected_error(X) == model.expected_error(X)


def test_it_works_in_a_search() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    search = GridSearchCV(SelectionCorrectedNB(n_alpha=20), {"k": [1, 5], "correct": [True, False]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.85


def test_known_cuts_reach_the_folds_of_a_cross_validation() -> None:
    y = np.repeat([0, 1], 8)
    X = np.column_stack([y.astype(float), np.tile([0.0, 1.0], 8)])
    X[-1] = 0.3, 0.7  # the only case that is not binary: a fold without it cannot know
    with pytest.raises(ValueError, match=r"got other values; fit with real values .*, or give cuts"):
        SelectionCorrectedNB(k=1, n_alpha=4).fit(X[:15], y[:15]).predict(X)
    estimator = SelectionCorrectedNB(k=1, n_alpha=4, cuts=known_cuts(X))
    assert estimator.fit(X[:15], y[:15]).predict(X).tolist() == y.tolist()
    assert cross_val_score(estimator, X, y, cv=LeaveOneOut()).mean() > 0.9


def test_features_without_any_correlation_are_left_out() -> None:
    y = np.array([0, 0, 1, 1, 0, 1])
    X = np.column_stack([y, np.zeros(6, dtype=int), np.ones(6, dtype=int), 1 - y])
    with pytest.warns(UserWarning, match=r"k=3 is reduced to 2: no other feature is correlated with the class"):
        assert SelectionCorrectedNB(k=3).fit(X, y).selected_.tolist() == [0, 3]
    assert SelectionCorrectedNB().fit(X, y).selected_.tolist() == [0, 3, 1, 2]
    nothing = SelectionCorrectedNB(k=1).fit(np.zeros((6, 3)), y)
    np.testing.assert_allclose(nothing.predict_proba(np.zeros((1, 3))), [[0.5, 0.5]])


def test_bad_input_is_reported() -> None:
    X = [[0], [1], [0], [1]]
    for options, y, message in [
        ({"k": 0}, [0, 1, 0, 1], "k must be 'auto' or a whole number from 1 to 1, the number of features, got 0"),
        ({"k": 2}, [0, 1, 0, 1], "k must be 'auto' or a whole number from 1 to 1, the number of features, got 2"),
        ({"rate": 0}, [0, 1, 0, 1], "rate must be a positive number, got 0"),
        ({}, [1, 1, 1, 1], "y must have two classes or more, got 1 class; add cases of another class"),
    ]:
        with pytest.raises(ValueError, match=message):
            SelectionCorrectedNB(**options).fit(X, y)
