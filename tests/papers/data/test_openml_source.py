from dataclasses import replace
from pathlib import Path

import pytest

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import declare_dataset, is_here, load_dataset
from trimbench.papers.validation import DeclarationError, FactsMismatch

from .listing import contents
from .loopback import ARFF_PATH, PARQUET_PATH, Loopback
from .toy import SHA256, SOURCE, TOY, assert_is_toy, folder_of


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
