"""Which data is on this machine and can be read, and what stands in the way of the rest."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import CsvSource, OpenMLSource, RSource
from trimbench.papers.data.files import cached_path
from trimbench.papers.data.network_declaration import NetworkDeclaration
from trimbench.papers.data.sources import Declaration, is_available

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_OPENML_FILES = (("description.xml",), ("features.xml",), ("dataset_{id}.pq", "dataset.arff"))


def is_here(declaration: Declaration, cache: Cache) -> bool:
    """Tell whether the data is on this machine and can be read, without verifying what it holds."""
    try:
        return is_available(declaration, cache) and not obstacle(declaration, cache)
    except OSError:  # a folder that cannot be searched
        return False


def obstacle(declaration: Declaration, cache: Cache) -> str:
    """Return which file of the data is there and cannot be read, and what to do; empty if there is none.

    Parameters
    ----------
    declaration : DatasetDeclaration or NetworkDeclaration
    cache : Cache

    Returns
    -------
    str
        A file of which another folder of the cache has a readable copy is no obstacle.
    """
    for copies in _files(declaration, cache):
        reasons = [_unreadable(path) for path in copies]
        found = [reason for reason in reasons if reason]
        if found and None not in reasons:
            return f"{found[0]}; make it readable, or remove it and run `trimbench task=fetch`"
    return ""


def _unreadable(path: Path) -> str | None:
    """Return why a file that is there cannot be read: None if it can, nothing if it is not there."""
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        if error.errno not in _ABSENT:
            return f"{path} cannot be read ({error.strerror})"
        return f"{path} is a link to a file that does not exist" if path.is_symlink() else ""


def _files(declaration: Declaration, cache: Cache) -> Iterator[list[Path]]:
    """Give the places where each file of the data may be."""
    if isinstance(declaration, NetworkDeclaration):
        paths = [file.path for file in declaration.files.values()]
        own = declaration.path
    else:
        source = declaration.source
        if isinstance(source, OpenMLSource):
            folders = [cache.openml_folder(place, source.id) for place in cache.places]
            for names in _OPENML_FILES:
                yield [folder / name.format(id=source.id) for folder in folders for name in names]
            return
        own = source.path if isinstance(source, CsvSource) else None
        paths = [source.file.path] if isinstance(source, CsvSource) and source.file else []
        if isinstance(source, RSource):  # one of the two is enough
            either = [source.path] if source.table is None else [source.path, source.table.path]
            yield [cached_path(path, place) for place in cache.places for path in either]
    if own is not None:
        yield [own]
    for path in paths:
        yield [cached_path(path, place) for place in cache.places]
