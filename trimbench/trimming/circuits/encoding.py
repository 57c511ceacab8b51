"""A Bayesian network as a propositional formula for the SDD compiler.

Chance is represented by independent Boolean variables, so that each node becomes a function of its parents and of
chance: a row (p1, p2, ..., pk) of its table is drawn by k - 1 chance variables, the first of which says whether the
first state is taken, the second whether the second is taken if the first is not, and so on. States of probability 0
take no variable, nor does a row with a single possible state, and equal rows of one table share theirs, for only one
row of a table is in use at a time.

The class, the features and hidden nodes with a random row have indicator variables: one for a binary node, one for each
state of another. Roots and nodes that are determined by their parents need none: the compiler substitutes their
function for the node. So a network of logic gates is compiled over its inputs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.elimination_order import members, plan_whole


@dataclass(frozen=True, eq=False)
class Step:
    """A node as a function of its parents and of chance.

    Attributes
    ----------
    parents : tuple of int
        Positions of the parents' steps.
    rows : ndarray of int, one axis for each parent
        Which entry of `outcomes` holds for each parent instance.
    outcomes : tuple over rows of tuples over states
        The chance literals whose conjunction draws the state; None for a state of probability 0.
    indicators : tuple of int
        Variables of the node: none, one (true in state 0), or one for each of three or more states.
    rank : int
        The formulas of nodes with indicators are conjoined in this order.
    """

    parents: tuple[int, ...]
    rows: NDArray[np.int64]
    outcomes: tuple[tuple[tuple[int, ...] | None, ...], ...]
    indicators: tuple[int, ...]
    rank: int


@dataclass(frozen=True, eq=False)
class Group:
    """Variables that stay together in the vtree, and what their possible assignments weigh.

    Attributes
    ----------
    weights : ndarray of shape (n_assignments, 1 or 2)
        One column, or one for the positive and one for the negative class.
    feature : int or None
        Position of the feature whose states the assignments are: they are then kept apart instead of summed.
    is_indicator : bool
        Whether the assignments are the states of a node; else the variable is one of chance.
    """

    variables: tuple[int, ...]
    assignments: tuple[tuple[bool, ...], ...]
    weights: NDArray[np.float64]
    feature: int | None = None
    is_indicator: bool = True


@dataclass(frozen=True)
class Fork:
    """An inner node of the vtree.

    Attributes
    ----------
    left, right : int
        Positions of its children in the list of all parts.
    place : int
        In-order position among the nodes of the vtree.
    """

    left: int
    right: int
    place: int


@dataclass(frozen=True, eq=False)
class Encoding:
    """The input of the compiler: plain data without PySDD objects.

    Attributes
    ----------
    steps : tuple of Step
        Parents before children.
    vtree : tuple of Group and Fork
        Children before parents; the last part is the root.
    """

    n_variables: int
    steps: tuple[Step, ...]
    vtree: tuple[Group | Fork, ...]

    def vtree_text(self) -> str:
        """Return the vtree in the file format of the SDD library."""
        lines: list[str] = []

        def add(line: str) -> int:
            kind, rest = line.split(" ", 1)
            lines.append(f"{kind} {len(lines)} {rest}")
            return len(lines) - 1

        roots: list[int] = []
        for part in self.vtree:
            if isinstance(part, Fork):
                roots.append(add(f"I {roots[part.left]} {roots[part.right]}"))
                continue
            root = add(f"L {part.variables[-1]}")
            for variable in reversed(part.variables[:-1]):
                root = add(f"I {add(f'L {variable}')} {root}")
            roots.append(root)
        return "\n".join([f"vtree {len(lines)}", *lines, ""])


def encode(
    network: BayesianNetwork,
    target: str,
    positive: Collection[str],
    features: Sequence[str],
    evidence: Mapping[str, str] | None = None,
) -> Encoding:
    """Encode the joint distribution of a class, some other nodes, the features, and the evidence.

    Their ancestors are encoded with them; all other nodes are left out. `positive` holds the positive states.
    """
    evidence = evidence or {}
    nodes = relevant_nodes(network, [target, *features, *evidence])
    number = {node: i for i, node in enumerate(nodes)}
    scopes = [1 << i | sum(1 << number[parent] for parent in network.parents(node)) for i, node in enumerate(nodes)]
    order = plan_whole(scopes, 0, [network.cardinality(node) for node in nodes]).order
    turn = {i: place for place, i in enumerate(order)}
    first = [min(members(scope), key=turn.__getitem__) for scope in scopes]
    groups: list[list[Group]] = [[] for _ in nodes]
    steps = []
    n_variables = 0

    def fresh() -> int:
        nonlocal n_variables
        n_variables += 1
        return n_variables

    for i, node in enumerate(nodes):
        rows, distinct = _rows(network.table(node))
        outcomes = []
        for row in distinct:
            literals, chances = _draw(row, fresh)
            outcomes.append(literals)
            groups[first[i]].extend(chances)
        indicators: tuple[int, ...] = ()
        seen = node == target or node in features or node in evidence
        if seen or (len(distinct) > 1 and bool((distinct.max(axis=1) < 1.0).any())):
            cardinality = network.cardinality(node)
            indicators = tuple(fresh() for _ in range(1 if cardinality <= 2 else cardinality))
            feature = features.index(node) if node in features else None
            weights = np.ones((cardinality, 1))
            if node == target:
                weights = np.array(
                    [[float(state in positive), float(state not in positive)] for state in network.states(node)]
                )
            if node in evidence:
                weights = np.array([[float(state == evidence[node])] for state in network.states(node)])
            # The node's own variables on the left: below each of their values, the rest falls apart.
            groups[i].insert(0, Group(indicators, _assignments(cardinality), weights, feature))
        parents = tuple(number[parent] for parent in network.parents(node))
        steps.append(Step(parents, rows, tuple(outcomes), indicators, turn[first[i]]))
    return Encoding(n_variables, tuple(steps), _vtree(order, scopes, groups))


def relevant_nodes(network: BayesianNetwork, wanted: Iterable[str]) -> tuple[str, ...]:
    """Return some nodes and all their ancestors, parents before children."""
    found: dict[str, None] = {}
    stack = [(node, False) for node in wanted]
    while stack:
        node, parents_done = stack.pop()
        if node in found:
            continue
        if parents_done:
            found[node] = None
            continue
        stack.append((node, True))
        stack.extend((parent, False) for parent in network.parents(node))
    return tuple(found)


def _rows(table: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the distinct rows of a table, and which of them each parent instance has."""
    distinct, which = np.unique(table.reshape(-1, table.shape[-1]), axis=0, return_inverse=True)
    return which.reshape(table.shape[:-1]).astype(np.int64), distinct


def _draw(row: NDArray[np.float64], fresh: Callable[[], int]) -> tuple[tuple[tuple[int, ...] | None, ...], list[Group]]:
    """Return the chance literals that draw each state of a row, and their variables."""
    possible = np.flatnonzero(row > 0)
    literals: list[tuple[int, ...] | None] = [None] * row.size
    groups: list[Group] = []
    before: tuple[int, ...] = ()
    for place, state in enumerate(possible[:-1]):
        variable = fresh()
        # Both weights as quotients of sums: 1 - weight would lose digits where the weight is close to 1.
        weights = np.array([row[state], row[possible[place + 1 :]].sum()])
        groups.append(Group((variable,), ((True,), (False,)), (weights / weights.sum())[:, None], is_indicator=False))
        literals[state] = (*before, variable)
        before = (*before, -variable)
    literals[possible[-1]] = before
    return tuple(literals), groups


def _assignments(cardinality: int) -> tuple[tuple[bool, ...], ...]:
    """Return what the indicators of a node are in each of its states."""
    if cardinality <= 2:
        return ((True,), (False,))[:cardinality]
    return tuple(tuple(i == state for i in range(cardinality)) for state in range(cardinality))


def _vtree(order: Sequence[int], scopes: Sequence[int], groups: Sequence[Sequence[Group]]) -> tuple[Group | Fork, ...]:
    """Return a vtree that follows the bucket tree of an elimination order.

    What is below a node of the network in the bucket tree touches the rest only through the variables of one bucket.
    """
    parts: list[Group | Fork] = []

    def fork(left: int, right: int) -> int:
        parts.append(Fork(left, right, 0))
        return len(parts) - 1

    def join(trees: list[int]) -> list[int]:
        while len(trees) > 1:
            odd = trees[len(trees) // 2 * 2 :]
            trees = [fork(*pair) for pair in zip(trees[::2], trees[1::2], strict=False)] + odd
        return trees

    turn = {node: place for place, node in enumerate(order)}
    pending: list[list[int]] = [[] for _ in order]
    live = list(scopes)
    roots: list[int] = []
    for node in order:
        own = range(len(parts), len(parts) + len(groups[node]))
        parts.extend(groups[node])
        # A node's indicators come first among its groups. They go to the left: given its state, the rest falls apart.
        head = [*own[:1]] if groups[node] and groups[node][0].is_indicator else []
        rest = join([*own[len(head) :], *pending[node]])
        bucket = 0
        for scope in live:
            bucket |= scope if scope >> node & 1 else 0
        bucket &= ~(1 << node)
        live = [*(scope for scope in live if not scope >> node & 1), bucket]
        above = pending[min(members(bucket), key=turn.__getitem__)] if bucket else roots
        above.extend(join([*head, *rest]))
    join(roots)
    return _placed(parts)


def _placed(parts: Sequence[Group | Fork]) -> tuple[Group | Fork, ...]:
    """Return the parts with the in-order position of every fork; the last part is the root."""
    sizes: list[int] = []
    for part in parts:
        below = 2 * len(part.variables) - 2 if isinstance(part, Group) else sizes[part.left] + sizes[part.right]
        sizes.append(below + 1)
    placed = list(parts)
    starts = [0] * len(parts)
    for index, part in reversed(list(enumerate(parts))):
        if isinstance(part, Fork):
            middle = starts[index] + sizes[part.left]
            starts[part.left], starts[part.right] = starts[index], middle + 1
            placed[index] = Fork(part.left, part.right, middle)
    return tuple(placed)
