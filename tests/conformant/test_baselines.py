"""Additive predictors, imputers and measures against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.naive_bayes import BernoulliNB

import trimbench as tb
from trimbench.conformant.conform import linear_scores
from trimbench.papers.conformant import imputers
from trimbench.papers.conformant.imputers import IMPUTERS, fit_imputer, fit_mixture
from trimbench.papers.conformant.mask_sweep import (
    FILLS,
    AdditivePredictor,
    fill_values,
    filling_predictor,
    naive_bayes_predictor,
    predict_all,
)
from trimbench.papers.measures import accuracy, cross_entropy, weighted_f1

RNG = np.random.default_rng(0)
ROWS = np.hstack([np.eye(3, dtype=np.uint8)[RNG.integers(0, 3, 200)], (RNG.random((200, 5)) < 0.3).astype(np.uint8)])
COLUMNS = ((0, 1, 2), (3,), (4,), (5,), (6,), (7,))
SPREAD = np.array([0, 0, 0, 1, 2, 3, 4, 5])
LABELS = (ROWS[:, 0] + 2 * ROWS[:, 3] + (RNG.random(200) < 0.2)).astype(int) % 3
CLASSIFIER = LogisticRegression().fit(ROWS, LABELS)
MISSING = RNG.random((200, 6)) < 0.4
GAPS = np.where(MISSING[:, SPREAD], np.nan, ROWS)
FEW, FEW_GAPS = ROWS[:60], GAPS[:60]


def test_one_product_for_all_predictors() -> None:
    weights, biases, _ = linear_scores(CLASSIFIER)
    fills = [fill_values(ROWS, fill) for fill in FILLS]
    model = tb.conform(CLASSIFIER, ROWS, categorical=[[0, 1, 2]], n_components=1)
    predictors = [filling_predictor(weights, biases, COLUMNS, fill) for fill in fills]
    predictors.append(naive_bayes_predictor(ROWS, LABELS, 3, COLUMNS))
    found = predict_all(predictors, ROWS, MISSING, SPREAD)
    for fill, logs in zip(fills, found, strict=False):
        expected = CLASSIFIER.predict_log_proba(np.where(np.isnan(GAPS), fill, GAPS))
        np.testing.assert_allclose(logs, expected, atol=1e-12)
    whole = predict_all(predictors, ROWS, np.zeros_like(MISSING), SPREAD)
    np.testing.assert_allclose(whole[0], CLASSIFIER.predict_log_proba(ROWS), atol=1e-12)
    np.testing.assert_allclose(whole[-1], BernoulliNB(alpha=1.0).fit(ROWS, LABELS).predict_log_proba(ROWS), atol=0.02)
    assert model.layout.features == COLUMNS
    conformant = AdditivePredictor(model.weights, model.biases, model.components[0].missing_scores)
    (ours,) = predict_all([conformant], ROWS, MISSING, SPREAD)
    np.testing.assert_allclose(ours, model.predict_log_proba(GAPS), atol=1e-12)


def test_naive_bayes_leaves_missing_columns_out() -> None:
    predictor = naive_bayes_predictor(ROWS, LABELS, 3, COLUMNS, smoothing=1.0)
    (logs,) = predict_all([predictor], ROWS, MISSING, SPREAD)
    counts = np.bincount(LABELS)
    for row, gaps in enumerate(GAPS[:20]):
        scores = np.log((counts + 1) / (len(ROWS) + 3))
        for k in range(3):
            theta = (ROWS[k == LABELS].sum(axis=0) + 1) / (counts[k] + 2)
            known = ~np.isnan(gaps)
            scores[k] += np.log(np.where(gaps[known] == 1, theta[known], 1 - theta[known])).sum()
        expected = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
        np.testing.assert_allclose(logs[row], expected, atol=1e-10)
    unsmoothed = naive_bayes_predictor(ROWS, LABELS, 3, COLUMNS, smoothing=0)
    assert np.isfinite(unsmoothed.weights).all()


REAL = np.column_stack([RNG.normal(30, 5, 60), RNG.exponential(9, 60), np.arange(60) % 2])
REAL_GAPS = np.where(RNG.random(REAL.shape) < 0.3, np.nan, REAL)


@pytest.mark.parametrize(
    ("name", "complete", "gaps", "settings"),
    [
        *(pytest.param(name, FEW, FEW_GAPS, {"n_nearest_features": 4}, id=f"{name}, binary") for name in IMPUTERS),
        *(pytest.param(name, REAL, REAL_GAPS, {}, id=f"{name}, real") for name in IMPUTERS if name != "em"),
    ],
)
def test_imputers_fill_what_is_missing_and_nothing_else(
    name: Any, complete: np.ndarray, gaps: np.ndarray, settings: dict[str, int]
) -> None:
    for rows in (complete, gaps):
        filled = fit_imputer(name, rows, seed=3, **settings)(gaps)  # type: ignore[arg-type]
        assert np.isfinite(filled).all()
        np.testing.assert_array_equal(filled[~np.isnan(gaps)], gaps[~np.isnan(gaps)])
        if name in FILLS:
            values = getattr(np, f"nan{name}")(rows, axis=0)
            np.testing.assert_allclose(filled[np.isnan(gaps)], np.broadcast_to(values, gaps.shape)[np.isnan(gaps)])
        if complete is REAL and name not in ("normal_draw", "mice_drawn"):
            within = (filled >= complete.min(axis=0)) & (filled <= complete.max(axis=0))
            assert within[:, -1].all()
            assert within.all() or name == "mice"  # whose lines go on beyond the data
    np.testing.assert_array_equal(filled, fit_imputer(name, gaps, seed=3, **settings)(gaps))  # type: ignore[arg-type]
    # A column without any value is filled, too.
    empty = gaps.copy()
    empty[:, 1] = np.nan
    impute = fit_imputer(name, empty, **settings)  # type: ignore[arg-type]
    assert np.isfinite(impute(empty)).all()
    np.testing.assert_array_equal(impute(np.ones((1, gaps.shape[1]))), 1.0)  # observed after all


def test_nearest_neighbours_of_complete_rows_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(40, 30))
    few = (rng.random((40, 30)) < 0.3).astype(np.float64)  # many rows are equally near
    for table in (numbers, few):
        rows = np.vstack([table[:5], rng.normal(size=(20, 30)), np.full((1, 30), np.nan)])
        rows[2:, :] = np.where(rng.random((len(rows) - 2, 30)) < 0.5, np.nan, rows[2:, :])
        for n_neighbours in (1, 10, 40, 99):
            filled = fit_imputer("knn", table, n_neighbours=n_neighbours)(rows)
            theirs = KNNImputer(n_neighbors=min(n_neighbours, 40)).fit(table).transform(rows)
            np.testing.assert_allclose(filled, theirs, rtol=1e-12, atol=1e-12)


def test_imputers_that_look_at_other_columns_do_better() -> None:
    rng = np.random.default_rng(5)
    base = rng.random((800, 1)) < 0.5
    rows = (rng.random((800, 12)) < np.where(base, 0.9, 0.1)).astype(np.uint8)
    gaps = np.where(rng.random(rows.shape) < 0.3, np.nan, rows)
    error = {}
    for name in ("mean", "em", "mice", "mice_drawn", "knn", "normal_draw"):
        filled = fit_imputer(name, rows, n_components=2)(gaps)
        error[name] = float(np.abs(filled - rows)[np.isnan(gaps)].mean())
    assert max(error["em"], error["mice"], error["knn"]) < 0.7 * error["mean"]
    assert error["normal_draw"] > error["mean"]


def test_mixtures_of_binary_columns() -> None:
    rows = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0]])
    c = imputers._PSEUDO_COUNT
    frequencies = [(3 + c) / (4 + 2 * c), (1 + c) / (3 + 2 * c)]
    np.testing.assert_allclose(fit_mixture(rows, 1).theta[:, 0], frequencies)
    for n in (1, 4):
        assert len(fit_mixture(ROWS, 3, max_iterations=n, tolerance=-np.inf).log_likelihoods) == n


def test_mixture_by_definition() -> None:
    mixture = fit_mixture(ROWS, 2, seed=1)
    weights = np.exp(mixture.log_weights)
    for gaps in GAPS[:10]:
        known = ~np.isnan(gaps)
        joint = weights * np.prod(
            np.where(gaps[known][:, None] == 1, mixture.theta[known], 1 - mixture.theta[known]), axis=0
        )
        np.testing.assert_allclose(mixture.responsibilities(gaps[None])[0][0], joint / joint.sum(), atol=1e-12)
        np.testing.assert_allclose(mixture.fill(gaps[None])[0][~known], mixture.theta[~known] @ joint / joint.sum())


def test_medians_of_counts() -> None:
    counts = np.array([[0, 5], [0, 1], [1, 3]], dtype=np.uint8)
    np.testing.assert_array_equal(fill_values(counts, "median"), [0, 3])
    np.testing.assert_array_equal(fill_values(np.array([[True], [False]]), "median"), [0.5])


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(max_examples=30)
def test_measures(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, n_classes, 40), rng.integers(0, n_classes, 40)
    expected = f1_score(truth, predicted, average="weighted", zero_division=0)
    assert weighted_f1(truth, predicted, n_classes) == pytest.approx(expected, abs=1e-12)
    assert accuracy(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))
    p, q = rng.dirichlet(np.ones(n_classes), 10), rng.dirichlet(np.ones(n_classes), 10)
    twin = -np.mean([sum(a * np.log(b + 1e-14) for a, b in zip(x, y, strict=True)) for x, y in zip(p, q, strict=True)])
    assert cross_entropy(p, np.log(q)) == pytest.approx(twin, abs=1e-12)
