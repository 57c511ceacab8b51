"""Input of the classifier: real values, subsets of rows, cross-validation, and what is refused."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import trimbench as tb
from tests.selection_bias.settings import grouped
from trimbench.selection_bias.features import known_cuts
from trimbench.selection_bias.fit import cross_validate_selection
from trimbench.selection_bias.mixture import MixtureSampler
from trimbench.selection_bias.prior import Prior

from . import brute_force


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    return brute_force.random_data(np.random.default_rng(3), 12, 15, 30)


def test_a_model_says_in_a_line_what_it_is(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = tb.fit_selection_corrected(X, y, 4, calibrate=False)
    assert repr(model) == "SelectionCorrectedModel(4 of 30 features, 27 cases of 2 classes, corrected)"
    assert repr(model.uncorrected()).endswith(", not corrected)")
    assert repr(tb.fit_selection_corrected(X, y, 4, calibrate=True)).endswith(", corrected, calibrated)")
    assert repr(model.selection) == f"Selection(4 of 30 features, gamma {model.gamma:.3g})"
    mixture = tb.fit_selection_corrected(X, y, 4, features="mixture", sampler=MixtureSampler(n_chains=2))
    assert repr(mixture) == "MixturePosterior(4 of 30 features, 2 chains of 500 draws)"


def test_real_values_are_cut_at_stored_medians(data: tuple[np.ndarray, np.ndarray]) -> None:
    _, y = data
    rng = np.random.default_rng(0)
    values = rng.normal(size=(27, 8)) + y[:, None] * np.linspace(0, 2, 8)
    values[:, 0] = np.where(values[:, 0] > 0.9, 7.0, -2.0)  # two values: the cut is between them
    values[:, 1] = 3.0
    model = tb.fit_selection_corrected(values, y, 4, calibrate=False)
    assert model.cuts is not None
    assert model.cuts[0] == 2.5
    np.testing.assert_array_equal(model.cuts[1:], np.median(values[:, 1:], axis=0))
    binary = (values > model.cuts).astype(int)
    same = tb.fit_selection_corrected(binary, y, 4, calibrate=False)
    assert same.cuts is None
    assert same.selected.tolist() == model.selected.tolist()
    np.testing.assert_array_equal(model.predict_proba(values), same.predict_proba(binary))
    # A single row is cut as the training cases were.
    np.testing.assert_allclose(model.predict_proba(values[:1]), model.predict_proba(values)[:1], rtol=1e-13)
    new = rng.normal(size=(9, 8))
    with_more = tb.fit_selection_corrected(values, y, 4, unlabelled=new, calibrate=False)
    assert with_more.cuts is not None
    np.testing.assert_array_equal(with_more.cuts[2:], np.median(np.concatenate([values, new]), axis=0)[2:])


@pytest.mark.parametrize("features", ["binary", "gaussian"])
def test_selection_on_a_subset_of_rows(data: tuple[np.ndarray, np.ndarray], features: Any) -> None:
    (X, y), fit = data, partial(tb.fit_selection_corrected, features=features, prior=Prior(n_alpha=4), calibrate=False)
    rows = np.flatnonzero(np.arange(27) % 3 != 0)
    model, alone = fit(X, y, 5, selection_rows=rows), fit(X[rows], y[rows], 5)
    assert model.selected.tolist() == alone.selected.tolist()
    np.testing.assert_array_equal(model.log_adjustment, alone.log_adjustment)  # the factor is that of the subset
    assert model.class_sizes.tolist() == [12, 15]  # all else is that of all rows
    whole = fit(X[:, model.selected], y, 5)
    np.testing.assert_allclose(model.log_likelihood, whole.log_likelihood, rtol=1e-9)
    by_mask = fit(X, y, 5, selection_rows=np.isin(np.arange(27), rows))
    np.testing.assert_array_equal(by_mask.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("n_folds", [None, 2, 5, 27])
def test_cross_validation_selects_inside_each_fold(data: tuple[np.ndarray, np.ndarray], n_folds: int | None) -> None:
    X, y = data
    found = cross_validate_selection(X, y, 3, n_folds=n_folds, random_state=4, prior=Prior(n_alpha=10))
    assert len(found.selected) == (n_folds or 27)
    sizes = np.bincount(found.folds)
    assert sizes.max() - sizes.min() <= 1
    for fold in range(len(sizes)):
        out = found.folds == fold
        for correct, probabilities in ((True, found.corrected), (False, found.uncorrected)):
            model = tb.fit_selection_corrected(
                X[~out], y[~out], 3, correct=correct, prior=Prior(n_alpha=10), calibrate=False
            )
            np.testing.assert_allclose(probabilities[out], model.predict_proba(X[out]), rtol=1e-12)
        assert found.selected[fold].tolist() == model.selected.tolist()
    other = cross_validate_selection(X, y, 3, n_folds=n_folds, random_state=5, prior=Prior(n_alpha=10))
    again = cross_validate_selection(X, y, 3, n_folds=n_folds, random_state=4, prior=Prior(n_alpha=10))
    np.testing.assert_array_equal(found.folds, again.folds)
    assert n_folds in (None, 27) or (found.folds != other.folds).any()


def test_binary_features_are_decided_on_all_cases() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 8)
    real = np.array([0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0.3])  # binary but for the last case
    rare = np.ones(16)
    rare[3] = 0  # without this case the feature is constant, and its median is 1
    two = np.where(rng.random(16) < 0.5, 4.0, 6.0)
    X = np.column_stack([real, rare, two, rng.normal(size=(16, 2))])
    np.testing.assert_array_equal(known_cuts(X), [np.nan, 0.5, 5.0, np.nan, np.nan])
    found = cross_validate_selection(X, y, 2, prior=Prior(n_alpha=4))
    binary = np.column_stack([rare, two > 5]).astype(int)
    for case in range(16):
        out = np.arange(16) == case
        medians = np.median(X[~out][:, [0, 3, 4]], axis=0)
        expected = np.column_stack([X[:, [0]] > medians[0], binary, X[:, 3:] > medians[1:]]).astype(int)
        model = tb.fit_selection_corrected(expected[~out], y[~out], 2, prior=Prior(n_alpha=4), calibrate=False)
        assert found.selected[case].tolist() == model.selected.tolist()
        np.testing.assert_allclose(found.corrected[out], model.predict_proba(expected[out]), rtol=1e-12)
    only_real = cross_validate_selection(real[:, None], y, 1, prior=Prior(n_alpha=4))  # the other cases are all 0 or 1
    assert np.isfinite(only_real.corrected).all()
    fold = tb.fit_selection_corrected(
        X[:-1, :2], y[:-1], 1, prior=Prior(n_alpha=4), cuts=known_cuts(X[:, :2]), calibrate=False
    )
    assert fold.cuts is not None
    assert fold.cuts.tolist() == [np.median(real[:-1]), 0.5]
    with pytest.raises(ValueError, match=r"cuts must be one finite number for each of the 5 features, or NaN for a"):
        tb.fit_selection_corrected(X, y, 1, cuts=[0.5], calibrate=False)
    with pytest.raises(ValueError, match=r"cuts must hold numbers, or NaN for a median, got 'mean'"):
        tb.fit_selection_corrected(X, y, 1, cuts="mean", calibrate=False)


def test_impossible_cross_validation_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(ValueError, match=r"n_folds must be a whole number from 2 to 27, or None, got 1"):
        cross_validate_selection(X, y, 3, n_folds=1)
    for n_folds, shown in ((None, "leave-one-out"), (2, "2 folds")):
        with pytest.raises(ValueError, match=f"at least 2 cases of each class for {shown}, got 1 of one"):
            cross_validate_selection(X, np.eye(27, dtype=int)[0], 3, n_folds=n_folds)
    with pytest.raises(TypeError, match=r"correct cannot be set here: both predictions are returned"):
        cross_validate_selection(X, y, 3, correct=False)
    with pytest.raises(ValueError, match=r"features must be binary, categorical or gaussian in cross-validation"):
        cross_validate_selection(X, y, 3, features="mixture")


@pytest.mark.parametrize("features", ["categorical", "gaussian"])
def test_cross_validation_takes_other_features(features: Any) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, size=(16, 9)), np.repeat([0, 1], 8)
    X[0] = 3  # a category that one fold does not have
    found = cross_validate_selection(X, y, 3, n_folds=4, features=features, prior=Prior(n_alpha=5))
    out, more = found.folds == 1, {"n_categories": X.max(axis=0) + 1} if features == "categorical" else {}
    model = tb.fit_selection_corrected(
        X[~out], y[~out], 3, features=features, prior=Prior(n_alpha=5), **more, calibrate=False
    )
    np.testing.assert_allclose(found.corrected[out], model.predict_proba(X[out]), rtol=1e-12)


X_GOOD = [[1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
Y_GOOD = [1, 1, 1, 0, 0, 0]
CATEGORICAL = {"features": "categorical", "X": [[0, 2], [1, 0], [2, 1], [0, 1]], "y": [0, 0, 1, 1]}
GAUSSIAN = {"features": "gaussian", "X": [[0.1, 2.0], [1.3, 0.4], [2.2, 1.5], [0.7, 1.1]], "y": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1 to 3, the number of features of X, got 0; k=3 uses all of them"),
        ({"k": 4}, "k must be a whole number from 1 to 3, the number of features of X, got 4"),
        ({"k": 1.0}, "k must be a whole number from 1 to 3"),
        ({"k": True}, "k must be a whole number from 1 to 3"),
        ({"y": [1, 1, 1, 1, 1, 1]}, "y must have cases of both classes, got only 1; add cases of the other class"),
        ({"y": [1, 1, 9, 0, 0, 0]}, "y must have cases of all classes from 0 to 9, got none of 2; renumber"),
        ({"y": [1, 1, 3, 0, 0, 0]}, "y must have cases of all classes from 0 to 3, got none of 2; renumber them"),
        ({"y": [1, 1, 2, 0, 0, 0], "f1": 2.0}, "f0 and f1 must be equal for 3 classes, got f0=1.0 and f1=2.0; leave"),
        ({"factor": "exact"}, "factor must be one of auto, enumerate, simulate, got 'exact'"),
        ({"n_simulations": 0}, "n_simulations must be a whole number, 1 or more, got 0"),
        ({"y": ["a", "b", "a", "b", "a", "b"]}, "y must hold only 0, 1, 2, ..., got 'a', 'b'; encode"),
        ({"y": [1, 1, float("nan"), 0, 0, 0]}, "y must hold only 0, 1, 2, ..., got "),
        ({"y": [1, 0]}, "y must have one value for each of the 6 cases, got shape (2,)"),
        ({"X": [[0, 1], [1, np.inf]], "y": [0, 1]}, "X must hold finite numbers or NaN, got infinity"),
        ({"X": [["u"], ["v"]], "y": [0, 1]}, "X must hold real numbers, got values of type <U1; encode"),
        (
            {"X": [[1], [1, 0]], "y": [0, 1]},
            "X must hold numbers, and NaN where a value is missing, got setting an array element",
        ),
        ({"X": [[1j], [0]], "y": [0, 1]}, "X must hold real numbers, got values of type complex128"),
        ({"X": [0, 1], "y": [0, 1]}, "X must be a table of shape (n_cases, n_features) with at least one of each, got"),
        ({"X": np.zeros((4, 3)), "y": [0, 1, 0, 1], "k": 2}, "X must have a feature that depends on y, got 3"),
        ({"n_alpha": 0}, "n_alpha must be a whole number, 1 or more, got 0; use 100"),
        ({"n_theta": -1}, "n_theta must be a whole number, 1 or more, got -1; use 20"),
        ({"n_theta_adjust": 2.5}, "n_theta_adjust must be a whole number, 1 or more, got 2.5"),
        ({"shape": 0}, "shape must be a positive number, got 0; the slides use 0.5"),
        ({"rate": -5}, "rate must be a positive number, got -5; the slides use 5"),
        ({"rate": float("nan")}, "rate must be a positive number, got nan"),
        ({"f1": 0}, "f1 must be a positive number, got 0"),
        ({"theta0": 0.5}, "theta0 must be in [0, 0.5), got 0.5"),
        ({"ties": "none"}, "ties must be one of exact, less, less_equal, got 'none'"),
        ({"rule": "monte_carlo"}, "rule must be one of gauss, simpson, got 'monte_carlo'"),
        ({"selection_rows": [0, 0, 4]}, "selection_rows must be row numbers from 0 to 5, each once, or a mask"),
        ({"selection_rows": [0, 9]}, "selection_rows must be row numbers from 0 to 5"),
        ({"selection_rows": [0, 1]}, "selection_rows must have cases of both classes, got only 1; add rows"),
        ({"unlabelled": [[1, 0]]}, "unlabelled must have the 3 features of X, got 2 features"),
        ({"features": "real"}, "features must be one of binary, categorical, gaussian, mixture, got 'real'"),
        ({"sampler": MixtureSampler()}, "sampler must be left at None where features is 'binary', got MixtureSampler"),
        ({"prior": {"shape": 1}}, "prior must be a trimbench.selection_bias.prior.Prior, got \"{'shape': 1}\""),
        ({"sampler": 3}, "sampler must be a trimbench.selection_bias.mixture.MixtureSampler, got '3'"),
        (
            {"features": "gaussian", "ties": "less"},
            "ties must be left at 'exact' where features is 'gaussian', got 'less'; it is for 'binary', 'categorical',",
        ),
        ({"features": "mixture", "selection_rows": [0, 5]}, "selection_rows must be left at None where features is"),
        (CATEGORICAL | {"X": [[0.5, 1], [1, 0], [2, 1], [0, 1]]}, "X must hold categories 0, 1, ..., each below the"),
        (CATEGORICAL | {"X": [[-1, 1], [1, 0], [2, 1], [0, 1]]}, "X must hold categories 0, 1, ..."),
        (CATEGORICAL | {"n_categories": [2, 3]}, "X must hold categories 0, 1, ..., each below the number of"),
        (CATEGORICAL | {"n_categories": [3]}, "n_categories must be a whole number, 2 or more, for each of the 2"),
        (
            CATEGORICAL | {"X": [[0, 7], [1, 0], [2, 1], [0, 1]]},
            "features must have at most 5 categories, got 8; merge",
        ),
        (CATEGORICAL | {"X": np.zeros((4, 2))}, "X must have a feature that depends on y, got 2"),
        (
            GAUSSIAN | {"X": np.ones((4, 2))},
            "of which k=1 cannot be selected; check X and y, or keep all features by k=2",
        ),
        (GAUSSIAN | {"X": [[0.1], [0.2], [0.5]], "y": [0, 1, 2]}, "y must have more cases than its 3 classes for a"),
        (GAUSSIAN | {"selection_rows": [0, 1]}, "selection_rows must have cases of both classes, got only 0"),
    ],
)
def test_bad_input_is_reported(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"X": X_GOOD, "y": Y_GOOD, "k": 1} | arguments
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.fit_selection_corrected(**grouped(**given))


@pytest.mark.parametrize("kind", [CATEGORICAL, GAUSSIAN], ids=lambda kind: kind["features"])
def test_cases_with_other_features_are_reported(kind: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="X must have the 2 features of the training cases, got 1"):
        tb.fit_selection_corrected(**kind, k=1, calibrate=False).predict_proba([[0]])


def test_bad_cases_to_predict_are_reported() -> None:
    model = tb.fit_selection_corrected(X_GOOD, Y_GOOD, 1, calibrate=False)
    for X, message in [
        ([[1, 0]], "X must have the 3 features of the training cases, got 2 features"),
        ([[0.5, 1, 0]], "X must hold only 0 and 1, as the training cases did, got other values"),
        ([[np.inf, 1, 0]], "X must hold finite numbers or NaN, got infinity"),
        ([1, 0, 1], "X must be a table of shape"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            model.predict_proba(X)


def test_extreme_priors_stay_finite() -> None:
    for shape, rate in [(0.01, 5.0), (50.0, 1e-3), (1e-3, 1e-3), (3.0, 1e9)]:
        model = tb.fit_selection_corrected(X_GOOD, Y_GOOD, 2, prior=Prior(shape=shape, rate=rate), calibrate=False)
        assert np.isfinite(model.alpha_grid).all()
        assert (model.alpha_grid > 0).all()
        assert np.isfinite(model.predict_proba(X_GOOD)).all()


def test_what_several_classes_do_not_have() -> None:
    X, y = brute_force.drawn_cases(3, (8, 8, 8), 20)
    model = tb.fit_selection_corrected(X, y, 4, prior=Prior(n_alpha=5), calibrate=False)
    assert cross_validate_selection(X, y, 4, n_folds=3, prior=Prior(n_alpha=5)).corrected.shape == (24, 3)
    with pytest.raises(ValueError, match="log_odds needs two classes, got 3; use log_probabilities"):
        model.log_odds(X)


def test_categories_may_be_missing_in_predictions() -> None:
    X, y = brute_force.drawn_cases(5, (12, 15), 8)
    hidden = np.ma.MaskedArray(X, np.random.default_rng(2).random(X.shape) < 0.1)
    discrete = tb.fit_selection_corrected(X, y, 8, prior=Prior(n_alpha=5), features="categorical", calibrate=False)
    complete = tb.fit_selection_corrected(X, y, 8, prior=Prior(n_alpha=5), calibrate=False)
    np.testing.assert_allclose(discrete.predict_proba(hidden), complete.predict_proba(hidden), rtol=1e-9)


def test_medians_and_cuts_are_of_what_was_observed() -> None:
    X = np.array([[1.0, 4, np.nan], [2, np.nan, np.nan], [9, 6, np.nan], [np.nan, 4, np.nan]])
    model = tb.fit_selection_corrected(X, [0, 1, 1, 0], 1, prior=Prior(n_alpha=3), calibrate=False)
    assert model.cuts is not None
    assert model.cuts.tolist() == [2.0, 5.0, 0.5]


def test_a_feature_that_one_class_lacks_is_weak_whatever_alpha_is() -> None:
    X, y = brute_force.drawn_cases(6, (8, 9), 5)
    more = np.column_stack([X, np.where(y == 0, np.nan, X[:, 0])])
    with_it, without = (
        tb.fit_selection_corrected(table, y, 2, prior=Prior(n_alpha=4), calibrate=False) for table in (more, X)
    )
    np.testing.assert_allclose(with_it.log_adjustment, without.log_adjustment, rtol=1e-10)


def test_classes_may_be_python_integers() -> None:
    X, y = np.arange(18).reshape(6, 3) % 5, [0, 1, 2, 1, 2, 0]
    model = tb.fit_selection_corrected(X, np.array(y, dtype=object), 3, prior=Prior(n_alpha=4), calibrate=False)
    np.testing.assert_array_equal(
        model.predict_proba(X),
        tb.fit_selection_corrected(X, y, 3, prior=Prior(n_alpha=4), calibrate=False).predict_proba(X),
    )
