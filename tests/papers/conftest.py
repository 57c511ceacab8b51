"""Fixtures for the tests of the papers: networks from a cache folder, commands, and a project of few experiments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reproduction.conftest import _composed_once, _wide, command, undrawn  # noqa: F401

from . import command_line


@pytest.fixture
def given_networks(given_folder: Path) -> Path:
    """The folder that TRIMBENCH_CACHE names, if it holds the networks of the trimming paper."""
    names = ("bupa", "pima", "ident", "anatomy", "heart", "voting", "hepatitis")
    paths = [given_folder / f"files/trimbn/{name}.net.{end}" for name in names for end in ("cnf", "lmap", "search")]
    if absent := [path.name for path in paths if not path.is_file()]:
        pytest.skip(f"TRIMBENCH_CACHE does not hold files/trimbn/{absent[0]}")
    return given_folder


@pytest.fixture(scope="session")
def few_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return command_line.project_of(tmp_path_factory.mktemp("few") / "conf", *command_line.FEW)


@pytest.fixture
def few(few_folder: Path) -> Iterator[None]:
    """The project has six experiments: a command that names none composes all, which takes most of its time."""
    yield from command_line.configured_in(few_folder)
