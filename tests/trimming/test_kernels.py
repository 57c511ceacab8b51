"""Compiled kernels against obvious twins on small arrays."""

from __future__ import annotations

import math
import types
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from trimbench import _numba
from trimbench.trimming import kernels
from trimbench.trimming.decisions import TIE_TOLERANCE, TIED_LOG_ODDS
from trimbench.trimming.search.row_scores import Cells, Columns, compiled_balances, highest_balances


def test_kernels_work_without_a_folder_for_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.setattr(numba, "njit", Mock(side_effect=[RuntimeError("no locator available"), lambda one: one]))
    assert _numba.compiled(lambda value: value / 2)(4.0) == 2.0


def test_machine_code_is_kept_apart_for_other_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant may be imported, and numba looks only at the file of the function."""
    monkeypatch.setattr("numba.njit", lambda **_: lambda function: function)

    def named(constant: float) -> str:
        module = types.ModuleType("kernels_xyz")
        exec(f"FACTOR = {constant}\ndef double(x): return FACTOR * x", vars(module))
        return str(_numba.compiled(module.double).__qualname__)

    assert named(2.0) == named(2.0) != named(2.5)


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
        ([0.0], [1.0, 2.0], [[-0.5, 0.25]], 0.75),  # between the two values
        ([0.0], [2.0, 1.0], [[0.25, -0.5]], 0.75),
        ([0.0], [1.0, 1.0 + 1e-13], [[-0.5, 0.25]], 0.25),  # no cut separates ties
        ([0.0], [0.0, TIED_LOG_ODDS], [[-0.5, 0.25]], 0.25),
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


@pytest.mark.parametrize("candidates", [[1, 9], [3], [8], [8, 10], [0, 11], list(range(12))])
def test_balances_of_packed_features_are_those_of_numpy(candidates: list[int]) -> None:
    rng = np.random.default_rng(3)
    cardinalities = (*[2] * 11, 3)
    codes = np.stack([rng.integers(0, n, size=20) for n in cardinalities], axis=1)
    weights = tuple(rng.normal(size=n) for n in cardinalities)
    columns = Columns(codes, cardinalities, weights, rng.choice([-1.0, 1.0], size=20) * rng.random(20), np.zeros(()))
    cells = Cells.sorted(rng.integers(0, 3, size=20), rng.normal(size=3))
    expected = highest_balances(columns, cells, candidates)
    assert compiled_balances(columns, cells, candidates) == pytest.approx(expected, abs=1e-12)


def test_a_decision_is_lost_to_an_equally_probable_class_before_it() -> None:
    logs, none = np.array([[-TIE_TOLERANCE, 0.0]]), np.zeros(1, dtype=np.int64)
    assert kernels.agreement(logs, none, none, np.zeros((1, 2)), none + 1, np.ones(1)) == 0.0
