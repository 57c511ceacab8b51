import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import DatasetDeclaration, declare_dataset, is_here, load_dataset
from trimbench.papers.validation import DataUnavailable, DeclarationError, FactsMismatch

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


def test_columns_are_named_where_a_file_has_no_header_line(cache: Cache, tmp_path: Path) -> None:
    _csv(tmp_path / "bare.csv", TABLE.split("\n", 1)[1])
    names = {"columns": ["length", "hue", "fine", "kind"], "target": "kind"}
    dataset = load_dataset(declare_dataset("mine", {"kind": "csv", "path": str(tmp_path / "bare.csv"), **names}), cache)
    assert list(dataset.features.columns) == ["length", "hue", "fine"]
    np.testing.assert_array_equal(dataset.features["length"], [1.0, 2.5, np.nan])
    assert dataset.target.tolist() == ["1", "2", "2"]


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
    ("name", "body", "reason"),
    [
        ("t.csv", b"", "it is empty"),
        ("t.csv", b"a,label\n1,2\n1,2,3\n", "line 3 has 3 values where there are 2 columns"),
        ("t.csv", b"a,label\n\xff,2\n", "codec can't decode"),
        ("t.csv.gz", b"\x1f\x8b,label\n1,2\n", "Unknown compression method"),
        ("t.csv.gz", gzip.compress(b"a,label\n" + b"1,2\n" * 9, mtime=0)[:-9], "ended before the end-of-stream marker"),
        ("t.csv", b"a,label\n1,2,3,4\n1,2,3,4\n", "line 2 has 4 values where there are 2 columns"),
    ],
)
def test_file_that_is_no_table_is_explained(cache: Cache, tmp_path: Path, name: str, body: bytes, reason: str) -> None:
    declaration = _csv(tmp_path / name, "")
    (tmp_path / name).write_bytes(body)
    with pytest.raises(DeclarationError, match=f"data set 'mine': {tmp_path / name} must .*{reason}"):
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
