"""Every row of the tables in SECURITY.md names what tests it, and that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line, after in zip(LINES, [*LINES[1:], ""], strict=True)
    if line.startswith("|") and not line.startswith("|---") and not after.startswith("|---")
]


def all_named() -> list[list[tuple[Path, str]]]:
    """Return the files that each row names, and tests in them; one without a folder lies beside the one before."""
    last, found = ROOT, []
    for row in ROWS:
        places: list[tuple[Path, str]] = []
        for name in re.findall(r"`([^` ]+)[^`]*`", row[2]):
            if name.startswith("test_") and not name.endswith(".py"):
                places.append((last, name))
            else:
                last = ROOT / name if "/" in name else last.parent / name
                places.append((last, "test_"))
        found.append(places)
    return found


def test_the_promises_are_found() -> None:
    assert len(ROWS) >= 40
    assert sum(line.startswith("|---") for line in LINES) == 3
    assert all(len(row) == 3 for row in ROWS)


@pytest.mark.parametrize(
    ("row", "places"), list(zip(ROWS, all_named(), strict=True)), ids=[(row[0] or row[1])[:40] for row in ROWS]
)
def test_each_promise_names_tests_that_exist(row: list[str], places: list[tuple[Path, str]]) -> None:
    assert places, row[1]
    for path, test in places:
        assert path.is_file(), path
        if path.suffix == ".py":
            assert re.search(rf"^ *def {test}", path.read_text(encoding="utf-8"), re.MULTILINE), f"no {test} in {path}"
