"""Data that the loopback server offers in each way of fetching, and what a cache, or any folder, then holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rdata

from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.dataset import Dataset, fingerprint
from trimbench.reproduction.data.declarations import DatasetDeclaration, declare_dataset

from .loopback import ARFF_PATH, DATASET_ID, FILE_BODY, FILE_PATH, PARQUET_PATH, Loopback

R_PATH = "/plain/tissues.rda"
X = np.array([[0.1, -2.0], [1 / 3, 4e-17], [5.5, 6.0]])
Y = np.array([0, 1, 1])
TISSUES_SHA256 = fingerprint(pd.DataFrame(X, columns=["gene1", "gene2"]), pd.Series(["0", "1", "1"], name="class"))
TABLE_SHA256 = fingerprint(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), pd.Series(["yes", "no"], name="label"))
# Where the cache keeps them: by the hash of the file, or of its values where that of the file is not known.
KEPT = {
    "file": f"files/sha256/{hashlib.sha256(FILE_BODY).hexdigest()}/t.csv",
    "r": f"files/sha256/{TISSUES_SHA256}/tissues.rda",
}

# The data set of OpenML.
DESCRIPTION_PATH = f"/api/v1/xml/data/{DATASET_ID}"
FEATURES_PATH = f"/api/v1/xml/data/features/{DATASET_ID}"
FOLDER = f"openml/org/openml/www/datasets/{DATASET_ID}"
# The values that every way of loading must arrive at.
SHA256 = fingerprint(
    pd.DataFrame(
        {
            "size": [0.5, 1.5, None, -2.25],  # row is an identifier, note is ignored
            "colour": ["red", None, "blue", "green"],
            "flag": ["TRUE", "FALSE", "TRUE", "FALSE"],
        }
    ),
    pd.Series(["1", "2", "2", "1"], name="selector"),
)
SOURCE = {"kind": "openml", "id": DATASET_ID, "version": 3, "target": "selector"}
FACTS = {"rows": 4, "features": 3, "classes": {"1": 2, "2": 2}, "sha256": SHA256}
TOY = declare_dataset("toy", SOURCE | {"facts": FACTS})


@dataclass(frozen=True)
class Offer:
    """A data set, what messages call it, and the path on the server of each file that the cache gets."""

    declaration: DatasetDeclaration
    title: str
    files: dict[str, str]


def offered(kind: str, loopback: Loopback, folder: Path) -> Offer:
    """Make the server offer a data set as a plain "file", as "openml" (ARFF), as "parquet" or as a file of "r"."""
    if kind == "file":
        file = {"path": "plain/t.csv", "url": loopback.url(FILE_PATH), "sha256": hashlib.sha256(FILE_BODY).hexdigest()}
        mapping = {"kind": "csv", "file": file, "target": "label", "facts": {"sha256": TABLE_SHA256}}
        return Offer(declare_dataset("table", mapping), "file 'plain/t.csv'", {KEPT["file"]: FILE_PATH})
    if kind == "r":
        loopback.files[R_PATH] = r_file(folder, {"tissues": {"X": X, "y": Y}})
        return Offer(tissues(loopback), "data set 'tissues'", {KEPT["r"]: R_PATH})
    loopback.parquet = kind == "parquet"
    files = {
        f"{FOLDER}/description.xml": DESCRIPTION_PATH,
        f"{FOLDER}/features.xml": FEATURES_PATH,
        **(
            {f"{FOLDER}/dataset_{DATASET_ID}.pq": PARQUET_PATH}
            if loopback.parquet
            else {f"{FOLDER}/dataset.arff": ARFF_PATH}
        ),
    }
    return Offer(TOY, f"data set 'toy' (OpenML {DATASET_ID})", files)


def r_file(folder: Path, objects: dict[str, Any], **options: Any) -> bytes:
    """Return objects as R stores them."""
    rdata.write_rda(folder / "written.rda", objects, **options)
    return (folder / "written.rda").read_bytes()


def tissues(loopback: Loopback, **more: Any) -> DatasetDeclaration:
    """Declare the data set of the R file on the server."""
    mapping = {
        "kind": "r",
        "target": "class",
        "prefix": "gene",
        "labels": "y",
        "file": {"path": "t/tissues.rda", "url": loopback.url(R_PATH)},
        "facts": {"rows": 3, "features": 2, "classes": {"0": 1, "1": 2}, "sha256": TISSUES_SHA256},
    }
    return declare_dataset("tissues", mapping | more)


def listing(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Map every path to its mode, time of change and bytes."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        found[str(path.relative_to(folder))] = (
            status.st_mode,
            status.st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Map every path to its bytes; folders count, times do not."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def folder_of(cache: Cache) -> Path:
    return cache.writable / FOLDER


def assert_is_toy(dataset: Dataset) -> None:
    """Check the names, kinds and values, which the hash holds, and the order of the labels, which it does not."""
    assert dataset.sha256 == SHA256
    assert list(dataset.features["colour"].cat.categories) == ["red", "green", "blue"]
    assert list(dataset.target.cat.categories) == ["2", "1"]
