"""Decision diagrams over features: functions of an instance, kept small by sharing equal parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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

    @property
    def n_nodes(self) -> int:
        """Number of nodes, values included."""
        return sum(len(level) for level in self.levels) + len(self.values)

    def mapped(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Diagram:
        """Return the diagram with other values, one row for each old row."""
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
        """Return the diagram summed over all features but some."""
        diagram = self
        # From the last level up: what is below a level that is summed out is then as small as possible.
        for feature in reversed(self.features):
            if feature not in features:
                diagram = diagram.summed(feature).reduced()
        return diagram


def _distinct_sums(terms: NDArray[np.int64], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of `terms`, whatever the order in a row, and which of them each row is.

    They are searched for only if there are more sums than nodes to add: until then a diagram does not grow.
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
