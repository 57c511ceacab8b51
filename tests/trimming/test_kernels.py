"""Compiled kernels against obvious twins, and interpreted: the same text without the compiler."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from trimbench import _numba
from trimbench.trimming import kernels as trimming_kernels
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.engines.table import DenseEngine
from trimbench.trimming.limits import Limits

WEIGHTS = st.sampled_from([-math.inf, -1.5, -1.0, 0.0, 0.25, 1.0, 2.0, math.inf])


def interpreted(kernel: Any) -> Any:
    """Return the function that was compiled."""
    return kernel.py_func


@pytest.mark.parametrize("way", [lambda kernel: kernel, interpreted])
@pytest.mark.parametrize("shape", [(2, 2, 2, 2), (3, 1, 2, 4), (5,), (2, 3, 2), (2, 3, 3, 5)])
def test_axis_norms_are_those_of_sums_over_axes(
    way: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if way is interpreted:
        monkeypatch.setattr(trimming_kernels, "_BLOCK", 4)
        for name in ("axis_norm", "short_runs_norm", "sum_norm"):
            monkeypatch.setattr(trimming_kernels, name, interpreted(getattr(trimming_kernels, name)))
    table = np.random.default_rng(1).normal(size=shape)
    axes, out = np.arange(len(shape)), np.empty(len(shape))
    way(trimming_kernels.axis_norms)(table.ravel(), np.array(shape), axes, out)
    assert np.allclose(out, [np.abs(table.sum(axis=axis)).sum() for axis in axes])


def test_large_tables_are_summed_block_by_block() -> None:
    table = np.random.default_rng(2).normal(size=(2, 3, 2, 2**14))
    out = np.empty(4)
    trimming_kernels.axis_norms(table.ravel(), np.array(table.shape), np.arange(4), out)
    assert np.allclose(out, [np.abs(table.sum(axis=axis)).sum() for axis in range(4)])


def test_without_time_one_value_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(1), [2] * 6, 0.4)
    late = Limits(1e-9)
    groups = [(i,) for i in range(6)]
    monkeypatch.setattr("trimbench.trimming.engines.table._UNINTERRUPTED", 1)
    monkeypatch.setattr("trimbench.trimming.engines.table._WORTH_A_KERNEL", 1)
    for root in [
        LogOddsEngine(classifier).root,
        *(DenseEngine.build(classifier, compiled=compiled).root for compiled in (True, False)),
    ]:
        assert len(root.potential_agreements_without(groups, late)) == 1
        assert len(root.potential_agreements_without(groups, Limits())) == 6


def test_kernels_work_without_a_folder_for_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    def refuse(*arguments: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", refuse)
    assert _numba.compiled(math.sqrt)(4.0) == 2.0


def test_a_short_search_does_not_wait_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(_numba.sys.modules, "trimbench.trimming.kernels")
    assert _numba.is_worth_loading(None, "axis_norms")
    assert not _numba.is_worth_loading(0.3, "axis_norms")
    for signatures in ([], ["(float64)"]):  # imported, and called
        kernels = SimpleNamespace(axis_norms=SimpleNamespace(signatures=signatures))
        monkeypatch.setitem(_numba.sys.modules, "trimbench.trimming.kernels", kernels)  # type: ignore[misc]
        assert _numba.is_worth_loading(0.3, "axis_norms") == bool(signatures)


def test_threads_change_nothing() -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(7), [2] * 16, 0.3)
    one, three = (tb.trim(classifier, 5, engine="log_odds", n_jobs=n_jobs) for n_jobs in (1, 3))
    assert (one.features, one.agreement, one.n_evaluations) == (three.features, three.agreement, three.n_evaluations)
