"""Edits of single bytes of stored files are noticed; `python -m tests.hardening.edits` edits every byte."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from . import edits


def test_edits_of_records_arrays_and_tables_are_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # put back at the end
    assert edits.main(["--records=3", "--arrays=5", "--tables=1", "--every=7"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("3 records: ")
    assert second.startswith("5 files of arrays: ")
    assert third.startswith("1 tables of studies: ")


def test_an_edit_that_is_not_noticed_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abcdef")
    found = edits.unnoticed(file, lambda: True if file.read_bytes()[:2] == b"ab" else None, random.Random(0))
    assert found == (6, [2, 3, 4, 5])
    assert file.read_bytes() == b"abcdef"
    with pytest.raises(ValueError, match="not read as it is"):
        edits.unnoticed(file, lambda: None, random.Random(0))
