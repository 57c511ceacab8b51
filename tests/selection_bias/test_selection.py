"""Ranking of features by correlation, in integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench.selection_bias import selection
from trimbench.selection_bias.selection import (
    class_counts,
    correlation,
    region_bounds,
    select_features,
    strength_ranks,
)

from .brute_force import squared_correlation


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


@given(counts=counted())
@example(counts=largest_classes())
@settings(max_examples=200, deadline=None)
def test_ranks_are_those_of_exact_fractions(counts: tuple[np.ndarray, np.ndarray, int, int]) -> None:
    ones0, ones1, n0, n1 = counts
    strengths = [squared_correlation(int(a), int(b), n0, n1) for a, b in zip(ones0, ones1, strict=True)]
    order = {value: rank for rank, value in enumerate(sorted(set(strengths)))}
    assert strength_ranks(ones0, ones1, n0, n1).tolist() == [order[value] for value in strengths]


@given(counts=counted(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_selection_takes_the_strongest_and_the_lower_number(
    counts: tuple[np.ndarray, np.ndarray, int, int], data: st.DataObject
) -> None:
    ones0, ones1, n0, n1 = counts
    k = data.draw(st.integers(1, len(ones0)))
    strengths = [squared_correlation(int(a), int(b), n0, n1) for a, b in zip(ones0, ones1, strict=True)]
    expected = sorted(range(len(strengths)), key=lambda j: (-strengths[j], j))
    if k < len(strengths) and strengths[expected[k - 1]] == 0:
        with pytest.raises(ValueError, match=r"k must be (at most )?\d+, (the number of|which keeps all) features"):
            select_features(ones0, ones1, n0, n1, k)
        return
    chosen = select_features(ones0, ones1, n0, n1, k)
    assert chosen.features.tolist() == expected[:k]
    gamma2 = strengths[expected[k - 1]]
    assert chosen.n_tied == sum(strengths[j] == gamma2 for j in expected[k:])
    assert chosen.gamma == pytest.approx(float(gamma2) ** 0.5, rel=1e-14)
    assert chosen.n_discarded == len(strengths) - k


def test_large_classes_are_ranked_by_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ones0, ones1 = rng.integers(0, 31, size=(2, 400))
    in_machine_numbers = strength_ranks(ones0, ones1, 30, 30)
    monkeypatch.setattr(selection, "_EXACT_PRODUCT", 0)
    assert strength_ranks(ones0, ones1, 30, 30).tolist() == in_machine_numbers.tolist()


def test_close_fractions_are_distinguished() -> None:
    values = [Fraction(2**60 + 1, 2**60), Fraction(2**60 + 3, 2**60), Fraction(2**61 + 2, 2**61)]
    assert len({float(value) for value in values}) == 1
    assert selection._ranks_of_fractions(values).tolist() == [0, 1, 0]


@given(n0=st.integers(1, 25), n1=st.integers(1, 25), data=st.data())
@settings(max_examples=150, deadline=None)
def test_region_is_what_enumeration_says(n0: int, n1: int, data: st.DataObject) -> None:
    cut = (data.draw(st.integers(0, n0)), data.draw(st.integers(0, n1)))
    gamma2 = squared_correlation(*cut, n0, n1)
    if gamma2 == 0:
        return
    at_least, above = region_bounds(cut, n0, n1)
    assert (np.diff(at_least) >= 0).all()
    assert (np.diff(above) >= 0).all()
    for i1 in range(n1 + 1):
        for i0 in range(n0 + 1):
            positive = n0 * i1 > n1 * i0
            value = squared_correlation(i0, i1, n0, n1)
            assert (i0 <= at_least[i1]) == (positive and value >= gamma2)
            assert (i0 <= above[i1]) == (positive and value > gamma2)


@pytest.mark.parametrize("n", [(100, 100), (95, 5), (400, 400)])
def test_the_cut_off_cell_is_always_in_its_own_region(n: tuple[int, int]) -> None:
    n0, n1 = n
    rng = np.random.default_rng(3)
    for _ in range(300):
        i0, i1 = int(rng.integers(0, n0 + 1)), int(rng.integers(0, n1 + 1))
        if n0 * i1 <= n1 * i0:
            i0, i1 = n0 - i0, n1 - i1
        if n0 * i1 == n1 * i0:
            continue
        at_least, above = region_bounds((i0, i1), n0, n1)
        assert above[i1] < i0 <= at_least[i1]


@given(n0=st.integers(1, 60), n1=st.integers(1, 60), data=st.data())  # the region is a staircase because of this
@settings(max_examples=200, deadline=None)
def test_positive_correlation_rises_in_i1_and_falls_in_i0(n0: int, n1: int, data: st.DataObject) -> None:
    i0, i1 = data.draw(st.integers(0, n0)), data.draw(st.integers(0, n1))
    if n0 * i1 <= n1 * i0:
        return
    here = squared_correlation(i0, i1, n0, n1)
    if i1 < n1:
        assert squared_correlation(i0, i1 + 1, n0, n1) >= here
    if i0 < n0 and n0 * i1 > n1 * (i0 + 1):
        assert squared_correlation(i0 + 1, i1, n0, n1) <= here


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
    model = tb.fit_selection_corrected(X.astype(dtype), y, k=1)
    assert model.selected.tolist() == [0]
    assert model.cuts is not None
    assert model.cuts[0] == 0.5 * float(X.astype(dtype).min()) + 0.5 * float(X.astype(dtype).max())
