"""The compiled circuit as arrays, and its value for all instances of the features at once.

Each part of the vtree has a table with one row for each circuit node that is used there, and one column for each
instance of the features below it. Instances that no node tells apart share a column, so the tables stay small where
zeros and equal parameters make instances alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.circuits.diagram import Diagram, distinct_rows

# Products are summed in blocks of about this many numbers, which stay near the processor.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Leaf:
    """Nodes over the variables of one node of the network or of one chance variable.

    Attributes
    ----------
    table : ndarray of shape (n_nodes, n_states, n_classes)
        One state if there is no feature, and one class for everything but the class variable.
    """

    feature: int | None
    table: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Nodes that are sums of products of a node on the left and one on the right.

    Attributes
    ----------
    left, right : int
        Parts that the factors belong to.
    node, prime, sub : ndarrays of shape (n_elements,)
        To which sum a product belongs (ascending), and its two factors.
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
