"""Data files of R: what they may look like, and that only their values are trusted."""

import gzip
import hashlib
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import rdata
import xarray
from rdata.conversion.to_r import DEFAULT_CLASS_MAP, build_r_object
from rdata.parser import RObject, RObjectType

from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import DatasetDeclaration, declare_dataset
from trimbench.papers.data.errors import WAY_OUT, DataUnavailable, FactsMismatch
from trimbench.papers.data.fingerprint import fingerprint
from trimbench.papers.data.sources import load_dataset

from .listing import contents, listing
from .loopback import Loopback

R_PATH = "/plain/tissues.rda"
X = np.array([[0.1, -2.0], [1 / 3, 4e-17], [5.5, 6.0]])
Y = np.array([0, 1, 1])
SHA256 = fingerprint(pd.DataFrame(X, columns=["gene1", "gene2"]), pd.Series(["0", "1", "1"], name="class"))
TEXT = gzip.compress(b"class,gene1,gene2\n0,0.1,-2.0\n1,0.3333333333333333,4e-17\n1,5.5,6.0\n", mtime=0)
TABLE = {"path": "t/tissues.csv.gz", "sha256": hashlib.sha256(TEXT).hexdigest()}
STORED = {"files", "files/t", "files/t/tissues.rda"}


def _named_matrix(array: xarray.DataArray, converter: Any) -> RObject:
    """What R makes of a matrix whose columns have names, which the package reads and does not write."""
    names = [None, array["column"].to_numpy()]
    attributes = converter.convert_to_r_attributes({"dim": np.array(array.shape), "dimnames": names})
    return build_r_object(RObjectType.REAL, value=array.to_numpy().ravel(order="F"), attributes=attributes)


@pytest.fixture
def offer(loopback: Loopback, tmp_path: Path) -> Callable[..., bytes]:
    """Makes the server offer objects as a data file of R, and returns its bytes."""

    def offered(objects: dict[str, Any], **options: Any) -> bytes:
        path = tmp_path / "written.rda"
        constructors = {**DEFAULT_CLASS_MAP, xarray.DataArray: _named_matrix}
        rdata.write_rda(path, objects, constructor_dict=constructors, **options)
        loopback.files[R_PATH] = path.read_bytes()
        return loopback.files[R_PATH]

    return offered


@pytest.fixture
def declaration(loopback: Loopback, offer: Callable[..., bytes]) -> DatasetDeclaration:
    offer({"tissues": {"X": X, "y": Y}})
    mapping = {
        "kind": "r",
        "target": "class",
        "prefix": "gene",
        "labels": "y",
        "file": {"path": "t/tissues.rda", "url": loopback.url(R_PATH)},
        "table": TABLE,
        "facts": {"rows": 3, "features": 2, "classes": {"0": 1, "1": 2}, "sha256": SHA256},
    }
    return declare_dataset("tissues", mapping)


def _put(folder: Path, name: str, body: bytes) -> Path:
    path = folder / "files" / "t" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    return path


def _refusal(declaration: DatasetDeclaration, cache: Cache) -> str:
    before = contents(cache.writable)
    with pytest.raises(DataUnavailable) as raised:
        load_dataset(declaration, cache)
    assert contents(cache.writable) == before
    message = str(raised.value)
    assert message.startswith("data set 'tissues' is not available from http://127.0.0.1:")
    assert WAY_OUT in message
    assert "\n" not in message
    return message


def test_download_is_stored_and_used_the_next_time(
    declaration: DatasetDeclaration, cache: Cache, loopback: Loopback
) -> None:
    assert not is_here(declaration, cache)
    dataset = load_dataset(declaration, cache)
    assert list(dataset.features.columns) == ["gene1", "gene2"]
    np.testing.assert_array_equal(dataset.features.to_numpy(), X)
    assert (dataset.target.name, dataset.target.tolist()) == ("class", ["0", "1", "1"])
    assert dataset.sha256 == SHA256
    assert set(contents(cache.writable)) == STORED
    assert is_here(declaration, cache)
    assert load_dataset(declaration, replace(cache, offline=True)).sha256 == SHA256
    assert loopback.requests == [f"GET {R_PATH}"]


@pytest.mark.parametrize("compression", ["bzip2", "gzip", "xz", None])
@pytest.mark.parametrize("version", [2, 3])
def test_all_compressions_and_versions_are_read(
    declaration: DatasetDeclaration, cache: Cache, offer: Callable[..., bytes], compression: str | None, version: int
) -> None:
    offer({"tissues": {"X": X, "y": Y}}, compression=compression, format_version=version)
    assert load_dataset(declaration, cache).sha256 == SHA256


NAMED = xarray.DataArray(X, dims=("row", "column"), coords={"column": ["left", "right"]})
FRAME = pd.DataFrame(X, columns=["left", "right"])
LAYOUTS: dict[str, dict[str, Any]] = {
    "labels first": {"tissues": {"y": Y, "X": X}},
    "labels as numbers": {"tissues": {"X": X, "y": Y.astype(float)}},
    "labels as text": {"tissues": {"X": X, "y": np.array(["0", "1", "1"])}},
    "labels as a column": {"tissues": {"X": X, "y": Y[:, None]}},
    "labels as a factor": {"tissues": {"X": X, "y": pd.Categorical(["0", "1", "1"])}},
    "something more": {"tissues": {"about": np.array(["a", "b"]), "X": X, "y": Y}},
    "columns with names": {"tissues": {"X": NAMED, "y": Y}},
    "data frame in a list": {"tissues": {"X": FRAME, "y": Y}},
    "data frame": {"tissues": FRAME.assign(y=Y)},
    "data frame with a factor": {"tissues": FRAME.assign(y=pd.Categorical(["0", "1", "1"]))},
    "objects of their own": {"X": X, "y": Y},
    "other objects": {"version": np.array([1]), "tissues": {"X": X, "y": Y}},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_inside_may_differ(
    declaration: DatasetDeclaration, cache: Cache, offer: Callable[..., bytes], layout: str
) -> None:
    offer(LAYOUTS[layout])
    assert load_dataset(declaration, cache).sha256 == SHA256


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ({"tissues": {"X": X, "z": Y}}, "the file has no 'y' in a list or data frame; it has tissues;"),
        ({"tissues": X}, "the file has no 'y' in a list or data frame; it has tissues;"),
        ({"tissues": {"X": X.T, "y": Y}}, "the file has 3 labels and no features with as many rows;"),
        ({"tissues": {"y": Y}}, "the file has 3 labels and no features with as many rows;"),
        ({"tissues": {"X": np.array(["a", "b", "c"]), "y": Y}}, "the features in the file are not all numbers (could"),
        ({"tissues": {"X": X, "y": np.array([0, np.nan, 1])}}, "class column 'class' is missing in 1 of 3 rows"),
    ],
)
def test_other_layout_is_refused(
    declaration: DatasetDeclaration, cache: Cache, offer: Callable[..., bytes], objects: dict[str, Any], reason: str
) -> None:
    offer(objects)
    assert reason in _refusal(declaration, cache)


@pytest.mark.parametrize("compression", ["bzip2", "gzip", "xz", None])
@pytest.mark.parametrize("damage", ["half", "changed", "empty", "page"])
def test_damaged_file_is_refused_and_a_good_one_follows(
    declaration: DatasetDeclaration,
    cache: Cache,
    loopback: Loopback,
    offer: Callable[..., bytes],
    compression: str | None,
    damage: str,
) -> None:
    body = offer({"tissues": {"X": X, "y": Y}}, compression=compression)
    start = body[: len(body) // 2]
    bodies = {"half": start, "changed": start + b"\0" * 9 + start, "empty": b"", "page": b"<html>gone</html>"}
    loopback.files[R_PATH] = bodies[damage]
    assert "the file is no intact data file of R (" in _refusal(declaration, cache)
    loopback.files[R_PATH] = body
    assert load_dataset(declaration, cache).sha256 == SHA256


def test_failed_download_leaves_nothing(declaration: DatasetDeclaration, cache: Cache, loopback: Loopback) -> None:
    loopback.faults[R_PATH] = "truncated"
    assert "IncompleteRead" in _refusal(declaration, cache)
    assert contents(cache.writable) == {}


@pytest.mark.parametrize(
    ("objects", "difference"),
    [
        ({"X": np.nextafter(X, 9), "y": Y}, f"(sha256: declared {SHA256}, got "),
        ({"X": X[:, ::-1], "y": Y}, f"(sha256: declared {SHA256}, got "),
        ({"X": X, "y": 1 - Y}, "classes: declared {'0': 1, '1': 2}, got {'0': 2, '1': 1}"),
        ({"X": X[:, :1], "y": Y}, "features: declared 2, got 1"),
    ],
)
def test_other_values_are_refused(
    declaration: DatasetDeclaration,
    cache: Cache,
    loopback: Loopback,
    offer: Callable[..., bytes],
    objects: dict[str, Any],
    difference: str,
) -> None:
    offer({"tissues": objects})
    with pytest.raises(FactsMismatch) as raised:
        load_dataset(declaration, cache)
    message = str(raised.value)
    assert difference in message
    assert "correct the facts in its YAML, or get the data from its original source" in message
    assert message.endswith(f"; the download from {loopback.url(R_PATH)} was not kept")
    assert contents(cache.writable) == {}


def test_offline_never_downloads(declaration: DatasetDeclaration, cache: Cache, loopback: Loopback) -> None:
    assert "downloads are switched off" in _refusal(declaration, replace(cache, offline=True))
    assert loopback.requests == []


def test_table_in_the_cache_is_used_instead(
    declaration: DatasetDeclaration, cache: Cache, loopback: Loopback, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    _put(first, "tissues.csv.gz", TEXT)
    before = listing(first)
    both = replace(cache, folders=(first, cache.writable))
    assert is_here(declaration, both)
    assert load_dataset(declaration, both).sha256 == SHA256
    assert loopback.requests == []
    assert listing(first) == before


def test_table_with_another_hash_is_skipped(
    declaration: DatasetDeclaration, cache: Cache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = _put(tmp_path / "first", "tissues.csv.gz", gzip.compress(b"class,gene1,gene2\n0,1,2\n"))
    with caplog.at_level(logging.WARNING):
        dataset = load_dataset(declaration, replace(cache, folders=(tmp_path / "first",)))
    assert dataset.sha256 == SHA256
    assert f"skipping {path}: its SHA-256 is" in caplog.text
    assert set(contents(cache.writable)) == STORED


@pytest.mark.parametrize("kind", ["damaged", "other values"])
def test_wrong_copy_in_the_cache_is_replaced(
    declaration: DatasetDeclaration,
    cache: Cache,
    offer: Callable[..., bytes],
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    other = offer({"tissues": {"X": X + 1, "y": Y}})
    good = offer({"tissues": {"X": X, "y": Y}})
    path = _put(cache.writable, "tissues.rda", other if kind == "other values" else good[:-20])
    with caplog.at_level(logging.WARNING):
        assert load_dataset(declaration, cache).sha256 == SHA256
    assert f"skipping {path}: " in caplog.text
    assert path.read_bytes() == good
