"""Threshold intervals and optima in exact fractions, where posteriors are closer than floating-point numbers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming.decisions import Instances, best_cut
from trimbench.trimming.engines.choice import EngineName
from trimbench.trimming.problem import checked_choice

ULP = 2.0**-53
PREFERRED = (0.0, 0.5, 1.0, 1e-9, 1 - 1e-9, 1 - 2 * ULP)


def exact_agreement(instances: Instances, threshold: float) -> float:
    level, balance = Fraction(threshold), Fraction(0)
    for positive, negative, signed in zip(instances.positive, instances.negative, instances.signed, strict=True):
        above = brute_force.positive((Fraction(float(positive)), Fraction(float(negative))), level)
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


def test_a_threshold_that_ties_with_the_posteriors_below_a_cut_is_not_in_its_interval() -> None:
    """Rounding leaves the posterior of a subset next to the original threshold, which still counts as reached."""
    below = 0.5 * (1.0 - 3e-16)
    instances = Instances(np.array([below, 0.1]), np.array([0.5, 0.9]), np.array([-0.8, -0.2]))
    cut = best_cut(instances, 0.5)
    assert cut.agreement == pytest.approx(1.0)
    threshold = cut.representative(0.5)
    assert threshold > 0.5
    assert instances.agreement(threshold) == pytest.approx(1.0)


# Few different parameters make zeros, ties and duplicates of features common.
THRESHOLDS = [Fraction(0), Fraction(1, 10**9), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4)]
THRESHOLDS += [1 - Fraction(1, 10**9), Fraction(1)]
Table = list[list[Fraction]]


@dataclass(frozen=True)
class Case:
    """A trimming problem: the joint distribution is `prior` times one entry of each table."""

    prior: list[Fraction]
    tables: list[Table]
    threshold: Fraction
    options: dict[str, Any]

    def trim(self, engine: EngineName) -> tb.Trimming:
        model = tb.NaiveBayes(
            [float(value) for value in self.prior],
            [[[float(value) for value in row] for row in table] for table in self.tables],
        )
        classifier = tb.BayesianClassifier(model, positive="0", threshold=float(self.threshold))
        return tb.trim(classifier, engine=engine, **self.options)

    def joint(self) -> brute_force.Joint:
        found: brute_force.Joint = {}
        for values in itertools.product(*(range(len(table[0])) for table in self.tables)):
            pair = list(self.prior)
            for table, value in zip(self.tables, values, strict=True):
                pair = [mass * table[side][value] for side, mass in enumerate(pair)]
            found[values] = (pair[0], pair[1])
        return found


def random_case(rng: np.random.Generator) -> Case:
    """Return a problem with up to 6 features of 1 to 3 values."""
    n_features = int(rng.integers(1, 7))
    levels = int(rng.choice([2, 4, 10]))
    tables: list[Table] = []
    for _ in range(n_features):
        if tables and rng.random() < 0.3:
            tables.append(tables[int(rng.integers(len(tables)))])
        else:
            size = int(rng.choice([1, 2, 2, 2, 3]))
            tables.append([_distribution(rng, size, levels) for _ in range(2)])
    options = brute_force.random_options(rng, [f"x{i}" for i in range(n_features)])
    return Case(_distribution(rng, 2, levels), tables, THRESHOLDS[int(rng.integers(len(THRESHOLDS)))], options)


def _distribution(rng: np.random.Generator, size: int, levels: int) -> list[Fraction]:
    parts = rng.multinomial(levels, np.full(size, 1.0 / size))
    return [Fraction(int(part), levels) for part in parts]


@pytest.mark.parametrize(("engine", "is_short"), [("log_odds", False), ("log_odds", True), ("dense", True)])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_trimmings_are_optimal_in_exact_arithmetic(engine: EngineName, is_short: bool, seed: int) -> None:
    case = random_case(np.random.default_rng(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "trimbench.trimming.search.lattice_search._SHORT_SEARCH", 2.0**27 if is_short else 0.0
        )  # else compiled
        found = case.trim(engine)
    names = [f"x{i}" for i in range(len(case.tables))]
    joint, subsets = case.joint(), brute_force.allowed_subsets(checked_choice(names, **case.options))
    decided = brute_force.decisions(joint, case.threshold)
    assert found.kept in subsets
    assert found.optimal
    assert found.threshold == 0 or case.threshold > 0  # as good as any other
    # The highest potential agreement is achieved (Proposition 3).
    parts = {subset: brute_force.by_decision(joint, subset, decided) for subset in subsets}
    assert found.agreement == pytest.approx(float(max(map(brute_force.potential, parts.values()))), abs=1e-11)
    seen = brute_force.part(joint, found.kept)
    reached = brute_force.agreement(seen, parts[found.kept], Fraction(found.threshold))
    assert float(reached) == pytest.approx(found.agreement, abs=1e-11)
