"""The process that compiles: its input, and the errors when it cannot answer."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import trimbench as tb
from trimbench.trimming.engines import sdd as sdd_compiler
from trimbench.trimming.engines.circuit import SddEngine
from trimbench.trimming.engines.sdd import CircuitError, Encoding, Fork, Group, compile_network, encode, relevant_nodes

from ..extras import needs_pysdd
from ..networks.random_models import distributions
from .test_sdd_engine import RAIN

ROOT = Path(__file__).resolve().parents[2]


def wide_network(n_nodes: int) -> tb.BayesianNetwork:
    """A network without zeros or equal parameters whose circuit is too large for any machine."""
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(n_nodes)]
    parents = {
        name: [str(p) for p in rng.choice(names[:i], size=min(i, 5), replace=False)] for i, name in enumerate(names)
    }
    tables = {name: distributions(rng, (2,) * (len(parents[name]) + 1), coarse=False) for name in names}
    return tb.BayesianNetwork({key: ["a", "b"] for key in names}, parents, tables)


@pytest.fixture(scope="module")
def wide() -> Encoding:
    network = wide_network(80)
    return encode(network, "v0", "a", tuple(node for node in network.nodes if not network.children(node)))


def test_a_network_of_gates_is_compiled_over_its_inputs() -> None:
    gate = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    network = tb.BayesianNetwork(
        {key: ["1", "0"] for key in ["a", "b", "c", "and", "out", "other"]},
        {"and": ["a", "b"], "out": ["and", "c"], "other": ["out"]},
        {"a": [0.2, 0.8], "b": [0.3, 0.7], "c": [0.5, 0.5], "and": gate, "out": gate, "other": [[0.9, 0.1]] * 2},
    )
    encoding = encode(network, "a", "1", ("out",))
    # One for the chance of each input, one each for the class and the feature; none for the gate in between.
    assert encoding.n_variables == 5
    assert sorted(relevant_nodes(network, ["out"])) == ["a", "and", "b", "c", "out"]


def test_rows_share_variables_and_zeros_need_none() -> None:
    network = tb.BayesianNetwork(
        {"c": ["yes", "no"], "f": ["x", "y", "z"], "g": ["x", "y", "z"]},
        {"f": ["c"], "g": ["c"]},
        {"c": [0.5, 0.5], "f": [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], "g": [[0.0, 1.0, 0.0], [0.4, 0.0, 0.6]]},
    )
    chances = [
        part
        for part in encode(network, "c", "yes", ("f", "g")).vtree
        if isinstance(part, Group) and not part.is_indicator
    ]
    # The class takes one, the common row of f two, the second row of g one.
    assert len(chances) == 4
    assert sorted(float(group.weights[0, 0]) for group in chances) == pytest.approx([0.2, 0.375, 0.4, 0.5])
    assert all(group.weights.sum() == pytest.approx(1.0, abs=1e-15) for group in chances)


def test_every_variable_stands_once_in_the_vtree() -> None:
    rng = np.random.default_rng(5)
    tables = {
        "c": [0.4, 0.6],
        "h": distributions(rng, (2, 3), coarse=False),
        "f": distributions(rng, (3, 4), coarse=False),
    }
    network = tb.BayesianNetwork(
        {"c": ["0", "1"], "h": ["0", "1", "2"], "f": ["0", "1", "2", "3"]}, {"h": ["c"], "f": ["h"]}, tables
    )
    encoding = encode(network, "c", "0", ("f",))
    leaves = [int(line.split()[2]) for line in encoding.vtree_text().splitlines() if line.startswith("L")]
    assert sorted(leaves) == list(range(1, encoding.n_variables + 1))
    places = [part.place for part in encoding.vtree if isinstance(part, Fork)]
    assert len(set(places)) == len(places)
    assert max(places) < 2 * encoding.n_variables - 1


@needs_pysdd
def test_a_timeout_is_an_error_and_no_hang(wide: Encoding) -> None:
    started = time.perf_counter()
    with pytest.raises(CircuitError, match=r"not compiled after timeout=2 seconds; allow more, use engine='auto'"):
        compile_network(wide, timeout=2.0)
    assert time.perf_counter() - started < 15.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process dependably")
@needs_pysdd
def test_a_memory_limit_is_an_error(wide: Encoding) -> None:
    with pytest.raises(CircuitError, match=r"needs more than memory=400000000 bytes \(0\.4 GiB\); allow more"):
        compile_network(wide, timeout=60.0, memory=400_000_000)


@needs_pysdd
def test_a_poisoned_job_is_an_error() -> None:
    encoding = encode(RAIN, "rain", "yes", ("slip",))
    poisoned = dataclasses.replace(encoding, vtree=(Group((2**40,), ((True,),), np.ones((1, 1))),))
    with pytest.raises(
        CircuitError, match=r"process that compiles the network ended with exit code .*use engine='auto'"
    ):
        compile_network(poisoned, timeout=30.0)


@needs_pysdd
def test_a_killed_child_is_an_error(wide: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)
            children.append(self)

    monkeypatch.setattr(sdd_compiler.subprocess, "Popen", Recorded)
    timer = threading.Timer(1.0, lambda: children[0].kill())
    timer.start()
    with pytest.raises(CircuitError, match=r"ended with exit code -9 \(it said nothing\)"):
        compile_network(wide, timeout=60.0)
    timer.join()


@needs_pysdd
def test_pysdd_is_imported_in_the_child_only() -> None:
    code = (
        "import sys; from tests.trimming.test_sdd_engine import RAIN, SddEngine; "
        "SddEngine.build(RAIN, 'rain', 'yes', ['slip'], 0.5); sys.exit('pysdd' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


@needs_pysdd
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"target": "sun"}, r"target must be among \['rain', 'wet', 'slip'\], got 'sun'"),
        ({"positive": "maybe"}, r"positive must be one of \['yes', 'no'\], got 'maybe'"),
        ({"features": ["rain"]}, r"features must be among \['wet', 'slip'\], got 'rain'"),
        ({"features": ["wet", "wet"]}, r"features must be distinct, got \['wet', 'wet'\]"),
        ({"features": "wet"}, r"features must be a sequence of names, got the string 'wet'"),
        ({"threshold": 1.5}, r"threshold must be a probability in \[0, 1\], got 1\.5"),
        ({"timeout": 0}, r"timeout must be positive seconds or None, got 0; None sets no limit"),
        ({"timeout": float("nan")}, r"timeout must be positive seconds or None, got nan"),
        ({"memory": 0}, r"memory must be a positive number of bytes, got 0"),
    ],
)
def test_impossible_input_is_refused(change: dict[str, object], text: str) -> None:
    arguments: dict[str, object] = {"target": "rain", "positive": "yes", "features": ["wet"], "threshold": 0.5}
    with pytest.raises(ValueError, match=text):
        SddEngine.build(RAIN, **{**arguments, **change})  # type: ignore[arg-type]


@needs_pysdd
def test_only_networks_are_compiled() -> None:
    model = tb.NaiveBayes([0.5, 0.5], [[[0.1, 0.9], [0.6, 0.4]]])
    with pytest.raises(
        TypeError, match=r"network must be a BayesianNetwork, got NaiveBayes; a NaiveBayes has \.to_netw"
    ):
        SddEngine.build(model, "class", "0", [], 0.5)  # type: ignore[arg-type]
