"""Arrays that are computed once."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from trimbench.papers.execution.store import remember


@pytest.fixture
def compute() -> Mock:
    return Mock(return_value={"values": np.arange(3.0), "names": np.array(["a", "b"])})


def stored(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "xdg").rglob("*.npz"))


def test_computes_once_for_each_key(tmp_path: Path, compute: Mock) -> None:
    for _ in range(3):
        found = remember("sample", {"x": 1}, compute)
        np.testing.assert_array_equal(found["values"], [0, 1, 2])
        assert found["names"].tolist() == ["a", "b"]
    assert compute.call_count == 1
    remember("sample", {"x": 2}, compute)
    remember("other", {"x": 1}, compute)
    assert compute.call_count == 3
    assert len(stored(tmp_path)) == 3
    assert not list((tmp_path / "xdg").rglob("*.tmp"))


def test_the_folder_of_a_file_is_no_part_of_the_key(compute: Mock) -> None:
    for place in ("/home/anna/x.csv", "/elsewhere/x.csv", "/elsewhere/y.csv"):
        remember("sample", {"task": {"path": place, "sha256": "a" * 64}}, compute)
    assert compute.call_count == 2


def test_a_damaged_file_is_computed_again(tmp_path: Path, compute: Mock) -> None:
    remember("sample", {}, compute)
    (path,) = stored(tmp_path)
    for content in (b"", b"nonsense", path.read_bytes()[:50]):
        path.write_bytes(content)
        for _ in range(2):
            remember("sample", {}, compute)
    assert compute.call_count == 4


def test_edits_of_single_bytes_are_noticed(tmp_path: Path, compute: Mock) -> None:
    remember("sample", {}, compute)
    (path,) = stored(tmp_path)
    whole = path.read_bytes()
    places = range(0, len(whole), 5)
    for place in places:
        edited = bytearray(whole)
        edited[place] ^= 1 << place % 7
        path.write_bytes(edited)
        remember("sample", {}, compute)
        assert path.read_bytes() == whole
    assert compute.call_count == 1 + len(places)


def test_without_a_folder_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compute: Mock) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(blocked))
    for _ in range(2):
        assert len(remember("sample", {}, compute)["values"]) == 3
    assert compute.call_count == 2


def test_an_error_is_not_kept(compute: Mock) -> None:
    with pytest.raises(RuntimeError, match="no"):
        remember("sample", {}, Mock(side_effect=RuntimeError("no")))
    assert remember("sample", {}, compute)["values"].tolist() == [0, 1, 2]
