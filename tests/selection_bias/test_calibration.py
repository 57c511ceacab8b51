"""Predictions that hold although features depend on each other: one scale of the log odds, and offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer

import trimbench as tb
from trimbench.estimators import SelectionCorrectedNB
from trimbench.selection_bias.calibration import Recalibration
from trimbench.selection_bias.features import known_cuts


def held_out(seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return evidence that is repeated about three times over, log shares and classes."""
    rng = np.random.default_rng(seed)
    classes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 50)]
    added = 3 * (rng.normal(size=(len(classes), n_classes)) + np.eye(n_classes)[classes])
    return added, np.log(rng.dirichlet(np.full(n_classes, 5.0))), classes


def penalised(parameters: np.ndarray, added: np.ndarray, log_shares: np.ndarray, classes: np.ndarray) -> float:
    """The objective, written out case by case; offsets are those of all classes but the last, which balances them."""
    log_scale, offsets = parameters[0], np.r_[parameters[1:], -parameters[1:].sum()]
    total, n_classes = 0.0, len(log_shares)
    for row, own in zip(added, classes.tolist(), strict=True):
        n = int((classes == own).sum())
        logs = log_softmax(log_shares + offsets + np.exp(log_scale) * row)
        for y in range(n_classes):
            total -= ((n + 1) / (n + 2) if y == own else 1 / (n + 2) / (n_classes - 1)) * logs[y]
    return float(total + log_scale**2 / 2 + (offsets**2).sum())


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 3))
@settings(max_examples=10)
def test_it_is_the_most_likely_one(seed: int, n_classes: int) -> None:
    added, log_shares, classes = held_out(seed, n_classes)
    found = Recalibration.of(added, log_shares, classes)
    start = np.r_[np.log(found.scale), found.offsets[:-1]]
    best = minimize(penalised, np.zeros(n_classes), (added, log_shares, classes), method="Nelder-Mead", tol=1e-10)
    assert penalised(start, added, log_shares, classes) <= best.fun + 1e-7
    np.testing.assert_allclose(start, best.x, atol=1e-3)
    assert found.offsets.sum() == pytest.approx(0, abs=1e-12)
    rows = np.arange(len(classes))
    gain = [
        log_softmax(scores, axis=1)[rows, classes].sum()
        for scores in (found.scores(log_shares + added, log_shares), log_shares + added)
    ]
    assert found.gain == pytest.approx(gain[0] - gain[1])


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_numbers_of_classes_and_what_all_classes_share_do_not_matter(seed: int) -> None:
    added, log_shares, classes = held_out(seed, 3)
    found, order = Recalibration.of(added, log_shares, classes), np.array([2, 0, 1])
    renamed = Recalibration.of(added[:, order], log_shares[order], np.argsort(order)[classes])
    shifted = Recalibration.of(added + np.arange(len(classes))[:, None], log_shares, classes)
    for other, offsets in ((renamed, found.offsets[order]), (shifted, found.offsets)):
        assert other.scale == pytest.approx(found.scale, rel=1e-4)
        np.testing.assert_allclose(other.offsets, offsets, atol=1e-4)


def dependent(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return 80 training and 489 test cases of breast cancer, with 300 columns of noise."""
    cells, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X = np.hstack([cells, rng.normal(size=(len(y), 300))])[order]
    return X[:80], y[order][:80], X[80:], y[order][80:]


def test_dependent_features_are_calibrated_and_independent_ones_are_left() -> None:
    for seed in range(2):
        X, y, X_new, y_new = dependent(seed)
        loss, gap = {}, {}
        for calibrate in ("auto", False):
            model = tb.fit_selection_corrected(X, y, 10, calibrate=calibrate)  # type: ignore[arg-type]
            p = model.predict_proba(X_new)
            loss[calibrate] = -np.log(p[np.arange(len(p)), y_new]).mean()
            gap[calibrate] = abs(model.expected_error(X_new) - (model.predict(X_new) != y_new).mean())
            assert (model.calibration is None) == (calibrate is False)
        assert loss["auto"] < loss[False] / 1.5
        assert gap["auto"] < gap[False] / 1.5
    rng = np.random.default_rng(0)
    phi, y = rng.beta(10, 10, size=(2, 300)), np.repeat([0, 1], 40)
    model = tb.fit_selection_corrected(rng.random((80, 300)) < phi[y], y, 10)
    assert model.calibration is None


@pytest.mark.parametrize("how", [{}, {"features": "gaussian"}, {"correct": False}, {"selection_rows": np.arange(60)}])
def test_it_is_learned_from_cases_that_no_fold_has_seen(how: dict[str, Any]) -> None:
    X, y, X_new, _ = dependent(3)
    model = tb.fit_selection_corrected(X, y, 5, calibrate=True, **how)
    assert model.calibration is not None
    plain = tb.fit_selection_corrected(X, y, 5, calibrate=False, **how)
    assert plain.selected.tolist() == model.selected.tolist()
    if "correct" not in how and "selection_rows" not in how:
        found = tb.cross_validate_selection(X, y, 5, n_folds=10, **how)
        counts = np.array([[(y[found.folds != fold] == c).sum() + 1 for c in (0, 1)] for fold in found.folds])
        added = np.log(found.corrected) - np.log(counts / counts.sum(axis=1, keepdims=True))
        shares = np.log((np.bincount(y) + 1) / (len(y) + 2))
        again = Recalibration.of(added, shares, y)
        assert model.calibration.scale == pytest.approx(again.scale, rel=1e-5)
    scores = model.calibration.scores(plain.log_probabilities(X_new), plain.log_shares)
    np.testing.assert_allclose(model.log_probabilities(X_new), log_softmax(scores, axis=1), rtol=1e-9, atol=1e-12)
    assert model.uncorrected().calibration is None


def test_what_is_known_of_all_cases_is_decided_once() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, size=(40, 30)).astype(float), np.repeat([0, 1], 20)
    X[0, :15] = 0.5  # without this case, these columns look binary
    model = tb.fit_selection_corrected(X, y, 4, calibrate=True)
    same = tb.fit_selection_corrected(X, y, 4, cuts=known_cuts(X), calibrate=True)
    assert model.calibration is not None
    assert same.calibration is not None
    assert same.calibration.scale == model.calibration.scale


def test_small_classes_and_mixtures_are_not_calibrated() -> None:
    X, y = np.random.default_rng(5).integers(0, 2, size=(12, 6)), np.repeat([0, 1], [4, 8])
    assert tb.fit_selection_corrected(X, y, 2).calibration is None
    with pytest.raises(
        ValueError, match="calibrate must be False or 'auto' for classes of fewer than 5 cases, got one"
    ):
        tb.fit_selection_corrected(X, y, 2, calibrate=True)
    with pytest.raises(ValueError, match="calibrate must be False or 'auto' for mixtures"):
        tb.fit_selection_corrected(X, y, 2, calibrate=True, features="mixture")
    with pytest.raises(ValueError, match="calibrate must be True, False or 'auto', got 'yes'"):
        tb.fit_selection_corrected(X, y, 2, calibrate="yes")  # type: ignore[call-overload]


def test_the_estimator_passes_it_on() -> None:
    X, y, X_new, _ = dependent(6)
    for calibrate in (True, False, "auto"):
        model = tb.fit_selection_corrected(X, y, 10, calibrate=calibrate)  # type: ignore[arg-type]
        found = SelectionCorrectedNB(k=10, calibrate=calibrate).fit(X, y)  # type: ignore[arg-type]
        np.testing.assert_allclose(found.predict_proba(X_new), model.predict_proba(X_new), rtol=1e-12)
