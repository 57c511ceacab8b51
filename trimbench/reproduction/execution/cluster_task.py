"""Tasks of a cluster, on the machine that runs one: files are brought there, jobs run, and an answer goes back."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import itertools
import json
import logging
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trimbench.reproduction.children import run
from trimbench.reproduction.execution.executors import (
    LONGEST_LOG,
    TRACEBACK_CHARACTERS,
    ExecutorError,
    Files,
    describe,
    failure,
)
from trimbench.reproduction.execution.job import LOG_BYTES, Job, JobLimits, check_size, in_megabytes, to_plain
from trimbench.reproduction.execution.processes import Workers
from trimbench.reproduction.execution.provenance import PROVENANCE, deciding_versions
from trimbench.reproduction.execution.store import RUN_VARIABLE, Record
from trimbench.reproduction.files import opened, remove_abandoned, user_cache, write_bytes
from trimbench.reproduction.messages import reason, visible
from trimbench.reproduction.project import project
from trimbench.reproduction.project_folder import take_up

_LONGEST_NAME = 100
_SENT, _SHA256 = "sent", re.compile("[0-9a-f]{64}")
_kept: dict[tuple[object, ...], Workers] = {}


class SentFile(NamedTuple):
    """A file that jobs read: its name in a folder of the cache, its path on the machine of the run, and its hash.

    A file of the user's own, which is not in the cache, has a name in the folder ``sent``.
    """

    name: str
    path: Path
    sha256: str

    @property
    def is_own(self) -> bool:
        """Whether the file is one of the user's own."""
        return self.name.startswith(f"{_SENT}/")

    def content(self, read: Callable[[], bytes]) -> bytes:
        """Return what `read` gives; raise ExecutorError if it is not what the file held when the run began."""
        with contextlib.suppress(OSError):
            if hashlib.sha256(content := read()).hexdigest() == self.sha256:
                return content
        raise ExecutorError(f"{self.path} is gone, or is not what it was when the run began; run again")

    def found(self) -> Path | None:
        """Return the path of a copy on this machine, None if there is none."""
        folders = os.environ.get(project().cache_variable) or user_cache(), user_cache()
        for place in (*([self.path] if self.is_own else []), *(Path(folder, self.name) for folder in folders)):
            with contextlib.suppress(OSError):
                if _sha256(place, place.stat().st_mtime_ns) == self.sha256:
                    return place
        return None


@functools.cache
def _sha256(place: Path, changed: int) -> str:
    """Return the hash of a file, computed once in this process unless its time of change differs."""
    with opened(place) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Terms(NamedTuple):
    """What all tasks of a run need: limits, logs, the run whose arrays to read, versions, files and the project."""

    limits: JobLimits
    logs: Path
    arrays_of: str
    versions: Mapping[str, str]
    files: tuple[SentFile, ...]
    project: str

    @classmethod
    def of(cls, jobs: Sequence[Job], files: Files, limits: JobLimits, logs: Path) -> Terms:
        """Return the terms of a run; files of the user's own that jobs name are among its files."""
        own = sorted({path for job in jobs for _, path in job.places})
        sent = []
        for name, path in (*files.items(), *(("", Path(one)) for one in own)):
            with contextlib.suppress(OSError):  # the jobs that need it will fail and say so
                sha256 = _sha256(path, path.stat().st_mtime_ns)
                sent.append(SentFile(name or f"{_SENT}/{sha256}/{path.name}", path, sha256))
        return cls(
            limits, logs, os.environ.get(RUN_VARIABLE, ""), deciding_versions(), tuple(sent), project().reference
        )


def run_task(
    jobs: Sequence[Job], terms: Terms, machine: str = "", fetch: Callable[[str], bytes] | None = None
) -> bytes:
    """Run the jobs of one task in a worker process, one after another; a cluster calls this on its machines.

    If a cluster runs several tasks of one sweep in the same process, they share the worker. `fetch` returns the content
    of a file by its hash. The answer is plain data, which can be read without running anything: a line of JSON with the
    name of the machine and, if it can run no job, the reason; then one for each job, in order, with the text of its
    record, its log, and whether the machine lacked something.
    """
    try:
        if terms.project:
            take_up(terms.project)
        here = deciding_versions()
        for name, version in terms.versions.items():
            if here.get(name, version) != version:
                why = f"it has {name} {here[name]}, and the run {version}"
                return json.dumps({"machine": machine, "error": why}).encode()
        own = _bring(terms.files, fetch)
        key = terms[:3]
        if key not in _kept:
            _stop_kept()
            os.environ[RUN_VARIABLE] = terms.arrays_of
            _kept[key] = Workers(1, terms.limits, terms.logs)
        placed = [replace(job, places=tuple((text, own.get(path, path)) for text, path in job.places)) for job in jobs]
        records: dict[Job, Record] = {}
        _kept[key].run(placed, lambda record: records.update({record.job: record}))
        lines = [[record.to_json(), record.log, record.lacking] for record in map(records.__getitem__, jobs)]
        return "\n".join(json.dumps(line) for line in ({"machine": machine}, *lines)).encode()
    except Exception as error:  # noqa: BLE001  (whatever it is, it goes back as text)
        return json.dumps({"machine": machine, "error": last_line(describe(error))}).encode()


def _bring(files: Sequence[SentFile], fetch: Callable[[str], bytes] | None) -> dict[str, str]:
    """Bring the files of a run that are missing here into the user's cache; return where those of the user's own are.

    Earlier files of a user's own that no run has needed for a day are removed first.
    """
    missing = [file for file in files if file.found() is None]
    if missing:
        if fetch is None:
            n, example = f"{len(missing)} of the {len(files)}", f"for example {missing[0].path}"
            raise FileNotFoundError(f"{n} files that the run reads are not here, {example}")
        remove_abandoned(one for one in (user_cache() / _SENT).glob("*") if _SHA256.fullmatch(one.name))
        for file in missing:
            write_bytes(file.content(functools.partial(fetch, file.sha256)), user_cache() / file.name)
    own = {str(file.path): str(file.found()) for file in files if file.is_own}
    for found in map(Path, own.values()):
        if found.is_relative_to(user_cache() / _SENT):
            os.utime(found.parent)
    return own


def read_answer(answer: bytes, jobs: Sequence[Job]) -> tuple[str, str, list[Record]]:
    """Read what `run_task` returned elsewhere: the machine, why it can run no job (or an empty text), and the records.

    Nothing in it is trusted: a job whose line is not a record that this program could have written for it has failed;
    the others are not affected.
    """
    first, *lines = answer.split(b"\n")
    machine = ""
    with contextlib.suppress(ValueError, RecursionError):
        head = json.loads(first)
        if isinstance(head, dict):
            machine = str(head.get("machine", ""))[:_LONGEST_NAME]
            if machine and isinstance(head.get("error"), str):
                return machine, reason(ValueError(head["error"])), []
    every = zip(jobs, itertools.chain(lines, itertools.repeat(b"")), strict=False)
    return machine, "", [_record(job, line) for job, line in every]


def _record(job: Job, line: bytes) -> Record:
    """Return the record of a job from a line that came from elsewhere; a line that is not one is a failure."""
    try:
        text, log, lacking = json.loads(line)
        if [*map(type, (text, log, lacking))] != [str, str, bool] or len(log) > LONGEST_LOG:
            raise ValueError(f"it must have a record, a log of at most {in_megabytes(LOG_BYTES)}, and what it lacked")
        record = Record.of(job, text)
        check_size(job.function, to_plain(record.result, "result"))
        if len(record.error or "") > 2 * TRACEBACK_CHARACTERS or not PROVENANCE.holds(record.provenance):
            raise ValueError(f"it must have a short error, and provenance that is {PROVENANCE.words}")
    except (ValueError, TypeError, RecursionError) as error:
        return failure(job, "failed", f"what its task sent back is not used: {reason(error)}", 0.0)
    return replace(record, log=visible(log), lacking=lacking and not record.ok)


_reading = threading.local()


_add_hook = functools.cache(sys.addaudithook)


@contextmanager
def only_data() -> Iterator[None]:
    """Let this thread unpickle plain data only: looking up a function or class raises UnpicklingError."""
    _add_hook(_refuse_objects)
    _reading.only_data = True
    try:
        yield
    finally:
        _reading.only_data = False


def _refuse_objects(event: str, _: object) -> None:
    """Raise within `only_data`: an audit hook is called whatever library unpickles, and stays for the whole process."""
    if event == "pickle.find_class" and getattr(_reading, "only_data", False):
        raise pickle.UnpicklingError("a task must send back bytes, got an object")


# Questions to Slurm, and the function that submitit calls on its machines.

_SINFO_SECONDS = 30.0

ANSWER = ".json"  # beside submitit's own file with the result


def write_task(jobs: Sequence[Job], terms: Terms) -> None:
    """Run a task in a process of submitit, and write its answer beside submitit's own files."""
    import submitit

    place = submitit.JobEnvironment().paths.result_pickle.with_suffix(ANSWER)
    write_bytes(run_task(jobs, terms, this_machine()), place)


def machines_of(partition: str | None, *, is_local: bool) -> dict[str, str]:
    """Return this machine, or the responding nodes of Slurm; if it names none, a warning says why."""
    if is_local:
        return {this_machine(): this_machine()}
    command, why = ["sinfo", "-hrN", "-o%N", *([f"-p{partition}"] if partition else [])], "it named none"
    try:
        said = run(command, capture_output=True, check=True, timeout=_SINFO_SECONDS).stdout
        if names := said.decode(errors="replace").split():
            return dict(zip(names, names, strict=True))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        why = f"{error} {last_line((error.stderr or b'').decode(errors='replace'))}"
    logging.getLogger(__name__).warning("The nodes are not tried first, as sinfo did not name them: %s", why)
    return {}


def this_machine() -> str:
    """Return the name of this machine, as Slurm calls it."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def last_line(text: str) -> str:
    """Return the last line of a text."""
    return text.strip().rpartition("\n")[2]


@atexit.register
def _stop_kept() -> None:
    while _kept:
        with contextlib.suppress(OSError):
            _kept.popitem()[1].close()
