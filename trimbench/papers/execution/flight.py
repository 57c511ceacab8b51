"""The jobs that worker processes have in hand, and what became of each."""

import concurrent.futures
import multiprocessing
import time
from collections.abc import MutableSequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.papers.execution.job import Job
from trimbench.papers.execution.job_log import take
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.workers import describe, failure, work

if TYPE_CHECKING:
    from pebble import ProcessPool

# Two jobs in flight per worker: one runs and one waits in the pipe, so that no worker idles while the parent
# stores a record. pebble counts a limit from the moment a worker takes the job, so the one that waits loses
# nothing.
JOBS_PER_WORKER = 2
_IDLE_SECONDS = 0.5


class Flight:
    """The jobs that a pool has in hand, each with a place in shared memory.

    There the worker writes when it took the job, and its process number. pebble by itself would wait for ever
    for the job of a worker that ended with exit code 0 (``os._exit(0)``, or C code that calls ``exit``), and
    when a whole pool breaks it does not tell which job was lost.
    """

    def __init__(self, pool: "ProcessPool", starts: MutableSequence[float], timeout: float | None, logs: Path) -> None:
        self.jobs: dict[Future[Record], tuple[Job, int]] = {}
        self.broken = False
        self._pool = pool
        self._starts = starts
        self._timeout = timeout
        self._logs = logs
        self._free = list(range(len(starts) // 2))
        self._suspects: set[Future[Record]] = set()

    def launch(self, job: Job) -> bool:
        """Give a job to the pool; False if all places are taken or the pool just broke."""
        if not self._free:
            return False
        place = self._free[-1]
        self._starts[2 * place] = self._starts[2 * place + 1] = 0.0
        try:
            future = self._pool.schedule(work, args=(job, place, self._logs / job.key), timeout=self._timeout)
        except RuntimeError:
            self.broken = True
            return False
        self.jobs[future] = (job, self._free.pop())
        return True

    def land(self) -> list[tuple[Job, Record | None]]:
        """Wait a moment for jobs to end and take them out; None as a record asks to run the job again."""
        done, _ = concurrent.futures.wait(self.jobs, _IDLE_SECONDS, concurrent.futures.FIRST_COMPLETED)
        self.broken = self.broken or not self._pool.active
        landed = []
        for future in list(self.jobs) if self.broken else done or self._find_lost():
            job, place = self.jobs.pop(future)
            self._free.append(place)
            landed.append((job, self._outcome(future, job, place)))
            future.cancel()  # tells pebble to forget a lost job; nothing happens to one that is done
        return landed

    def _find_lost(self) -> set[Future[Record]]:
        """Jobs whose worker is gone though pebble has not noticed for two looks in a row."""
        alive = _children()
        gone = {future for future, (_, place) in self.jobs.items() if self._pid(place) not in alive | {0}}
        lost = {future for future in gone & self._suspects if not future.done()}
        self._suspects = gone
        return lost

    def _outcome(self, future: Future[Record], job: Job, place: int) -> Record | None:
        from pebble import ProcessExpired

        pid = self._pid(place)
        seconds = time.monotonic() - self._starts[2 * place] if pid else 0.0
        error = future.exception() if future.done() else BrokenProcessPool()
        if error is None:
            return future.result()
        log = take(self._logs / job.key)
        if isinstance(error, BrokenProcessPool):
            if pid and pid not in _children():
                return failure(job, "crashed", "the worker process ended without a result", seconds, log)
            return None
        if isinstance(error, TimeoutError):
            return failure(job, "timeout", f"stopped at the limit of {self._timeout:g} seconds per job", seconds, log)
        if isinstance(error, ProcessExpired):
            return failure(job, "crashed", f"the worker process died with exit code {error.exitcode}", seconds, log)
        return failure(job, "failed", describe(error), seconds, log)

    def _pid(self, place: int) -> int:
        return int(self._starts[2 * place + 1])


def _children() -> set[int | None]:
    return {process.pid for process in multiprocessing.active_children()}
