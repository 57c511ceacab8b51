"""Names of files and folders that say with which settings something was made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

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
