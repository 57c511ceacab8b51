"""What a Markdown page shows: its blocks, its commands, its links."""

from __future__ import annotations

import io
import itertools
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line at which it begins."""

    language: str
    text: str
    line: int


def fenced(page: str) -> list[Block]:
    """Return all fenced blocks of a page in order."""
    found = re.finditer(r"^```([^\n]*)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    return [Block(match[1], match[2], page.count("\n", 0, match.start()) + 2) for match in found]


def blocks(page: str, language: str) -> list[str]:
    """Return the text of the blocks in one language."""
    return [block.text for block in fenced(page) if block.language == language]


def commands(page: str) -> list[str]:
    """Return the arguments of each `scripts/reproduce` on its own line or in the text, without comments."""
    found = re.finditer(r"^scripts/reproduce +([^#\n]+?) *(?:#.*)?$|`scripts/reproduce\s([^`]+)`", page, re.MULTILINE)
    return [match[1] or match[2] for match in found]


def points(command: str) -> list[list[str]]:
    """Return the arguments of a command as the shell splits them; for a sweep (-m), those of each point."""
    words = shlex.split(command)
    if "-m" not in words:
        return [words]
    words.remove("-m")
    return [list(point) for point in itertools.product(*map(_choices, words))]


def _choices(word: str) -> list[str]:
    key, equals, values = word.partition("=")
    # Commas inside a list do not separate values.
    return [f"{key}{equals}{value}" for value in re.split(r",(?![^\[]*\])", values)]


def follow(page: Path) -> list[tuple[int, str, str]]:
    """Do what a page shows in the current folder: write its files, and run its Python from top to bottom.

    A YAML block begins with the path of its file. For each Python block that a text block follows, return its line,
    what it printed, and what the page says that it prints.
    """
    found = fenced(page.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "page"}
    printed = []
    for block, following in itertools.pairwise([*found, Block("", "", 0)]):
        if block.language == "yaml":
            path = Path(re.match(r"# (\S+)\n", block.text)[1])  # type: ignore[index]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if block.language == "python":
            out = io.StringIO()
            with redirect_stdout(out):
                # A traceback then names the line of the page.
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True), names)
            if following.language == "text":
                printed.append((block.line, out.getvalue(), following.text))
    return printed
