"""The data set of the loopback server, and what every way of loading it must give."""

from pathlib import Path

import pandas as pd

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset, fingerprint
from trimbench.papers.data.declarations import declare_dataset

from .loopback import DATASET_ID

DESCRIPTION_PATH = f"/api/v1/xml/data/{DATASET_ID}"
FEATURES_PATH = f"/api/v1/xml/data/features/{DATASET_ID}"
FOLDER = f"openml/org/openml/www/datasets/{DATASET_ID}"
# The values that every way of loading must arrive at.
SHA256 = fingerprint(
    pd.DataFrame(
        {
            "size": [0.5, 1.5, None, -2.25],
            "colour": ["red", None, "blue", "green"],
            "flag": ["TRUE", "FALSE", "TRUE", "FALSE"],
        }
    ),
    pd.Series(["1", "2", "2", "1"], name="selector"),
)
SOURCE = {"kind": "openml", "id": DATASET_ID, "version": 3, "target": "selector"}
FACTS = {"rows": 4, "features": 3, "classes": {"1": 2, "2": 2}, "sha256": SHA256}
TOY = declare_dataset("toy", SOURCE | {"facts": FACTS})


def folder_of(cache: Cache) -> Path:
    return cache.writable / FOLDER


def assert_is_toy(dataset: Dataset) -> None:
    assert list(dataset.features.columns) == ["size", "colour", "flag"], "row is an identifier, note is ignored"
    assert dataset.features["size"].dtype == "float64"
    assert dataset.features["size"].isna().tolist() == [False, False, False, True]
    assert dataset.features["size"].dropna().tolist() == [-2.25, 0.5, 1.5]
    assert list(dataset.features["colour"].cat.categories) == ["red", "green", "blue"]
    assert dataset.features["colour"].isna().tolist() == [False, False, True, False]
    assert dataset.features["flag"].astype(object).tolist() == ["FALSE", "TRUE", "FALSE", "TRUE"]
    assert list(dataset.target.cat.categories) == ["2", "1"]
    assert dataset.target.astype(object).tolist() == ["1", "1", "2", "2"]
    assert dataset.sha256 == SHA256
