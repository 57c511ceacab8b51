"""Compiled circuits: the encoding of a network, its compilation in a child process, and the circuit as arrays.

Each part of the vtree has a table with one row for each circuit node that is used there, and one column for each
instance of the features below it. Instances that no node tells apart share a column, so the tables stay small where
zeros and equal parameters make instances alike.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from trimbench._current_folder import run_python
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.inference.joint import members, plan_whole

# Products are summed in blocks of about this many numbers, which stay in the processor's cache.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Leaf:
    """Nodes over the variables of one node of the network or of one chance variable.

    Attributes
    ----------
    table : ndarray of shape (n_nodes, n_states, n_classes)
        A single state if there is no feature, and a single class unless it belongs to the class variable.
    """

    feature: int | None
    table: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Nodes that are sums of products of a node on the left and one on the right.

    Attributes
    ----------
    left, right : int
        Parts of the circuit that the factors belong to.
    node, prime, sub : ndarrays of shape (n_elements,)
        The sum that a product belongs to (ascending), and its two factors.
    """

    left: int
    right: int
    n_nodes: int
    node: NDArray[np.int32]
    prime: NDArray[np.int32]
    sub: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Columns:
    """Which instances of the features share a column.

    Attributes
    ----------
    which : tuple of ndarrays
        For each part of the circuit the column of each pair of columns of its children, or of each state of a leaf.
    joint : ndarray of shape (n_columns, 2)
        Pr(c, f) and Pr(not c, f) of the instances in each column of the last part.
    """

    which: tuple[NDArray[np.int64], ...]
    joint: NDArray[np.float64]


def evaluate(circuit: Sequence[Leaf | Decisions]) -> Columns:
    """Return the joint probabilities of class and features.

    Children come before parents in a circuit; the last part has one node, the whole network. Raises MemoryError if a
    table is too large for the memory of the process.
    """
    tables: dict[int, NDArray[np.float64]] = {}
    which = []
    for index, part in enumerate(circuit):
        if isinstance(part, Leaf):
            tables[index], alike = _merged(part.table)
        else:
            left, right = tables.pop(part.left), tables.pop(part.right)
            product = _sum_of_products(part, left, right)
            tables[index], alike = _merged(product.reshape(part.n_nodes, -1, product.shape[-1]))
            alike = alike.reshape(left.shape[1], right.shape[1])
        which.append(alike)
    joint = tables.popitem()[1][0]
    return Columns(tuple(which), np.array(np.broadcast_to(joint, (len(joint), 2))))


def _sum_of_products(part: Decisions, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    shape = (part.n_nodes, left.shape[1], right.shape[1], max(left.shape[2], right.shape[2]))
    total = np.zeros(shape)
    step = max(1, _BLOCK // (shape[1] * shape[2] * shape[3]))
    for start in range(0, part.node.size, step):
        block = slice(start, start + step)
        product = left[part.prime[block]][:, :, None, :] * right[part.sub[block]][:, None, :, :]
        node = part.node[block]
        firsts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(node))])
        # A sum may continue in the next block.
        total[node[firsts]] += np.add.reduceat(product, firsts, axis=0)
    return total


def _merged(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct columns of a table, and which of them each column is."""
    columns = np.ascontiguousarray(table.transpose(1, 0, 2)).reshape(table.shape[1], -1)
    firsts, which = distinct_rows(columns)
    return (table if len(firsts) == len(columns) else table[:, firsts]), which


def joint_diagram(circuit: Sequence[Leaf | Decisions], columns: Columns) -> Diagram:
    """Return Pr(c, f) and Pr(not c, f) as a decision diagram; its order of features is that of the circuit.

    From the root down, each part is given functions of its columns, named by the node of the diagram that goes on from
    each column. A part whose functions all have values on its right first hands these to the right, which answers with
    the nodes that the left goes on to.
    """
    features: list[int] = []
    levels: list[NDArray[np.int64]] = []

    def nodes_of(index: int, functions: NDArray[np.int64]) -> NDArray[np.int64]:
        part, which = circuit[index], columns.which[index]
        if isinstance(part, Decisions):
            after_left = functions[:, which].reshape(-1, which.shape[1])
            firsts, alike = distinct_rows(after_left)
            after = nodes_of(part.right, after_left[firsts])[alike]
            return nodes_of(part.left, after.reshape(-1, which.shape[0]))
        if part.feature is None:
            return functions[:, which[0]]
        children = functions[:, which]
        firsts, alike = distinct_rows(children)
        features.append(part.feature)
        levels.append(children[firsts])
        return alike

    nodes_of(len(circuit) - 1, np.arange(len(columns.joint))[None])
    return Diagram(tuple(reversed(features)), tuple(reversed(levels)), columns.joint).reduced()


# Compilation of a network in a separate process, and its result.

GIB = 2**30
DEFAULT_MEMORY = 8 * GIB
# Exit code of a child that ran out of memory.
OUT_OF_MEMORY = 77
_WHAT_TO_DO = "use engine='auto', or give the classifier fewer features"


class CircuitError(ValueError):
    """The network could not be compiled."""


def compile_network(encoding: Encoding, *, timeout: float | None = None, memory: int = DEFAULT_MEMORY) -> Diagram:
    """Compile a network in a child process; return the diagram of Pr(c, f) and Pr(not c, f).

    Raises ValueError if `timeout` or `memory` is not positive, and CircuitError if time or memory runs out or the child
    dies.

    Parameters
    ----------
    timeout : float, optional
        Seconds; None sets no limit.
    memory : int
        Bytes of address space that the child may have.
    """
    if timeout is not None and not 0 < timeout < math.inf:
        raise ValueError(f"timeout must be positive seconds or None, got {timeout!r}; None sets no limit")
    if not memory >= 1:
        raise ValueError(f"memory must be a positive number of bytes, got {memory!r}")
    try:
        child = run_python(
            ("-m", "trimbench.trimming.engines.sdd_child", str(os.getpid()), str(int(memory))),
            dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
            input=pickle.dumps(encoding),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CircuitError(
            f"the circuit of the network is not compiled after timeout={timeout:g} seconds; allow more, {_WHAT_TO_DO}"
        ) from error
    said = child.stderr.decode(errors="replace").strip()
    if child.returncode == OUT_OF_MEMORY or (child.returncode and "alloc" in said.lower()):
        raise CircuitError(
            f"the circuit of the network needs more than memory={memory} bytes ({memory / GIB:.1f} GiB); allow more, "
            f"{_WHAT_TO_DO}"
        )
    if child.returncode:
        raise CircuitError(
            f"the process that compiles the network ended with exit code {child.returncode} "
            f"({said.splitlines()[-1] if said else 'it said nothing'}); {_WHAT_TO_DO}"
        )
    try:
        return Diagram.of_bytes(child.stdout)
    except (ValueError, TypeError, KeyError, EOFError, BadZipFile) as error:
        why = f"its answer cannot be read: {error}"
        raise CircuitError(f"the process that compiles the network failed: {why:.200}; {_WHAT_TO_DO}") from error


# Decision diagrams over features: functions of an instance, kept small by sharing equal parts.


@dataclass(frozen=True, eq=False)
class Diagram:
    """One or more functions of the instances of some features.

    An instance is a path from node 0 of the first level to a row of `values`, with one step for each feature.

    Attributes
    ----------
    features : tuple of int
        The feature that each level tests.
    levels : tuple of ndarrays of shape (n_nodes, cardinality)
        The node of the next level (or row of `values`) that each node leads to in each state.
    values : ndarray of shape (n_rows, n_functions)
    """

    features: tuple[int, ...]
    levels: tuple[NDArray[np.int64], ...]
    values: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """Return the diagram as an archive of arrays, for `of_bytes`."""
        stream = io.BytesIO()
        np.savez(stream, np.array(self.features, dtype=np.int64), self.values, *self.levels)
        return stream.getvalue()

    @classmethod
    def of_bytes(cls, content: bytes) -> Diagram:
        """Return the diagram that `to_bytes` wrote; nothing else is made of the content than arrays."""
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            features, values, *levels = (arrays[f"arr_{n}"] for n in range(len(arrays.files)))
        return cls(tuple(features.tolist()), tuple(levels), values)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, values included."""
        return sum(len(level) for level in self.levels) + len(self.values)

    def mapped(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Diagram:
        """Return the diagram with `function` applied to its values; each row stays a row."""
        return Diagram(self.features, self.levels, function(self.values)).reduced()

    def total(self, column: NDArray[np.float64]) -> float:
        """Return the sum over all instances of a quantity that is given for each row of `values`."""
        for level in reversed(self.levels):
            # Adding the states one by one is several times faster than a sum over a short axis.
            below = column
            column = np.asarray(below[level[:, 0]])
            for state in level.T[1:]:
                column += below[state]
        return float(column[0])

    def counts(self) -> NDArray[np.float64]:
        """Return how many instances lead to each row of `values`."""
        reached: NDArray[np.float64] = np.ones(1)
        for depth, level in enumerate(self.levels):
            size = self._size(depth + 1)
            total = np.bincount(level.reshape(-1), weights=np.repeat(reached, level.shape[1]), minlength=size)
            reached = total.astype(np.float64)
        return reached

    def summed(self, feature: int) -> Diagram:
        """Return the diagram summed over the states of one feature; equal nodes may occur twice in it."""
        place = self.features.index(feature)
        # Row i: the nodes of the next level whose sum stands in for node i of this one.
        terms, which = _distinct_sums(self.levels[place], self._size(place + 1))
        above = list(self.levels[:place])
        if above:
            above[-1] = which[above[-1]]
        below = []
        for depth in range(place + 1, len(self.levels)):
            level = self.levels[depth]
            children = level[terms].transpose(0, 2, 1).reshape(-1, terms.shape[1])
            n_nodes = len(terms)
            terms, which = _distinct_sums(children, self._size(depth + 1))
            below.append(which.reshape(n_nodes, level.shape[1]))
        values = self.values[terms[:, 0]]
        for term in terms.T[1:]:
            values = values + self.values[term]
        features = self.features[:place] + self.features[place + 1 :]
        return Diagram(features, (*above, *below), values)

    def _size(self, depth: int) -> int:
        return len(self.levels[depth]) if depth < len(self.levels) else len(self.values)

    def reduced(self) -> Diagram:
        """Return the same functions with equal nodes merged."""
        firsts, which = distinct_rows(self.values)
        values = self.values[firsts]
        levels = []
        for level in reversed(self.levels):
            children = which[level]
            firsts, which = distinct_rows(children)
            levels.append(children[firsts])
        return Diagram(self.features, tuple(reversed(levels)), values)

    def restricted(self, features: Sequence[int]) -> Diagram:
        """Return the diagram summed over all features but the given ones."""
        diagram = self
        # From the last level up, so that the part below a level that is summed out is as small as possible.
        for feature in reversed(self.features):
            if feature not in features:
                diagram = diagram.summed(feature).reduced()
        return diagram


def _distinct_sums(terms: NDArray[np.int64], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of `terms`, whatever the order in a row, and which of them each row is.

    Equal rows are looked for only if there are more sums than nodes to add: until then a diagram does not grow.
    """
    if len(terms) <= n_nodes:
        return terms, np.arange(len(terms))
    terms = np.sort(terms, axis=1)
    firsts, which = distinct_rows(terms)
    return terms[firsts], which


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each distinct row of a table is first seen, and which of them each row is.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Natural numbers, or floats without -0.0 and NaN (they are told apart by their bits).

    Returns
    -------
    firsts : ndarray of shape (n_distinct,)
    which : ndarray of shape (n_rows,)
    """
    if len(rows) == 1 or rows.shape[1] == 0:
        return np.zeros(1, np.int64), np.zeros(len(rows), np.int64)
    keys = rows[:, 0]
    if np.issubdtype(rows.dtype, np.integer) and (base := int(rows.max()) + 1) ** rows.shape[1] < 2**62:
        for column in rows.T[1:]:
            keys = keys * base + column
    elif rows.shape[1] > 1:
        # Sorting long rows takes far longer than hashing them.
        seen: dict[bytes, int] = {}
        which = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])
        _, firsts = np.unique(which, return_index=True)
        return firsts, which
    _, firsts, which = np.unique(keys, return_index=True, return_inverse=True)
    return firsts.astype(np.int64), which.reshape(-1).astype(np.int64)


# A Bayesian network as a propositional formula for the SDD compiler.


@dataclass(frozen=True, eq=False)
class Step:
    """A node as a function of its parents and of chance.

    Attributes
    ----------
    parents : tuple of int
        Positions of the parents' steps.
    rows : ndarray of int, one axis for each parent
        The entry of `outcomes` that holds for each parent instance.
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
    """Encode the joint distribution of the class, the features and the evidence.

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
    """Return which of the distinct rows of a table each parent instance has, and these rows."""
    distinct, which = np.unique(table.reshape(-1, table.shape[-1]), axis=0, return_inverse=True)
    return which.reshape(table.shape[:-1]).astype(np.int64), distinct


def _draw(row: NDArray[np.float64], fresh: Callable[[], int]) -> tuple[tuple[tuple[int, ...] | None, ...], list[Group]]:
    """Return the chance literals that draw each state of a row, and a group for each of their variables."""
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
    """Return the truth values of the indicators of a node in each of its states."""
    if cardinality <= 2:
        return ((True,), (False,))[:cardinality]
    return tuple(tuple(i == state for i in range(cardinality)) for state in range(cardinality))


def _vtree(order: Sequence[int], scopes: Sequence[int], groups: Sequence[Sequence[Group]]) -> tuple[Group | Fork, ...]:
    """Return a vtree that follows the bucket tree of an elimination order.

    The part below a node in the bucket tree depends on the rest only through the variables of one bucket.
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
