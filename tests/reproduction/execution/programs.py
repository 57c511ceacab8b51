"""Sweeps, in this process and in programs that tests may kill."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from trimbench.reproduction.execution.executors import TARGETS, Executor
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import Record

from . import sample_jobs

# Ray and submitit leave processes to the garbage collector.
ON_CLUSTER = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# One cluster serves all tests that have these marks; Ray's own code warns of what it will change.
ON_RAY = [
    *ON_CLUSTER,
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
PROGRAM = """
import sys
from importlib import import_module
from pathlib import Path
sys.path[:0] = {paths!r}
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.executors import run_jobs
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.execution.executors import executor_of
if __name__ == "__main__":
    jobs = import_module({module!r})
    sweep = [Job.create(getattr(jobs, {function!r}), {{**{shared!r}, {axis!r}: n}}) for n in range({n})]
    run_jobs(sweep, JobStore(Path({folder!r})), executor_of({options!r}))
"""


def squares(n: int) -> list[Job]:
    return [Job.create(sample_jobs.square, {"x": x}) for x in range(n)]


def run(executor: Executor, jobs: Sequence[Job]) -> dict[str, Record]:
    """Run jobs, each of which must give exactly one record; return these by key."""
    records: list[Record] = []
    executor.run(jobs, records.append)
    assert sorted(record.job.key for record in records) == sorted(job.key for job in jobs)
    return {record.job.key: record for record in records}


def start_program(
    folder: Path, kind: str, function: str, axis: str, n: int, shared: dict[str, object], **options: object
) -> "subprocess.Popen[str]":
    """Start a sweep in its own program, a script that spawned workers can import."""
    script = folder.parent / "program.py"
    if kind == "processes":
        options = {"workers": 2, **options}
    options["_target_"] = TARGETS[("serial", "processes", "ray", "slurm").index(kind)]
    names = {"paths": sys.path, "module": sample_jobs.__name__, "folder": str(folder)}
    script.write_text(PROGRAM.format(options=options, function=function, axis=axis, n=n, shared=shared, **names))
    command = [sys.executable, str(script)]
    printed = folder.parent / "printed"
    with printed.open("a") as out:
        program = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    program.stdout = printed.open()  # what `communicate` reads
    return program


def wait_for(condition: Callable[[], bool], *programs: "subprocess.Popen[str]") -> None:
    """Wait until something happens, but no longer than the programs run that should bring it about."""
    limit = time.monotonic() + 120.0
    while not condition():
        for program in programs:
            assert program.poll() is None or condition(), f"it ended with {program.poll()}: {program.communicate()[0]}"
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


HOLDER = """
import sys, time
from pathlib import Path
from trimbench.reproduction.files import make_temporary_folder
print(make_temporary_folder(Path(sys.argv[1]), sys.argv[2]), flush=True)
time.sleep(600)
"""


@contextmanager
def held_elsewhere(room: Path, stem: str = "trimbench") -> Iterator[Path]:
    """Yield the folder of another process, which is then killed."""
    words = [sys.executable, "-c", HOLDER, str(room), stem]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            yield Path(holder.stdout.readline().strip())
        finally:
            holder.kill()
