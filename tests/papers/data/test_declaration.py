"""Declarations of data sets and networks: what they become, and how mistakes in them are explained."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.data.bundled_source import BundledSource
from trimbench.papers.data.csv_source import CsvSource
from trimbench.papers.data.dataset import Facts
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.files import CacheOnlyFile, FileDeclaration, UnverifiedFile
from trimbench.papers.data.network_declaration import declare_network
from trimbench.papers.data.openml_source import OpenMLSource
from trimbench.papers.data.r_source import RSource
from trimbench.papers.data.simulated_source import SimulatedSource
from trimbench.papers.validation import ConfigurationError

FILE = {"path": "a/b.csv", "url": "https://host.invalid/b.csv", "sha256": "ab" * 32}
OPENML = {"kind": "openml", "id": 37, "version": 1, "target": "class"}
SIMULATED = {"kind": "simulated", "model": "naive_bayes", "rows": 5, "features": 2, "seed": 0, "prior": 0.5}
CSV = {"kind": "csv", "target": "y", "file": FILE}
R = {
    "kind": "r",
    "target": "class",
    "prefix": "gene",
    "labels": "y",
    "file": {"path": "a/b.rda", "url": "https://host.invalid/b.rda"},
    "facts": {"sha256": "01" * 32},
}
TABLE = {"path": "a/b.csv.gz", "sha256": "ab" * 32}
NETWORK = {
    "format": "ace",
    "files": {role: FILE | {"path": f"n.{role}"} for role in ("cnf", "lmap", "search")},
    "target": "BP",
    "positive": "0",
    "facts": {"features": 6},
}


def _without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


R_SOURCE = RSource(
    target="class",
    prefix="gene",
    labels="y",
    file=UnverifiedFile(path="a/b.rda", url="https://host.invalid/b.rda"),
    facts=Facts(sha256="01" * 32),
)


@pytest.mark.parametrize(
    ("mapping", "source"),
    [
        (OPENML, OpenMLSource(id=37, version=1, target="class")),
        ({"kind": "bundled", "dataset": "digits"}, BundledSource(dataset="digits")),
        (SIMULATED, SimulatedSource(model="naive_bayes", rows=5, features=2, seed=0, prior=0.5)),
        (CSV, CsvSource(target="y", file=FileDeclaration(**FILE))),
        ({"kind": "csv", "target": "y", "path": "t.csv"}, CsvSource(target="y", path="t.csv")),
        (R, R_SOURCE),
        (R | {"table": TABLE}, dataclasses.replace(R_SOURCE, table=CacheOnlyFile(**TABLE))),
    ],
)
def test_each_kind_becomes_its_source(mapping: dict[str, Any], source: object) -> None:
    assert declare_dataset("d", mapping).source == source


def test_facts_are_read() -> None:
    facts = {"rows": 3, "features": 2, "classes": {"no": 1, "yes": 2}, "sha256": "01" * 32}
    assert declare_dataset("d", OPENML | {"facts": facts}).facts == Facts(**facts)
    assert declare_dataset("d", OPENML).facts == Facts()


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"kind": "opennml"}, ": kind must be one of bundled, csv, openml, r, simulated, got 'opennml'; "
         "did you mean 'openml'?"),
        ({"id": 37}, ": key kind is missing; add it"),
        (OPENML | {"targte": "x"}, ": a key must be one of facts, id, kind, target, version, got 'targte'; "
         "did you mean 'target'?"),
        (OPENML | {3: 4}, ": a key must be a text (put it in quotes), got 3"),
        (_without(OPENML, "version"), ": key version is missing; add it"),
        (OPENML | {"id": "37"}, ": id must be a whole number of at least 1, got '37'"),
        (OPENML | {"id": True}, ": id must be a whole number of at least 1, got True"),
        (OPENML | {"id": 0}, ": id must be a whole number of at least 1, got 0"),
        (OPENML | {"target": 1}, ": target must be a text that is not empty (put it in quotes), got 1"),
        (OPENML | {"target": ""}, ": target must be a text that is not empty (put it in quotes), got ''"),
        (OPENML | {"facts": 3}, ": facts must be keys and values, got 3"),
        (OPENML | {"facts": {"row": 3}}, ": a key of facts must be one of classes, features, rows, sha256, got 'row'; "
         "did you mean 'rows'?"),
        (OPENML | {"facts": {"classes": {True: 3}}}, ": a key of facts.classes must be a text (put it in quotes), "
         "got True"),
        (OPENML | {"facts": {"classes": {"a": -1}}}, ": facts.classes.a must be a whole number of at least 0, got -1"),
        (OPENML | {"facts": {"sha256": "AB" * 32}}, ": facts.sha256 must be 64 lower-case hexadecimal digits in "
         f"quotes (a SHA-256), got '{'AB' * 32}'"),
        ({"kind": "bundled", "dataset": "digit"}, ": dataset must be one of breast_cancer, digits, got 'digit'; "
         "did you mean 'digits'?"),
        (SIMULATED | {"prior": 1}, ": prior must be a number between 0 and 1 (both excluded), got 1"),
        (SIMULATED | {"prior": "half"}, ": prior must be a number between 0 and 1 (both excluded), got 'half'"),
        (SIMULATED | {"seed": -1}, ": seed must be a whole number of at least 0, got -1"),
        (SIMULATED | {"model": "tree"}, ": model must be one of naive_bayes, got 'tree'"),
        (_without(CSV, "file"), ": give exactly one of path (a file of your own) and file (with path, url and "
         "sha256), got []"),
        (CSV | {"path": "x"}, "and file (with path, url and sha256), got ['path', 'file']"),
        (CSV | {"file": FILE | {"path": "/a"}}, ": file.path must be a relative path that stays inside the cache "
         "(no '..'), got '/a'"),
        (CSV | {"file": FILE | {"path": "a/../../b"}}, "(no '..'), got 'a/../../b'"),
        (CSV | {"file": FILE | {"url": "ftp://x"}}, ": file.url must be an address that starts with https:// or "
         "http://, got 'ftp://x'"),
        (CSV | {"file": _without(FILE, "url")}, ": key file.url is missing; add it"),
        (_without(R, "facts"), ": key facts.sha256 is missing; add it (no hash of the R file is declared, so only the "
         "fingerprint of its values vouches for it)"),
        (_without(R, "labels"), ": key labels is missing; add it"),
        (R | {"file": FILE}, ": a key of file must be one of path, url, got 'sha256'"),
        (R | {"file": R["file"] | {"path": "../b"}}, "(no '..'), got '../b'"),
        (R | {"table": FILE}, ": a key of table must be one of path, sha256, got 'url'"),
        ("diabetes", " must be keys and values, got 'diabetes'"),
    ],
)  # fmt: skip
def test_mistake_in_a_data_set_is_explained(mapping: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        declare_dataset("mine", mapping)
    assert str(raised.value).startswith("data set 'mine'")
    assert str(raised.value).endswith(message)


def test_network_is_read() -> None:
    network = declare_network("bupa", NETWORK)
    assert (network.name, network.format, network.target, network.positive) == ("bupa", "ace", "BP", "0")
    assert (network.features, network.path) == (6, None)
    assert network.files["lmap"] == FileDeclaration(**FILE | {"path": "n.lmap"})
    assert list(network.files) == ["cnf", "lmap", "search"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (NETWORK | {"format": "aces"}, ": format must be one of ace, bif, erg, uai, xmlbif, got 'aces'; "
         "did you mean 'ace'?"),
        (_without(NETWORK, "target"), ": key target is missing; add it"),
        (NETWORK | {"positive": 0}, ": positive must be a text that is not empty (put it in quotes), got 0"),
        (NETWORK | {"files": _without(NETWORK["files"], "lmap")}, ": key files.lmap is missing; add it"),
        (NETWORK | {"files": {"cnf": FILE | {"sha256": "x"}}}, ": files.cnf.sha256 must be 64 lower-case hexadecimal "
         "digits in quotes (a SHA-256), got 'x'"),
        (NETWORK | {"format": "uai"}, ": a key of files must be one of network, got 'cnf'"),
        (NETWORK | {"facts": {}}, ": key facts.features is missing; add it"),
        (NETWORK | {"facts": {"features": 0}}, ": facts.features must be a whole number of at least 1, got 0"),
        ({"format": "bif"}, ": give exactly one of path (a file of your own) and files (with path, url and sha256), "
         "got []"),
        ({"format": "bif", "path": "a.bif", "files": {"network": FILE}}, ", got ['path', 'files']"),
        ({"format": "bif", "path": "a.bif", "target": "x"}, ": give both target and positive, or neither"),
        ({"format": "bif", "path": 3}, ": path must be a text that is not empty (put it in quotes), got 3"),
        ({"format": "ace", "path": "a"}, ": a key must be one of facts, files, format, positive, target, got 'path'"),
        ({"format": "bif", "path": "a", "facts": {"nodes": 3}}, ": a key of facts must be one of features, "
         "got 'nodes'"),
    ],
)  # fmt: skip
def test_mistake_in_a_network_is_explained(mapping: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        declare_network("mine", mapping)
    assert str(raised.value).startswith("network 'mine'")
    assert str(raised.value).endswith(message)


def test_hash_of_a_network_depends_on_its_files_and_nothing_else() -> None:
    network = declare_network("bupa", NETWORK)
    turned = dataclasses.replace(network, files=dict(reversed(network.files.items())), name="other", features=1)
    assert turned.sha256 == network.sha256
    changed = {**network.files, "cnf": dataclasses.replace(network.files["cnf"], sha256="cd" * 32)}
    assert dataclasses.replace(network, files=changed).sha256 != network.sha256
    swapped = {"cnf": network.files["cnf"], "lmap": changed["cnf"]}
    other_way = {"cnf": changed["cnf"], "lmap": network.files["cnf"]}
    assert dataclasses.replace(network, files=swapped).sha256 != dataclasses.replace(network, files=other_way).sha256


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=8), inner, max_size=2)),
    max_leaves=4,
)


@given(st.sampled_from([OPENML, SIMULATED, CSV, R]), st.data())
def test_any_wrong_value_gives_a_named_error_and_no_other(mapping: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([*mapping, "facts", "extra"]))
    value = data.draw(VALUES)
    message = ""
    try:
        declare_dataset("mine", mapping | {key: value})
    except ConfigurationError as error:
        message = str(error)
    if message or key == "extra":
        assert message.startswith("data set 'mine': ")
        assert key in message
    else:
        assert type(value) is type(mapping.get(key, {}))
