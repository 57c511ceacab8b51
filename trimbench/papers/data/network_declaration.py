"""Networks as they are declared in YAML, checked and frozen."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import Positive, Text
from trimbench.papers.data.files import FileDeclaration, check_one_of, existing
from trimbench.papers.validation import settings, validated


@settings
class _Facts:
    features: Positive


@settings
class _AceFiles:
    cnf: FileDeclaration
    lmap: FileDeclaration
    search: FileDeclaration


@settings
class _WholeFile:
    network: FileDeclaration
    evidence: FileDeclaration | None = None


@settings
class _AceProblem:
    format: Literal["ace"]
    files: _AceFiles
    target: Text
    positive: Text
    facts: _Facts
    path: ClassVar[None] = None
    features: ClassVar[None] = None
    evidence: ClassVar[None] = None


@settings
class _Network:
    format: Literal["bif", "erg", "uai", "xmlbif"]
    files: _WholeFile | None = None
    path: Text | None = None
    target: Text | None = None
    positive: Text | None = None
    features: list[Text] | None = None
    evidence: dict[str, Text] | None = None
    facts: _Facts | None = None

    def __post_init__(self) -> None:
        check_one_of("path", self.path, "files", self.files)
        if (self.target is None) != (self.positive is None):
            raise ValueError("give both target and positive, or neither")
        for name in self.features or ():
            if name in (self.target, *(self.evidence or ())):
                raise ValueError(f"features must be neither the target nor in evidence, got {name!r}")
        if self.target in (self.evidence or ()):
            raise ValueError(f"evidence must not be on the target, got {self.target!r}")
        if self.evidence and self.files is not None and self.files.evidence is not None:
            raise ValueError("give either evidence or files.evidence, not both")


_AnyNetwork = Annotated[_AceProblem | _Network, Field(discriminator="format")]


@dataclass(frozen=True)
class NetworkDeclaration:
    """A named Bayesian network in files, and the class that is stated for it.

    Attributes
    ----------
    files : mapping from role to FileDeclaration
        Empty where `path` is given.
    path : Path, optional
        A file of the user's own that holds the whole network.
    target, positive : str, optional
        Class node, and the state of it that counts as positive; None where the network comes without a class.
    features : int, optional
        Number of feature nodes in an ACE problem, otherwise of leaves.
    feature_names : tuple of str, optional
        The features; None where they are those of the ACE problem, or the leaves.
    evidence : mapping from node to state
        What is observed; empty where it is in a file, or nothing is.
    """

    name: str
    format: str
    files: Mapping[str, FileDeclaration]
    path: Path | None = None
    target: str | None = None
    positive: str | None = None
    features: int | None = None
    feature_names: tuple[str, ...] | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the roles and hashes of the files, whatever their order; reads the user's own file."""
        hashes = {role: file.sha256 for role, file in self.files.items()}
        if self.path is not None:
            hashes["network"] = hashlib.sha256(self.own_file().read_bytes()).hexdigest()
        lines = (f"{role} {sha256}\n" for role, sha256 in sorted(hashes.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def own_file(self) -> Path:
        """Return the path of the user's own file; `DataUnavailable` if there is no such file."""
        return existing(f"network {self.name!r}", str(self.path))

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""
        return [[self.path]] if self.path is not None else [cache.copies(file.path) for file in self.files.values()]


def declare_network(name: str, mapping: Mapping[str, object]) -> NetworkDeclaration:
    """Check the declaration of a network.

    Its keys are ``format``; ``files`` (with an evidence file if there is one), or ``path`` for a file of the user's
    own; ``target`` and ``positive``; ``features`` and ``evidence``, of a network in one file; ``facts`` with
    ``features``. An ACE problem needs files, a class and facts; other networks may come without a class and without
    facts. Raises `ConfigurationError`, which names the network and the key, if a key or its value is wrong.
    """
    keys = validated(cast("type[_AceProblem | _Network]", _AnyNetwork), mapping, f"network {name!r}")
    return NetworkDeclaration(
        name=name,
        format=keys.format,
        files={} if keys.files is None else {role: file for role, file in vars(keys.files).items() if file is not None},
        path=None if keys.path is None else Path(keys.path),
        target=keys.target,
        positive=keys.positive,
        features=None if keys.facts is None else keys.facts.features,
        feature_names=None if keys.features is None else tuple(keys.features),
        evidence=keys.evidence or {},
    )
