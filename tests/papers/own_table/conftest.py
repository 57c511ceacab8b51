"""A study of Iris that several tests look at, or take up where it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimbench.papers.own_table.study import Study

from .studies import iris, studied


@pytest.fixture(scope="session")
def flower_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the jobs of `flowers`; tests that run others work on a copy."""
    return tmp_path_factory.mktemp("flowers")


@pytest.fixture(scope="session")
def flowers(flower_jobs: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A small study of three classes at unit costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("flowers_cache")))
        patch.delenv("TRIMBENCH_CACHE", raising=False)
        return studied(iris(), "species", flower_jobs)
