"""The process that compiles one network with PySDD, which is imported only here.

Run as a program, with the process id of the parent and a memory limit in bytes as arguments, it reads a pickled
`Encoding` from its standard input and writes the arrays of a `Diagram` to its standard output.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.engines.sdd import (
    OUT_OF_MEMORY,
    Decisions,
    Diagram,
    Encoding,
    Fork,
    Group,
    Leaf,
    Step,
    evaluate,
    joint_diagram,
)

# Unused nodes are collected once there are more of them than this, and more than used ones.
_GARBAGE = 500_000


def compile_encoding(encoding: Encoding) -> Diagram:
    """Compile a network in this process, which the SDD library may kill; return the diagram of Pr(c, f), Pr(not c, f).

    Raises MemoryError if a table of the evaluation does not fit into memory.
    """
    from pysdd.sdd import SddManager, Vtree

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.vtree"
        path.write_text(encoding.vtree_text(), encoding="ascii")
        manager = SddManager.from_vtree(Vtree.from_file(str(path)))
    formula = _conjunction(manager, _formulas(manager, encoding.steps))
    circuit = _extract(formula, manager, encoding.vtree)
    return joint_diagram(circuit, evaluate(circuit))


def _formulas(manager: Any, steps: tuple[Step, ...]) -> list[Any]:
    """Return the formula of each node with indicators, in the order in which to conjoin them."""
    states: list[list[Any]] = []
    formulas: list[tuple[int, Any]] = []
    for step in steps:
        function = _functions(manager, step, [states[parent] for parent in step.parents])
        if not step.indicators:
            states.append(function)
        else:
            literals, values = _indicators(manager, step.indicators, len(function))
            formula = manager.false()
            for value, chosen in zip(values, function, strict=True):
                formula = formula | (value & chosen)
            formula.ref()
            formulas.append((step.rank, formula))
            states.append(literals)
        for node in states[-1]:
            node.ref()
        _tidy(manager)
    return [formula for _, formula in sorted(formulas, key=lambda item: item[0])]


def _indicators(manager: Any, variables: tuple[int, ...], n_states: int) -> tuple[list[Any], list[Any]]:
    """Return the literal that stands for each state of a node, and the assignment of all its variables."""
    literals = [manager.literal(variable) for variable in variables]
    if len(literals) == 1:
        binary = [literals[0], ~literals[0]][:n_states]
        return binary, binary
    assignments = []
    for state in range(n_states):
        assignment = manager.true()
        for other, literal in enumerate(literals):
            assignment = assignment & (literal if other == state else ~literal)
        assignments.append(assignment)
    return literals, assignments


def _functions(manager: Any, step: Step, parents: list[list[Any]]) -> list[Any]:
    """Return the formula of each state of a node, over the states of its parents and chance."""

    def drawn(literals: tuple[int, ...] | None) -> Any:
        node = manager.true() if literals is not None else manager.false()
        for literal in literals or ():
            node = node & manager.literal(literal)
        return node

    outcomes = [[drawn(literals) for literals in row] for row in step.outcomes]

    def choose(rows: NDArray[np.int64], place: int, state: int) -> Any:
        if (rows == rows.flat[0]).all():
            return outcomes[rows.flat[0]][state]
        node = manager.false()
        for value, parent in enumerate(parents[place]):
            if not parent.is_false():
                node = node | (parent & choose(rows[value], place + 1, state))
        return node

    n_states = len(step.outcomes[0])
    if n_states == 2:
        first = choose(step.rows, 0, 0)
        return [first, ~first]
    return [choose(step.rows, 0, state) for state in range(n_states)]


def _conjunction(manager: Any, formulas: list[Any]) -> Any:
    product = manager.true()
    product.ref()
    for formula in formulas:
        larger = product & formula
        larger.ref()
        product.deref()
        formula.deref()
        product = larger
        _tidy(manager)
    return product


def _tidy(manager: Any) -> None:
    if manager.dead_count() > max(_GARBAGE, manager.live_count()):
        manager.garbage_collect()


def _extract(formula: Any, manager: Any, vtree: tuple[Group | Fork, ...]) -> tuple[Leaf | Decisions, ...]:
    """Return the circuit as arrays, one entry for each part of the vtree.

    From the root down, each part is asked for the nodes that the parts above use: row i of a part is the i-th of them.
    """
    true = manager.true()
    asked: list[dict[int, tuple[int, Any]]] = [{} for _ in vtree]
    asked[-1][formula.id] = (0, formula)
    parts: list[Leaf | Decisions] = []
    for index in reversed(range(len(vtree))):
        part = vtree[index]
        nodes = [node for _, node in asked[index].values()]
        asked[index] = {}
        if isinstance(part, Group):
            parts.append(_leaf(part, nodes))
            continue
        left, right = asked[part.left], asked[part.right]
        elements: list[tuple[int, int, int]] = []
        for row, node in enumerate(nodes):
            for prime, sub in _elements(node, part.place, true):
                # Not `node` as the key: PySDD hashes and compares in Python.
                one = left.setdefault(prime.id, (len(left), prime))[0]
                other = right.setdefault(sub.id, (len(right), sub))[0]
                elements.append((row, one, other))
        table = np.array(elements, dtype=np.int32).reshape(-1, 3)
        parts.append(Decisions(part.left, part.right, len(nodes), table[:, 0], table[:, 1], table[:, 2]))
    return tuple(reversed(parts))


def _elements(node: Any, place: int, true: Any) -> list[tuple[Any, Any]]:
    """Return primes and subs of a node, seen from the vtree node at `place`."""
    if node.is_false():
        return []
    if node.is_true():
        return [(true, true)]
    own = node.vtree().position()
    if own == place:
        return [(prime, sub) for prime, sub in node.elements() if not sub.is_false()]
    return [(node, true)] if own < place else [(true, node)]


def _leaf(group: Group, nodes: list[Any]) -> Leaf:
    holds = np.array(
        [[_is_satisfied(node, dict(zip(group.variables, a, strict=True))) for a in group.assignments] for node in nodes]
    ).reshape(len(nodes), len(group.assignments))
    if group.feature is None:
        return Leaf(None, (holds @ group.weights)[:, None, :])
    return Leaf(group.feature, (holds * group.weights[:, 0])[:, :, None])


def _is_satisfied(node: Any, assignment: Mapping[int, bool]) -> bool:
    while node.is_decision():
        node = next(sub for prime, sub in node.elements() if _is_satisfied(prime, assignment))
    if node.is_literal():
        literal: int = node.literal
        return assignment[abs(literal)] == (literal > 0)
    return bool(node.is_true())


def _limit_memory(memory: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _end_with(parent: int) -> None:
    """End this process once the parent is gone: it may have been killed before it could stop this one."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _main() -> int:
    # The library prints to the standard output: the answer goes through a duplicate that only this function knows.
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
        encoding = pickle.load(sys.stdin.buffer)
        # The circuit is walked along the vtree, which may be as deep as the network has variables.
        sys.setrecursionlimit(10_000 + 4 * len(encoding.vtree))
        _limit_memory(int(sys.argv[2]))
        try:
            answer.write(compile_encoding(encoding).to_bytes())
        except MemoryError:
            return OUT_OF_MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(_main())
