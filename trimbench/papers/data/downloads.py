"""Plain files, fetched once and kept only if what they hold can be trusted."""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from trimbench.papers.data.cache import Cache, CachePath, HostMemory, Positive, Sha256, Url, one_line_reason
from trimbench.papers.validation import DataUnavailable, DeclarationError, FactsMismatch, data_unavailable, settings

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
        return cache.keep(partial, declaration.path, declaration.sha256)


def find_file(declaration: CacheOnlyFile, cache: Cache) -> Path | None:
    """Return the path of a verified copy of the file, or None if no cache folder has one."""
    for path in cache.copies(declaration.path, declaration.sha256):
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


# Download one address into a file: bounded in bytes, in seconds, and in where redirects may lead.

_SILENT_SECONDS = 20
_TOTAL_SECONDS = 1800.0
_MAX_BYTES = 2**30
_MAX_REDIRECTS = 5
_PIECE = 2**16


def stream(url: str, path: Path, size: int | None = None) -> None:
    """Download `url` to `path`, piece by piece.

    Raises an OSError if the server answers with an error, is silent for 20 seconds or not done after half an hour, and
    a ValueError if it sends more than `size` bytes, or other than that many (default: at most 1 GiB), or redirects to
    an address without https that is not on this machine.
    """
    deadline = time.monotonic() + _TOTAL_SECONDS
    for _ in range(_MAX_REDIRECTS + 1):
        with closing(_ask(url, deadline)) as answer:
            if not answer.is_redirect:
                answer.raise_for_status()
                _write(answer, path, deadline, size)
                return
            url = urljoin(url, answer.headers["location"])
        if urlsplit(url).scheme != "https" and not _is_this_machine(url):
            raise ValueError(f"the server redirects to {url[:100]!r}, which is neither https nor on this machine")
    raise ValueError(f"the server redirects more than {_MAX_REDIRECTS} times")


def _ask(url: str, deadline: float) -> Any:
    """Return the answer of a server as soon as its headers are there; raise a TimeoutError at the deadline.

    The timeout of requests starts again with each byte, so a server that sends its headers one by one, or takes as long
    to agree on a key, would hold the program. Instead it holds a thread, until it is silent or the program ends.
    """
    session = _session()
    coming: Future[Any] = Future()

    def wait_for_headers() -> None:
        try:
            answer = session.get(url, timeout=_SILENT_SECONDS, stream=True)
        except BaseException as error:  # noqa: BLE001  (for the thread that asks)
            if coming.set_running_or_notify_cancel():
                coming.set_exception(error)
            return
        if coming.set_running_or_notify_cancel():
            coming.set_result(answer)
        else:
            answer.close()

    threading.Thread(target=wait_for_headers, name="wait-for-headers", daemon=True).start()
    wait([coming], max(0.0, deadline - time.monotonic()))
    if coming.cancel():  # unless it is there
        raise _late()
    return coming.result()


def _session() -> Any:
    import requests

    class Session(requests.Session):
        """Leaves the body of a redirect alone, which requests would read into memory, however long it is."""

        def get_redirect_target(self, resp: requests.Response) -> None:
            pass

    return Session()


def _late() -> TimeoutError:
    return TimeoutError(f"the download was not done after {_TOTAL_SECONDS:g} seconds")


def _write(answer: Any, path: Path, deadline: float, size: int | None) -> None:
    limit, got = size or _MAX_BYTES, 0
    with path.open("wb") as file, _broken_off_at(deadline, answer):
        # What is there is taken: waiting for a whole piece would leave the time to a slow server.
        while piece := answer.raw.read1(_PIECE, decode_content=True):
            got += len(piece)
            if got > limit:
                raise ValueError(f"the download has more than {limit} bytes")
            file.write(piece)
    if size is not None and got != size:
        raise ValueError(f"the download has {got} bytes, declared are {size}")


@contextmanager
def _broken_off_at(deadline: float, answer: Any) -> Iterator[None]:
    """End the answer at the deadline, and raise a TimeoutError then.

    A server can send bytes without content, such as the sizes of pieces or empty compressed blocks, for which a single
    call would wait forever.
    """
    watch = threading.Timer(max(0.0, deadline - time.monotonic()), answer.raw.shutdown)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        if time.monotonic() > deadline:
            raise _late()


def _is_this_machine(url: str) -> bool:
    from urllib3.util import parse_url

    try:
        host = (parse_url(url).host or "").strip("[]")  # which is asked, whatever others read in the address
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
