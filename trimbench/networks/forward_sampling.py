"""Rows drawn from the tables of a network, parents first, as value indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.value_codes import IntegerArray, code_type


def draw_forwards(
    parents: Mapping[str, Sequence[str]],
    tables: Mapping[str, NDArray[np.float64]],
    n_rows: int,
    rng: np.random.Generator,
    fixed: Mapping[str, int] | None = None,
) -> dict[str, IntegerArray]:
    """Draw the values of some nodes, parents first.

    Parameters
    ----------
    parents : mapping from node to its parents
        In an order in which each node stands after its parents.
    tables : mapping from node to P(node | parents)
    fixed : mapping from node to value index, optional
        Nodes that are not drawn.

    Returns
    -------
    dict from node to ndarray of shape (n_rows,)
    """
    codes: dict[str, IntegerArray] = {}
    for node, above in parents.items():
        table = tables[node]
        kind = code_type(table.shape[-1])
        if fixed is not None and node in fixed:
            codes[node] = np.full(n_rows, fixed[node], dtype=kind)
            continue
        codes[node] = drawn(table, [codes[parent] for parent in above], rng.random(n_rows))
    return codes


def drawn(table: NDArray[np.float64], columns: Sequence[IntegerArray], uniform: NDArray[np.float64]) -> IntegerArray:
    """Return the value that each uniform number draws from the distribution that the columns select."""
    cumulative = np.cumsum(table, axis=-1)
    # Rounding can leave the last value just below 1: without the division, a draw from the gap between them would give
    # the last state even if its probability is zero.
    cumulative /= cumulative[..., -1:]
    levels = np.ascontiguousarray(cumulative.reshape(-1, table.shape[-1]).T)
    places = np.zeros(len(uniform), dtype=np.intp)
    for column, size in zip(columns, table.shape[:-1], strict=True):
        places *= size
        places += column
    values = np.zeros(len(uniform), dtype=code_type(table.shape[-1]))
    for level in levels[:-1]:
        values += uniform >= np.take(level, places)
    return values
