"""Compiled kernels on arrays so small that their loops, interpreted, take milliseconds; each against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.trimming import brute_force
from trimbench.trimming import kernels
from trimbench.trimming.engines.split import SplitSums
from trimbench.trimming.engines.table import DenseEngine
from trimbench.trimming.limits import Limits
from trimbench.trimming.search.row_scores import Cells, Columns, compiled_balances, highest_balances

INFINITY = math.inf


def steepest(log_odds: list[float], weights: list[float], mass: Any) -> float:
    return kernels.highest_balance(
        np.array(log_odds), np.array(weights), np.array(mass, dtype=float), np.full(len(weights), 7)
    )


@pytest.mark.parametrize(
    ("log_odds", "weights", "mass", "highest"),
    [
        ([0.0], [1.0], [[0.5]], 0.5),  # everything above the cut
        ([0.0], [1.0], [[-0.5]], 0.5),  # everything below
        ([0.0], [INFINITY], [[-0.5]], -0.5),  # no cut is above certainty
        ([-INFINITY, 0.0], [0.0, INFINITY], [[0.1, -0.2], [0.4, 0.3]], 0.6),
        ([0.0], [1.0, 2.0], [[-0.5, 0.25]], 0.75),  # between the two values
        ([0.0], [2.0, 1.0], [[0.25, -0.5]], 0.75),
        ([0.0], [1.0, 1.0 + 1e-13], [[-0.5, 0.25]], 0.25),  # no cut separates ties
        ([0.0, 2.0], [0.0, 1.0], [[-1.0, 0.0], [0.0, 3.0]], 4.0),
        ([0.0, 2.0], [0.0, 1.0], [[-1.0, 9e-15], [9e-15, 3.0]], 4.0),  # parts without rows
        ([0.0, 0.5], [0.0, 1.0], [[-1.0, 2.0], [-4.0, 8.0]], 15.0),  # the lists of both values are merged
        ([0.0], [40.0, 50.0], [[-0.5, 0.25]], 0.25),  # both above the highest log-odds
        ([0.0], [1.0], [[0.0]], 0.0),
    ],
)
def test_the_highest_balance_is_that_of_the_best_cut(
    log_odds: list[float], weights: list[float], mass: Any, highest: float
) -> None:
    assert steepest(log_odds, weights, mass) == pytest.approx(highest, abs=1e-13)


@pytest.mark.parametrize("candidates", [[1, 9], [3], [8, 10], [0, 11], list(range(12))])
def test_balances_of_packed_features_are_those_of_numpy(candidates: list[int]) -> None:
    rng = np.random.default_rng(3)
    cardinalities = (*[2] * 11, 3)
    codes = np.stack([rng.integers(0, n, size=20) for n in cardinalities], axis=1)
    weights = tuple(rng.normal(size=n) for n in cardinalities)
    columns = Columns(codes, cardinalities, weights, rng.choice([-1.0, 1.0], size=20) * rng.random(20))
    cells = Cells.sorted(rng.integers(0, 3, size=20), rng.normal(size=3))
    expected = highest_balances(columns, cells, candidates)
    assert compiled_balances(columns, cells, candidates) == pytest.approx(expected, abs=1e-12)


def test_features_that_are_not_wanted_get_no_balance() -> None:
    packed = np.array([[0b10000000, 0b01000000], [0b10000000, 0b10000000]], dtype=np.uint8)
    wanted = np.array([False, True, *[False] * 7])
    found = kernels.binary_balances(
        packed, np.array([0, 0]), np.array([-0.5, 0.25]), np.zeros(1), np.array([-0.25]), np.ones((9, 2)), wanted
    )
    assert found.tolist() == [0.0, 0.25, *[0.0] * 7]


def test_instances_that_both_classes_rule_out_are_left_out() -> None:
    start = np.array([-INFINITY, INFINITY]), np.array([0.0, 1.0]), np.array([1.0, 0.0])
    values = np.array([-INFINITY, 0.0]), np.array([0.0, 0.25]), np.array([0.5, 0.5])
    weight, positive, negative = kernels.add_feature(*start, *values)
    assert weight.tolist() == [-INFINITY, -INFINITY, INFINITY]
    assert positive.tolist() == [0.0, 0.0, 0.25]
    assert sorted(negative) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "chances",
    [
        ([0.25, 0.75], [0.5, 0.5]),
        ([0.0, 1.0], [0.5, 0.5]),
        ([0.5, 0.5], [0.0, 1.0]),
        ([0.0, 0.5, 0.5], [0.5, 0.5, 0.0]),
    ],
)
def test_a_table_says_how_likely_it_lifts_each_instance(chances: tuple[list[float], list[float]]) -> None:
    """Two features with the same values are tabulated, one is left out, and two instances are enumerated."""
    positive, negative = (np.array([side] * 3) for side in chances)
    with np.errstate(divide="ignore"):
        values = np.log(positive) - np.log(negative)
    features, enumerated = (values, positive, negative, np.full(3, values.shape[1])), np.array([0.0, 1.0])
    weight, tails, bounds, _, _, left_out, reached = kernels.state_of(
        features, np.array([0, 1]), np.array([2]), 0.5, enumerated
    )
    one, other = (np.multiply.outer(side[0], side[1]).ravel() for side in (positive, negative))
    possible = one + other > 0
    with np.errstate(divide="ignore"):
        sums = np.log(one[possible]) - np.log(other[possible])
    assert np.allclose(weight, np.sort(sums))
    assert left_out.tolist() == [[positive[0, v], negative[0, v]] for v in np.argsort(values[0])]
    assert tails[0].tolist() == pytest.approx([1.0, 1.0])
    assert bounds.tolist() == [int((sums == -INFINITY).sum()), int((sums < INFINITY).sum())]
    for v, removed in enumerate(np.sort(values[0])):
        for j in range(2):
            # Where the removed value rules one class out, a sum that rules out the other is possible in neither.
            lifted = sums >= 0.5 - removed - enumerated[j]
            for side, mass in enumerate((one[possible], other[possible])):
                if np.isfinite(removed):
                    assert reached[side, v, j] == pytest.approx(mass[lifted].sum())


@pytest.mark.parametrize("side", [0, 1])
def test_a_table_without_finite_weights_has_empty_bounds(side: int) -> None:
    chances = [np.array([[0.5, 0.5]]), np.array([[0.0, 0.0]])]
    weights = np.full((1, 2), INFINITY if side == 0 else -INFINITY)
    features = weights, chances[side], chances[1 - side], np.array([2])
    nothing = np.array([], dtype=np.int64)
    found = kernels.state_of(features, np.array([0]), nothing, 0.0, np.zeros(1))
    bounds, reached = found[2], found[6]
    assert bounds.tolist() == ([0, 0] if side == 0 else [2, 2])
    assert reached.ravel().tolist() == ([1.0, 0.0] if side == 0 else [0.0, 0.0])


def lift(needed: float, s: float, weight: list[float], positive: list[float], negative: list[float]) -> float:
    """Return what d(s) is proportional to."""
    lifted = np.array(weight) >= needed - s
    one, other = (float(np.array(mass)[lifted].sum()) for mass in (positive, negative))
    return math.exp(s) * (2 * one - 1) + 2 * other - 1


@pytest.mark.parametrize(
    ("weight", "positive", "negative"),
    [
        ([-1.0, 0.0, 2.0], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]),
        ([-2.0, -1.0, 3.0], [0.2, 0.2, 0.6], [0.5, 0.25, 0.25]),  # within an interval
        ([0.0, 1.0], [0.5, 0.5], [0.75, 0.25]),  # a is 0 after the first
        ([0.0], [1.0], [1.0]),
        ([-30.0, 1.0], [0.25, 0.75], [0.75, 0.25]),
        ([1.0], [0.75], [0.25]),  # after the last: the rest of the mass is elsewhere
    ],
)
def test_the_sign_changes_where_it_is_said(weight: list[float], positive: list[float], negative: list[float]) -> None:
    for needed in (-1.0, 0.0, 0.5):
        found = kernels.sign_change(needed, np.array(weight), np.array(positive), np.array(negative))
        assert lift(needed, found + 1e-9, weight, positive, negative) >= 0
        assert lift(needed, found - 1e-9, weight, positive, negative) < 0


def test_without_instances_the_sign_never_changes() -> None:
    assert kernels.sign_change(0.0, np.zeros(0), np.zeros(0), np.zeros(0)) == INFINITY
    # A class alone is lifted, by instances that are certain.
    certain = np.array([0.0, INFINITY]), np.array([0.25, 0.75]), np.array([1.0, 0.0])
    assert kernels.sign_change(0.0, *certain) == 0.0
    assert kernels.sign_change(2.0, *certain) == pytest.approx(math.log(2))


def test_loss_and_doubt_of_cells_are_sums_over_cells() -> None:
    rng = np.random.default_rng(4)
    positive, negative, lifts_positive, lifts_negative = rng.random((4, 12))
    lifts_positive[:2] = lifts_negative[:2] = 0.5
    lifts_positive[2:4], lifts_negative[2:4] = 1.0, 0.0
    negative[2] = positive[2]
    for ratio in (1.0, 1.5, 4.0):
        loss = doubtful = 0.0
        for p, n, lp, ln in zip(positive, negative, lifts_positive, lifts_negative, strict=True):
            above = p * lp + n * ln
            loss += min(above, p + n - above)
            one, other = p * (2 * lp - 1), n * (2 * ln - 1)
            louder, softer = max(abs(one), abs(other)), min(abs(one), abs(other))
            doubtful += softer if one * other < 0 and louder <= ratio * softer else 0.0
        assert doubtful > 0
        found = kernels.loss_of_cells(positive, negative, lifts_positive, lifts_negative, ratio)
        assert found == pytest.approx((loss, doubtful))


@pytest.mark.parametrize("shape", [(3, 2, 3), (2, 2, 3), (2, 5), (3, 2, 2, 2), (2, 1, 2), (1, 1)])
def test_norms_of_any_run_length(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(6).normal(size=shape)
    out = np.empty(len(shape))
    kernels.axis_norms(table.ravel(), np.array(shape), np.arange(len(shape)), out)
    assert np.allclose(out, [np.abs(table.sum(axis=axis)).sum() for axis in range(len(shape))])


def test_a_decision_stands_if_it_is_the_first_of_the_most_probable() -> None:
    logs = np.log(np.array([[0.4, 0.4, 0.2], [0.2, 0.3, 0.5]]))
    weights = np.array([[0.0, 0.0, 0.0], [0.0, math.log(2), 0.0], [0.0, 0.0, 1e-14]])
    # By cell and value. A tie goes to the first class: in cell 0 with values 0 and 2.
    most_probable = [[0, 1, 0], [2, 1, 2]]
    for decision in range(3):
        for cell, value in np.ndindex(2, 3):
            found = kernels.agreement(
                logs, np.array([cell]), np.array([value]), weights, np.array([decision]), np.array([0.25])
            )
            assert found == (0.25 if most_probable[cell][value] == decision else 0.0)


@pytest.mark.parametrize("removed", [frozenset[int](), frozenset({1}), frozenset({0, 3})])
def test_every_candidate_leaves_the_enumerated_features_as_they_were(removed: frozenset[int]) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(9), [2, 2, 3, 2, 2], 0.4)
    kept = frozenset(range(5)) - removed
    node = DenseEngine.build(classifier).root.without(*removed)
    candidates = [None, *sorted(kept), *sorted(kept, reverse=True)]
    expected = [node.without(*(() if i is None else (i,))).potential_agreement() for i in candidates]
    found = SplitSums(classifier).potential_agreements(kept, removed, candidates, Limits())
    assert found == pytest.approx(expected, abs=1e-13)
