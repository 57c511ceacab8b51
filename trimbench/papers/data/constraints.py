"""What the values in declarations of data sets and networks may be."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from trimbench.papers.validation import must_be


def _is_inside(path: str) -> bool:
    return bool(path) and not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


Text = Annotated[str, must_be("a text that is not empty (put it in quotes)", bool)]
Natural = Annotated[int, must_be("a whole number of at least 0", lambda number: number >= 0)]
Positive = Annotated[int, must_be("a whole number of at least 1", lambda number: number >= 1)]
Probability = Annotated[float, must_be("a number between 0 and 1 (both excluded)", lambda number: 0 < number < 1)]
Sha256 = Annotated[
    str, must_be("64 lower-case hexadecimal digits in quotes (a SHA-256)", re.compile(r"[0-9a-f]{64}").fullmatch)
]
Url = Annotated[
    str, must_be("an address that starts with https:// or http://", re.compile(r"https?://.", re.DOTALL).match)
]
CachePath = Annotated[str, must_be("a relative path that stays inside the cache (no '..')", _is_inside)]
