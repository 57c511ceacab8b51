"""Exact joint distributions of some variables of a network: elimination orders, slices and contraction."""

from __future__ import annotations

import itertools
import math
import random
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.inference.products import (
    IN_LOGS,
    VANISHING,
    Factor,
    Scaled,
    compiled,
    joined,
    log_smallest,
    restricted,
    sum_out,
)
from trimbench.networks.values import checked_names, names_text, state_name

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
    search. If a table would become too large, some variables are fixed at one value after another, which takes less
    memory and more operations.

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
        Limit on the work, in multiplications; 2**30 of them take about two seconds at most.
    n_threads : int
        Number of slices that are computed at the same time; the result is the same for any number.

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
            raise ValueError(f"variables must be among {names_text(network.nodes)}, got {name!r}")
    observed = evidence_positions(network, evidence or {}, without=names)
    shape = tuple(network.cardinality(name) for name in names)
    if len(shape) > NUMPY_AXES:
        raise ContractionTooLarge(f"variables must be at most {NUMPY_AXES} (a table's axes), got {len(shape)}")
    relevant = relevant_nodes(network, [*names, *observed])
    # Variables with one state carry no information. Without them no table has more axes than numpy allows.
    many = [node for node in relevant if node not in observed and network.cardinality(node) > 1]
    number = {node: i for i, node in enumerate(many)}
    sizes = [network.cardinality(node) for node in many]
    kept = [number[name] for name in names if name in number]
    scopes = [sum(1 << number[v] for v in (*network.parents(node), node) if v in number) for node in relevant]
    plan = _affordable_plan(scopes, kept, sizes, len(names), max_entries, max_bytes, max_operations)
    rank = {variable: i for i, variable in enumerate((*plan.order, *kept))}
    factors = [_factor(network, node, observed, number, rank) for node in relevant]
    quick = observed and not plan.fixed and plan.operations <= QUICK_OPERATIONS + STEP_OPERATIONS * len(factors)
    if quick and sum(log_smallest(factor.table) for factor in factors) < VANISHING:
        with np.errstate(divide="ignore"):
            logs = [Factor(factor.variables, np.log(factor.table)) for factor in factors]
        found = sum_out(logs, plan.order, rank, scaled=False, arithmetic=IN_LOGS).table
        top = found.max()
        result = np.asarray(np.exp(found - top)) if np.isfinite(top) else np.zeros(found.shape)
    else:
        factors = joined(factors, scaled=bool(observed))
        slices = SlicedSum(factors, plan, tuple(kept), tuple(sizes), scaled=bool(observed))
        result = slices.total(n_threads, max_bytes=max_bytes)
    if observed:
        total = float(result.sum())
        if not total > 0.0:
            raise ValueError(f"evidence must have a positive probability, got 0 for {names_text(list(observed))}")
        result /= total
    return result.reshape(shape)


def evidence_positions(
    network: BayesianNetwork, evidence: Mapping[str, str], *, without: Collection[str] = ()
) -> dict[str, int]:
    """Return the position of each observed state among the states of its node.

    Raises TypeError if `evidence` is not a mapping, and ValueError if a node or a state is unknown, or a node of
    `without` is observed.
    """
    if not isinstance(evidence, Mapping):
        raise TypeError(
            f"evidence must be a mapping from node names to state names, got {type(evidence).__name__}; write "
            "{'node': 'state'}, or read a file with network.read_evidence"
        )
    observed = {}
    for node, given in evidence.items():
        if node not in network.nodes:
            raise ValueError(f"evidence must be on nodes among {names_text(network.nodes)}, got {node!r:.60}")
        state = state_name(given, network.states(node))
        if state not in network.states(node):
            raise ValueError(
                f"evidence on {node!r:.60} must be one of its states {names_text(network.states(node))}, got "
                f"{state!r:.60}"
            )
        if node in without:
            raise ValueError(
                f"evidence must leave the target, the features and all other asked variables free, got {node!r:.60}; "
                "take it out of one of them"
            )
        observed[node] = network.states(node).index(state)
    return observed


def relevant_nodes(network: BayesianNetwork, names: Sequence[str]) -> tuple[str, ...]:
    """Return some nodes and all their ancestors, in the order of the network."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(network.parents(node))
    return tuple(node for node in network.nodes if node in found)


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
    limits = {"max_entries": max_entries, "max_held": max_bytes // 8 - result_entries, "max_operations": max_operations}
    whole = plan_whole(scopes, sum(1 << variable for variable in kept), sizes)
    if whole.operations >= COMPILED_OPERATIONS:
        whole = plan_better(whole, scopes, sizes, max_operations)
    plan = plan_slices(whole, scopes, sizes, **limits)
    if plan is not None and plan.fixed and plan.operations >= COMPILED_OPERATIONS:
        # With some variables fixed, another order, with slices of its own, may be better.
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


# The order in which to sum variables out of a product of tables, and which to fix so that tables stay small.

# The search for an order is bounded by counted steps (about two seconds), never by the clock: the same network
# gives the same order on every machine.
SEARCH_STEPS = 2_000_000
MAX_TRIES = 60
# A product of two tables takes at least as long as this many multiplications.
STEP_OPERATIONS = 2**13
# A contraction of fewer operations takes less time than another try of the search.
QUICK_OPERATIONS = 2**22
# Tables of this size stay in the cache, and in memory that is used again: measured, a contraction with tables of 2**26
# entries takes about twice as long. Slices that small are made if they cost hardly any more operations. The compiled
# loop has less to do for each table, and gains more from small ones.
PREFERRED_ENTRIES, PREFERENCE = 2**22, 1.05
PREFERRED_ENTRIES_COMPILED, PREFERENCE_COMPILED = 2**20, 1.25
# From this many operations on, the compiler is worth starting, and a better order worth searching for. Each round of
# the search makes a fixed number of moves; the more operations are at stake and allowed, the more rounds, within
# limits. The search then takes less than a third of the time.
COMPILED_OPERATIONS = 2**30
MOVES = 100_000
OPERATIONS_A_ROUND = 2**32
MOST_ROUNDS = 30
# If the first round leaves more than this many times the allowed operations, it is the last: there is little hope.
HOPELESS = 2**5


@dataclass(frozen=True)
class Plan:
    """How a product of tables is summed.

    Attributes
    ----------
    order : tuple of int
        The variables to sum out, first to last.
    fixed : tuple of int
        The variables that are fixed at one value after another, in an outer loop.
    operations : int
        Multiplications over all slices; each input of a step counts as if it had `STEP_OPERATIONS` more entries.
    largest : int
        Entries of the largest table that is made.
    held : int
        Entries of all tables that exist at the same time, at most.
    """

    order: tuple[int, ...]
    fixed: tuple[int, ...]
    operations: int
    largest: int
    held: int


def members(variables: int) -> Iterator[int]:
    """Yield the variables in a set of bits, smallest first."""
    while variables:
        lowest = variables & -variables
        yield lowest.bit_length() - 1
        variables ^= lowest


def plan_whole(scopes: Sequence[int], kept: int, sizes: Sequence[int]) -> Plan:
    """Return the best plan found that fixes nothing.

    Parameters
    ----------
    scopes : sequence of int
        The variables of each table, as a set of bits.
    kept : int
        The variables that are not summed out, as a set of bits.
    sizes : sequence of int
        The cardinality of each variable.
    """
    plans: list[Plan] = []
    steps = 0
    while len(plans) < MAX_TRIES and steps < SEARCH_STEPS:
        # Two tries in three treat the kept variables as joined, since they meet in one table at the end.
        joined = [*scopes, kept] if len(plans) % 3 else scopes
        order, taken = _greedy_order(joined, kept, sizes, random.Random(len(plans)))
        steps += taken
        plans.append(measure(scopes, order, (), sizes))
        if plans[-1].operations <= QUICK_OPERATIONS:
            break
    return min(plans, key=lambda plan: (plan.operations, plan.largest))


def plan_better(plan: Plan, scopes: Sequence[int], sizes: Sequence[int], max_operations: int) -> Plan:
    """Return a plan with fewer operations and the same variables fixed, or `plan`, from a compiled local search.

    The arguments are those of `plan_slices`.
    """
    from trimbench.networks.inference.kernels import improve, room_for

    fixed = sum(1 << variable for variable in plan.fixed)
    order = np.array([variable for variable in plan.order if not fixed >> variable & 1], dtype=np.int64)
    if len(order) < 2:
        return plan
    lists = [list(members(scope & ~fixed)) for scope in scopes]
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    problem = (
        np.array([variable for variables in lists for variable in variables], dtype=np.int64),
        starts,
        np.array(sizes, dtype=np.float64),
        float(STEP_OPERATIONS),
        MOVES,
    )
    room = room_for(len(lists), len(sizes))
    best, fewest = order, math.inf
    rounds = 0
    while rounds < MOST_ROUNDS and rounds * OPERATIONS_A_ROUND < min(fewest, max_operations / 4):
        # Rounds start at the given order or, every other one, at the best so far.
        found = (best if rounds % 2 else order).copy()
        cost = improve(found, *problem, rounds, room)
        if cost < fewest:
            best, fewest = found, cost
        rounds += 1
        if fewest > HOPELESS * max_operations:
            break
    better = measure(scopes, [*best.tolist(), *(v for v in plan.order if fixed >> v & 1)], plan.fixed, sizes)
    return min(plan, better, key=lambda plan: (plan.operations, plan.largest))


def plan_slices(
    plan: Plan, scopes: Sequence[int], sizes: Sequence[int], *, max_entries: int, max_held: int, max_operations: int
) -> Plan | None:
    """Return `plan` with as many more variables fixed as the limits require, or None if they cannot be met.

    Parameters
    ----------
    plan : Plan
        The plan to start from.
    scopes, sizes
        As in `plan_whole`.
    max_entries, max_held, max_operations : int
        Limits on the three measures of a plan.
    """
    while plan.largest > max_entries or plan.held > max_held:
        finer = _fix_one_more(plan, scopes, sizes)
        if plan.operations > max_operations or finer is None:
            return None
        plan = finer
    if plan.operations > max_operations:
        return None
    is_compiled = plan.operations >= COMPILED_OPERATIONS
    preference = PREFERENCE_COMPILED if is_compiled else PREFERENCE
    most = min(max_operations, int(preference * plan.operations))
    while plan.largest > (PREFERRED_ENTRIES_COMPILED if is_compiled else PREFERRED_ENTRIES):
        finer = _fix_one_more(plan, scopes, sizes)
        if finer is None or finer.operations > most or finer.held > max_held:
            break
        plan = finer
    return plan


def _fix_one_more(plan: Plan, scopes: Sequence[int], sizes: Sequence[int]) -> Plan | None:
    """Fix the variable of the largest table that adds the fewest operations; None if none is left."""
    candidates = set(members(_largest_result(scopes, plan))) - set(plan.fixed)
    slices = [measure(scopes, plan.order, (*plan.fixed, variable), sizes) for variable in sorted(candidates)]
    return min(slices, key=lambda finer: (finer.operations, finer.largest, finer.held), default=None)


def measure(scopes: Sequence[int], order: Sequence[int], fixed: tuple[int, ...], sizes: Sequence[int]) -> Plan:
    """Return the plan that sums out `order`, its measures counted without making a table."""
    volume = _Volume(sizes)
    operations, largest, held = 0, 1, sum(volume(scope) for scope in _without(scopes, fixed))
    peak = held
    for inputs, result in _results(scopes, order, fixed):
        entries = volume(result)
        used = sum(volume(scope) for scope in inputs)
        joint = 0
        for scope in inputs:
            joint |= scope
        operations += (volume(joint) + STEP_OPERATIONS) * len(inputs)
        largest = max(largest, entries)
        # The sum so far, the product to be added to it, and a factor widened for fast multiplication.
        peak = max(peak, held + 3 * entries)
        held += entries - used
    slices = 1
    for variable in fixed:
        slices *= sizes[variable]
    return Plan(tuple(order), fixed, operations * slices, largest, peak)


class _Volume:
    """The number of entries of a table over a set of variables."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._binary = sum(1 << i for i, size in enumerate(sizes) if size == 2)

    def __call__(self, variables: int) -> int:
        entries = 1 << (variables & self._binary).bit_count()
        for variable in members(variables & ~self._binary):
            entries *= self._sizes[variable]
        return entries


def _without(scopes: Sequence[int], fixed: Sequence[int]) -> list[int]:
    gone = sum(1 << variable for variable in fixed)
    return [scope & ~gone for scope in scopes]


def _results(scopes: Sequence[int], order: Sequence[int], fixed: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Yield the tables that each step multiplies and the one that it makes; the last step joins the remaining ones."""
    live = _without(scopes, fixed)
    for variable in order:
        if variable in fixed:
            continue
        bit = 1 << variable
        inputs = [scope for scope in live if scope & bit]
        live = [scope for scope in live if not scope & bit]
        result = 0
        for scope in inputs:
            result |= scope
        live.append(result & ~bit)
        yield inputs, result & ~bit
    result = 0
    for scope in live:
        result |= scope
    yield live, result


def _largest_result(scopes: Sequence[int], plan: Plan) -> int:
    return max((result for _, result in _results(scopes, plan.order, plan.fixed)), key=int.bit_count)


def _greedy_order(scopes: Sequence[int], kept: int, sizes: Sequence[int], rng: random.Random) -> tuple[list[int], int]:
    """Return an order that sums out next the variable that joins the fewest pairs of others (min-fill).

    Ties, and slightly worse choices, are random. The second value is the number of steps that the search took.
    """
    neighbours = [0] * len(sizes)
    for scope in scopes:
        for variable in members(scope):
            neighbours[variable] |= scope & ~(1 << variable)
    steps = 0

    def fill(variable: int) -> int:
        nonlocal steps
        around = neighbours[variable]
        steps += around.bit_count()
        return sum((around & ~neighbours[other]).bit_count() - 1 for other in members(around))

    scores = {variable: fill(variable) for variable in range(len(sizes)) if not kept >> variable & 1}
    order = []
    while scores:
        lowest = min(scores.values())
        slip = 2 * (rng.random() < 0.15)
        chosen = rng.choice([variable for variable, score in scores.items() if score <= lowest + slip])
        around, bit = neighbours[chosen], 1 << chosen
        touched = around
        for other in members(around):
            neighbours[other] = (neighbours[other] | around) & ~bit & ~(1 << other)
            touched |= neighbours[other]
        del scores[chosen]
        order.append(chosen)
        for other in itertools.filterfalse(lambda variable: variable not in scores, members(touched)):
            scores[other] = fill(other)
    return order, steps


# Sums of products of tables, one slice after another or several at the same time.


@dataclass(frozen=True)
class SlicedSum:
    """A product of tables, to be summed over the variables of a plan.

    Attributes
    ----------
    factors : sequence of Factor
        Their axes are in the order of `rank`.
    plan : Plan
    kept : tuple of int
        The variables that are not summed out.
    sizes : tuple of int
        The cardinality of each variable.
    scaled : bool
        Whether the sum is wanted only up to a power of two, so that nothing vanishes, however small numbers become.
    """

    factors: Sequence[Factor]
    plan: Plan
    kept: tuple[int, ...]
    sizes: tuple[int, ...]
    scaled: bool

    @property
    def rank(self) -> dict[int, int]:
        """The place of each variable: first those that are summed out, in their order, then those that are kept."""
        return {variable: i for i, variable in enumerate((*self.plan.order, *self.kept))}

    def total(self, n_threads: int, *, max_bytes: int) -> NDArray[np.float64]:
        """Return the sum, one axis for each variable that is kept; the same for any number of threads.

        Fewer threads work if their tables would take more than `max_bytes`.
        """
        fixed, sizes = self.plan.fixed, self.sizes
        slices = list(itertools.product(*(range(sizes[variable]) for variable in fixed)))
        if self.plan.operations >= COMPILED_OPERATIONS:
            part, bytes_each = self._compiled_part()
            n_threads = max(1, min(n_threads, max_bytes // bytes_each))
        else:
            part = self._part
        result = Scaled(np.zeros([sizes[variable] for variable in self.kept]))
        left = [sizes[variable] for variable in self.kept if variable not in fixed]
        for values, found in zip(slices, _in_order(part, slices, n_threads), strict=True):
            # Both get the larger exponent: what one of them then loses is below the rounding of the other.
            exponent = max(found.exponent, result.exponent) if result.table.any() else found.exponent
            table = result.at(exponent)
            at = dict(zip(fixed, values, strict=True))
            table[tuple(at.get(variable, slice(None)) for variable in self.kept)] += found.at(exponent).reshape(left)
            result = Scaled(table, exponent)
        return result.table

    def _part(self, values: tuple[int, ...]) -> Scaled:
        """Return the sum for given values of the fixed variables."""
        at = dict(zip(self.plan.fixed, values, strict=True))
        factors = [restricted(factor, at) for factor in self.factors]
        return sum_out(factors, self.plan.order, self.rank, scaled=self.scaled)

    def _compiled_part(self) -> tuple[Callable[[tuple[int, ...]], Scaled], int]:
        """Return the compiled counterpart of `_part`, and how many bytes each thread needs for it."""
        program = compiled(self.factors, self.plan.order, self.plan.fixed, self.sizes, self.rank, scaled=self.scaled)
        local = threading.local()

        def part(values: tuple[int, ...]) -> Scaled:
            if not hasattr(local, "work"):
                local.work = program.workspace()
            return program.run(local.work, values)

        return part, 8 * program.size


def _in_order(
    part: Callable[[tuple[int, ...]], Scaled], slices: Sequence[tuple[int, ...]], n_threads: int
) -> Iterator[Scaled]:
    """Yield the parts of the slices in order, so that their sum is the same for any number of threads."""
    if n_threads == 1 or len(slices) == 1:
        yield from map(part, slices)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        # A few parts ahead, not all: each may be as large as the result.
        ahead: deque[Future[Scaled]] = deque()
        for values in slices:
            ahead.append(pool.submit(part, values))
            if len(ahead) == 2 * n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
