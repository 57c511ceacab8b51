"""Exact joint distributions against enumeration, under limits; slices, threads and the compiled loop against NumPy."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import networks, random_network
from tests.networks.test_bayesian_network import lawn
from trimbench.networks.inference import joint, kernels
from trimbench.networks.inference.joint import (
    PREFERRED_ENTRIES,
    ContractionTooLarge,
    Plan,
    SlicedSum,
    joint_distribution,
    measure,
    members,
    plan_better,
    plan_slices,
    plan_whole,
)
from trimbench.networks.inference.products import Factor, compiled


def enumerated(network: tb.BayesianNetwork, variables: list[str], evidence: dict[str, str] | None = None) -> np.ndarray:
    """P(variables, evidence): the product of all tables, summed over all other variables."""
    number = {node: i for i, node in enumerate(network.nodes)}
    observed = evidence or {}
    operands: list[Any] = []
    for node in network.nodes:
        axes = (*network.parents(node), node)
        at = tuple(network.states(v).index(observed[v]) if v in observed else slice(None) for v in axes)
        operands += [network.table(node)[at], [number[v] for v in axes if v not in observed]]
    return np.asarray(np.einsum(*operands, [number[v] for v in variables]))


@pytest.fixture(params=["numpy", "compiled"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems also take the way of large ones: a local search for the order, and the compiled loop."""
    if request.param == "compiled":
        monkeypatch.setattr(joint, "COMPILED_OPERATIONS", 0)
        monkeypatch.setattr(joint, "MOVES", 200)


def grid(side: int, *, seed: int = 0, sizes: tuple[int, ...] = (2,)) -> tb.BayesianNetwork:
    """A square grid, each node with the one above and the one to its left as parents."""
    rng = np.random.default_rng(seed)
    names = [f"{i},{j}" for i in range(side) for j in range(side)]
    cardinality = {name: int(rng.choice(sizes)) for name in names}
    parents = {
        f"{i},{j}": [f"{a},{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
        for i in range(side)
        for j in range(side)
    }
    return random_network(rng, parents, cardinality)


def chain(length: int) -> tb.BayesianNetwork:
    parents = {f"v{i}": [f"v{i - 1}"] if i else [] for i in range(length)}
    return random_network(np.random.default_rng(1), parents, dict.fromkeys(parents, 3))


@pytest.mark.usefixtures("_way")
@given(network=networks(), data=st.data())
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_table_is_that_of_enumeration_under_the_smallest_limit_too(
    network: tb.BayesianNetwork, data: st.DataObject
) -> None:
    nodes = data.draw(st.permutations(network.nodes))
    cut = data.draw(st.integers(0, len(nodes)))
    variables = list(nodes[: data.draw(st.integers(int(cut == len(nodes)), cut))])
    evidence = {node: data.draw(st.sampled_from(network.states(node))) for node in nodes[cut:]}
    expected = enumerated(network, variables, evidence)
    if expected.sum() == 0:
        with pytest.raises(ValueError, match="evidence must have a positive probability, got "):
            joint_distribution(network, variables, evidence=evidence)
        return
    # With every other variable fixed no table is larger than the result.
    for limit, n_threads in ((2**26, 1), (expected.size, 2)):
        table = joint_distribution(network, variables, evidence=evidence, max_entries=limit, n_threads=n_threads)
        assert (table.dtype, table.shape) == (np.float64, expected.shape)
        np.testing.assert_allclose(table, expected / expected.sum(), rtol=1e-12, atol=1e-15)
    if expected.size > 1:
        with pytest.raises(ContractionTooLarge, match="more than max_entries"):
            joint_distribution(network, variables, evidence=evidence, max_entries=expected.size - 1)


def test_more_variables_than_letters_and_axes() -> None:
    network = chain(150)
    table = network.table("v0")[:, None] * np.linalg.multi_dot([network.table(f"v{i}") for i in range(1, 150)])
    np.testing.assert_allclose(joint_distribution(network, ["v0", "v149"]), table, rtol=1e-10)
    np.testing.assert_allclose(joint_distribution(network, ["v149", "v0"]), table.T, rtol=1e-10)


def test_variables_of_one_state_take_no_room() -> None:
    names = [f"v{i}" for i in range(64)]
    network = tb.BayesianNetwork(
        {name: ["x"] for name in names} | {"c": ["a", "b"]},
        {"c": names[:63]},
        {name: [1.0] for name in names} | {"c": np.array([0.25, 0.75]).reshape((1,) * 63 + (2,))},
    )
    assert joint_distribution(network, ["c"], max_entries=2).tolist() == [0.25, 0.75]
    assert joint_distribution(network, names).shape == (1,) * 64
    with pytest.raises(ContractionTooLarge, match=re.escape("variables must be at most 64 (a table's axes), got 65")):
        joint_distribution(network, [*names, "c"])


def test_barren_nodes_are_left_out() -> None:
    roots = [f"v{i}" for i in range(24)]
    network = random_network(np.random.default_rng(2), dict.fromkeys(roots, ()) | {"v24": roots[:14]})
    np.testing.assert_allclose(joint_distribution(network, ["v0"], max_entries=2), network.table("v0"), rtol=1e-14)
    assert float(joint_distribution(network, [], max_entries=1)) == 1.0


@pytest.mark.usefixtures("_way")
def test_slices_give_the_table_of_the_whole_and_threads_the_same_digits() -> None:
    network, variables = grid(6, sizes=(1, 2, 3)), ["5,5", "0,0", "2,3"]
    for evidence in ({}, {"3,2": network.states("3,2")[-1]}):
        expected = joint_distribution(network, variables, evidence=evidence)
        assert expected.sum() == pytest.approx(1.0, abs=1e-12)
        for max_entries in (32, 128):
            alone, *others = (
                joint_distribution(network, variables, evidence=evidence, max_entries=max_entries, n_threads=n_threads)
                for n_threads in (1, 2, 3)
            )
            np.testing.assert_allclose(alone, expected, rtol=1e-11)
            assert [other.tobytes() for other in others] == [alone.tobytes()] * 2


def problem(side: int) -> tuple[list[int], int, list[int]]:
    """The scopes of the grid's tables, two corners and the cardinalities."""
    network = grid(side)
    number = {node: i for i, node in enumerate(network.nodes)}
    scopes = [sum(1 << number[v] for v in (*network.parents(node), node)) for node in network.nodes]
    return scopes, 1 | 1 << number[f"{side - 1},{side - 1}"], [2] * side**2


def test_a_plan_keeps_its_limits_and_costs_what_it_says() -> None:
    scopes, kept, sizes = problem(8)
    whole = plan_whole(scopes, kept, sizes)
    assert whole == plan_whole(scopes, kept, sizes)
    assert not whole.fixed
    assert sorted(whole.order) == [i for i in range(64) if not kept >> i & 1]
    assert 2**7 <= whole.largest <= 2**14
    loose = {"max_entries": 2**40, "max_held": 2**40, "max_operations": 2**40}
    assert plan_slices(whole, scopes, sizes, **loose) == whole
    for limits in ({"max_entries": 16}, {"max_held": 500}, {"max_entries": 16, "max_held": 420}):
        plan = plan_slices(whole, scopes, sizes, **(loose | limits))
        assert plan is not None
        assert plan.fixed
        assert plan == measure(scopes, whole.order, plan.fixed, sizes)
        assert plan.largest <= limits.get("max_entries", whole.largest)
        assert plan.held <= limits.get("max_held", whole.held)
        tight = loose | limits | {"max_operations": plan.operations - 1}
        assert plan_slices(whole, scopes, sizes, **tight) is None
    assert plan_slices(whole, scopes, sizes, **(loose | {"max_held": 200})) is None


def test_large_tables_are_sliced_where_that_costs_nothing() -> None:
    """One table of 2**24 entries that all the others are part of: fixing a variable does not repeat any work."""
    scopes, sizes = [(1 << 24) - 1, 1 | 1 << 24], [2] * 25
    whole = plan_whole(scopes, 1 << 24, sizes)
    plan = plan_slices(whole, scopes, sizes, max_entries=2**30, max_held=2**30, max_operations=2**40)
    assert plan is not None
    assert whole.largest > PREFERRED_ENTRIES >= plan.largest
    assert plan.operations <= 1.05 * whole.operations


def test_memory_is_what_the_plan_says() -> None:
    network = grid(10)
    limit = 2**19
    # Loads, compiles and lets the coverage tool see all that is called.
    joint_distribution(grid(9), ["0,0", "8,8"], max_entries=2**16, max_bytes=limit)
    tracemalloc.start()
    try:
        table = joint_distribution(network, ["0,0", "9,9"], max_entries=2**17, max_bytes=limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.sum() == pytest.approx(1.0, abs=1e-12)
    assert peak > limit / 4
    assert peak < limit + 2**18  # and a quarter of a megabyte for the plan and the small tables


@pytest.mark.usefixtures("_way")
def test_a_refusal_names_the_sizes_the_limits_and_the_way_out() -> None:
    network, ends = grid(8), ["0,0", "7,7"]
    with pytest.raises(
        ContractionTooLarge,
        match=r"^the joint distribution of 2 variables needs a table of 2\*\*\d+ entries \([\d.e-]+ GiB\) and [\d.e+]+ "
        r"operations, or more operations with smaller tables; the limits are max_entries = 2\*\*3 entries "
        r"\(5\.96e-08 GiB\), max_bytes = 4 GiB and max_operations = 1e\+03; use fewer variables \(features\), the sdd "
        r"engine if most probabilities are 0 or 1, or raise the limits if there is memory and time$",
    ):
        joint_distribution(network, ends, max_entries=8, max_operations=1000)
    with pytest.raises(ContractionTooLarge, match=r"max_operations = 1e\+03"):
        joint_distribution(network, ends, max_operations=1000)
    with pytest.raises(ContractionTooLarge, match=r"max_bytes = 1\.86e-06 GiB"):
        joint_distribution(network, ends, max_bytes=2000, max_operations=2**24)
    with pytest.raises(
        ContractionTooLarge,
        match=re.escape(
            "the joint distribution of 64 variables has 2**64 entries (1.37e+11 GiB), more than max_entries = 2**26 "
            "entries (0.5 GiB) or max_bytes = 4 GiB; use fewer variables (features), the sdd engine"
        ),
    ):
        joint_distribution(network, network.nodes)
    with pytest.raises(ContractionTooLarge, match=re.escape("has 2**3 entries (5.96e-08 GiB), more than max_entries")):
        joint_distribution(network, network.nodes[:3], max_bytes=63)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (["rain", "rain"], "variables must be distinct, got 'rain' more than once"),
        (["snow"], "variables must be among ['rain', 'sprinkler', 'grass'], got 'snow'"),
        ("rain", "variables must be a sequence of strings, got the string 'rain'; put it in a list"),
        ([0], "variables must be non-empty strings, got 0"),
    ],
)
def test_variables_that_make_no_sense_are_refused(variables: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        joint_distribution(lawn(), variables)


def test_evidence_makes_a_wide_network_narrow() -> None:
    """Given the middle row of a grid its halves are independent, and the tables of both are small."""
    network = grid(11)
    evidence = {f"5,{j}": "1" for j in range(11)}
    ends = ["0,0", "10,10"]
    table = joint_distribution(network, ends, evidence=evidence)
    one, other = (joint_distribution(network, [end], evidence=evidence) for end in ends)
    np.testing.assert_allclose(table, np.multiply.outer(one, other), rtol=1e-12)
    with pytest.raises(ContractionTooLarge):
        joint_distribution(network, ends, max_entries=2**6, max_operations=2**22)
    joint_distribution(network, ends, evidence=evidence, max_entries=2**6, max_operations=2**22)


@pytest.mark.usefixtures("_way")
def test_much_evidence_does_not_underflow() -> None:
    """Hundreds of observations, each of a small probability: their product is far below the smallest float."""
    names, seen = [f"v{i}" for i in range(150)], [f"s{i}" for i in range(150)]
    steps, rare = [[0.9, 0.1], [0.3, 0.7]], [[1e-6, 1 - 1e-6], [2e-6, 1 - 2e-6]]
    network = tb.BayesianNetwork(
        {name: ["0", "1"] for name in [*names, *seen]},
        {names[i]: [names[i - 1]] for i in range(1, 150)} | {f"s{i}": [f"v{i}"] for i in range(150)},
        {name: steps if i else [0.5, 0.5] for i, name in enumerate(names)} | dict.fromkeys(seen, rare),
    )
    message = np.ones(2)
    for _ in range(149):
        message = np.array(steps) @ (message * [1.0, 2.0])
        message /= message.sum()
    expected = message * [1.0, 2.0]
    table = joint_distribution(network, ["v0"], evidence=dict.fromkeys(seen, "0"))
    np.testing.assert_allclose(table, expected / expected.sum(), rtol=1e-9)
    # The same in a single product.
    star = tb.BayesianNetwork(
        {name: ["a", "b"] for name in ("c", *seen)},
        {name: ["c"] for name in seen},
        {"c": [0.3, 0.7]} | {name: [[1e-4, 0.9999]] * 2 for name in seen},
    )
    table = joint_distribution(star, ["c"], evidence=dict.fromkeys(seen, "a"))
    np.testing.assert_allclose(table, [0.3, 0.7], rtol=1e-9)


@pytest.mark.parametrize(
    ("evidence", "kind", "message"),
    [
        ({"snow": "yes"}, ValueError, "evidence must be on nodes among ['rain', 'sprinkler', 'grass'], got 'snow'"),
        ({"rain": "some"}, ValueError, "evidence on 'rain' must be one of its states ['yes', 'no'], got 'some'"),
        ({"grass": "wet"}, ValueError, "must leave the target, the features and all other asked variables free, got "),
        (["rain"], TypeError, "evidence must be a mapping from node names to state names, got list"),
    ],
)
def test_evidence_that_makes_no_sense_is_refused(evidence: dict[str, str], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)) as caught:
        joint_distribution(lawn(), ["grass"], evidence=evidence)
    assert len(str(caught.value)) < 500


def random_factors(rng: np.random.Generator, sizes: list[int], n_factors: int, scale: float) -> list[Factor]:
    """Tables over up to four variables, every variable in one of them, axes in the order of the variables."""
    scopes = [
        sorted(rng.choice(len(sizes), size=int(rng.integers(0, min(4, len(sizes)) + 1)), replace=False).tolist())
        for _ in range(n_factors)
    ]
    scopes += [[v] for v in range(len(sizes))]
    return [Factor(tuple(scope), scale * rng.random([sizes[v] for v in scope])) for scope in scopes]


@given(seed=st.integers(0, 2**32), scaled=st.booleans(), data=st.data())
@settings(max_examples=40)
def test_the_program_gives_the_sum(seed: int, scaled: bool, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    sizes = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=5))
    split = data.draw(st.integers(0, len(sizes)))
    order, kept = list(range(split)), list(range(split, len(sizes)))
    factors = random_factors(rng, sizes, data.draw(st.integers(0, 6)), data.draw(st.sampled_from([1.0, 1e-60])))
    fixed = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True, max_size=3))
    operands: list[Any] = [part for factor in factors for part in (factor.table, list(factor.variables))]
    expected = np.asarray(np.einsum(*operands, kept))
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
    better = plan_better(bad, scopes, sizes, 2**60)
    assert better.operations < bad.operations
    assert sorted(better.order) == sorted(bad.order)
    assert better == plan_better(bad, scopes, sizes, 2**60)
    fixed = measure(scopes, bad.order, (9, 27), sizes)
    again = plan_better(fixed, scopes, sizes, 2**60)
    assert again.operations < fixed.operations
    assert again == measure(scopes, again.order, (9, 27), sizes)
    assert sorted(again.order) == sorted(bad.order)
