"""What happens on the machine that runs a task of a cluster: files brought there, jobs run, an answer sent back."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import itertools
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trimbench.papers.execution.here import Workers
from trimbench.papers.execution.job import LOG_BYTES, Job, JobLimits, check_size, in_megabytes, to_plain
from trimbench.papers.execution.store import PROVENANCE, RUN_VARIABLE, WANTS, Record, deciding_versions
from trimbench.papers.execution.workers import LONGEST_LOG, TRACEBACK_CHARACTERS, Files, describe, failure
from trimbench.papers.files import remove_abandoned, user_cache, write
from trimbench.papers.validation import reason

_LONGEST_NAME = 100
_SENT = "sent"
_kept: dict[tuple[object, ...], Workers] = {}


class SentFile(NamedTuple):
    """A file that jobs read: its name in a folder of the cache, its place on the machine of the run, hash and bytes.

    A file of the user's own, which is in no cache, has a name in the folder ``sent``.
    """

    name: str
    path: Path
    sha256: str
    size: int

    @classmethod
    def of(cls, name: str, path: Path) -> SentFile:
        """Return the file at a path; `name` is empty for the user's own."""
        content = path.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        return cls(name or f"{_SENT}/{sha256}/{path.name}", path, sha256, len(content))

    @property
    def is_own(self) -> bool:
        """Whether the file is one of the user's own."""
        return self.name.startswith(f"{_SENT}/")

    def found(self) -> Path | None:
        """Return where this machine has a file as long as this one; what it holds, jobs verify."""
        folders = [Path(os.environ["TRIMBENCH_CACHE"])] if os.environ.get("TRIMBENCH_CACHE") else []
        own = [self.path] if self.is_own else []
        return next(filter(self.is_at, [*own, *(one / self.name for one in (*folders, user_cache()))]), None)

    def is_at(self, path: Path) -> bool:
        """Tell whether a file as long as this one is there."""
        with contextlib.suppress(OSError):
            return path.stat().st_size == self.size
        return False


class Terms(NamedTuple):
    """What all tasks of a run need: limits, a folder for logs, whose arrays to read, the run's versions and files."""

    limits: JobLimits
    logs: Path
    arrays_of: str | None
    versions: Mapping[str, str]
    files: tuple[SentFile, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job], files: Files, limits: JobLimits, logs: Path) -> Terms:
        """Return those of a run; the files of the user's own, which jobs name, are among the files."""
        own = sorted({path for job in jobs for _, path in job.places})
        sent = []
        for name, path in (*files.items(), *(("", Path(one)) for one in own)):
            with contextlib.suppress(OSError):  # the jobs will say so
                sent.append(SentFile.of(name, path))
        return cls(limits, logs, os.environ.get(RUN_VARIABLE), deciding_versions(), tuple(sent))


class NotBegun(Exception):  # noqa: N818 - an event of the cluster, not a mistake
    """A task could not begin on a machine, or is refused by it."""

    def __init__(self, machine: str, why: str, refused: bool) -> None:
        super().__init__(why)
        self.machine, self.refused = machine, refused


def run_task(
    jobs: Sequence[Job], terms: Terms, machine: str = "", fetch: Callable[[str], bytes] | None = None
) -> bytes:
    """Run the jobs of one task in a worker process, one after another; this is what a cluster calls on its machines.

    If a cluster runs several tasks of one sweep in the same process, they share the worker. `fetch` returns the content
    of a file by its hash. What is returned is data in a closed format, which is read without running anything: a line
    of JSON that names the machine, and the reason if the task could not begin; then one for each job, in order, with
    the text of its record, its log, and what the machine lacked.
    """
    try:
        here = deciding_versions()
        for name, version in terms.versions.items():
            if here.get(name, version) != version:
                why = f"it has {name} {here[name]}, and the run {version}"
                return json.dumps({"machine": machine, "error": why, "refused": True}).encode()
        own = _bring(terms.files, fetch)
        key = terms[:3]
        if key not in _kept:
            _stop_kept()
            os.environ.pop(RUN_VARIABLE, None)
            if terms.arrays_of:
                os.environ[RUN_VARIABLE] = terms.arrays_of
            _kept[key] = Workers(1, terms.limits, terms.logs)
        placed = [replace(job, places=tuple((text, own.get(path, path)) for text, path in job.places)) for job in jobs]
        records: dict[Job, Record] = {}
        _kept[key].run(placed, lambda record: records.update({record.job: record}))
        lines = [[record.to_json(), record.log, record.want] for record in map(records.__getitem__, jobs)]
        return "\n".join(json.dumps(line) for line in ({"machine": machine}, *lines)).encode()
    except Exception as error:  # noqa: BLE001  (whatever it was, it goes back as a text)
        return json.dumps({"machine": machine, "error": last_line(describe(error))}).encode()


def run_packed(jobs: bytes, terms: bytes, machine: str, fetch: Callable[[str], bytes]) -> bytes:
    """Run a task in a process of Ray, which has read neither jobs nor terms."""
    # A spawned process first runs the file of its parent's __main__, which here would take seconds to import Ray.
    vars(sys.modules["__main__"]).pop("__file__", None)
    return run_task(pickle.loads(jobs), pickle.loads(terms), machine, fetch)


def _bring(files: Sequence[SentFile], fetch: Callable[[str], bytes] | None) -> dict[str, str]:
    """Bring the files of a run, unless all are here, into the user's cache; return where those of the user's own are.

    Those of the user's own that no run has needed for a day are removed.
    """
    missing = [file for file in files if file.found() is None]
    if missing:
        if fetch is None:
            example = f"for example {missing[0].path}"
            raise FileNotFoundError(
                f"{len(missing)} of the {len(files)} files that the run reads are not here, {example}"
            )
        remove_abandoned((user_cache() / _SENT).glob("*"))
        for file in files:
            place = user_cache() / file.name
            if not file.is_at(place):
                keep(place, fetch(file.sha256))
    own = {str(file.path): found for file in files if file.is_own and (found := file.found())}
    for found in own.values():
        if found.is_relative_to(user_cache() / _SENT):
            os.utime(found.parent)
    return {path: str(found) for path, found in own.items()}


def keep(path: Path, content: bytes) -> None:
    """Write a file, and its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, lambda temporary: temporary.write_bytes(content))


def read_answer(answer: object, jobs: Sequence[Job]) -> tuple[str, list[Record]]:
    """Read what `run_task` returned elsewhere: the machine and the records; raise `NotBegun` if it did not begin.

    Nothing in it is trusted: what is not the record of its job, as a job of this program could have written it, is a
    failure of this job alone.
    """
    if not isinstance(answer, bytes):
        raise RuntimeError(f"a task must send back bytes, got {type(answer).__name__}")
    first, *lines = answer.split(b"\n")
    machine = ""
    with contextlib.suppress(ValueError, RecursionError):
        head = json.loads(first)
        if isinstance(head, dict):
            machine = str(head.get("machine", ""))[:_LONGEST_NAME]
            if machine and isinstance(head.get("error"), str):
                raise NotBegun(machine, reason(ValueError(head["error"])), head.get("refused") is True)
    every = zip(jobs, itertools.chain(lines, itertools.repeat(b"")), strict=False)
    return machine, [_record(job, line) for job, line in every]


def _record(job: Job, line: bytes) -> Record:
    """Return the record of a job in a line that came from elsewhere."""
    try:
        text, log, want = json.loads(line)
        if not isinstance(text, str) or not isinstance(log, str) or len(log) > LONGEST_LOG or want not in ("", *WANTS):
            raise ValueError(f"it must be the text of a record, a log of at most {in_megabytes(LOG_BYTES)} and a want")
        record = Record.of(job, text)
        check_size(job.function, to_plain(record.result, "result"))
        if len(record.error or "") > 2 * TRACEBACK_CHARACTERS or not PROVENANCE.holds(record.provenance):
            raise ValueError(f"it must have a short error, and provenance that is {PROVENANCE.words}")
    except (ValueError, TypeError, RecursionError) as error:
        return failure(job, "failed", f"what its task sent back is not used: {reason(error)}", 0.0)
    return replace(record, log=log, want=want)


_reading = threading.local()


@contextmanager
def only_data() -> Iterator[None]:
    """Refuse to look up any function or class that a pickle names, in this thread."""
    _watch_pickles()
    _reading.only_data = True
    try:
        yield
    finally:
        _reading.only_data = False


@functools.cache
def _watch_pickles() -> None:
    """Add the hook of `only_data`: Python itself asks it, whatever library reads the pickle, and never lets it go."""

    def refuse(event: str, _: object) -> None:
        if event == "pickle.find_class" and getattr(_reading, "only_data", False):
            raise pickle.UnpicklingError("a task must send back bytes, got an object")

    sys.addaudithook(refuse)


def last_line(text: str) -> str:
    """Return the last line of a text."""
    return text.strip().rpartition("\n")[2]


@atexit.register
def _stop_kept() -> None:
    while _kept:
        with contextlib.suppress(OSError):
            _kept.popitem()[1].close()
