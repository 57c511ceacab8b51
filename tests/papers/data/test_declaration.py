"""Declarations of data sets, text tables and networks: what they become, and how mistakes in them are explained."""

import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset, Facts
from trimbench.papers.data.declarations import declare_dataset, declare_network, load_dataset
from trimbench.papers.data.downloads import CacheOnlyFile, FileDeclaration, UnverifiedFile
from trimbench.papers.data.sources import BundledSource, CsvSource, OpenMLSource, RSource, SimulatedSource
from trimbench.papers.data.table_texts import MISSING_VALUES
from trimbench.papers.validation import ConfigurationError, DeclarationError

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


def test_network_is_read() -> None:
    network = declare_network("bupa", NETWORK)
    source = network.source
    assert (network.name, source.format, source.target, source.positive) == ("bupa", "ace", "BP", "0")
    assert (source.facts.features, source.path) == (6, None)
    assert network.files["lmap"] == FileDeclaration(**FILE | {"path": "n.lmap"})
    assert list(network.files) == ["cnf", "lmap", "search"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (OPENML | {"kind": "opennml"}, "kind must be one of bundled, csv, openml, package, r, simulated, got "
         "'opennml'; did you mean 'openml'?"),
        (OPENML | {"targte": "x"}, "a key must be one of facts, id, kind, roads, target, version, got 'targte'; "
         "did you mean 'target'?"),
        (OPENML | {"id": 0}, "id must be a whole number of at least 1, got 0"),
        (OPENML | {"target": ""}, "target must be a text that is not empty (put it in quotes), got ''"),
        (OPENML | {"facts": {"classes": {"a": -1}}}, "facts.classes.a must be a whole number of at least 0, got -1"),
        (OPENML | {"facts": {"sha256": "AB" * 32}}, "facts.sha256 must be 64 lower-case hexadecimal digits in "
         f"quotes (a SHA-256), got '{'AB' * 32}'"),
        (SIMULATED | {"prior": 1}, "prior must be a number between 0 and 1 (both excluded), got 1"),
        (_without(CSV, "file"), "give exactly one of path (a file of your own) and file (with path, url and "
         "sha256), got []"),
        (CSV | {"path": "x"}, "give exactly one of path (a file of your own) and file (with path, url and "
         "sha256), got ['path', 'file']"),
        *((CSV | {"file": FILE | {"path": path}}, "file.path must be a relative path that stays inside the cache "
           f"(no '..', './' or '//'), got {path!r}") for path in ("/a", "a/../../b", "./a", "a//b", "a/", "a\n", ".")),
        *((CSV | {"file": FILE | {"url": url}}, "file.url must be an address that starts with https:// or http://, "
           f"without a password or control characters, got {url!r}")
          for url in ("ftp://x", "https://", "http://me:word@x/t", "http://x@/t", "http://x/t\n", "http://x/\x1b[31m")),
        (_without(R, "facts"), "key facts.sha256 is missing; add it (only it shows that the rows are the right ones)"),
        (NETWORK | {"format": "aces"}, "format must be one of ace, bif, erg, tables, uai, xmlbif, got 'aces'; "
         "did you mean 'ace'?"),
        (_without(NETWORK, "target"), "key target is missing; add it"),
        (NETWORK | {"files": _without(NETWORK["files"], "lmap")}, "key files.lmap is missing; add it"),
        (NETWORK | {"path": "a"}, "a key must be one of facts, files, format, positive, target, got 'path'"),
        ({"format": "bif"}, "give exactly one of path (a file of your own) and files (with path, url and sha256), "
         "got []"),
        ({"format": "bif", "path": "a.bif", "target": "x"}, "give both target and positive, or neither"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(mapping: Any, message: str) -> None:
    what, declare = ("network", declare_network) if "format" in mapping else ("data set", declare_dataset)
    with pytest.raises(ConfigurationError) as raised:
        declare("mine", mapping)
    assert str(raised.value) == f"{what} 'mine': {message}"


def test_hash_of_a_network_depends_on_its_files_and_nothing_else() -> None:
    network = declare_network("bupa", NETWORK)
    files = NETWORK["files"]
    changed = files["cnf"] | {"sha256": "cd" * 32}
    turned = NETWORK | {"files": dict(reversed(files.items())), "facts": {"features": 1}}
    assert declare_network("other", turned).sha256 == network.sha256
    others = [{"cnf": changed}, {"lmap": changed}, {"cnf": changed, "lmap": changed}]
    hashes = [declare_network("bupa", NETWORK | {"files": files | other}).sha256 for other in others]
    assert len({network.sha256, *hashes}) == 4


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


TEXT_TABLE = "id:born:dose:ward:smoker:class\n1:2.1.1970:1,5:3:Yes:ä\n2:4.1.1970:<5:4:no:b\n3:unknown:-9:3:yes:b\n"


def load(cache: Cache, folder: Path, **keys: Any) -> Dataset:
    (folder / "t.csv").write_bytes(TEXT_TABLE.encode("cp1252"))
    mapping = {"kind": "csv", "path": str(folder / "t.csv"), "target": "class", "separator": ":", "encoding": "cp1252"}
    return load_dataset(declare_dataset("mine", mapping | keys), cache)


def test_a_declaration_says_how_columns_are_read(
    cache: Cache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    types = {"born": "date", "dose": "number", "ward": "category", "smoker": "boolean"}
    with caplog.at_level(logging.WARNING):
        dataset = load(cache, tmp_path, types=types, id="id", decimal=",", missing_values=["unknown", "-9"])
    assert list(dataset.features) == ["born", "dose", "ward", "smoker"]
    np.testing.assert_array_equal(dataset.features["born"], [1, 3, np.nan])
    np.testing.assert_array_equal(dataset.features["dose"], [1.5, np.nan, np.nan])
    assert dataset.features["ward"].tolist() == ["3", "4", "3"]
    assert dataset.features["smoker"].tolist() == ["Yes", "no", "Yes"]
    assert dataset.target.tolist() == ["ä", "b", "b"]
    told = [record.getMessage() for record in caplog.records]
    assert "data set 'mine': column 'dose': 1 row has no number and counts as missing: '<5' in row 2" in told


def test_columns_without_a_type_are_read_as_in_a_study(cache: Cache, tmp_path: Path) -> None:
    dataset = load(cache, tmp_path, drop=["id", "born"])
    np.testing.assert_array_equal(dataset.features["dose"], [-9.0, 1.5, np.nan])
    assert dataset.features["ward"].tolist() == [3.0, 3.0, 4.0]
    assert list(load(cache, tmp_path, features=["ward", "dose"]).features) == ["dose", "ward"]
    assert load(cache, tmp_path, features=["ward"], missing_values=[3]).features["ward"].isna().sum() == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"drop": ["dosis"]}, "data set 'mine': drop must be a column of the data, got 'dosis' .did you mean 'dose'"),
        (
            {"types": {"ward": "text"}},
            "data set 'mine': types.ward must be one of boolean, category, date, number, got",
        ),
        ({"separator": "::"}, "data set 'mine': separator must be a single character"),
        ({"positive": "b"}, "data set 'mine': a key must be one of .*missing_values"),
    ],
)
def test_mistakes_in_reading_are_explained(cache: Cache, tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises((DeclarationError, ConfigurationError), match=message):
        load(cache, tmp_path, **keys)


def test_missing_values_are_those_of_pandas_of_databases_and_of_spreadsheets() -> None:
    from pandas._libs.parsers import STR_NA_VALUES  # type: ignore[import-not-found]

    others = set(MISSING_VALUES) - STR_NA_VALUES - {"?", "NaT", "\\N", "(null)", "[NULL]", "<null>"}
    others -= {"0000-00-00", "0000-00-00 00:00:00"}
    assert set(MISSING_VALUES) >= STR_NA_VALUES
    assert {"#NV", "#DIV/0!"} < others
    assert all(mark.startswith("#") for mark in others)
