"""The estimator predicts what the function does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline

import trimbench as tb
from tests.selection_bias.brute_force import random_data
from tests.selection_bias.settings import grouped
from trimbench.estimators import SelectionCorrectedNB
from trimbench.selection_bias.features import known_cuts


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    y = rng.permutation(np.repeat(["a", "b", "c"], 20))
    X = rng.normal(size=(60, 12))
    X[:, 3] += 3.0 * (y == "b")
    X[:, 7] += 3.0 * (y == "c")
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def two_classes() -> tuple[np.ndarray, np.ndarray]:
    X, y = random_data(np.random.default_rng(0), 20, 15, 40)
    return X, np.array(["well", "ill"])[y]


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        (two_classes, {"k": 4, "shape": 1.0}),
        (three_classes, {"k": 2}),
        (three_classes, {"k": 2, "shape": 1.0, "features": "gaussian"}),
    ],
)
def test_predictions_are_those_of_the_function(data: Any, settings: dict[str, Any]) -> None:
    X, y = data()
    classes, codes = np.unique(y, return_inverse=True)
    fitted = SelectionCorrectedNB(n_alpha=20, calibrate=False, **settings).fit(X, y)
    model = tb.fit_selection_corrected(X, codes, **grouped(n_alpha=20, **settings))
    assert fitted.classes_.tolist() == classes.tolist()
    assert fitted.selected_.tolist() == model.selected.tolist()
    np.testing.assert_array_equal(fitted.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(X), classes[model.predict(X)])
    scores = model.log_odds(X) if len(classes) == 2 else model.log_probabilities(X)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)
    assert fitted.expected_error(X) == model.expected_error(X)
    assert fitted.feature_importances_[fitted.selected_[-1]] == pytest.approx(model.gamma)
    assert data is two_classes or fitted.score(X, y) > 0.7


def test_gaussian_features_serve_better_than_cut_ones() -> None:
    X, y = three_classes()
    gaussian, binary = (SelectionCorrectedNB(k=2, features=kind, n_alpha=20) for kind in ("gaussian", "binary"))
    assert gaussian.fit(X, y).score(X, y) > binary.fit(X, y).score(X, y)
    assert gaussian.get_support(indices=True).tolist() == [3, 7]
    assert gaussian.fit(X, y == "b").decision_function(X).shape == (60,)
    with pytest.raises(
        ValueError, match=r"cuts must be left at None where features is 'gaussian', got \[1\]; it is for"
    ):
        SelectionCorrectedNB(k=1, features="gaussian", cuts=[1]).fit(X[:, :1], y)
    with pytest.raises(ValueError, match="features must be one of binary, gaussian, got 'cut'"):
        SelectionCorrectedNB(features="cut").fit(X, y)


def test_known_cuts_reach_the_folds_of_a_cross_validation() -> None:
    y = np.repeat([0, 1], 8)
    X = np.column_stack([y.astype(float), np.tile([0.0, 1.0], 8)])
    X[-1] = 0.3, 0.7  # the only case that is not binary: a fold without it cannot know
    with pytest.warns(
        UserWarning, match=r"column '0' has other numbers than the 0 and 1 of the training rows, such as 0.3"
    ):
        SelectionCorrectedNB(k=1, n_alpha=4).fit(X[:15], y[:15]).predict(np.column_stack([X[:, 0], X[:, 1].round()]))
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


def test_it_selects_columns_for_what_follows() -> None:
    X, y = three_classes()
    table = pd.DataFrame(X, columns=[f"gene{j}" for j in range(12)])
    fitted = SelectionCorrectedNB(k=2, n_alpha=20).fit(table, y)
    assert fitted.get_support(indices=True).tolist() == [3, 7]
    assert fitted.get_feature_names_out().tolist() == ["gene3", "gene7"]
    np.testing.assert_array_equal(fitted.transform(table), X[:, [3, 7]])
    masked = np.ma.MaskedArray(np.nan_to_num(X, nan=99.0), np.isnan(X))
    np.testing.assert_array_equal(SelectionCorrectedNB(k=2, n_alpha=5).fit(X, y).transform(masked), X[:, [3, 7]])
    assert (np.flatnonzero(fitted.feature_importances_) == [3, 7]).all()
    meta = SelectFromModel(SelectionCorrectedNB(k=2, n_alpha=20), threshold=1e-12).fit(X, y)
    assert meta.get_support(indices=True).tolist() == [3, 7]
    both = make_pipeline(SelectionCorrectedNB(k=2, n_alpha=20), HistGradientBoostingClassifier(max_iter=5)).fit(X, y)
    assert both.n_features_in_ == 12
    assert both[-1].n_features_in_ == 2


def test_whole_weights_are_copies_and_others_are_refused() -> None:
    X, y = random_data(np.random.default_rng(1), 15, 12, 20)
    weights = np.random.default_rng(0).integers(0, 4, size=27)
    weighted = SelectionCorrectedNB(k=3, n_alpha=10).fit(X, y, sample_weight=weights)
    copied = SelectionCorrectedNB(k=3, n_alpha=10).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_array_equal(weighted.predict_proba(X), copied.predict_proba(X))
    for wrong, shown in ((0.5, "0.5"), (-1.0, "-1.0")):
        with pytest.raises(ValueError, match=f"sample_weight must hold whole numbers, 0 or more: .*; got {shown}"):
            SelectionCorrectedNB().fit(X, y, sample_weight=np.full(27, wrong))
    with pytest.raises(ValueError, match=r"sample_weight must add up to 100000000 at most, .*, got inf; divide"):
        SelectionCorrectedNB().fit(X, y, sample_weight=np.full(27, 1e308))
