"""Every promise in SECURITY.md names what tests it, and that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| to whom"))
]


def named(row: list[str]) -> list[Path]:
    """Return the files that a row names; one without a folder lies beside the one before."""
    found: list[Path] = []
    for name in re.findall(r"`([^` ]+)[^`]*`", row[2]):
        found.append(ROOT / name if "/" in name else found[-1].parent / name)
    return found


def test_the_promises_are_found() -> None:
    assert len(ROWS) >= 10
    assert all(len(row) == 3 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:40])
def test_each_promise_names_tests_that_exist(row: list[str]) -> None:
    assert named(row), row[1]
    for path in named(row):
        assert path.is_file(), path
        if path.suffix == ".py":
            assert re.search(r"^ *def test_", path.read_text(encoding="utf-8"), re.MULTILINE), f"no tests in {path}"
