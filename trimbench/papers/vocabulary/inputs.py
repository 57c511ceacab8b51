"""The data sets and networks that jobs read. One value serves the job, its key and the download."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import (
    Declaration,
    DeclaredNetwork,
    declare_dataset,
    declare_network,
    load_dataset,
    load_network,
)
from trimbench.papers.execution.store import note_road
from trimbench.papers.validation import DataUnavailable, FactsMismatch, Json

if TYPE_CHECKING:
    from trimbench.papers.data.dataset import Dataset


@dataclass(frozen=True)
class Input:
    """A data set or a network as it is declared, with the hash of the values or of the network's files."""

    group: Literal["dataset", "network"]
    name: str
    declared: Mapping[str, Json]
    sha256: str

    @property
    def place(self) -> str:
        """Where it is declared, for example ``network/heart``: a data set and a network may share a name."""
        return f"{self.group}/{self.name}"

    @functools.cached_property
    def declaration(self) -> Declaration:
        """The declaration, checked."""
        declare = declare_dataset if self.group == "dataset" else declare_network
        return declare(self.name, self.declared)

    def files(self, cache: Cache) -> dict[str, Path]:
        """Return the files of the cache that a job reads for it, by their names in a folder of the cache."""
        found = (next(filter(os.path.isfile, copies), None) for copies in self.declaration.copies(cache))
        places = [(path, place) for path in found if path for place in cache.places if path.is_relative_to(place)]
        return {path.relative_to(place).as_posix(): path for path, place in places}


class Inputs:
    """All declared data sets and networks, as inputs of jobs.

    A data set without a declared hash, such as one of the user's own, is read from the cache to compute it.
    """

    def __init__(self, catalogue: Catalogue, cache: Cache) -> None:
        self.catalogue = catalogue
        self.cache = cache
        self._loaded: dict[str, Dataset] = {}

    def dataset(self, name: str) -> Input:
        """Return a data set as an input; raise DataUnavailable if its hash is not declared and it cannot be read."""
        declared = self.catalogue.dataset_mapping(name)
        try:
            sha256 = declare_dataset(name, declared).facts.sha256 or self.loaded(name).sha256
        except DataUnavailable as error:
            if "path" in declared:
                raise
            why = f"data set {name!r} is declared without facts.sha256, so that it must be here to plan a run"
            raise DataUnavailable(f"{why}: {error}", whole=True) from error
        return Input("dataset", name, declared, sha256)

    def network(self, name: str, *, evidence: bool = False) -> Input:
        """Return a network as an input, without its evidence file unless that is asked for.

        With it, the input has a name of its own: an experiment may take both, and only one of them may be available.

        Raises
        ------
        DataUnavailable
            When it is the user's own file and cannot be read.
        ValueError
            When evidence is asked for and none is declared.
        """
        declared = dict(self.catalogue.network_mapping(name))
        files = declared.get("files")
        has_evidence = isinstance(files, Mapping) and "evidence" in files
        if evidence and not has_evidence:
            raise ValueError(f"network {name!r} must be declared with an evidence file (files.evidence), got none")
        if isinstance(files, Mapping) and has_evidence and not evidence:
            declared["files"] = {role: file for role, file in files.items() if role != "evidence"}
        if evidence:
            name = f"{name} with evidence"
        return Input("network", name, declared, declare_network(name, declared).sha256)

    def loaded(self, name: str) -> Dataset:
        """Return the values of a data set, reading it only once."""
        if name not in self._loaded:
            self._loaded[name] = load_dataset(declare_dataset(name, self.catalogue.dataset_mapping(name)), self.cache)
        return self._loaded[name]


def dataset_of(found: Input) -> Dataset:
    """Return the values of an input that a job received as a parameter.

    Nothing is downloaded here: what a job reads is fetched before it starts. Raises `FactsMismatch` if the values are
    not those whose hash is in the key of the job.
    """
    loaded = load_dataset(declare_dataset(found.name, found.declared), Cache.from_environment(offline=True))
    _check_unchanged(found, loaded.sha256)
    note_road(found.sha256, loaded.road)
    return loaded


def network_of(found: Input) -> DeclaredNetwork:
    """Return the network of an input that a job received as a parameter, as `dataset_of` does."""
    declaration = declare_network(found.name, found.declared)
    loaded = load_network(declaration, Cache.from_environment(offline=True))
    _check_unchanged(found, declaration.sha256)  # which is of the file as it is now, after it was read
    note_road(found.sha256, declaration.where)
    return loaded


def _check_unchanged(found: Input, sha256: str) -> None:
    if sha256 != found.sha256:
        raise FactsMismatch(
            f"{found.group} {found.name!r} has changed since the run began (SHA-256: it was {found.sha256[:12]}, now "
            f"it is {sha256[:12]}); start the run again"
        )
