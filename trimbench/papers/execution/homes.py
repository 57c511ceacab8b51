"""Texts without the folders and names of users: records are shared with people who have no need of them."""

import getpass
import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
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
