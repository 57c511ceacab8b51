import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimbench.reproduction.data.cache import Cache

from .loopback import Loopback, serve


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sends a request for 127.0.0.1 to a proxy, or pauses between downloads."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("trimbench.reproduction.data.downloads._PAUSE_SECONDS", 0)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with serve() as server:
        yield server


@pytest.fixture
def closed_address() -> str:
    """The address of a port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


@pytest.fixture
def cache(store: Path, loopback: Loopback) -> Cache:
    return Cache(folders=(store,), writable=store, openml_server=loopback.api)
