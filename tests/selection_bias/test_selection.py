"""Ranking of features by correlation, and which counts are weak, in integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

import trimbench as tb
from trimbench.papers.selection_bias.simulated_cases import class_counts, correlation
from trimbench.selection_bias.selection import ranked, select, squared_ratio, weak_counts

from .brute_force import counts_of, drawn_cases, ratio


@st.composite
def counted(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int, int]:
    n0, n1 = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    pairs = draw(st.lists(st.tuples(st.integers(0, n0), st.integers(0, n1)), min_size=1, max_size=60))
    ones = np.array(pairs)
    return ones[:, 0], ones[:, 1], n0, n1


def largest_classes() -> tuple[np.ndarray, np.ndarray, int, int]:
    """The largest classes that machine numbers hold."""
    n0, n1 = 7919, 8101
    rng = np.random.default_rng(1)
    return rng.integers(0, n0 + 1, 4000), rng.integers(0, n1 + 1, 4000), n0, n1


def tables_of(counts: tuple[np.ndarray, np.ndarray, int, int]) -> tuple[np.ndarray, np.ndarray]:
    return np.stack(counts[:2]), np.repeat([[counts[2]], [counts[3]]], len(counts[0]), axis=1)


def enormous_classes() -> tuple[np.ndarray, np.ndarray, int, int]:
    """Classes that 64 bits do not hold, and features that floating-point numbers do not tell apart."""
    n, steps = 10**9, np.array([0, 1, 2, -1, 0])
    return n // 2 + steps, 3 * n // 5 + steps, n, n


@given(counts=counted())
@example(counts=enormous_classes())
@example(counts=largest_classes())
@settings(max_examples=200)
def test_ranks_are_those_of_exact_fractions(counts: tuple[np.ndarray, np.ndarray, int, int]) -> None:
    ones0, ones1, n0, n1 = counts
    strengths = [ratio((a, b), (n0, n1)) for a, b in zip(ones0, ones1, strict=True)]
    order = {value: rank for rank, value in enumerate(sorted(set(strengths)))}
    ranks, ratios = ranked(*tables_of(counts))
    assert ranks.tolist() == [order[value] for value in strengths]
    np.testing.assert_allclose(ratios, np.array(strengths, dtype=float), rtol=1e-14)


@given(counts=counted(), data=st.data())
@settings(max_examples=200)
def test_selection_takes_the_strongest_and_the_lower_number(
    counts: tuple[np.ndarray, np.ndarray, int, int], data: st.DataObject
) -> None:
    ones0, ones1, n0, n1 = counts
    k = data.draw(st.integers(1, len(ones0)))
    strengths = [ratio((a, b), (n0, n1)) for a, b in zip(ones0, ones1, strict=True)]
    expected = sorted(range(len(strengths)), key=lambda j: (-strengths[j], j))
    if k < len(strengths) and strengths[expected[k - 1]] == 0:
        with pytest.raises(
            ValueError, match=r"k must be at most \d+, the number of features|X must have a feature that depends on y"
        ):
            select(*tables_of(counts), k)
        return
    chosen = select(*tables_of(counts), k)
    assert chosen.features.tolist() == expected[:k]
    gamma2 = strengths[expected[k - 1]]
    assert chosen.n_tied == sum(strengths[j] == gamma2 for j in expected[k:])
    assert chosen.gamma == pytest.approx(float(gamma2) ** 0.5, rel=1e-14)
    assert chosen.n_discarded == len(strengths) - k


def test_fewer_features_are_selected_where_that_is_allowed() -> None:
    ones, sizes = np.array([[0, 2, 1, 0], [2, 2, 1, 1]]), np.full((2, 4), 2)
    assert select(ones, sizes, 3, allow_fewer=True).features.tolist() == [0, 3]
    assert select(ones[:, 1:3], sizes[:, 1:3], 1, allow_fewer=True).features.tolist() == [0, 1]


def test_counts_and_correlation_are_those_of_the_columns() -> None:
    rng = np.random.default_rng(4)
    X = (rng.random((37, 50)) < rng.random(50)).astype(np.uint8)
    X[:, 3], X[:, 4] = 0, 1
    y = rng.integers(0, 2, 37)
    ones0, ones1 = class_counts(X, y)
    assert ones0.tolist() == [int((X[y == 0, j] == 1).sum()) for j in range(50)]
    n1 = int(y.sum())
    found = correlation(ones0, ones1, 37 - n1, n1)
    expected = [np.corrcoef(X[:, j], y)[0, 1] if 0 < X[:, j].sum() < 37 else 0.0 for j in range(50)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("dtype", "low", "high"), [("uint8", 100, 200), ("int8", 100, 120), ("float16", 3e4, 5e4)])
def test_the_cut_of_two_values_does_not_overflow(dtype: str, low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.choice([low, high], size=(40, 6))
    X[:, 0] = np.where(y == 1, high, low)
    model = tb.fit_selection_corrected(X.astype(dtype), y, k=1, calibrate=False)
    assert model.selected.tolist() == [0]
    assert model.cuts is not None
    assert model.cuts[0] == 0.5 * float(X.astype(dtype).min()) + 0.5 * float(X.astype(dtype).max())


@given(sizes=st.lists(st.integers(1, 7), min_size=2, max_size=4).map(tuple), data=st.data())
@settings(max_examples=40)
def test_weak_counts_are_those_of_enumeration(sizes: tuple[int, ...], data: st.DataObject) -> None:
    cut = ratio([data.draw(st.integers(0, n_y)) for n_y in sizes], sizes)
    if cut == 0:
        return
    found = weak_counts(sizes, cut)
    equal = set(map(tuple, found.equal.T.tolist()))
    for cell in counts_of(sizes):
        value = ratio(cell, sizes)
        assert squared_ratio(cell, sizes) == value
        assert (found.low[cell[1:]] <= cell[0] <= found.high[cell[1:]]) == (value < cut)
        assert (cell in equal) == (value == cut)


def test_ranks_are_exact_and_those_of_the_f_statistic() -> None:
    X, y = drawn_cases(0, (9, 9, 12), 300)
    X = X[:, (X.sum(axis=0) > 0) & (X.sum(axis=0) < 30)]
    ones = np.stack([X[y == c].sum(axis=0) for c in range(3)]).astype(int)
    sizes = np.repeat([[9], [9], [12]], X.shape[1], axis=1)
    values = [ratio(column, (9, 9, 12)) for column in ones.T.tolist()]
    place = {value: rank for rank, value in enumerate(sorted(set(values)))}
    assert ranked(ones, sizes)[0].tolist() == [place[value] for value in values]
    assert (np.diff(f_classif(X, y)[0][np.argsort(values)]) > -1e-9).all()
