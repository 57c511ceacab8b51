"""Several classes, many cases and missing values: exact regions, enumeration with quadrature, and the binary model."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

import trimbench as tb
from trimbench.selection_bias import kernels
from trimbench.selection_bias.factors import (
    Halves,
    Simulation,
    discard_probabilities,
    merged,
    walked_probabilities,
)
from trimbench.selection_bias.fit import cross_validate_selection
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import DiscardedGroup, ranked, squared_ratio, weak_counts

from . import brute_force
from .brute_force import drawn_cases, ratio


@given(sizes=st.lists(st.integers(1, 7), min_size=2, max_size=4).map(tuple), data=st.data())
@settings(max_examples=40)
def test_weak_counts_are_those_of_enumeration(sizes: tuple[int, ...], data: st.DataObject) -> None:
    cut = ratio([data.draw(st.integers(0, n_y)) for n_y in sizes], sizes)
    if cut == 0:
        return
    found = weak_counts(sizes, cut)
    equal = set(map(tuple, found.equal.T.tolist()))
    for cell in brute_force.counts_of(sizes):
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


@given(sizes=st.lists(st.integers(1, 13), min_size=3, max_size=6).map(tuple), data=st.data())
@settings(max_examples=40)
def test_halves_give_the_digits_of_walks(sizes: tuple[int, ...], data: st.DataObject) -> None:
    cut = ratio([data.draw(st.integers(0, n_y)) for n_y in sizes], sizes)
    if cut == 0:
        return
    prior = Prior(n_alpha=3, theta0=data.draw(st.sampled_from([0.0, 0.1])))
    halves = Halves.of(prior, sizes, cut)
    assert halves is not None
    found, walked = halves.probabilities(prior), walked_probabilities(prior, sizes, cut)
    for kind in ("log_below", "log_tied", "log_at_most"):
        np.testing.assert_allclose(getattr(found, kind), getattr(walked, kind), rtol=1e-9, atol=1e-11)


def test_many_classes_are_no_simulation() -> None:
    sizes = (20,) * 8
    found = discard_probabilities(Prior(n_alpha=3), sizes, ratio((3, 5, 9, 12, 8, 8, 10, 2), sizes))
    drawn = discard_probabilities(
        Prior(n_alpha=3), sizes, ratio((3, 5, 9, 12, 8, 8, 10, 2), sizes), Simulation("simulate")
    )
    assert (found.log_error == 0).all()
    assert (np.abs(found.log_below - drawn.log_below) < 5 * drawn.log_error + 1e-12).all()


@given(n=st.integers(1, 150), alpha=st.sampled_from([1e-6, 0.4, 3.0, 50.0, 1e4, 1e8]), theta=st.floats(1e-6, 1 - 1e-6))
@settings(max_examples=40)
def test_walks_are_beta_binomial_and_leave_out_less_than_they_say(n: int, alpha: float, theta: float) -> None:
    mass = np.full(n + 2, np.nan)
    first, last = kernels.walk(n, alpha * theta, alpha * (1.0 - theta), mass)
    exact = np.exp([brute_force.log_count(i, n, alpha, theta) for i in range(n + 1)])
    np.testing.assert_allclose(mass[first : last + 1], exact[first : last + 1], rtol=1e-9)
    assert exact[:first].sum() <= 1.01 * kernels.TAIL
    assert exact[last + 1 :].sum() <= 1.01 * kernels.TAIL
    ones = np.arange(n + 1)
    logs = kernels.log_probabilities(ones, np.full(n + 1, n), alpha, np.array([theta]))[:, 0]
    expected = [brute_force.log_u(i, n, alpha, theta) for i in range(n + 1)]
    np.testing.assert_allclose(logs, expected, rtol=1e-10, atol=1e-10)


def test_walks_leave_out_something() -> None:
    first, last = kernels.walk(10**6, 3e5, 7e5, np.empty(10**6 + 2))
    assert last - first < 20 * math.sqrt(0.3 * 0.7 * 2e6)


def test_simulated_factor_agrees_with_enumeration() -> None:
    prior, sizes = Prior(n_alpha=12), (14, 9, 11)
    cut = ratio((3, 5, 6), sizes)
    exact = discard_probabilities(prior, sizes, cut)
    drawn = discard_probabilities(prior, sizes, cut, Simulation("simulate", n_simulations=20_000))
    assert (drawn.log_error > 0).all()
    difference = drawn.log_below - exact.log_below
    assert (np.abs(difference) < 5 * drawn.log_error + 1e-12).all()
    np.testing.assert_allclose(drawn.log_tied, exact.log_tied, atol=0.3)
    with pytest.raises(ValueError, match="factor='enumerate' would take too long for 9 classes and 540 cases; use"):
        discard_probabilities(prior, (60,) * 9, Fraction(1, 9), Simulation("enumerate"))
    rare = discard_probabilities(prior, (700, 600, 800), Fraction(1, 977), Simulation("simulate", n_simulations=2000))
    np.testing.assert_array_equal(rare.log_tied, rare.log_below)


def test_what_several_classes_do_not_have() -> None:
    X, y = drawn_cases(3, (8, 8, 8), 20)
    model = tb.fit_selection_corrected(X, y, 4, n_alpha=5)
    assert cross_validate_selection(X, y, 4, n_folds=3, n_alpha=5).corrected.shape == (24, 3)
    with pytest.raises(ValueError, match="log_odds needs two classes, got 3; use log_probabilities"):
        model.log_odds(X)


def test_categories_may_be_missing_in_predictions() -> None:
    X, y = drawn_cases(5, (12, 15), 8)
    hidden = np.ma.MaskedArray(X, np.random.default_rng(2).random(X.shape) < 0.1)
    discrete = tb.fit_selection_corrected(X, y, 8, n_alpha=5, features="categorical")
    complete = tb.fit_selection_corrected(X, y, 8, n_alpha=5)
    np.testing.assert_allclose(discrete.predict_proba(hidden), complete.predict_proba(hidden), rtol=1e-9)


def test_medians_and_cuts_are_of_what_was_observed() -> None:
    X = np.array([[1.0, 4, np.nan], [2, np.nan, np.nan], [9, 6, np.nan], [np.nan, 4, np.nan]])
    model = tb.fit_selection_corrected(X, [0, 1, 1, 0], 1, n_alpha=3)
    assert model.cuts is not None
    assert model.cuts.tolist() == [2.0, 5.0, 0.5]


def test_a_feature_that_one_class_lacks_is_weak_whatever_alpha_is() -> None:
    X, y = drawn_cases(6, (8, 9), 5)
    more = np.column_stack([X, np.where(y == 0, np.nan, X[:, 0])])
    with_it, without = (tb.fit_selection_corrected(table, y, 2, n_alpha=4) for table in (more, X))
    np.testing.assert_allclose(with_it.log_adjustment, without.log_adjustment, rtol=1e-10)


def test_merged_groups_keep_their_features() -> None:
    rng = np.random.default_rng(0)
    sizes = {tuple(pair) for pair in rng.integers(45_000, 50_000, size=(300, 2)).tolist()}
    groups = tuple(DiscardedGroup(pair, 2, int(place == 0)) for place, pair in enumerate(sorted(sizes)))
    found = merged(groups, Prior())
    assert len(found) < 100
    assert sum(group.n_discarded for group in found) == 2 * len(groups)
    assert groups[0] in found
    few = groups[:3]
    assert merged(few, Prior(n_alpha=2)) == list(few)


def test_classes_may_be_python_integers() -> None:
    X, y = np.arange(18).reshape(6, 3) % 5, [0, 1, 2, 1, 2, 0]
    model = tb.fit_selection_corrected(X, np.array(y, dtype=object), 3, n_alpha=4)
    np.testing.assert_array_equal(
        model.predict_proba(X), tb.fit_selection_corrected(X, y, 3, n_alpha=4).predict_proba(X)
    )
