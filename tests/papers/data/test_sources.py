"""Sources of data: which data is here, what is fetched from where, and what stands in the way."""

import errno
import gzip
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache, HostMemory, one_line_reason
from trimbench.papers.data.declarations import (
    DatasetDeclaration,
    Declaration,
    declare_dataset,
    declare_network,
    is_here,
    load_dataset,
    obstacle,
)
from trimbench.papers.validation import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.papers.vocabulary.planning import fetch

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


PROJECT = Catalogue((configuration_folder(),))
OPENML = "openml/org/openml/www/datasets/1590"
NEEDS: dict[str, tuple[Declaration, list[str]]] = {
    "openml": (
        declare_dataset("adult", PROJECT.dataset_mapping("adult")),
        [f"{OPENML}/dataset_1590.pq", f"{OPENML}/description.xml", f"{OPENML}/features.xml"],
    ),
    "r": (declare_dataset("colon", PROJECT.dataset_mapping("colon")), ["files/colon/colon.csv.gz"]),
    "network": (
        declare_network("cpcs54", PROJECT.network_mapping("cpcs54")),
        ["files/uai2008/PE/uai-2006/BN_78.erg.gz", "files/uai2008_evidence/PE/uai-2006/BN_78.erg.evid.gz"],
    ),
}


@pytest.mark.parametrize("kind", NEEDS)
def test_a_file_that_cannot_be_read_is_an_obstacle_unless_there_is_a_good_copy(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need, paths = NEEDS[kind]
    monkeypatch.setattr("trimbench.papers.data.downloads._may_be", lambda path, sha256: True)  # whatever it holds
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

    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    cache = Cache((Path("closed"),), Path("closed"), offline=True)
    assert not is_here(need, cache)
    with pytest.raises(DataUnavailable, match=r"closed/files/.*/BN_78\.erg\.gz cannot be read \(Permission denied\)"):
        fetch(need, cache)
