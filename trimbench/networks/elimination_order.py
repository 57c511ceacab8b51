"""The order in which to sum variables out of a product of tables, and which to fix so that tables stay small.

A set of variables is an integer whose bit i stands for variable i.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

# The search for an order is bounded by counted steps (about two seconds), never by the clock: the same network
# gives the same order on every machine.
SEARCH_STEPS = 2_000_000
MAX_TRIES = 60
# A product of two tables takes at least as long as this many products of two numbers.
STEP_OPERATIONS = 2**13
# A contraction of fewer operations takes less time than another try of the search.
QUICK_OPERATIONS = 2**22
# Tables of this size stay near the processor and in memory that is used again: measured, a contraction with tables of
# 2**26 entries takes about twice as long. Slices that small are made if they cost hardly any operations more. The
# compiled loop has less to do for each table, and gains more from small ones.
PREFERRED_ENTRIES, PREFERENCE = 2**22, 1.05
PREFERRED_ENTRIES_COMPILED, PREFERENCE_COMPILED = 2**20, 1.25
# From this many operations on, the compiler is worth starting, and a better order worth searching for. Each round of
# the search is so many moves; the more operations are at stake and allowed, the more rounds, within limits. The search
# then takes less than a third of the time.
COMPILED_OPERATIONS = 2**30
MOVES = 100_000
OPERATIONS_A_ROUND = 2**32
MOST_ROUNDS = 30
# A first round that leaves this many times the operations that are allowed is the last: there is little hope.
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
        Products of two numbers, over all slices; a small table counts as one of `STEP_OPERATIONS` entries more.
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
    """Yield the variables in a set, smallest first."""
    while variables:
        lowest = variables & -variables
        yield lowest.bit_length() - 1
        variables ^= lowest


def plan_whole(scopes: Sequence[int], kept: int, sizes: Sequence[int]) -> Plan:
    """Return the best plan found that fixes nothing.

    Parameters
    ----------
    scopes : sequence of sets
        The variables of each table.
    kept : set
        The variables that are not summed out.
    sizes : sequence of int
        The cardinality of each variable.
    """
    plans: list[Plan] = []
    steps = 0
    while len(plans) < MAX_TRIES and steps < SEARCH_STEPS:
        # Two tries in three treat the kept variables as joined: they meet in one table at the end.
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
    from trimbench.networks.order_search import improve, room_for

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
        # The sum so far, the product to be added to it, and a factor that was widened to be multiplied quickly.
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
    """Yield the tables that each step multiplies and the one that it makes; the last step joins what is left."""
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
    """Sum out next the variable that joins the fewest pairs of others (min-fill), ties and slips at random.

    Returns the order and the number of steps that it took.
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
