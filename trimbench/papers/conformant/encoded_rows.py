"""The rows of a task as zeros and ones, encoded once and remembered."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.configuration import configuration_folder
from trimbench.papers.conformant.protocol import Protocol, Task
from trimbench.papers.data.availability import is_here
from trimbench.papers.data.binary import encode_binary
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.splits import split_rows
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import code_version, job_function
from trimbench.papers.execution.remembered_arrays import Arrays, remember
from trimbench.papers.study.inputs import dataset_of
from trimbench.papers.validation import ConfigurationError

if TYPE_CHECKING:
    from trimbench.papers.data.dataset import Dataset

CODE = (
    "trimbench.papers.data",
    "trimbench.papers.study.inputs",
    "trimbench.papers.conformant.protocol",
    "trimbench.papers.conformant.encoded_rows",
)
_SIZES = ("rows", "features", "dropped")


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Training and test rows as zeros and ones.

    Attributes
    ----------
    train, test : ndarray of uint8, shape (n_rows, n_columns)
    train_labels, test_labels : ndarray of int
        Positions in `classes`.
    classes : tuple of str
    features : tuple of str
    columns : tuple of tuple of int
        Columns of each feature, one feature after the other.
    sizes : dict of str to int
        Rows and features of the data as it was loaded, and rows that were dropped.
    """

    train: NDArray[np.uint8]
    test: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    features: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    sizes: dict[str, int]

    @property
    def owners(self) -> NDArray[np.intp]:
        """The feature of each column."""
        return np.repeat(np.arange(len(self.columns)), [len(columns) for columns in self.columns])

    @property
    def by_column(self) -> EncodedRows:
        """The same rows, with every column as a feature of its own."""
        n_columns = self.train.shape[1]
        names = tuple(str(column) for column in range(n_columns))
        return dataclasses.replace(self, features=names, columns=tuple((column,) for column in range(n_columns)))

    def hide(self, rows: NDArray[np.uint8], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return rows as numbers, with NaN in the columns of missing features."""
        values = rows.astype(np.float64)
        values[missing[:, self.owners]] = np.nan
        return values


def feature_codes(rows: NDArray[Any], columns: Sequence[Sequence[int]]) -> NDArray[np.intp]:
    """Return rows of zeros and ones as one number for each feature: the place of its first 1, from 1; 0 without any."""
    found = np.empty((len(rows), len(columns)), dtype=np.intp)
    for place, own in enumerate(columns):
        part = rows[:, list(own)]
        found[:, place] = np.where(part.any(axis=1), part.argmax(axis=1) + 1, 0)
    return found


@lru_cache(maxsize=3)
def encoded_rows(task: Task) -> EncodedRows:
    """Return the rows of a task: from memory, from the user's cache folder, or from the data."""
    key: dict[str, Json] = {"task": dataclasses.asdict(task), "code": code_version(f"{__name__}:count_rows")}
    arrays = remember("rows", key, lambda: _pack(_encode(task)))
    width = int(arrays["width"])
    train, test = (np.unpackbits(arrays[part], axis=1, count=width) for part in ("train", "test"))
    return EncodedRows(
        train,
        test,
        arrays["train_labels"],
        arrays["test_labels"],
        tuple(arrays["classes"].tolist()),
        tuple(arrays["features"].tolist()),
        tuple(tuple(range(a, b)) for a, b in itertools.pairwise(arrays["edges"].tolist())),
        {name: int(value) for name, value in zip(_SIZES, arrays["sizes"], strict=True)},
    )


def rows_at_hand(task: Task) -> EncodedRows | None:
    """Return the rows of a task if its data is on this machine, for checks before any job runs."""
    here = is_here(task.data.declaration, Cache.from_environment(offline=True))
    return encoded_rows(task) if here else None


@job_function(code=CODE)
def count_rows(task: Mapping[str, Json]) -> dict[str, Json]:
    """Encode the rows of a task and count rows, columns, features and classes."""
    rows = encoded_rows(Task.of(task))
    counts = np.bincount(np.concatenate([rows.train_labels, rows.test_labels]), minlength=len(rows.classes))
    return {
        **rows.sizes,
        "n_train": len(rows.train),
        "n_test": len(rows.test),
        "n_columns": rows.train.shape[1],
        "n_features": len(rows.features),
        "n_classes": len(rows.classes),
        "class_counts": counts.tolist(),
    }


def _encode(task: Task) -> EncodedRows:
    protocol = task.protocol
    loaded = dataset_of(dataclasses.asdict(task.data))
    keep = _kept(loaded, protocol)
    train, test = _split(len(loaded.features), keep, protocol, task.split_seed)
    frame = loaded.features.drop(columns=protocol.drop)
    table = encode_binary(frame.iloc[train], frame.iloc[test], protocol.encoding(task.encoding))
    classes = tuple(protocol.classes or [str(label) for label in loaded.target.cat.categories])
    position = {label: place for place, label in enumerate(classes)}
    labels = np.array([position.get(str(label), -1) for label in loaded.target.cat.categories])
    codes = labels[loaded.target.cat.codes.to_numpy()].astype(np.int64)
    sizes = {"rows": len(loaded.features), "features": loaded.features.shape[1], "dropped": int((~keep).sum())}
    return EncodedRows(
        table.train, table.test, codes[train], codes[test], classes, table.features, table.columns, sizes
    )


def _kept(loaded: Dataset, protocol: Protocol) -> NDArray[np.bool_]:
    keep = np.ones(len(loaded.features), dtype=bool)
    if protocol.labels:
        keep &= loaded.features.isin(protocol.labels).all(axis=1).to_numpy()
    if protocol.classes:
        missing = sorted(set(protocol.classes) - set(map(str, loaded.target.cat.categories)))
        if missing:
            raise ValueError(f"classes must be labels of {protocol.dataset}, got {missing}")
        keep &= loaded.target.isin(protocol.classes).to_numpy()
    return keep


def _split(
    n_rows: int, keep: NDArray[np.bool_], protocol: Protocol, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    fixed = _listed_rows(protocol) if protocol.test_rows_file else protocol.test_rows
    if fixed or protocol.last:
        is_test = np.zeros(n_rows, dtype=bool)
        is_test[fixed if fixed else slice(n_rows - protocol.last, None)] = True
        return np.flatnonzero(keep & ~is_test), np.flatnonzero(keep & is_test)
    rows = np.flatnonzero(keep)
    train, test = split_rows(len(rows), protocol.test_fraction, seed)
    return rows[train], rows[test]


def _listed_rows(protocol: Protocol) -> list[int]:
    """Return the test rows of the protocol's file, which must be the declared one: jobs depend on what it says."""
    content = (configuration_folder() / "protocol" / protocol.test_rows_file).read_bytes()
    got = hashlib.sha256(content).hexdigest()
    if got != protocol.test_rows_sha256:
        raise ConfigurationError(
            f"test_rows_sha256 must be that of {protocol.test_rows_file} ({got}), got {protocol.test_rows_sha256!r}"
        )
    return [int(line) for line in content.decode().split()[1:]]


def _pack(rows: EncodedRows) -> Arrays:
    return {
        "train": np.packbits(rows.train, axis=1),
        "test": np.packbits(rows.test, axis=1),
        "width": np.array(rows.train.shape[1]),
        "train_labels": rows.train_labels,
        "test_labels": rows.test_labels,
        "classes": np.array(rows.classes),
        "features": np.array(rows.features),
        "edges": np.concatenate([[0], np.cumsum([len(columns) for columns in rows.columns])]),
        "sizes": np.array([rows.sizes[name] for name in _SIZES]),
    }
