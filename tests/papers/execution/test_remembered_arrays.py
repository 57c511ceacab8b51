"""Arrays that are computed once."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from trimbench.papers.execution.remembered_arrays import Arrays, remember


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Arrays:
        self.calls += 1
        return {"values": np.arange(3.0), "names": np.array(["a", "b"])}


def stored(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "xdg").rglob("*.npz"))


def test_computes_once_for_each_key(tmp_path: Path) -> None:
    compute = Counter()
    for _ in range(3):
        found = remember("sample", {"x": 1}, compute)
        np.testing.assert_array_equal(found["values"], [0, 1, 2])
        assert found["names"].tolist() == ["a", "b"]
    assert compute.calls == 1
    remember("sample", {"x": 2}, compute)
    remember("other", {"x": 1}, compute)
    assert compute.calls == 3
    assert len(stored(tmp_path)) == 3
    assert not list((tmp_path / "xdg").rglob("*.tmp"))


def test_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    compute = Counter()
    remember("sample", {}, compute)
    (path,) = stored(tmp_path)
    for content in (b"", b"nonsense", path.read_bytes()[:50]):
        path.write_bytes(content)
        remember("sample", {}, compute)
    assert compute.calls == 4
    remember("sample", {}, compute)
    assert compute.calls == 4


def test_without_a_folder_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(blocked))
    compute = Counter()
    for _ in range(2):
        assert len(remember("sample", {}, compute)["values"]) == 3
    assert compute.calls == 2


def test_an_error_is_not_kept(tmp_path: Path) -> None:
    def fail() -> Arrays:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        remember("sample", {}, fail)
    assert remember("sample", {}, Counter())["values"].tolist() == [0, 1, 2]
