"""Networks of pgmpy and pyAgrum: the real packages where they are installed, and stand-ins with the same methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import trimbench as tb
from tests.networks.test_bayesian_network import lawn, same


class Pgmpy:
    """The methods of pgmpy's DiscreteBayesianNetwork that the conversion uses."""

    def __init__(self, network: tb.BayesianNetwork) -> None:
        self.network = network

    def nodes(self) -> list[str]:
        return list(self.network.nodes)

    def get_cpds(self, node: str) -> Any:
        names = [node, *self.network.parents(node)]
        return SimpleNamespace(
            variables=names,
            state_names={name: list(self.network.states(name)) for name in names},
            values=np.moveaxis(self.network.table(node), -1, 0),
        )


class PyAgrum:
    """The methods of pyAgrum's BayesNet that the conversion uses."""

    def __init__(self, network: tb.BayesianNetwork) -> None:
        self.network = network

    def nodes(self) -> set[int]:
        return set(range(len(self.network.nodes)))

    def variable(self, name: str) -> Any:
        return SimpleNamespace(labels=lambda: self.network.states(name))

    def cpt(self, place: int) -> Any:
        node = self.network.nodes[place]
        table = np.moveaxis(self.network.table(node), -1, 0).transpose()
        return SimpleNamespace(names=(node, *self.network.parents(node)), toarray=lambda: table)


@pytest.mark.parametrize("kind", [Pgmpy, PyAgrum])
def test_a_network_is_converted(kind: Any) -> None:
    assert same(tb.BayesianNetwork.from_library(kind(lawn())), lawn())


@pytest.mark.parametrize("order", [[0, 1], pytest.param([1, 0], id="pgmpy#1093")])
def test_states_of_parents_go_by_their_names(order: list[int]) -> None:
    model = Pgmpy(lawn())
    get = model.get_cpds

    def in_other_order(node: str) -> Any:
        found = get(node)
        for axis, name in enumerate(found.variables[1:], 1):
            if len(found.state_names[name]) == 2:
                found.state_names[name] = [found.state_names[name][at] for at in order]
                found.values = np.take(found.values, order, axis)
        return found

    model.get_cpds = in_other_order  # type: ignore[method-assign]
    assert same(tb.BayesianNetwork.from_library(model), lawn())


@pytest.mark.parametrize("names", ["?!~", pytest.param(range(3), id="pgmpy#1691")])
def test_states_that_two_tables_do_not_share_are_refused(names: Sequence[object]) -> None:
    model = Pgmpy(lawn())
    get, child = model.get_cpds, next(node for node in lawn().nodes if lawn().parents(node))
    parent = lawn().parents(child)[0]

    def renamed(node: str) -> Any:
        found = get(node)
        if node == child:
            found.state_names[parent] = [*names][: len(found.state_names[parent])]
        return found

    model.get_cpds = renamed  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=f"the table of '{child}' must have the states of its parent '{parent}', "):
        tb.BayesianNetwork.from_library(model)


def test_pgmpy_itself(tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    lawn().write(tmp_path / "lawn.bif")
    read = tb.BayesianNetwork.from_library(readwrite.BIFReader(str(tmp_path / "lawn.bif")).get_model())
    assert_alike(read, atol=1e-15)


def test_pyagrum_itself(tmp_path: Path) -> None:
    pyagrum = pytest.importorskip("pyagrum")
    lawn().write(tmp_path / "lawn.bif")
    read = tb.BayesianNetwork.from_library(pyagrum.loadBN(str(tmp_path / "lawn.bif")))
    assert_alike(read, atol=1e-6)  # it reads numbers in single precision


def assert_alike(read: tb.BayesianNetwork, atol: float) -> None:
    assert set(read.nodes) == set(lawn().nodes)
    for node in read.nodes:
        assert (read.states(node), read.parents(node)) == (lawn().states(node), lawn().parents(node))
        np.testing.assert_allclose(read.table(node), lawn().table(node), rtol=0, atol=atol)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(TypeError, match=r"network must be a DiscreteBayesianNetwork of pgmpy .*, got dict; read"):
        tb.BayesianNetwork.from_library({})
    bare = SimpleNamespace(nodes=lambda: ["a"], get_cpds=lambda node: None)
    with pytest.raises(ValueError, match="network must have a table for every node, got none for 'a'; use add_cpds"):
        tb.BayesianNetwork.from_library(bare)
    gaussian = SimpleNamespace(nodes=lambda: ["a"], get_cpds=lambda node: SimpleNamespace())
    with pytest.raises(TypeError, match="network must have discrete tables, got SimpleNamespace for 'a'"):
        tb.BayesianNetwork.from_library(gaussian)
    twice = SimpleNamespace(
        nodes=lambda: [1, "1"],
        get_cpds=lambda node: SimpleNamespace(variables=[node], state_names={node: ["a"]}, values=[1.0]),
    )
    with pytest.raises(ValueError, match="nodes with different names as text, got '1' twice"):
        tb.BayesianNetwork.from_library(twice)
