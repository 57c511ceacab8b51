"""Data files of R: what they may look like, that only their values are trusted, and how long they may become."""

import bz2
import gzip
import hashlib
import logging
import lzma
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray
from rdata.conversion.to_r import DEFAULT_CLASS_MAP, build_r_object
from rdata.parser import RObject, RObjectType

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import DatasetDeclaration, is_here, load_dataset
from trimbench.papers.data.sources import _objects
from trimbench.papers.validation import DataUnavailable, FactsMismatch, Unreadable

from .loopback import Loopback
from .offers import KEPT, R_PATH, TISSUES_SHA256, X, Y, contents, listing, r_file, tissues

TEXT = gzip.compress(b"class,gene1,gene2\n0,0.1,-2.0\n1,0.3333333333333333,4e-17\n1,5.5,6.0\n", mtime=0)
TABLE = {"path": "t/tissues.csv.gz", "sha256": hashlib.sha256(TEXT).hexdigest()}


def _named_matrix(array: xarray.DataArray, converter: Any) -> RObject:
    """What R makes of a matrix whose columns have names, which the package reads and does not write."""
    names = [None, array["column"].to_numpy()]
    attributes = converter.convert_to_r_attributes({"dim": np.array(array.shape), "dimnames": names})
    return build_r_object(RObjectType.REAL, value=array.to_numpy().ravel(order="F"), attributes=attributes)


@dataclass
class Served:
    """The R file on the server, and the cache that it is loaded into."""

    declaration: DatasetDeclaration
    cache: Cache
    loopback: Loopback
    folder: Path

    def offer(self, objects: dict[str, Any], **options: Any) -> bytes:
        """Offer a data file of R that holds these objects."""
        constructors = {**DEFAULT_CLASS_MAP, xarray.DataArray: _named_matrix}
        self.loopback.files[R_PATH] = r_file(self.folder, objects, constructor_dict=constructors, **options)
        return self.loopback.files[R_PATH]

    def loaded_sha256(self) -> str:
        return load_dataset(self.declaration, self.cache).sha256

    def refusal(self, error: type[Exception] = DataUnavailable) -> str:
        with pytest.raises(error) as raised:
            self.loaded_sha256()
        assert contents(self.cache.writable) == {}
        return str(raised.value)


@pytest.fixture
def served(cache: Cache, loopback: Loopback, tmp_path: Path) -> Served:
    return Served(tissues(loopback, table=TABLE), cache, loopback, tmp_path)


NAMED = xarray.DataArray(X, dims=("row", "column"), coords={"column": ["left", "right"]})
FRAME = pd.DataFrame(X, columns=["left", "right"])
GOOD = {"tissues": {"X": X, "y": Y}}
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


COMPRESSIONS = ["bzip2", "gzip", "xz", None]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("version", [2, 3])
def test_all_compressions_and_versions_are_read(served: Served, compression: str | None, version: int) -> None:
    served.offer(GOOD, compression=compression, format_version=version)
    assert served.loaded_sha256() == TISSUES_SHA256


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_inside_may_differ(served: Served, layout: str) -> None:
    served.offer(LAYOUTS[layout])
    assert served.loaded_sha256() == TISSUES_SHA256


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
def test_other_layout_is_refused(served: Served, objects: dict[str, Any], reason: str) -> None:
    served.offer(objects)
    assert reason in served.refusal()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("damage", ["half", "changed", "empty", "page"])
def test_damaged_file_is_refused_and_a_good_one_follows(served: Served, compression: str | None, damage: str) -> None:
    body = served.offer(GOOD, compression=compression)
    start = body[: len(body) // 2]
    bodies = {"half": start, "changed": start + b"\0" * 9 + start, "empty": b"", "page": b"<html>gone</html>"}
    served.loopback.files[R_PATH] = bodies[damage]
    assert "the file is not an intact data file of R (" in served.refusal()
    served.loopback.files[R_PATH] = body
    assert served.loaded_sha256() == TISSUES_SHA256


@pytest.mark.parametrize(
    ("objects", "difference"),
    [
        ({"X": np.nextafter(X, 9), "y": Y}, f"(sha256: declared {TISSUES_SHA256}, got "),
        ({"X": X[:, ::-1], "y": Y}, f"(sha256: declared {TISSUES_SHA256}, got "),
        ({"X": X, "y": 1 - Y}, "classes: declared {'0': 1, '1': 2}, got {'0': 2, '1': 1}"),
        ({"X": X[:, :1], "y": Y}, "features: declared 2, got 1"),
    ],
)
def test_other_values_are_refused(served: Served, objects: dict[str, Any], difference: str) -> None:
    served.offer({"tissues": objects})
    message = served.refusal(FactsMismatch)
    assert difference in message
    assert "correct the facts in its YAML, or get the data from its original source" in message
    assert message.endswith(f"; the download from {served.loopback.url(R_PATH)} was not kept")


@pytest.mark.parametrize("is_good", [True, False])
def test_table_in_the_cache_is_used_instead_if_it_has_the_declared_hash(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_good: bool
) -> None:
    served.offer(GOOD)
    path = tmp_path / "first" / "files" / TABLE["path"]
    path.parent.mkdir(parents=True)
    path.write_bytes(TEXT if is_good else gzip.compress(b"class,gene1,gene2\n0,1,2\n"))
    before = listing(tmp_path / "first")
    served.cache = replace(served.cache, folders=(tmp_path / "first", served.cache.writable))
    assert is_here(served.declaration, served.cache) == is_good
    with caplog.at_level(logging.WARNING):
        assert served.loaded_sha256() == TISSUES_SHA256
    assert (f"skipping {path}: its SHA-256 must be" in caplog.text) != is_good
    assert served.loopback.requests == ([] if is_good else [f"GET {R_PATH}"])
    assert listing(tmp_path / "first") == before


def test_copy_with_other_values_is_replaced(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    path = served.cache.writable / "files/t/tissues.rda"
    path.parent.mkdir(parents=True)
    path.write_bytes(served.offer({"tissues": {"X": X + 1, "y": Y}}))
    good = served.offer(GOOD)
    with caplog.at_level(logging.WARNING):
        assert served.loaded_sha256() == TISSUES_SHA256
    assert f"skipping {path}: " in caplog.text
    assert (served.cache.writable / KEPT["r"]).read_bytes() == good
    caplog.clear()
    assert served.loaded_sha256() == TISSUES_SHA256
    assert not caplog.text


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_becomes_too_long_or_is_packed_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("trimbench.papers.data.sources._MAX_UNPACKED", 2**16)
    path = tmp_path / "file.rda"
    for content in (b"RDX2\n" + bytes(2**25), gzip.compress(b"RDX2\n")):
        path.write_bytes(pack(content))
        tracemalloc.start()
        with pytest.raises(Unreadable, match="at most 65536 bytes and not be packed again"):
            _objects(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()
