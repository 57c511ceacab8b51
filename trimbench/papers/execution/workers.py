"""What happens around one job, in a worker process or in the calling one."""

import contextlib
import multiprocessing
import os
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import MutableSequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from trimbench.papers.execution.functions import code_version, resolve
from trimbench.papers.execution.homes import without_homes
from trimbench.papers.execution.job import Job, run_job_function
from trimbench.papers.execution.job_log import BoundedText, take, written_to
from trimbench.papers.execution.provenance import provenance
from trimbench.papers.execution.store import Record
from trimbench.papers.execution.watch import memory_held

_TRACEBACK_FRAMES = 5
_TRACEBACK_CHARACTERS = 4000
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

# Set once by `prepare_worker`: shared memory can only be handed over when a process starts, not with each job.
_starts: ContextVar[MutableSequence[float]] = ContextVar("_starts")
# What this worker held before its first job.
_fresh: ContextVar[int] = ContextVar("_fresh")


def execute(job: Job) -> Record:
    """Run one job in this process; its record is "ok" or "failed". Ctrl-C ends the program, not only the job."""
    said = BoundedText()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        record = _attempt(job, (Exception, SystemExit))
    return replace(record, log=without_homes(said.shortened()))


def _attempt(job: Job, caught: tuple[type[BaseException], ...]) -> Record:
    """Run one job; an exception of these types is its failure. The import of its module does not count as its time."""
    started = time.perf_counter()
    try:
        # Python shows a warning once for each place in the code: within this block, once in each job.
        with warnings.catch_warnings():
            resolve(job.function)
            code_version(job.function)
            started = time.perf_counter()
            result = run_job_function(job)
    except caught as error:  # a failing job is a row of the report, whatever it raised
        return failure(job, "failed", describe(error), time.perf_counter() - started)
    return Record(job, "ok", result, None, time.perf_counter() - started, provenance())


def failure(job: Job, status: str, error: str, seconds: float, log: str = "") -> Record:
    """Make the record of a job without a result; no home folder is in it."""
    return Record(job, status, None, without_homes(error), seconds, provenance(), log=without_homes(log))


def describe(error: BaseException) -> str:
    """Write the traceback of an exception, cut to its last frames and to a length that fits a table.

    Text survives where the exception itself does not: many exceptions cannot be pickled or unpickled.
    """
    text = "".join(traceback.format_exception(error, limit=-_TRACEBACK_FRAMES)).strip()
    return text if len(text) <= _TRACEBACK_CHARACTERS else f"...{text[-_TRACEBACK_CHARACTERS:]}"


def prepare_worker(starts: MutableSequence[float], temporary: Path) -> None:
    """Set up a new worker process: one thread for linear algebra, its temporary files, and an end with its parent.

    The shared array `starts` has the numbers of `watch.Running` for each job in hand, which `work` fills in. The owner
    of the folder `temporary` removes it, even if the worker is killed.
    """
    import threadpoolctl

    _starts.set(starts)
    # With a thread for each processor, several workers would be slower than one. The variables reach the libraries that
    # a job loads later, threadpoolctl those that are loaded already.
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    threadpoolctl.threadpool_limits(1)
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    _fresh.set(memory_held(os.getpid()))
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def work(job: Job, place: int, log: Path) -> Record:
    """Run one job in a worker that `prepare_worker` set up. Nothing is raised.

    `place` is where in the shared array to write what `watch.Running` has; the file `log` keeps what the job, C code
    and child processes write, until there is a record.
    """
    starts = _starts.get()
    starts[3 * place] = started = time.monotonic()
    starts[3 * place + 1] = memory_held(os.getpid()) - _fresh.get()
    starts[3 * place + 2] = os.getpid()  # last: a reader takes a process number as the sign that all are there
    try:
        with written_to(log):
            record = _attempt(job, (BaseException,))  # workers ignore Ctrl-C, so the job itself must have raised it
        return replace(record, log=without_homes(take(log)))
    except BaseException as error:  # noqa: BLE001  (a log that cannot be written, or a job that broke its streams)
        return failure(job, "failed", describe(error), time.monotonic() - started)


def _end_with_parent() -> None:
    """Wait for the parent to die by ``kill -9`` or the like, which leaves it no time to stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        for child in multiprocessing.active_children():
            child.terminate()
        os._exit(1)
