"""Compiled kernels against obvious twins, and interpreted: the same text without the compiler."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from trimbench import _numba
from trimbench.trimming import kernels as trimming_kernels
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.engines.split import Half, SplitSums
from trimbench.trimming.engines.table import DenseEngine
from trimbench.trimming.limits import Limits

WEIGHTS = st.sampled_from([-math.inf, -1.5, -1.0, 0.0, 0.25, 1.0, 2.0, math.inf])


def interpreted(kernel: Any) -> Any:
    """Return the function that was compiled."""
    return kernel.py_func


@pytest.mark.parametrize("way", [lambda kernel: kernel, interpreted])
@given(weights=st.lists(WEIGHTS, min_size=1, max_size=40), query=st.sampled_from([*np.linspace(-2, 2.5, 19), math.inf]))
@settings(max_examples=40, deadline=None)
def test_a_look_up_is_a_binary_search(way: Any, weights: list[float], query: float) -> None:
    table = np.sort(np.array(weights))
    first = int(np.searchsorted(table, -math.inf, side="right"))
    last = int(np.searchsorted(table, math.inf, side="left"))
    buckets = np.empty(2 * table.size + 2, dtype=np.int64)
    scale = way(trimming_kernels.fill_buckets)(table, first, last, buckets)
    for asked in (query, -math.inf, math.nan):
        found = way(trimming_kernels.look_up)(table, first, last, buckets, scale, asked)
        assert found == (0 if math.isnan(asked) else np.searchsorted(table, asked))


def test_crowded_buckets_are_searched_by_halving() -> None:
    table = np.sort(np.concatenate([np.linspace(0.5, 0.5001, 300), [0.0, 1.0]]))
    buckets = np.empty(2 * table.size + 2, dtype=np.int64)
    scale = trimming_kernels.fill_buckets(table, 0, table.size, buckets)
    for query in [*table, *(table + 1e-9), -1.0, 2.0]:
        for way in (trimming_kernels.look_up, interpreted(trimming_kernels.look_up)):
            assert way(table, 0, table.size, buckets, scale, query) == np.searchsorted(table, query)


@pytest.mark.parametrize("way", [lambda kernel: kernel, interpreted])
def test_sorted_sums_are_those_of_all_instances(way: Any) -> None:
    rng = np.random.default_rng(0)
    for coarse in (False, True):
        classifier = brute_force.random_classifier(rng, [2, 3, 1, 2], 0.5, coarse=coarse)
        sums = (np.zeros(1), np.ones(1), np.ones(1))
        for table in classifier.tables:
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = np.log(table[0]) - np.log(table[1])
            seen = table.sum(axis=0) > 0
            sums = way(trimming_kernels.add_feature)(*sums, weight[seen], table[0][seen], table[1][seen])
        expected = []
        tables = classifier.tables
        for values in itertools.product(*(range(table.shape[1]) for table in tables)):
            one, other = (math.prod(float(t[side, v]) for t, v in zip(tables, values, strict=True)) for side in (0, 1))
            if one or other:
                with np.errstate(divide="ignore"):
                    expected.append((float(np.log(one) - np.log(other)), one, other))
        assert np.allclose(sums[0], sorted(weight for weight, _, _ in expected))
        for side in (1, 2):
            assert np.allclose(np.sort(sums[side]), sorted(entry[side] for entry in expected))
        assert np.allclose(way(trimming_kernels.tails_of)(sums[1]), np.append(np.cumsum(sums[1][::-1])[::-1], 0.0))


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


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("coarse", [False, True])
def test_split_sums_equal_the_table(compiled: bool, coarse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        for module in (trimming_kernels,):
            for name, kernel in vars(module).copy().items():
                if hasattr(kernel, "py_func"):
                    monkeypatch.setattr(module, name, interpreted(kernel))
    monkeypatch.setattr("trimbench.trimming.engines.split._RUN", 4)
    monkeypatch.setattr("trimbench.trimming.engines.split._MUCH_WORK", 2)
    rng = np.random.default_rng(5)
    for _ in range(6):
        shape = [int(size) for size in rng.choice([1, 2, 2, 3], size=7)]
        classifier = brute_force.random_classifier(rng, shape, float(rng.choice([0.2, 0.5, 0.9])), coarse=coarse)
        if not classifier.prior.all():
            continue
        split, dense = SplitSums(classifier), DenseEngine.build(classifier)
        for _ in range(12):
            removed = frozenset(np.flatnonzero(rng.random(7) < rng.random()).tolist())
            kept = frozenset(range(7)) - removed
            candidates = [None, *kept]
            # Interpreted, NumPy warns of inf - inf.
            with np.errstate(invalid="ignore" if not compiled else "warn"):
                found = split.potential_agreements(kept, removed, candidates, Limits(n_jobs=1 + compiled))
            node = dense.root.without(*removed)
            expected = [node.without(*(() if i is None else (i,))).potential_agreement() for i in candidates]
            assert found == pytest.approx(expected, abs=1e-13)


def test_tables_that_take_too_much_memory_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(0), [2] * 8, 0.4)

    def values(split: SplitSums) -> list[float]:
        everything = frozenset(range(8))
        return [split.potential_agreements(everything - {i}, frozenset({i}), [None], Limits())[0] for i in everything]

    expected = values(SplitSums(classifier))
    monkeypatch.setattr("trimbench.trimming.engines.split._CACHE_BYTES", 1)
    made: list[frozenset[int]] = []
    make = Half._make

    def recorded(half: Half, left_out: frozenset[int]) -> Any:
        made.append(left_out)
        return make(half, left_out)

    monkeypatch.setattr(Half, "_make", recorded)
    again = SplitSums(classifier)
    assert values(again) == values(again) == expected
    assert len(made) > len(set(made))


def test_without_time_one_value_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(1), [2] * 6, 0.4)
    late = Limits(1e-9)
    groups = [(i,) for i in range(6)]
    monkeypatch.setattr("trimbench.trimming.engines.split._UNINTERRUPTED", 1)
    monkeypatch.setattr("trimbench.trimming.engines.table._UNINTERRUPTED", 1)
    monkeypatch.setattr("trimbench.trimming.engines.table._WORTH_A_KERNEL", 1)
    roots = [LogOddsEngine(classifier, compiled).root for compiled in (True, False)]
    for root in [*roots, *(DenseEngine.build(classifier, compiled=compiled).root for compiled in (True, False))]:
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
    assert _numba.is_worth_loading(None, "agreements_without")
    assert not _numba.is_worth_loading(0.3, "agreements_without")
    for signatures in ([], ["(float64)"]):  # imported, and called
        kernels = SimpleNamespace(agreements_without=SimpleNamespace(signatures=signatures))
        monkeypatch.setitem(_numba.sys.modules, "trimbench.trimming.kernels", kernels)  # type: ignore[misc]
        assert _numba.is_worth_loading(0.3, "agreements_without") == bool(signatures)


def test_threads_change_nothing() -> None:
    classifier = brute_force.random_classifier(np.random.default_rng(7), [2] * 16, 0.3)
    one, three = (tb.trim(classifier, 5, engine="log_odds", n_jobs=n_jobs) for n_jobs in (1, 3))
    assert (one.features, one.agreement, one.n_evaluations) == (three.features, three.agreement, three.n_evaluations)
