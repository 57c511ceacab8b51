"""Download one address into a file: bounded in bytes, in seconds, and in where redirects may lead."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

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
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
