"""Tables in LaTeX: whole table environments for an article, with no package but booktabs."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trimbench.papers.reporting.tables import heading, printable
from trimbench.papers.study.tables import Table

_GREEK = {
    **dict(zip("αβγδεζηθ", ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"), strict=True)),
    **dict(zip("ικλμνξπρ", ("iota", "kappa", "lambda", "mu", "nu", "xi", "pi", "rho"), strict=True)),
    **dict(zip("στυφχψω", ("sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"), strict=True)),
    **dict(zip("ΓΔΘΛΞΠ", ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi"), strict=True)),
    **dict(zip("ΣΦΨΩ", ("Sigma", "Phi", "Psi", "Omega"), strict=True)),
}
_MATHS = {"→": "to", "±": "pm", "×": "times", "·": "cdot", "≤": "le", "≥": "ge", "≠": "ne", "≈": "approx", "∞": "infty"}
# Signs that have a meaning in LaTeX, that it lacks, or that its default encoding prints as others.
_SIGNS = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "—": "---"}
    | {sign: rf"\ensuremath{{{sign}}}" for sign in "<>|"}
    | {"−": r"\ensuremath{-}"}
    | {sign: rf"\ensuremath{{\{name}}}" for sign, name in {**_GREEK, **_MATHS}.items()}
)


class _Size(NamedTuple):
    """A font size: width of a digit, distance of lines and space between columns, in points."""

    name: str
    digit: float
    line: float
    gap: float

    def room(self, n_columns: int) -> int:
        """Return how many characters fit into a line of so many columns."""
        return int((_TEXT_WIDTH - (n_columns - 1) * self.gap) / self.digit)


_SIZES = (
    _Size("normalsize", 5.0, 12.0, 12.0),
    _Size("small", 4.6, 11.0, 10.0),
    _Size("footnotesize", 4.25, 9.5, 8.0),
    _Size("scriptsize", 4.0, 8.0, 6.0),
    _Size("scriptsize", 4.0, 8.0, 4.0),
)
# Of signs in Computer Modern, in digits.
_WIDTHS = {
    **dict.fromkeys("ijlft.,;:!'|()[] -", 0.7),
    **dict.fromkeys("mwMW%&@+−=<>±×≤≥≠≈~", 1.65),
    **dict.fromkeys("→—∞", 2.0),
}
# Of the page of an article in 10 points, whose caption needs some of the height.
_TEXT_WIDTH, _TEXT_HEIGHT = 345.0, 480.0
# Columns of text are not narrowed to fewer characters.
_LEAST_TEXT = 16
# How much of a line the columns may take that all parts of a table begin with.
_REPEATED = 0.65


@dataclass(frozen=True)
class _Column:
    """A column: the characters in a line of it, and at least; text that `breaks` goes on in further lines."""

    heading: str
    cells: tuple[str, ...]
    is_number: bool
    width: int
    least: int
    breaks: bool = False

    def lines(self, row: int) -> int:
        """Return in how many lines a row is."""
        # Lines are not filled to the end.
        return math.ceil(1.2 * len(self.cells[row]) / self.width) if self.breaks else 1


def latex(table: Table, label: str) -> str:
    """Return a table in LaTeX, as one or more environments ``table`` with caption and label.

    What is wide gets a smaller font, then lines in its columns of text, and then parts that stand one below the other
    and begin with the same columns. What is longer than a page continues in another environment.
    """
    if table.frame.columns.empty:
        return ""
    size, parts = _layout(table)
    pages = list(_pages(parts, size, len(table.frame)))
    return "\n".join(_environment(table, label, size, parts, rows) for rows in pages)


def escaped(text: str) -> str:
    """Return a text in one line as LaTeX prints it."""
    found = " ".join(text.split()).translate(_SIGNS)
    # A bracket or a star behind the end of a row is an argument of it.
    return f"{{}}{found}" if found.startswith(("[", "*")) else re.sub(r"^-(?=[\d.])", r"\\ensuremath{-}", found)


def _columns(table: Table, *, wrap: bool) -> Iterator[_Column]:
    """Yield the columns; with `wrap`, headings have lines no longer than the cells, if their words allow."""
    shown = printable(table)
    for place, name in enumerate(shown.columns):
        title, cells = heading(name), tuple(shown.iloc[:, place])
        body = max(map(_length, cells), default=1)
        if wrap:
            title = "\n".join(textwrap.wrap(title, body, break_long_words=False, break_on_hyphens=False))
        width = max([body, *map(_length, title.split("\n"))])
        is_number = table.frame.iloc[:, place].dtype.kind in "iuf"
        words = [word for cell in cells for word in cell.split()]
        least = width if is_number else min(width, max([_LEAST_TEXT, *map(_length, words)]))
        yield _Column(title, cells, is_number, width, least)


def _length(text: str) -> int:
    """Return how many digits are as wide as a text."""
    minus = 0.6 if text.startswith("-") else 0.0
    return math.ceil(minus + sum(_WIDTHS.get(sign, 1.45 if sign.isupper() else 1.0) for sign in text))


def _layout(table: Table) -> tuple[_Size, list[list[_Column]]]:
    """Return the font and the parts of a table that stand one below the other."""
    whole, columns = (list(_columns(table, wrap=wrap)) for wrap in (False, True))
    for size, found in ((_SIZES[0], whole), *((size, columns) for size in _SIZES)):
        if _fit(found, size):
            return size, [found]
    for size in _SIZES[-2:]:
        if narrowed := _narrowed(columns, size):
            return size, [narrowed]
    smallest = _SIZES[-1]
    return smallest, _in_parts([_at_most(column, _LEAST_TEXT) for column in columns], smallest)


def _fit(columns: Sequence[_Column], size: _Size, share: float = 1.0) -> bool:
    """Tell whether the columns fit into this share of a line."""
    return sum(column.width for column in columns) <= share * size.room(len(columns))


def _differ(columns: Sequence[_Column]) -> bool:
    """Tell whether each row is another, by these columns."""
    rows = list(zip(*(column.cells for column in columns), strict=True))
    return len({*rows}) == len(rows)


def _narrowed(columns: list[_Column], size: _Size) -> list[_Column]:
    """Return the columns with text broken into lines, the widest first, so that they fit; empty if they do not."""
    found = columns
    while not _fit(found, size):
        widest = max((column.width for column in found if column.width > column.least), default=0)
        if not widest:
            return []
        found = [_at_most(column, widest - 1) for column in found]
    return found


def _at_most(column: _Column, width: int) -> _Column:
    """Return the column with lines of at most so many characters, as far as that can be."""
    width = max(width, column.least)
    return column if column.width <= width else replace(column, width=width, breaks=True)


def _in_parts(columns: list[_Column], size: _Size) -> list[list[_Column]]:
    """Return parts that fit, each of which begins with the columns that tell the rows apart."""
    first = next(
        (columns[:n] for n in range(1, len(columns)) if _differ(columns[:n]) and _fit(columns[:n], size, _REPEATED)),
        columns[:1],
    )
    parts = [list(first)]
    for column in columns[len(first) :]:
        part = [*parts[-1], column]
        if not _fit(part, size) and len(parts[-1]) > len(first):
            parts.append([*first, column])
        else:
            parts[-1] = part
    return parts


def _pages(parts: list[list[_Column]], size: _Size, n_rows: int) -> Iterator[range]:
    """Yield the rows of each page."""
    headings = sum(max(column.heading.count("\n") for column in part) + 3 for part in parts)
    start, height = 0, headings
    for row in range(n_rows):
        lines = sum(max(column.lines(row) for column in part) for part in parts)
        if (height + lines) * size.line > _TEXT_HEIGHT and row > start:
            yield range(start, row)
            start, height = row, headings
        height += lines
    yield range(start, n_rows)


def _environment(table: Table, label: str, size: _Size, parts: Sequence[Sequence[_Column]], rows: range) -> str:
    continued = rows.start > 0
    caption = rf"\caption{{{escaped(table.title)}{' (continued)' if continued else ''}}}"
    name = re.sub(r"[^A-Za-z0-9:/.,=+_-]+", "-", label)
    return "\n".join(
        [
            r"\begin{table}",
            *([r"\addtocounter{table}{-1}"] if continued else []),
            r"\centering",
            *([caption] if table.title else []),
            *([] if continued else [rf"\label{{{name}}}"]),
            r"\medskip",
            rf"\{size.name}",
            rf"\setlength{{\tabcolsep}}{{{size.gap / 2:g}pt}}",
            "\n\n\\medskip\n".join(_tabular(part, size, rows) for part in parts),
            r"\end{table}",
        ]
    )


def _tabular(columns: Sequence[_Column], size: _Size, rows: range) -> str:
    lines = [[_cell(column, column.cells[row]) for column in columns] for row in rows]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{@{{}}{''.join(_specification(column, size) for column in columns)}@{{}}}}",
            r"\toprule",
            _row([_heading(column) for column in columns]),
            r"\midrule",
            *map(_row, lines),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _specification(column: _Column, size: _Size) -> str:
    if column.breaks:
        return f"p{{{column.width * size.digit:.0f}pt}}"
    return "r" if column.is_number else "l"


def _row(cells: Sequence[str]) -> str:
    # \raggedright in the last column gives \\ another meaning.
    return rf"{' & '.join(cells)} \tabularnewline"


def _cell(column: _Column, text: str) -> str:
    return rf"\raggedright {escaped(text)}" if column.breaks else escaped(text)


def _heading(column: _Column) -> str:
    lines = [escaped(line) for line in column.heading.split("\n")]
    if len(lines) == 1 or column.breaks:
        return _cell(column, column.heading)
    stack = r" \\ ".join(lines)
    return rf"\begin{{tabular}}[b]{{@{{}}{'r' if column.is_number else 'l'}@{{}}}}{stack}\end{{tabular}}"
