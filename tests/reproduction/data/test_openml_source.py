"""Data of OpenML: what is asked for, and which of its hosts."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import openml
import pytest

from trimbench.reproduction.data.cache import Cache, HostMemory
from trimbench.reproduction.data.declarations import declare_dataset, is_here, load_dataset
from trimbench.reproduction.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.reproduction.vocabulary.planning import held_against_servers

from .loopback import ARFF_PATH, DATASET_ID, PARQUET_PATH, Loopback
from .offers import DESCRIPTION_PATH, SHA256, SOURCE, TOY, assert_is_toy, contents, folder_of


@pytest.mark.parametrize("parquet", [True, False])
def test_parquet_and_arff_give_the_same_values(cache: Cache, loopback: Loopback, parquet: bool) -> None:
    loopback.parquet = parquet
    assert_is_toy(load_dataset(TOY, cache))
    assert (f"GET {PARQUET_PATH}" in loopback.requests) == parquet
    assert (f"GET {ARFF_PATH}" in loopback.requests) != parquet
    assert_is_toy(load_dataset(TOY, replace(cache, offline=True)))


@pytest.mark.parametrize("fault", ["500", "404", "truncated"])
def test_without_parquet_the_arff_is_used(cache: Cache, loopback: Loopback, fault: str) -> None:
    loopback.parquet = True
    loopback.faults[PARQUET_PATH] = fault
    assert_is_toy(load_dataset(TOY, cache))
    assert "dataset.arff" in {path.name for path in folder_of(cache).iterdir()}
    # The description still names a parquet file; it must not be asked for again.
    assert_is_toy(load_dataset(TOY, replace(cache, offline=True)))


def test_wrong_values_are_named_and_not_kept(cache: Cache, loopback: Loopback) -> None:
    loopback.checksum = False
    loopback.faults[ARFF_PATH] = "wrong"
    with pytest.raises(FactsMismatch, match=f"'toy' is not what was declared .sha256: declared {SHA256}, got "):
        load_dataset(TOY, cache)
    assert contents(cache.writable) == {}
    loopback.faults.clear()
    assert_is_toy(load_dataset(TOY, cache))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"version": 2}, FactsMismatch, "version: declared 2, got 3"),
        ({"target": "color"}, DeclarationError, r"did you mean 'colour'\?\); the columns are 'size', 'colour'"),
    ],
)
def test_what_is_not_as_declared_is_named_and_not_kept(
    cache: Cache, change: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_dataset(declare_dataset("toy", SOURCE | change), cache)
    assert contents(cache.writable) == {}


def test_incomplete_folder_counts_as_missing_and_is_replaced(cache: Cache) -> None:
    folder_of(cache).mkdir(parents=True)
    (folder_of(cache) / "description.xml").write_text("x")
    assert not is_here(TOY, cache)
    assert_is_toy(load_dataset(TOY, cache))
    assert {path.name for path in folder_of(cache).iterdir()} == {"description.xml", "features.xml", "dataset.arff"}


def test_cache_folder_may_be_relative(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    load_dataset(TOY, cache)
    monkeypatch.chdir(cache.writable.parent)
    relative = Path(cache.writable.name)
    assert_is_toy(load_dataset(TOY, Cache((relative,), relative, offline=True)))


def test_the_package_makes_no_request_and_keeps_the_settings_of_the_user(
    cache: Cache, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openml.config, "apikey", "secret")
    monkeypatch.setattr(openml.config, "server", "http://unused.invalid")
    before = (dict(openml.config.get_config_as_dict()), dict(os.environ), logging.getLogger("openml").level)
    load_dataset(TOY, cache)
    assert (dict(openml.config.get_config_as_dict()), dict(os.environ), logging.getLogger("openml").level) == before
    assert loopback.queries == [""] * 3, "the user's key is not sent"


def test_nothing_is_printed_and_nobody_is_warned(
    cache: Cache, loopback: Loopback, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    loopback.parquet = True
    loopback.faults[PARQUET_PATH] = "500"
    load_dataset(TOY, cache)
    assert capfd.readouterr() == ("", "")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_silent_server_costs_one_bounded_wait(
    cache: Cache, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimbench.reproduction.data.downloads._SILENT_SECONDS", 0.3)
    go_on = threading.Event()
    body: Callable[[str], bytes | None] = loopback.body

    def wait(path: str) -> bytes | None:
        go_on.wait(10)
        return body(path)

    monkeypatch.setattr(loopback, "body", wait)
    with pytest.raises(DataUnavailable, match="timed out"):
        load_dataset(TOY, cache)
    with pytest.raises(DataUnavailable, match="this host is not asked again"):
        load_dataset(TOY, cache)
    go_on.set()
    assert len(loopback.requests) == 1


def test_the_server_and_the_key_are_those_of_the_openml_package(
    cache: Cache, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = replace(cache, openml_server=None)
    monkeypatch.setattr(openml.config, "server", f"{loopback.api}/")
    monkeypatch.setattr(openml.config, "apikey", "0123abcd")
    loopback.faults[DESCRIPTION_PATH] = "404"
    with pytest.raises(DataUnavailable, match=r"\?\*\*\*") as caught:
        load_dataset(TOY, mirror)
    assert "0123abcd" not in str(caught.value)
    loopback.faults.clear()
    assert load_dataset(TOY, mirror).sha256 == SHA256
    # The interface gets the key, no storage server does.
    for request, query in zip(loopback.requests, loopback.queries, strict=True):
        assert query == ("api_key=0123abcd" if "/api/" in request else "")
    other = declare_dataset("other", {"kind": "openml", "id": 7, "version": 1, "target": "y"})
    with pytest.raises(DataUnavailable, match=r"https://www\.openml\.org/api/v1/xml/data/7"):
        load_dataset(other, replace(mirror, offline=True))


def test_what_servers_have_is_held_against_what_is_declared(cache: Cache, loopback: Loopback) -> None:
    keys = {"kind": "openml", "id": DATASET_ID, "version": 3, "target": "selector"}
    changed = declare_dataset("toy", keys | {"facts": {"rows": 5}})
    load_dataset(TOY, cache)
    n_asked = len(loopback.requests)
    expected = {"data": "toy", "from": "OpenML 40", "what it has": "as declared", "why": ""}
    assert held_against_servers(TOY, cache) == [expected]
    assert len(loopback.requests) > n_asked, "whatever the cache holds"
    for declaration, found in ((changed, "other rows"), (TOY, "not reached")):
        (line,) = held_against_servers(declaration, cache)
        assert line["what it has"] == found
        assert line["why"].startswith("data set 'toy' ")
        loopback.faults[DESCRIPTION_PATH] = "404"
    n_asked = len(loopback.requests)
    for off, found in (
        (replace(cache, roads=("file",)), "not asked (roads)"),
        (replace(cache, offline=True), "not asked (offline)"),
    ):
        assert [line["what it has"] for line in held_against_servers(TOY, off)] == [found]
    assert len(loopback.requests) == n_asked


def test_another_process_may_download_the_same_meanwhile(
    cache: Cache, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    body: Callable[[str], bytes | None] = loopback.body
    last: list[str] = []

    def meanwhile(path: str) -> bytes | None:
        if path == ARFF_PATH and not last:
            last.append(path)
            assert_is_toy(load_dataset(TOY, replace(cache, hosts=HostMemory())))
        return body(path)

    monkeypatch.setattr(loopback, "body", meanwhile)
    assert_is_toy(load_dataset(TOY, cache))
    assert loopback.requests.count(f"GET {DESCRIPTION_PATH}") == 2
    assert [path.name for path in cache.writable.iterdir()] == ["openml"]


# See openml/openml-python#1337 (none left), BEEmod/BEE2.4#511 (zeros) and t4d/StalkPhish#20 (a mark of the byte order).
DAMAGED = ["apikey", "[FAKE", "apikey = a\napikey = b", "retry_policy = never", "", "\0" * 99, "\ufeffapikey = a"]
READS_SETTINGS = f"""
import sys
from pathlib import Path
from trimbench.reproduction.data.downloads import openml_package
for text in {DAMAGED!r}:
    Path(sys.argv[1]).write_text(text, encoding="utf-8")
    for name in [name for name in sys.modules if name.split(".")[0] == "openml"]:
        del sys.modules[name]
    print(openml_package().__name__, [text])
"""


def test_damaged_settings_of_the_client_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "openml").mkdir()
    settings = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", READS_SETTINGS, str(tmp_path / "openml/config")]
    found = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert found.stdout.splitlines() == [f"openml {[text]}" for text in DAMAGED], found.stderr
