"""Arrays that several jobs need and that take long to compute, kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.canonical import Json, canonical_json
from trimbench.papers.execution.temporary import remove_stale, temporary_name

if TYPE_CHECKING:
    import numpy as np

Arrays = dict[str, "np.ndarray[Any, Any]"]


def remember(kind: str, key: Mapping[str, Json], compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that were computed before under the same key, or compute and keep them.

    Where nothing can be written, the arrays are computed and not kept. Of several processes that ask at the same time,
    one computes.

    Parameters
    ----------
    kind : str
        What the arrays are: part of the key and of the file's name.
    key : mapping
        Everything that decides the arrays, including the version of the code. A job that remembers a pure function of
        its key stays a pure function of its parameters.
    """
    digest = hashlib.sha256(canonical_json({"kind": kind, "key": key}, "key").encode()).hexdigest()
    path = _folder() / f"{kind}-{digest[:32]}.npz"
    found = _read(path)
    if found is not None:
        return found
    with _alone(path.with_suffix(".lock")) as can_write:
        found = _read(path)  # another process may have been faster
        if found is not None:
            return found
        arrays = compute()
        if can_write:
            _write(path, arrays)
        return arrays


def _folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("trimbench", appauthor=False) / "derived"


def _read(path: Path) -> Arrays | None:
    import numpy as np

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None  # not there, or damaged: it is computed again


def _write(path: Path, arrays: Arrays) -> None:
    import numpy as np

    temporary = path.with_name(temporary_name(path.stem))
    remove_stale(path.parent.glob("*.tmp"))
    # A full disk costs time, not the result.
    with contextlib.suppress(OSError):
        try:
            with temporary.open("wb") as stream:
                np.savez(stream, **arrays)  # type: ignore[arg-type]
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Wait until no other process holds the lock; tell whether the folder can be written."""
    from filelock import FileLock

    held = FileLock(lock)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held.acquire()
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        held.release()
