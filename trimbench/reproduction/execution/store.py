"""Records of finished jobs, one JSON file each, with their provenance; arrays that several jobs share."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import json
import logging
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trimbench.reproduction.execution.job import RESULT_BYTES, Job, canonical_json, check_result, to_plain
from trimbench.reproduction.files import (
    lock,
    opened,
    put_aside,
    read_bytes,
    remove_abandoned,
    sealed,
    turn,
    unsealed,
    user_cache,
    write_bytes,
)
from trimbench.reproduction.settings import Json
from trimbench.reproduction.world import world

if TYPE_CHECKING:
    import numpy as np


_STORED_STATUSES = ("ok", "failed", "timeout", "memory", "crashed")
_STATUSES = (*_STORED_STATUSES, "missing")
_log = logging.getLogger(__name__)
# A record begins with the hash of what follows it.
_HASH = re.compile(rb'\{"sha256":"([0-9a-f]{64})",')
# The fields that `JobStore.glance` wants come next: this much of a file holds them, and this is how they look.
_HEAD_BYTES = 288
_HEAD = re.compile(_HASH.pattern + rb'"key":"([0-9a-f]{64})","status":"(\w+)","seconds":([0-9.e+-]+),')
_END = b"}\n"
_MINUTE_SECONDS = 60.0
# The names that `_beside` gives: of records, logs, and the file by which a writable folder is known.
_TEMPORARY = re.compile(r"([0-9a-f]{64}|probe(\.[0-9a-f]{16})?)\.[0-9a-f]{16}\.tmp")
_FIELDS = {"sha256", "key", "status", "seconds", "job", "result", "error", "provenance"}


@dataclass(frozen=True)
class Record:
    """The outcome of a job, and where and with what it ran.

    Attributes
    ----------
    status : {"ok", "failed", "timeout", "memory", "crashed", "missing"}
        "failed" means an exception, "timeout" and "memory" a job over its limit, "crashed" a dead worker, "missing" a
        job that is neither stored nor run.
    result : dict or None
        What the function returned; None unless the status is "ok".
    error : str or None
        A short traceback or a sentence; None if the status is "ok".
    seconds : float
        Wall time of the function.
    log : str
        What the job wrote while it ran. The store keeps it beside the record; it is not compared.
    lacking : bool
        Whether the job failed for want of what another machine may have. It is neither written nor compared.
    cached : bool
        Whether the record came from a store in this run. It is neither written nor compared.
    """

    job: Job
    status: str
    result: dict[str, Json] | None
    error: str | None
    seconds: float
    provenance: dict[str, Json]
    log: str = field(default="", compare=False)
    lacking: bool = field(default=False, compare=False)
    cached: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise ValueError(f"status must be one of {', '.join(_STATUSES)}, got {self.status!r}")
        if (self.status == "ok") != isinstance(self.result, dict):
            raise ValueError(f"result must be a dict exactly when status is 'ok', got {self.result!r}")

    @property
    def ok(self) -> bool:
        """Whether the job succeeded."""
        return self.status == "ok"

    def to_json(self) -> str:
        """Return the record as one line of JSON that begins with a hash of the rest, by which any change is noticed."""
        fields = {
            "key": self.job.key,
            "status": self.status,
            "seconds": self.seconds,
            "job": self.job.to_dict(),
            "result": to_plain(self.result, "result"),
            "error": self.error,
            "provenance": to_plain(self.provenance, "provenance"),
        }
        text = json.dumps(fields, allow_nan=False, separators=(",", ":"))[1:]
        return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}",{text}'

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read a record that `to_json` wrote; raise ValueError if anything in it was changed."""
        content = (text.encode() if isinstance(text, str) else text).removesuffix(b"\n")
        try:
            head = _HASH.match(content)
            if head is None:
                raise ValueError("it does not begin with a hash of its content")
            if hashlib.sha256(content[head.end() :]).hexdigest() != head[1].decode():
                raise ValueError("its content does not have the hash that it states")
            fields = json.loads(content)
            if fields.keys() != _FIELDS:
                raise ValueError(f"its fields must be {', '.join(sorted(_FIELDS))}, got {sorted(fields)}")
            job = Job.from_dict(fields["job"])
            if fields["key"] != job.key:
                raise ValueError(f"key must be that of the job in the record, got {fields['key']!r}")
            error, provenance, seconds = fields["error"], fields["provenance"], fields["seconds"]
            if not (error is None or isinstance(error, str)) or not isinstance(provenance, dict):
                raise ValueError("error must be text or null and provenance must be an object")
            if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
                raise ValueError(f"seconds must be a number, 0 or more, got {seconds!r}")
            return cls(job, fields["status"], fields["result"], error, float(seconds), provenance)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"not a readable record: {error!r}; run the job again") from error

    @classmethod
    def of(cls, job: Job, text: str | bytes) -> Record:
        """Read the record of a finished run of this job, with a result that its function declares.

        Raises ValueError for anything else.
        """
        record = cls.from_json(text)
        if record.job != job or record.status not in _STORED_STATUSES:
            raise ValueError("it is not the record of a finished run of this job")
        if record.result is not None:
            check_result(job.function, record.result)
        return replace(record, job=job)


class Glance(NamedTuple):
    """The status of a stored record, and the seconds that its job took."""

    status: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the job succeeded."""
        return self.status == "ok"


Stamp = tuple[int, int] | None
"""Identifies one version of a record's file; None if there is no file."""


class JobStore:
    """A folder of records, ``<folder>/<first two digits of the key>/<key>.json``, and ``.log`` where a job wrote text.

    A record is written under a temporary name and then renamed, so that a reader sees the old file or the new one and a
    killed program never leaves half a record. Several processes may use the same folder; if two write the record of one
    job, the last wins. The first write creates the folder, so reading works where writing is forbidden. Opening the
    store removes temporary files whose writer is dead.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        found = [*self.folder.glob("*.tmp"), *self.folder.glob("*/*.tmp")]
        temporaries = [path for path in found if _TEMPORARY.fullmatch(path.name) and path.is_file()]
        with contextlib.suppress(OSError):  # where nothing can be written, they harm nobody
            # Whoever writes records has the turn; any other write takes less than a minute.
            if temporaries and (descriptor := lock(self._lock)) is not None:
                remove_abandoned(temporaries, _MINUTE_SECONDS)
                world().close(descriptor)

    def __repr__(self) -> str:
        return f"JobStore({str(self.folder)!r})"

    def path(self, job: Job) -> Path:
        """Return the file of a job, whether it exists or not."""
        return self.folder / job.key[:2] / f"{job.key}.json"

    @contextmanager
    def turn(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Keep other programs from running jobs for this store, which must be writable; readers need no turn.

        The system frees the lock when its program ends, even by ``kill -9``. `on_wait` is called if another program
        holds it now.
        """
        with turn(self._lock, on_wait):
            yield

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    def stamp(self, job: Job) -> Stamp:
        """Return a value that changes whenever the record of a job is written."""
        try:
            status = self.path(job).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def get(self, job: Job) -> Record | None:
        """Read the record of a job, of any status.

        A file that cannot be read or was changed, or a result that its function does not declare, gives a warning and
        None, like no file at all: running the job again repairs it.
        """
        return self._read(self.path(job), functools.partial(Record.of, job))

    def is_sound(self, path: Path) -> bool:
        """Tell whether a file of the store holds the record that its name says; if not, a warning says why."""

        def named(content: bytes) -> Record:
            record = Record.from_json(content)
            if record.job.key != path.stem:
                raise ValueError("it is the record of another job")
            return record

        return self._read(path, named) is not None

    def _read(self, path: Path, parse: Callable[[bytes], Record]) -> Record | None:
        try:
            content = read_bytes(path, 2 * RESULT_BYTES)
            if not content.endswith(_END):
                raise ValueError("the file is cut short")
            return parse(content)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            _log.warning("the stored record %s is not used: %.300s", path, error)
            return None

    def glance(self, job: Job) -> Glance | None:
        """Read the status and seconds of a record from the first bytes of its file, however long its result is.

        A file that ends early or begins otherwise gives None; any other damage shows only in `get`, which checks the
        hash.
        """
        try:
            with opened(self.path(job)) as stream:
                head = _HEAD.match(stream.read(_HEAD_BYTES))
                if head is None:
                    return None
                stream.seek(-len(_END), os.SEEK_END)
                ended = stream.read() == _END
            _, key, status, seconds = (part.decode() for part in head.groups())
            found = Glance(status, float(seconds))
        except (OSError, ValueError):
            return None
        is_sound = ended and key == job.key and status in _STORED_STATUSES and math.isfinite(found.seconds)
        return found if is_sound else None

    def put(self, record: Record) -> None:
        """Store a record, of any status except "missing", in place of any earlier one of its job.

        If the folder cannot be written (read-only, full, a file in the way), OSError is raised and what was stored
        before stays intact.
        """
        if record.status not in _STORED_STATUSES:
            raise ValueError(
                f"status of a stored record must be one of {', '.join(_STORED_STATUSES)}, got "
                f"{record.status!r}; only jobs that ran are stored"
            )
        # No fsync: a power cut can at worst leave an empty or truncated file, which counts as missing and
        # costs one rerun, while an fsync would cost every job several milliseconds on a disk.
        path = self.path(record.job)
        log = path.with_suffix(".log")
        if path.parent.is_symlink():
            # What lies behind it is not ours to write to, and its log not ours to remove.
            raise OSError(errno.ELOOP, f"{path.parent} is a symbolic link, which is not followed; remove it")
        if record.log:
            self._replace(log, record.log.encode(errors="backslashreplace"))
        else:  # one that is there belongs to an earlier attempt
            with contextlib.suppress(OSError):
                world().unlink(log)
        self._replace(path, record.to_json().encode() + b"\n")

    def ensure_writable(self) -> None:
        """Write and remove a small file, to notice a read-only or full folder before the work; raises as `put` does."""
        probe = _beside(self.folder / "probe")
        self._replace(probe, b"probe\n")
        with contextlib.suppress(FileNotFoundError):
            world().unlink(probe)

    def _replace(self, path: Path, content: bytes) -> None:
        temporary = _beside(path)
        try:
            world().make_folders(path.parent)
            world().write(temporary, content)
            put_aside(path)
            world().rename(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                world().unlink(temporary)
            # OSError with a number becomes the matching subclass: PermissionError, NotADirectoryError ...
            raise OSError(
                error.errno or 0,
                f"cannot write to the folder of results {str(self.folder)!r}: {error.strerror or error}; "
                "make it writable, free space, or choose another folder (stored results are intact)",
            ) from error


def _beside(path: Path) -> Path:
    """Return a temporary name beside a path."""
    return path.with_name(f"{path.stem}.{world().token(8)}.tmp")


# Arrays that several jobs need and that take long to compute, kept in the user's cache folder.

Arrays = dict[str, "np.ndarray[Any, Any]"]
# Names the run whose arrays alone are read; workers inherit it.
RUN_VARIABLE = "REPRODUCTION_ONLY_ARRAYS_OF"
# After the arrays, a file has the name of the run that wrote it, and a seal of everything before.
_RUN_BYTES = 16
# The name, among the arrays, of what `note_road` was told until then.
_ROADS = "roads of data"
_MAX_ARRAY_BYTES = 2**31
# Files of another form have other names.
_FORM = "sealed with kind and key"


def read_earlier_arrays(read: bool) -> None:
    """Set whether this process, and those that it starts, take arrays that were kept before; by default they do.

    Otherwise each is computed again, once for all processes.
    """
    if read:
        os.environ.pop(RUN_VARIABLE, None)
    else:
        os.environ.setdefault(RUN_VARIABLE, world().token(_RUN_BYTES // 2))


def remember(kind: str, key: Mapping[str, Json], compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that were computed before under the same key, or compute and keep them.

    Where nothing can be written, the arrays are computed but not kept. If several processes ask at the same time, one
    of them computes. A changed file, or one of other arrays in its place, is noticed by its seal: a warning names it,
    and the arrays are computed again.

    Parameters
    ----------
    kind : str
        What the arrays are: part of the key and of the file's name.
    key : mapping
        Everything that decides the arrays, including the version of the code. A job that remembers a pure function of
        its key stays a pure function of its parameters. The content of a file must be in it as a hash: only the name of
        an absolute ``path`` counts.
    """
    kept = KeptArrays.of(kind, key)
    found = kept.read()
    if found is not None:
        return found
    with _alone(kept.path.with_suffix(".lock")) as can_write:
        found = kept.read()  # another process may have been faster
        if found is not None:
            return found
        arrays = compute()
        if can_write:
            kept.write(arrays)
        return arrays


class KeptArrays(NamedTuple):
    """The file of arrays of one kind and key, whether it exists or not; `key` is as canonical JSON."""

    kind: str
    key: str

    @classmethod
    def of(cls, kind: str, key: Mapping[str, Json]) -> KeptArrays:
        """Return the file of a key as `remember` takes it."""
        return cls(kind, canonical_json({"key": _without_folders(key)}, "key"))

    @property
    def path(self) -> Path:
        """The path of the file."""
        digest = hashlib.sha256(json.dumps([_FORM, self.kind, self.key]).encode()).hexdigest()
        return user_cache() / "derived" / f"{self.kind}-{digest[:32]}.npz"

    def read(self) -> Arrays | None:
        """Return the arrays; None if there are none to use, with a warning if the file is not sound."""
        import numpy as np

        try:
            content = unsealed(read_bytes(self.path, _MAX_ARRAY_BYTES), self.kind, self.key)
            body, run = content[:-_RUN_BYTES], content[-_RUN_BYTES:]
            if (os.environ.get(RUN_VARIABLE) or run.decode()) != run.decode():
                return None
            with np.load(io.BytesIO(body), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
                for sha256, road in arrays.pop(_ROADS, np.empty((0, 2))).tolist():
                    _roads.setdefault(sha256, road)
                return arrays
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:  # noqa: BLE001  (zipfile and NumPy raise errors of many kinds for damaged files)
            _log.warning("%s is not used and computed again: %.200s", self.path, error)
            return None

    def write(self, arrays: Arrays) -> None:
        """Keep arrays, unless nothing can be written."""
        import numpy as np

        stream = io.BytesIO()
        np.savez(stream, **arrays, **{_ROADS: np.array([*_roads.items()]).reshape(-1, 2)})  # type: ignore[arg-type]
        stream.write((os.environ.get(RUN_VARIABLE) or "-" * _RUN_BYTES).encode())
        with contextlib.suppress(OSError):  # a full disk costs time, not the result
            write_bytes(sealed(stream.getvalue(), self.kind, self.key), self.path)


def _without_folders(value: Any, name: str = "") -> Any:
    """Return a key in which each absolute path with the name ``path`` is replaced by the name of its file."""
    if isinstance(value, Mapping):
        return {one: _without_folders(item, one) for one, item in value.items()}
    is_place = name == "path" and isinstance(value, str) and Path(value).is_absolute()
    return Path(value).name if is_place else value


# Where this process says what concerns the whole run: the standard error that it had before a job's log took its place.
TERMINAL: ContextVar[int] = ContextVar("TERMINAL", default=2)
# Workers of one run wait for each other all the time, but not for long.
_PATIENCE_SECONDS = 30.0


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Wait until no other process holds the lock; tell whether the folder can be written.

    A long wait is said aloud: the other process may have been stopped (Ctrl-Z), and would be waited for without end.
    """
    try:
        world().make_folders(path.parent)
        descriptor = lock(path)
        if descriptor is None:
            said = f"waiting for another process, which computes {path.stem} and has locked {path}\n".encode()
            late = threading.Timer(_PATIENCE_SECONDS, os.write, (TERMINAL.get(), said))
            late.daemon = True
            late.start()
            try:
                descriptor = lock(path, wait=True)
            finally:
                late.cancel()
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        world().close(-1 if descriptor is None else descriptor)


# Where this process has data from, by its hash.
_roads: dict[str, str] = {}


def note_road(sha256: str, road: str) -> None:
    """Note where this process got the data with a hash from, for the records of jobs that use it from now on."""
    _roads[sha256] = road


def noted_road(sha256: str) -> str | None:
    """Return what `note_road` was told of the data with a hash, if anything."""
    return _roads.get(sha256)
