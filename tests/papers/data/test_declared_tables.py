"""Declarations of text tables that say how the table is read."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset
from trimbench.papers.data.declarations import declare_dataset, load_dataset
from trimbench.papers.data.table_files import MISSING_VALUES
from trimbench.papers.validation import ConfigurationError, DeclarationError

TABLE = "id:born:dose:ward:smoker:class\n1:2.1.1970:1,5:3:Yes:ä\n2:4.1.1970:<5:4:no:b\n3:unknown:-9:3:yes:b\n"


def load(cache: Cache, folder: Path, **keys: Any) -> Dataset:
    (folder / "t.csv").write_bytes(TABLE.encode("cp1252"))
    mapping = {"kind": "csv", "path": str(folder / "t.csv"), "target": "class", "separator": ":", "encoding": "cp1252"}
    return load_dataset(declare_dataset("mine", mapping | keys), cache)


def test_a_declaration_says_how_columns_are_read(
    cache: Cache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    types = {"born": "date", "dose": "number", "ward": "category", "smoker": "boolean"}
    with caplog.at_level(logging.WARNING):
        dataset = load(cache, tmp_path, types=types, id="id", decimal=",", missing_values=["unknown", "-9"])
    assert list(dataset.features) == ["born", "dose", "ward", "smoker"]
    np.testing.assert_array_equal(dataset.features["born"], [1, 3, np.nan])
    np.testing.assert_array_equal(dataset.features["dose"], [1.5, np.nan, np.nan])
    assert dataset.features["ward"].tolist() == ["3", "4", "3"]
    assert dataset.features["smoker"].tolist() == ["Yes", "no", "Yes"]
    assert dataset.target.tolist() == ["ä", "b", "b"]
    told = [record.getMessage() for record in caplog.records]
    assert "data set 'mine': column 'dose': 1 row has no number and counts as missing: '<5' in row 2" in told


def test_columns_without_a_type_are_read_as_in_a_study(cache: Cache, tmp_path: Path) -> None:
    dataset = load(cache, tmp_path, drop=["id", "born"])
    np.testing.assert_array_equal(dataset.features["dose"], [-9.0, 1.5, np.nan])
    assert dataset.features["ward"].tolist() == [3.0, 3.0, 4.0]
    assert list(load(cache, tmp_path, features=["ward", "dose"]).features) == ["dose", "ward"]
    assert load(cache, tmp_path, features=["ward"], missing_values=["3"]).features["ward"].isna().sum() == 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"drop": ["dosis"]}, "data set 'mine': drop must be a column of the data, got 'dosis' .did you mean 'dose'"),
        ({"types": {"ward": "date"}}, "data set 'mine': types.ward is date, but no value of the column is one"),
        (
            {"types": {"ward": "text"}},
            "data set 'mine': types.ward must be one of boolean, category, date, number, got",
        ),
        ({"separator": "::"}, "data set 'mine': separator must be a single character"),
        ({"encoding": "utf-8"}, "it is not in utf-8"),
        ({"drop": ["class"]}, "target and drop must name different columns, got 'class' in both"),
        ({"positive": "b"}, "data set 'mine': a key must be one of .*missing_values"),
    ],
)
def test_mistakes_are_explained(cache: Cache, tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises((DeclarationError, ConfigurationError), match=message):
        load(cache, tmp_path, **keys)


def test_missing_values_are_those_of_pandas_of_databases_and_of_spreadsheets() -> None:
    from pandas._libs.parsers import STR_NA_VALUES  # type: ignore[import-not-found]

    others = set(MISSING_VALUES) - STR_NA_VALUES - {"?", "NaT", "\\N", "(null)", "[NULL]", "<null>"}
    others -= {"0000-00-00", "0000-00-00 00:00:00"}
    assert set(MISSING_VALUES) >= STR_NA_VALUES
    assert {"#NV", "#DIV/0!"} < others
    assert all(mark.startswith("#") for mark in others)
