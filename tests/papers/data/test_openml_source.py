import logging
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import DatasetDeclaration, declare_dataset
from trimbench.papers.data.errors import WAY_OUT, DataUnavailable, DeclarationError, FactsMismatch
from trimbench.papers.data.sources import load_dataset

from .listing import contents, listing
from .loopback import ARFF_PATH, DATASET_ID, PARQUET_PATH, Loopback
from .toy import DESCRIPTION_PATH, FEATURES_PATH, FOLDER, SHA256, SOURCE, TOY, assert_is_toy, folder_of


def test_arff_is_downloaded_stored_without_pickles_and_read_again(cache: Cache, loopback: Loopback) -> None:
    assert not is_here(TOY, cache)
    assert_is_toy(load_dataset(TOY, cache))
    assert {path.name for path in folder_of(cache).iterdir()} == {"description.xml", "features.xml", "dataset.arff"}
    assert is_here(TOY, cache)
    loopback.requests.clear()
    before = listing(cache.writable)
    assert_is_toy(load_dataset(TOY, replace(cache, offline=True)))
    assert listing(cache.writable) == before
    assert loopback.requests == []


def test_parquet_gives_the_same_values(cache: Cache, loopback: Loopback) -> None:
    loopback.parquet = True
    assert_is_toy(load_dataset(TOY, cache))
    assert f"dataset_{DATASET_ID}.pq" in {path.name for path in folder_of(cache).iterdir()}
    assert f"GET {PARQUET_PATH}" in loopback.requests
    assert f"GET {ARFF_PATH}" not in loopback.requests
    assert_is_toy(load_dataset(TOY, replace(cache, offline=True)))


@pytest.mark.parametrize("fault", ["500", "404", "truncated"])
def test_without_parquet_the_arff_is_used(cache: Cache, loopback: Loopback, fault: str) -> None:
    loopback.parquet = True
    loopback.faults[PARQUET_PATH] = fault
    assert_is_toy(load_dataset(TOY, cache))
    assert "dataset.arff" in {path.name for path in folder_of(cache).iterdir()}
    # The description still names a parquet file; it must not be asked for again.
    assert_is_toy(load_dataset(TOY, replace(cache, offline=True)))


FAULTS = [
    (DESCRIPTION_PATH, "500", "500"),
    (DESCRIPTION_PATH, "truncated", "IncompleteRead"),
    (FEATURES_PATH, "500", "500"),
    (FEATURES_PATH, "truncated", "IncompleteRead"),
    (ARFF_PATH, "500", "500"),
    (ARFF_PATH, "truncated", "IncompleteRead"),
    (ARFF_PATH, "wrong", "has MD5"),
]


@pytest.mark.parametrize(("path", "fault", "reason"), FAULTS)
def test_failed_download_leaves_nothing_and_a_good_one_follows(
    cache: Cache, loopback: Loopback, path: str, fault: str, reason: str
) -> None:
    loopback.faults[path] = fault
    with pytest.raises(DataUnavailable) as raised:
        load_dataset(TOY, cache)
    message = str(raised.value)
    assert f"data set 'toy' (OpenML {DATASET_ID}) is not available" in message
    assert f"{loopback.api}/data/{DATASET_ID}" in message
    assert reason in message
    assert WAY_OUT in message
    assert "\n" not in message
    assert contents(cache.writable) == {}
    loopback.faults.clear()
    assert_is_toy(load_dataset(TOY, cache))


def test_broken_parquet_leaves_nothing_and_a_good_one_follows(cache: Cache, loopback: Loopback) -> None:
    loopback.parquet = True
    loopback.faults[PARQUET_PATH] = "wrong"
    with pytest.raises(DataUnavailable, match="arquet"):
        load_dataset(TOY, cache)
    assert contents(cache.writable) == {}
    loopback.faults.clear()
    assert_is_toy(load_dataset(TOY, cache))


def test_wrong_values_are_named_and_not_kept(cache: Cache, loopback: Loopback) -> None:
    loopback.checksum = False
    loopback.faults[ARFF_PATH] = "wrong"
    with pytest.raises(FactsMismatch, match=f"'toy' is not what was declared .sha256: declared {SHA256}, got "):
        load_dataset(TOY, cache)
    assert contents(cache.writable) == {}
    loopback.faults.clear()
    assert_is_toy(load_dataset(TOY, cache))


def test_other_version_is_named_and_not_kept(cache: Cache) -> None:
    with pytest.raises(FactsMismatch, match=r"version: declared 2, got 3"):
        load_dataset(declare_dataset("toy", SOURCE | {"version": 2}), cache)
    assert contents(cache.writable) == {}


def test_unknown_target_lists_the_columns_and_keeps_nothing(cache: Cache) -> None:
    with pytest.raises(DeclarationError, match=r"did you mean 'colour'\?\); the columns are 'size', 'colour'"):
        load_dataset(declare_dataset("toy", SOURCE | {"target": "color"}), cache)
    assert contents(cache.writable) == {}


def test_identifier_is_never_a_feature(cache: Cache) -> None:
    dataset = load_dataset(declare_dataset("toy", SOURCE | {"target": "flag"}), cache)
    assert list(dataset.features.columns) == ["size", "colour"]


def test_offline_never_downloads(cache: Cache, loopback: Loopback) -> None:
    with pytest.raises(DataUnavailable, match="downloads are switched off"):
        load_dataset(TOY, replace(cache, offline=True))
    assert loopback.requests == []


@pytest.mark.parametrize("parquet", [False, True])
def test_read_only_folder_is_used_and_not_touched(
    cache: Cache, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: bool
) -> None:
    loopback.parquet = parquet
    load_dataset(TOY, cache)
    for path in (cache.writable, *cache.writable.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = listing(cache.writable)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(cache.writable))
    assert_is_toy(load_dataset(TOY, Cache.from_environment(offline=True)))
    assert listing(cache.writable) == before
    assert not (tmp_path / "xdg" / "trimbench").exists()


@pytest.mark.parametrize("broken", ["dataset.arff", "description.xml", "features.xml"])
def test_unreadable_copy_is_skipped_and_replaced_in_the_writable_folder(
    cache: Cache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    import requests

    load_dataset(TOY, cache)
    path = folder_of(cache) / broken
    path.write_text("neither ARFF nor XML")
    before = contents(cache.writable)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        # The package would ask the public server for what it cannot read.
        asked: list[object] = []
        patch.setattr(requests.Session, "request", lambda *arguments, **_: asked.append(arguments))
        with pytest.raises(DataUnavailable, match="switched off"):
            load_dataset(TOY, replace(cache, offline=True))
    assert asked == []
    assert f"skipping {folder_of(cache)}, which cannot be read" in caplog.text
    assert contents(cache.writable) == before
    assert_is_toy(load_dataset(TOY, cache))
    assert_is_toy(load_dataset(TOY, replace(cache, offline=True)))


def test_unreadable_copy_in_a_read_only_folder_stays(cache: Cache, tmp_path: Path) -> None:
    load_dataset(TOY, cache)
    (folder_of(cache) / "description.xml").write_text("no XML")
    before = listing(cache.writable)
    other = replace(cache, folders=(cache.writable,), writable=tmp_path / "other")
    assert_is_toy(load_dataset(TOY, other))
    assert listing(cache.writable) == before
    assert (tmp_path / "other" / FOLDER / "dataset.arff").is_file()


def test_incomplete_folder_counts_as_missing_and_is_replaced(cache: Cache) -> None:
    folder_of(cache).mkdir(parents=True)
    (folder_of(cache) / "description.xml").write_text("x")
    assert not is_here(TOY, cache)
    assert_is_toy(load_dataset(TOY, cache))
    assert {path.name for path in folder_of(cache).iterdir()} == {"description.xml", "features.xml", "dataset.arff"}


def test_wrong_facts_of_a_cached_copy_are_named(cache: Cache) -> None:
    load_dataset(TOY, cache)
    wrong = replace(TOY.facts, rows=5, features=2, classes={"1": 4}, sha256="1" * 64)
    with pytest.raises(FactsMismatch) as raised:
        load_dataset(DatasetDeclaration("toy", replace(TOY.source, facts=wrong)), cache)
    message = str(raised.value)
    assert "rows: declared 5, got 4" in message
    assert "features: declared 2, got 3" in message
    assert "classes: declared {'1': 4}, got {'1': 2, '2': 2}" in message
    assert f"sha256: declared {'1' * 64}, got {SHA256}" in message


def test_features_and_target_share_a_plain_index(cache: Cache) -> None:
    dataset = load_dataset(TOY, cache)
    assert dataset.features.index.equals(pd.RangeIndex(4))
    assert dataset.target.index.equals(pd.RangeIndex(4))


def test_cache_folder_may_be_relative(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    load_dataset(TOY, cache)
    monkeypatch.chdir(cache.writable.parent)
    relative = Path(cache.writable.name)
    assert_is_toy(load_dataset(TOY, Cache((relative,), relative, offline=True)))
