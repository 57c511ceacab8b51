"""Networks from their declarations: a user's own files, with and without a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trimbench as tb
from tests.networks.network_writers import encode_bif
from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.errors import DataUnavailable
from trimbench.papers.data.network_declaration import declare_network
from trimbench.papers.data.networks import load_network

ALARM = tb.BayesianNetwork(
    {"thief": ["yes", "no"], "bell": ["on", "off"], "call": ["yes", "no"]},
    {"bell": ["thief"], "call": ["bell"]},
    {
        "thief": [0.1, 0.9],
        "bell": [[0.9, 0.1], [0.2, 0.8]],
        "call": [[0.7, 0.3], [0.1, 0.9]],
    },
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


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"target": "burglar", "positive": "yes"}, r"target must be one of its nodes, .*thief.*, got 'burglar'"),
        ({"facts": {"features": 5}}, r"number of features \(leaves\) must be 5, got 1 in its files"),
        ({"format": "erg"}, r"a file of format 'erg' must end in \.erg \(and \.gz\), got 'alarm\.bif'"),
    ],
)
def test_what_the_file_does_not_hold_is_refused(file: Path, cache: Cache, more: dict[str, Any], message: str) -> None:
    if "facts" in more:
        more = more | {"target": "thief", "positive": "yes"}
    with pytest.raises(ValueError, match=message):
        load_network(declared(file, **more), cache)


def test_a_missing_file_is_explained(tmp_path: Path, cache: Cache) -> None:
    declaration = declared(tmp_path / "gone.bif")
    assert not is_here(declaration, cache)
    for call in (lambda: load_network(declaration, cache), lambda: declaration.sha256):
        with pytest.raises(DataUnavailable, match=r"network 'mine': path must be an existing file, got .*gone\.bif"):
            call()
