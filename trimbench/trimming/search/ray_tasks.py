"""Ray tasks as the workers of a proof: pieces run on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from trimbench._extras import required


class RayTasks:
    """Runs the pieces of a proof as tasks of a Ray cluster, for `executor` of `trim`.

    A piece that is lost with its machine raises an error, and `trim` opens its nodes again: Ray does not repeat it.
    This process must be connected to a cluster (``ray.init(address)``), all of whose machines have this version of
    trimbench.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    ConnectionError
        If this process is not connected to a cluster.
    """

    def __init__(self) -> None:
        (ray,) = required("ray", extra="ray", what="RayTasks")
        if not ray.is_initialized():
            raise ConnectionError("RayTasks needs a connection to a Ray cluster; call ray.init with its address first")
        self._run = ray.remote(num_cpus=1, max_retries=0)(_returned)

    def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
        """Run a function of a module in a task."""
        future: Future[bytes] = self._run.remote(function, *args).future()
        return future


def _returned(function: Callable[..., bytes], *args: Any) -> bytes:
    return function(*args)
