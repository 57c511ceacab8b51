"""The networks of the UAI 2008 evaluation, where the cache has them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import trimbench as tb
from trimbench.networks.inference.joint import joint_distribution

FOLDER = Path(os.environ.get("TRIMBENCH_CACHE") or "no-cache") / "files"
SET = FOLDER / "uai2008"
PATHS = sorted(SET.glob("**/*.erg.gz"))

pytestmark = pytest.mark.skipif(not PATHS, reason="TRIMBENCH_CACHE names no folder with files/uai2008/**/*.erg.gz")


def leaves(network: tb.BayesianNetwork) -> list[str]:
    parents = {parent for node in network.nodes for parent in network.parents(node)}
    return [node for node in network.nodes if node not in parents]


def roots(network: tb.BayesianNetwork) -> list[str]:
    return [node for node in network.nodes if not network.parents(node)]


def test_a_network_is_read_or_holds_evidence() -> None:
    """The linkage networks are no distributions: what was observed is multiplied into their tables."""
    stated = {
        entry["path"]: tuple(map(int, re.search(r"(\d+) variables of at most (\d+) states", entry["what"]).groups()))  # type: ignore[union-attr]
        for entry in json.loads((FOLDER / "registry.json").read_text(encoding="utf-8"))
        if entry["path"].startswith("uai2008/")
    }
    assert {path.relative_to(FOLDER).as_posix() for path in PATHS} == set(stated)
    for path in PATHS[::3]:  # all of them take three times as long
        if path.parent.name == "linkage":
            with pytest.raises(ValueError, match=r"got a sum of .*tables into which evidence was entered are no"):
                tb.BayesianNetwork.read(path, max_unpacked=2**26)
            continue
        network = tb.BayesianNetwork.read(path, max_unpacked=2**26)
        found = (len(network.nodes), max(map(network.cardinality, network.nodes)))
        assert found == stated[path.relative_to(FOLDER).as_posix()]
        assert network.states(network.nodes[0])[:2] == ("X0000", "X0001")


def test_bn_78_is_cpcs54_under_other_names() -> None:
    """Nodes and states are in another order; degrees and entries are the same."""

    def signatures(name: str) -> Counter[tuple[object, ...]]:
        network = tb.BayesianNetwork.read(SET / f"{name}.erg.gz", max_unpacked=2**26)
        return Counter(
            (len(network.children(node)), network.table(node).shape, *np.sort(network.table(node), axis=None).round(6))
            for node in network.nodes
        )

    assert signatures("PE/uai-2006/BN_78") == signatures("MPE/cpcs/cpcs54")


@pytest.mark.parametrize("name", ["PE/uai-2006/BN_78", "MPE/cpcs/cpcs54", "MPE/iscas89/s386.scan"])
def test_the_joint_distribution_of_a_root_and_all_leaves(name: str) -> None:
    network = tb.BayesianNetwork.read(SET / f"{name}.erg.gz", max_unpacked=2**26)
    root = roots(network)[0]
    table = joint_distribution(network, [root, *leaves(network)])
    assert table.shape == (2,) * 14
    np.testing.assert_allclose(table.sum(axis=tuple(range(1, 14))), network.table(root), rtol=1e-10)
    for axis in (1, 13):
        others = tuple(i for i in range(14) if i not in (0, axis))
        pair = joint_distribution(network, [root, leaves(network)[axis - 1]], max_entries=2**12)
        np.testing.assert_allclose(table.sum(axis=others), pair, rtol=1e-9)
