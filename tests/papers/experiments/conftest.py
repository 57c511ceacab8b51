"""One complete run of Table 6 for all tests that look at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..command_line import given_folder, given_networks, run_here


@pytest.fixture(scope="session")
def _table6(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given_networks(given_folder())
    folder = tmp_path_factory.mktemp("table6")
    answer = run_here("experiment=trimming/table6", f"results={folder}", "executor=serial", "offline=true")
    assert answer.code == 0, answer.err
    assert "## trimming/table6: complete" in answer.out
    return folder


@pytest.fixture
def table6(given_networks: Path, _table6: Path) -> Path:
    """Results of a complete run of Table 6 on the networks in TRIMBENCH_CACHE."""
    return _table6
