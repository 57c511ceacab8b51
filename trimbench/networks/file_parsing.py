"""What the readers of networks share: the text of a file, its words with their lines, rounded tables."""

from __future__ import annotations

import gzip
import logging
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.probability_tables import checked_distribution

logger = logging.getLogger(__name__)

MAX_AXES = 64  # of a numpy array
MAX_ENTRIES = 2**28


@dataclass(frozen=True)
class NetworkParts:
    """The arguments of `BayesianNetwork`."""

    states: Mapping[str, Sequence[str]]
    parents: Mapping[str, Sequence[str]]
    tables: Mapping[str, NDArray[np.float64]]


def read_bytes(path: Path) -> bytes:
    """Return what is in a file, decompressed if its name ends in ``.gz``; raise ValueError if it is damaged."""
    if path.suffix.lower() != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as stream:
            return stream.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be a whole gzip file: {error}; is it cut short?") from error


def read_text(path: Path) -> str:
    """Return the text of a file; raise ValueError if it is not UTF-8 or not whole."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text: {error}") from error


def without_comments(text: str, pattern: str) -> str:
    """Return `text` with what `pattern` matches blanked out, except a quoted name; line ends are kept."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def checked_shape(where: str, shape: Sequence[int]) -> None:
    """Raise ValueError, beginning with `where`, when no table of `shape` can be held."""
    if len(shape) > MAX_AXES or math.prod(shape) > MAX_ENTRIES:
        raise ValueError(
            f"{where}: a table must have at most {MAX_AXES} axes and {MAX_ENTRIES} entries, got {len(shape)} axes and "
            f"{math.prod(shape):.3g} entries"
        )


def probability(word: str) -> float:
    """Return the number in `word`, or raise ValueError if it is negative or not finite."""
    value = float(word)
    if not 0 <= value < math.inf:
        raise ValueError("a probability must be finite and not negative")
    return value


# An error shows no more of a word than this, so that it stays short.
LONGEST_WORD = 60


class Words:
    """The words of a text, read one after another.

    Parameters
    ----------
    path : Path
        Names the file in errors.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._words = text.split()
        self._next = 0

    def fail(self, message: str, *, back: int = 1) -> NoReturn:
        """Raise ValueError about the word that was read `back` words ago."""
        index = self._next - back
        for i, match in enumerate(re.finditer(r"\S+", self._text)):
            if i == index:
                line = self._text.count("\n", 0, match.start()) + 1
                word = match[0] if len(match[0]) <= LONGEST_WORD else f"{match[0][:LONGEST_WORD]}..."
                raise ValueError(f"{self._path}, line {line}: {message}, got {word!r}")
        line = len(self._text.splitlines())
        raise ValueError(f"{self._path}, line {line}: {message}, got the end of the file; is it cut short?")

    @property
    def left(self) -> int:
        """How many words are left."""
        return len(self._words) - self._next

    def word(self, what: str) -> str:
        """Return the next word."""
        self._next += 1
        if self.left < 0:
            self.fail(f"{what} must follow")
        return self._words[self._next - 1]

    def whole(self, what: str, *, lowest: int = 0, highest: int) -> int:
        """Return the next word as a whole number in ``lowest..highest``."""
        word = self.word(what)
        # No number in such a file has more digits, and int() is slow on very many.
        if not (word.isascii() and word.isdecimal() and len(word) <= 18 and lowest <= int(word) <= highest):
            self.fail(f"{what} must be a whole number in {lowest}..{highest}")
        return int(word)

    def wholes(self, what: str, count: int, *, lowest: int = 0, highest: int) -> list[int]:
        """Return the next `count` words as whole numbers."""
        return [self.whole(what, lowest=lowest, highest=highest) for _ in range(count)]

    def table(self, what: str, shape: Sequence[int]) -> NDArray[np.float64]:
        """Return a table: first the number of its entries, then the entries, the last axis fastest."""
        size = math.prod(shape)
        if self.whole(f"the number of entries of {what}", highest=10**18 - 1) != size:
            self.fail(f"{what} must have {size} entries, one for each combination of values {tuple(shape)}")
        words = self._words[self._next : self._next + size]
        try:
            values = np.array([float(word) for word in words])
            sound = bool(((values >= 0) & np.isfinite(values)).all())
        except ValueError:
            sound = False
        if not sound:
            for word in words:
                self._next += 1
                try:
                    probability(word)
                except ValueError:
                    self.fail(f"an entry of {what} must be a probability")
        self._next += len(words)
        if len(words) < size:
            self._next += 1
            self.fail(f"{size} entries of {what} must follow")
        checked_shape(f"{self._path}: {what}", shape)
        return values.reshape(shape)

    def end(self) -> None:
        """Raise ValueError when a word is left."""
        if self.left > 0:
            self._next += 1
            self.fail("the file must end here")


def normalised_tables(
    path: Path, tables: Mapping[str, NDArray[np.float64]], lines: Mapping[str, int] | None, *, tolerance: float
) -> dict[str, NDArray[np.float64]]:
    """Return `tables` with every distribution summing to 1, and log how far they were off.

    Raises ValueError, with the file and the line of the table if `lines` are known, if a sum differs from 1 by more
    than `tolerance`, the most that rounding explains.
    """
    worst = 0.0
    result = {}
    for name, table in tables.items():
        where = f"{path}, line {lines[name]}" if lines else f"{path}"
        try:
            result[name] = checked_distribution(table, f"table of {name!r}", ndim=table.ndim, tolerance=tolerance)
        except ValueError as error:
            raise ValueError(
                f"{where}: {error}; tables into which evidence was entered are not conditional distributions"
            ) from error
        worst = max(worst, float(np.abs(table.sum(axis=-1) - 1.0).max()))
    logger.info("%s: normalised; distributions were off by up to %.2g", path, worst)
    return result
