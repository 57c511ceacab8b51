"""Bounds on a grid hold, whatever the weights are, and searches that use them find the same."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench.trimming import kernels
from trimbench.trimming.engines.split import GridBounds, SplitSums, grids_of
from trimbench.trimming.engines.table import DenseEngine

SHAPE = (2, 3, 2, 2, 1, 2, 4)


def random_classifier(seed: int, threshold: float, concentration: float = 1.0) -> tb.BayesianClassifier:
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet([concentration] * size, size=2) for size in SHAPE]
    model = tb.NaiveBayes(rng.dirichlet([2.0, 2.0]), tables)
    return tb.BayesianClassifier(model, positive="0", threshold=threshold)


@given(
    seed=st.integers(0, 10**6),
    threshold=st.sampled_from([1e-9, 0.05, 0.5, 0.8, 1 - 1e-9]),
    n_cells=st.sampled_from([1, 7, 60, 3000]),
    concentration=st.sampled_from([0.2, 1.0, 20.0]),
    order=st.permutations(range(len(SHAPE))),
    n_removed=st.integers(0, 4),
)
@settings(max_examples=150, deadline=None)
def test_agreements_lie_within_the_bounds(
    seed: int, threshold: float, n_cells: int, concentration: float, order: list[int], n_removed: int
) -> None:
    classifier = random_classifier(seed, threshold, concentration)
    if any((table == 0).any() for table in classifier.tables):
        return
    removed, kept = order[:n_removed], order[n_removed:]
    node = DenseEngine.build(classifier).root.without(*removed)
    candidates = kept[: len(kept) - seed % 2]
    low, high = GridBounds(classifier, n_cells).bounds(kept, removed, candidates)
    for place, candidate in enumerate(candidates):
        assert low[place] <= node.without(candidate).potential_agreement() <= high[place]


def test_bounds_of_fine_grids_are_close() -> None:
    widths = []
    for seed in range(10):
        low, high = GridBounds(random_classifier(seed, 0.5), 20000).bounds(range(1, 7), [0], [2, 4, 6])
        widths.append(high - low)
    assert np.median(widths) < 0.01


def test_weights_that_are_whole_steps_need_no_margin() -> None:
    tables = [[[0.8, 0.2], [0.2, 0.8]], [[0.2, 0.8], [0.8, 0.2]], [[0.5, 0.5], [0.5, 0.5]]] * 2
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.3, 0.7], tables), positive="0", threshold=0.6)
    low, high = GridBounds(classifier, 40).bounds(range(2, 6), [0, 1], [3, 4])
    node = DenseEngine.build(classifier).root.without(0, 1)
    assert (high - low).max() < 1e-9
    assert 0.5 * (low + high) == pytest.approx([node.without(i).potential_agreement() for i in (3, 4)], abs=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_losses_are_those_of_all_cells(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        for name, kernel in vars(kernels).copy().items():
            if hasattr(kernel, "py_func"):
                monkeypatch.setattr(kernels, name, kernel.py_func)
    rng = np.random.default_rng(4)
    cardinalities = np.array([2, 3, 2, 2, 1, 2])
    for _ in range(8):
        shifts = rng.integers(0, 5, size=(6, 3))
        chances = rng.random((6, 2, 3)) * (np.arange(3) < cardinalities[:, None, None])
        chances /= chances.sum(axis=2, keepdims=True)
        prior = rng.dirichlet([1.0, 1.0])
        steps = (shifts, chances, cardinalities, np.array([shifts[i, :n].max() for i, n in enumerate(cardinalities)]))
        needed = int(rng.integers(1, 1 + steps[3].sum()))
        n_removed, n_kept = (int(n) for n in rng.integers(0, 3, size=2))
        order = rng.permutation(6)
        removed, kept, candidates = order[:n_removed], order[n_removed:][:n_kept], order[n_removed + n_kept :]
        out = np.empty((2, len(candidates)))
        kernels.grid_losses(steps, kept, removed, candidates, needed, prior, 1.5, out)
        for place, candidate in enumerate(candidates):
            expected = losses_of_cells(steps, {*removed.tolist(), int(candidate)}, needed, prior, 1.5)
            assert out[:, place] == pytest.approx(expected, abs=1e-14)


def losses_of_cells(steps: Any, removed: set[int], needed: int, prior: Any, ratio: float) -> tuple[float, float]:
    """Return the loss and its doubtful part, instance by instance."""
    shifts, chances, cardinalities, _ = steps
    signed: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(2))
    mass: dict[int, float] = defaultdict(float)
    for values in itertools.product(*(range(n) for n in cardinalities)):
        total = sum(int(shifts[i, value]) for i, value in enumerate(values))
        cell = sum(int(shifts[i, value]) for i, value in enumerate(values) if i not in removed)
        both = prior * [math.prod(float(chances[i, side, value]) for i, value in enumerate(values)) for side in (0, 1)]
        signed[cell] += both if total >= needed else -both
        mass[cell] += both.sum()
    loss = doubtful = 0.0
    for cell, (one, other) in signed.items():
        loss += 0.5 * (mass[cell] - abs(one + other))
        least, most = sorted((abs(one), abs(other)))
        doubtful += least if one * other < 0 and most <= ratio * least else 0.0
    return loss, doubtful


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_searches_with_grids_find_the_same_with_fewer_values(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    exact = SplitSums.potential_agreements

    def counted(*arguments: Any) -> list[float]:
        computed.append(len(arguments[3]))
        return exact(*arguments)

    monkeypatch.setattr(SplitSums, "potential_agreements", counted)
    rng = np.random.default_rng(8)
    counts = []
    for _ in range(3):
        chances = rng.beta(2, 2, size=(13, 2))
        model = tb.NaiveBayes([0.4, 0.6], [np.stack([both, 1 - both], axis=1) for both in chances])
        classifier = tb.BayesianClassifier(model, positive="0")
        expected = tb.trim(classifier, 5, engine="dense")
        for many in (2**40, 1):
            monkeypatch.setattr("trimbench.trimming.engines.split._MANY_INSTANCES", many)
            computed.clear()
            found = tb.trim(classifier, 5, engine="log_odds", n_jobs=n_jobs)
            assert found.optimal
            assert found.features == expected.features
            assert found.agreement == pytest.approx(expected.agreement, abs=1e-12)
            counts.append(sum(computed))
    assert sum(counts[1::2]) < 0.7 * sum(counts[::2])


def test_a_value_that_rules_out_a_class_has_no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.trimming.engines.split._MANY_INSTANCES", 1)
    assert len(grids_of(random_classifier(0, 0.5))) > 1
    certain = tb.NaiveBayes([0.5, 0.5], [[[1.0, 0.0], [0.5, 0.5]], [[0.6, 0.4], [0.5, 0.5]]])
    assert grids_of(tb.BayesianClassifier(certain, positive="0")) == []
