"""How a data set is split, encoded and classified in the NaCL experiments."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.configuration import Catalogue, ConfigurationError, build_settings
from trimbench.data.binary import BinaryEncoding, encode_binary
from trimbench.data.cache import Cache
from trimbench.data.declaration import DatasetDeclaration, declare_dataset
from trimbench.data.sources import load_dataset
from trimbench.data.splits import split_rows
from trimbench.execution.canonical import canonical_json
from trimbench.execution.derived import Arrays, remember
from trimbench.execution.functions import code_version, job_function
from trimbench.execution.seeds import seed_for

if TYPE_CHECKING:
    from trimbench.data.dataset import Dataset

ENCODINGS = ("paper", "authors")
_DATA_CODE = ("trimbench.data", "trimbench.experiments.conformant.protocol")


@dataclass(frozen=True)
class Protocol:
    """What is done with a data set; a file of the configuration group ``protocol``.

    Attributes
    ----------
    dataset : str
        A declared data set.
    title : str
        Its name in tables; default: that of the protocol.
    drop : list of str
        Columns that are no features.
    labels : list of str
        If given, rows with any other label in a feature are dropped.
    classes : list of str
        If given, rows of other classes are dropped; gives the order of the classes.
    merged : dict of str to str
        Indicator columns of one feature by their prefix.
    cut : dict of str to str
        For the encodings ``paper`` and ``authors``, how numbers become zeros and ones.
    bins, cuts, distinct
        As in `trimbench.data.binary.BinaryEncoding`.
    image : list of int
        Height and width where the features are pixels.
    last : int
        If positive, the last rows (of the whole data set) are the test part.
    test_rows : list of int
        If given, the rows of the test part.
    test_fraction : float
        Else a random part of the rows is the test part.
    inverse_penalty : float
        C of the logistic regression.
    smoothing : float
        Pseudo-count of conformant learning and of naive Bayes.
    """

    dataset: str
    title: str = ""
    drop: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    cut: dict[str, str] = field(default_factory=dict)
    bins: int = 5
    cuts: dict[str, list[Any]] = field(default_factory=dict)
    distinct: list[str] = field(default_factory=list)
    image: list[int] = field(default_factory=list)
    last: int = 0
    test_rows: list[int] = field(default_factory=list)
    test_fraction: float = 0.2
    inverse_penalty: float = 1.0
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.cut) - set(ENCODINGS))
        if unknown:
            raise ValueError(f"cut must have the keys {', '.join(ENCODINGS)}, got {unknown}")
        if not 0 < self.test_fraction < 1:
            raise ValueError(f"test_fraction must be between 0 and 1, got {self.test_fraction}")
        if not self.inverse_penalty > 0:
            raise ValueError(f"inverse_penalty must be positive, got {self.inverse_penalty}")
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing must be 0 or more, got {self.smoothing}")

    def encoding(self, name: str) -> BinaryEncoding:
        """Return the encoding of a name, ``paper`` or ``authors``."""
        if name not in ENCODINGS:
            raise ConfigurationError(f"encoding must be one of {', '.join(ENCODINGS)}, got {name!r}")
        return BinaryEncoding(
            self.cut.get(name, "mean"),  # type: ignore[arg-type]
            bins=self.bins,
            cuts=self.cuts if name == "authors" else {},
            distinct=tuple(self.distinct) if name == "authors" else (),
            merged=self.merged,
        )


@dataclass(frozen=True)
class Task:
    """A data set with its protocol and encoding: plain values that go into a job's parameters.

    Attributes
    ----------
    name : str
        Of the protocol.
    protocol : Protocol
    declaration : DatasetDeclaration
    sha256 : str
        Of the data.
    parameters : dict
        The keyword arguments ``task`` of the family's job functions.
    """

    name: str
    protocol: Protocol
    declaration: DatasetDeclaration
    sha256: str
    parameters: dict[str, Any]

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.protocol.title or self.name


def make_task(catalogue: Catalogue, cache: Cache, name: str, encoding: str, seed: int) -> Task:
    """Return the task of a protocol, or of a data set without one (80:20, the paper's encoding, C = 1).

    Parameters
    ----------
    catalogue : Catalogue
    cache : Cache
    name : str
        A protocol, or a data set.
    encoding : {"paper", "authors"}
    seed : int
        Of the random split, where the protocol has none of its own.

    Raises
    ------
    ConfigurationError
        When there is no protocol and no data set of that name, or a protocol has a wrong key.
    """
    known = name in catalogue.names("protocol")
    values = catalogue.mapping("protocol", name) if known else {"dataset": name}
    protocol = build_settings(Protocol, values, f"protocol {name}")
    protocol.encoding(encoding)
    declaration = catalogue.dataset(protocol.dataset)
    # Data without a declared fingerprint (a user's own) is read once to know what it is.
    sha256 = declaration.facts.sha256 or load_dataset(declaration, cache).sha256
    task = {
        "name": name,
        "protocol": dataclasses.asdict(protocol),
        "dataset": catalogue.dataset_mapping(protocol.dataset),
        "sha256": sha256,
        "encoding": encoding,
        "split_seed": seed_for(purpose="split", dataset=protocol.dataset, seed=seed),
    }
    return Task(name, protocol, declaration, sha256, task)


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


@job_function(code=_DATA_CODE)
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
    protocol = build_settings(Protocol, task["protocol"], f"protocol {task['name']}")
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
