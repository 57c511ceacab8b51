"""Algorithm 1 against a transcription that computes every probability from scratch, in fractions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench.papers.trimming.table6 import search_nodes, trim_literally

Instance = tuple[int, ...]
Joint = dict[Instance, tuple[Fraction, Fraction]]


class Transcription:
    """Algorithm 1 line by line; costs are 1."""

    def __init__(self, joint: Joint, threshold: Fraction, order: Sequence[int]) -> None:
        self.joint, self.threshold, self.order = joint, threshold, order
        self.positive = {f: p / (p + n) >= threshold for f, (p, n) in joint.items()}
        self.best: frozenset[int] | None = None
        self.agreement = Fraction(-1)
        self.maa_of: dict[frozenset[int], Fraction] = {}
        self.mpa_of: dict[frozenset[int], Fraction] = {}
        self.calls = 0

    def groups(self, kept: frozenset[int]) -> dict[Instance, list[Instance]]:
        found: dict[Instance, list[Instance]] = {}
        for f in self.joint:
            found.setdefault(tuple(f[i] for i in sorted(kept)), []).append(f)
        return found

    def maa(self, kept: frozenset[int]) -> Fraction:
        """The highest agreement over all thresholds that differ in what they accept."""
        groups = self.groups(kept)
        posterior = {}
        for part, members in groups.items():
            p, n = (sum((self.joint[f][c] for f in members), Fraction()) for c in (0, 1))
            posterior[part] = p / (p + n)
        levels = [*posterior.values(), Fraction(2)]
        return max(
            sum(
                (
                    sum(self.joint[f], Fraction(0))
                    for part, members in groups.items()
                    for f in members
                    if self.positive[f] == (posterior[part] >= level)
                ),
                Fraction(0),
            )
            for level in levels
        )

    def mpa(self, kept: frozenset[int]) -> Fraction:
        total = Fraction(0)
        for members in self.groups(kept).values():
            masses = [sum((sum(self.joint[f]) for f in members if self.positive[f] == c), Fraction(0)) for c in (0, 1)]
            total += max(masses)
        return total

    def trim(self, included: frozenset[int], excluded: frozenset[int], budget: int) -> None:
        features = frozenset(self.order)
        if budget >= 0:
            self.calls += 1
            m = self.maa_of.setdefault(included, self.maa(included))
            if m > self.agreement:
                self.agreement, self.best = m, included
        undecided = [f for f in self.order if f not in included | excluded]
        if undecided and budget >= 1:
            self.calls += 1
            m = self.mpa_of.setdefault(features - excluded, self.mpa(features - excluded))
            if m <= self.agreement:
                return
            feature = undecided[0]
            self.trim(included | {feature}, excluded, budget - 1)
            self.trim(included, excluded | {feature}, budget)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Fraction, list[list[list[Fraction]]], int, list[int], Fraction]:
    def distribution(size: int) -> list[Fraction]:
        parts = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
        return [Fraction(part, sum(parts)) for part in parts]

    n = draw(st.integers(1, 4))
    tables = []
    for _ in range(n):
        size = draw(st.integers(2, 3))
        tables.append([distribution(size), distribution(size)])
    prior = distribution(2)[0]
    threshold = Fraction(draw(st.sampled_from([1, 3, 5, 7, 9])), 10)
    return prior, tables, draw(st.integers(0, n)), draw(st.permutations(range(n))), threshold


@given(problem=problems())
@settings(max_examples=60)
def test_the_search_is_the_printed_one(
    problem: tuple[Fraction, list[list[list[Fraction]]], int, list[int], Fraction],
) -> None:
    prior, tables, budget, order, threshold = problem
    joint: Joint = {}
    for f in itertools.product(*(range(len(table[0])) for table in tables)):
        masses = [prior, 1 - prior]
        for value, table in zip(f, tables, strict=True):
            masses = [mass * column[value] for mass, column in zip(masses, table, strict=True)]
        joint[f] = (masses[0], masses[1])
    # On the threshold itself, rounding decides.
    assume(all(p != threshold * (p + n) for p, n in joint.values()))
    expected = Transcription(joint, threshold, order)
    expected.trim(frozenset(), frozenset(), budget)
    floats = [[[float(p) for p in column] for column in table] for table in tables]
    model = tb.NaiveBayes([float(prior), float(1 - prior)], floats)
    classifier = tb.BayesianClassifier(model, positive=model.class_names[0], threshold=float(threshold))
    found = trim_literally(classifier, budget, order)
    assert found.agreement == pytest.approx(float(expected.agreement), abs=1e-12)
    assert frozenset(found.features) == expected.best
    # Each set of included features appears once after an inclusion, each of remaining ones once after an exclusion.
    assert found.n_evaluations == len(expected.maa_of) + len(expected.mpa_of)
    assert found.n_evaluations_repeated == expected.calls
    whole = trim_literally(classifier, budget, order, prune_ties=False)
    assert whole.agreement == pytest.approx(found.agreement, abs=1e-12)
    assert whole.n_evaluations >= found.n_evaluations
    assert found.agreement == pytest.approx(tb.trim(classifier, budget).agreement, abs=1e-12)


def figure_2(included: tuple[int, ...], excluded: tuple[int, ...]) -> float:
    """Values of the kind that Figure 2 draws: the best is 0.97, for F1 and F3."""
    return {(): 0.6, (0,): 0.8, (0, 1): 0.9, (0, 2): 0.97}[included]


def test_the_search_of_figure_2() -> None:
    costs = [0.5, 1.0, 1.0, 2.0]
    bounds = {(): 1.0, (1,): 0.99, (0,): 0.95}
    nodes = list(search_nodes(range(4), costs, 1.5, figure_2, bounds.__getitem__))
    assert [(node.included, node.excluded) for node in nodes] == [
        ((), ()),
        ((0,), ()),
        ((0, 1), ()),
        ((0,), (1,)),
        ((0, 2), (1,)),
        ((0,), (1, 2)),
        ((), (0,)),
    ]
    last = nodes[-1]
    # "We backtrack the search after excluding F1, because the upper bound for subsets of F2, F3, F4 is 0.95", though
    # they cost 4.0; no node below it is visited, and no other branch ends by its bound.
    assert (last.bound, last.agreement, last.best, last.pruned) == (0.95, 0.97, (0, 2), True)
    assert sum(costs[1:]) == 4.0
    assert [node.pruned for node in nodes[:-1]] == [False] * 6
    # F4 costs more than what F1 leaves, so that no bound is needed there.
    assert nodes[5].bound is None


def test_a_feature_beyond_the_budget_has_no_agreement() -> None:
    nodes = list(search_nodes([0, 1], [3.0, 1.0], 2.0, lambda kept, _: 0.5 + 0.1 * len(kept), lambda _: 1.0))
    assert [(node.included, node.achieved) for node in nodes] == [
        ((), 0.5),
        ((0,), None),
        ((), 0.5),
        ((1,), 0.6),
        ((), 0.5),
    ]
