"""Fixtures for the tests of the papers and the framework: data from a cache folder, and commands."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from PIL import Image

from trimbench.reproduction.commands import arguments
from trimbench.reproduction.commands.arguments import Composer
from trimbench.reproduction.configuration import load
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.vocabulary.figures import Figure

from . import command_line


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal is wide, so that a test finds sentences whole."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture(scope="session", autouse=True)
def _composed_once() -> Iterator[None]:
    """Hydra composes the same words and files once for all tests: in most commands, that takes most of the time."""
    compose, known, read = Composer._compose, dict[object, Any](), functools.cache(lambda path, _changed: load(path))

    @functools.wraps(compose)
    def compose_once(composer: Composer, *words: str) -> Any:
        if "hydra" in str(words) or GlobalHydra.instance().is_initialized():  # which may look elsewhere
            return compose(composer, *words)
        folders = [folder.absolute() for folder in (*composer.catalogue.folders, project().configuration)]
        files = [path for folder in folders for path in folder.rglob("*.yaml") if path.exists()]
        key = (composer.root, words, *folders, *((path, path.stat().st_mtime_ns) for path in files))
        if key not in known:
            known[key] = compose(composer, *words)
        return copy.deepcopy(known[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Composer, "_compose", compose_once)
        patch.setattr(arguments, "load", lambda path: read(path, path.stat().st_mtime_ns))
        yield


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
def few(few_folder: Path) -> Iterator[None]:
    """The project has six experiments: a command that names none composes all, which takes most of its time."""
    yield from command_line.configured_in(few_folder)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are one pixel, for tests that look at everything else: drawing takes most of the time of a command."""

    def draw(_figure: Figure, paths: Sequence[Path], _settings: FigureSettings) -> None:
        for path in paths:
            Image.new("L", (1, 1)).save(path)

    monkeypatch.setattr("trimbench.reproduction.reporting.figures.drawing.draw", draw)
