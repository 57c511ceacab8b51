"""Exact joint distributions of some variables of a network: variable elimination on dense tables, in slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.elimination_order import COMPILED_OPERATIONS, Plan, plan_better, plan_slices, plan_whole
from trimbench.networks.evidence import checked_evidence, shown
from trimbench.networks.probability_tables import checked_names
from trimbench.networks.sliced_sums import SlicedSum
from trimbench.networks.table_products import Factor, joined

GIB = 2**30
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
        node for node in network.nodes if node in relevant and node not in observed and network.cardinality(node) > 1
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
    slices = SlicedSum(factors, plan, tuple(kept), tuple(sizes), scaled=bool(observed))
    result = slices.total(n_threads, max_bytes=max_bytes)
    if observed:
        total = float(result.sum())
        if not total > 0.0:
            raise ValueError(f"evidence must have a positive probability, got {shown(observed)} with probability 0")
        result /= total
    return result.reshape(shape)


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
    limits = {
        "max_entries": max_entries,
        "max_held": max_bytes // 8 - result_entries,
        "max_operations": max_operations,
    }
    whole = plan_whole(scopes, sum(1 << variable for variable in kept), sizes)
    if whole.operations >= COMPILED_OPERATIONS:
        whole = plan_better(whole, scopes, sizes, max_operations)
    plan = plan_slices(whole, scopes, sizes, **limits)
    if plan is not None and plan.fixed and plan.operations >= COMPILED_OPERATIONS:
        # With some variables fixed another order may be better, and its slices other ones.
        again = plan_slices(plan_better(plan, scopes, sizes, max_operations), scopes, sizes, **limits)
        plan = plan if again is None or again.operations >= plan.operations else again
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
