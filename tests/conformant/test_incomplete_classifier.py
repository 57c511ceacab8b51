"""Classifiers from incomplete rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from trimbench.conformant.conform import IncompleteRows, fit_incomplete, linear_scores
from trimbench.conformant.layout import FeatureLayout


def problem(seed: int, n_classes: int, share: float, n_rows: int = 80) -> IncompleteRows:
    """One categorical, one real-valued and two binary features."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    groups = np.eye(3)[np.concatenate([np.arange(3), rng.integers(0, 3, n_rows - 3)])]
    binary = rng.random((n_rows, 2)) < 0.2 + 0.5 * (labels == 1)[:, None]
    X = np.column_stack([groups, rng.normal(labels, 1.0), binary])
    gone = rng.random((n_rows, 4)) < share
    gone[:4] = False
    X[gone[:, [0, 0, 0, 1, 2, 3]]] = np.nan
    return IncompleteRows(X, labels, FeatureLayout.of(6, [[0, 1, 2]], [3]), 1.0, 1.0)


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 3), n_components=st.integers(1, 3), weighted=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_objective_by_its_definition_and_its_derivatives_by_differences(
    seed: int, n_classes: int, n_components: int, weighted: bool
) -> None:
    rows = problem(seed, n_classes, 0.3)
    rng = np.random.default_rng(seed)
    of_rows = rng.uniform(0, 3, len(rows.labels)) if weighted else np.ones(len(rows.labels))
    rows = replace(rows, weights=of_rows if weighted else None)
    weights, biases = rng.normal(0, 0.5, (6, n_classes)), rng.normal(0, 0.5, n_classes)
    if n_classes == 2:
        weights[:, 0], biases[0] = 0, 0
    mixture = rows.conformant(weights, biases, np.arange(n_classes), n_components, 0)
    value, by_weights, by_biases = rows.objective(mixture)
    log_proba = mixture.predict_log_proba(rows.table)[np.arange(len(rows.labels)), rows.labels]
    assert value == pytest.approx(of_rows @ log_proba - 0.5 * (weights**2).sum(), rel=1e-10)

    def moved(weights: np.ndarray, biases: np.ndarray) -> float:
        return rows.objective(rows.with_classifier(mixture, weights, biases))[0]

    step = 1e-5
    direction, of_biases = rng.normal(size=weights.shape), rng.normal(size=biases.shape)
    ahead = moved(weights + step * direction, biases + step * of_biases)
    behind = moved(weights - step * direction, biases - step * of_biases)
    slope = float((by_weights * direction).sum() + by_biases @ of_biases)
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_complete_rows_give_the_classifier_of_scikit_learn(n_classes: int) -> None:
    rows = problem(1, n_classes, 0.0)
    reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(rows.table, rows.labels)
    start = LogisticRegression(C=0.01).fit(rows.table, rows.labels)
    weights, biases = rows.improve(rows.conformant(*linear_scores(start), 2, 0))
    np.testing.assert_allclose(rows.table @ weights, rows.table @ linear_scores(reference)[0], atol=1e-3)
    np.testing.assert_allclose(
        biases - biases[0], linear_scores(reference)[1] - linear_scores(reference)[1][0], atol=1e-3
    )


@pytest.mark.parametrize("n_components", [1, 3, "auto"])
def test_the_classes_become_more_likely_than_with_means_in_the_gaps(n_components: int | str) -> None:
    rows = problem(2, 2, 0.4, n_rows=300)
    filled = np.where(np.isnan(rows.table), np.nanmean(rows.table, axis=0), rows.table)
    start = LogisticRegression().fit(filled, rows.labels)
    before = rows.objective(rows.conformant(*linear_scores(start), n_components, 0))[0]  # type: ignore[arg-type]
    found = fit_incomplete(start, rows, n_components)  # type: ignore[arg-type]
    assert rows.objective(found)[0] >= before
