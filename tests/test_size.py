"""The size of the package is held, and the files on the way of a command are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import crossed, size
from tests.papers.command_line import T4, write


def test_the_size_is_held(capsys: pytest.CaptureFixture[str]) -> None:
    assert size.main() == 0, capsys.readouterr().out


def test_imports_upwards_and_in_a_circle_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = dict.fromkeys(("trimbench/__init__.py", "trimbench/a/__init__.py", "trimbench/papers/__init__.py"), "")
    files = {
        "trimbench/__init__.pyi": "from .papers.study import study as study\nfrom .a.low import low as low\n",
        "trimbench/papers/study.py": "from trimbench.a import low\n\ndef study() -> None:\n    from .. import b\n",
        "trimbench/a/low.py": "import trimbench.b\n",
        "trimbench/b.py": "from trimbench.a.low import x\n",
        "tests/test_a.py": "1\n2\n",
    }
    write(tmp_path, empty | files)
    counts, faults = size.measured(tmp_path)
    assert counts["public names"] == counts["lines of tests"] == counts["packages in packages"] + 1 == 2
    assert (counts["lines"], counts["files"], counts["imports between files"]) == (6, 6, 6)
    assert faults[0] == "trimbench imports trimbench.papers.study"
    assert (counts["imports upwards"], counts["circles"], len(faults)) == (1, 1, 2)
    assert faults[1] in (f"in a circle: trimbench.{x} -> trimbench.{y} -> trimbench.{x}" for x, y in ("ab", "ba"))
    assert size.main(tmp_path) == 1
    assert "imports upwards: 1 (at most 0)" in capsys.readouterr().out


def test_floors_are_the_longest_chain_of_imports() -> None:
    assert size.n_floors({"p.a": {"p.b", "p.c"}, "p.b": {"p.c"}}) == 3


def test_the_files_on_the_way_of_a_command_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = crossed.crossings_of([T4, "executor=serial", "task=list"])
    assert {"__main__.py", "papers/commands/cli.py", "papers/commands/tasks.py", "papers/trimming/table4.py"} <= set(
        found.files
    )
    assert found.steps["__main__.py", "papers/commands/cli.py"] >= 1
