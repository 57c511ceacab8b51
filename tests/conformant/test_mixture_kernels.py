"""Compiled sums of mixtures against products and sums of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import trimbench as tb
from tests.conformant.problems import Case, cases, hide
from trimbench.conformant.kernels import mixed_scores, packed_masks, selected_sums


@pytest.mark.parametrize(
    ("n_masks", "n_features", "n_columns"), [(0, 3, 2), (5, 1, 1), (7, 24, 40), (30, 25, 41), (300, 50, 97)]
)
def test_selected_sums_are_a_product_of_matrices(n_masks: int, n_features: int, n_columns: int) -> None:
    rng = np.random.default_rng(n_masks)
    masks, table = rng.random((n_masks, n_features)) < 0.5, rng.normal(0, 3, (n_features, n_columns))
    parts = selected_sums(packed_masks(masks), table)
    np.testing.assert_allclose(np.hstack(list(parts))[:, :n_columns], masks @ table, rtol=0, atol=1e-12)
    assert (np.hstack(list(parts))[:, n_columns:] == 0).all()


@pytest.mark.parametrize(("n_components", "n_classes"), [(1, 2), (3, 5), (20, 3), (17, 10)])
def test_mixed_scores_are_a_sum_over_components(n_components: int, n_classes: int) -> None:
    rng = np.random.default_rng(n_components)
    scores, levels = rng.normal(0, 20, (50, n_components, n_classes)), rng.normal(0, 20, (50, n_components))
    flat = np.zeros((50, -(-n_components * n_classes // 40) * 40))
    flat[:, : n_components * n_classes] = scores.reshape(50, -1)
    parts = np.ascontiguousarray(flat.reshape(50, -1, 40).transpose(1, 0, 2))
    expected = logsumexp(scores + levels[:, :, None], axis=1)
    np.testing.assert_allclose(mixed_scores(parts, levels, n_classes), expected, rtol=1e-14, atol=1e-13)


@given(case=cases(max_binary=4), n_components=st.integers(2, 4), seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_many_rows_are_predicted_like_few(case: Case, n_components: int, seed: int) -> None:
    mixture = tb.conform(
        case.classifier, case.X, smoothing=case.smoothing, categorical=case.categorical, n_components=n_components
    )
    rows = np.vstack([hide(case.X, case.categorical, np.random.default_rng(seed)), case.X])
    few = mixture.decision_scores(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimbench.conformant.distribution._MANY", 0)
        many = mixture.decision_scores(rows)
        with pytest.raises(ValueError, match=r"X\[1, 0\] must be"):
            mixture.decision_scores([case.X[0], np.full(len(case.X[0]), 7.0)])
    np.testing.assert_allclose(many, few, rtol=1e-13, atol=1e-12)
    classifier = case.classifier.predict_proba(case.X)
    scores = many[len(case.X) :]
    np.testing.assert_allclose(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)), classifier, atol=1e-13)
