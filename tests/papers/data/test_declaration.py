import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.data.dataset import Facts
from trimbench.papers.data.declaration import (
    BundledSource,
    CsvSource,
    OpenMLSource,
    RSource,
    SimulatedSource,
    declare_dataset,
)
from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.files import CacheOnlyFile, FileDeclaration
from trimbench.papers.data.network_declaration import declare_network

FILE = {"path": "a/b.csv", "url": "https://host.invalid/b.csv", "sha256": "ab" * 32}
OPENML = {"kind": "openml", "id": 37, "version": 1, "target": "class"}
SIMULATED = {"kind": "simulated", "model": "naive_bayes", "rows": 5, "features": 2, "seed": 0, "prior": 0.5}
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


def test_each_kind_becomes_its_source(tmp_path: Path) -> None:
    assert declare_dataset("d", OPENML).source == OpenMLSource(37, 1, "class")
    assert declare_dataset("d", {"kind": "bundled", "dataset": "digits"}).source == BundledSource("digits")
    assert declare_dataset("d", SIMULATED).source == SimulatedSource("naive_bayes", 5, 2, 0, 0.5)
    csv = {"kind": "csv", "target": "y", "file": FILE}
    assert declare_dataset("d", csv).source == CsvSource("y", file=FileDeclaration(**FILE))
    source = RSource("class", "gene", "y", "a/b.rda", "https://host.invalid/b.rda")
    assert declare_dataset("d", R).source == source
    table = CacheOnlyFile("a/b.csv.gz", "ab" * 32)
    assert declare_dataset("d", R | {"table": TABLE}).source == dataclasses.replace(source, table=table)
    assert declare_dataset("d", OPENML).facts == Facts()


def test_relative_path_starts_at_the_base(tmp_path: Path) -> None:
    csv = {"kind": "csv", "target": "y", "path": "sub/t.csv"}
    assert declare_dataset("d", csv, tmp_path).source == CsvSource("y", path=tmp_path / "sub" / "t.csv")
    assert declare_dataset("d", csv).source == CsvSource("y", path=Path("sub/t.csv"))
    absolute = csv | {"path": "/data/t.csv"}
    assert declare_dataset("d", absolute, tmp_path).source == CsvSource("y", path=Path("/data/t.csv"))


def test_facts_are_read() -> None:
    facts = {"rows": 3, "features": 2, "classes": {"no": 1, "yes": 2}, "sha256": "01" * 32}
    assert declare_dataset("d", OPENML | {"facts": facts}).facts == Facts(3, 2, {"no": 1, "yes": 2}, "01" * 32)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"kind": "opennml"}, "`kind` must be one of 'openml', 'bundled', 'csv', 'r', 'simulated', got 'opennml' "
         "(did you mean 'openml'?)"),
        ({"id": 37}, "`kind` must be one of 'openml', 'bundled', 'csv', 'r', 'simulated', got None"),
        (OPENML | {"targte": "x"}, "unknown key 'targte' (did you mean 'target'?); allowed: 'kind', 'id', "
         "'version', 'target', 'facts'"),
        (OPENML | {3: 4}, "unknown key 3; allowed"),
        (_without(OPENML, "version"), "key `version` is missing; required: 'kind', 'id', 'version', 'target'"),
        (OPENML | {"id": "37"}, "`id` must be a whole number of at least 1, got '37'"),
        (OPENML | {"id": True}, "`id` must be a whole number of at least 1, got True"),
        (OPENML | {"id": 0}, "`id` must be a whole number of at least 1, got 0"),
        (OPENML | {"target": 1}, "`target` must be a text (put it in quotes), got 1"),
        (OPENML | {"target": ""}, "`target` must be a text (put it in quotes), got ''"),
        (OPENML | {"facts": 3}, "`facts`: must be a mapping of keys to values, got 3"),
        (OPENML | {"facts": {"row": 3}}, "`facts`: unknown key 'row' (did you mean 'rows'?); allowed: 'rows', "
         "'features', 'classes', 'sha256'"),
        (OPENML | {"facts": {"classes": {True: 3}}}, "`classes`: a label must be a text (put it in quotes), "
         "got True"),
        (OPENML | {"facts": {"classes": {"a": -1}}}, "`a` must be a whole number of at least 0, got -1"),
        (OPENML | {"facts": {"sha256": "AB" * 32}}, "`sha256` must be 64 lower-case hexadecimal digits in quotes"),
        ({"kind": "bundled", "dataset": "digit"}, "`dataset` must be one of 'breast_cancer', 'digits', got 'digit' "
         "(did you mean 'digits'?)"),
        (SIMULATED | {"prior": 1}, "`prior` must be a number between 0 and 1 (both excluded), got 1"),
        (SIMULATED | {"prior": "half"}, "`prior` must be a number between 0 and 1 (both excluded), got 'half'"),
        (SIMULATED | {"seed": -1}, "`seed` must be a whole number of at least 0, got -1"),
        (SIMULATED | {"model": "tree"}, "`model` must be one of 'naive_bayes', got 'tree'"),
        ({"kind": "csv", "target": "y"}, "give exactly one of `path` (a file of your own) and `file` (with path, "
         "url and sha256), got []"),
        ({"kind": "csv", "target": "y", "path": "x", "file": FILE}, "got ['path', 'file']"),
        ({"kind": "csv", "target": "y", "file": FILE | {"path": "/a"}}, "`file`: `path` must be relative and stay "
         "inside the cache (no '..'), got '/a'"),
        ({"kind": "csv", "target": "y", "file": FILE | {"path": "a/../../b"}}, "(no '..'), got 'a/../../b'"),
        ({"kind": "csv", "target": "y", "file": FILE | {"url": "ftp://x"}}, "`url` must start with https:// or "
         "http://, got 'ftp://x'"),
        ({"kind": "csv", "target": "y", "file": _without(FILE, "url")}, "`file`: key `url` is missing"),
        (_without(R, "facts"), "key `facts` is missing"),
        (R | {"facts": {"rows": 2}}, "`facts`: key `sha256` is missing: no hash of the R file is declared, so that the "
         "fingerprint of its values alone vouches for it; add it"),
        (_without(R, "labels"), "key `labels` is missing"),
        (R | {"file": FILE}, "`file`: unknown key 'sha256'; allowed: 'path', 'url'"),
        (R | {"file": R["file"] | {"path": "../b"}}, "(no '..'), got '../b'"),
        (R | {"table": FILE}, "`table`: unknown key 'url'; allowed: 'path', 'sha256'"),
        ("diabetes", "must be a mapping of keys to values, got 'diabetes'"),
    ],
)  # fmt: skip
def test_mistake_in_a_data_set_is_explained(mapping: Any, message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare_dataset("mine", mapping)
    assert str(raised.value).startswith("data set 'mine': ")
    assert message in str(raised.value)


def test_network_is_read() -> None:
    network = declare_network("bupa", NETWORK)
    assert (network.name, network.format, network.target, network.positive) == ("bupa", "ace", "BP", "0")
    assert network.features == 6
    assert network.files["lmap"] == FileDeclaration("n.lmap", FILE["url"], FILE["sha256"])
    assert list(network.files) == ["cnf", "lmap", "search"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (NETWORK | {"format": "aces"}, "`format` must be one of 'ace', 'erg', 'uai', 'bif', 'xmlbif', got 'aces' "
         "(did you mean 'ace'?)"),
        (_without(NETWORK, "target"), "key `target` is missing"),
        (NETWORK | {"positive": 0}, "`positive` must be a text (put it in quotes), got 0"),
        (NETWORK | {"files": _without(NETWORK["files"], "lmap")}, "`files`: key `lmap` is missing; required: 'cnf', "
         "'lmap', 'search'"),
        (NETWORK | {"format": "uai"}, "`files`: unknown key 'cnf'; allowed: 'network'"),
        (NETWORK | {"facts": {}}, "`facts`: key `features` is missing"),
        (NETWORK | {"facts": {"features": 0}}, "`features` must be a whole number of at least 1, got 0"),
    ],
)  # fmt: skip
def test_mistake_in_a_network_is_explained(mapping: Any, message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declare_network("mine", mapping)
    assert str(raised.value).startswith("network 'mine': ")
    assert message in str(raised.value)


def test_hash_of_a_network_depends_on_its_files_and_nothing_else() -> None:
    network = declare_network("bupa", NETWORK)
    turned = dataclasses.replace(network, files=dict(reversed(network.files.items())), name="other", features=1)
    assert turned.sha256 == network.sha256
    changed = network.files | {"cnf": dataclasses.replace(network.files["cnf"], sha256="cd" * 32)}
    assert dataclasses.replace(network, files=changed).sha256 != network.sha256
    swapped = {"cnf": network.files["cnf"], "lmap": changed["cnf"]}
    other_way = {"cnf": changed["cnf"], "lmap": network.files["cnf"]}
    assert dataclasses.replace(network, files=swapped).sha256 != dataclasses.replace(network, files=other_way).sha256


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=8), inner, max_size=2)),
    max_leaves=4,
)


@given(st.sampled_from([OPENML, SIMULATED, {"kind": "csv", "target": "y", "file": FILE}, R]), st.data())
def test_any_wrong_value_gives_a_named_error_and_no_other(mapping: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([*mapping, "facts", "extra"]))
    value = data.draw(VALUES)
    message = ""
    try:
        declare_dataset("mine", mapping | {key: value})
    except DeclarationError as error:
        message = str(error)
    if message or key == "extra":
        assert message.startswith("data set 'mine': ")
        assert key in message
    else:
        assert type(value) is type(mapping.get(key, {}))
