"""Temporary files and folders whose names tell whether their writer is still alive."""

import contextlib
import os
import platform
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
