"""The world that the program changes: files, locks, the clock. A simulated one can take its place."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

_LOCK_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK


class World:
    """The real world: what the store, the runner and the publisher change, and what they ask of clock and chance.

    Each method is one step, before or in which a program may be stopped and a disk may be full. What is written is in
    the hands of the system; only `flush` outlives a power cut. Reading goes past this class.
    """

    def now(self) -> float:
        """Return the time of day in seconds, which may jump."""
        return time.time()

    def seconds(self) -> float:
        """Return the seconds since some moment; they never run backwards."""
        return time.perf_counter()

    def token(self, n_bytes: int) -> str:
        """Return hexadecimal digits that nobody else has."""
        return secrets.token_hex(n_bytes)

    def create(self, path: Path) -> BinaryIO:
        """Open a new, empty file to write."""
        return path.open("wb")

    def write(self, path: Path, content: bytes) -> None:
        """Write a whole file."""
        path.write_bytes(content)

    def copy(self, source: Path, target: Path) -> None:
        """Copy the content of a file."""
        shutil.copyfile(source, target)

    def flush(self, path: Path) -> None:
        """Have the system write the content of a file, or the names in a folder, to the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file or folder another name; a file in its place is replaced."""
        path.rename(target)

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        """Make a folder that does not exist."""
        path.mkdir(mode)

    def make_folders(self, path: Path) -> None:
        """Make a folder and those above it, where they do not exist."""
        path.mkdir(parents=True, exist_ok=True)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()

    def remove_tree(self, path: Path) -> None:
        """Remove a folder with all that it has."""
        shutil.rmtree(path)

    def open_lock(self, path: Path, *, create: bool = False) -> int:
        """Return a descriptor of a file or folder to lock."""
        try:
            return os.open(path, _LOCK_FLAGS | (os.O_CREAT if create else 0), 0o666)  # for a group, if the umask allows
        except (PermissionError, IsADirectoryError):  # made by another user; most file systems lock what can be read
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)

    def lock(self, descriptor: int, *, wait: bool) -> None:
        """Lock an open file against other programs; BlockingIOError if one holds it and this one does not `wait`."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def close(self, descriptor: int) -> None:
        """Close an open file, and release its lock."""
        os.close(descriptor)


_REAL = World()
_world: ContextVar[World] = ContextVar("world")


def world() -> World:
    """Return the world in which this thread works."""
    return _world.get(_REAL)


@contextmanager
def living_in(other: World) -> Iterator[None]:
    """Let this thread work in another world for a while."""
    token = _world.set(other)
    try:
        yield
    finally:
        _world.reset(token)
