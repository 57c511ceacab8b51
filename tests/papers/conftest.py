"""Fixtures for the tests of the papers floor: data from a cache folder, and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import command_line


@pytest.fixture
def given_folder() -> Path:
    """The folder that TRIMBENCH_CACHE names."""
    return command_line.given_folder()


@pytest.fixture
def given_networks(given_folder: Path) -> Path:
    """The folder that TRIMBENCH_CACHE names, if it holds the networks of the trimming paper."""
    return command_line.given_networks(given_folder)


@pytest.fixture
def command() -> command_line.Command:
    """Runs a command in this process; its results go to ``tmp_path / "results"``."""
    return command_line.run_here
