"""Which data is on this machine and can be read, and what stands in the way of the rest."""

import errno
from pathlib import Path

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.sources import Declaration

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def is_here(declaration: Declaration, cache: Cache) -> bool:
    """Tell whether the data is on this machine and can be read, without verifying what it holds."""
    return all(None in map(_unreadable, copies) for copies in declaration.copies(cache))


def obstacle(declaration: Declaration, cache: Cache) -> str:
    """Return which file of the data is there and cannot be read, and what to do; empty if there is none.

    A file of which another folder of the cache has a readable copy is no obstacle.
    """
    for copies in declaration.copies(cache):
        reasons = [_unreadable(path) for path in copies]
        found = [reason for reason in reasons if reason]
        if found and None not in reasons:
            return f"{found[0]}; make it readable, or remove it and run trimbench task=fetch"
    return ""


def _unreadable(path: Path) -> str | None:
    """Return why a file cannot be read: None if it can, an empty text if it is not there."""
    try:
        with path.open("rb"):
            return None
    except OSError as error:
        if error.errno not in _ABSENT:
            return f"{path} cannot be read ({error.strerror})"
        return f"{path} is a link to a file that does not exist" if path.is_symlink() else ""
