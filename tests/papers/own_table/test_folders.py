"""Folders of Parquet files: their rows, a sample of them, and folders whose files differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trimbench.papers.own_table import folders
from trimbench.reproduction.data.errors import DeclarationError


def write(folder: Path, *frames: pd.DataFrame) -> Path:
    folder.mkdir()
    for place, frame in enumerate(frames):
        frame.to_parquet(folder / f"{place}.parquet")
    return folder


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame({"age": np.arange(300), "ill": np.arange(300) % 2})


def test_a_small_folder_is_read_whole(tmp_path: Path, table: pd.DataFrame) -> None:
    found, notes = folders.sampled(write(tmp_path / "all", table[:100], table[100:]), lambda _: None)
    pd.testing.assert_frame_equal(found.to_pandas(), table)
    assert notes == []


def test_a_large_one_is_sampled_and_says_so(
    tmp_path: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "SAMPLED_ROWS", 120)
    found, notes = folders.sampled(write(tmp_path / "all", table[:100], table[100:]), lambda _: None)
    ages = found["age"].to_pylist()
    assert len(set(ages)) == 120
    assert ages == sorted(ages)
    assert notes == ["120 rows were drawn at random from 300 in 2 files"]


def test_files_of_other_columns_are_refused(tmp_path: Path, table: pd.DataFrame) -> None:
    folder = write(tmp_path / "all", table[:100], table[100:].rename(columns={"age": "years"}))
    with pytest.raises(
        DeclarationError, match=r"of the same columns; 1\.parquet differs from 0\.parquet in age, years"
    ):
        folders.sampled(folder, lambda _: None)
