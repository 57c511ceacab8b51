"""A list of objects in a file named ``.json`` is a table like one between separators."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.dataset import Dataset
from trimbench.reproduction.data.declarations import declare_dataset, load_dataset
from trimbench.reproduction.data.errors import DeclarationError

OBJECTS = '[{"a": 1, "b": "x", "y": "no"},\n {"b": "?", "y": "yes"},\n {"a": 2.5, "y": "yes", "b": "z"}]'
LINES = "a,b,y\n1,x,no\n,?,yes\n2.5,z,yes\n"


def loaded(path: Path, text: str, **keys: object) -> Dataset:
    path.write_text(text, encoding="utf-8")
    declaration = declare_dataset("mine", {"kind": "csv", "path": str(path), "target": "y", **keys})
    return load_dataset(declaration, Cache.from_environment())


def test_objects_and_lines_are_the_same_rows(tmp_path: Path) -> None:
    objects, lines = loaded(tmp_path / "t.json", OBJECTS), loaded(tmp_path / "t.csv", LINES)
    assert objects.sha256 == lines.sha256
    assert objects.features.isna().sum().to_dict() == {"a": 1, "b": 1}


def test_columns_choose_the_keys(tmp_path: Path) -> None:
    assert [*loaded(tmp_path / "t.json", OBJECTS, columns=["b", "y"]).features] == ["b"]
    with pytest.raises(DeclarationError, match="columns must name keys of the file, got 'c'"):
        loaded(tmp_path / "t.json", OBJECTS, columns=["c", "y"])


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[1, 2]", "7"])
def test_what_is_no_list_of_objects_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeclarationError):
        loaded(tmp_path / "t.json", text)
