import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import DatasetDeclaration, declare_dataset
from trimbench.papers.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.papers.data.network_declaration import declare_network
from trimbench.papers.data.sources import load_dataset

from .loopback import FILE_BODY, FILE_PATH, Loopback

TABLE = "size,colour,ok,label\n1,red,True,1\n2.5,?,False,2\n,blue,True,2\n"


def _csv(path: Path, text: str, target: str = "label") -> DatasetDeclaration:
    body = text.encode()
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)
    return declare_dataset("mine", {"kind": "csv", "path": str(path), "target": target})


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


def test_quoted_header_does_not_mislead_the_separator(cache: Cache, tmp_path: Path) -> None:
    declaration = _csv(tmp_path / "t.csv", '"a,b,c,d";"label"\n1;x\n2;y\n')
    assert list(load_dataset(declaration, cache).features.columns) == ["a,b,c,d"]


def test_class_labels_keep_leading_zeros(cache: Cache, tmp_path: Path) -> None:
    assert load_dataset(_csv(tmp_path / "t.csv", "x,label\n1,01\n2,1\n"), cache).target.tolist() == ["01", "1"]


def test_missing_file_is_explained(cache: Cache, tmp_path: Path) -> None:
    declaration = declare_dataset("mine", {"kind": "csv", "path": str(tmp_path / "no.csv"), "target": "y"})
    assert not is_here(declaration, cache)
    with pytest.raises(DataUnavailable, match=r"path must be an existing file, got '.*no\.csv'; correct it"):
        load_dataset(declaration, cache)


def test_missing_target_lists_the_columns(cache: Cache, tmp_path: Path) -> None:
    declaration = _csv(tmp_path / "t.csv", TABLE, target="lable")
    with pytest.raises(DeclarationError) as raised:
        load_dataset(declaration, cache)
    assert (
        "data set 'mine': target must be a column of the data, got 'lable' (did you mean 'label'?); "
        "the columns are 'size', 'colour', 'ok', 'label'" in str(raised.value)
    )


def test_incomplete_target_is_refused(cache: Cache, tmp_path: Path) -> None:
    declaration = _csv(tmp_path / "t.csv", TABLE, target="colour")
    with pytest.raises(DeclarationError, match="class column 'colour' is missing in 1 of 3 rows; remove these"):
        load_dataset(declaration, cache)


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("t.csv", b"", "No columns to parse"),
        ("t.csv", b"a,label\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        ("t.csv", b"a,label\n\xff,2\n", "codec can't decode"),
        ("t.csv.gz", b"a,label\n1,2\n", "Not a gzipped file"),
        ("t.csv.gz", gzip.compress(b"a,label\n" + b"1,2\n" * 9, mtime=0)[:-9], "ended before the end-of-stream marker"),
        ("t.csv", b"a,label\n1,2,3\n1,2,3\n", "got 2 names and more values"),
    ],
)
def test_file_that_is_no_table_is_explained(cache: Cache, tmp_path: Path, name: str, body: bytes, reason: str) -> None:
    declaration = _csv(tmp_path / name, "")
    (tmp_path / name).write_bytes(body)
    with pytest.raises(DeclarationError) as raised:
        load_dataset(declaration, cache)
    assert f"data set 'mine': {tmp_path / name} must " in str(raised.value)
    assert reason in str(raised.value)


def test_facts_of_an_own_table_are_checked(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    mapping = {"kind": "csv", "path": str(tmp_path / "t.csv"), "target": "label", "facts": {"rows": 4, "features": 3}}
    with pytest.raises(FactsMismatch) as raised:
        load_dataset(declare_dataset("mine", mapping), cache)
    assert "data set 'mine' is not what was declared (rows: declared 4, got 3);" in str(raised.value)


def test_declared_file_is_fetched(cache: Cache, loopback: Loopback) -> None:
    file = {"path": "p/t.csv", "url": loopback.url(FILE_PATH), "sha256": hashlib.sha256(FILE_BODY).hexdigest()}
    declaration = declare_dataset("mine", {"kind": "csv", "file": file, "target": "label"})
    assert not is_here(declaration, cache)
    assert load_dataset(declaration, cache).target.tolist() == ["yes", "no"]
    assert is_here(declaration, cache)


def test_network_is_available_with_all_its_files(cache: Cache) -> None:
    files = {
        role: {"path": f"n.{role}", "url": "https://host.invalid/n", "sha256": "0" * 64}
        for role in ("cnf", "lmap", "search")
    }
    facts = {"features": 1}
    network = declare_network("n", {"format": "ace", "files": files, "target": "C", "positive": "0", "facts": facts})
    folder = cache.writable / "files"
    folder.mkdir()
    for role in ("cnf", "lmap", "search"):
        assert not is_here(network, cache)
        (folder / f"n.{role}").write_text("")
    assert is_here(network, cache)


@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [("breast_cancer", (569, 30), ["malignant", "benign"]), ("digits", (1797, 64), list("0123456789"))],
)
def test_bundled_sets(cache: Cache, name: str, shape: tuple[int, int], labels: list[str]) -> None:
    from sklearn import datasets

    declaration = declare_dataset(name, {"kind": "bundled", "dataset": name})
    assert is_here(declaration, cache)
    dataset = load_dataset(declaration, cache)
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    assert dataset.features.shape == shape
    assert set(dataset.features.dtypes) == {np.dtype("float64")}
    np.testing.assert_array_equal(dataset.features.to_numpy(), X)
    assert list(dataset.target.cat.categories) == labels
    np.testing.assert_array_equal(dataset.target.cat.codes, y)


def test_simulated_set_follows_its_seed(cache: Cache) -> None:
    def load(seed: int) -> object:
        mapping = {"kind": "simulated", "model": "naive_bayes", "rows": 50, "features": 3, "seed": seed}
        declaration = declare_dataset("s", mapping | {"prior": 0.4})
        assert is_here(declaration, cache)
        return load_dataset(declaration, cache)

    first, again, other = load(1), load(1), load(2)
    assert first.features.equals(again.features)
    assert first.sha256 == again.sha256 != other.sha256
    assert list(first.features.columns) == ["x1", "x2", "x3"]
    assert set(first.features.dtypes) == {np.dtype("float64")}
    assert set(np.unique(first.features)) == {0.0, 1.0}
    assert set(first.target) == {"0", "1"}
