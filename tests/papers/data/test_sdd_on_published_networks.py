"""The SDD engine against the dense engine and exact contraction, on the networks of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import trimbench as tb
from trimbench.networks.inference.joint import joint_distribution
from trimbench.trimming.engines.circuit import SddEngine, SddMeasure
from trimbench.trimming.engines.table import DenseEngine
from trimbench.trimming.thresholds import Instances, best_cut, is_positive


@pytest.mark.parametrize("name", ["bupa", "pima", "ident", "anatomy", "heart", "voting", "hepatitis"])
def test_published_naive_bayes_networks_equal_the_dense_engine(given_networks: Path, name: str) -> None:
    folder = given_networks / "files" / "trimbn"
    model = tb.NaiveBayes.read_ace(folder / f"{name}.net.cnf", folder / f"{name}.net.lmap")
    dense = DenseEngine.build(tb.BayesianClassifier(model, positive="0", threshold=0.5))
    engine = SddEngine.build(model.to_network(), model.class_variable, "0", model.feature_names, 0.5)
    assert engine.instances([]).positive == pytest.approx(dense.instances([]).positive, abs=1e-9)
    rng = np.random.default_rng(1)
    for _ in range(4):
        kept = tuple(int(i) for i in rng.choice(model.n_features, size=model.n_features // 2, replace=False))
        assert_same(engine, kept, dense.instances(kept))


@pytest.mark.parametrize(
    ("path", "n_features"),
    [
        ("PE/uai-2006/BN_78.erg.gz", 13),
        ("MPE/iscas89/s386.scan.erg.gz", 13),
        ("MPE/iscas89/c432.isc.erg.gz", 7),
    ],
)
def test_general_networks_equal_contraction(given_folder: Path, path: str, n_features: int) -> None:
    network = read_general(given_folder, path)
    target, features = class_and_features(network)
    assert len(features) == n_features
    engine = SddEngine.build(network, target, network.states(target)[0], features, 0.5)
    if path.endswith("c432.isc.erg.gz"):
        # The contraction takes half a minute: only what needs no second engine.
        assert engine.instances([]).positive == pytest.approx([0.5])
        assert engine.compilation.n_elements < 20_000
        return
    joint = joint_distribution(network, [target, *features])
    for kept in ((), (0, 3, 7), (1, 2, 5, 12), tuple(range(13))):
        away = tuple(i for i in range(n_features) if i not in kept)
        signed = np.where(is_positive(joint[0], joint[1], 0.5), joint[0] + joint[1], -joint[0] - joint[1])
        positive, negative, d = (table.sum(axis=away).reshape(-1) for table in (joint[0], joint[1], signed))
        assert_same(engine, kept, Instances(positive, negative, d))


def read_general(folder: Path, path: str) -> tb.BayesianNetwork:
    if not (folder / "files" / "uai2008" / path).is_file():
        pytest.skip(f"TRIMBENCH_CACHE does not hold files/uai2008/{path}")
    return tb.BayesianNetwork.read(folder / "files" / "uai2008" / path, max_unpacked=2**26)


def class_and_features(network: tb.BayesianNetwork) -> tuple[str, tuple[str, ...]]:
    """The first binary root, and all leaves."""
    roots = [v for v in network.nodes if not network.parents(v) and network.children(v) and network.cardinality(v) == 2]
    return roots[0], tuple(node for node in network.nodes if not network.children(node))


def potential_agreement(engine: SddEngine, kept: Sequence[int]) -> float:
    return SddMeasure(engine.root.diagram.restricted(kept)).potential_agreement()


def assert_same(engine: SddEngine, kept: Sequence[int], expected: Instances) -> None:
    instances = engine.instances(kept)
    assert instances.positive.sum() == pytest.approx(expected.positive.sum(), abs=1e-9)
    potential = 0.5 * (1.0 + float(np.abs(expected.signed).sum()))
    assert potential_agreement(engine, kept) == pytest.approx(potential, abs=1e-9)
    assert best_cut(instances, 0.5).agreement == pytest.approx(best_cut(expected, 0.5).agreement, abs=1e-9)
    for threshold in (0.1, 0.37, 0.5, 0.9):
        assert instances.agreement(threshold) == pytest.approx(expected.agreement(threshold), abs=1e-9)
