"""The Bayesian Interchange Format (``.bif``), read and written.

The grammar is small, and the libraries that read it keep probabilities in single precision or need thirty packages.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.formats.parsing import (
    MAX_UNPACKED,
    MAX_UNSTATED,
    MAX_VARIABLES,
    NetworkParts,
    checked_shape,
    normalised_tables,
    probability,
    read_text,
    whole_file,
)

# Networks in this format are often written by hand, with two digits: thirds are then off by 0.01.
TOLERANCE = 0.02
# Commas and bars only separate; line ends are counted.
WORD = re.compile(r'"([^"\n]*)"|([{}();])|((?:(?!//|/\*)[^\s,|{}();"])+)|(")|//[^\n]*|(/\*)|\n')
# A block up to its end, where there are neither quotes nor comments; a row of it; what only separates its words.
_PLAIN_BLOCK = re.compile(r'[^{}"/]*}')
_PLAIN_ROW = re.compile(r"\s*(?:\(([^()]*)\)|(table|default)\s)([0-9eE+.\-\s]*)")
_SEPARATORS = str.maketrans(",|", "  ")
# A property is any text up to its semicolon.
_PROPERTY = re.compile(r'(?:"[^"\n]*"|[^;"]|"(?![^"\n]*"))*+;')
_STATEMENT = re.compile(r"\n\s*(?:[(}]|(?:table|default|type|property|variable|probability)\b)")
# How files of other formats begin, whatever their names say.
_OTHERS = {
    r"\s*(?:<\?[^>]*>\s*)?<smile\b": "a network of GeNIe, which pyAgrum reads as .xdsl and writes as BIF",
    r"\s*<": "XML: rename a file in XMLBIF to .xmlbif",
    r"\s*(?:%[^\n]*\n\s*)*+(?:net\s*{|class\b)": "a network of Hugin, which pyAgrum reads as .net and writes as BIF",
}
_KIND = re.compile(r"discrete\[(\d+)\]")


class _Word(NamedTuple):
    text: str
    line: int
    quoted: bool = False

    @property
    def is_end(self) -> bool:
        return not self.text and not self.quoted

    def is_(self, text: str) -> bool:
        return self.text == text and not self.quoted


# Line and numbers by the parents' states, or by "table" or "default".
_Rows = dict[tuple[str, ...] | str, tuple[int, list[float]]]


class _Definition(NamedTuple):
    """A probability block: its line, the parents' names, and its rows."""

    line: int
    parents: list[str]
    rows: _Rows


def read_bif(path: Path, max_unpacked: int = MAX_UNPACKED) -> NetworkParts:
    """Read a network in the Bayesian Interchange Format.

    Probabilities are stated row by row, ``(parents' states) numbers;``, with ``default numbers;`` for the other rows,
    or as one ``table numbers;``, in which the node itself varies slowest and its last parent fastest.

    Raises ValueError if the file cannot be read; the message names the file, the line and the word.
    """
    return _Reader(path, read_text(path, max_unpacked)).network()


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text
        self._room = max(MAX_UNSTATED, len(text))
        self._last_end = text.rfind("*/")
        self._line = 1
        self._continue(0)

    def _continue(self, place: int) -> None:
        """Go on with the words from a place in the text."""
        self._place = place
        self._matches = WORD.finditer(self._text, place)
        self._ahead: _Word | None = None

    def _fail(self, message: str, word: _Word) -> NoReturn:
        got = "the end of the file; is it cut short?" if word.is_end else repr(word.text)
        raise ValueError(f"{self._path}, line {word.line}: {message}, got {got}")

    def _next(self) -> _Word:
        while match := next(self._matches, None):
            kind = match.lastindex
            if kind == 5 and match.end() <= self._last_end:  # one without an end is not a comment
                end = self._text.index("*/", match.end()) + 2
                self._line += self._text.count("\n", match.start(), end)
                self._continue(end)
            elif kind is not None:
                self._place = match.end()
                return _Word(match[kind], self._line, kind == 1)
            else:
                self._line += match[0] == "\n"
        return _Word("", self._line)

    def _peek(self) -> _Word:
        if self._ahead is None:
            self._ahead = self._next()
        return self._ahead

    def _take(self) -> _Word:
        word, self._ahead = self._peek(), None  # after the end comes the end
        return word

    def _expect(self, *texts: str) -> _Word:
        word = self._take()
        if word.quoted or word.text not in texts:
            self._fail(f"{' or '.join(map(repr, texts))} must follow", word)
        return word

    def _name(self, what: str) -> str:
        word = self._take()
        if not word.text or (not word.quoted and word.text in '{}();"'):
            self._fail(f"{what} must follow", word)
        return word.text

    def _names_until(self, end: str, what: str) -> list[str]:
        names = []
        while not self._peek().is_(end):
            names.append(self._name(what))
        self._take()
        return names

    def _numbers(self) -> list[float]:
        numbers = []
        while not (word := self._take()).is_(";"):
            try:
                numbers.append(probability(word.text))
            except ValueError:
                self._fail("a probability or ';' must follow", word)
        return numbers

    def _plain_rows(self) -> _Rows | None:
        """Take the rows of a block and its end at once; None, and nothing taken, if its words need a closer look."""
        found = None if self._ahead else _PLAIN_BLOCK.match(self._text, self._place)
        rows: _Rows = {}
        line = self._line
        *parts, rest = found[0][:-1].translate(_SEPARATORS).split(";") if found else ["?"]
        for part in parts:
            row = _PLAIN_ROW.fullmatch(part)
            key = row and (row[2] or tuple(row[1].split()))
            if row is None or key is None or key in rows:
                return None
            try:
                numbers = [*map(float, row[3].split())]
            except ValueError:
                return None
            if not (min(numbers, default=0.0) >= 0 and sum(numbers) < math.inf):
                return None
            rows[key] = (line + part.count("\n", 0, max(row.start(1), row.start(2))), numbers)
            line += part.count("\n")
        if found is None or rest.strip():
            return None
        self._line = line + rest.count("\n")
        self._continue(found.end())
        return rows

    def _skip_property(self) -> None:
        """Skip past the semicolon after the word "property", which was taken last."""
        found = _PROPERTY.match(self._text, self._place)
        if not found or _STATEMENT.search(found[0]):
            line = self._line
            raise ValueError(f"{self._path}, line {line}: ';' must follow a property; end it with one, on its line")
        self._line += found[0].count("\n")
        self._continue(found.end())

    def network(self) -> NetworkParts:
        first = self._peek()
        if other := next((said for begin, said in _OTHERS.items() if re.match(begin, self._text)), ""):
            self._fail(f"'network' must follow; this is {other}", first)
        self._expect("network")
        while not self._peek().is_("{"):
            self._name("the network's name or '{'")
        self._take()
        while self._expect("property", "}").text == "property":
            self._skip_property()
        states: dict[str, list[str]] = {}
        definitions: dict[str, _Definition] = {}
        while not self._peek().is_end:
            block = self._expect("variable", "probability")
            if block.text == "variable":
                name = self._name("a variable's name")
                if name in states:
                    self._fail(f"the variable {name!r} must be declared once", block)
                states[name] = self._variable()
                if len(states) > MAX_VARIABLES:
                    self._fail(f"a network must have at most {MAX_VARIABLES} variables", block)
            else:
                name, definition = self._probability(block.line)
                if name in definitions:
                    self._fail(f"the probabilities of {name!r} must be stated once", block)
                definitions[name] = definition
        if not states:
            self._fail("a variable must follow", self._peek())
        if missing := [name for name in states if name not in definitions]:
            self._fail(f"the probabilities of {missing[0]!r} must follow", self._peek())
        tables = {name: self._table(name, definition, states) for name, definition in definitions.items()}
        lines = {name: definition.line for name, definition in definitions.items()}
        return NetworkParts(
            states,
            {name: definition.parents for name, definition in definitions.items()},
            normalised_tables(self._path, tables, lines.__getitem__, tolerance=TOLERANCE),
        )

    def _variable(self) -> list[str]:
        states: list[str] | None = None
        self._expect("{")
        while (word := self._expect("type", "property", "}")).text != "}":
            if word.text == "property":
                self._skip_property()
                continue
            if states is not None:
                self._fail("a variable must have one type", word)
            count, words = self._peek(), self._names_until("{", "'discrete [ number of states ]'")
            kind = _KIND.fullmatch("".join(words))
            if kind is None:
                self._fail("'discrete [ number of states ]' must follow", count)
            states = self._names_until("}", "a state's name")
            self._expect(";")
            if kind[1] != str(len(states)) or len(set(states)) != len(states):
                self._fail(f"the number of states must be that of {states}, all distinct", count._replace(text=kind[1]))
        if states is None:
            self._fail("a variable must have a type", word)
        return states

    def _probability(self, line: int) -> tuple[str, _Definition]:
        self._expect("(")
        name = self._name("a variable's name")
        parents = self._names_until(")", "a parent's name")
        self._expect("{")
        if (plain := self._plain_rows()) is not None:
            return name, _Definition(line, parents, plain)
        rows: _Rows = {}
        while not (word := self._expect("table", "default", "(", "property", "}")).is_("}"):
            if word.text == "property":
                self._skip_property()
                continue
            key = tuple(self._names_until(")", "a parent's state")) if word.text == "(" else word.text
            if key in rows:
                self._fail(f"the row {key} must be stated once", word)
            rows[key] = (word.line, self._numbers())
        return name, _Definition(line, parents, rows)

    def _table(self, name: str, definition: _Definition, states: dict[str, list[str]]) -> NDArray[np.float64]:
        where = f"{self._path}, line {definition.line}"
        for other in (name, *definition.parents):
            if other not in states:
                raise ValueError(f"{where}: {other!r} must be declared as a variable")
        rows = dict(definition.rows)
        above = tuple(len(states[parent]) for parent in definition.parents)
        size = len(states[name])
        self._room = checked_shape(where, (*above, size), self._room)
        expected = math.prod(above) * size if "table" in rows else size
        for key, (line, numbers) in rows.items():
            if len(numbers) != expected or ("table" in rows and len(rows) > 1):
                raise ValueError(
                    f"{self._path}, line {line}: the row {key} of {name!r} must have {expected} numbers and not be "
                    f"beside a table, got {len(numbers)}"
                )
        if "table" in rows:
            whole = np.array(rows["table"][1], dtype=np.float64).reshape(size, *above)
            return np.moveaxis(whole, 0, -1)
        default = rows.pop("default", None)
        missing = math.prod(above) - len(rows)
        # Rows are distinct: if there are as many as combinations of states, and each is one, none is missing.
        table = np.full((*above, size), np.nan)
        places = [{state: at for at, state in enumerate(states[parent])} for parent in definition.parents]
        for key, (line, numbers) in rows.items():
            if not abs(sum(numbers) - 1) <= TOLERANCE:  # the error has the line of the row
                normalised_tables(self._path, {name: np.array(numbers)}, {name: line}.__getitem__, tolerance=TOLERANCE)
            try:
                at = tuple(place[state] for place, state in zip(places, key, strict=True))
            except (KeyError, ValueError) as error:
                raise ValueError(
                    f"{self._path}, line {line}: a row of {name!r} must name a state of each of "
                    f"{definition.parents}, got {key}"
                ) from error
            table[at] = numbers
        if missing > 0:
            if default is None:
                raise ValueError(f"{where}: {missing} rows of {name!r} must be stated, or a default")
            rows_of_all = table.reshape(-1, size)  # one index instead of one for each parent
            rows_of_all[np.isnan(rows_of_all[:, 0])] = default[1]
        return table


# Writer for networks in the Bayesian Interchange Format (``.bif``).

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_SHOWN = 60


def write_bif(path: str | Path, parts: NetworkParts) -> None:
    """Write a network, whole or not at all; numbers keep every digit.

    Raises ValueError if a name cannot be written in BIF.
    """
    with whole_file(path) as stream:
        stream.writelines(_lines(parts))


def _lines(parts: NetworkParts) -> Iterator[str]:
    yield "network unnamed {\n}\n"
    for node, states in parts.states.items():
        yield f"variable {_word(node)} {{\n  type discrete [ {len(states)} ] {{ {_bif_words(states)} }};\n}}\n"
    for node in parts.states:
        parents, table = parts.parents[node], parts.tables[node]
        yield f"probability ( {' | '.join([_word(node), *([_bif_words(parents)] if parents else [])])} ) {{\n"
        if not parents:
            yield f"  table {_numbers(table.tolist())};\n"
        else:
            keys = itertools.product(*(parts.states[parent] for parent in parents))
            for key, row in zip(keys, table.reshape(-1, table.shape[-1]), strict=True):
                yield f"  ({_bif_words(key)}) {_numbers(row.tolist())};\n"
        yield "}\n"


def _numbers(row: Iterable[float]) -> str:
    return ", ".join(map(repr, row))


def _bif_words(names: Sequence[str]) -> str:
    return ", ".join(map(_word, names))


def _word(name: str) -> str:
    """Return a name as it is written in BIF, in quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name):
        return name
    if not name or '"' in name or any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError(
            "names must have no quote and no control character (nor be empty) to be written as BIF, got "
            f"{name[:_SHOWN]!r}; rename it, or write .json"
        )
    return f'"{name}"'
