"""Additive predictors, imputers and measures against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.naive_bayes import BernoulliNB

import trimbench as tb
from trimbench.conformant.conform import linear_scores
from trimbench.papers.conformant.imputers import (
    FILLS,
    IMPUTERS,
    AdditivePredictor,
    fill_values,
    filling_predictor,
    fit_imputer,
    fit_mixture,
    naive_bayes_predictor,
    predict_all,
)
from trimbench.papers.measures import accuracy, cross_entropy, weighted_f1

RNG = np.random.default_rng(0)
ROWS = np.hstack([np.eye(3, dtype=np.uint8)[RNG.integers(0, 3, 300)], (RNG.random((300, 5)) < 0.3).astype(np.uint8)])
COLUMNS = ((0, 1, 2), (3,), (4,), (5,), (6,), (7,))
SPREAD = np.array([0, 0, 0, 1, 2, 3, 4, 5])
LABELS = (ROWS[:, 0] + 2 * ROWS[:, 3] + (RNG.random(300) < 0.2)).astype(int) % 3
CLASSIFIER = LogisticRegression().fit(ROWS, LABELS)
MISSING = RNG.random((300, 6)) < 0.4
GAPS = np.where(MISSING[:, SPREAD], np.nan, ROWS)


def test_one_product_for_all_predictors() -> None:
    weights, biases, _ = linear_scores(CLASSIFIER)
    fills = [fill_values(ROWS, fill) for fill in FILLS]
    model = tb.conform(CLASSIFIER, ROWS, categorical=[[0, 1, 2]])
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


@pytest.mark.parametrize("name", IMPUTERS)
@pytest.mark.parametrize("on", ["train", "gaps"])
def test_imputers_fill_what_is_missing_and_nothing_else(name: Any, on: str) -> None:
    rows = ROWS if on == "train" else GAPS
    filled = fit_imputer(name, rows, seed=3, n_nearest_features=4)(GAPS)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~np.isnan(GAPS)], GAPS[~np.isnan(GAPS)])
    np.testing.assert_array_equal(filled, fit_imputer(name, rows, seed=3, n_nearest_features=4)(GAPS))
    if name in FILLS and on == "train":
        statistic = getattr(np, name)
        values = statistic(ROWS, axis=0)
        np.testing.assert_allclose(filled[np.isnan(GAPS)], np.broadcast_to(values, GAPS.shape)[np.isnan(GAPS)])


def test_a_column_without_any_value_is_filled() -> None:
    gaps = GAPS.copy()
    gaps[:, 4] = np.nan
    for name in IMPUTERS:
        impute = fit_imputer(name, gaps, n_nearest_features=3)
        assert np.isfinite(impute(gaps)).all(), name
        np.testing.assert_array_equal(impute(np.ones((1, gaps.shape[1]))), 1.0, err_msg=name)  # observed after all


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


REAL = np.column_stack([RNG.normal(30, 5, 60), RNG.exponential(9, 60), np.arange(60) % 2])


@pytest.mark.parametrize("name", [name for name in IMPUTERS if name != "em"])
def test_imputers_of_real_valued_columns(name: Any) -> None:
    gaps = np.where(RNG.random(REAL.shape) < 0.3, np.nan, REAL)
    for rows in (REAL, gaps):
        filled = fit_imputer(name, rows)(gaps)
        np.testing.assert_array_equal(filled[~np.isnan(gaps)], gaps[~np.isnan(gaps)])
        if name in FILLS:
            values = getattr(np, f"nan{name}")(rows, axis=0)
            np.testing.assert_allclose(filled[np.isnan(gaps)], np.broadcast_to(values, gaps.shape)[np.isnan(gaps)])
        if name not in ("normal_draw", "mice_drawn"):
            missing = filled[np.isnan(gaps[:, 0]), 0]
            assert ((missing >= REAL[:, 0].min()) & (missing <= REAL[:, 0].max())).all()
            assert ((filled[:, 2] >= 0) & (filled[:, 2] <= 1)).all()


def test_medians_of_counts() -> None:
    counts = np.array([[0, 5], [0, 1], [1, 3]], dtype=np.uint8)
    np.testing.assert_array_equal(fill_values(counts, "median"), [0, 3])
    np.testing.assert_array_equal(fill_values(np.array([[True], [False]]), "median"), [0.5])


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(max_examples=60)
def test_measures(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, n_classes, 40), rng.integers(0, n_classes, 40)
    expected = f1_score(truth, predicted, average="weighted", zero_division=0)
    assert weighted_f1(truth, predicted, n_classes) == pytest.approx(expected, abs=1e-12)
    assert accuracy(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))
    p, q = rng.dirichlet(np.ones(n_classes), 10), rng.dirichlet(np.ones(n_classes), 10)
    twin = -np.mean([sum(a * np.log(b + 1e-14) for a, b in zip(x, y, strict=True)) for x, y in zip(p, q, strict=True)])
    assert cross_entropy(p, np.log(q)) == pytest.approx(twin, abs=1e-12)
