"""What holds for every source that downloads: good copies only, what is missing only, and all within bounds."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest
import requests

from trimbench.reproduction.data import downloads
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.dataset import Facts, fingerprint
from trimbench.reproduction.data.declarations import is_here, load_dataset
from trimbench.reproduction.data.downloads import FileDeclaration, _is_this_machine, stream
from trimbench.reproduction.data.errors import DataUnavailable

from .loopback import ARFF_PATH, FILE_PATH, PARQUET_PATH, Loopback
from .offers import (
    DESCRIPTION_PATH,
    FEATURES_PATH,
    FOLDER,
    KEPT,
    R_PATH,
    Offer,
    X,
    Y,
    contents,
    listing,
    offered,
    r_file,
)

every_kind = pytest.mark.parametrize("offer", ["file", "openml", "parquet", "r"], indirect=True)
every_copy = pytest.mark.parametrize(
    ("offer", "file", "reason"),
    [
        ("file", KEPT["file"], f"/{KEPT['file']}: its SHA-256 must be .*, got"),
        *(
            ("openml", f"{FOLDER}/{name}", f"/{FOLDER}, which cannot be read")
            for name in ("dataset.arff", "description.xml", "features.xml")
        ),
        ("r", KEPT["r"], f"/{KEPT['r']}: the file is not an intact data file of R"),
    ],
    indirect=["offer"],
)


@pytest.fixture
def offer(request: pytest.FixtureRequest, loopback: Loopback, tmp_path: Path) -> Offer:
    return offered(request.param, loopback, tmp_path)


def load(offer: Offer, cache: Cache) -> None:
    """Load the data set; it is the declared one."""
    assert load_dataset(offer.declaration, cache).sha256 == offer.declaration.facts.sha256


@every_kind
def test_download_is_stored_and_used_the_next_time(offer: Offer, cache: Cache, loopback: Loopback) -> None:
    assert not is_here(offer.declaration, cache)
    load(offer, cache)
    assert {name for name, body in contents(cache.writable).items() if body} == set(offer.files)
    assert is_here(offer.declaration, cache)
    before = listing(cache.writable)
    load(offer, replace(cache, offline=True))
    assert listing(cache.writable) == before
    assert loopback.requests == [f"GET {path}" for path in offer.files.values()]


@pytest.mark.parametrize(
    ("offer", "path", "fault", "reason"),
    [
        ("file", FILE_PATH, "404", "404 Client Error"),
        ("file", FILE_PATH, "500", "500 Server Error"),
        ("file", FILE_PATH, "truncated", "IncompleteRead"),
        ("file", FILE_PATH, "wrong", "the download must have SHA-256"),
        ("openml", DESCRIPTION_PATH, "500", "500"),
        ("openml", DESCRIPTION_PATH, "truncated", "IncompleteRead"),
        ("openml", FEATURES_PATH, "500", "500"),
        ("openml", FEATURES_PATH, "truncated", "IncompleteRead"),
        ("openml", ARFF_PATH, "500", "500"),
        ("openml", ARFF_PATH, "truncated", "IncompleteRead"),
        ("openml", ARFF_PATH, "wrong", "has MD5"),
        ("parquet", PARQUET_PATH, "wrong", "arquet"),
        ("r", R_PATH, "truncated", "IncompleteRead"),
    ],
    indirect=["offer"],
)
def test_failed_download_leaves_nothing_and_a_good_one_follows(
    offer: Offer, cache: Cache, loopback: Loopback, path: str, fault: str, reason: str
) -> None:
    loopback.faults[path] = fault
    with pytest.raises(DataUnavailable) as raised:
        load(offer, cache)
    message = str(raised.value)
    address = next(iter(offer.files.values()))
    assert message.startswith(f"{offer.title} is not available from {loopback.url(address)}")
    assert reason in message
    way = "correct its declaration" if fault == "wrong" else "run trimbench task=fetch on a network that reaches it"
    assert message.endswith(f"; {way}, or set TRIMBENCH_CACHE to a folder that holds it")
    assert "\n" not in message
    assert contents(cache.writable) == {}
    loopback.faults.clear()
    load(offer, cache)


@pytest.mark.parametrize("by_path", [False, True], ids=["downloaded", "put there by its path"])
@pytest.mark.parametrize("offer", ["file", "r"], indirect=True)
def test_a_declaration_of_the_same_path_with_another_hash_evicts_nothing(
    offer: Offer, cache: Cache, loopback: Loopback, tmp_path: Path, by_path: bool
) -> None:
    load(offer, cache)
    (place,) = [cache.writable / path for path in offer.files]
    source: Any = offer.declaration.source
    if by_path:
        place = cache.keep(place, source.file.path)
    before = place.read_bytes()
    values = pd.DataFrame(X + 1, columns=["gene1", "gene2"]), pd.Series(["0", "1", "1"], name="class")
    if offer.files == {KEPT["r"]: R_PATH}:
        loopback.files["/other"] = r_file(tmp_path, {"tissues": {"X": X + 1, "y": Y}})
        changes: dict[str, Any] = {"facts": Facts(sha256=fingerprint(*values))}
    else:
        loopback.files["/other"] = pd.concat(values, axis=1).to_csv(index=False).encode()
        changes = {"facts": Facts(), "target": "class"}
    file = replace(source.file, url=loopback.url("/other"))
    if isinstance(file, FileDeclaration):
        file = replace(file, sha256=hashlib.sha256(loopback.files["/other"]).hexdigest())
    other = replace(offer.declaration, source=replace(source, file=file, **changes))
    assert load_dataset(other, cache).sha256 == fingerprint(*values)
    assert place.read_bytes() == before
    for declaration in (other, offer.declaration):  # both are there now
        load_dataset(declaration, replace(cache, offline=True))


@every_kind
def test_what_keeps_data_away_is_said_before_a_host_is_asked(
    offer: Offer, cache: Cache, loopback: Loopback, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file/cache"
    for found, message in (
        (replace(cache, offline=True), "downloads are switched off; run trimbench task=fetch without offline=true"),
        (replace(cache, roads=("package",)), r"not among the roads that are on; add (openml|file) to roads, or set TR"),
        (
            replace(cache, folders=(), writable=folder),
            rf"from the cache folder {folder}: it cannot be written \(.*\); make that folder writable",
        ),
    ):
        with pytest.raises(DataUnavailable, match=message):
            load(offer, found)
    assert loopback.requests == []


@every_copy
def test_wrong_copy_is_skipped_and_in_the_writable_folder_replaced_by_a_good_download(
    offer: Offer,
    cache: Cache,
    loopback: Loopback,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    file: str,
    reason: str,
) -> None:
    load(offer, cache)
    (cache.writable / file).write_text("neither a table nor XML")
    before = listing(cache.writable)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        # The package for OpenML would ask the public server for what it cannot read.
        asked: list[object] = []
        patch.setattr(requests.Session, "request", lambda *arguments, **_: asked.append(arguments))
        with pytest.raises(DataUnavailable, match="switched off"):
            load(offer, replace(cache, offline=True))
    assert asked == []
    assert re.search(f"skipping {cache.writable}{reason}", caplog.text)
    load(offer, replace(cache, folders=(cache.writable,), writable=tmp_path / "other"))
    assert {name for name, body in contents(tmp_path / "other").items() if body} == set(offer.files)
    assert listing(cache.writable) == before, "a folder that is not the writable one is left alone"
    wrong = contents(cache.writable)
    loopback.faults = dict.fromkeys(offer.files.values(), "truncated")
    with pytest.raises(DataUnavailable, match="IncompleteRead"):
        load(offer, cache)
    assert contents(cache.writable) == wrong
    loopback.faults.clear()
    load(offer, cache)
    load(offer, replace(cache, offline=True))


@pytest.mark.parametrize("kind", ["file", "openml", "r"])
def test_dead_host_is_asked_once(
    cache: Cache, loopback: Loopback, closed_address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    timeouts: list[object] = []
    get = requests.Session.get

    def counting(session: requests.Session, url: str, **options: Any) -> requests.Response:
        timeouts.append(options["timeout"])
        return get(session, url, **options)

    monkeypatch.setattr(requests.Session, "get", counting)
    with monkeypatch.context() as patch:
        patch.setattr(loopback, "address", closed_address)
        dead, dead_cache = offered(kind, loopback, tmp_path), replace(cache, openml_server=loopback.api)
    for _ in range(3):
        with pytest.raises(DataUnavailable, match="Connection refused"):
            load(dead, dead_cache)
    assert timeouts == [20]
    assert contents(cache.writable) == {}
    load(offered(kind, loopback, tmp_path), cache)
    assert Cache((), cache.writable).hosts.reason_for(closed_address) is None, "memory belongs to one cache"


def test_failed_download_is_tried_once_more(
    cache: Cache, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, loopback.body(FILE_PATH)])
    monkeypatch.setattr(loopback, "body", lambda path: next(answers))
    load(offered("file", loopback, tmp_path), cache)
    assert loopback.requests == [f"GET {FILE_PATH}"] * 2


# Downloads are bounded: in bytes, in time, in where they lead, and in what a killed one leaves.


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
    (killed := tmp_path / ".partial.00c0ffee.tmp").mkdir()
    for name in ("trimbench.lock", "partial"):
        (killed / name).write_text("half")
    with Cache((), tmp_path).workspace() as first, Cache((), tmp_path).workspace() as second:
        assert set(tmp_path.iterdir()) == {first, second}


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
