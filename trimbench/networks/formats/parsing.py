"""Shared parts of the readers of networks: the text of a file, its words with their lines, tables and JSON."""

from __future__ import annotations

import codecs
import errno
import gzip
import itertools
import json
import logging
import math
import os
import re
import secrets
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.values import checked_distribution

logger = logging.getLogger(__name__)

MAX_AXES = 64  # of a numpy array
# All tables of a network together have at most as many entries as its file has characters, or this many: a file can ask
# for more than it states. MAX_UNPACKED limits the size of an unpacked file, which is read in two seconds, and MAX_PLAIN
# that of a file as it is on the disk, unless a caller allows more.
MAX_UNSTATED = 2**22
MAX_VARIABLES = 2**14
MAX_UNPACKED = 2**22
MAX_PLAIN = 2**26


@dataclass(frozen=True)
class NetworkParts:
    """The arguments of `BayesianNetwork`."""

    states: Mapping[str, Sequence[str]]
    parents: Mapping[str, Sequence[str]]
    tables: Mapping[str, NDArray[np.float64]]


def read_bytes(path: Path, max_unpacked: int = MAX_UNPACKED) -> bytes:
    """Return what is in a file, unpacked if its name ends in ``.gz``.

    Raises ValueError if it is damaged, too long or not a regular file. Both are judged before anything is read.
    """
    with _opened(path) as stream:
        size, most = os.fstat(stream.fileno()).st_size, max(MAX_PLAIN, max_unpacked)
        if size > most:
            raise ValueError(f"{path} must have at most {most} bytes, got {size}; {_TOO_LONG}")
        if path.suffix.lower() != ".gz":
            return stream.read(size)
        try:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                content = unpacked.read(max_unpacked + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole gzip file: {error}; is it cut short?") from error
    if len(content) > max_unpacked:
        raise ValueError(
            f"{path} must hold at most max_unpacked={max_unpacked} bytes, got more; unpack it first if you trust it"
        )
    return content


_TOO_LONG = "if it is a network that you trust, allow more with BayesianNetwork.read(path, max_unpacked=...)"


def _opened(path: Path) -> BinaryIO:
    """Open a regular file of a disk; raise ValueError for a pipe, a device or a file of the kernel.

    A pipe may never end, and opening a device can do something, so that what a file is comes before it is opened. It is
    checked once more on the open file, which cannot be exchanged.
    """
    _check_kind(path, path.stat())
    descriptor = os.open(
        path, os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    )
    stream = os.fdopen(descriptor, "rb")
    try:
        about = os.fstat(descriptor)
        _check_kind(path, about)
        # Such as those in /proc and /sys: neither they nor their file system take up space.
        if not about.st_blocks and not os.fstatvfs(descriptor).f_blocks:
            raise ValueError(f"{path} must be a file of a disk, got one that the kernel makes up; copy its content")
    except AttributeError:  # Windows knows no blocks, and has no such files
        pass
    except BaseException:
        stream.close()
        raise
    return stream


def _check_kind(path: Path, about: os.stat_result) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{path} must be a regular file, got a pipe, socket or device; copy its content into a file")


def read_text(path: Path, max_unpacked: int = MAX_UNPACKED) -> str:
    """Return the text of a file without a byte order mark, its lines ending in line feeds.

    Raises ValueError if it is not UTF-8 or not whole.
    """
    content = read_bytes(path, max_unpacked)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = "UTF-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "another encoding"
        raise ValueError(f"{path} must be UTF-8 text, got {found} ({error}); save it as UTF-8") from error
    if "\0" in text:
        raise ValueError(f"{path} must be UTF-8 text, got zero bytes, which UTF-16 has; save it as UTF-8")
    return re.sub("\r\n?", "\n", text)


def without_comments(text: str) -> str:
    """Return `text` with a blank for each comment ``/* ... */``; line ends are kept, and so is a ``/*`` without end."""
    parts, done = [], 0
    while (start := text.find("/*", done)) >= 0 and (end := text.find("*/", start + 2)) >= 0:
        # One blank stands for a comment and keeps apart what it stood between.
        parts += [text[done:start], " ", "\n" * text.count("\n", start, end)]
        done = end + 2
    parts.append(text[done:])
    return "".join(parts)


def checked_shape(where: str, shape: Sequence[int], room: int) -> int:
    """Return how many entries remain of `room` after a table of `shape`.

    Raises ValueError, its message beginning with `where`, if the table has more.
    """
    # The product of thousands of numbers would take seconds.
    size = math.prod(shape) if len(shape) <= MAX_AXES else 0
    if len(shape) > MAX_AXES or size > room:
        entries = f" and {min(size, 10**300):.3g} entries" if size else ""
        raise ValueError(
            f"{where}: a table must have at most {MAX_AXES} axes, and all tables together no more entries than the "
            f"file has characters, or {MAX_UNSTATED}; got {len(shape)} axes{entries}"
        )
    return room - size


_LONGEST_MESSAGE = 500


@contextmanager
def short_errors() -> Iterator[None]:
    """Cut the middle out of the message of a ValueError if it would fill a screen."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        if len(text) <= _LONGEST_MESSAGE:
            raise
        half = _LONGEST_MESSAGE // 2 - 5
        raise ValueError(f"{text[:half]} [...] {text[-half:]}") from None


def probability(word: str) -> float:
    """Return the number in `word`, or raise ValueError if it is negative or not finite."""
    # Python itself takes digits of all scripts, and underscores between them.
    value = float(word) if word.isascii() and "_" not in word else math.nan
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
        where = f"{self._path}, line {self.line(index)}: {message}"
        if index >= len(self._words):
            raise ValueError(f"{where}, got the end of the file; is it cut short?")
        word = self._words[index]
        raise ValueError(f"{where}, got {word if len(word) <= LONGEST_WORD else word[:LONGEST_WORD] + '...'!r}")

    def line(self, index: int) -> int:
        """Return the line of a word by its place among all words, or the last line if there is none."""
        match = next(itertools.islice(re.finditer(r"\S+", self._text), index, None), None)
        return self._text.count("\n", 0, match.start()) + 1 if match else len(self._text.splitlines())

    @property
    def place(self) -> int:
        """The place of the next word among all words."""
        return self._next

    def names(self, what: Sequence[str]) -> list[str]:
        """Return the next words, one for each description in `what`, which must be distinct."""
        found: dict[str, None] = {}
        for one in what:
            word = self.word(one)
            if word in found:
                self.fail(f"{one} must differ from the names before it")
            found[word] = None
        return list(found)

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
        if len(shape) > MAX_AXES:
            checked_shape(f"{self._path}, line {self.line(self._next)}: {what}", shape, 0)
        size = math.prod(shape)
        if self.whole(f"the number of entries of {what}", highest=10**18 - 1) != size:
            self.fail(f"{what} must have {size} entries, one for each combination of values {tuple(shape)}")
        words = self._words[self._next : self._next + size]
        try:
            values = np.fromiter(map(float, words), np.float64, len(words))
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
        checked_shape(f"{self._path}: {what}", shape, max(MAX_UNSTATED, len(self._text)))
        return values.reshape(shape)

    def end(self) -> None:
        """Raise ValueError when a word is left."""
        if self.left > 0:
            self._next += 1
            self.fail("the file must end here")


def normalised_tables(
    path: Path, tables: Mapping[str, NDArray[np.float64]], line: Callable[[str], int], *, tolerance: float
) -> dict[str, NDArray[np.float64]]:
    """Return `tables` with every distribution summing to 1, and log how far they were off.

    Raises ValueError, with the file and the line of the table, if a sum differs from 1 by more than `tolerance`, the
    most that rounding explains.
    """
    worst = 0.0
    result = {}
    for name, table in tables.items():
        try:
            result[name] = checked_distribution(table, f"table of {name!r}", ndim=table.ndim, tolerance=tolerance)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {line(name)}: {error}; tables into which evidence was entered are not conditional "
                "distributions"
            ) from error
        worst = max(worst, float(np.abs(table.sum(axis=-1) - 1.0).max()))
    logger.info("%s: normalised; distributions were off by up to %.2g", path, worst)
    return result


# Models as JSON files: written whole or not at all, read with errors that name the file.

Model = TypeVar("Model")
_OTHER_ENDINGS = (".bif", ".xmlbif", ".bifxml", ".uai", ".erg", ".net")


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write `content` to `path` through a temporary file beside it.

    Raises OSError if the folder does not exist or cannot be written to, and ValueError if `path` has the ending of
    another format or the file would be longer than `read_json` accepts; an older file at `path` is then untouched.
    """
    if Path(path).suffix.lower() in _OTHER_ENDINGS:
        raise ValueError(
            f"path must not end like a file of another format, got {str(path)!r}; save as .json, or write a network as "
            ".bif with BayesianNetwork.write"
        )
    with whole_file(path) as stream:
        json.dump(content, stream, indent=1, allow_nan=False)
        stream.write("\n")
        if stream.tell() > MAX_PLAIN:  # `read_json` would refuse it
            raise ValueError(
                f"path must get a model of at most {MAX_PLAIN} bytes, got {stream.tell()}; leave out features"
            )


# A class has its format and that of its older name.
_OF_ONE_CLASS = 2


@short_errors()
def read_json(
    path: str | Path, model_format: str | tuple[str, ...], build: Callable[[Mapping[str, Any]], Model]
) -> Model:
    """Read the JSON file at `path` and build a model from its decoded content.

    Raises ValueError if the file is not JSON, its ``"format"`` is not `model_format` (or one of several), or it does
    not describe a model; the message names the file. Repeated keys are refused.
    """
    formats = (model_format,) if isinstance(model_format, str) else model_format
    wanted, advice = f"format {formats[0]!r}", "was it saved by another class?"
    if len(formats) > _OF_ONE_CLASS:
        wanted, advice = "a format of trimbench.save", "is it no model, or saved by a later version?"
    try:
        text = read_text(Path(path))
        content = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be a JSON file with {wanted}: {error}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found not in formats:
        raise ValueError(f"{path} must have {wanted}, got {repr(found)[:80]}; {advice}")
    try:
        return build(content)
    except (AttributeError, KeyError, MemoryError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"{path} lacks an entry or has one of the wrong type: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"the key {twice[0]!r} must be stated once")
    return dict(pairs)


# Files that are written whole or not at all.


@contextmanager
def whole_file(path: str | Path) -> Iterator[TextIO]:
    """Open a temporary file beside `path` for UTF-8 text; it takes the place of `path` when everything is written.

    Raises OSError if the folder does not exist or cannot be written to, or `path` is a folder, a device, a pipe or a
    socket, or names an open file, as /dev/stdout does; an older file at `path` is then untouched. A link is replaced,
    not the file that it points to.
    """
    target = Path(path)
    is_open = target.parent.resolve() in (Path("/dev"), Path("/proc/self/fd").resolve())
    if target.exists() and (is_open or not target.is_file()):
        kind = "folder" if target.is_dir() else "device, pipe or socket"
        raise FileExistsError(f"path must be a file, or not exist yet, got the {kind} {str(path)!r}; choose another")
    # Not mkstemp: its files are readable by their owner alone, and so would the model be.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as stream:
            yield stream
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
