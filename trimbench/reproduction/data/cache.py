"""The cache for data, why a download failed, and which hosts are not worth asking again."""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from trimbench.reproduction.children import keep_folder
from trimbench.reproduction.files import named_folder, put_aside, temporary_folder, user_cache
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError, must_be

_NO_ROUTE = {errno.ENETUNREACH, errno.EHOSTUNREACH}
_LONGEST_REASON = 300


def unreachable_cause(error: BaseException) -> BaseException | None:
    """Return the error behind another one which says that a host cannot be reached, if there is one."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror | TimeoutError):
            return cause
        if isinstance(cause, OSError) and cause.errno in _NO_ROUTE:
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None


def one_line_reason(error: BaseException) -> str:
    """Return why a download failed, in one line of at most 300 characters that is never empty.

    The HTTP libraries wrap "connection refused" four times, and the innermost error says what happened. Of any other
    error, the outermost message says most.
    """
    try:
        text = " ".join(str(unreachable_cause(error) or error).split())
    except Exception:  # noqa: BLE001  (readers of formats have errors that cannot be written as text)
        text = ""
    if not text:
        return type(error).__name__
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


@dataclass(frozen=True)
class HostMemory:
    """Hosts that could not be reached, so that each dead host costs one time-out and not one for each file."""

    _reasons: dict[str, str] = field(default_factory=dict)

    def reason_for(self, url: str) -> str | None:
        """Return why the host of `url` could not be reached earlier, or None if it is worth asking."""
        return self._reasons.get(urlsplit(url).netloc)

    def note(self, url: str, error: BaseException, *, always: bool = False) -> None:
        """Remember the host of `url` if `error` means that it could not be reached, or `always`."""
        if always or unreachable_cause(error) is not None:
            self._reasons.setdefault(urlsplit(url).netloc, f"{one_line_reason(error)} (this host is not asked again)")


# Where data is looked for and where downloads go.

OPENML_SERVER = "https://www.openml.org/api/v1/xml"
# Ways to get data that is in no folder of the cache, in the order in which they are tried.
ROADS = ("openml", "file", "package")
_ANY_WRITE_BIT = 0o222


@dataclass(frozen=True)
class Cache:
    """Folders that hold data: ``files/<path>``, ``files/sha256/<hash>/<name>`` and OpenML's folders of data sets.

    The `folders` are searched in order and never written to, except one that is also `writable`. That one gets the
    downloads; it is created when first needed, and searched last if it is not in `folders`. `openml_server` is the
    address of OpenML's XML interface (default: that of the openml package's own configuration), and `roads` the ways to
    data that may be taken, in the order to try them.
    """

    folders: tuple[Path, ...]
    writable: Path
    offline: bool = False
    openml_server: str | None = None
    roads: tuple[str, ...] = ROADS
    hosts: HostMemory = field(default_factory=HostMemory, compare=False, repr=False)

    @classmethod
    def from_environment(cls, offline: bool = False) -> Cache:
        """Return the cache of the project's variable (first) and the user's own cache folder.

        Downloads go to the folder that the variable names if it can be written, otherwise to the user's cache.
        """
        user = user_cache()
        value = os.environ.get(project().cache_variable, "")
        if not value:
            return cls(folders=(user,), writable=user, offline=offline)
        named = _existing_folder(value)
        keep_folder(project().cache_variable)
        folders = (named,) if named == user else (named, user)
        return cls(folders=folders, writable=named if _is_writable(named) else user, offline=offline)

    @property
    def places(self) -> tuple[Path, ...]:
        """All folders to search, in order."""
        return self.folders if self.writable in self.folders else (*self.folders, self.writable)

    def copies(self, path: str, sha256: str = "") -> list[Path]:
        """Return where copies of a file may be under ``files/``: where it is kept by its hash, and by its path."""
        names = dict.fromkeys((_kept_as(path, sha256), path))
        return [place / "files" / name for place in self.places for name in names]

    def keep(self, file: Path, path: str, sha256: str = "") -> Path:
        """Move a file out of the `workspace` to its place under ``files/`` of the writable folder.

        What is declared with a hash is kept by it: no declaration replaces what another one of the same path fetched.
        A folder in its place is put aside.
        """
        destination = self.writable / "files" / _kept_as(path, sha256)
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            put_aside(destination)
            return file.replace(destination)
        except OSError as error:
            way = f"remove what is in its way, or set {project().cache_variable} to another folder"
            raise OSError(error.errno, f"cannot keep {destination}: {error.strerror}; {way}") from error

    def openml_folder(self, place: Path, dataset_id: int) -> Path:
        """Return the folder of one OpenML data set under one of the `places`."""
        return place / "openml" / "org" / "openml" / "www" / "datasets" / str(dataset_id)

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yield a temporary folder on the file system of `writable`, so that its files can be renamed into it."""
        try:
            self.writable.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            way = f"set {project().cache_variable} to a folder that can be written"
            raise OSError(error.errno, f"cannot keep data in {self.writable}: {error.strerror}; {way}") from error
        with temporary_folder(self.writable, ".partial") as folder:
            yield folder


def _kept_as(path: str, sha256: str) -> str:
    return f"sha256/{sha256}/{PurePosixPath(path).name}" if sha256 else path


def _existing_folder(value: str) -> Path:
    try:
        folder = named_folder(value).absolute()
        if not folder.exists():
            sys.stderr.write(
                f"{project().cache_variable} names a folder that does not exist, {value!r}; creating an empty one.\n"
            )
        folder.mkdir(parents=True, exist_ok=True)
    except ValueError as error:
        raise ConfigurationError(f"{project().cache_variable} {error}") from error
    except OSError as error:
        raise ConfigurationError(
            f"{project().cache_variable} must name a folder that exists or can be created, got {value!r} "
            f"({error.strerror}); correct it, or unset it to use the user's own cache"
        ) from error
    return folder


def _is_writable(folder: Path) -> bool:
    # A folder without any write bit was made read-only on purpose. The administrator could still write there, and
    # even a probe that is deleted immediately would change its time stamp.
    if not folder.stat().st_mode & _ANY_WRITE_BIT:
        return False
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


# What the values in declarations of data sets and networks may be.


def is_inside(path: str) -> bool:
    """Tell whether a path is relative, printable and normalised, and stays inside its folder."""
    pure = PurePosixPath(path)
    return str(pure) == path != "." and path.isprintable() and not pure.is_absolute() and ".." not in pure.parts


Text = Annotated[str, must_be("a text that is not empty (put it in quotes)", bool)]
# A name or value of a table, which is text even if YAML or a command line has a number.
Label = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]
Natural = Annotated[int, must_be("a whole number of at least 0", lambda number: number >= 0)]
Positive = Annotated[int, must_be("a whole number of at least 1", lambda number: number >= 1)]
Probability = Annotated[float, must_be("a number between 0 and 1 (both excluded)", lambda number: 0 < number < 1)]
Share = Annotated[float, must_be("a number from 0 to 1", lambda number: 0 <= number <= 1)]
Sha256 = Annotated[
    str, must_be("64 lower-case hexadecimal digits in quotes (a SHA-256)", re.compile(r"[0-9a-f]{64}").fullmatch)
]
Url = Annotated[
    str,
    must_be(
        "an address that starts with https:// or http://, without a password or control characters",
        lambda url: url.isprintable() and re.match(r"https?://[^/?#@\\]+([/?#]|$)", url),
    ),
]
CachePath = Annotated[str, must_be("a relative path that stays inside the cache (no '..', './' or '//')", is_inside)]
