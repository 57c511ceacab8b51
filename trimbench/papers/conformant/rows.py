"""The encoded rows of a task, made once and remembered."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.conformant.protocol import Protocol
from trimbench.papers.data.binary import encode_binary
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.data.splits import split_rows
from trimbench.papers.execution.canonical import canonical_json
from trimbench.papers.execution.remembered_arrays import Arrays, remember
from trimbench.papers.execution.functions import code_version, job_function
from trimbench.papers.validation import validated

if TYPE_CHECKING:
    from trimbench.papers.data.dataset import Dataset

CODE = (
    "trimbench.papers.data",
    "trimbench.papers.conformant.protocol",
    "trimbench.papers.conformant.rows",
)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Encoded rows.

    Attributes
    ----------
    train, test : ndarray of uint8, shape (n_rows, n_columns)
    train_labels, test_labels : ndarray of int
        Positions in `classes`.
    classes : tuple of str
    features : tuple of str
    columns : tuple of tuple of int
        Columns of each feature.
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

    def hide(self, rows: NDArray[np.uint8], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return rows as numbers with NaN where a feature is missing."""
        values = rows.astype(np.float64)
        values[self.spread(missing)] = np.nan
        return values

    def spread(self, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask over features as a mask over columns."""
        owner = np.empty(self.train.shape[1], dtype=np.intp)
        for place, columns in enumerate(self.columns):
            owner[list(columns)] = place
        return missing[:, owner]


def prepare(task: Mapping[str, Any]) -> Prepared:
    """Return the encoded rows of a task: from memory, from the user's cache folder, or from the data.

    Parameters
    ----------
    task : mapping
        `Task.parameters`.
    """
    return _prepared(canonical_json(dict(task), "task"))


@lru_cache(maxsize=3)
def _prepared(task_json: str) -> Prepared:
    task = json.loads(task_json)
    version = code_version(f"{__name__}:encode_task")
    arrays = remember("rows", {"task": task, "code": version}, lambda: _pack(_compute(task)))
    width = int(arrays["width"])
    train, test = (np.unpackbits(arrays[part], axis=1, count=width) for part in ("train", "test"))
    edges = arrays["edges"].tolist()
    return Prepared(
        train,
        test,
        arrays["train_labels"],
        arrays["test_labels"],
        tuple(arrays["classes"].tolist()),
        tuple(arrays["features"].tolist()),
        tuple(tuple(range(a, b)) for a, b in itertools.pairwise(edges)),
        {name: int(value) for name, value in zip(_SIZES, arrays["sizes"], strict=True)},
    )


_SIZES = ("rows", "features", "dropped")


@job_function(code=CODE)
def encode_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Encode the rows of a task and tell what became of them.

    Parameters
    ----------
    task : mapping
        `Task.parameters`.
    """
    prepared = prepare(task)
    counts = np.bincount(np.concatenate([prepared.train_labels, prepared.test_labels]), minlength=len(prepared.classes))
    return {
        **prepared.sizes,
        "n_train": len(prepared.train),
        "n_test": len(prepared.test),
        "n_columns": prepared.train.shape[1],
        "n_features": len(prepared.features),
        "n_classes": len(prepared.classes),
        "class_counts": counts.tolist(),
    }


def _compute(task: Mapping[str, Any]) -> Prepared:
    protocol = validated(Protocol, task["protocol"], f"protocol {task['name']}")
    # What a job reads was fetched before it started: a worker never downloads.
    cache = Cache.from_environment(offline=True)
    loaded = load_dataset(declare_dataset(protocol.dataset, task["dataset"]), cache)
    keep = _kept(loaded, protocol)
    train, test = _split(len(loaded.features), keep, protocol, task["split_seed"])
    frame = loaded.features.drop(columns=protocol.drop)
    table = encode_binary(frame.iloc[train], frame.iloc[test], protocol.encoding(task["encoding"]))
    classes = tuple(protocol.classes or [str(label) for label in loaded.target.cat.categories])
    position = {label: place for place, label in enumerate(classes)}
    labels = np.array([position.get(str(label), -1) for label in loaded.target.cat.categories])
    codes = labels[loaded.target.cat.codes.to_numpy()].astype(np.int64)
    sizes = {"rows": len(loaded.features), "features": loaded.features.shape[1], "dropped": int((~keep).sum())}
    return Prepared(table.train, table.test, codes[train], codes[test], classes, table.features, table.columns, sizes)


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
    if protocol.test_rows or protocol.last:
        is_test = np.zeros(n_rows, dtype=bool)
        is_test[protocol.test_rows if protocol.test_rows else slice(n_rows - protocol.last, None)] = True
        return np.flatnonzero(keep & ~is_test), np.flatnonzero(keep & is_test)
    rows = np.flatnonzero(keep)
    train, test = split_rows(len(rows), protocol.test_fraction, seed)
    return rows[train], rows[test]


def _pack(prepared: Prepared) -> Arrays:
    return {
        "train": np.packbits(prepared.train, axis=1),
        "test": np.packbits(prepared.test, axis=1),
        "width": np.array(prepared.train.shape[1]),
        "train_labels": prepared.train_labels,
        "test_labels": prepared.test_labels,
        "classes": np.array(prepared.classes),
        "features": np.array(prepared.features),
        "edges": np.concatenate([[0], np.cumsum([len(columns) for columns in prepared.columns])]),
        "sizes": np.array([prepared.sizes[name] for name in _SIZES]),
    }
