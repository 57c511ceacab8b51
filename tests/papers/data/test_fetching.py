"""What holds for every source that downloads: it stores good copies only, and downloads only what is missing."""

import hashlib
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import requests

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Facts, fingerprint
from trimbench.papers.data.declarations import is_here, load_dataset
from trimbench.papers.data.downloads import FileDeclaration, fetch_file
from trimbench.papers.validation import DataUnavailable

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


def close(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


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


@every_kind
def test_read_only_folder_is_used_and_not_touched(
    offer: Offer, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(offer, cache)
    close(cache.writable)
    before = listing(cache.writable)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(cache.writable))
    load(offer, Cache.from_environment(offline=True))
    assert listing(cache.writable) == before
    assert not (tmp_path / "xdg" / "trimbench").exists()


@every_copy
def test_wrong_copy_in_a_read_only_folder_is_skipped(
    offer: Offer, cache: Cache, tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, reason: str
) -> None:
    load(offer, cache)
    (cache.writable / file).write_text("neither a table nor XML")
    close(cache.writable)
    before = listing(cache.writable)
    with caplog.at_level(logging.WARNING):
        load(offer, replace(cache, folders=(cache.writable,), writable=tmp_path / "other"))
    assert re.search(f"skipping {cache.writable}{reason}", caplog.text)
    assert listing(cache.writable) == before
    assert {name for name, body in contents(tmp_path / "other").items() if body} == set(offer.files)


@every_copy
def test_wrong_copy_in_the_writable_folder_is_replaced_by_a_good_download(
    offer: Offer,
    cache: Cache,
    loopback: Loopback,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    reason: str,
) -> None:
    load(offer, cache)
    (cache.writable / file).write_text("neither a table nor XML")
    before = contents(cache.writable)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        # The package for OpenML would ask the public server for what it cannot read.
        asked: list[object] = []
        patch.setattr(requests.Session, "request", lambda *arguments, **_: asked.append(arguments))
        with pytest.raises(DataUnavailable, match="switched off"):
            load(offer, replace(cache, offline=True))
    assert asked == []
    assert re.search(f"skipping {cache.writable}{reason}", caplog.text)
    loopback.faults = dict.fromkeys(offer.files.values(), "truncated")
    with pytest.raises(DataUnavailable, match="IncompleteRead"):
        load(offer, cache)
    assert contents(cache.writable) == before
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


def a_file(loopback: Loopback, **more: str) -> FileDeclaration:
    return FileDeclaration(**{"path": "t.csv", "url": loopback.url(FILE_PATH), "sha256": "0" * 64} | more)


def test_failed_download_is_tried_once_more(
    cache: Cache, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, loopback.body(FILE_PATH)])
    monkeypatch.setattr(loopback, "body", lambda path: next(answers))
    load(offered("file", loopback, tmp_path), cache)
    assert loopback.requests == [f"GET {FILE_PATH}"] * 2


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/x", "nonsense"])
def test_unusable_address_is_a_download_problem(cache: Cache, loopback: Loopback, url: str) -> None:
    with pytest.raises(DataUnavailable, match=r"Invalid URL|No connection adapters"):
        fetch_file(a_file(loopback, url=url), cache)


def test_cache_that_cannot_be_written_is_a_download_problem(cache: Cache, loopback: Loopback, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    with pytest.raises(DataUnavailable, match="Not a directory"):
        fetch_file(a_file(loopback), replace(cache, writable=tmp_path / "a-file" / "below"))
