"""Where a Ray cluster of this machine keeps its files, which Ray itself never removes."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zlib
from pathlib import Path

from trimbench.papers.execution.temporary import host, is_alive

# The name of a Unix socket has at most 107 bytes (103 on macOS), and Ray's are up to 66 below this folder.
_LONGEST_FOLDER = 36


def ray_folder() -> str | None:
    """Return the folder for the files of a cluster that is to start, without those that killed programs left there.

    Returns
    -------
    str or None
        None leaves the place to Ray: the folder for temporary files has too long a name.
    """
    # The machine is in the name because process numbers say nothing of another one.
    room = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()) / f"tb-ray-{zlib.crc32(host().encode()):08x}"
    for session in room.glob("session_*_*"):
        pid = session.name.rpartition("_")[2]
        if pid.isdigit() and not is_alive(int(pid)):
            remove_session(session)
    return str(room) if len(os.fsencode(room)) <= _LONGEST_FOLDER else None


def remove_session(session: Path) -> None:
    """Remove the files of a cluster that has ended, and the folder around them once it is empty."""
    shutil.rmtree(session, ignore_errors=True)
    latest = session.parent / "session_latest"
    # What cannot be removed is somebody else's, or in use.
    with contextlib.suppress(OSError):
        if latest.is_symlink() and not latest.exists():
            latest.unlink()
        session.parent.rmdir()
