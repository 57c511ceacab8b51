"""Files that are written whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def whole_file(path: str | Path) -> Iterator[TextIO]:
    """Open a temporary file beside `path` for UTF-8 text, which takes its place when everything is written.

    Raises OSError if the folder does not exist or cannot be written to; an older file at `path` is then untouched.
    """
    target = Path(path)
    # Not mkstemp: its files are readable by their owner alone, and so would the model be.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as stream:
            yield stream
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
