"""Ray tasks as the workers of a proof: pieces run on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from trimbench._extras import required


class RayTasks:
    """Runs the pieces of a proof as tasks of a Ray cluster, for `executor` of `trim`.

    A piece that is lost with its machine raises an error, and `trim` opens its nodes again: Ray does not repeat it.

    Parameters
    ----------
    address : str, optional
        Where the cluster is, as `ray.init` takes it. Default: the one to which this process is connected or that
        ``RAY_ADDRESS`` names, otherwise a new one on this machine. All its machines need this version of trimbench.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    ConnectionError
        If there is no cluster at the address.
    """

    def __init__(self, address: str | None = None) -> None:
        (ray,) = required("ray", extra="ray", what="RayTasks")
        if not ray.is_initialized():
            ray.init(address, log_to_driver=False)
        self._run = ray.remote(num_cpus=1, max_retries=0)(_returned)

    def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
        """Run a function of a module in a task."""
        future: Future[bytes] = self._run.remote(function, *args).future()
        return future


def _returned(function: Callable[..., bytes], *args: Any) -> bytes:
    return function(*args)
