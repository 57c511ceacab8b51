"""Fixtures for the tests of the framework: a project without experiments, and commands."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from PIL import Image

from trimbench.reproduction.commands import arguments
from trimbench.reproduction.commands.arguments import Composer
from trimbench.reproduction.configuration import load
from trimbench.reproduction.project import SHARED_CONFIGURATION, Project, project, use
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.vocabulary.figures import Figure

from . import command_line

BARE = Project(
    reference="tests.reproduction.conftest:BARE",
    name="trimbench",
    command="trimbench",
    folder=Path(__file__).parents[2],
    configuration=SHARED_CONFIGURATION,
    cache_variable="TRIMBENCH_CACHE",
)


@pytest.fixture(autouse=True)
def _no_papers() -> Iterator[None]:
    """The project has no experiments, whatever other tests use; one that a test uses ends with it."""
    before = project()
    use(BARE)
    yield
    use(before)


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
def command() -> command_line.Command:
    """Runs a command in this process; its results go to ``tmp_path / "results"``."""
    return command_line.run_here


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are one pixel, for tests that look at everything else: drawing takes most of the time of a command."""

    def draw(_figure: Figure, paths: Sequence[Path], _settings: FigureSettings) -> None:
        for path in paths:
            Image.new("L", (1, 1)).save(path)

    monkeypatch.setattr("trimbench.reproduction.reporting.figures.drawing.draw", draw)
