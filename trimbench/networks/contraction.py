"""Exact joint distributions of some variables of a network: variable elimination on dense tables, in slices."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.elimination_order import Plan, plan_slices, plan_whole
from trimbench.networks.evidence import checked_evidence, shown
from trimbench.networks.probability_tables import checked_names
from trimbench.networks.table_products import Factor, Scaled, joined, restricted, sum_out
from trimbench.networks.table_program import compiled

GIB = 2**30
# From this many operations on, starting the compiler pays off.
COMPILED_OPERATIONS = 2**29
NUMPY_AXES = 64


class ContractionTooLarge(ValueError):  # noqa: N818 - the name says what went wrong
    """The joint distribution cannot be computed within the limits on memory and work."""


def joint_distribution(
    network: BayesianNetwork,
    variables: Sequence[str],
    *,
    evidence: Mapping[str, str] | None = None,
    max_entries: int = 2**26,
    max_bytes: int = 2**32,
    max_operations: int = 2**37,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Return P(variables), or P(variables | evidence), exactly.

    Observed nodes are fixed at their state before anything else. Nodes that are not ancestors of `variables` or of
    observed nodes are left out; the others are summed out one by one in an order found by a bounded, deterministic
    search. Where a table would become too large, some variables are fixed at one value after
    another, which takes less memory and more operations.

    Parameters
    ----------
    network : BayesianNetwork
    variables : sequence of str
        Distinct nodes.
    evidence : mapping from node name to state name, optional
        The observed nodes, none of them among `variables`, and their states.
    max_entries : int
        Largest number of entries of a table, the result included (2**26 entries are 0.5 GiB).
    max_bytes : int
        Limit on all tables that exist at the same time.
    max_operations : int
        Limit on the work, in products of two numbers; 2**30 of them take about two seconds at most.
    n_threads : int
        Slices that are computed at the same time; the result is the same for any number.

    Returns
    -------
    ndarray of float64, one axis for each of `variables` in their order

    Raises
    ------
    ContractionTooLarge
        Before any work is done, when a limit cannot be met.
    ValueError
        When a variable is unknown or given twice, or the evidence is unknown, is among the variables or has
        probability zero.

    Examples
    --------
    >>> network = BayesianNetwork(
    ...     {"rain": ["yes", "no"], "wet": ["yes", "no"]},
    ...     {"wet": ["rain"]},
    ...     {"rain": [0.2, 0.8], "wet": [[0.9, 0.1], [0.3, 0.7]]},
    ... )
    >>> joint_distribution(network, ["wet"]).round(6).tolist()
    [0.42, 0.58]
    >>> joint_distribution(network, ["rain"], evidence={"wet": "yes"}).round(6).tolist()
    [0.428571, 0.571429]
    """
    names = checked_names(variables, "variables")
    for name in names:
        if name not in network.nodes:
            raise ValueError(f"variables must be among {shown(network.nodes)}, got {name!r}")
    observed = checked_evidence(network, evidence or {}, without=names)
    shape = tuple(network.cardinality(name) for name in names)
    if len(shape) > NUMPY_AXES:
        raise ContractionTooLarge(f"variables must be at most {NUMPY_AXES} (a table's axes), got {len(shape)}")
    relevant = _ancestors(network, [*names, *observed])
    # Variables with one state carry no information. Without them no table has more axes than numpy allows.
    many = [
        node
        for node in network.nodes
        if node in relevant and node not in observed and network.cardinality(node) > 1
    ]
    number = {node: i for i, node in enumerate(many)}
    sizes = [network.cardinality(node) for node in many]
    kept = [number[name] for name in names if name in number]
    scopes = [
        sum(1 << number[v] for v in (*network.parents(node), node) if v in number)
        for node in network.nodes
        if node in relevant
    ]
    plan = _affordable_plan(scopes, kept, sizes, len(names), max_entries, max_bytes, max_operations)
    rank = {variable: i for i, variable in enumerate((*plan.order, *kept))}
    factors = joined(
        (_factor(network, node, observed, number, rank) for node in network.nodes if node in relevant),
        scaled=bool(observed),
    )
    result = _sum_of_slices(factors, plan, kept, sizes, rank, n_threads, scaled=bool(observed))
    if observed:
        total = float(result.sum())
        if not total > 0.0:
            raise ValueError(f"evidence must have a positive probability, got {shown(evidence or {})} of probability 0")
        result /= total
    return result.reshape(shape)


def _sum_of_slices(
    factors: Sequence[Factor],
    plan: Plan,
    kept: Sequence[int],
    sizes: Sequence[int],
    rank: Mapping[int, int],
    n_threads: int,
    *,
    scaled: bool,
) -> NDArray[np.float64]:
    """Return the product of `factors` summed over the variables of the plan, up to a power of two if `scaled`."""
    slices = list(itertools.product(*(range(sizes[variable]) for variable in plan.fixed)))
    left = [variable for variable in kept if variable not in plan.fixed]
    if plan.operations >= COMPILED_OPERATIONS:
        program = compiled(factors, plan.order, plan.fixed, sizes, rank, scaled=scaled)
        local = threading.local()

        def part(values: tuple[int, ...]) -> Scaled:
            if not hasattr(local, "work"):
                local.work = program.workspace()
            return program.run(local.work, values)
    else:

        def part(values: tuple[int, ...]) -> Scaled:
            at = dict(zip(plan.fixed, values, strict=True))
            return sum_out([restricted(factor, at) for factor in factors], plan.order, rank, scaled=scaled)

    result = Scaled(np.zeros([sizes[variable] for variable in kept]))
    for values, found in zip(slices, _in_order(part, slices, n_threads), strict=True):
        # All parts get the larger exponent: what is lost then is smaller than the rounding of the result.
        exponent = max(found.exponent, result.exponent) if result.table.any() else found.exponent
        table = result.at(exponent)
        at = dict(zip(plan.fixed, values, strict=True))
        place = tuple(at.get(variable, slice(None)) for variable in kept)
        table[place] += found.at(exponent).reshape([sizes[variable] for variable in left])
        result = Scaled(table, exponent)
    return result.table


def _in_order(
    part: Callable[[tuple[int, ...]], Scaled], slices: Sequence[tuple[int, ...]], n_threads: int
) -> Iterator[Scaled]:
    """Yield the part of each slice in their order, so that the sum is the same for any number of threads."""
    if n_threads == 1 or len(slices) == 1:
        yield from map(part, slices)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # A few parts ahead, not all: each is as large as the result.
        ahead = deque(pool.submit(part, values) for values in slices[: 2 * n_threads])
        for values in [*slices[2 * n_threads :], None]:
            if values is None:
                break
            yield ahead.popleft().result()
            ahead.append(pool.submit(part, values))
        while ahead:
            yield ahead.popleft().result()


def _ancestors(network: BayesianNetwork, names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(network.parents(node))
    return found


def _affordable_plan(
    scopes: Sequence[int],
    kept: Sequence[int],
    sizes: Sequence[int],
    n_variables: int,
    max_entries: int,
    max_bytes: int,
    max_operations: int,
) -> Plan:
    """Return a plan within the limits, or raise ContractionTooLarge."""
    result_entries = 1
    for variable in kept:
        result_entries *= sizes[variable]
    way_out = (
        "use fewer variables (features), the sdd engine if most probabilities are 0 or 1, or raise the limits "
        "if there is memory and time"
    )
    if result_entries > max_entries or 8 * result_entries > max_bytes:
        raise ContractionTooLarge(
            f"the joint distribution of {n_variables} variables has {_size(result_entries)}, more than "
            f"max_entries = {_size(max_entries)} or max_bytes = {max_bytes / GIB:.3g} GiB; {way_out}"
        )
    whole = plan_whole(scopes, sum(1 << variable for variable in kept), sizes)
    plan = plan_slices(
        whole,
        scopes,
        sizes,
        max_entries=max_entries,
        max_held=max_bytes // 8 - result_entries,
        max_operations=max_operations,
    )
    if plan is None:
        raise ContractionTooLarge(
            f"the joint distribution of {n_variables} variables needs a table of {_size(whole.largest)} and "
            f"{whole.operations:.2g} operations, or more operations with smaller tables; the limits are max_entries = "
            f"{_size(max_entries)}, max_bytes = {max_bytes / GIB:.3g} GiB and max_operations = {max_operations:.2g}; "
            f"{way_out}"
        )
    return plan


def _size(entries: int) -> str:
    exponent = entries.bit_length() - 1
    count = f"2**{exponent}" if entries == 1 << exponent else f"{entries:.3g}"
    return f"{count} entries ({8 * entries / GIB:.3g} GiB)"


def _factor(
    network: BayesianNetwork, node: str, observed: Mapping[str, int], number: Mapping[str, int], rank: Mapping[int, int]
) -> Factor:
    scope = (*network.parents(node), node)
    table = network.table(node)[tuple(observed.get(v, slice(None)) for v in scope)]
    axes = [number[v] for v in scope if v in number]
    table = table.reshape([size for size in table.shape if size > 1])
    by_rank = sorted(range(len(axes)), key=lambda axis: rank[axes[axis]])
    return Factor(tuple(axes[axis] for axis in by_rank), np.array(table.transpose(by_rank), order="C"))


