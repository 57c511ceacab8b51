"""Masks: exact numbers, uniform choice, rates and blocks; splits of rows, and simulators."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from trimbench.reproduction.data.masks import DEPENDENT, Mechanism, Missingness, split_rows
from trimbench.reproduction.data.sources import simulate_naive_bayes

NAMES = tuple(f"x{i}" for i in range(12))


@given(st.integers(1, 30), st.floats(0, 1), st.sampled_from(["down", "nearest"]), st.integers(0, 2**32))
def test_each_row_loses_exactly_as_many(n: int, fraction: float, rounding: Any, seed: int) -> None:
    missingness = Missingness(rounding=rounding)
    mask = missingness.draw(20, NAMES[:1] * n, fraction, np.random.default_rng(seed))
    expected = missingness.n_missing(n, fraction)
    assert (mask.sum(axis=1) == expected).all()
    assert abs(expected - n * fraction) < 1
    if rounding == "nearest":
        assert abs(expected - n * fraction) <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("rounding", "n", "fractions", "counts"),
    [
        ("down", 10, [0.7, 0.8], [7, 8]),
        ("down", 100, [0.29], [29]),
        ("down", 3, [0.3333333333, 0.333333333], [1, 0]),
        ("down", 784, [1.0], [784]),
        ("nearest", 5, [0.1, 0.3, 0.5, 0.7], [1, 2, 3, 4]),  # halves go up
        ("nearest", 3, [0.1, 0.5], [0, 2]),
        ("fifths", 13, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0, 2, 4, 6, 8, 10]),
        ("fifths", 60, [0.2, 0.4, 0.6, 0.8], [12, 24, 36, 48]),
    ],
)
def test_rounding_errors_do_not_count(rounding: Any, n: int, fractions: list[float], counts: list[int]) -> None:
    assert [Missingness(rounding=rounding).n_missing(n, fraction) for fraction in fractions] == counts


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.5, 0.99])
def test_fifths_are_fifths(fraction: float) -> None:
    with pytest.raises(
        ValueError, match=rf"missing must be multiples of 0\.2 with rounding='fifths', got {fraction}; use"
    ):
        Missingness(rounding="fifths").n_missing(13, fraction)
    # Rates are no numbers of features.
    mask = Missingness("rates", rounding="fifths").draw(5, NAMES, fraction, np.random.default_rng(0))
    assert mask.shape == (5, 12)


def test_every_feature_is_equally_likely_and_rows_differ() -> None:
    mask = Missingness().draw(20_000, NAMES, 0.25, np.random.default_rng(1))
    keys = np.random.default_rng(1).random(mask.shape, dtype=np.float32)
    np.testing.assert_array_equal(mask, keys.argsort(axis=1).argsort(axis=1) < 3)


def test_rates_of_single_features() -> None:
    missingness = Missingness("rates", rates={"x0": 0.9, "x1": 0.0})
    mask = missingness.draw(20_000, NAMES, 0.3, np.random.default_rng(2))
    np.testing.assert_allclose(mask.mean(axis=0), [0.9, 0.0, *[0.3] * 10], atol=0.02)


def test_blocks_are_runs() -> None:
    mask = Missingness("block").draw(500, NAMES, 0.5, np.random.default_rng(3))
    assert (mask.sum(axis=1) == 6).all()
    assert (np.abs(np.diff(mask.astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert len(np.unique(mask, axis=0)) == 7, "every place occurs"


def test_blocks_of_an_image_are_rectangles() -> None:
    names = [str(i) for i in range(64)]
    for fraction in (0.0, 0.02, 0.3, 0.9, 1.0):
        mask = Missingness("block", image=[8, 8]).draw(50, names, fraction, np.random.default_rng(4)).reshape(50, 8, 8)
        assert (mask == mask.any(axis=2)[:, :, None] & mask.any(axis=1)[:, None, :]).all()
        assert abs(mask[0].sum() / 64 - fraction) < 0.06


COLUMNS = ((0, 1, 2), (3,), (4, 5))


@pytest.mark.parametrize(
    ("how", "fraction", "message"),
    [
        ({"rates": {"a": 1.5}}, 0.3, "rates must be between 0 and 1, got 1.5 for 'a'"),
        (
            {"mechanism": "rates", "rates": {"age": 0.5}},
            *(0.3, r"rates must name features, got \['age'\]; the features are \['a'"),
        ),
        ({"image": [28]}, 0.3, r"image must be height and width, got \[28\]"),
        ({"mechanism": "block", "image": [2, 2]}, 0.3, "image must have as many pixels as there are features"),
        ({}, 20, r"missing must be fractions between 0 and 1, got 20; 20 % is 0\.2"),
        ({"mechanism": "depends_on_value"}, 0.5, "values must be one number for each of the 2 rows .* got none"),
        ({"displaced": {"d": 0}}, 0.5, "displaced must name features, got 'd'; they are"),
        (
            {"displaced": {"a": 4}},
            *(0.5, "displaced must be columns from 0 to 3, got 4 for 'a', which has 3 of the 6 columns"),
        ),
        ({"displaced": {"a": -1}}, 0.5, "displaced must be columns from 0 to 3, got -1"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], fraction: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Missingness(**how).draw_columns(2, ["a", "b", "c"], COLUMNS, fraction, np.random.default_rng(0))


def test_columns_go_missing_with_their_feature() -> None:
    for how in (Missingness(), Missingness(displaced={"a": 0, "c": 4})):
        mask = how.draw_columns(50, ["a", "b", "c"], COLUMNS, 1 / 3, np.random.default_rng(1))
        by_feature = how.draw(50, ["a", "b", "c"], 1 / 3, np.random.default_rng(1))
        assert (mask == by_feature[:, [0, 0, 0, 1, 2, 2]]).all()


def test_single_columns_go_missing() -> None:
    how = Missingness(unit="column")
    assert how.by_column
    mask = how.draw_columns(50, ["a", "b", "c"], COLUMNS, 0.5, np.random.default_rng(1))
    assert mask.shape == (50, 6)
    assert (mask.sum(axis=1) == 3).all()
    assert len(np.unique(mask, axis=0)) > 10


def test_displaced_features_hide_other_columns_than_their_own() -> None:
    how = Missingness(displaced={"a": 2, "c": 0})
    assert how.by_column
    mask = how.draw_columns(60, ["a", "b", "c"], COLUMNS, 1 / 3, np.random.default_rng(2))
    patterns = {tuple(np.flatnonzero(row).tolist()) for row in mask}
    assert patterns == {(2, 3, 4), (3,), (0, 1)}
    both = how.draw_columns(60, ["a", "b", "c"], COLUMNS, 2 / 3, np.random.default_rng(2))
    assert {tuple(np.flatnonzero(row).tolist()) for row in both} == {(2, 3, 4), (0, 1, 2, 3, 4), (0, 1, 3)}


@pytest.mark.parametrize("mechanism", DEPENDENT)
@given(st.integers(2, 30), st.floats(0, 0.9), st.integers(0, 2**32))
def test_dependent_masks_have_the_share_that_is_asked_for(
    mechanism: Mechanism, n: int, fraction: float, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, 3, size=(20, n))
    how = Missingness(mechanism)
    mask, again, other = (
        how.draw(20, NAMES[:1] * n, fraction, np.random.default_rng(draw), values) for draw in (seed, seed, seed + 1)
    )
    assert (mask.sum(axis=1) == how.n_missing(n, fraction)).all()
    assert (mask == again).all()
    if n >= 6 and 0.3 < fraction < 0.7:
        assert (mask != other).any()


def _rates(mechanism: Mechanism, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Return for each feature (rows) and each one that may count (columns) how often it goes if that is low, high."""
    rng = np.random.default_rng(3)
    values = rng.random((40_000, 10)) < 0.5
    mask = Missingness(mechanism).draw(len(values), NAMES[:10], fraction, rng, values).astype(float)
    high = values.astype(float)
    return mask.T @ (1 - high) / (1 - high).sum(axis=0), mask.T @ high / high.sum(axis=0)


def test_high_values_go_missing_more_often() -> None:
    low, high = _rates("depends_on_value", 0.1)
    n_high = np.arange(10)  # of the nine others, with odds of 4 against 1
    chances, odds = stats.binom.pmf(n_high, 9, 0.5), 9.0 + 3.0 * n_high
    assert np.diag(low) == pytest.approx(chances @ (1 / (1 + odds)), abs=0.006)
    assert np.diag(high) == pytest.approx(chances @ (4 / (4 + odds)), abs=0.012)
    assert (low + high).diagonal().mean() == pytest.approx(0.2, abs=1e-3)
    off = ~np.eye(10, dtype=bool)
    assert (high[off] < low[off]).all(), "others go in its place"


def test_what_goes_missing_depends_on_features_that_never_do() -> None:
    low, high = _rates("depends_on_features", 0.4)
    observed = np.flatnonzero(low.sum(axis=1) + high.sum(axis=1) == 0)
    assert len(observed) == 1
    others = np.setdiff1d(np.arange(10), observed)
    gaps = (high - low)[others]
    assert (np.abs(gaps[:, observed]) > 0.2).all()
    assert {*np.sign(gaps[:, observed]).ravel()} == {-1.0, 1.0}
    assert (np.abs(gaps[:, others]) < 0.03).all(), "no value that may be missing counts"


def test_masks_that_depend_on_features_leave_these() -> None:
    with pytest.raises(ValueError, match=r"missing must leave at least 1 of 12 features .* got 12 missing ones"):
        Missingness("depends_on_features").draw(2, NAMES, 1.0, np.random.default_rng(0), np.ones((2, 12)))


FRACTIONS = st.floats(0.01, 0.99)
SEEDS = st.integers(0, 2**32)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=60), FRACTIONS, SEEDS, st.booleans())
def test_parts_are_complete_and_each_label_may_get_its_share(
    labels: list[str], fraction: float, seed: int, by_label: bool
) -> None:
    n_test = round(len(labels) * fraction)
    assume(0 < n_test < len(labels))
    train, test = split_rows(len(labels), fraction, seed, stratify=labels if by_label else None)
    assert len(test) == n_test
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert [train.tolist(), test.tolist()] == [sorted(train), sorted(test)]
    drawn = Counter(labels[row] for row in test)
    for label, count in Counter(labels).items():
        assert not by_label or abs(drawn[label] - count * n_test / len(labels)) < 1


def test_seed_decides_the_split() -> None:
    one, again, other = (split_rows(100, 0.3, seed)[1].tolist() for seed in (1, 1, 2))
    assert one == again != other
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - shows that the global state is left alone
    split_rows(100, 0.3, 1, stratify=["a", "b"] * 50)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_every_row_is_equally_likely() -> None:
    drawn = np.zeros(10)
    for seed in range(2000):
        drawn[split_rows(10, 0.3, seed)[1]] += 1
    # Five standard deviations of a binomial count.
    np.testing.assert_allclose(drawn, 600, atol=5 * np.sqrt(2000 * 0.3 * 0.7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0.5, 0), "`n_rows` must be at least 2, got 1"),
        ((10, 0.0, 0), "`test_fraction` must be between 0 and 1"),
        ((10, 1.5, 0), "got 1.5"),
        ((10, float("nan"), 0), "got nan"),
        ((10, 0.01, 0), "`test_fraction` must leave rows on both sides: 0.01 of 10 rows is 0; use a value between"),
        ((10, 0.99, 0), "0.99 of 10 rows is 10"),
        ((10, 0.5, -1), "`seed` must not be negative, got -1"),
        ((3, 0.5, 0, ["a", "b"]), r"one label for each of the 3 rows, got shape \(2,\)"),
        ((3, 0.5, 0, ["a", None, float("nan")]), "must not have missing labels, got 2; remove these rows"),
    ],
)
def test_arguments_are_checked(arguments: tuple[int, float, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_rows(*arguments)


def test_rows_follow_the_model() -> None:
    rows = 200_000
    features, classes, likelihoods = simulate_naive_bayes(rows=rows, features=4, seed=3, prior=0.3)
    assert features.shape == (rows, 4)
    assert likelihoods.shape == (4, 2)
    assert (likelihoods >= 0.1).all()
    assert (likelihoods < 0.9).all()
    # Five standard errors of a proportion over the smaller class.
    tolerance = 5 * 0.5 / np.sqrt(0.3 * rows)
    assert abs(classes.mean() - 0.3) < tolerance
    for label in (0, 1):
        chosen = features[classes == label].astype(float)
        np.testing.assert_allclose(chosen.mean(axis=0), likelihoods[:, label], atol=tolerance)
        correlation = np.corrcoef(chosen, rowvar=False) - np.eye(4)
        assert np.abs(correlation).max() < 5 / np.sqrt(0.3 * rows), "independent given the class"
