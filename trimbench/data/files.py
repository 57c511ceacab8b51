"""Plain files, fetched once and trusted only by their SHA-256."""

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

from trimbench.data.cache import Cache
from trimbench.data.errors import DataUnavailable, data_unavailable
from trimbench.data.reachability import one_line_reason

_log = logging.getLogger(__name__)
_TIMEOUT_SECONDS = 20


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


def cached_path(declaration: FileDeclaration, place: Path) -> Path:
    """Return where the file belongs under one folder of the cache."""
    return place / "files" / declaration.path


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
    for place in cache.places:
        path = cached_path(declaration, place)
        if path.is_file() and _is_intact(path, declaration.sha256):
            return path
    return _download(declaration, cache)


def _is_intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as stream:
            got = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        _log.warning("skipping %s, which cannot be read: %s", path, one_line_reason(error))
        return False
    if got != sha256:
        _log.warning("skipping %s: its SHA-256 is %s, declared is %s", path, got, sha256)
    return got == sha256


def _download(declaration: FileDeclaration, cache: Cache) -> Path:
    url = declaration.url
    if cache.offline:
        raise _unavailable(declaration, "it is in no cache folder and downloads are switched off")
    known = cache.hosts.reason_for(url)
    if known is not None:
        raise _unavailable(declaration, known)
    from pooch import HTTPDownloader

    try:
        with cache.workspace() as folder:
            partial = folder / "partial"
            # Not streamed: pooch leaves the connection of a stream open when the download breaks off.
            HTTPDownloader(timeout=_TIMEOUT_SECONDS, stream=False)(url, str(partial), None)
            with partial.open("rb") as stream:
                got = hashlib.file_digest(stream, "sha256").hexdigest()
            if got != declaration.sha256:
                raise _unavailable(declaration, f"the download has SHA-256 {got}, declared is {declaration.sha256}")
            path = cached_path(declaration, cache.writable)
            path.parent.mkdir(parents=True, exist_ok=True)
            return partial.replace(path)
    except (
        OSError,
        ValueError,
    ) as error:  # requests' own errors are OSErrors, its bad-URL errors ValueErrors
        cache.hosts.note(url, error)
        raise _unavailable(declaration, one_line_reason(error)) from error


def _unavailable(declaration: FileDeclaration, reason: str) -> DataUnavailable:
    return data_unavailable(f"file {declaration.path!r}", declaration.url, reason)
