"""The small network of a user."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trimbench as tb
from tests.networks.network_writers import encode_ergo
from trimbench.reproduction.configuration import Catalogue

from ..command_line import PROJECT


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """The project's declarations, and a user's own network with three binary roots and without a class."""
    rng = np.random.default_rng(0)
    roots: dict[str, list[str]] = {f"r{i}": [] for i in range(3)}
    parents = {**roots, **{f"x{i}": [f"r{i % 3}", f"r{(i + 1) % 3}"] for i in range(6)}}
    states = {node: ["0", "1"] for node in parents}
    tables = {node: rng.dirichlet(np.ones(2), size=(2,) * len(above)) for node, above in parents.items()}
    folder = tmp_path / "own/network"
    folder.mkdir(parents=True)
    (folder / "small.erg").write_text(encode_ergo(tb.BayesianNetwork(states, parents, tables)))
    (folder / "small.yaml").write_text("format: erg\npath: small.erg\n")
    return Catalogue((tmp_path / "own", *PROJECT.folders))
