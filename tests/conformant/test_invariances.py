"""Changes of a problem that must not change a prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformant.brute_force import fake_classifier
from tests.conformant.problems import Array, Case, cases, hide, learned

SEEDS = st.integers(0, 2**32)


def rows_of(case: Case, rng: np.random.Generator) -> Array:
    """Return the training rows with about half of their features missing, and one without any."""
    return np.vstack([hide(case.X, case.categorical, rng), np.full((1, case.X.shape[1]), np.nan)])


def changed(case: Case, weights: Array, biases: Array, **others: Any) -> Case:
    return replace(case, classifier=fake_classifier(weights, biases), weights=weights, biases=biases, **others)


def check(case: Case, other: Case, rows: Array, other_rows: Array, classes: Any = slice(None)) -> None:
    """Compare the models of two cases, each on its own form of the rows."""
    one, two = learned(case), learned(other)
    # Newton stops at a residual of 1e-10: solutions of problems that differ by rounding differ by more.
    tolerance = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(two.predict_proba(other_rows), one.predict_proba(rows)[:, classes], **tolerance)
    np.testing.assert_allclose(two.log_likelihood(other_rows), one.log_likelihood(rows), **tolerance)


@given(case=cases(), seed=SEEDS)
@settings(max_examples=10)
def test_orders_of_rows_columns_and_classes_do_not_matter(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, classes = (rng.permutation(n) for n in case.weights.shape)
    place = np.argsort(columns)
    other = changed(
        case,
        case.weights[np.ix_(columns, classes)],
        case.biases[classes],
        X=rng.permutation(case.X)[:, columns],
        categorical=[place[own].tolist() for own in case.categorical],
    )
    rows = rows_of(case, rng)
    check(case, other, rows, rows[:, columns], classes)


@given(case=cases(), seed=SEEDS)
@settings(max_examples=10)
def test_every_row_three_times_is_the_same_problem(case: Case, seed: int) -> None:
    rows = rows_of(case, np.random.default_rng(seed))
    check(case, replace(case, X=np.repeat(case.X, 3, axis=0), smoothing=3 * case.smoothing), rows, rows)


@given(case=cases(), seed=SEEDS)
@settings(max_examples=10)
def test_what_is_added_to_the_scores_of_all_classes_does_not_matter(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rows_of(case, rng)
    other = changed(case, case.weights + rng.normal(size=(len(case.weights), 1)), case.biases + rng.normal())
    check(case, other, rows, rows)


@given(case=cases(groups=False), seed=SEEDS)
@settings(max_examples=10)
def test_a_binary_feature_may_be_coded_by_its_opposite(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flipped = rng.random(len(case.weights)) < 0.5
    weights = case.weights * np.where(flipped, -1.0, 1.0)[:, None]
    biases = case.biases + case.weights[flipped].sum(axis=0)
    rows = rows_of(case, rng)
    other = changed(case, weights, biases, X=np.where(flipped, 1 - case.X, case.X))
    check(case, other, rows, np.where(flipped, 1 - rows, rows))
