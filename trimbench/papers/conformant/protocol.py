"""How a data set is split, encoded and classified in the NaCL experiments."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.binary import BinaryEncoding
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import DatasetDeclaration
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import check_axis
from trimbench.papers.validation import ConfigurationError, validated

ENCODINGS = ("paper", "authors")


def check_encodings(**encodings: str | list[str]) -> None:
    """Raise an error unless a setting is an encoding, or a list of encodings, each once."""
    for name, value in encodings.items():
        if isinstance(value, list):
            check_axis(name, value)
        for encoding in value if isinstance(value, list) else [value]:
            if encoding not in ENCODINGS:
                must = "must be of" if isinstance(value, list) else "must be one of"
                raise ConfigurationError(f"{name} {must} {', '.join(ENCODINGS)}, got {encoding!r}")


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
        As in `trimbench.papers.data.binary.BinaryEncoding`.
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
        check_encodings(encoding=name)
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
        When there is no protocol and no data set of that name, a protocol has a wrong key, or data of a user's own has
        a single class.
    """
    known = name in catalogue.names("protocol")
    values = catalogue.mapping("protocol", name) if known else {"dataset": name}
    protocol = validated(Protocol, values, f"protocol {name}")
    protocol.encoding(encoding)
    declaration = catalogue.dataset(protocol.dataset)
    sha256 = declaration.facts.sha256
    if not sha256:  # data of a user's own is read once to know what it is
        loaded = load_dataset(declaration, cache)
        sha256, labels = loaded.sha256, [str(label) for label in loaded.target.cat.categories]
        if len(labels) < 2:
            raise ConfigurationError(f"data set {declaration.name} must have two classes or more, got {labels}")
    task = {
        "name": name,
        "protocol": dataclasses.asdict(protocol),
        "dataset": catalogue.dataset_mapping(protocol.dataset),
        "sha256": sha256,
        "encoding": encoding,
        "split_seed": seed_for(purpose="split", dataset=protocol.dataset, seed=seed),
    }
    return Task(name, protocol, declaration, sha256, task)
