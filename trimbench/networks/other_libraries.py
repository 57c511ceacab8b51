"""Networks of pgmpy and pyAgrum, by the methods that their documentation states: neither is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.file_parsing import NetworkParts

# What pyAgrum reads from files has about as many digits as a number in single precision.
TOLERANCE = 1e-6
_Table = tuple[list[str], list[list[str]], NDArray[np.float64]]


def parts_of(network: Any) -> NetworkParts:
    """Return the parts of a discrete network of pgmpy or pyAgrum.

    Raises TypeError if it is neither, and ValueError if a table is missing or two names are equal as text.
    """
    if hasattr(network, "get_cpds") and hasattr(network, "nodes"):
        tables = _of_pgmpy(network)
    elif hasattr(network, "cpt") and hasattr(network, "variable"):
        tables = _of_pyagrum(network)
    else:
        raise TypeError(
            "network must be a DiscreteBayesianNetwork of pgmpy or a BayesNet of pyAgrum, got "
            f"{type(network).__name__}; read one from a file with BayesianNetwork.read"
        )
    states: dict[str, list[str]] = {}
    parents: dict[str, list[str]] = {}
    values: dict[str, NDArray[np.float64]] = {}
    for (node, *above), names, table in tables:
        if node in states:
            raise ValueError(f"network must have nodes with different names as text, got {node!r} twice")
        states[node], parents[node] = names[0], above
        values[node] = np.moveaxis(table, 0, -1)
    return NetworkParts(states, parents, values)


def _of_pgmpy(network: Any) -> Iterator[_Table]:
    """Yield the names, the states and the table of each node and its parents, the node first."""
    for node in network.nodes():
        table = network.get_cpds(node)
        if table is None:
            raise ValueError(f"network must have a table for every node, got none for {str(node)!r}; use add_cpds")
        if not hasattr(table, "state_names"):
            raise TypeError(f"network must have discrete tables, got {type(table).__name__} for {str(node)!r}")
        names = [[str(state) for state in table.state_names[name]] for name in table.variables]
        yield [str(name) for name in table.variables], names, np.asarray(table.values, dtype=np.float64)


def _of_pyagrum(network: Any) -> Iterator[_Table]:
    """Yield the same; the axes of pyAgrum's tables are in the reverse order of their names."""
    for place in sorted(network.nodes()):
        table = network.cpt(place)
        names = list(table.names)
        labels = [[str(label) for label in network.variable(name).labels()] for name in names]
        yield names, labels, np.asarray(table.toarray(), dtype=np.float64).transpose()
