"""What the lock files and the workflow bring from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import supply

ROOT = Path(__file__).parents[1]


def test_all_that_is_locked_is_sound_and_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert supply.main() == 0, capsys.readouterr().out


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
