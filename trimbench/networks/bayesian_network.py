"""Discrete Bayesian networks: structure, tables, forward sampling, and reading a file by its ending."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import IntegerArray
from trimbench.networks.formats.bif import read_bif, write_bif
from trimbench.networks.formats.other_libraries import TOLERANCE, parts_of
from trimbench.networks.formats.parsing import MAX_UNPACKED, NetworkParts, read_json, short_errors, write_json
from trimbench.networks.formats.uai import read_ergo, read_evidence, read_uai
from trimbench.networks.formats.xmlbif import read_xmlbif
from trimbench.networks.values import checked_distribution, checked_names, code_type

if TYPE_CHECKING:
    import pandas as pd


FORMAT = "trimbench.BayesianNetwork/1"


@dataclass(frozen=True, eq=False, init=False)
class BayesianNetwork:
    """A directed acyclic graph over discrete variables with one conditional table for each.

    Parameters
    ----------
    states : mapping from node name to its state names
        Its order is the order of `nodes`.
    parents : mapping from node name to the names of its parents
        A node that is left out has none.
    tables : mapping from node name to array_like
        P(node | parents), of shape (cardinality of each parent in order, cardinality of the node).

    Raises
    ------
    ValueError
        When a name is unknown, the graph has a cycle, or a table is not a distribution or has the wrong shape.

    Examples
    --------
    >>> network = BayesianNetwork(
    ...     {"rain": ["yes", "no"], "wet": ["yes", "no"]},
    ...     {"wet": ["rain"]},
    ...     {"rain": [0.2, 0.8], "wet": [[0.9, 0.1], [0.3, 0.7]]},
    ... )
    >>> network.parents("wet"), network.children("rain"), network.cardinality("wet")
    (('rain',), ('wet',), 2)
    """

    nodes: tuple[str, ...]
    _states: Mapping[str, tuple[str, ...]]
    _parents: Mapping[str, tuple[str, ...]]
    _tables: Mapping[str, NDArray[np.float64]]
    _order: tuple[str, ...]

    def __init__(
        self, states: Mapping[str, Sequence[str]], parents: Mapping[str, Sequence[str]], tables: Mapping[str, ArrayLike]
    ) -> None:
        nodes = checked_names(list(states), "nodes")
        known = {name: checked_names(states[name], f"states of {name!r}", of_values=True) for name in nodes}
        for what, mapping in (("parents", parents), ("tables", tables)):
            for name in mapping:
                if name not in known:
                    raise ValueError(f"{what} must be given for nodes among {list(nodes)}, got {name!r}")
        above = {name: checked_names(parents.get(name, ()), f"parents of {name!r}") for name in nodes}
        for name in nodes:
            for parent in above[name]:
                if parent not in known:
                    raise ValueError(f"parents of {name!r} must be among {list(nodes)}, got {parent!r}")
            if name not in tables:
                raise ValueError(f"tables must have an entry for every node, got none for {name!r}")
        try:
            order = tuple(TopologicalSorter(above).static_order())
        except CycleError as error:
            raise ValueError(f"parents must make an acyclic graph, got the cycle {error.args[1]}") from error
        checked = {}
        for name in nodes:
            shape = tuple(len(known[variable]) for variable in (*above[name], name))
            table = checked_distribution(tables[name], f"table of {name!r}", ndim=len(shape))
            if table.shape != shape:
                raise ValueError(
                    f"table of {name!r} must have shape {shape} (its parents {list(above[name])}, then itself), "
                    f"got {table.shape}"
                )
            checked[name] = table
        # The class is frozen.
        vars(self).update(nodes=nodes, _states=known, _parents=above, _tables=checked, _order=order)

    def _check(self, node: str) -> str:
        if node not in self._states:
            raise KeyError(f"node must be among {list(self.nodes)}, got {node!r}")
        return node

    def parents(self, node: str) -> tuple[str, ...]:
        """Return the parents of `node`, in the order of its table's axes."""
        return self._parents[self._check(node)]

    def children(self, node: str) -> tuple[str, ...]:
        """Return the children of `node`, in the order of `nodes`."""
        self._check(node)
        return tuple(name for name in self.nodes if node in self._parents[name])

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes, parents before their children."""
        return self._order

    def states(self, node: str) -> tuple[str, ...]:
        """Return the state names of `node`."""
        return self._states[self._check(node)]

    def cardinality(self, node: str) -> int:
        """Return the number of states of `node`."""
        return len(self.states(node))

    def table(self, node: str) -> NDArray[np.float64]:
        """Return P(node | parents), shape (cardinalities of the parents, cardinality of the node)."""
        return self._tables[self._check(node)]

    def __repr__(self) -> str:
        edges = sum(len(parents) for parents in self._parents.values())
        return f"BayesianNetwork({len(self.nodes)} nodes, {edges} edges)"

    def sample(self, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw rows by forward sampling.

        Parameters
        ----------
        n_rows : int
        rng : numpy.random.Generator

        Returns
        -------
        DataFrame of state names (categories in the order of `states`), one column for each node
        """
        import pandas as pd

        if n_rows < 0:
            raise ValueError(f"n_rows must be 0 or more, got {n_rows!r}")
        codes = draw_forwards({node: self._parents[node] for node in self._order}, self._tables, n_rows, rng)
        return pd.DataFrame(
            {
                node: pd.Categorical.from_codes(codes[node], categories=pd.Index(self._states[node], dtype=str))
                for node in self.nodes
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the network as nested lists, numbers and strings; `from_dict` reads it."""
        return {
            "nodes": [
                {
                    "name": node,
                    "states": list(self._states[node]),
                    "parents": list(self._parents[node]),
                    "table": self._tables[node].tolist(),
                }
                for node in self.nodes
            ]
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> BayesianNetwork:
        """Return the network that `to_dict` described."""
        entries = content["nodes"]
        checked_names([entry["name"] for entry in entries], "nodes")
        return cls(
            {entry["name"]: entry["states"] for entry in entries},
            {entry["name"]: entry["parents"] for entry in entries},
            {entry["name"]: entry["table"] for entry in entries},
        )

    @classmethod
    def from_library(cls, network: Any) -> BayesianNetwork:
        """Return a network of another library.

        Parameters
        ----------
        network : pgmpy.models.DiscreteBayesianNetwork or pyagrum.BayesNet
            The order of its nodes, parents and states is kept; states that are not text become text.

        Raises
        ------
        TypeError
            When it is of another kind.
        ValueError
            When a table is missing or is not a distribution, or two names are equal as text.
        """
        parts = parts_of(network)
        tables = {
            name: checked_distribution(table, f"table of {name!r}", ndim=table.ndim, tolerance=TOLERANCE)
            for name, table in parts.tables.items()
        }
        return cls(parts.states, parts.parents, tables)

    def save(self, path: str | Path) -> None:
        """Write the network as JSON; floats keep every digit."""
        write_json(path, {"format": FORMAT, **self.to_dict()})

    def write(self, path: str | Path) -> None:
        """Write the network to a file from which `read` restores every digit.

        Parameters
        ----------
        path : str or Path
            ``.bif``: the Bayesian Interchange Format, which other programs read; names with characters other than
            ASCII letters, digits and ``_.-`` are quoted. ``.json``: as `save`.

        Raises
        ------
        ValueError
            When the ending is another one, or a name is empty or has a quote or control character (not in BIF).
        OSError
            When the file cannot be written; an older one is then untouched.
        """
        ending = Path(path).suffix.lower()
        if ending == ".json":
            self.save(path)
        elif ending == ".bif":
            write_bif(path, NetworkParts(self._states, self._parents, self._tables))
        else:
            raise ValueError(f"path must end in .bif or .json, got {str(path)!r}")

    @classmethod
    def read(cls, path: str | Path, *, max_unpacked: int = MAX_UNPACKED) -> BayesianNetwork:
        """Read a network from a file, whose ending determines the format.

        Parameters
        ----------
        path : str or Path
            ``.json``: a network that `save` wrote. ``.erg`` (Ergo), ``.uai``, ``.bif``, ``.xmlbif``, ``.bifxml``
            or ``.xml``, each optionally followed by ``.gz``: rounded distributions are normalised, and the largest
            deviation is logged. Nodes without names are called ``"x0", "x1", ...``, states without names ``"0", "1",
            ...``.
        max_unpacked : int
            Most bytes that a file ending in ``.gz`` may unpack to, by default 4 MiB, which are read in seconds: a small
            file can unpack to gigabytes. A file that is not compressed may have 64 MiB or, if that is more, so many.

        Raises
        ------
        OSError
            When the file cannot be opened.
        ValueError
            When the ending is unknown, or the file is damaged, too long, no regular file (a pipe, a device, a file in
            ``/proc``) or holds another kind of network; the message names the file.
        """
        if Path(path).suffix.lower() == ".json":
            return read_json(path, FORMAT, cls.from_dict)
        with short_errors():
            parts = read_parts(Path(path), max_unpacked)
            try:
                return cls(parts.states, parts.parents, parts.tables)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error

    def read_evidence(self, path: str | Path) -> dict[str, str]:
        """Read which states of the nodes were observed, from a file that accompanies an Ergo or UAI network.

        The file holds the number of observed nodes, then a pair for each of them: its index among the nodes of the
        network and the index of its state, both from 0. Comments stand in ``/* */``. A file for several samples (the
        format of the UAI competitions since 2008) begins with their number; the first sample is returned.

        Parameters
        ----------
        path : str or Path
            Ends in ``.evid`` or ``.evid.gz``.

        Returns
        -------
        dict from node name to state name, in the order of the file

        Raises
        ------
        OSError
            When the file cannot be opened.
        ValueError
            When the ending is another one, or the file is damaged or does not fit the network; the message names the
            file, the line and the word.

        Examples
        --------
        >>> import tempfile
        >>> network = BayesianNetwork({"rain": ["yes", "no"]}, {}, {"rain": [0.2, 0.8]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "rain.uai.evid"
        ...     _ = path.write_text("1  0 1")
        ...     network.read_evidence(path)
        {'rain': 'no'}
        """
        return read_evidence(path, self._states)


# Rows drawn from the tables of a network, parents first, as value indices.


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
        In an order in which each node comes after its parents.
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
        if table.shape[-1] == 1 and isinstance(rng.bit_generator, np.random.PCG64):
            # Nothing to draw: the numbers are skipped, so that the other nodes get theirs.
            rng.bit_generator.advance(n_rows)
            codes[node] = np.broadcast_to(kind(0), n_rows)
            continue
        codes[node] = drawn(table, [codes[parent] for parent in above], rng.random(n_rows))
    return codes


def drawn(table: NDArray[np.float64], columns: Sequence[IntegerArray], uniform: NDArray[np.float64]) -> IntegerArray:
    """Return the value that each uniform number draws from the distribution that its row of the columns selects."""
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


# The reader for each kind of network file.

READERS: dict[str, Callable[[Path, int], NetworkParts]] = {
    ".erg": read_ergo,
    ".uai": read_uai,
    ".bif": read_bif,
    ".xmlbif": read_xmlbif,
    ".bifxml": read_xmlbif,
    ".xml": read_xmlbif,
}


def read_parts(path: Path, max_unpacked: int = MAX_UNPACKED) -> NetworkParts:
    """Read a network with the reader for the ending of `path`; raise ValueError if there is none."""
    name = path.name.lower().removesuffix(".gz")
    reader = READERS.get(Path(name).suffix)
    if reader is None:
        raise ValueError(
            f"path must end in .json, {', '.join(READERS)}, or one of the latter and .gz, got {str(path)!r}; "
            "an ACE network is read by NaiveBayes.read_ace; pyAgrum reads .net, .dsl and .xdsl and writes .bif "
            "(pyagrum.saveBN(pyagrum.loadBN(path), 'x.bif'))"
        )
    return reader(path, max_unpacked)
