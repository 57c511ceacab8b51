"""Sources of data and the cache: what is here, what is fetched from where, what stands in the way, and files of R."""

import bz2
import errno
import gzip
import hashlib
import logging
import lzma
import os
import re
import socket
import struct
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

from tests.reproduction.data.loopback import Loopback
from tests.reproduction.data.offers import KEPT, R_PATH, TISSUES_SHA256, X, Y, contents, listing, r_file, tissues
from trimbench.papers.networks import declare_network
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data import declarations
from trimbench.reproduction.data.cache import Cache, HostMemory, one_line_reason
from trimbench.reproduction.data.declarations import (
    DatasetDeclaration,
    Declaration,
    declare_dataset,
    is_here,
    load_dataset,
    obstacle,
)
from trimbench.reproduction.data.errors import DataUnavailable, DeclarationError, FactsMismatch, Unreadable
from trimbench.reproduction.data.sources import _objects
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.planning import fetch

TABLE = "size,colour,ok,label\n1,red,True,1\n2.5,?,False,2\n,blue,True,2\n"


def _csv(path: Path, text: str) -> DatasetDeclaration:
    body = text.encode()
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)
    return declare_dataset("mine", {"kind": "csv", "path": str(path), "target": "label"})


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("start", ["", "\N{ZERO WIDTH NO-BREAK SPACE}"])
def test_own_table_is_read(cache: Cache, tmp_path: Path, name: str, separator: str, start: str) -> None:
    declaration = _csv(tmp_path / name, start + TABLE.replace(",", separator))
    assert is_here(declaration, cache)
    dataset = load_dataset(declaration, cache)
    assert dataset.name == "mine"
    assert list(dataset.features.columns) == ["size", "colour", "ok"]
    np.testing.assert_array_equal(dataset.features["size"], [1.0, 2.5, np.nan])
    assert dataset.features["colour"].isna().tolist() == [False, True, False]
    assert list(dataset.features["colour"].cat.categories) == ["blue", "red"]
    assert dataset.features["ok"].tolist() == ["True", "False", "True"]
    assert dataset.target.tolist() == ["1", "2", "2"], "class labels stay as they are written"
    assert dataset.target.name == "label"
    same = load_dataset(_csv(tmp_path / "same.csv", TABLE), cache)
    assert dataset.sha256 == same.sha256


@pytest.mark.parametrize(
    ("text", "columns", "labels"),
    [
        ('"a,b,c,d";"label"\n1;x\n2;y\n', ["a,b,c,d"], ["x", "y"]),  # a separator inside quotes is none
        ("x,label\n1,01\n2,1\n", ["x"], ["01", "1"]),  # labels are no numbers
    ],
)
def test_header_and_labels_are_text(
    cache: Cache, tmp_path: Path, text: str, columns: list[str], labels: list[str]
) -> None:
    dataset = load_dataset(_csv(tmp_path / "t.csv", text), cache)
    assert (list(dataset.features.columns), dataset.target.tolist()) == (columns, labels)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"path": "no.csv"}, DataUnavailable, "path must be an existing file, got 'no.csv'; correct it"),
        ({"target": "lable"}, DeclarationError, "target must be a column of the data, got 'lable' (did you mean "
         "'label'?); the columns are 'size', 'colour', 'ok', 'label'"),
        ({"target": "colour"}, DeclarationError, "the class column 'colour' is missing in 1 of 3 rows; remove these"),
        ({"facts": {"rows": 4, "features": 3}}, FactsMismatch, "declared (rows: declared 4, got 3);"),
    ],
)  # fmt: skip
def test_wrong_declaration_of_an_own_table_is_explained(
    cache: Cache, tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    mapping = {"kind": "csv", "path": str(tmp_path / "t.csv"), "target": "label"} | change
    declaration = declare_dataset("mine", mapping)
    assert is_here(declaration, cache) == ("path" not in change)
    with pytest.raises(error, match=rf"data set 'mine'.*{re.escape(message)}"):
        load_dataset(declaration, cache)


@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [("breast_cancer", (569, 30), ["malignant", "benign"]), ("digits", (1797, 64), list("0123456789"))],
)
def test_bundled_sets(cache: Cache, name: str, shape: tuple[int, int], labels: list[str]) -> None:
    from sklearn import datasets

    dataset = load_dataset(declare_dataset(name, {"kind": "bundled", "dataset": name}), cache)
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    assert dataset.features.shape == shape
    assert set(dataset.features.dtypes) == {np.dtype("float64")}
    order = np.lexsort((np.array(labels)[y], *X.T[::-1]))
    np.testing.assert_array_equal(dataset.features.to_numpy(), X[order])
    assert list(dataset.target.cat.categories) == labels
    np.testing.assert_array_equal(dataset.target.cat.codes, y[order])


def _wrapped(cause: BaseException) -> RuntimeError:
    middle, outer = ValueError("in the middle"), RuntimeError("outside")
    middle.__cause__, outer.__context__ = cause, middle
    return outer


@pytest.mark.parametrize(
    "cause",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        socket.gaierror(-2, "Name or service not known"),
        TimeoutError("timed out"),
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
    ],
)
def test_dead_host_is_recognised_under_any_wrapping(cause: OSError) -> None:
    memory = HostMemory()
    error = _wrapped(cause)
    memory.note("https://one.invalid/a", error)
    assert one_line_reason(error) == str(cause)
    reason = memory.reason_for("https://one.invalid/b")
    assert reason is not None
    assert str(cause) in reason
    assert memory.reason_for("https://two.invalid/a") is None


@pytest.mark.parametrize("cause", [PermissionError(13, "Permission denied"), KeyError("x")])
def test_other_failures_do_not_condemn_the_host(cause: Exception) -> None:
    memory = HostMemory()
    memory.note("https://one.invalid/a", _wrapped(cause))
    assert memory.reason_for("https://one.invalid/a") is None


def test_reason_is_one_short_line() -> None:
    assert one_line_reason(RuntimeError("first\n  second")) == "first second"
    assert one_line_reason(RuntimeError()) == "RuntimeError"
    untold = type("Untold", (Exception,), {"__str__": lambda self: "at line {} {}".format(*self.args)})
    assert one_line_reason(untold(1)) == "Untold"
    long = one_line_reason(RuntimeError("x" * 1000))
    assert len(long) == 300
    assert long.endswith("...")


PROJECT = Catalogue()
OPENML = "openml/org/openml/www/datasets/1590"
NEEDS: dict[str, tuple[Declaration, list[str]]] = {
    "openml": (
        declare_dataset("adult", PROJECT.declared("dataset", "adult")),
        [f"{OPENML}/dataset_1590.pq", f"{OPENML}/description.xml", f"{OPENML}/features.xml"],
    ),
    "r": (declare_dataset("colon", PROJECT.declared("dataset", "colon")), ["files/colon/colon.csv.gz"]),
    "network": (
        declare_network("cpcs54", PROJECT.declared("network", "cpcs54")),
        ["files/uai2008/PE/uai-2006/BN_78.erg.gz", "files/uai2008_evidence/PE/uai-2006/BN_78.erg.evid.gz"],
    ),
}


@pytest.mark.parametrize("kind", NEEDS)
def test_a_file_that_cannot_be_read_is_an_obstacle_unless_there_is_a_good_copy(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need, paths = NEEDS[kind]
    monkeypatch.setattr("trimbench.reproduction.data.downloads._may_be", lambda path, sha256: True)  # whatever it holds
    first, second = tmp_path / "first", tmp_path / "second"
    cache = Cache((first,), first, offline=True)
    assert (is_here(need, cache), obstacle(need, cache)) == (False, "")
    for path in paths[1:]:
        (first / path).parent.mkdir(parents=True, exist_ok=True)
        (first / path).touch()
    (first / paths[0]).mkdir(parents=True)
    assert not is_here(need, cache)
    assert obstacle(need, cache) == (
        f"{first / paths[0]} cannot be read (Is a directory); make it readable, or remove it and run "
        "trimbench task=fetch"
    )
    (second / paths[0]).parent.mkdir(parents=True)
    (second / paths[0]).touch()
    both = replace(cache, folders=(first, second))
    assert (is_here(need, both), obstacle(need, both)) == (True, "")


def test_a_link_to_nothing_is_an_obstacle(tmp_path: Path) -> None:
    path = tmp_path / NEEDS["r"][1][0]
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "nowhere")
    cache = Cache((tmp_path,), tmp_path)
    assert obstacle(NEEDS["r"][0], cache).startswith(f"{path} is a link to a file that does not exist; make it")


def test_a_folder_that_cannot_be_searched_is_missing_data(monkeypatch: pytest.MonkeyPatch) -> None:
    need, _ = NEEDS["network"]

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(declarations, "opened", refuse)
    cache = Cache((Path("closed"),), Path("closed"), offline=True)
    assert not is_here(need, cache)
    with pytest.raises(DataUnavailable, match=r"closed/files/.*/BN_78\.erg\.gz cannot be read \(Permission denied\)"):
        fetch(need, cache)


# Where data is looked for, and where downloads go.


@pytest.mark.parametrize(
    ("value", "folders"),
    [
        (None, ("xdg/trimbench",)),
        ("", ("xdg/trimbench",)),
        ("new/folder", ("new/folder", "xdg/trimbench")),
        ("xdg/trimbench", ("xdg/trimbench",)),
    ],
)
def test_named_folder_comes_first_and_gets_the_downloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None, folders: tuple[str, ...]
) -> None:
    if value is not None:
        monkeypatch.setenv("TRIMBENCH_CACHE", value and str(tmp_path / value))
    cache = Cache.from_environment(offline=bool(value))
    assert cache == Cache(tuple(tmp_path / folder for folder in folders), tmp_path / folders[0], offline=bool(value))
    if value:
        assert list(cache.writable.iterdir()) == [], "the probe must not leave anything behind"
    else:
        assert not cache.writable.exists(), "looking up the cache must not create it"


@pytest.mark.parametrize("mode", [0o555, 0o755], ids=["read-only", "refuses the probe"])
def test_a_folder_that_cannot_be_written_is_read_but_not_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("trimbench.reproduction.data.cache.tempfile.TemporaryFile", refuse)
    folder = tmp_path / "shared"
    folder.mkdir(mode)
    before = listing(folder)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(folder))
    cache = Cache.from_environment()
    assert (cache.folders, cache.writable) == ((folder, tmp_path / "xdg/trimbench"), tmp_path / "xdg/trimbench")
    assert listing(folder) == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a-file", "must name a folder that exists or can be created, got 'a-file' .*; correct it, or unset it"),
        ("a-file/deeper", "must name a folder that exists or can be created, got 'a-file/deeper' "),
        ("s3://lab/cache", "must be a folder of this machine, got 's3://lab/cache'; write its path"),
    ],
)
def test_variable_that_names_no_folder_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, message: str
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("TRIMBENCH_CACHE", value)
    with pytest.raises(ConfigurationError, match=f"^TRIMBENCH_CACHE {message}"):
        Cache.from_environment()


def test_a_new_folder_is_named_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cahce"))
    assert Cache.from_environment() == Cache.from_environment()
    note = f"TRIMBENCH_CACHE names a folder that does not exist, '{tmp_path / 'cahce'}'; creating an empty one.\n"
    assert capsys.readouterr().err == note


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache((), tmp_path / "file/cache")
    with (
        pytest.raises(OSError, match=r"cannot keep data in .*file/cache: .*; set TRIMBENCH_CACHE to"),
        cache.workspace(),
    ):
        pass


def test_writable_is_searched_even_if_it_is_not_listed(tmp_path: Path) -> None:
    assert Cache((tmp_path / "a",), tmp_path / "b").places == (tmp_path / "a", tmp_path / "b")
    assert Cache((tmp_path / "a",), tmp_path / "a").places == (tmp_path / "a",)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have numbers on POSIX only")
def test_a_user_without_home_and_entry_has_no_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "TRIMBENCH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    assert not Cache.from_environment().writable.exists()
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path))
    assert Cache.from_environment().writable == tmp_path


# Data files of R: what they may look like, that only their values are trusted, and how long they may become.


TEXT = gzip.compress(b"class,gene1,gene2\n0,0.1,-2.0\n1,0.3333333333333333,4e-17\n1,5.5,6.0\n", mtime=0)
TEXT_TABLE = {"path": "t/tissues.csv.gz", "sha256": hashlib.sha256(TEXT).hexdigest()}


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
    return Served(tissues(loopback, table=TEXT_TABLE), cache, loopback, tmp_path)


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


def test_other_values_are_refused(served: Served) -> None:
    served.offer({"tissues": {"X": np.nextafter(X, 9), "y": Y}})
    message = served.refusal(FactsMismatch)
    assert f"(sha256: declared {TISSUES_SHA256}, got " in message
    assert "correct the facts in its YAML, or get the data from its original source" in message
    assert message.endswith(f"; the download from {served.loopback.url(R_PATH)} was not kept")


@pytest.mark.parametrize("is_good", [True, False])
def test_table_in_the_cache_is_used_instead_if_it_has_the_declared_hash(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_good: bool
) -> None:
    served.offer(GOOD)
    path = tmp_path / "first" / "files" / TEXT_TABLE["path"]
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


def ranged(n: int) -> bytes:
    """Return a data file of R with the numbers from 1 to `n`, of which it writes the ends."""

    def words(*numbers: int) -> bytes:
        return struct.pack(f">{len(numbers)}i", *numbers)

    name, kind, package = (words(1, 0x40009, len(text)) + text for text in (b"x", b"compact_intseq", b"base"))
    kinds = words(2) + kind + words(2) + package + words(2, 13, 1, 13, 254)
    head = b"RDX3\nX\n" + words(3, 0x30600, 0x30500, 5) + b"UTF-8"
    ends = words(14, 3) + struct.pack(">3d", n, 1, 1)
    return head + words(1026) + name + words(238) + kinds + ends + words(254, 254)


def test_a_range_has_as_many_numbers_as_a_file_could_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.reproduction.data.sources._MAX_UNPACKED", 2**16)
    path = tmp_path / "file.rda"
    path.write_bytes(ranged(2**13))
    assert [*_objects(path)["x"]] == [*range(1, 2**13 + 1)]
    path.write_bytes(ranged(2**13 + 1))
    with pytest.raises(Unreadable, match="a range must have at most 8192 numbers, got 8193"):
        _objects(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_becomes_too_long_or_is_packed_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("trimbench.reproduction.data.sources._MAX_UNPACKED", 2**16)
    path = tmp_path / "file.rda"
    for content in (b"RDX2\n" + bytes(2**25), gzip.compress(b"RDX2\n")):
        path.write_bytes(pack(content))
        tracemalloc.start()
        with pytest.raises(Unreadable, match="at most 65536 bytes and not be packed again"):
            _objects(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()
