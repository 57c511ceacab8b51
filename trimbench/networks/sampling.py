"""Rows drawn from a network, with and without evidence, as value indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray
from trimbench.networks.bayesian_network import BayesianNetwork, draw_forwards, drawn
from trimbench.networks.inference.joint import ContractionTooLarge, plan_whole, relevant_nodes
from trimbench.networks.inference.products import Factor
from trimbench.networks.inference.row_inference import product
from trimbench.networks.values import code_type

# Entries of the largest table that is made for sampling given evidence.
_MAX_ENTRIES = 2**24


@dataclass(frozen=True, eq=False)
class RowSampler:
    """Draws rows of some nodes from a network given evidence, exactly.

    Evidence on nodes whose ancestors are all observed is fixed in a forward pass. Other evidence is handled by variable
    elimination: nodes are drawn in the reverse order of their elimination.
    """

    network: BayesianNetwork
    columns: tuple[str, ...]
    _order: tuple[str, ...]
    _fixed: Mapping[str, int]
    # The node, the others on which its distribution depends, and that distribution.
    _steps: tuple[tuple[str, tuple[str, ...], NDArray[np.float64]], ...] | None

    @classmethod
    def of(
        cls, network: BayesianNetwork, columns: Sequence[str], evidence: Mapping[str, str] | None = None
    ) -> RowSampler:
        """Prepare the sampling.

        Raises
        ------
        ContractionTooLarge
            When the evidence makes too many variables depend on each other.
        ValueError
            When the evidence has probability zero.
        """
        fixed = {node: network.states(node).index(state) for node, state in (evidence or {}).items()}
        wanted = set(relevant_nodes(network, [*columns, *fixed]))
        order = tuple(node for node in network.order if node in wanted)
        ahead = all(parent in fixed for node in fixed for parent in network.parents(node))
        if ahead and not all(
            network.table(node)[(*(fixed[parent] for parent in network.parents(node)), value)]
            for node, value in fixed.items()
        ):
            raise ValueError("evidence must have a probability above 0, got probability 0")
        steps = None if ahead else _backward_steps(network, order, fixed)
        return cls(network, tuple(columns), order, fixed, steps)

    def draw(self, n_rows: int, rng: np.random.Generator, places: Sequence[int] | None = None) -> IntegerArray:
        """Return the value indices of `n_rows` rows, shape (n_rows, n_columns), in Fortran order.

        With `places`, only the columns at these positions are returned: the same numbers, in less memory.
        """
        if self._steps is None:
            network = self.network
            parents = {node: network.parents(node) for node in self._order}
            tables = {node: network.table(node) for node in self._order}
            codes = draw_forwards(parents, tables, n_rows, rng, self._fixed)
        else:
            codes = {}
            for node, others, table in self._steps:
                codes[node] = drawn(table, [codes[other] for other in others], rng.random(n_rows))
        columns = self.columns if places is None else [self.columns[place] for place in places]
        most = max((self.network.cardinality(node) for node in columns), default=1)
        rows: NDArray[np.integer[Any]] = np.empty((n_rows, len(columns)), dtype=code_type(most), order="F")
        for place, node in enumerate(columns):
            rows[:, place] = codes[node]
        return rows


def _backward_steps(
    network: BayesianNetwork, order: Sequence[str], fixed: Mapping[str, int]
) -> tuple[tuple[str, tuple[str, ...], NDArray[np.float64]], ...]:
    """Eliminate all nodes; return the distribution of each given nodes eliminated after it, the last one first."""
    free = [node for node in order if node not in fixed]
    place = {node: i for i, node in enumerate(free)}
    factors = []
    for node in order:
        axes = (*network.parents(node), node)
        table = network.table(node)[tuple(fixed.get(name, slice(None)) for name in axes)]
        factors.append(Factor(tuple(place[name] for name in axes if name in place), table[None]))
    scopes = [sum(1 << v for v in factor.variables) for factor in factors]
    plan = plan_whole(scopes, 0, [network.cardinality(node) for node in free])
    largest = plan.largest * max((network.cardinality(node) for node in free), default=1)
    if largest > _MAX_ENTRIES:
        raise ContractionTooLarge(
            f"rows given the evidence need a table of up to {largest:.3g} entries, more than {_MAX_ENTRIES:.3g}; give "
            "less evidence, or evidence on variables without parents"
        )
    rank = {v: i for i, v in enumerate(plan.order)}
    waiting: dict[int | None, list[Factor]] = {}

    def wait(factor: Factor) -> None:
        waiting.setdefault(min(factor.variables, key=rank.__getitem__, default=None), []).append(factor)

    for factor in factors:
        wait(factor)
    steps = []
    for variable in plan.order:
        joined = product(waiting.pop(variable), rank)
        # The variable's axis comes first; draws are along the last one.
        table = np.moveaxis(joined.table[0], 0, -1)
        total = table.sum(axis=-1)
        if not total.max() > 0:
            raise ValueError("evidence must have a probability above 0, got probability 0")
        chances = np.where(total[..., None] > 0, table, 1.0)
        others = tuple(free[v] for v in joined.variables[1:])
        steps.append((free[variable], others, chances / chances.sum(axis=-1, keepdims=True)))
        wait(Factor(joined.variables[1:], (total / total.max())[None]))
    if any(factor.table.max() == 0 for factor in waiting.get(None, [])):
        raise ValueError("evidence must have a probability above 0, got probability 0")
    return tuple(reversed(steps))
