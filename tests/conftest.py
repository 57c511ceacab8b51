"""Surroundings that all tests share: no test sees the user's caches or writes into the current folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import command_line


@pytest.fixture(scope="session", autouse=True)
def _one_font_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """matplotlib lists the fonts of the machine once for all tests, in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(tmp_path_factory.mktemp("matplotlib")))
        yield


@pytest.fixture(autouse=True)
def _no_caches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The caches are empty, except in tests that ask for `given_folder`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if "given_folder" not in request.fixturenames:
        monkeypatch.delenv("TRIMBENCH_CACHE", raising=False)


@pytest.fixture
def given_folder() -> Path:
    """The folder that TRIMBENCH_CACHE names."""
    return command_line.given_folder()


@pytest.fixture
def given_networks(given_folder: Path) -> Path:
    """The folder that TRIMBENCH_CACHE names, with the networks of the trimming paper in it."""
    return command_line.given_networks(given_folder)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., command_line.Answer]:
    """Runs a command in this process; its results go to ``tmp_path / "results"``."""
    monkeypatch.chdir(tmp_path)
    return command_line.run_here
