"""`trimbench --help` says what there is, quickly."""

from __future__ import annotations

from tests.test_package import loaded_by


def test_help_names_the_commands_and_loads_no_heavy_package() -> None:
    modules, text = loaded_by("from trimbench.papers.commands.cli import main; main()", "--help")
    assert modules == []
    assert "trimbench experiment=trimming/table6       run one table or figure" in text
    for part in ("task=list", "task=fetch", "task=report", "executor: processes"):
        assert part in text
    for key in ("seed:", "results:", "cache_mode:", "offline:", "profile: paper, quick"):
        assert key in text
