"""The data sets and networks that jobs read, each stated once: for the job, for its key and for fetching."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.network_declaration import declare_network
from trimbench.papers.data.networks import DeclaredNetwork, load_network
from trimbench.papers.data.sources import Declaration, load_dataset
from trimbench.papers.execution.canonical import Json

if TYPE_CHECKING:
    from trimbench.papers.data.dataset import Dataset


@dataclass(frozen=True)
class Input:
    """A data set or a network as it is declared.

    Attributes
    ----------
    group : {"dataset", "network"}
        Where it is declared: a group of the configuration.
    name : str
    declared : mapping
        The content of its declaration.
    sha256 : str
        Of the values of a data set, or of the files of a network.
    """

    group: str
    name: str
    declared: Mapping[str, Json]
    sha256: str

    @functools.cached_property
    def declaration(self) -> Declaration:
        """The declaration, checked."""
        declare = declare_dataset if self.group == "dataset" else declare_network
        return declare(self.name, self.declared)


class Inputs:
    """All data sets and networks that are declared, as inputs of jobs.

    Parameters
    ----------
    catalogue : Catalogue
    cache : Cache
        A data set of the user's own, whose hash nobody has declared, is read from here.
    """

    def __init__(self, catalogue: Catalogue, cache: Cache) -> None:
        self.catalogue = catalogue
        self._cache = cache
        self._loaded: dict[str, Dataset] = {}

    def dataset(self, name: str) -> Input:
        """Return a data set as an input.

        Raises
        ------
        ConfigurationError
            If there is none of that name.
        DataUnavailable
            If it is the user's own and cannot be read.
        """
        declared = self.catalogue.dataset_mapping(name)
        sha256 = declare_dataset(name, declared).facts.sha256 or self.loaded(name).sha256
        return Input("dataset", name, declared, sha256)

    def network(self, name: str) -> Input:
        """Return a network as an input; raises as `dataset`."""
        declared = self.catalogue.network_mapping(name)
        return Input("network", name, declared, declare_network(name, declared).sha256)

    def loaded(self, name: str) -> Dataset:
        """Return the values of a data set, read once."""
        if name not in self._loaded:
            self._loaded[name] = load_dataset(declare_dataset(name, self.catalogue.dataset_mapping(name)), self._cache)
        return self._loaded[name]


def dataset_of(fields: Mapping[str, Json]) -> Dataset:
    """Return the values of an input that is a parameter of a job.

    What a job reads was fetched before it started: nothing is downloaded here.
    """
    return load_dataset(declare_dataset(str(fields["name"]), _declared(fields)), Cache.from_environment(offline=True))


def network_of(fields: Mapping[str, Json]) -> DeclaredNetwork:
    """Return the network of an input that is a parameter of a job, as `dataset_of`."""
    return load_network(declare_network(str(fields["name"]), _declared(fields)), Cache.from_environment(offline=True))


def _declared(fields: Mapping[str, Json]) -> Mapping[str, Json]:
    declared = fields["declared"]
    if not isinstance(declared, Mapping):
        raise TypeError(f"declared must be a mapping of an input's declaration, got {declared!r}")
    return declared
