"""What a job may use: seconds, memory, and room for what it writes and returns."""

import re
from typing import NamedTuple

# The first and last half of a longer log are kept; a longer result is an error.
LOG_BYTES, RESULT_BYTES = 10_000_000, 64_000_000
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_SIZE = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})", re.ASCII)


class JobLimits(NamedTuple):
    """The seconds and the bytes of memory that one job may take; None sets no limit."""

    seconds: float | None = None
    memory: int | None = None


def size_in_bytes(text: str) -> int:
    """Return the bytes of a size such as ``"4GB"`` (a power of ten) or ``"4GiB"`` (of two); ValueError for another."""
    found = _SIZE.fullmatch(text)
    size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if size < 1:
        raise ValueError(f"memory must be a size such as 4GB, 500MB or 2GiB, or None, got {text!r}; None sets no limit")
    return size


def in_megabytes(size: float) -> str:
    """Return a number of bytes in words."""
    return f"{size / 1e6:,.0f} MB"
