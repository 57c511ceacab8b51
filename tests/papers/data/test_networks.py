"""Networks from their declarations, and those of the trimming paper, where the cache has them."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import trimbench as tb
from tests.networks.network_writers import encode_bif, encode_ergo
from trimbench.networks.formats.ace import read_problem
from trimbench.networks.inference.joint import joint_distribution
from trimbench.papers.configuration import Catalogue, ConfigurationError, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import compare_with_files, declare_network, is_here, load_network
from trimbench.papers.execution.store import JobStore
from trimbench.papers.execution.workers import SerialExecutor
from trimbench.papers.validation import DataUnavailable
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.planning import Surroundings
from trimbench.trimming.engines.circuit import SddEngine, SddMeasure
from trimbench.trimming.thresholds import Instances, best_cut, is_positive

from .loopback import Loopback

ALARM = tb.BayesianNetwork(
    {"thief": ["yes", "no"], "bell": ["on", "off"], "call": ["yes", "no"]},
    {"bell": ["thief"], "call": ["bell"]},
    {"thief": [0.1, 0.9], "bell": [[0.9, 0.1], [0.2, 0.8]], "call": [[0.7, 0.3], [0.1, 0.9]]},
)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache((), tmp_path / "cache", offline=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "alarm.bif"
    path.write_text(encode_bif(ALARM))
    return path


def declared(file: Path, **more: Any) -> Any:
    return declare_network("mine", {"format": "bif", "path": str(file), **more})


def test_a_network_without_a_class_has_its_leaves_as_features(file: Path, cache: Cache) -> None:
    declaration = declared(file)
    assert is_here(declaration, cache)
    loaded = load_network(declaration, cache)
    assert isinstance(loaded.model, tb.BayesianNetwork)
    assert (loaded.target, loaded.positive, loaded.features) == (None, None, ("call",))
    assert set(loaded.model.nodes) == {"thief", "bell", "call"}


def test_a_leaf_that_is_the_class_is_no_feature(file: Path, cache: Cache) -> None:
    loaded = load_network(declared(file, target="call", positive="yes"), cache)
    assert (loaded.target, loaded.positive, loaded.features) == ("call", "yes", ())


def test_the_hash_is_that_of_the_content(file: Path) -> None:
    before = declared(file).sha256
    assert declared(file, target="thief", positive="yes").sha256 == before
    file.write_text(file.read_text().replace("0.7", "0.6").replace("0.3", "0.4"))
    assert declared(file).sha256 != before


FIGURES: dict[str, Any] = {
    "format": "tables",
    "target": "thief",
    "positive": "yes",
    "states": {"thief": ["yes", "no"], "bell": ["on", "off"]},
    "prior": [0.1, 0.91],
    "likelihoods": {"bell": [[0.9, 0.1], [0.2, 0.8]], "door": [0.5, [0.25, 0.75]]},
}


def test_a_network_declared_as_figures_needs_no_file_and_is_normalised(cache: Cache) -> None:
    declaration = declare_network("mine", FIGURES)
    assert is_here(declaration, cache)
    loaded = load_network(declaration, cache)
    assert isinstance(loaded.model, tb.NaiveBayes)
    assert (loaded.target, loaded.positive, loaded.features) == ("thief", "yes", ("bell", "door"))
    assert loaded.model.value_names == (("on", "off"), ("0", "1"))
    assert loaded.model.prior.tolist() == [0.1 / 1.01, 0.91 / 1.01]
    assert loaded.model.likelihoods[1].tolist() == [[0.5, 0.5], [0.25, 0.75]]
    turned = declare_network("mine", FIGURES | {"features": ["door", "bell"]})
    assert load_network(turned, cache).features == ("door", "bell")
    assert declaration.sha256 == turned.sha256 != declare_network("mine", FIGURES | {"prior": [0.1, 0.9]}).sha256


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"prior": [0.1, 0.8]}, r"the distributions of 'thief' must sum to 1 within 0\.02, got a deviation of 0\.1"),
        ({"prior": [0.1, 1.5]}, r"network 'mine': prior\.1 must be a number from 0 to 1, got 1\.5"),
        ({"prior": [1.0]}, r"network 'mine': prior must be a list of at least 2 value\(s\), got \[1\.0\]"),
        ({"likelihoods": {}}, "network 'mine': likelihoods must be"),
        (
            {"likelihoods": {"bell": [[0.9, 0.1]]}},
            r"likelihoods\.bell must have a row for each of the 2 numbers of prior",
        ),
        ({"likelihoods": {"bell": [[0.9, 0.1], [1.0]]}}, r"each with 2 numbers or one that holds for every state, got"),
        ({"likelihoods": {"bell": [["a", 0.1], 0.5]}}, r"must be a number from 0 to 1, got \['a', 0\.1\]"),
        ({"positive": "maybe"}, r"network 'mine': positive must be a state of 'thief', yes, no, got 'maybe'"),
        ({"features": ["bell"]}, r"features must be \['bell'\], got \['bell', 'door'\] in its figures"),
        ({"states": {"bel": ["on", "off"]}}, "states must name the target or features, thief, bell, door, got 'bel'"),
        ({"prior": [0.1, 0.2, 0.7]}, r"prior must have a number for each of the states yes, no, got \[0\.1, 0\.2, 0"),
    ],
)
def test_figures_that_are_no_network_are_named(cache: Cache, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_network(declare_network("mine", FIGURES | more), cache)


def test_other_networks_run_beside_figures_that_are_no_network(tmp_path: Path, cache: Cache) -> None:
    inputs = inputs_of(tmp_path, FIGURES | {"prior": [0.1, 0.8]}, cache)
    (tmp_path / "network/ok.yaml").write_text(yaml.safe_dump(FIGURES))
    where = Surroundings(inputs, JobStore(tmp_path / "jobs"), SerialExecutor(), "default")
    assert "network 'alarm': the distributions of 'thief'" in where.obstacle(inputs.network("alarm"))
    assert where.obstacle(inputs.network("ok")) == ""


def test_a_missing_file_is_explained(tmp_path: Path, cache: Cache) -> None:
    declaration = declared(tmp_path / "gone.bif")
    assert not is_here(declaration, cache)
    for call in (lambda: load_network(declaration, cache), lambda: declaration.sha256):
        with pytest.raises(DataUnavailable, match=r"network 'mine': path must be an existing file, got .*gone\.bif"):
            call()


def offered(loopback: Loopback, evidence: str) -> dict[str, Any]:
    """Declare the alarm in Ergo format, with evidence, on the server."""
    contents = {"network": ("alarm.erg", encode_ergo(ALARM)), "evidence": ("alarm.erg.evid.gz", evidence)}
    files = {}
    for role, (name, text) in contents.items():
        body = gzip.compress(text.encode(), mtime=0) if name.endswith(".gz") else text.encode()
        loopback.files[f"/{name}"] = body
        sha256 = hashlib.sha256(body).hexdigest()
        files[role] = {"path": f"alarm/{name}", "url": loopback.url(f"/{name}"), "sha256": sha256}
    return {"format": "erg", "files": files}


def inputs_of(folder: Path, declaration: dict[str, Any], cache: Cache) -> Inputs:
    (folder / "network").mkdir()
    (folder / "network/alarm.yaml").write_text(yaml.safe_dump(declaration))
    return Inputs(Catalogue((folder,)), cache)


def test_evidence_is_downloaded_and_read_where_it_is_asked_for(tmp_path: Path, loopback: Loopback) -> None:
    cache = Cache((), tmp_path / "cache")
    inputs = inputs_of(tmp_path, offered(loopback, "/* Evidence */ 1\n 1 0\n"), cache)
    plain, given = inputs.network("alarm"), inputs.network("alarm", evidence=True)
    assert plain.sha256 != given.sha256
    assert plain.name != given.name
    assert "evidence" not in plain.declared["files"]  # type: ignore[operator]
    loaded = load_network(plain.declaration, cache)  # type: ignore[arg-type]
    assert loaded.evidence == {}
    assert loopback.requests == ["GET /alarm.erg"]
    assert is_here(plain.declaration, cache)
    assert not is_here(given.declaration, cache)
    loaded = load_network(given.declaration, cache)  # type: ignore[arg-type]
    assert loopback.requests == ["GET /alarm.erg", "GET /alarm.erg.evid.gz"]
    assert isinstance(loaded.model, tb.BayesianNetwork)
    node = loaded.model.nodes[1]
    assert loaded.evidence == {node: loaded.model.states(node)[0]}
    assert is_here(given.declaration, cache)


def test_a_network_with_unused_evidence_has_the_hash_that_it_has_without(tmp_path: Path, loopback: Loopback) -> None:
    declaration = offered(loopback, "0")
    inputs = inputs_of(tmp_path, declaration, Cache((), tmp_path / "cache"))
    del declaration["files"]["evidence"]
    assert inputs.network("alarm").sha256 == declare_network("alarm", declaration).sha256
    assert inputs.network("alarm").declared == declaration


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sha256": "0" * 64}, DataUnavailable, "the download must have SHA-256"),
        ({"url": None}, ConfigurationError, "evidence"),
    ],
)
def test_wrong_evidence_is_refused(
    tmp_path: Path, loopback: Loopback, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    declaration = offered(loopback, "0")
    declaration["files"]["evidence"] |= change
    with pytest.raises(error, match=message):
        load_network(declare_network("alarm", declaration), Cache((), tmp_path / "cache"))


def test_evidence_that_does_not_fit_the_network_is_named(tmp_path: Path, loopback: Loopback) -> None:
    declaration = offered(loopback, "1\n 3 0\n")
    message = (
        r"alarm\.erg\.evid\.gz, line 2: the index of an observed variable must be a whole number in 0\.\.2, got '3'"
    )
    with pytest.raises(ValueError, match=message):
        load_network(declare_network("alarm", declaration), Cache((), tmp_path / "cache"))


def test_evidence_that_is_not_declared_cannot_be_asked_for(tmp_path: Path, loopback: Loopback, file: Path) -> None:
    inputs = inputs_of(tmp_path, {"format": "bif", "path": str(file)}, Cache((), tmp_path / "cache"))
    with pytest.raises(ValueError, match=re.escape("'alarm' must be declared with an evidence file (files.evidence)")):
        inputs.network("alarm", evidence=True)


def test_features_and_evidence_are_those_of_the_declaration(file: Path, cache: Cache) -> None:
    classes = {"target": "thief", "positive": "yes"}
    network = load_network(declared(file, **classes, features=["bell", "call"]), cache)
    assert (network.features, dict(network.evidence)) == (("bell", "call"), {})
    network = load_network(declared(file, **classes, evidence={"bell": "on"}), cache)
    assert (network.features, dict(network.evidence)) == (("call",), {"bell": "on"})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"features": ["door"]}, r"network 'mine': features must be one of its nodes, thief, bell, call, got 'door'"),
        ({"evidence": {"door": "on"}}, r"network 'mine': evidence must be one of its nodes, .*got 'door'"),
        ({"evidence": {"bell": "loud"}}, r"evidence on 'bell' must be one of its states, \['on', 'off'\], got 'loud'"),
        ({"evidence": {"bell": True}}, r"put it in quotes"),
        ({"evidence": {"thief": "yes"}}, r"evidence must not be on the target, got 'thief'"),
        ({"features": ["thief"]}, r"features must be neither the target nor in evidence, got 'thief'"),
        ({"features": ["bell"], "evidence": {"bell": "on"}}, r"neither the target nor in evidence, got 'bell'"),
        ({"target": "burglar"}, r"target must be one of its nodes, .*thief.*, got 'burglar'"),
        ({"facts": {"features": 5}}, r"number of features \(leaves\) must be 5, got 1 in its files"),
        ({"format": "erg"}, r"a file of format 'erg' must end in \.erg \(and \.gz\), got 'alarm\.bif'"),
    ],
)
def test_what_the_file_does_not_hold_is_refused(file: Path, cache: Cache, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_network(declared(file, **{"target": "thief", "positive": "yes", **more}), cache)


PROJECT = Catalogue((configuration_folder(),))
NOWHERE = Cache((), Path("nowhere"), offline=True)
N_FEATURES = {"bupa": 6, "pima": 8, "ident": 9, "anatomy": 12, "heart": 13, "voting": 16, "hepatitis": 19}


@pytest.mark.parametrize("name", N_FEATURES)
def test_the_declared_figures_are_those_of_the_files_to_the_last_bit(given_networks: Path, name: str) -> None:
    files = given_networks / "files/trimbn"
    cache = Cache((given_networks,), given_networks, offline=True)
    declaration = declare_network(name, PROJECT.network_mapping(name))
    assert compare_with_files(declaration, cache)
    loaded = load_network(declaration, cache)
    model = tb.NaiveBayes.read_ace(files / f"{name}.net.cnf", files / f"{name}.net.lmap")
    problem = read_problem(files / f"{name}.net.search")
    assert isinstance(loaded.model, tb.NaiveBayes)
    assert (loaded.features, loaded.target) == (tuple(problem.costs), problem.target)
    assert (len(loaded.features), loaded.model.class_names) == (N_FEATURES[name], ("0", "1"))
    assert (set(problem.costs.values()), problem.threshold) == ({1.0}, 0.5)
    assert 2.0 <= problem.budget <= 6.3
    assert loaded.model.prior.tobytes() == model.prior.tobytes()
    assert [table.tobytes() for table in loaded.model.likelihoods] == [one.tobytes() for one in model.likelihoods]


def test_the_figures_are_332_probabilities() -> None:
    loaded = [load_network(declare_network(name, PROJECT.network_mapping(name)), NOWHERE).model for name in N_FEATURES]
    assert sum(table.size for model in loaded if isinstance(model, tb.NaiveBayes) for table in model.likelihoods) == 332


@pytest.mark.parametrize(("name", "n_features"), [("s386.scan", 13), ("c432.isc", 7)])
def test_general_networks_equal_contraction(given_folder: Path, name: str, n_features: int) -> None:
    network = read_general(given_folder, f"MPE/iscas89/{name}.erg.gz")
    # The first binary root, and all leaves.
    roots = [v for v in network.nodes if not network.parents(v) and network.children(v) and network.cardinality(v) == 2]
    target, features = roots[0], tuple(node for node in network.nodes if not network.children(node))
    assert len(features) == n_features
    engine = SddEngine.of(
        tb.BayesianClassifier(network, target, positive=network.states(target)[0], features=features, threshold=0.5)
    )
    if name == "c432.isc":
        # The contraction takes half a minute: only what needs no second engine.
        assert engine.instances([]).positive == pytest.approx([0.5])
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
