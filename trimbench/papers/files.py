"""Files that are written whole or not at all, temporary folders, file names, and texts without home folders."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import functools
import getpass
import gzip
import hashlib
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


_log = logging.getLogger(__name__)
# Longer tables are compressed; no table of a run is wider.
_MOST_LINES, _MOST_COLUMNS = 2000, 5000
# Text that a spreadsheet would evaluate: it begins with one of these signs, possibly full-width, and is not a number.
# Apostrophes may come first, so that the one that is added can be taken away again. Where numbers have a decimal comma,
# a semicolon ends a cell.
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf"
_FORMULA = rf"(?='*(?:[=@\t\r\n＝＠＋－]|[+-](?!(?:{_NUMBER})?(?:;|\Z))))"
_TO_TAME, _TAMED = re.compile(rf"(?:\A|(?<=;)){_FORMULA}"), re.compile(rf"(?:\A|(?<=;))'{_FORMULA}")


def beside(stem: Path, part: str, ending: str) -> Path:
    """Return the file of one part of an experiment, for example ``table6_rows.csv``."""
    # A part may be the name of a data set, with slashes and any other characters.
    name = part if is_accepted(part) else safe_name(part)
    return stem.with_name(f"{stem.name}_{name}{ending}" if part else f"{stem.name}{ending}")


def csv_ending(frame: pd.DataFrame) -> str:
    """Return the ending of a table's file name: ``.csv.gz`` for a long table, which is compressed."""
    return ".csv.gz" if len(frame) > _MOST_LINES else ".csv"


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table without its index, compressed if the name ends with ``.gz``, and return its path."""
    # Without the time of writing, the same table gives the same bytes.
    packed: Any = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
    tame = _without_formulas(frame)
    return write(path, lambda temporary: tame.to_csv(temporary, index=False, encoding="utf-8", compression=packed))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote, with cells as text; ValueError if it is not one, or too wide."""
    import pandas as pd

    open_it: Any = gzip.open if path.suffix == ".gz" else open
    csv.field_size_limit(2**31 - 1)  # a list of many numbers is one cell
    with open_it(path, "rt", encoding="utf-8", newline="") as stream:
        try:
            written, *rows = [*filter(None, csv.reader(stream, strict=True))] or [[]]
        except csv.Error as error:
            raise ValueError(str(error)) from error
    names = list(map(as_it_was, written))
    if len(names) > _MOST_COLUMNS or len({*names}) < len(names):
        raise ValueError(f"it must have at most {_MOST_COLUMNS:,} columns, each with a name of its own")
    if wrong := next((row for row in rows if len(row) != len(names)), None):
        raise ValueError(f"it has {len(names)} columns, and a line of {len(wrong)} values")
    return pd.DataFrame(rows, columns=names, dtype="str")


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before each text or heading that a spreadsheet would take for a formula."""
    import pandas as pd

    # By position, because names may repeat. A list, because mapping would turn 1 beside a missing value into 1.0.
    tame = frame.set_axis(range(frame.shape[1]), axis=1)
    for at in range(frame.shape[1]):
        if tame[at].dtype.kind not in "iufb":
            tame[at] = pd.Series(list(map(_tame, tame[at])), index=tame.index, dtype=object)
    return tame.set_axis(list(map(_tame, frame.columns)), axis=1)


def _tame(value: object) -> object:
    return _TO_TAME.sub("'", value) if isinstance(value, str) else value


def as_it_was(text: str) -> str:
    """Return the text of a cell without the apostrophes that `write_csv` added."""
    return _TAMED.sub("", text)


def write_text(text: str, path: Path) -> Path:
    """Write a text, and return its path."""
    return write(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_bytes(content: bytes, path: Path) -> Path:
    """Write bytes, and return the path."""
    return write(path, lambda temporary: temporary.write_bytes(content))


def write(path: Path, write_to: Callable[[Path], object]) -> Path:
    """Write a file with a function that takes a temporary path, and return the file's path."""
    with temporaries([path]) as (temporary,):
        write_to(temporary)
    return path


@contextmanager
def temporaries(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary path for each file of a folder, which is created; they move into place once all are written."""
    try:
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(paths[0].parent, "writing") as folder:
            names = [folder / path.name for path in paths]
            yield names
            for temporary, path in zip(names, paths, strict=True):
                temporary.replace(path)
    except OSError as error:  # the system's own message about a full disk names no file
        reason = error.strerror or str(error)
        raise OSError(error.errno or 0, f"cannot write {', '.join(map(str, paths))}: {reason}") from error


# Files that end with the hash of their content, so that any change is noticed.

_HASH_BYTES = 32


def sealed(content: bytes) -> bytes:
    """Return a content with its hash appended."""
    return content + hashlib.sha256(content).digest()


def unsealed(whole: bytes) -> bytes:
    """Return the content of what `sealed` made; raise ValueError if anything in it was changed."""
    content = whole[:-_HASH_BYTES]
    if hashlib.sha256(content).digest() != whole[-_HASH_BYTES:]:
        raise ValueError("its content does not have the hash that it states")
    return content


def named_folder(text: str) -> Path:
    """Return the folder that a user names, with ``~`` expanded; raise ValueError for a URL or an unknown home."""
    if re.match(r"[A-Za-z][\w+.-]*://", text):
        raise ValueError(f"must be a folder of this machine, got {text[:100]!r}; write its path, and copy the files")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"must be a folder that exists, got {text[:100]!r}; write its whole path") from error


# Names of files and folders that tell the settings with which something was made.

# File systems allow 255 bytes; this leaves room for what is added to a name.
_LONGEST = 120
_HASH_DIGITS = 8
_LIST = re.compile(r"(^|=)\[([^\[\]]*)\]$")
# Settings that contain the signs by which a name separates settings, keys from values, or the items of a list.
_UNCLEAR = re.compile(r"__|^[^=]*-.*=|\[.*-")


def settings_name(settings: Sequence[str]) -> str:
    """Return the name for settings of the command line, for example ``threshold-0.4__networks-heart-voting``.

    Different settings of one key have different names, except that a value and a list of it alone share one: no key
    takes both.
    """
    plain = [_LIST.sub(lambda found: found[1] + re.sub(r", *", "-", found[2]), one) for one in settings]
    meant = settings if any(map(_UNCLEAR.search, settings)) else None
    return safe_name(*(one.replace("=", "-", 1) for one in plain), stands_for=meant)


def safe_name(*parts: str, stands_for: object = None) -> str:
    """Return texts, joined by two underscores, as a name that every file system accepts.

    A few digits of a hash are appended if that changes a text, if the name alone does not determine its parts or what
    it `stands_for`, or if it has capitals: some file systems take ``A`` and ``a`` for the same name.
    """
    text = "__".join(parts)
    if stands_for is None and len(parts) > 1 and text.split("__") != [*parts]:
        stands_for = parts
    if is_accepted(text) and text == text.lower() and stands_for is None:
        return text
    digits = hashlib.sha256(repr((text, stands_for)).encode()).hexdigest()[:_HASH_DIGITS]
    return f"{_accepted(text)[:_LONGEST]}-{digits}"


def is_accepted(text: str) -> bool:
    """Tell whether every file system accepts a text as a name, as it is."""
    return text == _accepted(text) and 0 < len(text) <= _LONGEST


# Windows reserves these for devices, whatever follows after a point, and drops points at the end of a name.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.ASCII | re.IGNORECASE)


def _accepted(text: str) -> str:
    text = re.sub(r"[^\w.-]+|\.+$", "_", text, flags=re.ASCII)
    return _DEVICE.sub(r"\g<0>_", text, count=1) if _DEVICE.match(text) else text


# Locks that the kernel releases when their process ends, however it ends; folders that are locked by their owner.

# No write takes this long.
_DAY_SECONDS = 24 * 3600.0
_LOCK, _UNNAMED = "held", ".held"
_HELD_ELSEWHERE = (errno.EAGAIN, errno.EACCES)
_held: dict[Path, int] = {}


def lock(path: Path, *, wait: bool = False) -> int | None:
    """Lock a file, creating it if necessary; return its descriptor, or None if another process has locked it.

    The lock is released when the descriptor is closed or the process ends. Where the file system has no locks, a
    warning says so, and the file counts as locked by this process.
    """
    descriptor = _opened(path, os.O_CREAT)
    found = _locked(descriptor, wait=wait)
    if found is None:
        _log.warning("%s cannot be locked on this file system; run one program at a time there", path)
    if found is not False:
        return descriptor
    os.close(descriptor)
    return None


def _opened(path: Path, create: int = 0) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, flags | create, 0o666)  # for a group, if the umask allows it
    except PermissionError:  # made by another user; most file systems lock what can be read
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _locked(descriptor: int, *, wait: bool = False) -> bool | None:
    """Tell whether an open file is locked now; None if its file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in _HELD_ELSEWHERE else None
    return True


def make_temporary_folder(above: Path | None = None, stem: str = "trimbench") -> Path:
    """Create a folder that this process holds until `remove_temporary_folder`, and remove those that nobody holds.

    It is created in the folder `above`, by default that for temporary files of this machine.
    """
    remove_temporary_folders(above, stem)
    while True:
        folder = (above or Path(tempfile.gettempdir())) / f"{stem}.{secrets.token_hex(4)}.tmp"
        folder.mkdir(mode=0o700)
        # Until it is locked, another process may take it for abandoned and remove it; then a new one is made.
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as otherwise:
            otherwise.callback(functools.partial(shutil.rmtree, folder, ignore_errors=True))
            descriptor = _opened(folder / _UNNAMED, os.O_CREAT)
            otherwise.callback(os.close, descriptor)
            if _is_taken(folder, descriptor):
                _held[folder] = descriptor
                otherwise.pop_all()
                return folder


def _is_taken(folder: Path, descriptor: int) -> bool:
    """Lock a new folder, and tell whether this process holds it now; where the file system has no locks, it does."""
    found = _locked(descriptor)
    if found:
        (folder / _UNNAMED).rename(folder / _LOCK)
    return found is not False


def remove_temporary_folder(folder: Path) -> None:
    """Remove a folder of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(_held.pop(folder))


@contextmanager
def temporary_folder(above: Path | None = None, stem: str = "trimbench") -> Iterator[Path]:
    """Yield a temporary folder of this process, and remove it at the end."""
    folder = make_temporary_folder(above, stem)
    try:
        yield folder
    finally:
        remove_temporary_folder(folder)


def lock_of(folder: Path) -> Path | None:
    """Return the lock file of a temporary folder, whether or not it is held; None if there is none."""
    return next((folder / name for name in (_LOCK, _UNNAMED) if (folder / name).exists()), None)


def remove_temporary_folders(above: Path | None = None, stem: str = "trimbench") -> None:
    """Remove the temporary folders that no process holds."""
    for folder in (above or Path(tempfile.gettempdir())).glob(f"{stem}.*.tmp"):
        # Failing to remove one is harmless: it is never read, and the folder may be read-only on purpose.
        with contextlib.suppress(OSError):
            if not (held := lock_of(folder)):
                remove_abandoned([folder])  # left over because somebody was still writing there
                folder.rmdir()  # its maker has ended, or will make another
                continue
            descriptor = _opened(held)
            try:
                if found := _locked(descriptor):
                    shutil.rmtree(folder)
                elif found is None:
                    remove_abandoned([folder])
            finally:
                os.close(descriptor)


def remove_abandoned(temporaries: Iterable[Path], seconds: float = _DAY_SECONDS) -> None:
    """Remove temporary files and folders older than `seconds`, where no lock tells whether they are in use."""
    for temporary in temporaries:
        with contextlib.suppress(OSError):
            if time.time() - temporary.stat().st_mtime > seconds:
                shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink()


# Texts without home folders and names of users: records are shared with people who do not need them.

_ROOT = Path(__file__).resolve().parents[2]
# The end of the name of a user or folder in a text.
_END = r"(?![\w.-])"
_ANY_HOME = re.compile(rf"(?<![\w.~-])/(?:home|Users)/[\w.-]+{_END}")


def without_homes(text: str) -> str:
    """Return a text in which ``~`` stands for home folders, and paths in this project are relative to its folder.

    Home folders are those of this user, and all in ``/home`` and ``/Users``, which may be those of another machine.
    Elsewhere, a folder with this user's name, as in ``/scratch/<user>``, becomes ``~``, too.
    """
    text = text.encode(errors="backslashreplace").decode()  # files cannot hold lone surrogates
    text = text.replace(f"{_ROOT}/", "")
    for home in own_homes():
        text = re.sub(rf"(?<![\w.~-]){re.escape(home)}{_END}", "~", text)
    text = _ANY_HOME.sub("~", text)
    user = _user()
    return re.sub(rf"(?<=/){re.escape(user)}{_END}", "~", text) if user else text


def user_cache() -> Path:
    """Return this user's cache folder; without a home, as in some containers, one that cannot be created."""
    from platformdirs import user_cache_path

    try:
        return user_cache_path("trimbench", appauthor=False)
    except RuntimeError:
        return Path("/nonexistent/trimbench")


def own_homes() -> list[str]:
    """Return this user's home folder and its resolved path, longest first; the root folder does not count."""
    try:
        home = Path.home()
    except RuntimeError:  # a user without an entry, as in some containers
        return []
    return sorted({str(one) for one in (home, home.resolve()) if len(one.parts) > 1}, key=len, reverse=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
