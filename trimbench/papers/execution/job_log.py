"""What a job writes, kept in a file as it is written, so that it outlives a worker that is killed."""

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trimbench.papers.execution.limits import LOG_BYTES

_OUT, _ERR = 1, 2
_CUT = "\n[... {} bytes are cut here: of a log, the first and last {} MB are kept ...]\n"
_CUT_BEFORE = re.compile(rb"\n\[\.\.\. (\d+) bytes are cut here: [^\]]*\]\n")


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
    """Return what was written to a file, without the middle if it is long, and remove it; empty if there is none."""
    try:
        shorten_file(path, LOG_BYTES)
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
        path.unlink()
    except FileNotFoundError:
        return ""
    return text


def shorten_file(path: Path, longest: int) -> None:
    """Cut the middle out of a file that is longer than so many bytes, even while a job appends to it."""
    half = LOG_BYTES // 2
    with path.open("r+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if size <= max(longest, 2 * half):
            return
        stream.seek(half)
        before = _CUT_BEFORE.match(stream.read(200))
        stream.seek(size - half)
        tail = stream.read()[-half:]
        n_cut = os.fstat(stream.fileno()).st_size - half - len(tail)
        if before:
            n_cut += int(before[1]) - len(before[0])
        stream.truncate(half)
    with path.open("ab", buffering=0) as end:
        end.write(_CUT.format(n_cut, half // 10**6).encode() + tail)


class BoundedText(io.StringIO):
    """A text in memory that loses its middle when it grows too long."""

    def __init__(self) -> None:
        super().__init__()
        self._n_cut = 0
        self._head = ""

    def write(self, text: str) -> int:
        """Add a text."""
        super().write(text)
        if self.tell() > 2 * LOG_BYTES:
            self._shorten()
        return len(text)

    def shortened(self) -> str:
        """Return what is kept, with a line that says how much is not."""
        if len(self._head) + self.tell() > LOG_BYTES:
            self._shorten()
        cut = _CUT.format(self._n_cut, LOG_BYTES // 2 // 10**6) if self._n_cut else ""
        return f"{self._head}{cut}{self.getvalue()}"

    def _shorten(self) -> None:
        half, text = LOG_BYTES // 2, self.getvalue()
        if not self._head:
            self._head, text = text[:half], text[half:]
        self._n_cut += max(0, len(text) - half)
        self.seek(0)
        self.truncate()
        super().write(text[-half:])


def _unbuffered(descriptor: int) -> io.TextIOWrapper:
    # A log handler that a job makes holds on to this stream: it must not close what later jobs write to.
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # None, closed, or connected to nothing
            stream.flush()
