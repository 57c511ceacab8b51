"""Slices, threads and the compiled loop: against the same sums with NumPy, and orders against their measure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import networks
from tests.networks.test_contraction import enumerated, grid, problem
from trimbench.networks.inference import joint, kernels
from trimbench.networks.inference.joint import (
    ContractionTooLarge,
    Plan,
    SlicedSum,
    joint_distribution,
    measure,
    members,
    plan_better,
    plan_whole,
)
from trimbench.networks.inference.products import Factor, compiled

PLENTY = 2**60


@pytest.fixture
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems take the way of large ones: a local search for the order, and the compiled loop."""
    for module in (joint,):
        monkeypatch.setattr(module, "COMPILED_OPERATIONS", 0)
    monkeypatch.setattr(joint, "MOVES", 200)


def random_factors(rng: np.random.Generator, sizes: list[int], n_factors: int, scale: float) -> list[Factor]:
    """Tables over up to four variables, every variable in one of them, axes in the order of the variables."""
    scopes = [
        sorted(rng.choice(len(sizes), size=int(rng.integers(0, min(4, len(sizes)) + 1)), replace=False).tolist())
        for _ in range(n_factors)
    ]
    scopes += [[v] for v in range(len(sizes))]
    return [Factor(tuple(scope), scale * rng.random([sizes[v] for v in scope])) for scope in scopes]


def product_sum(factors: list[Factor], kept: list[int], sizes: list[int]) -> np.ndarray:
    """The sum, one combination of all values after another."""
    result = np.zeros([sizes[v] for v in kept])
    for values in itertools.product(*map(range, sizes)):
        result[tuple(values[v] for v in kept)] += np.prod(
            [f.table[tuple(values[v] for v in f.variables)] for f in factors]
        )
    return result


@given(seed=st.integers(0, 2**32), scaled=st.booleans(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_program_gives_the_sum(seed: int, scaled: bool, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    sizes = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=5))
    split = data.draw(st.integers(0, len(sizes)))
    order, kept = list(range(split)), list(range(split, len(sizes)))
    factors = random_factors(rng, sizes, data.draw(st.integers(0, 6)), data.draw(st.sampled_from([1.0, 1e-60])))
    fixed = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True, max_size=3))
    expected = product_sum(factors, kept, sizes)
    program = compiled(factors, order, fixed, sizes, {v: v for v in range(len(sizes))}, scaled=scaled)
    plan = Plan(tuple(order), tuple(fixed), 1, 1, 1)
    sliced = SlicedSum(factors, plan, tuple(kept), tuple(sizes), scaled=scaled)
    work = program.workspace()
    total = np.zeros_like(expected)
    for values in itertools.product(*(range(sizes[v]) for v in fixed)):
        at = dict(zip(fixed, values, strict=True))
        place = tuple(at.get(v, slice(None)) for v in kept)
        found = program.run(work, values)
        total[place] += np.ldexp(found.table, found.exponent)
        np.testing.assert_allclose(
            np.ldexp(found.table, found.exponent), sliced._part(values).at(0), rtol=1e-12, atol=1e-300
        )
    np.testing.assert_allclose(total, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.usefixtures("always_compiled")
@given(network=networks(), data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_compiled_way_gives_the_table_of_enumeration(network: tb.BayesianNetwork, data: st.DataObject) -> None:
    nodes = data.draw(st.permutations(network.nodes))
    cut = data.draw(st.integers(0, len(nodes)))
    variables, evidence = list(nodes[:cut]), {v: data.draw(st.sampled_from(network.states(v))) for v in nodes[cut:][:2]}
    whole = enumerated(network, [*variables, *evidence])
    expected = whole[(..., *(network.states(v).index(state) for v, state in evidence.items()))]
    if expected.sum() == 0:
        with pytest.raises(ValueError, match="evidence must have a positive probability"):
            joint_distribution(network, variables, evidence=evidence, n_threads=2)
        return
    for limit, n_threads in ((2**26, 1), (expected.size, 2)):
        table = joint_distribution(network, variables, evidence=evidence, max_entries=limit, n_threads=n_threads)
        np.testing.assert_allclose(table, expected / expected.sum(), rtol=1e-11, atol=1e-15)


def sliced_tables(n_threads: int) -> list[np.ndarray]:
    network = grid(6, sizes=(2, 3))
    evidence = {"3,2": network.states("3,2")[1]}
    return [
        joint_distribution(network, ["5,5", "0,0"], evidence=given, max_entries=2**8, n_threads=n_threads)
        for given in ({}, evidence)
    ]


@pytest.mark.parametrize("way", ["numpy", "compiled"])
def test_any_number_of_threads_gives_the_same_digits(way: str, request: pytest.FixtureRequest) -> None:
    expected = joint_distribution(grid(6, sizes=(2, 3)), ["5,5", "0,0"])
    if way == "compiled":
        request.getfixturevalue("always_compiled")
    alone = sliced_tables(1)
    np.testing.assert_allclose(alone[0], expected, rtol=1e-11)
    for n_threads in (2, 3):
        for one, other in zip(alone, sliced_tables(n_threads), strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.usefixtures("always_compiled")
def test_the_compiled_way_does_not_underflow() -> None:
    """Every observation has a probability of about 1e-6, and there are 150."""
    rare = [1e-6, 1 - 1e-6]
    names = [f"v{i}" for i in range(150)]
    seen = [f"s{i}" for i in range(150)]
    network = tb.BayesianNetwork(
        {name: ["0", "1"] for name in [*names, *seen]},
        {names[i]: [names[i - 1]] for i in range(1, 150)} | dict(zip(seen, ([name] for name in names), strict=True)),
        {name: [[0.9, 0.1], [0.3, 0.7]] if i else [0.5, 0.5] for i, name in enumerate(names)}
        | {name: [rare, [2e-6, 1 - 2e-6]] for name in seen},
    )
    message = np.ones(2)
    for _ in range(149):
        message = np.array([[0.9, 0.1], [0.3, 0.7]]) @ (message * [1.0, 2.0])
        message /= message.sum()
    expected = message * [1.0, 2.0]
    table = joint_distribution(network, ["v0"], evidence=dict.fromkeys(seen, "0"))
    np.testing.assert_allclose(table, expected / expected.sum(), rtol=1e-9)


def test_operations_are_those_that_a_plan_measures() -> None:
    scopes, kept, sizes = problem(5)
    rng = np.random.default_rng(0)
    sizes = [int(size) for size in rng.integers(2, 4, size=len(sizes))]
    free = [v for v in range(len(sizes)) if not kept >> v & 1]
    lists = [list(members(scope)) for scope in scopes]
    arguments = (
        np.concatenate(lists),
        np.cumsum([0, *map(len, lists)], dtype=np.int64),
        np.array(sizes, dtype=np.float64),
        float(joint.STEP_OPERATIONS),
    )
    room = kernels.room_for(len(lists), len(sizes))
    for _ in range(20):
        order = rng.permutation(free)
        expected = measure(scopes, order.tolist(), (), sizes).operations
        assert kernels.operations(order, *arguments, np.inf, room) == expected
        # The same function without the compiler, and with a limit that is too low.
        assert kernels.operations.py_func(order, *arguments, np.inf, room) == expected  # type: ignore[attr-defined]
        assert kernels.operations(order, *arguments, expected / 2, room) > expected / 2
    best, twin = order.copy(), order.copy()
    found = kernels.improve(best, *arguments, 300, 5, room)
    assert found < expected
    assert measure(scopes, best.tolist(), (), sizes).operations == found
    assert kernels.improve.py_func(twin, *arguments, 300, 5, room) == found  # type: ignore[attr-defined]
    assert best.tolist() == twin.tolist()


def test_a_better_plan_keeps_what_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MOVES", 2000)
    scopes, kept, sizes = problem(8)
    whole = plan_whole(scopes, kept, sizes)
    bad = measure(scopes, sorted(whole.order, key=lambda v: v * 37 % 64), (), sizes)
    assert bad.operations > whole.operations
    better = plan_better(bad, scopes, sizes, PLENTY)
    assert better.operations < bad.operations
    assert sorted(better.order) == sorted(bad.order)
    assert better == plan_better(bad, scopes, sizes, PLENTY)
    fixed = measure(scopes, bad.order, (9, 27), sizes)
    again = plan_better(fixed, scopes, sizes, PLENTY)
    assert again.operations < fixed.operations
    assert again == measure(scopes, again.order, (9, 27), sizes)
    assert sorted(again.order) == sorted(bad.order)


@pytest.mark.usefixtures("always_compiled")
def test_limits_hold_on_the_compiled_way_too() -> None:
    with pytest.raises(ContractionTooLarge, match=r"max_operations = 1e\+03"):
        joint_distribution(grid(6), ["0,0", "5,5"], max_entries=8, max_operations=1000, n_threads=2)
