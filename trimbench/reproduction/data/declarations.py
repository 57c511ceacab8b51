"""Data that YAML declares: the checks of a data set, how it is loaded, and whether the files of any kind are here."""

from __future__ import annotations

import errno
import functools
import logging
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field

from trimbench.reproduction.data.cache import ROADS, Cache
from trimbench.reproduction.data.dataset import Dataset, Facts, without_source
from trimbench.reproduction.data.errors import DataUnavailable, DeclarationError, FactsMismatch, ways_out
from trimbench.reproduction.data.sources import (
    BundledSource,
    CsvSource,
    OpenMLSource,
    PackageSource,
    RSource,
    SimulatedSource,
    Source,
)
from trimbench.reproduction.files import opened
from trimbench.reproduction.project import loaded, per_project, project
from trimbench.reproduction.settings import ConfigurationError, validated

_log = logging.getLogger(__name__)
# The sources that every project has, by their `kind`.
_SOURCES: Mapping[str, type[Source]] = {
    "bundled": BundledSource,
    "csv": CsvSource,
    "openml": OpenMLSource,
    "package": PackageSource,
    "r": RSource,
    "simulated": SimulatedSource,
}


class Declaration(Protocol):
    """A data set, or data of a kind that the project has, as declared."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def where(self) -> str:
        """Where it comes from, in a few words."""

    def hash(self, cache: Cache) -> str:
        """Return the SHA-256 of its values, or of the files that decide them; the cache is read if none is declared."""

    def road(self, cache: Cache) -> str:
        """Return where this machine got it from; empty if it does not have it."""

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""

    def fetch(self, cache: Cache, *, verify: bool | None) -> str:
        """Download it unless it is in the cache, verify it, and return how that was done."""


def declare(group: str, name: str, mapping: Mapping[str, object]) -> Declaration:
    """Check the declaration of data of a kind: ``dataset``, or a group of the project's `inputs`."""
    if group == "dataset":
        return declare_dataset(name, mapping)
    declaration: Declaration = loaded(project().inputs[group])(name, mapping)
    return declaration


def groups_of_data() -> tuple[str, ...]:
    """Return the groups of the configuration that declare data."""
    return ("dataset", *project().inputs)


@dataclass(frozen=True)
class DatasetDeclaration:
    """A named data set and where it comes from: its `source`, and others from which the same rows come."""

    name: str
    source: Source
    others: tuple[Source, ...] = ()

    @property
    def facts(self) -> Facts:
        """What is known about the data."""
        return self.source.facts

    @property
    def where(self) -> str:
        """Where the rows come from, each possible source in a few words."""
        return " or ".join(one.where for one in (self.source, *self.others))

    def road(self, cache: Cache) -> str:
        """Return where this machine got the rows from; empty if it does not have them."""
        return next((one.where for one in self.sources_here(cache)), "")

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be: of the first source whose files are here."""
        return (next(iter(self.sources_here(cache)), None) or self.source).copies(cache)

    def hash(self, cache: Cache) -> str:
        """Return the declared hash of the values, or that of the loaded ones."""
        return self.facts.sha256 or load_dataset(self, cache).sha256

    def fetch(self, cache: Cache, *, verify: bool | None) -> str:
        """Load the data set, downloading it first if necessary; return where it came from."""
        return f"verified ({load_dataset(self, cache).road})"

    def sources_here(self, cache: Cache) -> list[Source]:
        """Return the sources whose files are all in the cache."""
        return [one for one in (self.source, *self.others) if _is_readable(one.copies(cache))]


@per_project
def _any_source() -> Any:
    """Return the type of any source: a project may add kinds, or replace one."""
    classes = {**_SOURCES, **{kind: loaded(name) for kind, name in project().sources.items()}}
    return Annotated[functools.reduce(operator.or_, classes.values()), Field(discriminator="kind")]


def declare_dataset(name: str, mapping: Mapping[str, object]) -> DatasetDeclaration:
    """Check the declaration of a data set: ``kind``, the keys of that kind (the fields of its class), and ``facts``.

    Raises `ConfigurationError`, which names the data set and the key, if a key or its value is wrong.
    """
    what = f"data set {name!r}"
    source = validated(_any_source(), mapping, what)
    others = []
    for place, road in enumerate(source.roads):
        if found := {"facts", "path", "roads"} & set(road):
            way = "put a file of your own in path of the data set itself" if "path" in found else "leave it out"
            raise ConfigurationError(f"{what}: roads.{place} must not have the key {min(found)}; {way}")
        values = {**road, "facts": mapping["facts"]}
        others.append(validated(_any_source(), values, f"{what}, roads.{place}"))
    return DatasetDeclaration(name, source, tuple(others))


# From the declaration of a data set to its table.


def load_dataset(declaration: DatasetDeclaration, cache: Cache) -> Dataset:
    """Load a declared data set, downloading it first if necessary, and check its facts.

    Of several sources, those are tried first whose files are in the cache, then the others in the order of the cache's
    `roads`. Which one it came from makes no difference: the same rows are in the same order.

    Raises DataUnavailable if the data is nowhere on this machine and cannot be downloaded, DeclarationError if it is no
    table or has no complete column of the declared name, and FactsMismatch if it differs from the facts.
    """
    sources, here = (declaration.source, *declaration.others), replace(cache, offline=True)
    if len(sources) == 1:
        return replace(declaration.source.load(declaration.name, cache), road=declaration.source.where)
    tries = [(one, here) for one in declaration.sources_here(cache)]
    if not (cache.offline and tries):
        order = ["", *cache.roads, *ROADS]  # those that are switched off say so
        tries += [(one, cache) for one in sorted(sources, key=lambda one: order.index(one.road))]
    failures: dict[str, Exception] = {}
    for source, where in tries:
        try:
            return without_source(source.load(declaration.name, where), source.where)
        except (DataUnavailable, DeclarationError, FactsMismatch, OSError) as error:
            level = logging.INFO if isinstance(error, DataUnavailable) else logging.WARNING
            _log.log(level, "data set %s not from %s: %s", declaration.name, source.where, error)
            failures[source.where] = error
    wrong = [error for error in failures.values() if not isinstance(error, DataUnavailable | OSError)]
    if wrong:
        raise wrong[0]
    texts = [str(error) for error in failures.values()]
    whys = [text.removesuffix(f"; {ways_out([text])}") for text in texts]
    raise DataUnavailable("; ".join([*whys, ways_out(texts)]), whole=True)


# Which data is on this machine and can be read, and what stands in the way of the rest.

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def is_here(declaration: Declaration, cache: Cache) -> bool:
    """Tell whether the data is on this machine and can be read; what has a declared hash is verified."""
    return _is_readable(declaration.copies(cache))


def _is_readable(needed: list[list[Path]]) -> bool:
    return all(None in map(_unreadable, copies) for copies in needed)


def obstacle(declaration: Declaration, cache: Cache) -> str:
    """Return which file of the data exists but cannot be read, and what to do; empty if there is none.

    A file of which another folder of the cache has a readable copy is no obstacle.
    """
    for copies in declaration.copies(cache):
        reasons = [_unreadable(path) for path in copies]
        found = [reason for reason in reasons if reason]
        if found and None not in reasons:
            return f"{found[0]}; make it readable, or remove it and run {project().command} task=fetch"
    return ""


def _unreadable(path: Path) -> str | None:
    """Return why a file cannot be read: None if it can, an empty text if it is not there."""
    try:
        with opened(path):
            return None
    except OSError as error:
        if error.errno not in _ABSENT:
            return f"{path} cannot be read ({error.strerror})" if error.strerror else str(error)
        return f"{path} is a link to a file that does not exist" if path.is_symlink() else ""
