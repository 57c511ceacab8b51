"""Files that are written whole or not at all, temporary folders, file names, and texts without home folders."""

from __future__ import annotations

import contextlib
import csv
import errno
import getpass
import gzip
import hashlib
import io
import itertools
import json
import logging
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from trimbench.reproduction.project import DISTRIBUTION, project
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.world import world

if TYPE_CHECKING:
    import pandas as pd


_log = logging.getLogger(__name__)
# Longer tables are compressed; no table of a run is wider, has more cells, or becomes longer when it is unpacked.
_MOST_LINES, _MOST_COLUMNS, _MOST_CELLS = 2000, 5000, 2**22
_LONGEST_TABLE = 2**26
# Text that a spreadsheet would evaluate: it begins with one of these signs, possibly full-width, and is not a number.
# Apostrophes may come first, so that the one that is added can be taken away again, and quotes, which a reader with
# another separator drops. Where a table is read with another separator, or without quotes, a cell begins within a text.
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf"


def _formula(ends: str) -> str:
    """Return the pattern of a formula's beginning, where a number that `ends` follow is none."""
    return rf"""(?=['"]*(?:[=@＝＠＋－]|[+-](?!(?:{_NUMBER})?(?:{ends}|\Z))))"""


# A comma may belong to a number, except behind another comma, as in a list.
_BEGINNINGS = (
    (r"\A", rf"""(?:(?=['"]*[\t\r\n])|{_formula(";")})"""),
    (r"(?<=[;\t\r\n])", _formula(r"[;\t\r\n]")),
    (r"(?<=,)", _formula(r"[],;)}\t\r\n]")),
)
_TO_TAME = re.compile("|".join(before + after for before, after in _BEGINNINGS))
_TAMED = re.compile("|".join(f"{before}'{after}" for before, after in _BEGINNINGS))


def beside(stem: Path, part: str, ending: str) -> Path:
    """Return the file of one part of an experiment, for example ``table6_rows.csv``."""
    # A part may be the name of a data set, with slashes and any other characters.
    name = part if is_accepted(part) else safe_name(part)
    return stem.with_name(f"{stem.name}_{name}{ending}" if part else f"{stem.name}{ending}")


def csv_ending(frame: pd.DataFrame) -> str:
    """Return the ending of a table's file name: ``.csv.gz`` for a long table, which is compressed."""
    return ".csv.gz" if len(frame) > _MOST_LINES else ".csv"


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table without its index, compressed if the name ends with ``.gz``, and return its path.

    It is read back before it takes its name. Raises ConfigurationError if that is not what was written.
    """
    # Some readers take a byte order mark away, and see what was behind it.
    heads = [str(name).lstrip("\ufeff" * (not at)) for at, name in enumerate(frame.columns)]
    # By position, because names may repeat.
    columns = [_texts(frame.iloc[:, at]) for at in range(frame.shape[1])]
    is_text = [frame.dtypes.iloc[at].kind not in _NUMERIC for at in range(frame.shape[1])]

    def write_to(temporary: Path) -> None:
        with _written(temporary) as stream:
            cells = [map(_cell, one) if of_text else one for one, of_text in zip(columns, is_text, strict=True)]
            rows = map(",".join, itertools.chain([map(_cell, heads)], zip(*cells, strict=True)))
            # An empty line would be no row.
            stream.writelines(f"{row}\n" if row or not heads else '""\n' for row in rows)
        try:
            if len({*heads}) < len({*frame.columns}):
                raise ValueError("two headings differ in a byte order mark alone")
            _compare(_rows(temporary), heads, columns, is_text)
        except ValueError as error:
            raise ConfigurationError(f"{path} cannot be written: {error}; change that, or write less of it") from error

    return write(path, write_to)


_NUMERIC = "iufb"  # kinds of types whose cells are never text
_TO_QUOTE = re.compile(r'[",\t\r\n]')


def _texts(column: pd.Series[Any]) -> list[str]:
    """Return the cells of a column as text; missing ones are empty."""
    values = column.to_numpy().astype(str).tolist() if column.dtype.kind in _NUMERIC else map(str, column)
    return ["" if absent else text for text, absent in zip(values, column.isna(), strict=True)]


def _cell(text: str) -> str:
    """Return a text as a cell of a file: no formula begins in it, and it is quoted where that is needed."""
    tame = _tame(text)
    return '"' + tame.replace('"', '""') + '"' if _TO_QUOTE.search(tame) else tame


@contextmanager
def _written(path: Path) -> Iterator[TextIO]:
    """Open a new file for a table; the same table gives the same bytes, so that the time of writing is in none."""
    with world().create(path) as file, contextlib.ExitStack() as ending:
        packed = path.suffix == ".gz"
        raw = ending.enter_context(gzip.GzipFile(path.name, "wb", fileobj=file, mtime=0)) if packed else file
        with io.TextIOWrapper(cast("Any", raw), "utf-8", newline="") as stream:
            yield stream


def _compare(
    found: list[list[str]], heads: Sequence[str], columns: Sequence[list[str]], is_text: Sequence[bool]
) -> None:
    """Raise ValueError unless a table that was read back has these headings and cells."""
    first, *rest = found or [[]]
    if [as_it_was(name) for name in first] != heads or {*map(len, rest)} - {len(heads)}:
        raise ValueError("its headings do not read back")
    got = zip(*rest, strict=True) if rest else [()] * len(heads)
    for name, cells, wanted, of_text in zip(heads, got, columns, is_text, strict=True):
        if wanted != ([*map(as_it_was, cells)] if of_text else [*cells]):
            raise ValueError(f"its column {name[:100]!r} does not read back")


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote, with cells as text; ValueError if it is not one, too wide or too long."""
    import pandas as pd

    unlinked(path, path.parent)
    first, *rows = _rows(path) or [[]]
    names = list(map(as_it_was, first))
    if len(names) > _MOST_COLUMNS or len({*names}) < len(names):
        raise ValueError(f"it must have at most {_MOST_COLUMNS:,} columns, each with a name of its own")
    if wrong := next((row for row in rows if len(row) != len(names)), None):
        raise ValueError(f"it has {len(names)} columns, and a line of {len(wrong)} values")
    return pd.DataFrame(rows, columns=names, dtype="str")


def _rows(path: Path) -> list[list[str]]:
    csv.field_size_limit(2**31 - 1)  # a list of many numbers is one cell
    text = read_unpacked(path, _LONGEST_TABLE).decode("utf-8-sig")
    rows, room = [], _MOST_CELLS
    try:
        for row in filter(None, csv.reader(io.StringIO(text, newline=""), strict=True)):
            rows.append(row)
            room -= len(row)
            if room < 0:
                raise ValueError(f"it must have at most {_MOST_CELLS:,} cells")
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return rows


def _tame(text: str) -> str:
    """Return a text with an apostrophe before each part of it that a spreadsheet could take for a formula."""
    return _TO_TAME.sub("'", text)


def as_it_was(text: str) -> str:
    """Return the text of a cell without the apostrophes that `write_csv` added."""
    return _TAMED.sub("", text)


# The one door by which files are read: regular files of an ordinary file system, opened once, and no longer than they
# may be, which is known before they are read.

_LONGEST = 2**26


class NotDataError(OSError):
    """A path leads to something else than a regular file: a pipe, a device, or a file that the kernel makes up."""


def opened(path: Path) -> io.BufferedReader:
    """Open a file to read.

    Raises NotDataError for what may never end, such as a pipe whose writer never comes, for a device, and for files
    that tell of a process, such as those in ``/proc``.
    """
    # Opening a device can do something, so that it is looked at before. Then it may be exchanged, so that what was
    # opened is looked at, too.
    _check_kind(path, path.stat())
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    stream = os.fdopen(descriptor, "rb")
    try:
        about = os.fstat(descriptor)
        _check_kind(path, about)
        # Neither such a file nor its file system takes up space.
        if not about.st_blocks and not os.fstatvfs(descriptor).f_blocks:
            raise NotDataError(f"{path} must be a file of a disk, got one that the kernel makes up; copy its content")
    except BaseException:
        stream.close()
        raise
    return stream


def _check_kind(path: Path, about: os.stat_result) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(about.st_mode):
        raise NotDataError(f"{path} must be a regular file, got a pipe, a socket or a device; copy what it gives")


def read_bytes(path: Path, most: int = _LONGEST) -> bytes:
    """Return the content of a file; raise ConfigurationError if it has more than `most`, and as `opened` does."""
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise ConfigurationError(f"{path} must have at most {most:,} bytes, got {size:,}; take a shorter file")
        return stream.read(size)  # Python would reserve memory for as much as the limit


def read_text(path: Path, most: int = _LONGEST) -> str:
    """Return the text of a file, its lines ending in line feeds; raise as `read_bytes`, and ValueError for no UTF-8."""
    return read_bytes(path, most).decode().replace("\r\n", "\n").replace("\r", "\n")


def read_unpacked(path: Path, most: int = _LONGEST) -> bytes:
    """Return the content of a file, decompressed if its name ends in ``.gz``.

    Raises as `read_bytes` does, also if it unpacks to more than `most`, and EOFError, OSError or zlib.error if it is
    damaged.
    """
    content = read_bytes(path, most)
    if path.suffix == ".gz":
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            content = stream.read(most + 1)
    if len(content) > most:
        raise ConfigurationError(f"{path} must unpack to at most {most:,} bytes, got more; take a shorter file")
    return content


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file of any length; raise as `opened` does."""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_text(text: str, path: Path, *, flush: bool = False) -> Path:
    """Write a text, and return its path; with `flush`, it outlives a power cut from then on."""
    return write_bytes(text.encode(), path, flush=flush)


def write_bytes(content: bytes, path: Path, *, flush: bool = False) -> Path:
    """Write bytes, and return the path; with `flush`, they outlive a power cut from then on."""

    def write_to(temporary: Path) -> None:
        world().write(temporary, content)
        if flush:  # before it takes its name: what a file system keeps first is up to it
            world().flush(temporary)

    return write(path, write_to)


def write(path: Path, write_to: Callable[[Path], object]) -> Path:
    """Write a file with a function that takes a temporary path, and return the file's path."""
    with temporaries([path]) as (temporary,):
        write_to(temporary)
    return path


@contextmanager
def temporaries(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary path for each file of a folder, which is created; they move into place once all are written."""
    try:
        world().make_folders(paths[0].parent)
        with temporary_folder(paths[0].parent, "writing") as folder:
            names = [folder / path.name for path in paths]
            yield names
            for temporary, path in zip(names, paths, strict=True):
                world().rename(temporary, path)
    except OSError as error:  # the system's own message about a full disk names no file
        reason = error.strerror or str(error)
        raise OSError(error.errno or 0, f"cannot write {', '.join(map(str, paths))}: {reason}") from error


def unlinked(path: Path, folder: Path) -> Path:
    """Return a path below a folder that may be somebody else's.

    Raises ValueError if the path, or a folder on the way to it, is a symbolic link: the file behind it, whose content
    would be shown or shared, could be any of the reader's own. Whether `folder` is a link is its user's business.
    """
    for part in (path, *path.parents):
        if part == folder:
            break
        if part.is_symlink():
            raise ValueError(f"{part} is a symbolic link, which is not followed; put there what it stands for")
    return path


def beside_runs(root: Path, *names: str) -> Path:
    """Return a path in the folder of results, beside the runs; raise ConfigurationError if a symbolic link is on it."""
    try:
        return unlinked(root.joinpath(*names), root)
    except ValueError as error:
        raise ConfigurationError(f"results {str(root)!r} must not lead elsewhere: {error}") from error


def put_aside(path: Path) -> None:
    """Give a folder in the place of a file, which cannot replace it, another name; its content is kept."""
    if path.is_dir() and not path.is_symlink():
        world().rename(path, path.with_name(f"{path.name}.{world().token(4)}.aside"))


# Files that end with a seal: a hash of what they are and of their content, so that a change and a mix-up are noticed.

_HASH_BYTES = 32


def sealed(content: bytes, kind: str, key: str) -> bytes:
    """Return a content with its seal appended, which only the same `kind` and `key` break open again.

    Parameters
    ----------
    content : bytes
    kind : str
        What the content is, for example ``"table"``.
    key : str
        Everything by which it is asked for, or a hash of that.
    """
    return content + _seal(content, kind, key)


def unsealed(whole: bytes, kind: str, key: str) -> bytes:
    """Return the content of what `sealed` made; raise ValueError if it was changed, or is of another kind or key."""
    content = whole[:-_HASH_BYTES]
    if _seal(content, kind, key) != whole[-_HASH_BYTES:]:
        raise ValueError("its hash is not that of its content and of what it stands for")
    return content


def _seal(content: bytes, kind: str, key: str) -> bytes:
    digest = hashlib.sha256(json.dumps([kind, key]).encode() + b"\n")  # no line break occurs in such JSON
    digest.update(content)
    return digest.digest()


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
# The lock in a temporary folder proves, with the folder's name, that it is one of this program's.
_LOCK, _UNNAMED = "trimbench.lock", ".trimbench.lock"
_HELD_ELSEWHERE = (errno.EAGAIN, errno.EACCES)
_held: dict[Path, int] = {}


def lock(path: Path, *, wait: bool = False) -> int | None:
    """Lock a file, creating it if necessary; return its descriptor, or None if another process has locked it.

    The lock is released when the descriptor is closed or the process ends. Where the file system has no locks, a
    warning says so, and the file counts as locked by this process.
    """
    descriptor = world().open_lock(path, create=True)
    found = _locked(descriptor, wait=wait)
    if found is None:
        _log.warning("%s cannot be locked on this file system; run one program at a time there", path)
    if found is not False:
        return descriptor
    world().close(descriptor)
    return None


@contextmanager
def turn(path: Path, on_wait: Callable[[], object]) -> Iterator[None]:
    """Hold the lock of a file, which is created, or of a folder; call `on_wait` if another process holds it now."""
    # The file stays: removing it while others wait for it could let two of them in.
    descriptor = lock(path)
    if descriptor is None:
        on_wait()
        descriptor = lock(path, wait=True)
    try:
        yield
    finally:
        world().close(-1 if descriptor is None else descriptor)


def _locked(descriptor: int, *, wait: bool = False) -> bool | None:
    """Tell whether an open file is locked now; None if its file system has no locks."""
    try:
        world().lock(descriptor, wait=wait)
    except OSError as error:
        return False if error.errno in _HELD_ELSEWHERE else None
    return True


def make_temporary_folder(above: Path | None = None, stem: str = DISTRIBUTION) -> Path:
    """Create a folder that this process holds until `remove_temporary_folder`, and remove those that nobody holds.

    It is created in the folder `above`, by default that for temporary files of this machine.
    """
    remove_temporary_folders(above, stem)
    while True:
        folder = (above or Path(tempfile.gettempdir())) / f"{stem}.{world().token(4)}.tmp"
        world().make_folder(folder, 0o700)
        # Until it is locked, another process may take it for abandoned and remove it; then a new one is made.
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as otherwise:
            otherwise.callback(_remove_if_possible, folder)
            descriptor = world().open_lock(folder / _UNNAMED, create=True)
            otherwise.callback(world().close, descriptor)
            if _is_taken(folder, descriptor):
                _held[folder] = descriptor
                otherwise.pop_all()
                return folder


def _is_taken(folder: Path, descriptor: int) -> bool:
    """Lock a new folder, and tell whether this process holds it now; where the file system has no locks, it does."""
    found = _locked(descriptor)
    if found:
        world().rename(folder / _UNNAMED, folder / _LOCK)
    return found is not False


def _remove_if_possible(folder: Path) -> None:
    with contextlib.suppress(OSError):
        world().remove_tree(folder)


def remove_temporary_folder(folder: Path) -> None:
    """Remove a folder of this process."""
    with contextlib.suppress(OSError):
        _remove_but_lock_last(folder)
    world().close(_held.pop(folder))


def _remove_but_lock_last(folder: Path) -> None:
    """Remove a temporary folder; if a part of it stays, so does the lock, by which the next program knows it."""
    stays: OSError | None = None
    for path in folder.iterdir():
        try:
            if path.is_dir() and not path.is_symlink():
                world().remove_tree(path)
            elif path.name not in (_LOCK, _UNNAMED):
                world().unlink(path)
        except OSError as error:
            stays = error
    if stays:
        raise stays
    world().remove_tree(folder)


@contextmanager
def temporary_folder(
    above: Path | None = None, stem: str = DISTRIBUTION, *, is_needed: Callable[[Path], bool] | None = None
) -> Iterator[Path]:
    """Yield a temporary folder of this process, and remove it at the end, unless it `is_needed` then."""
    folder = make_temporary_folder(above, stem)
    try:
        yield folder
    finally:
        if is_needed and is_needed(folder):
            world().close(_held.pop(folder))
        else:
            remove_temporary_folder(folder)


def lock_of(folder: Path) -> Path | None:
    """Return the lock file of a temporary folder, whether or not it is held; None if there is none."""
    files = (folder / name for name in (_LOCK, _UNNAMED))
    return next((file for file in files if file.is_file() and not file.is_symlink()), None)


def temporary_folders(above: Path, stem: str) -> list[Path]:
    """Return the folders that have the names of temporary folders of this program; a lock proves that they are."""
    name = re.compile(rf"{re.escape(stem)}\.[0-9a-f]{{8}}\.tmp")
    found = (one for one in above.glob(f"{stem}.*.tmp") if name.fullmatch(one.name))
    return [one for one in found if one.is_dir() and not one.is_symlink()]


def remove_temporary_folders(above: Path | None = None, stem: str = DISTRIBUTION) -> None:
    """Remove the temporary folders that no process holds: only those with a lock of this program, or empty ones."""
    for folder in temporary_folders(above or Path(tempfile.gettempdir()), stem):
        # Failing to remove one is harmless: it is never read, and the folder may be read-only on purpose.
        with contextlib.suppress(OSError):
            if not (held := lock_of(folder)):
                world().remove_folder(folder)  # its maker has ended, or will make another
                continue
            descriptor = world().open_lock(held)
            try:
                found = _locked(descriptor)
                if found or (found is None and _is_old(folder, _DAY_SECONDS)):
                    _remove_but_lock_last(folder)
            finally:
                world().close(descriptor)


def remove_abandoned(temporaries: Iterable[Path], seconds: float = _DAY_SECONDS) -> None:
    """Remove this program's own files and folders older than `seconds`, where no lock tells whether they are in use."""
    for temporary in temporaries:
        with contextlib.suppress(OSError):
            if _is_old(temporary, seconds):
                remove = world().remove_tree if temporary.is_dir() else world().unlink
                remove(temporary)


def _is_old(path: Path, seconds: float) -> bool:
    # Where the clock was put back, what was written before seems to come from the future.
    return abs(world().now() - path.stat().st_mtime) > seconds


# Texts without home folders and names of users: records are shared with people who do not need them.

# The end of the name of a user or folder in a text.
_END = r"(?![\w.-])"
_ANY_HOME = re.compile(rf"(?<![\w.~-])/(?:home|Users)/[\w.-]+{_END}")


def without_homes(text: str) -> str:
    """Return a text in which ``~`` stands for home folders, and paths in this project are relative to its folder.

    Home folders are those of this user, and all in ``/home`` and ``/Users``, which may be those of another machine.
    Elsewhere, a folder with this user's name, as in ``/scratch/<user>``, becomes ``~``, too.
    """
    text = text.encode(errors="backslashreplace").decode()  # files cannot hold lone surrogates
    text = text.replace(f"{project().folder}/", "")
    for home in own_homes():
        text = re.sub(rf"(?<![\w.~-]){re.escape(home)}{_END}", "~", text)
    text = _ANY_HOME.sub("~", text)
    user = _user()
    return re.sub(rf"(?<=/){re.escape(user)}{_END}", "~", text) if user else text


def user_cache() -> Path:
    """Return this user's cache folder; without a home, as in some containers, one that cannot be created."""
    from platformdirs import user_cache_path

    try:
        return user_cache_path(project().name, appauthor=False)
    except RuntimeError:
        return Path("/nonexistent", project().name)


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
