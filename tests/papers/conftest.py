"""Fixtures for the tests of the papers floor: data from a cache folder, and commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from trimbench.papers.commands import arguments, cli
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.vocabulary.figures import Figure

from . import command_line


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal is wide, so that a test finds sentences whole."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def given_folder() -> Path:
    """The folder that TRIMBENCH_CACHE names; without one, the test is skipped."""
    if not (value := os.environ.get("TRIMBENCH_CACHE")):
        pytest.skip("TRIMBENCH_CACHE is not set, so there is no data to run on")
    return Path(value)


@pytest.fixture
def given_networks(given_folder: Path) -> Path:
    """The folder that TRIMBENCH_CACHE names, if it holds the networks of the trimming paper."""
    names = ("bupa", "pima", "ident", "anatomy", "heart", "voting", "hepatitis")
    paths = [given_folder / f"files/trimbn/{name}.net.{end}" for name in names for end in ("cnf", "lmap", "search")]
    if absent := [path.name for path in paths if not path.is_file()]:
        pytest.skip(f"TRIMBENCH_CACHE does not hold files/trimbn/{absent[0]}")
    return given_folder


@pytest.fixture
def command() -> command_line.Command:
    """Runs a command in this process; its results go to ``tmp_path / "results"``."""
    return command_line.run_here


@pytest.fixture(scope="session")
def few_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return command_line.project_of(tmp_path_factory.mktemp("few") / "conf", *command_line.FEW)


@pytest.fixture
def few(few_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project has six experiments: a command that names none composes all, which takes most of its time."""
    for module in (cli, arguments):
        monkeypatch.setattr(module, "configuration_folder", lambda: few_folder)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are one pixel, for tests that look at everything else: drawing takes most of the time of a command."""

    def draw(_figure: Figure, paths: Sequence[Path], _settings: FigureSettings) -> None:
        for path in paths:
            Image.new("L", (1, 1)).save(path)

    monkeypatch.setattr("trimbench.papers.reporting.figures.drawing.draw", draw)
