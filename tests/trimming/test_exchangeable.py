"""Features of a few types: a subset matters only through how many features of each type it keeps, which is counted."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench._typing import FloatArray
from trimbench.trimming.decisions import TIE_TOLERANCE, cumulated, log_odds
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.result import AGREEMENT_TOLERANCE

# `scripts/nightly` looks for new examples, and for more of them.
N_PROBLEMS = 12 if settings.default is None or settings.default.derandomize else 400


@dataclass(frozen=True)
class Problem:
    """A classifier whose features are of a few types, each with `counts` features that cost as much."""

    counts: tuple[int, ...]
    chances: FloatArray  # P(first value | class) of each type, shape (2, n_types)
    prior: float
    threshold: float
    costs: tuple[float, ...]
    budget: float
    order: tuple[int, ...]  # the type of each feature

    @classmethod
    def random(cls, seed: int) -> Problem:
        rng = np.random.default_rng(seed)
        n_features, n_types = int(rng.integers(24, 37)), int(rng.integers(1, 4))
        ends = np.sort(rng.choice(np.arange(1, n_features), n_types - 1, replace=False))
        counts = np.diff([0, *ends, n_features])
        costs = (1.0,) * n_types if seed % 2 else tuple(rng.choice([0.5, 1.0, 2.0], n_types).tolist())
        order = rng.permutation(np.repeat(np.arange(n_types), counts))
        return cls(
            tuple(counts.tolist()),
            rng.uniform(0.05, 0.95, (2, n_types)),
            float(rng.uniform(0.2, 0.8)),
            float(rng.uniform(0.2, 0.8)),
            costs,
            float(rng.uniform(0.2, 0.8)) * float(counts @ costs),
            tuple(order.tolist()),
        )

    @property
    def classifier(self) -> tb.BayesianClassifier:
        tables = [np.stack([self.chances[:, t], 1.0 - self.chances[:, t]], axis=1) for t in self.order]
        model = tb.NaiveBayes([self.prior, 1.0 - self.prior], tables)
        return tb.BayesianClassifier(model, positive="0", threshold=self.threshold)

    def sums(self, counts: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return the log-odds of some features of each type, by how many have the first value, and their chances."""
        weights, masses = np.zeros(1), np.ones((2, 1))
        for t, n in enumerate(counts):
            ones = np.arange(n + 1)
            first, second = self.chances[:, t, None], 1.0 - self.chances[:, t, None]
            ratios = np.log(first[0] / first[1]), np.log(second[0] / second[1])
            own = np.array([math.comb(n, k) for k in ones]) * first**ones * second ** (n - ones)
            weights = np.add.outer(weights, ones * ratios[0] + (n - ones) * ratios[1]).ravel()
            masses = (masses[:, :, None] * own[:, None]).reshape(2, -1)
        return weights, masses

    def agreement(self, kept: tuple[int, ...]) -> float:
        """Return the agreement of a subset at its best threshold: each of its instances gets its likelier class."""
        weights, masses = self.sums(kept)
        rest, chances = self.sums(tuple(n - k for n, k in zip(self.counts, kept, strict=True)))
        order = np.argsort(rest)
        tails = np.concatenate([np.cumsum(chances[:, order][:, ::-1], axis=1)[:, ::-1], np.zeros((2, 1))], axis=1)
        needed = log_odds(self.threshold) - log_odds(self.prior) - TIE_TOLERANCE
        above = tails[:, np.searchsorted(rest[order], needed - weights)]
        signed = np.array([self.prior, 1.0 - self.prior]) @ (masses * (2.0 * above - 1.0))
        return float(0.5 * (1.0 + np.abs(signed).sum()))

    def best(self) -> float:
        """Return the highest agreement within the budget, of all counts to which nothing can be added."""
        found = 0.0
        for kept in itertools.product(*(range(n + 1) for n in self.counts)):
            left = self.budget * (1 + 1e-9) - math.fsum(k * cost for k, cost in zip(kept, self.costs, strict=True))
            more = (cost for k, n, cost in zip(kept, self.counts, self.costs, strict=True) if k < n)
            if 0 <= left < min(more, default=math.inf):
                found = max(found, self.agreement(kept))
        return found


@given(seed=st.integers(0, 2**32))
@settings(max_examples=N_PROBLEMS)
def test_a_proof_of_up_to_36_features_ends_with_what_counting_finds(seed: int) -> None:
    problem = Problem.random(seed)
    found = tb.trim(problem.classifier, problem.budget, [problem.costs[t] for t in problem.order])
    assert (found.optimal, found.may_go_on) == (True, False)
    assert found.agreement == pytest.approx(problem.best(), abs=AGREEMENT_TOLERANCE)
    kept = np.bincount([problem.order[i] for i in found.kept], minlength=len(problem.counts))
    assert found.agreement == pytest.approx(problem.agreement(tuple(kept.tolist())), abs=AGREEMENT_TOLERANCE)
    assert found.agreement <= found.upper_bound <= found.agreement + AGREEMENT_TOLERANCE


@pytest.mark.parametrize(
    ("counts", "chances", "kept"),
    [
        ((8, 28), [[0.88, 0.30], [0.10, 0.33]], (0, 21)),
        ((10, 26), [[0.26, 0.77], [0.57, 0.13]], (3, 15)),
        ((12, 23), [[0.83, 0.25], [0.26, 0.49]], (4, 21)),
    ],
)
def test_sums_of_many_equal_terms_are_as_exact_as_others(
    counts: tuple[int, int], chances: list[list[float]], kept: tuple[int, int]
) -> None:
    problem = Problem(counts, np.array(chances), 0.4, 0.5, (1, 1), sum(kept), (0,) * counts[0] + (1,) * counts[1])
    engine, agreement = LogOddsEngine(problem.classifier), problem.agreement(kept)
    first = (*range(kept[0]), *range(counts[0], counts[0] + kept[1]))
    last = (*range(counts[0] - kept[0], counts[0]), *range(sum(counts) - kept[1], sum(counts)))
    for subset in (first, last):
        found = engine.potential_agreement_of(subset), engine.best_cut(subset).agreement
        assert found == pytest.approx((agreement, agreement), abs=0.5 * AGREEMENT_TOLERANCE)


@given(size=st.integers(0, 2**18), value=st.floats(2.0**-40, 1.0))
@settings(max_examples=25)
def test_the_error_of_cumulative_sums_is_as_stated(size: int, value: float) -> None:
    found = cumulated(np.full(size, value))
    assert found.shape == (size,)
    levels = max(1, math.ceil(math.log(max(size, 2), 128)))
    for place in {0, size // 3, size - 1} if size else ():
        exact = (place + 1) * Fraction(value)
        assert abs(Fraction(float(found[place])) - exact) <= exact * 128 * levels / 2**53


@given(values=st.lists(st.floats(-1, 1), max_size=400))
@settings(max_examples=25)
def test_cumulative_sums_are_those_of_numpy(values: list[float]) -> None:
    assert cumulated(np.array(values)) == pytest.approx(np.cumsum(values), abs=1e-13)
