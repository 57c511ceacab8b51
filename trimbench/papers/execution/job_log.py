"""What a job writes, kept in a file as it is written, so that it outlives a worker that is killed."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OUT, _ERR = 1, 2


@contextmanager
def written_to(path: Path) -> Iterator[None]:
    """Send what this process and its children write to standard output and error into a file, without a buffer.

    The file descriptors are redirected, not only the streams of Python, so that C code, child processes and log
    handlers that hold an earlier stream are caught too.
    """
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    streams = sys.stdout, sys.stderr
    _flush()
    before = os.dup(_OUT), os.dup(_ERR)
    try:
        os.dup2(target, _OUT)
        os.dup2(target, _ERR)
        sys.stdout, sys.stderr = _unbuffered(_OUT), _unbuffered(_ERR)
        yield
    finally:
        _flush()
        sys.stdout, sys.stderr = streams
        for old, descriptor in zip(before, (_OUT, _ERR), strict=True):
            os.dup2(old, descriptor)
            os.close(old)
        os.close(target)


def take(path: Path) -> str:
    """Return what was written to a file and remove it; empty if there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
        path.unlink()
    except FileNotFoundError:
        return ""
    return text


def _unbuffered(descriptor: int) -> io.TextIOWrapper:
    # A log handler that a job makes holds on to this stream: it must not close what later jobs write to.
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # None, closed, or connected to nothing
            stream.flush()
