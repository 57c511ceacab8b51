"""The programs that hold the directions of imports and what comes from elsewhere; scripts/test runs both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import crossed, size, supply
from tests.papers.command_line import T4, write


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
    assert (counts["lines of the library"], counts["files of the library"], counts["files of the papers"]) == (2, 4, 2)
    assert counts["imports between files"] == 6
    assert faults[0] == "trimbench imports trimbench.papers.study"
    assert (counts["imports upwards"], counts["circles"], len(faults)) == (1, 1, 2)
    assert faults[1] in (f"in a circle: trimbench.{x} -> trimbench.{y} -> trimbench.{x}" for x, y in ("ab", "ba"))
    assert size.main(tmp_path) == 1
    assert "imports upwards: 1\n" in capsys.readouterr().out


def test_floors_are_the_longest_chain_of_imports() -> None:
    assert size.n_floors({"p.a": {"p.b", "p.c"}, "p.b": {"p.c"}}) == 3


def test_the_files_on_the_way_of_a_command_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = crossed.crossings_of([T4, "executor=serial", "task=list"])
    assert {
        "__main__.py",
        "reproduction/commands/cli.py",
        "reproduction/commands/tasks.py",
        "papers/trimming/examples.py",
    } <= set(found.files)
    assert found.steps["__main__.py", "reproduction/commands/cli.py"] >= 1


ROOT = Path(__file__).parents[1]


def test_every_locked_package_has_a_hash_and_so_have_the_tools_that_build() -> None:
    for path in (ROOT / "requirements").glob("*.lock"):
        text = path.read_text(encoding="utf-8")
        entries = re.split(r"\n(?=\S)", text.strip())
        assert all("--hash=sha256:" in entry for entry in entries), path
        assert {"cython", "hatchling", "setuptools"} <= {name for name, _ in supply.locked(text)}, path


def test_old_versions_and_unseen_licences_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list(supply.weaknesses([("filelock", "3.20.2"), ("filelock", "3.20.3"), ("numpy", "1.0")]))
    assert told == ["filelock 3.20.2 has CVE-2025-68146, CVE-2026-22701: take 3.20.3 or later"]
    for words in ("GPL-3.0-or-later", "Proprietary", "MIT AND GPL-2.0-only"):
        monkeypatch.setattr(supply, "licence", lambda _, words=words: words)
        assert [one.partition(":")[0] for one in supply.refused({"numpy", "not-installed"})] == [
            f"numpy has the licence {words!r}"
        ]


def test_actions_are_named_by_their_commits() -> None:
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        uses = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
        assert uses
        assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in uses), path
