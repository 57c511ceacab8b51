"""The SDD engine against enumeration and dense tables, and the process that compiles, when it cannot answer."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench.trimming.engines import sdd as sdd_compiler
from trimbench.trimming.engines.circuit import SddEngine, SddMeasure
from trimbench.trimming.engines.sdd import (
    CircuitError,
    Diagram,
    Encoding,
    Group,
    compile_network,
    encode,
    relevant_nodes,
)

from ..extras import needs_pysdd
from ..networks.random_models import distributions, random_network
from . import brute_force

pytestmark = needs_pysdd

COMPILE_ALL = """
import pickle, sys
from trimbench.trimming.problem import Limits
from trimbench.trimming.engines.sdd_child import compile_encoding
answers = [compile_encoding(encoding) for encoding in pickle.load(sys.stdin.buffer)]
sys.stdout.buffer.write(pickle.dumps(answers))
"""
RAIN = tb.BayesianNetwork(
    {"rain": ["yes", "no"], "wet": ["yes", "no"], "slip": ["no", "a bit", "yes"]},
    {"wet": ["rain"], "slip": ["wet"]},
    {"rain": [0.2, 0.8], "wet": [[0.9, 0.1], [0.3, 0.7]], "slip": [[0.5, 0.2, 0.3], [0.9, 0.1, 0.0]]},
)


def compile_all(encodings: Sequence[Encoding]) -> list[Diagram]:
    """Compile many small networks in one child: starting one for each would take most of the time."""
    child = subprocess.run(
        [sys.executable, "-c", COMPILE_ALL], input=pickle.dumps(encodings), capture_output=True, check=True
    )
    answers: list[Diagram] = pickle.loads(child.stdout)
    return answers


def potential_agreement(engine: SddEngine, kept: Sequence[int]) -> float:
    return SddMeasure(engine.root.diagram.restricted(kept)).potential_agreement()


def without_all(engine: SddEngine, removed: Sequence[int]) -> float:
    """The potential agreement as a search finds it: features removed one by one, in the given order."""
    measure = engine.root
    for feature in removed[:-1]:
        measure = measure.without(feature)
        assert feature not in measure.features
    return measure.potential_agreement_without(removed[-1:]) if removed else measure.potential_agreement()


def random_classifier(rng: np.random.Generator) -> tb.BayesianClassifier:
    """Return a classifier on a network with zeros and determinism, with some of its nodes as features."""
    order = [f"v{i}" for i in range(int(rng.integers(3, 7)))]
    sizes = {node: int(rng.choice([1, 2, 2, 2, 3, 4])) for node in order}
    target = str(rng.choice(order))
    sizes[target] = 2
    parents = {node: [other for other in order[:i] if rng.random() < 0.5][:3] for i, node in enumerate(order)}
    tables = {}
    for node in order:
        shape = tuple(sizes[other] for other in (*parents[node], node))
        table = distributions(rng, shape, coarse=bool(rng.random() < 0.6))
        certain = np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
        tables[node] = np.where(rng.random((*shape[:-1], 1)) < rng.choice([0.0, 0.3, 1.0]), certain, table)
    nodes = [str(node) for node in rng.permutation(order)]
    network = tb.BayesianNetwork({node: [f"s{i}" for i in range(sizes[node])] for node in nodes}, parents, tables)
    others = [node for node in nodes if node != target]
    features = others[: int(rng.integers(0, len(others) + 1))]
    threshold = float(rng.choice([0.0, 0.2, 0.5, 0.7, 1.0]))
    return tb.BayesianClassifier(network, target, positive="s0", features=features, threshold=threshold)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=1)  # compiled in one child
def test_fifty_random_networks_equal_full_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classifiers = [random_classifier(rng) for _ in range(50)]
    compilations = compile_all([encode(brute_force.network_of(c), c.target, ("s0",), c.features) for c in classifiers])
    seen_zero = seen_multi = 0
    for classifier, compilation in zip(classifiers, compilations, strict=True):
        engine = SddEngine.from_joint(classifier, compilation)
        seen_zero += any(sum(pair) == 0 for pair in brute_force.whole(classifier).values())
        seen_multi += max(classifier.cardinalities, default=0) > 2
        for kept in brute_force.all_subsets(classifier.n_features):
            removed = [int(i) for i in rng.permutation([i for i in range(classifier.n_features) if i not in kept])]
            potential = brute_force.potential_agreement(classifier, kept)
            assert potential_agreement(engine, kept) == pytest.approx(potential, abs=1e-9)
            assert without_all(engine, removed) == pytest.approx(potential, abs=1e-9)
            best = engine.best_cut(kept)
            achievable = brute_force.achievable_agreement(classifier, kept)
            assert best.agreement == pytest.approx(achievable, abs=1e-9)
            same = brute_force.expected_agreement(classifier, kept, classifier.threshold)
            assert engine.agreement(kept, classifier.threshold) == pytest.approx(same, abs=1e-9)
    assert seen_zero > 10
    assert seen_multi > 10


def test_instances_that_lead_to_one_end_share_it() -> None:
    """Ten fair coins that say nothing, and a sensor: 2^11 instances are two ends of the diagram."""
    coins = [f"coin{i}" for i in range(10)]
    network = tb.BayesianNetwork(
        {name: ["a", "b"] for name in ["cause", "sensor", *coins]},
        {"sensor": ["cause"]},
        {"cause": [0.3, 0.7], "sensor": [[0.9, 0.1], [0.2, 0.8]], **{key: [0.5, 0.5] for key in coins}},
    )
    engine = SddEngine.of(
        tb.BayesianClassifier(network, "cause", positive="a", features=["sensor", *coins], threshold=0.5)
    )
    assert engine.root.diagram.n_nodes < 40
    instances = engine.instances(range(11))
    np.testing.assert_allclose(sorted(instances.positive), [0.03, 0.27], atol=1e-12)
    assert engine.root.without(0).potential_agreement() == pytest.approx(0.59)


def test_forty_outputs_of_a_circuit_need_no_table() -> None:
    """Wires from three inputs: 2^40 instances of the features, of which four are possible."""
    inputs = {"a": [0.2, 0.8], "b": [0.3, 0.7], "c": [0.6, 0.4]}
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")]
    exclusive_or = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    outputs = {f"out{i}": pairs[i % 4] for i in range(40)}
    network = tb.BayesianNetwork(
        {name: ["1", "0"] for name in (*inputs, *outputs)},
        {name: list(pair) for name, pair in outputs.items()},
        {**inputs, **dict.fromkeys(outputs, exclusive_or)},
    )
    engine = SddEngine.of(tb.BayesianClassifier(network, "a", positive="1", features=list(outputs), threshold=0.5))
    # The outputs tell the inputs up to taking the complement of all three: abc or its complement, with a = 1 or 0.
    expected = sorted(0.2 * b * c for b, c in itertools.product((0.3, 0.7), (0.6, 0.4)))
    instances = engine.instances(range(40))
    np.testing.assert_allclose(sorted(instances.positive), expected, atol=1e-15)
    assert engine.root.potential_agreement() == pytest.approx(1.0)
    assert potential_agreement(engine, [0, 1]) == pytest.approx(1.0)


@pytest.fixture(scope="module")
def wide() -> Encoding:
    """A network without zeros or equal parameters whose circuit is too large for any machine."""
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(80)]
    parents = {
        name: [str(p) for p in rng.choice(names[:i], size=min(i, 5), replace=False)] for i, name in enumerate(names)
    }
    network = random_network(rng, parents)
    return encode(network, "v0", "0", tuple(node for node in network.nodes if not network.children(node)))


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


def test_a_timeout_is_an_error_and_no_hang(wide: Encoding) -> None:
    started = os.times().children_user
    with pytest.raises(CircuitError, match=r"not compiled after timeout=0.5 seconds; allow more, use engine='auto'"):
        compile_network(wide, timeout=0.5)
    assert os.times().children_user - started < 15.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process dependably")
def test_a_memory_limit_is_an_error(wide: Encoding) -> None:
    with pytest.raises(CircuitError, match=r"needs more than memory=400000000 bytes \(0\.4 GiB\); allow more"):
        compile_network(wide, timeout=600.0, memory=400_000_000)


def test_a_poisoned_job_is_an_error() -> None:
    encoding = encode(RAIN, "rain", "yes", ("slip",))
    poisoned = dataclasses.replace(encoding, vtree=(Group((2**40,), ((True,),), np.ones((1, 1))),))
    with pytest.raises(
        CircuitError, match=r"process that compiles the network ended with exit code .*use engine='auto'"
    ):
        compile_network(poisoned, timeout=600.0)


def test_a_killed_child_is_an_error(wide: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(subprocess.Popen[bytes]):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)
            threading.Timer(0.2, self.kill).start()

    monkeypatch.setattr(sdd_compiler.subprocess, "Popen", Killed)
    with pytest.raises(CircuitError, match=r"ended with exit code -9 \(it said nothing\)"):
        compile_network(wide, timeout=600.0)


def test_pysdd_is_imported_in_the_child_only() -> None:
    SddEngine.of(tb.BayesianClassifier(RAIN, "rain", positive="yes"))
    assert not {name for name in sys.modules if name.startswith("pysdd")}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"timeout": 0}, r"timeout must be positive seconds or None, got 0; None sets no limit"),
        ({"timeout": float("nan")}, r"timeout must be positive seconds or None, got nan"),
        ({"memory": 0}, r"memory must be a positive number of bytes, got 0"),
    ],
)
def test_impossible_limits_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        compile_network(encode(RAIN, "rain", "yes", ("slip",)), **change)
