"""Threshold intervals and optima in exact fractions, where posteriors are closer than floating-point numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.trimming.exact_fractions import ENGINES, failures, is_positive, random_case
from trimbench.trimming.thresholds import Instances, best_cut

ULP = 2.0**-53
PREFERRED = (0.0, 0.5, 1.0, 1e-9, 1 - 1e-9, 1 - 2 * ULP)


def exact_agreement(instances: Instances, threshold: float) -> float:
    level, balance = Fraction(threshold), Fraction(0)
    for positive, negative, signed in zip(instances.positive, instances.negative, instances.signed, strict=True):
        above = is_positive((Fraction(float(positive)), Fraction(float(negative))), level)
        balance += Fraction(float(signed)) if above else -Fraction(float(signed))
    return float((1 + balance) / 2)


def instances_of(rng: np.random.Generator, kind: str) -> Instances:
    size = int(rng.integers(1, 9))
    mass = rng.dirichlet(np.ones(size))
    other = {
        "a few steps below 1": rng.integers(0, 8, size) * ULP * rng.choice([1, 0.5, 1 / 3, 1.1], size),
        "close to 1": 10.0 ** -rng.uniform(0, 18, size),
        "close to 0": 10.0 ** -rng.uniform(0, 300, size),
        "nearly tied": 10.0 ** -rng.uniform(3, 5) * (1 + rng.integers(0, 5, size) * rng.choice([1e-13, 1e-9], size)),
    }[kind]
    sides = mass * other, mass * (1 - other)
    positive, negative = sides if kind == "close to 0" else sides[::-1]
    return Instances(positive, negative, mass * rng.choice([-1.0, 1.0], size) * rng.choice([1.0, 0.5], size))


@pytest.mark.parametrize("kind", ["a few steps below 1", "close to 1", "close to 0", "nearly tied"])
def test_every_threshold_of_an_interval_has_its_agreement(kind: str) -> None:
    for seed in range(150):
        rng = np.random.default_rng(seed)
        instances, preferred = instances_of(rng, kind), float(rng.choice(PREFERRED))
        cut = best_cut(instances, preferred)
        lowest = math.nextafter(cut.low, 1.0) if cut.low < cut.high else cut.high
        for threshold in (lowest, cut.representative(preferred), cut.high):
            assert exact_agreement(instances, threshold) == pytest.approx(cut.agreement, abs=1e-11), (seed, threshold)
        if kind != "nearly tied":  # what differs by less than the tolerance may stay together
            tried = {0.0, 1.0} | around(instances.positive / (instances.positive + instances.negative))
            assert max(exact_agreement(instances, t) for t in tried) <= cut.agreement + 1e-11, seed


def around(posteriors: NDArray[np.float64], n_steps: int = 3) -> set[float]:
    """Return the floating-point numbers in [0, 1] next to some posteriors, and these."""
    found = [posteriors]
    for end in (0.0, 1.0):
        near = posteriors
        for _ in range(n_steps):
            found.append(near := np.nextafter(near, end))
    return set(np.concatenate(found).tolist())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", range(4))
def test_trimmings_are_optimal_in_exact_arithmetic(engine: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiled loops in every other block.
    monkeypatch.setattr("trimbench.trimming.search.lattices._SHORT_SEARCH", 0.0 if block % 2 else 2.0**27)
    for seed in range(25):
        case = random_case(np.random.default_rng([block, seed]))
        wrong = failures(case, engine, n_jobs=1 + seed % 3)
        assert not wrong, (case, wrong)
