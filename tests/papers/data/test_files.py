import hashlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.errors import WAY_OUT, DataUnavailable
from trimbench.papers.data.files import FileDeclaration, fetch_file, find_file

from .listing import contents, listing
from .loopback import FILE_BODY, FILE_PATH, Loopback

SHA256 = hashlib.sha256(FILE_BODY).hexdigest()


@pytest.fixture
def declaration(loopback: Loopback) -> FileDeclaration:
    return FileDeclaration(path="plain/table.csv", url=loopback.url(FILE_PATH), sha256=SHA256)


def _put(folder: Path, body: bytes) -> Path:
    path = folder / "files" / "plain" / "table.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    return path


def test_download_is_stored_and_used_the_next_time(
    declaration: FileDeclaration, cache: Cache, loopback: Loopback
) -> None:
    assert find_file(declaration, cache) is None
    path = fetch_file(declaration, cache)
    assert path == cache.writable / "files" / "plain" / "table.csv"
    assert path.read_bytes() == FILE_BODY
    assert find_file(declaration, cache) == path
    assert fetch_file(declaration, replace(cache, offline=True)) == path
    assert loopback.requests == [f"GET {FILE_PATH}"]
    assert set(contents(cache.writable)) == {"files", "files/plain", "files/plain/table.csv"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("500", "500 Server Error"), ("truncated", "IncompleteRead"), ("wrong", "the download has SHA-256")],
)
def test_failed_download_leaves_nothing_and_a_good_one_follows(
    declaration: FileDeclaration, cache: Cache, loopback: Loopback, fault: str, reason: str
) -> None:
    loopback.faults[FILE_PATH] = fault
    with pytest.raises(DataUnavailable) as raised:
        fetch_file(declaration, cache)
    message = str(raised.value)
    assert "file 'plain/table.csv' is not available" in message
    assert declaration.url in message
    assert reason in message
    assert WAY_OUT in message
    assert "\n" not in message
    assert contents(cache.writable) == {}
    loopback.faults.clear()
    assert fetch_file(declaration, cache).read_bytes() == FILE_BODY


def test_failed_download_is_tried_once_more(
    declaration: FileDeclaration, cache: Cache, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, FILE_BODY])
    monkeypatch.setattr(loopback, "body", lambda path: next(answers))
    assert fetch_file(declaration, cache).read_bytes() == FILE_BODY
    assert loopback.requests == [f"GET {FILE_PATH}"] * 2


def test_missing_page_is_named(declaration: FileDeclaration, cache: Cache, loopback: Loopback) -> None:
    with pytest.raises(DataUnavailable, match="404 Client Error"):
        fetch_file(replace(declaration, url=loopback.url("/nowhere")), cache)


def test_dead_host_is_asked_once(
    declaration: FileDeclaration, cache: Cache, closed_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import requests

    asked = []
    get = requests.get

    def counting(url: str, **options: object) -> requests.Response:
        asked.append(options["timeout"])
        return get(url, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(requests, "get", counting)
    for number in range(3):
        dead = replace(declaration, path=f"{number}.csv", url=f"{closed_address}/{number}.csv")
        with pytest.raises(DataUnavailable, match="Connection refused"):
            fetch_file(dead, cache)
    assert asked == [20]
    assert contents(cache.writable) == {}
    assert fetch_file(declaration, cache).read_bytes() == FILE_BODY
    assert Cache((), cache.writable).hosts.reason_for(closed_address) is None, "memory belongs to one cache"


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/x", "nonsense"])
def test_unusable_address_is_a_download_problem(declaration: FileDeclaration, cache: Cache, url: str) -> None:
    with pytest.raises(DataUnavailable, match=r"Invalid URL|No connection adapters"):
        fetch_file(replace(declaration, url=url), cache)


def test_offline_never_downloads(declaration: FileDeclaration, cache: Cache, loopback: Loopback) -> None:
    with pytest.raises(DataUnavailable, match="downloads are switched off"):
        fetch_file(declaration, replace(cache, offline=True))
    assert loopback.requests == []


def test_wrong_copy_in_a_read_only_folder_is_skipped(
    declaration: FileDeclaration, cache: Cache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = tmp_path / "first"
    path = _put(first, b"something else")
    for folder in (path.parent, path.parent.parent, first):
        folder.chmod(0o555)
    before = listing(first)
    with caplog.at_level(logging.WARNING):
        fetched = fetch_file(declaration, replace(cache, folders=(first, cache.writable)))
    assert fetched == cache.writable / "files" / "plain" / "table.csv"
    assert f"skipping {path}: its SHA-256 is" in caplog.text
    assert SHA256 in caplog.text
    assert listing(first) == before


def test_good_copy_in_a_read_only_folder_is_used_in_place(
    declaration: FileDeclaration, cache: Cache, tmp_path: Path, loopback: Loopback
) -> None:
    first = tmp_path / "first"
    path = _put(first, FILE_BODY)
    first.chmod(0o555)
    before = listing(first)
    assert fetch_file(declaration, replace(cache, folders=(first,))) == path
    assert listing(first) == before
    assert loopback.requests == []


def test_wrong_copy_in_the_writable_folder_is_replaced(declaration: FileDeclaration, cache: Cache) -> None:
    path = _put(cache.writable, b"something else")
    assert fetch_file(declaration, cache) == path
    assert path.read_bytes() == FILE_BODY


def test_wrong_copy_stays_if_the_download_fails(declaration: FileDeclaration, cache: Cache, loopback: Loopback) -> None:
    _put(cache.writable, b"something else")
    loopback.faults[FILE_PATH] = "truncated"
    before = contents(cache.writable)
    with pytest.raises(DataUnavailable):
        fetch_file(declaration, cache)
    assert contents(cache.writable) == before


def test_cache_that_cannot_be_written_is_a_download_problem(
    declaration: FileDeclaration, cache: Cache, tmp_path: Path
) -> None:
    (tmp_path / "a-file").write_text("")
    with pytest.raises(DataUnavailable, match="Not a directory"):
        fetch_file(declaration, replace(cache, writable=tmp_path / "a-file" / "below"))
