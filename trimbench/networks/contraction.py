"""Exact joint distributions of some variables of a network: variable elimination on dense tables.

Every table keeps its axes in the order in which they are summed out, those that are kept last. The variable that is
summed out next is then always the first axis of the tables that have it: a sum over contiguous blocks, without a
transposed copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.elimination_order import Plan, plan_slices, plan_whole
from trimbench.networks.evidence import checked_evidence, shown
from trimbench.networks.probability_tables import checked_names

GIB = 2**30
# numpy multiplies a broadcast table in runs of the axes that both have; runs shorter than this are slow.
SHORTEST_RUN = 64
NUMPY_AXES = 64


class ContractionTooLarge(ValueError):  # noqa: N818 - the name says what went wrong
    """The joint distribution cannot be computed within the limits on memory and work."""


@dataclass(frozen=True)
class _Factor:
    """A table with its variables, one for each axis, in the order of elimination."""

    variables: tuple[int, ...]
    table: NDArray[np.float64]


def joint_distribution(
    network: BayesianNetwork,
    variables: Sequence[str],
    *,
    evidence: Mapping[str, str] | None = None,
    max_entries: int = 2**26,
    max_bytes: int = 2**32,
    max_operations: int = 2**37,
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
        Limit on the work, in products of two numbers; 2**30 of them take about two seconds.

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
    factors = [_factor(network, node, observed, number, rank) for node in network.nodes if node in relevant]
    result = np.zeros([sizes[variable] for variable in kept])
    for values in itertools.product(*(range(sizes[variable]) for variable in plan.fixed)):
        at = dict(zip(plan.fixed, values, strict=True))
        part = _sum_out([_restricted(factor, at) for factor in factors], plan, rank)
        result[tuple(at.get(variable, slice(None)) for variable in kept)] += _spread(part, kept, at)
    if observed:
        total = float(result.sum())
        if not total > 0.0:
            raise ValueError(
                f"evidence must have a positive probability, got {shown(observed.items())} of probability 0"
            )
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
) -> _Factor:
    scope = (*network.parents(node), node)
    table = network.table(node)[tuple(observed.get(v, slice(None)) for v in scope)]
    axes = [number[v] for v in scope if v in number]
    table = table.reshape([size for size in table.shape if size > 1])
    by_rank = sorted(range(len(axes)), key=lambda axis: rank[axes[axis]])
    return _Factor(tuple(axes[axis] for axis in by_rank), np.array(table.transpose(by_rank), order="C"))


def _restricted(factor: _Factor, at: Mapping[int, int]) -> _Factor:
    if not at.keys() & set(factor.variables):
        return factor
    index = tuple(at.get(variable, slice(None)) for variable in factor.variables)
    rest = tuple(variable for variable in factor.variables if variable not in at)
    return _Factor(rest, np.array(factor.table[index], order="C"))


def _sum_out(factors: Sequence[_Factor], plan: Plan, rank: Mapping[int, int]) -> _Factor:
    """Return the product of `factors`, summed over the variables of the plan that are not fixed."""
    # A factor waits for the first of its variables, which stands on its first axis.
    waiting: dict[int | None, list[_Factor]] = {}
    for factor in factors:
        waiting.setdefault(factor.variables[0] if factor.variables else None, []).append(factor)
    for variable in plan.order:
        inputs = waiting.pop(variable, None)
        if inputs is None:  # it is fixed
            continue
        result = _summed_product(inputs, rank)
        waiting.setdefault(result.variables[0] if result.variables else None, []).append(result)
    return _product(list(itertools.chain.from_iterable(waiting.values())), rank)


def _summed_product(factors: Sequence[_Factor], rank: Mapping[int, int]) -> _Factor:
    """Return the product of `factors`, summed over the first axis that they all have."""
    if len(factors) == 1:
        return _Factor(factors[0].variables[1:], np.asarray(factors[0].table.sum(axis=0)))
    blocks = (
        _product([_Factor(factor.variables[1:], np.asarray(factor.table[value])) for factor in factors], rank)
        for value in range(len(factors[0].table))
    )
    total = next(blocks)
    table = total.table
    for block in blocks:
        table = np.add(table, block.table, out=table if table.ndim else None)
    return _Factor(total.variables, np.asarray(table))


def _product(factors: Sequence[_Factor], rank: Mapping[int, int]) -> _Factor:
    """Return the product of `factors`, small ones first, so that only the last step is as large as the result."""
    by_size = sorted(factors, key=lambda factor: factor.table.size)
    return reduce(lambda one, other: _times(one, other, rank), by_size, _Factor((), np.ones(())))


def _times(one: _Factor, other: _Factor, rank: Mapping[int, int]) -> _Factor:
    sizes = dict(zip((*one.variables, *other.variables), (*one.table.shape, *other.table.shape), strict=True))
    variables = tuple(sorted(sizes, key=rank.__getitem__))
    run: list[int] = []
    length = 1
    for variable in reversed(variables):
        if length >= SHORTEST_RUN:
            break
        run.append(variable)
        length *= sizes[variable]
    tables = (_aligned(factor, variables, {v: sizes[v] for v in run}) for factor in (one, other))
    return _Factor(variables, np.asarray(np.multiply(*tables)))


def _aligned(factor: _Factor, variables: Sequence[int], widened: Mapping[int, int]) -> NDArray[np.float64]:
    """Return the factor's table with an axis for each of `variables`; those of `widened` get their size."""
    has = dict(zip(factor.variables, factor.table.shape, strict=True))
    table = factor.table.reshape([has.get(variable, 1) for variable in variables])
    if not has:
        return table
    for axis, variable in enumerate(variables):
        if variable in widened and variable not in has:
            table = np.repeat(table, widened[variable], axis=axis)
    return table


def _spread(part: _Factor, kept: Sequence[int], at: Mapping[int, int]) -> NDArray[np.float64]:
    """Return the table of a slice, its axes those of `kept` that are not fixed."""
    has = dict(zip(part.variables, part.table.shape, strict=True))
    return part.table.reshape([has.get(variable, 1) for variable in kept if variable not in at])
