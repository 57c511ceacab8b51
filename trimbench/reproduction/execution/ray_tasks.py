"""Ray as an executor of `concurrent.futures`: for programs that hand out pieces of one computation themselves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self

from trimbench.reproduction.execution.cluster_task import only_data
from trimbench.reproduction.execution.remote import RayExecutor


class RayTasks:
    """Runs functions of modules, which take and return bytes, as tasks of a Ray cluster with one processor each.

    The modules must be installed on its machines. A task whose machine or process ends is not tried again: its future
    raises the error of Ray. The end of the ``with`` block ends the tasks that still run.

    Parameters
    ----------
    cluster : RayExecutor, optional
        Which cluster. Default: one is started on this machine.
    """

    def __init__(self, cluster: RayExecutor | None = None) -> None:
        self._ray = (cluster or RayExecutor()).connected_ray()
        self._lock, self._waiting = threading.Lock(), dict[Any, threading.Thread]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            waiting = dict(self._waiting)
        for task in waiting:
            with contextlib.suppress(Exception):
                self._ray.cancel(task, force=True)
        for thread in waiting.values():
            thread.join(timeout=5.0)

    def submit(self, function: Callable[..., bytes], /, *args: bytes) -> Future[bytes]:
        """Run a function; its answer is read as bytes and never as another object, which could run anything."""
        future: Future[bytes] = Future()
        future.set_running_or_notify_cancel()
        task = self._ray.remote(num_cpus=1, max_retries=0)(function).remote(*args)
        # Ray's own futures would make an object of whatever comes.
        thread = threading.Thread(target=self._wait, args=(task, future), daemon=True)
        with self._lock:
            self._waiting[task] = thread
        thread.start()
        return future

    def _wait(self, task: Any, future: Future[bytes]) -> None:
        try:
            with only_data():
                answer = self._ray.get(task)
            if not isinstance(answer, bytes):
                raise TypeError(f"a task must send back bytes, got {type(answer).__name__}")
            future.set_result(answer)
        except Exception as error:  # noqa: BLE001  (it belongs to who waits for the future)
            future.set_exception(error)
        finally:
            with self._lock:
                self._waiting.pop(task, None)
