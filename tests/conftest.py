"""What the tests of the library and of the papers share: the project, and kernels that one worker compiles."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator

import pytest

from trimbench._numba import _stop_clock_while_compiling
from trimbench.papers.project import PROJECT
from trimbench.reproduction.project import use

pytest_plugins = ["tests.surroundings"]

use(PROJECT)


@pytest.fixture(scope="session", autouse=True)
def _one_worker_compiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """While one worker compiles a kernel, the others wait for it, and then read what it has kept."""
    from numba.core import event

    _stop_clock_while_compiling()  # also while a worker waits

    depth, counting = 0, threading.Lock()

    class Listener(event.Listener):
        def on_start(self, event: object) -> None:
            nonlocal depth
            with counting:
                depth += 1
                if depth == 1:
                    fcntl.flock(file, fcntl.LOCK_EX)

        def on_end(self, event: object) -> None:
            nonlocal depth
            with counting:
                depth -= 1
                if depth == 0:
                    fcntl.flock(file, fcntl.LOCK_UN)

    with (
        (tmp_path_factory.getbasetemp().parent / "compiling").open("w") as file,
        event.install_listener("numba:compiler_lock", Listener()),
    ):
        yield
