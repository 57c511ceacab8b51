"""Records of finished jobs, one JSON file each, with their provenance; arrays that several jobs share."""

from __future__ import annotations

import contextlib
import copy
import errno
import functools
import hashlib
import io
import json
import logging
import math
import os
import platform
import re
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trimbench.reproduction.children import run, safe_environment
from trimbench.reproduction.execution.job import (
    COUNT,
    FLAG,
    NOTHING,
    RESULT_BYTES,
    TEXT,
    Job,
    canonical_json,
    check_result,
    fields,
    to_plain,
)
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
from trimbench.reproduction.project import DISTRIBUTION, per_project, project
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


# Where and with what a result was computed.

# What the framework itself uses to compute; their versions are recorded beside those that the project names.
_PACKAGES = ("hydra-core", "numpy", "omegaconf", "openml", "pandas", "pebble", "scipy", "threadpoolctl")
_GIT_SECONDS = 5.0
PROVENANCE = fields(
    **{DISTRIBUTION: TEXT | NOTHING},
    python=TEXT,
    packages=fields(**{"*": TEXT}),
    commit=TEXT | NOTHING,
    dirty=FLAG | NOTHING,
    platform=TEXT,
    cpus=COUNT,
    time=TEXT,
    roads=fields(**{"*": TEXT}),
)
"""What `provenance_of` returns."""
# Where this process has data from, by its hash.
_roads: dict[str, str] = {}


def provenance() -> dict[str, Json]:
    """Describe the program and the machine, once per process: versions, commit, platform, processors, time in UTC.

    ``commit`` and ``dirty`` describe the source tree and are None without git; the caller may change the copy.
    """
    return copy.deepcopy(_collect())


def provenance_of(job: Job) -> dict[str, Json]:
    """Return the `provenance` of a job that ran in this process, with ``roads``: where its data came from."""
    return provenance() | {"roads": {name: _roads[sha256] for name, sha256 in job.data if sha256 in _roads}}


def commit_of(where: Mapping[str, Json]) -> str:
    """Return the commit of an environment as pages show it."""
    return f"{str(where.get('commit') or 'unknown')[:12]}{' and uncommitted changes' if where.get('dirty') else ''}"


def computed_with(records: Sequence[Record]) -> list[dict[str, Json]]:
    """Return the environments (versions and machine) in which jobs ran, each once."""
    entries = [environment_of(record) for record in records if record.provenance]
    return list({json.dumps(entry, sort_keys=True): entry for entry in entries}.values())


def environment_of(record: Record) -> dict[str, Json]:
    """Return the provenance of a job without its data."""
    return {name: value for name, value in record.provenance.items() if name != "roads"}


def note_road(sha256: str, road: str) -> None:
    """Note where this process got the data with a hash from, for the records of jobs that use it from now on."""
    _roads[sha256] = road


def usable_cpus() -> int:
    """Count the processors that this process may use: a container or batch system may allow fewer than there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min([available, *map(math.ceil, _quotas(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")))]))


def _quotas(root: Path, own: Path) -> Iterator[float]:
    """Yield the numbers of processors that the control groups of this process, and those above them, leave it."""
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, kinds, name = line.split(":", 2)
            top = root if not kinds else root / kinds
            group = top / name.lstrip("/")
            for folder in {group, *(one for one in group.parents if one.is_relative_to(top)), top, root / "cpu"}:
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    names = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    for parts in names:
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = " ".join((folder / part).read_text() for part in parts).split()
            if quota != "max" and int(quota) > 0:
                yield int(quota) / int(period)


@per_project
def _collect() -> dict[str, Json]:
    commit, dirty, _ = _git()
    return {
        DISTRIBUTION: own_version(),
        "python": platform.python_version(),
        "packages": {name: found for name in _recorded() if (found := _version(name)) is not None},
        "commit": commit,
        "dirty": dirty,
        "platform": platform.platform(),
        "cpus": usable_cpus(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def deciding_versions() -> dict[str, str]:
    """Return the versions on which results may depend, by name: of this package, Python and the libraries here."""
    versions = {name: _version(name) for name in sorted(project().deciding)} | {DISTRIBUTION: own_version()}
    versions["Python"] = platform.python_version().rpartition(".")[0]
    return {name: version for name, version in versions.items() if version is not None}


def _recorded() -> list[str]:
    return sorted({*_PACKAGES, *project().deciding, *project().recorded})


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def own_version() -> str | None:
    """Return the version of this package; None where it is unknown."""
    installed = _version(DISTRIBUTION)
    if installed is not None:
        return installed
    try:  # run from a source tree without installation
        tree = Path(__file__).resolve().parents[3]
        about = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
        return str(about["project"]["version"])
    except (OSError, ValueError, KeyError):
        return None


def _git_state(root: Path) -> tuple[str | None, bool | None, str]:
    """Return the commit, whether files differ from it (both None if unknown), and why the commit is not known."""
    # Looking for .git first keeps an installation inside somebody else's repository from reporting that one.
    if not (root / ".git").exists():
        return None, None, "no git repository"
    command = ["git", "--no-optional-locks", "-C", str(root), "status", "--porcelain=v2", "--branch"]
    # What a run writes into the repository does not change the code that wrote it.
    command += ["--", ".", ":(exclude)results"]
    # Inside a git hook these variables point at another repository; those of its configuration remain.
    outside = safe_environment()
    environment = {name: value for name, value in outside.items() if not name.startswith("GIT_") or "CONFIG" in name}
    try:
        answer = run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=True,
        )
    except OSError:
        return None, None, "no git on this machine"
    except subprocess.SubprocessError as error:
        return None, None, f"git says: {' '.join((getattr(error, 'stderr', '') or str(error)).split())[:300]}"
    lines = answer.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    # Before the first commit git says "(initial)".
    unknown = commit in (None, "(initial)")
    dirty = any(not line.startswith("#") for line in lines)
    return (None if unknown else commit), dirty, "git has no commit yet" if unknown else ""


def no_commit() -> str:
    """Return why the commit of this program is not known, as when another user owns the clone; empty if it is."""
    return _git()[2]


@per_project
def _git() -> tuple[str | None, bool | None, str]:
    return _git_state(project().folder)
