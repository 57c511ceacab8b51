"""Downloads are bounded: in bytes, in time, in where they lead, and in what a killed one leaves."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import pytest
import requests

from tests.papers.execution.programs import held_elsewhere
from trimbench.papers.data import downloads
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.downloads import _is_this_machine, stream

# Answers without end: the body of a redirect, the size of a piece, and compressed blocks in which there is nothing.
_HEADERS = {
    "redirect": {"Location": "/small"},
    "piece": {"Transfer-Encoding": "chunked"},
    "empty": {"Content-Encoding": "deflate"},
}
_BYTES = {"redirect": b"x" * 2**16, "piece": b"0", "empty": b"\0\0\0\xff\xff"}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, _, rest = self.path[1:].partition("/")
        if kind == "headers":
            with suppress(OSError):
                for byte in b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n" * 10:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.05)
            return
        if kind == "to":
            self.send_response(302)
            self.send_header("Location", rest)
            self.end_headers()
            return
        self.send_response(302 if kind == "redirect" else 200)
        for name, value in _HEADERS.get(kind, {}).items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            while kind in _HEADERS:
                self.wfile.write(_BYTES[kind])
                time.sleep(0.02 if kind != "redirect" else 0)
            for _ in range({"small": 1, "slow": 100, "endless": 10**6, "large": 32}[kind]):
                self.wfile.write(b"x" * (2**20 if kind == "large" else 1000))
                time.sleep(0.02 if kind == "slow" else 0)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def test_the_declared_size_is_enforced_while_bytes_arrive(server: str, tmp_path: Path) -> None:
    stream(f"{server}/small", tmp_path / "file", 1000)
    assert (tmp_path / "file").stat().st_size == 1000
    with pytest.raises(ValueError, match="must have 2000 bytes, got 1000"):
        stream(f"{server}/small", tmp_path / "file", 2000)
    with pytest.raises(ValueError, match="more than 100000 bytes"):
        stream(f"{server}/endless", tmp_path / "file", 100_000)
    assert (tmp_path / "file").stat().st_size <= 100_000


def outcome(work: Callable[[], None]) -> str:
    """Return how a download ends that takes at most 10 seconds: one without end fails the test and does not hang it."""
    said = ["never"]

    def follow() -> None:
        try:
            work()
            said[0] = "done"
        except TimeoutError as error:
            said[0] = str(error)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    thread.join(10)
    return said[0]


@pytest.mark.parametrize("kind", ["slow", "piece", "empty", "headers"])
def test_whatever_comes_slowly_or_has_no_content_meets_the_deadline(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(downloads, "_TOTAL_SECONDS", 0.2)
    said = outcome(lambda: stream(f"{server}/{kind}", tmp_path / "file"))
    assert said == "the download was not done after 0.2 seconds"
    assert kind != "headers" or not (tmp_path / "file").exists()


def test_the_body_of_a_redirect_is_not_read(server: str, tmp_path: Path) -> None:
    assert outcome(lambda: stream(f"{server}/redirect", tmp_path / "file")) == "done"
    assert (tmp_path / "file").stat().st_size == 1000


def test_an_answer_that_comes_after_the_deadline_is_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer, asked, closed = Mock(is_redirect=False), threading.Event(), threading.Event()
    answer.close.side_effect = closed.set
    monkeypatch.setattr(requests.Session, "get", lambda *_, **__: asked.wait() and answer)
    monkeypatch.setattr(downloads, "_TOTAL_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        stream("http://localhost", tmp_path / "file")
    asked.set()
    assert closed.wait(10)
    assert not (tmp_path / "file").exists()


def test_a_large_download_takes_little_memory(server: str, tmp_path: Path) -> None:
    tracemalloc.start()
    stream(f"{server}/large", tmp_path / "file", 2**25)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()
    assert (tmp_path / "file").stat().st_size == 2**25


def test_redirects_lead_to_https_or_to_this_machine(server: str, tmp_path: Path) -> None:
    stream(f"{server}/to/{server}/small", tmp_path / "file")
    assert (tmp_path / "file").stat().st_size == 1000
    for address in ("http://example.org/x", "ftp://127.0.0.2.example.org", "file:///etc/passwd"):
        with pytest.raises(ValueError, match="neither https nor on this machine"):
            stream(f"{server}/to/{address}", tmp_path / "other")
    with pytest.raises(ValueError, match="more than 5 times"):
        stream(f"{server}/to/" * 9 + "small", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_this_machine_is_what_would_be_asked() -> None:
    ours = ("http://localhost/", "http://127.0.0.1:8000/x", "http://[::1]/", "http://user@localhost/")
    assert all(map(_is_this_machine, ours))
    others = (r"http://example.org\@localhost/", "http://[::1]x/", "http://localhost.example.org", "http:///", "x")
    assert not any(map(_is_this_machine, others))


def test_what_a_killed_download_left_is_removed(tmp_path: Path) -> None:
    cache = Cache((), tmp_path)
    with held_elsewhere(tmp_path, ".partial") as living:
        with held_elsewhere(tmp_path, ".partial") as killed:
            (killed / "partial").write_text("half")
        with cache.workspace() as first, cache.workspace() as second:
            assert not killed.exists()
            assert {first, second, living} == set(tmp_path.iterdir())
    with cache.workspace():
        assert not living.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_download_never_takes_the_folder_of_another(tmp_path: Path) -> None:
    cache = Cache((), tmp_path)

    def work(_: int) -> bool:
        with cache.workspace() as folder:
            (folder / "partial").write_text("half")
            time.sleep(0.001)
            return (folder / "partial").read_text() == "half"

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(100)))
    assert list(tmp_path.iterdir()) == []
