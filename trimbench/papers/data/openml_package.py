"""Runs the `openml` package quietly, with bounded waits, and leaves its global settings as they were."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from trimbench.papers.data.reachability import HostMemory

_log = logging.getLogger(__name__)
_TIMEOUT_SECONDS = 20
_ATTEMPTS = 2

# The package keeps its settings in a module, one per process, so only one thread at a time may use it.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def openml_package(root: Path, server: str, hosts: HostMemory | None) -> Iterator[ModuleType]:
    """Lend the package with its cache in `root`.

    The package waits for ever on a silent server, tries its storage server six times, logs through the root
    logger, and sends the user's key with every request. Within this context it does none of that.

    Parameters
    ----------
    root : Path
        Root of the package's cache; it must be writable.
    server : str
        Address of the XML interface.
    hosts : HostMemory or None
        Hosts that are not worth asking, extended by those found dead. None forbids all requests.

    Yields
    ------
    module
        The `openml` package.
    """
    with _ONE_AT_A_TIME, ExitStack() as stack:
        stack.enter_context(_level(logging.getLogger("openml"), logging.CRITICAL))
        openml = _import_openml()
        calls = openml._api_calls
        config = openml.config
        settings = {
            "server": server,
            "_root_cache_directory": root,
            "apikey": "",
            "connection_n_retries": 1 if hosts is None else _ATTEMPTS,
            "retry_policy": "human",
            "show_progress": False,
        }
        for name, value in settings.items():
            stack.enter_context(_attribute(config, name, value))
        stack.enter_context(_attribute(calls, "requests", _bounded_requests(hosts)))
        stack.enter_context(_attribute(calls, "minio", _bounded_minio(hosts)))
        stack.enter_context(_attribute(calls, "logging", SimpleNamespace(info=_log.debug, warning=_log.debug)))
        stack.enter_context(_environment(config.OPENML_SKIP_PARQUET_ENV_VAR, "false"))
        yield openml


def _import_openml() -> ModuleType:
    try:
        import openml
    except OSError:
        # The package makes folders in the user's home when it is imported. Where that cannot be written it
        # gets temporary ones; their names are not used later.
        with (
            tempfile.TemporaryDirectory() as folder,
            _environment("XDG_CONFIG_HOME", folder),
            _environment("OPENML_CACHE_DIR", folder),
        ):
            import openml
    module: ModuleType = openml
    return module


def _bounded_requests(hosts: HostMemory | None) -> SimpleNamespace:
    """Copy the names of `requests`, with sessions that have a time-out and know dead hosts."""
    import requests

    class BoundedSession(requests.Session):
        def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
            address = url.decode() if isinstance(url, bytes) else url
            refusal = _refusal(address, hosts)
            if refusal is not None:
                raise requests.exceptions.ConnectionError(refusal)
            kwargs["timeout"] = _TIMEOUT_SECONDS
            try:
                return super().request(method, url, *args, **kwargs)
            except requests.exceptions.RequestException as error:
                if hosts is not None:
                    hosts.note(address, error)
                raise

    return SimpleNamespace(**{**vars(requests), "Session": BoundedSession})


def _bounded_minio(hosts: HostMemory | None) -> SimpleNamespace:
    """Copy the names of `minio`, with clients that have short time-outs and know dead hosts."""
    import minio
    import urllib3

    class BoundedClient:
        def __init__(self, endpoint: str, secure: bool, http_client: urllib3.PoolManager | None = None) -> None:
            pool = http_client or urllib3.PoolManager()
            pool.connection_pool_kw["timeout"] = urllib3.Timeout(_TIMEOUT_SECONDS)
            pool.connection_pool_kw["retries"] = urllib3.Retry(
                total=_ATTEMPTS - 1, backoff_factor=0.2, status_forcelist=(500, 502, 503, 504)
            )
            self._pool = pool
            self._address = f"http://{endpoint}"
            self._client = minio.Minio(endpoint=endpoint, secure=secure, http_client=pool)

        def fget_object(self, **arguments: Any) -> None:
            refusal = _refusal(self._address, hosts)
            if refusal is not None:  # as a dead host would be reported: the package then turns to ARFF
                pool = self._pool.connection_from_url(self._address)
                raise urllib3.exceptions.MaxRetryError(pool, self._address, ConnectionError(refusal))
            try:
                self._client.fget_object(**arguments)
            except urllib3.exceptions.HTTPError as error:
                if hosts is not None:
                    hosts.note(self._address, error)
                raise

    return SimpleNamespace(**{**vars(minio), "Minio": BoundedClient})


def _refusal(url: str, hosts: HostMemory | None) -> str | None:
    if hosts is None:
        return f"{url} is not asked while data is read from a cache"
    return hosts.reason_for(url)


@contextmanager
def _attribute(owner: ModuleType, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


@contextmanager
def _level(logger: logging.Logger, level: int) -> Iterator[None]:
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
