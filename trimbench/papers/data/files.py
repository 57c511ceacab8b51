"""Plain files, fetched once and kept only if what they hold can be trusted."""

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import CachePath, Positive, Sha256, Url
from trimbench.papers.data.errors import DataUnavailable, DeclarationError, FactsMismatch, data_unavailable
from trimbench.papers.data.reachability import HostMemory, one_line_reason
from trimbench.papers.data.streaming import stream
from trimbench.papers.validation import settings

_log = logging.getLogger(__name__)
_ATTEMPTS = 2
_PAUSE_SECONDS = 0.5


@settings
class CacheOnlyFile:
    """A file that is used where a cache folder holds it, and that cannot be downloaded; `path` is under ``files/``."""

    path: CachePath
    sha256: Sha256


@settings
class FileDeclaration(CacheOnlyFile):
    """A file, where to get it and how to recognise it: a download of another `size` in bytes is broken off."""

    url: Url
    size: Positive | None = None


@settings
class UnverifiedFile:
    """A file whose hash is not known: what is read from it must be verified instead."""

    path: CachePath
    url: Url
    size: Positive | None = None


def check_one_of(own: str, path: str | None, other: str, file: object | None) -> None:
    """Raise an error unless exactly one of a user's own file and declared files is given."""
    if (path is None) == (file is None):
        got = [] if path is None else [own, other]
        raise ValueError(
            f"give exactly one of {own} (a file of your own) and {other} (with path, url and sha256), got {got}"
        )


def existing(owner: str, path: str) -> Path:
    """Return the path of a user's own file; `DataUnavailable` if there is no such file."""
    if not Path(path).is_file():
        raise DataUnavailable(
            f"{owner}: path must be an existing file, got {path!r}; correct it in its YAML (relative paths start at "
            "the folder of that YAML)"
        )
    return Path(path)


def fetch_file(declaration: FileDeclaration, cache: Cache) -> Path:
    """Return the path of a verified copy of the file; download it if no cache folder has one.

    Raises `DataUnavailable` if that fails; nothing is left behind then.
    """
    found = find_file(declaration, cache)
    if found is not None:
        return found
    with fetching(f"file {declaration.path!r}", declaration.url, cache) as folder:
        partial = download(declaration.url, folder / "partial", cache.hosts, declaration.size)
        got = _sha256(partial)
        if got != declaration.sha256:
            raise ValueError(f"the download has SHA-256 {got}, declared is {declaration.sha256}")
        return cache.keep(partial, declaration.path)


def find_file(declaration: CacheOnlyFile, cache: Cache) -> Path | None:
    """Return the path of a verified copy of the file, or None if no cache folder has one."""
    for path in cache.copies(declaration.path):
        if path.is_file() and _is_intact(path, declaration.sha256):
            return path
    return None


@contextmanager
def fetching(what: str, url: str, cache: Cache) -> Iterator[Path]:
    """Yield a temporary folder for downloads of `what`, and turn what goes wrong with them into `DataUnavailable`."""
    if cache.offline:
        raise data_unavailable(what, url, "it is in no cache folder and downloads are switched off")
    try:
        with cache.workspace() as folder:
            yield folder
    except (DeclarationError, FactsMismatch):
        raise
    except (OSError, ValueError) as error:  # requests' own errors are OSErrors, its bad-URL errors ValueErrors
        raise data_unavailable(what, url, one_line_reason(error)) from error


def download(url: str, path: Path, hosts: HostMemory, size: int | None = None) -> Path:
    """Download a file to `path`, which is returned; raises as `stream`, and an OSError for a host known to be dead."""
    from urllib3.exceptions import HTTPError

    for attempt in range(_ATTEMPTS):
        known = hosts.reason_for(url)
        if known is not None:
            raise ConnectionError(known)
        try:
            stream(url, path, size)
            break
        except HTTPError as error:  # while bytes arrive, it is not yet wrapped by requests
            broken: OSError = ConnectionError(f"the download broke off: {error}")
            broken.__cause__ = error
        except OSError as error:
            broken = error
        hosts.note(url, broken)
        if attempt + 1 == _ATTEMPTS or hosts.reason_for(url) is not None:
            raise broken
        time.sleep(_PAUSE_SECONDS)
    return path


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
