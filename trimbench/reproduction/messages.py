"""Texts for people: errors that fit on a screen, values and rows in words, and what a terminal can show."""

from __future__ import annotations

import functools
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TextIO

LONGEST_VALUE, _LONGEST_REASON, _LONGEST_MESSAGE = 120, 350, 500
# Characters that control a terminal, or change the direction of writing; not tabs and line ends.
CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")


class ShortError(Exception):
    """An error whose message fits on a screen, whatever a file holds: the middle of a long one is left out."""

    def __init__(self, message: str = "", *, whole: bool = False) -> None:
        half = _LONGEST_MESSAGE // 2 - 5
        is_short = whole or len(message) <= _LONGEST_MESSAGE
        super().__init__(message if is_short else f"{message[:half]} [...] {message[-half:]}")


def brief(value: object) -> str:
    """Return the repr of a value for the message of an error, without its middle if it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:80]} ... {text[-30:]}"


def reason(error: BaseException) -> str:
    """Return the message of an error on one line, without its middle if it is long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_REASON else f"{text[:250]} ... {text[-90:]}"


def visible(text: str) -> str:
    r"""Return a text with escapes such as ``\x1b`` for its control characters; line ends and tabs stay."""
    return CONTROL.sub(lambda character: character[0].encode("unicode_escape").decode(), text)


class Shown:
    """A stream on which nothing of a text controls the terminal; `stream` takes what may, such as a progress bar."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, with its control characters as escapes."""
        return self.stream.write(visible(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        self.stream.writelines(map(visible, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def controllable(stream: TextIO) -> TextIO:
    """Return the stream behind what shows all characters, for what controls the terminal on purpose."""
    return stream.stream if isinstance(stream, Shown) else stream


# Values and rows in messages, which stay short whatever a table holds.

_LONGEST, _COMPARED = 24, 60


def quoted(value: str) -> str:
    """Return a value in quotes, shortened if it is long."""
    return repr(shortened(value))


def shortened(value: str) -> str:
    """Return a value, shortened if it is long."""
    return value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."


def shown(values: Sequence[str], limit: int = 8) -> str:
    """Return values as a list in quotes.

    >>> shown(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    return some([*map(quoted, values)], limit)


def some(texts: Sequence[str], limit: int, between: str = ", ") -> str:
    """Return the first texts, at most `limit`, and how many more there are."""
    more = len(texts) - limit
    return between.join(texts[:limit]) + (f" and {more:,} more" if more > 0 else "")


def rows_in(count: int) -> str:
    """Return a number of rows in words."""
    return "1 row" if count == 1 else f"{count:,} rows"


def rows_named(rows: Sequence[int], limit: int = 10) -> str:
    """Return the numbers of some rows in words.

    >>> rows_named([7]), rows_named([1, 2, 3], 2)
    ('row 7', 'rows 1, 2 and 1 more')
    """
    listed = some([*map(str, rows)], limit)
    return f"row {listed}" if len(rows) == 1 else f"rows {listed}"


def terminal_width() -> int:
    """Return the width of the terminal; 80 if it is unknown, as for a pipe."""
    return shutil.get_terminal_size().columns


def fitted(text: str, indent: int | None = None) -> str:
    """Wrap a text to the terminal, indented after the first line; table rows, words and percentages stay whole."""
    width, lines = terminal_width(), []
    fill = functools.partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    for line in text.replace(" %", "\xa0%").split("\n"):
        start = len(line) - len(line.lstrip()) if indent is None else indent
        is_whole = len(line) <= width or line.startswith("|") or len(line.split()) == 1
        lines.append(line if is_whole else fill(line, subsequent_indent=" " * start))
    return "\n".join(lines).replace("\xa0%", " %")


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question about the nearest name, or nothing if none is near."""
    # The time for a comparison grows with the square of the length.
    folded = {one.casefold()[:_COMPARED]: one for one in reversed(names)}
    close = get_close_matches(name.casefold()[:_COMPARED], folded, n=1)
    return f" (did you mean {quoted(folded[close[0]])}?)" if close else ""
