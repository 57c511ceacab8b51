"""Files that are written whole or not at all, temporary ones, file names, and paths without home folders."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import platform
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


# A longer table is compressed.
_MOST_LINES = 2000
# What a spreadsheet would compute: text that begins with one of these signs, also a wide one, and is no number. It may
# begin with apostrophes of its own, so that the one that is added can be taken away again. Where numbers have a decimal
# comma, a semicolon ends a cell.
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf"
_FORMULA = rf"(?='*(?:[=@\t\r\n＝＠＋－]|[+-](?!(?:{_NUMBER})?(?:;|\Z))))"
_TO_TAME, _TAMED = re.compile(rf"(?:\A|(?<=;)){_FORMULA}"), re.compile(rf"(?:\A|(?<=;))'{_FORMULA}")


def beside(stem: Path, part: str, ending: str) -> Path:
    """Return the file of one part of an experiment, for example ``table6_rows.csv``."""
    # A part may be the name of a data set, which may have slashes and anything else.
    name = part if is_accepted(part) else safe_name(part)
    return stem.with_name(f"{stem.name}_{name}{ending}" if part else f"{stem.name}{ending}")


def csv_ending(frame: pd.DataFrame) -> str:
    """Return how the name of a table's file ends: a long table is compressed."""
    return ".csv.gz" if len(frame) > _MOST_LINES else ".csv"


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table without its index, compressed if the name ends with ``.gz``, and return its path."""
    # Without the time of writing, the same table gives the same bytes.
    packed: Any = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
    tame = _without_formulas(frame)
    return write(path, lambda temporary: tame.to_csv(temporary, index=False, encoding="utf-8", compression=packed))


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no text or heading is a formula to a spreadsheet: an apostrophe goes before one."""
    import pandas as pd

    # By number, because names may repeat. A list, because mapping would turn 1 beside a missing value into 1.0.
    tame = frame.set_axis(range(frame.shape[1]), axis=1)
    for at in range(frame.shape[1]):
        if tame[at].dtype.kind not in "iufb":
            tame[at] = pd.Series(list(map(_tame, tame[at])), index=tame.index, dtype=object)
    return tame.set_axis(list(map(_tame, frame.columns)), axis=1)


def _tame(value: object) -> object:
    return _TO_TAME.sub("'", value) if isinstance(value, str) else value


def as_it_was(text: str) -> str:
    """Return a text of a table without the apostrophes that `write_csv` put into it."""
    return _TAMED.sub("", text)


def write_text(text: str, path: Path) -> Path:
    """Write a text, and return its path."""
    return write(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write(path: Path, write_to: Callable[[Path], object]) -> Path:
    """Write a file with a function that takes a path, and return its path."""
    with temporaries([path]) as (temporary,):
        write_to(temporary)
    return path


@contextmanager
def temporaries(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary name for each path; the files take their places once all are written."""
    folder = paths[0].parent / temporary_name("writing")
    folder.mkdir()
    try:
        names = [folder / path.name for path in paths]
        yield names
        for temporary, path in zip(names, paths, strict=True):
            temporary.replace(path)
    except OSError as error:  # the system's own message about a full disk names no file
        reason = error.strerror or str(error)
        raise OSError(error.errno or 0, f"cannot write {', '.join(map(str, paths))}: {reason}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# A file that ends with the hash of all before, so that any change is noticed.

_HASH_BYTES = 32


def sealed(content: bytes) -> bytes:
    """Return a content with its hash at the end."""
    return content + hashlib.sha256(content).digest()


def unsealed(whole: bytes) -> bytes:
    """Return the content of what `sealed` made; raise ValueError if anything in it was changed."""
    content = whole[:-_HASH_BYTES]
    if hashlib.sha256(content).digest() != whole[-_HASH_BYTES:]:
        raise ValueError("its content does not have the hash that it states")
    return content


# Names of files and folders that say with which settings something was made.

# File systems allow 255 bytes; this leaves room for what is added to a name.
_LONGEST = 120
_HASH_DIGITS = 8
_LIST = re.compile(r"\[([^\[\]+]*)\]")


def settings_name(settings: Sequence[str]) -> str:
    """Return the name for settings as the command line has them, for example ``threshold=0.4,networks=heart+voting``.

    Different settings of one key have different names, apart from a value and the list of this value alone: no key
    takes both.
    """
    plain = [_LIST.sub(lambda found: re.sub(r", *", "+", found[1]), one) for one in settings]
    return safe_name(",".join(plain), stands_for=settings if "+" in "".join(settings) else None)


def safe_name(text: str, stands_for: object = None) -> str:
    """Return a text as a name that every file system accepts.

    If that changes the text, a few digits of its hash keep different texts apart, as they do if the text alone does not
    tell what it `stands_for`, or has capitals: some file systems take ``A`` and ``a`` for the same name.
    """
    name = _accepted(text)
    if is_accepted(text) and name == name.lower() and stands_for is None:
        return name
    digits = hashlib.sha256(repr((text, stands_for)).encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[:_LONGEST]}-{digits}"


def is_accepted(text: str) -> bool:
    """Tell whether every file system accepts a text as a name, as it is."""
    return text == _accepted(text) and len(text) <= _LONGEST and bool(text.strip("."))


def _accepted(text: str) -> str:
    return re.sub(r"[^\w=.,+-]+", "_", text, flags=re.ASCII)


# Temporary files and folders whose names tell whether their writer is still alive.

# No write takes this long.
_DAY_SECONDS = 24 * 3600.0


def remove_stale(temporaries: Iterable[Path]) -> None:
    """Remove the temporary files and folders whose writer is gone."""
    for temporary in temporaries:
        # Failing to remove one is harmless: it is never read, and the folder may be read-only on purpose.
        with contextlib.suppress(OSError):
            if _is_stale(temporary):
                _remove(temporary)


def remove_abandoned(temporaries: Iterable[Path]) -> None:
    """Remove temporary files and folders that are a day old, where names do not tell the writer."""
    for temporary in temporaries:
        with contextlib.suppress(OSError):
            if _is_old(temporary):
                _remove(temporary)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder of this process, and remove it at the end."""
    folder = make_temporary_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_temporary_folder() -> Path:
    """Make a temporary folder of this process, and remove those of dead ones."""
    remove_temporary_folders()
    folder = Path(tempfile.gettempdir(), temporary_name("trimbench"))
    folder.mkdir(mode=0o700)
    return folder


def remove_temporary_folders() -> None:
    """Remove the temporary folders of dead processes."""
    remove_stale(Path(tempfile.gettempdir()).glob("trimbench.*.tmp"))


def temporary_name(stem: str) -> str:
    """Return a name that tells who writes the file, and that nobody else chooses."""
    return f"{stem}.{host()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"


def host() -> str:
    """Return the name of this machine in the characters of a file name."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", platform.node())[:64] or "unknown"


def _is_stale(temporary: Path) -> bool:
    """Tell whether the writer in the name of a temporary file is gone."""
    parts = temporary.name.split(".")
    if len(parts) != 5 or not parts[2].isdigit():
        return False  # not one of ours
    if parts[1] == host() and os.name == "posix":
        return not is_alive(int(parts[2]))
    # The processes of another host cannot be seen from here.
    return _is_old(temporary)


def _is_old(temporary: Path) -> bool:
    return time.time() - temporary.stat().st_mtime > _DAY_SECONDS


def _remove(temporary: Path) -> None:
    if temporary.is_dir():
        shutil.rmtree(temporary)
    else:
        temporary.unlink()


def is_alive(pid: int) -> bool:
    """Tell whether there is a process with this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # exists, but belongs to somebody else
        return True
    return True


# Texts without the folders and names of users: records are shared with people who have no need of them.

_ROOT = Path(__file__).resolve().parents[2]
# What may follow the name of a user or of a folder in a text.
_END = r"(?![\w.-])"
_ANY_HOME = re.compile(rf"(?<![\w.~-])/(?:home|Users)/[\w.-]+{_END}")


def without_homes(text: str) -> str:
    """Return a text in which paths begin with ``~`` or in the folder of this project.

    Homes are those of this user, and all folders in ``/home`` and ``/Users``, which may be those of another machine.
    Where this user's name is a folder elsewhere, as in ``/scratch/<user>``, it becomes ``~``, too.
    """
    text = text.replace(f"{_ROOT}/", "")
    for home in _own_homes():
        text = re.sub(rf"(?<![\w.~-]){re.escape(home)}{_END}", "~", text)
    text = _ANY_HOME.sub("~", text)
    user = _user()
    return re.sub(rf"(?<=/){re.escape(user)}{_END}", "~", text) if user else text


def _own_homes() -> list[str]:
    """Return the home of this user and where it really is, the longest first; the root of all files is none."""
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
