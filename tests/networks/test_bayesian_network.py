"""Bayesian networks: checks, structure, sampling against exact probabilities, names of files."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trimbench as tb

STATES = {"rain": ["yes", "no"], "sprinkler": ["on", "off"], "grass": ["dry", "damp", "wet"]}
PARENTS = {"grass": ["rain", "sprinkler"], "sprinkler": ["rain"]}
TABLES: dict[str, Any] = {
    "rain": [0.2, 0.8],
    "sprinkler": [[0.0, 1.0], [0.4, 0.6]],
    "grass": [[[0.0, 0.1, 0.9], [0.0, 0.3, 0.7]], [[0.1, 0.5, 0.4], [1.0, 0.0, 0.0]]],
}


def lawn() -> tb.BayesianNetwork:
    return tb.BayesianNetwork(STATES, PARENTS, TABLES)


def same(one: tb.BayesianNetwork, other: tb.BayesianNetwork) -> bool:
    """Equal structure, and probabilities equal bit for bit."""
    return one.nodes == other.nodes and all(
        (one.states(v), one.parents(v), one.table(v).shape, one.table(v).tobytes())
        == (other.states(v), other.parents(v), other.table(v).shape, other.table(v).tobytes())
        for v in one.nodes
    )


def test_structure() -> None:
    network = lawn()
    assert network.nodes == ("rain", "sprinkler", "grass")
    assert network.parents("grass") == ("rain", "sprinkler")
    assert network.parents("rain") == ()
    assert network.children("rain") == ("sprinkler", "grass")
    assert network.children("grass") == ()
    assert network.states("grass") == ("dry", "damp", "wet")
    assert network.cardinality("grass") == 3
    assert network.table("grass").shape == (2, 2, 3)
    assert repr(network) == "BayesianNetwork(3 nodes, 3 edges)"
    with pytest.raises(ValueError, match="read-only"):
        network.table("rain")[0] = 1.0


@pytest.mark.parametrize("method", ["parents", "children", "states", "cardinality", "table"])
def test_an_unknown_node_is_a_key_error_that_lists_the_nodes(method: str) -> None:
    with pytest.raises(KeyError, match=re.escape("node must be among ['rain', 'sprinkler', 'grass'], got 'snow'")):
        getattr(lawn(), method)("snow")


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("states", {"": ["a"]}, "nodes must be non-empty strings, got ''; convert them with str()"),
        ("states", {1: ["a"]}, "nodes must be non-empty strings, got 1"),
        ("states", {"rain": ["yes", "yes"]}, "states of 'rain' must be distinct, got 'yes' more than once; rename one"),
        ("states", {"rain": [0, 1]}, "states of 'rain' must be non-empty strings, got 0; convert them with str()"),
        (
            "states",
            {"rain": "yn"},
            "states of 'rain' must be a sequence of strings, got the string 'yn'; put it in a list",
        ),
        (
            "parents",
            {"snow": ["rain"]},
            "parents must be given for nodes among ['rain', 'sprinkler', 'grass'], got 'snow'",
        ),
        ("tables", {"snow": [1.0]}, "tables must be given for nodes among ['rain', 'sprinkler', 'grass'], got 'snow'"),
        ("parents", {"rain": ["snow"]}, "parents of 'rain' must be among ['rain', 'sprinkler', 'grass'], got 'snow'"),
        ("parents", {"grass": ["rain", "rain"]}, "parents of 'grass' must be distinct, got 'rain' more than once"),
        (
            "parents",
            {"sprinkler": "rain"},
            "parents of 'sprinkler' must be a sequence of strings, got the string 'rain'",
        ),
        ("tables", {"rain": None}, "tables must have an entry for every node, got none for 'rain'"),
        ("parents", {"rain": ["rain"]}, "parents must make an acyclic graph, got the cycle ['rain', 'rain']"),
        ("parents", {"rain": ["grass"]}, "parents must make an acyclic graph, got the cycle ["),
        ("states", {"rain": []}, "table of 'rain' must have shape (0,)"),
        ("tables", {"rain": []}, "table of 'rain' must be a non-empty array with 1 axes, got shape (0,)"),
        (
            "tables",
            {"sprinkler": [0.4, 0.6]},
            "table of 'sprinkler' must be a non-empty array with 2 axes, got shape (2,)",
        ),
        (
            "tables",
            {"grass": np.full((2, 3, 2), 0.5)},
            "table of 'grass' must have shape (2, 2, 3) (its parents ['rain', 'sprinkler'], then itself), "
            "got (2, 3, 2)",
        ),
        (
            "tables",
            {"rain": [0.2, 0.7]},
            "table of 'rain' must sum to 1 along the last axis (within 1e-06), got a sum of",
        ),
        ("tables", {"rain": {"yes": 1}}, "table of 'rain' must be an array of numbers with rows of equal length"),
    ],
)
def test_a_network_that_makes_no_sense_is_refused(part: str, changes: dict[Any, Any], message: str) -> None:
    parts: dict[str, dict[Any, Any]] = {"states": STATES, "parents": PARENTS, "tables": TABLES}
    parts[part] = {name: value for name, value in (parts[part] | changes).items() if value is not None}
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.BayesianNetwork(**parts)


@pytest.mark.parametrize("order", [["rain", "sprinkler", "grass"], ["grass", "sprinkler", "rain"]])
def test_sampled_frequencies_are_the_probabilities_wherever_parents_stand(order: list[str]) -> None:
    n_rows = 20_000
    network = tb.BayesianNetwork({name: STATES[name] for name in order}, PARENTS, TABLES)
    rows = network.sample(n_rows, np.random.default_rng(3))
    assert list(rows.columns) == order
    assert [tuple(rows[node].cat.categories) for node in network.nodes] == [network.states(v) for v in network.nodes]
    counts = rows[list(STATES)].astype(str).value_counts().to_dict()
    for r, s, g in itertools.product(range(2), range(2), range(3)):
        exact = TABLES["rain"][r] * TABLES["sprinkler"][r][s] * TABLES["grass"][r][s][g]
        key = (STATES["rain"][r], STATES["sprinkler"][s], STATES["grass"][g])
        observed = counts.pop(key, 0) / n_rows
        assert abs(observed - exact) <= 5 * math.sqrt(exact * (1 - exact) / n_rows)
    assert not counts


def test_the_generator_alone_decides_the_sample() -> None:
    """Not the hashes of the names, which differ between processes."""
    tables = [np.full((2,) * n, 0.5) for n in (1, 1, 1, 1, 3, 2)]
    samples = []
    for prefix in range(10):
        names = [f"{prefix}{i}" for i in range(6)]
        parents = {names[4]: [names[1], names[0]], names[5]: [names[3]]}
        network = tb.BayesianNetwork({v: ["0", "1"] for v in names}, parents, dict(zip(names, tables, strict=True)))
        samples.append(network.sample(300, np.random.default_rng(7)).to_numpy().tolist())
    assert samples == samples[:1] * 10
    assert network.sample(300, np.random.default_rng(8)).to_numpy().tolist() != samples[0]
    rng = np.random.default_rng(7)
    assert not network.sample(300, rng).equals(network.sample(300, rng))


class _Extreme:
    """Stands in for a generator: every draw is the largest, or the smallest, that there is."""

    def __init__(self, draw: float) -> None:
        self.draw = draw

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.draw)


@pytest.mark.parametrize("draw", [0.0, float(np.nextafter(1.0, 0.0))])
def test_a_state_of_probability_zero_is_never_drawn(draw: float) -> None:
    table = [0.0, *[0.1] * 10, 0.0]  # ten tenths add up to less than 1
    network = tb.BayesianNetwork({"v": [str(i) for i in range(12)]}, {}, {"v": table})
    drawn = network.sample(1, _Extreme(draw))["v"].iloc[0]  # type: ignore[arg-type]
    assert drawn == ("1" if draw == 0 else "10")


def test_no_rows_and_fewer() -> None:
    rows = lawn().sample(0, np.random.default_rng(0))
    assert rows.shape == (0, 3)
    assert tuple(rows["grass"].cat.categories) == ("dry", "damp", "wet")
    with pytest.raises(ValueError, match=re.escape("n_rows must be 0 or more, got -1")):
        lawn().sample(-1, np.random.default_rng(0))


def test_an_unknown_ending_is_refused_before_the_file_is_opened(tmp_path: Path) -> None:
    message = (
        r"path must end in \.json, \.erg, \.uai, \.bif, \.xmlbif, \.bifxml, \.xml, or one of the latter and \.gz, "
        r"got '.*absent\.{}'; an ACE network is read by NaiveBayes.read_ace; pyAgrum reads \.net, \.dsl and \.xdsl and "
        r"writes \.bif"
    )
    for ending in ("cnf", "json.gz", "gz", "net"):
        with pytest.raises(ValueError, match=message.format(ending)):
            tb.BayesianNetwork.read(tmp_path / f"absent.{ending}")
    for ending in ("JSON", "erg", "erg.gz", "UAI", "bif", "xmlbif", "xml"):
        with pytest.raises(FileNotFoundError):
            tb.BayesianNetwork.read(tmp_path / f"absent.{ending}")
