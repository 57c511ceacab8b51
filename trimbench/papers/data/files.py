"""Plain files, fetched once and kept only if what they hold can be trusted."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.errors import DataUnavailable, FactsMismatch, data_unavailable
from trimbench.papers.data.reachability import one_line_reason

_log = logging.getLogger(__name__)
_TIMEOUT_SECONDS = 20
_Accepted = TypeVar("_Accepted")


@dataclass(frozen=True)
class FileDeclaration:
    """A file, where to get it and how to recognise it.

    Parameters
    ----------
    path : str
        Place under ``files/`` in a cache folder, with forward slashes.
    url : str
        Where it is downloaded from.
    sha256 : str
        SHA-256 of its bytes, 64 lower-case hexadecimal digits.
    """

    path: str
    url: str
    sha256: str


@dataclass(frozen=True)
class CacheOnlyFile:
    """A file that is used where a cache folder holds it, and that cannot be downloaded.

    Parameters
    ----------
    path : str
        Place under ``files/`` in a cache folder, with forward slashes.
    sha256 : str
        SHA-256 of its bytes, 64 lower-case hexadecimal digits.
    """

    path: str
    sha256: str


def cached_path(path: str, place: Path) -> Path:
    """Return where a file belongs under one folder of the cache."""
    return place / "files" / path


def is_in_cache(path: str, cache: Cache) -> bool:
    """Tell whether some folder of the cache holds the file, without reading it."""
    return any(cached_path(path, place).is_file() for place in cache.places)


def fetch_file(declaration: FileDeclaration, cache: Cache) -> Path:
    """Return the path of a verified copy of the file; download it if no cache folder has one.

    Parameters
    ----------
    declaration : FileDeclaration
    cache : Cache

    Returns
    -------
    Path
        A file whose SHA-256 is the declared one.

    Raises
    ------
    DataUnavailable
        No cache folder holds the file and it could not be downloaded. Nothing is left behind then.
    """
    found = find_file(declaration, cache)
    if found is not None:
        return found

    def check(partial: Path) -> None:
        got = _sha256(partial)
        if got != declaration.sha256:
            raise ValueError(f"the download has SHA-256 {got}, declared is {declaration.sha256}")

    download(f"file {declaration.path!r}", declaration.path, declaration.url, cache, check)
    return cached_path(declaration.path, cache.writable)


def find_file(declaration: FileDeclaration | CacheOnlyFile, cache: Cache) -> Path | None:
    """Return the path of a verified copy of the file, or None if no cache folder has one."""
    for place in cache.places:
        path = cached_path(declaration.path, place)
        if path.is_file() and _is_intact(path, declaration.sha256):
            return path
    return None


def download(what: str, path: str, url: str, cache: Cache, accept: Callable[[Path], _Accepted]) -> _Accepted:
    """Download a file, look at it, and only then add it to the cache.

    Parameters
    ----------
    what : str
        The data, for messages.
    path : str
        Place under ``files/`` in a cache folder, with forward slashes.
    url : str
    cache : Cache
    accept : callable
        Is given the path of the downloaded file. To refuse it, it raises a ValueError that says why.

    Returns
    -------
    object
        What `accept` returned.

    Raises
    ------
    DataUnavailable
        The file could not be downloaded, or was refused. Nothing is left behind then.
    FactsMismatch
        Raised by `accept`. Nothing is left behind then either.
    """

    def unavailable(reason: str) -> DataUnavailable:
        return data_unavailable(what, url, reason)

    if cache.offline:
        raise unavailable("it is in no cache folder and downloads are switched off")
    known = cache.hosts.reason_for(url)
    if known is not None:
        raise unavailable(known)
    from pooch import HTTPDownloader

    try:
        with cache.workspace() as folder:
            partial = folder / "partial"
            # Not streamed: pooch leaves the connection of a stream open when the download breaks off.
            HTTPDownloader(timeout=_TIMEOUT_SECONDS, stream=False)(url, str(partial), None)
            accepted = accept(partial)
            destination = cached_path(path, cache.writable)
            destination.parent.mkdir(parents=True, exist_ok=True)
            partial.replace(destination)
            return accepted
    except FactsMismatch:
        raise
    except (OSError, ValueError) as error:  # requests' own errors are OSErrors, its bad-URL errors ValueErrors
        cache.hosts.note(url, error)
        raise unavailable(one_line_reason(error)) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_intact(path: Path, sha256: str) -> bool:
    try:
        got = _sha256(path)
    except OSError as error:
        _log.warning("skipping %s, which cannot be read: %s", path, one_line_reason(error))
        return False
    if got != sha256:
        _log.warning("skipping %s: its SHA-256 is %s, declared is %s", path, got, sha256)
    return got == sha256
