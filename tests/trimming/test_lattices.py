"""The proof on lattices: bounds hold for every subset, and the search finds what enumeration finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming import kernels
from trimbench.trimming.engines.lattice import (
    Lattice,
    Limited,
    Polynomials,
    Spectra,
    Weights,
    decided_by_finer,
    decided_exactly,
    decided_roughly,
)
from trimbench.trimming.engines.log_odds import LogOddsEngine
from trimbench.trimming.problem import FREE, KEPT, REMOVED, Choice, Limits, checked_choice
from trimbench.trimming.result import AGREEMENT_TOLERANCE, SearchResult
from trimbench.trimming.search.lattice_search import LatticeSearch, _Node, _units_that_are

KINDS = (Spectra, Polynomials)


def random_classifier(seed: int, *, most: int = 7, threshold: float | None = None) -> tb.BayesianClassifier:
    """Return a classifier with ties, copies, zero probabilities or equal weights, as the seed has it."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(3, most + 1))
    cardinalities = rng.integers(1, 4, n_features).tolist() if seed % 3 == 0 else [2] * n_features
    level = float(rng.choice([0.02, 0.3, 0.5, 0.9, 1.0])) if threshold is None else threshold
    found = brute_force.random_classifier(rng, cardinalities, level, coarse=seed % 4 == 2)
    tables = list(found.tables)
    if seed % 5 == 1:
        for i in range(1, n_features):
            if tables[i].shape == tables[i - 1].shape and rng.random() < 0.6:
                tables[i] = tables[i - 1]
    if seed % 5 == 3:
        tables = [np.array([[0.8, 0.2], [0.2, 0.8]])] * n_features
    prior = found.prior if found.prior.all() else [0.5, 0.5]
    return tb.BayesianClassifier(tb.NaiveBayes(prior, tables), positive="0", threshold=level)


def lattices(classifier: tb.BayesianClassifier) -> list[Lattice]:
    weights = Weights.of(classifier)
    fine = decided_exactly(Lattice.of(weights, 0.002), compiled=False)
    middle = decided_by_finer(Lattice.of(weights, 0.02), fine)
    coarse = decided_by_finer(Lattice.of(weights, 0.1), middle)
    return [fine, middle, coarse, decided_roughly(Lattice.of(weights, 0.01))]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_losses_of_all_subsets_lie_within_their_bounds(seed: int) -> None:
    classifier = random_classifier(seed)
    everything = range(classifier.n_features)
    steps = lattices(classifier)
    laws = [kind(lattice, [(i,) for i in everything], (), ()) for lattice in steps[2:] for kind in KINDS]
    losses = {
        kept: 1.0 - brute_force.potential_agreement(classifier, kept)
        for kept in brute_force.all_subsets(classifier.n_features)
    }
    for kept, loss in losses.items():
        removed = [i for i in everything if i not in kept]
        bounds = [lattice.loss(kept, removed) for lattice in steps] + [law.loss(kept, removed) for law in laws]
        assert all(low - 1e-13 <= loss <= high + 1e-13 for low, high in bounds), (kept, loss, bounds)
        for law in laws if kept else []:
            for place, (low, high) in enumerate(zip(*law.losses_without_each(kept, removed, kept), strict=True)):
                smaller = losses[kept[:place] + kept[place + 1 :]]
                assert low - 1e-13 <= smaller <= high + 1e-13


@pytest.mark.parametrize("step", [0.002, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(6))
def test_compiled_masses_near_the_bound_are_those_of_numpy(
    monkeypatch: pytest.MonkeyPatch, seed: int, step: float
) -> None:
    decided = "trimbench.trimming.engines.lattice._best_decision"
    monkeypatch.setattr(decided, lambda _, first, masses: np.append(masses, first))
    lattice = Lattice.of(Weights.of(random_classifier(seed, threshold=0.4)), step)
    plain, compiled = (decided_exactly(lattice, compiled=one) for one in (False, True))
    assert compiled == pytest.approx(plain, abs=1e-13)


@pytest.mark.parametrize("multiply", [kernels.multiply_law, kernels.multiply_law.py_func])
@pytest.mark.parametrize("factors", [{0: 0.7, 3: 0.3}, {0: 0.2, 9: 0.8}, {0: 0.1, 3: 0.2, 5: 0.7}, {0: 1.0}])
def test_a_law_is_multiplied(multiply: Any, factors: dict[int, float]) -> None:
    cells, values = np.array([*factors]), np.array([*factors.values()])
    law, dense, product = np.array([0.4, 0.1, 0.2, 0.3]), np.zeros(cells[-1] + 1), np.full(30, np.nan)
    dense[cells] = values
    assert product[: multiply(law, product, cells, values)] == pytest.approx(np.convolve(law, dense), abs=1e-16)


def check(found: SearchResult, classifier: tb.BayesianClassifier, choice: Choice, best: float) -> None:
    kept = found.features
    assert choice.is_affordable(kept)
    assert choice.required <= set(kept)
    bought = {choice.unit_of[i] for i in kept}
    assert choice.features(bought) == kept  # units are bought whole
    alike = [(choice.costs[u], [classifier.tables[i].tolist() for i in unit]) for u, unit in enumerate(choice.units)]
    assert all(alike[v] != alike[u] or v in bought for u in bought - choice.required_units for v in range(u))
    assert found.agreement == pytest.approx(best, abs=2e-12)
    assert brute_force.potential_agreement(classifier, kept) == pytest.approx(best, abs=2e-12)
    assert found.upper_bound == pytest.approx(best, abs=2e-12)


@pytest.mark.parametrize("compiled", [False, True])
@given(seed=st.integers(0, 10**6), n_exact=st.sampled_from([0, 1, 3, 10**9, 10**9]))
@settings(max_examples=90)
def test_the_search_finds_what_enumeration_finds(compiled: bool, seed: int, n_exact: int) -> None:
    classifier = random_classifier(seed)
    options = brute_force.random_options(np.random.default_rng([seed, 1]), classifier.features)
    choice = checked_choice(classifier.features, **options)
    best = max(brute_force.potential_agreement(classifier, kept) for kept in brute_force.allowed_subsets(choice))
    in_time = iter(range(n_exact))  # so many exact values can be had

    def agreement_of(kept: Any) -> float | None:
        return None if next(in_time, None) is None else brute_force.potential_agreement(classifier, kept)

    with pytest.MonkeyPatch.context() as patch:
        if n_exact < 10**9:  # intervals are wide then, and often overlap
            patch.setattr("trimbench.trimming.search.lattice_search._STEPS", (0.8, 0.4, 0.2))
        search = LatticeSearch(classifier, choice, agreement_of, compiled=compiled)
    stops = range(1 + seed % 7, 400, 49) if seed % 3 == 0 else ()
    for limit in (*stops, None):
        found = search.run(Limits(evaluation_limit=limit))
        own = brute_force.potential_agreement(classifier, found.features)
        assert found.agreement <= own + 2e-12
        assert own <= best + 1e-12 <= found.upper_bound + 3e-12
        assert not found.proven or own >= best - 2e-12
        assert choice.is_affordable(found.features)
    if n_exact == 10**9:
        check(found, classifier, choice, best)


@given(seed=st.integers(0, 10**6), level=st.sampled_from([0.02, 0.1, 0.3, 2.0]), most=st.sampled_from([1, 10**6]))
@settings(max_examples=60)
def test_compiled_loops_go_through_the_nodes_of_the_search(seed: int, level: float, most: int) -> None:
    classifier = random_classifier(seed)
    options = brute_force.random_options(np.random.default_rng(seed), classifier.features)
    choice = checked_choice(classifier.features, **options)
    plain, compiled = (LatticeSearch(classifier, choice, None, compiled=one) for one in (False, True))
    laws: Any = compiled._laws
    assume(next(plain._steps, 0) is None)  # unless everything is affordable
    laws.prepare(plain._order, plain._costs, plain._copies)  # of equal losses, rounding decides which comes first
    plain._best = level + AGREEMENT_TOLERANCE
    ends: list[list[bytes]] = [[], []]
    waiting = [(0.0, bytes(len(plain._units)))]
    while waiting:
        for state, low, _ in plain._below(_Node(waiting[-1][0], 0, waiting.pop()[1])):
            if FREE not in state:
                ends[0].append(state)
            elif low < level:
                waiting.append((low, state))
    waiting = [(0.0, bytes(len(plain._units)))]
    while waiting:
        nodes, found, _ = laws.explore(laws, *waiting.pop(), Limited(compiled._left, level, most))
        waiting += nodes
        ends[1] += found
    losses = {}
    for state in ends[0]:
        kept, removed = (sorted(_units_that_are(what, state)) for what in (KEPT, REMOVED))
        losses[state] = laws.loss(kept, removed)[0]
        spectra, polynomials = (np.stack(law.losses_without_each(kept, removed, kept)) for law in (plain._laws, laws))
        assert spectra == pytest.approx(polynomials, abs=1e-9)
    assert {state for state in losses if losses[state] < level} <= {*ends[1]} <= losses.keys()
    assert len({*ends[1]}) == len(ends[1])


def test_a_proof_takes_as_many_evaluations_as_ever() -> None:
    for n_features, n_evaluations in ((10, 346), (12, 337), (14, 404)):
        rng = np.random.default_rng(n_features)
        classifier = brute_force.random_classifier(rng, [2] * n_features, 0.4)
        choice = checked_choice(classifier.features, n_features / 2, rng.choice([0.5, 1.0, 2.0], n_features).tolist())
        found = LatticeSearch(classifier, choice, None, compiled=True).run(Limits())
        assert found.n_evaluations == pytest.approx(n_evaluations, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_tails_of_two_halves_are_those_of_one_table(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    classifier = random_classifier(seed)
    kept = range(0, classifier.n_features, 3)
    tabled = LogOddsEngine(classifier)
    agreement, cut = tabled.potential_agreement_of(kept), tabled.best_cut(kept)
    monkeypatch.setattr("trimbench.trimming.engines.log_odds._MANY_LOOKUPS", 0)
    monkeypatch.setattr("trimbench.trimming.engines.log_odds._STEPS_OF_LOOKUP", np.inf)
    in_halves = LogOddsEngine(classifier)
    assert in_halves.potential_agreement_of(kept) == pytest.approx(agreement, abs=1e-13)
    found = in_halves.best_cut(kept)
    assert (found.agreement, found.low, found.high) == pytest.approx((cut.agreement, cut.low, cut.high), abs=1e-13)


def test_few_features_of_too_many_for_a_table_are_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = random_classifier(20, threshold=0.4)
    best = tb.trim(classifier, 2, engine="log_odds")
    monkeypatch.setattr("trimbench.trimming.by_model.MAX_ENTRIES", 1)
    monkeypatch.setattr("trimbench.trimming.search.lattice_search._MOST_INSTANCES", 1)
    found, agreement = tb.trim(classifier, 2), pytest.approx(best.agreement, abs=1e-12)
    assert (found.features, found.optimal, found.agreement) == (best.features, True, agreement)
    monkeypatch.setattr("trimbench.trimming.by_model._AS_LONG", 1e12)  # no exact value while others are searched
    found = tb.trim(classifier, 2, time_limit=60)
    assert (found.features, found.optimal, found.agreement) == (best.features, True, agreement)
    monkeypatch.setattr("trimbench.trimming.engines.log_odds._SECONDS_OF_STEP", 1e12)  # nor of the best
    found = tb.trim(classifier, 2)
    assert (found.features, found.optimal, found.may_go_on) == (best.features, True, False)
    assert found.agreement_interval[0] < best.agreement <= found.agreement_interval[1] <= found.upper_bound


def test_a_first_trim_of_24_features_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    tables = [np.array([[p, 1 - p], [q, 1 - q]]) for p, q in rng.uniform(0.05, 0.95, (24, 2))]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], tables), positive="0", threshold=0.5)
    monkeypatch.setattr("trimbench._numba.compiled", lambda function: pytest.fail("compiled"))
    monkeypatch.setitem(__import__("sys").modules, "trimbench.trimming.kernels", None)
    found = tb.trim(classifier, 20)
    assert found.optimal
    assert len(found.features) == 20
