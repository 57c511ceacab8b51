import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimbench.papers.execution import JobStore


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "records")


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A folder for the files that jobs leave."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def programs() -> Iterator[list["subprocess.Popen[str]"]]:
    """Programs that end with the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for program in started:
        if program.poll() is None:
            program.kill()
        program.communicate()
