"""Arrays that several jobs need and that take long to compute, kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.canonical import Json, canonical_json
from trimbench.papers.execution.temporary import remove_stale, temporary_name

if TYPE_CHECKING:
    import numpy as np

Arrays = dict[str, "np.ndarray[Any, Any]"]

_log = logging.getLogger(__name__)
# Names the run whose arrays alone are read; workers inherit it.
RUN_VARIABLE = "TRIMBENCH_ONLY_ARRAYS_OF"
# After the arrays, a file has the name of the run that wrote it and the hash of all before.
_RUN_BYTES, _HASH_BYTES = 16, 32


def read_earlier_arrays(read: bool) -> None:
    """Say whether this process, and those that it starts, take arrays that were kept before; at first they do.

    Otherwise each is computed again, once for all processes.
    """
    if read:
        os.environ.pop(RUN_VARIABLE, None)
    else:
        os.environ.setdefault(RUN_VARIABLE, secrets.token_hex(_RUN_BYTES // 2))


def remember(kind: str, key: Mapping[str, Json], compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that were computed before under the same key, or compute and keep them.

    Where nothing can be written, the arrays are computed and not kept. Of several processes that ask at the same time,
    one computes. A file that was changed is noticed by its hash: a warning names it, and the arrays are computed again.

    Parameters
    ----------
    kind : str
        What the arrays are: part of the key and of the file's name.
    key : mapping
        Everything that decides the arrays, including the version of the code. A job that remembers a pure function of
        its key stays a pure function of its parameters. What is in a file must be there by its hash: of an absolute
        ``path``, the name alone counts.
    """
    named = {"kind": kind, "key": _without_folders(key), "hashed": True}
    digest = hashlib.sha256(canonical_json(named, "key").encode()).hexdigest()
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


def _without_folders(value: Any, name: str = "") -> Any:
    """Return a key with the names of files in place of the absolute paths that are called ``path``."""
    if isinstance(value, Mapping):
        return {one: _without_folders(item, one) for one, item in value.items()}
    is_place = name == "path" and isinstance(value, str) and Path(value).is_absolute()
    return Path(value).name if is_place else value


def _folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("trimbench", appauthor=False) / "derived"


def _read(path: Path) -> Arrays | None:
    import numpy as np

    try:
        content = path.read_bytes()
        body, run, found = _parts(content)
        if hashlib.sha256(body + run).digest() != found:
            raise ValueError("its content does not have the hash that it states")
        if os.environ.get(RUN_VARIABLE, run.decode()) != run.decode():
            return None
        with np.load(io.BytesIO(body), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as error:  # noqa: BLE001  (zipfile and NumPy raise errors of many kinds for damaged files)
        _log.warning("%s is not used and computed again: %.200s", path, error)
        return None


def _parts(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the arrays, the run and the hash in a file."""
    end = len(content) - _HASH_BYTES
    return content[: end - _RUN_BYTES], content[end - _RUN_BYTES : end], content[end:]


def _write(path: Path, arrays: Arrays) -> None:
    import numpy as np

    temporary = path.with_name(temporary_name(path.stem))
    remove_stale(path.parent.glob("*.tmp"))
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    stream.write(os.environ.get(RUN_VARIABLE, "-" * _RUN_BYTES).encode())
    stream.write(hashlib.sha256(stream.getbuffer()).digest())
    # A full disk costs time, not the result.
    with contextlib.suppress(OSError):
        try:
            temporary.write_bytes(stream.getbuffer())
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
