import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture
def programs() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for program in started:
        if program.poll() is None:
            program.kill()
        program.communicate()
