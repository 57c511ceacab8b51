"""A watch on running jobs: those that hold too much memory are ended, and logs that grow too long are cut."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from trimbench.papers.execution.job_log import shorten_file
from trimbench.papers.execution.limits import LOG_BYTES

_PROC = Path("/proc")
# A process can fill some 100 MB between two looks. Without a limit of memory, only the logs are looked at.
_LOOK_SECONDS, _LOG_SECONDS = 0.05, 0.5
_KIBI = 1024


class Running(NamedTuple):
    """What a worker writes into shared memory when it takes a job.

    `started` is on the monotonic clock, `left` has the bytes that earlier jobs have left in the worker, and `pid` is
    its process number, 0 until the others are there.
    """

    started: float
    left: float
    pid: int


def can_measure() -> bool:
    """Tell whether the memory of a process can be measured here, as on Linux."""
    return (_PROC / "self/status").is_file()


def memory_held(pid: int) -> int:
    """Return the bytes that a process and those that it started hold, in memory or swapped out; 0 if it has ended.

    Files that are only mapped count too, as far as they are in memory. Pages that several of them share count once.
    """
    tree = process_tree(pid)
    shared = len(tree) > 1
    return sum(_held_by(one, shared) for one in tree) * _KIBI


def process_tree(pid: int) -> list[int]:
    """Return a process and all that it started, as far as the system tells; those above come first."""
    tree = [pid]
    for one in tree:  # which grows meanwhile
        for thread in _threads(one):
            with contextlib.suppress(OSError):  # ended meanwhile
                tree += map(int, (thread / "children").read_text().split())
    return tree


def _threads(pid: int) -> list[Path]:
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except OSError:  # ended
        return []


class Watch:
    """A thread that looks at the workers of this process.

    `running` returns what the workers say of their jobs, `logs` the files of the jobs that may be running. `over` has
    the job that each worker was ended for, by its process number, with the bytes that were held.
    """

    def __init__(
        self,
        limit: int | None,
        running: Callable[[], Sequence[Running]],
        logs: Callable[[], Collection[Path]],
    ) -> None:
        self.over: dict[int, tuple[Running, int]] = {}
        self._limit, self._running, self._logs = limit, running, logs
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch-jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        n_looks, looks_for_logs = 0, 1 if self._limit is None else round(_LOG_SECONDS / _LOOK_SECONDS)
        while not self._end.wait(_LOG_SECONDS if self._limit is None else _LOOK_SECONDS):
            if self._limit is not None:
                self._end_large(self._limit)
            if n_looks % looks_for_logs == 0:
                for log in self._logs():
                    with contextlib.suppress(OSError):  # the job has ended
                        shorten_file(log, 2 * LOG_BYTES)
            n_looks += 1

    def _end_large(self, limit: int) -> None:
        # Of the jobs that a worker took, the last is running, or has just ended.
        for job in {one.pid: one for one in sorted(self._running()) if one.pid and one.pid not in self.over}.values():
            held = memory_held(job.pid) if _is_child(job.pid) else 0
            if held > limit:
                self.over[job.pid] = job, held
                for pid in process_tree(job.pid):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)


def _is_child(pid: int) -> bool:
    """Tell whether a process is one that this one started: the number of one that has ended may be another's."""
    return _kibibytes(_PROC / str(pid) / "status", ("PPid:",)) == [os.getpid()]


def _held_by(pid: int, shared: bool) -> int:
    """Return the kibibytes that one process holds, with its part of the pages that are `shared`, if they are."""
    parts = _kibibytes(_PROC / str(pid) / "smaps_rollup", ("Pss:", "SwapPss:")) if shared else []
    return sum(parts or _kibibytes(_PROC / str(pid) / "status", ("VmRSS:", "VmSwap:")))


def _kibibytes(path: Path, names: Collection[str]) -> list[int]:
    """Return the numbers after some names in a file of the system; none if the process has ended."""
    try:
        lines = [line.split() for line in path.read_text(errors="replace").splitlines()]
    except OSError:
        return []
    return [int(words[1]) for words in lines if words and words[0] in names]
