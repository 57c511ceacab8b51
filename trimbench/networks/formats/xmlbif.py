"""Reader for networks in XMLBIF 0.3 (``.xmlbif``, ``.xml``)."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.formats.parsing import (
    MAX_UNPACKED,
    MAX_UNSTATED,
    NetworkParts,
    checked_shape,
    normalised_tables,
    probability,
    read_bytes,
)

# As in BIF files: written by hand, thirds are off by 0.01.
TOLERANCE = 0.02
# Which elements may contain which; the content of a property is skipped.
INSIDE = {
    "": {"BIF"},
    "BIF": {"NETWORK"},
    "NETWORK": {"NAME", "PROPERTY", "VARIABLE", "DEFINITION"},
    "VARIABLE": {"NAME", "OUTCOME", "PROPERTY", "OBSERVED"},
    "DEFINITION": {"FOR", "GIVEN", "TABLE", "PROPERTY"},
}
# The format declares two attributes. Every element would get the defaults of all that a file declares.
MAX_ATTRIBUTES, LONGEST_DEFAULT = 16, 100
_MOST_SHOWN = 4  # observed variables, in a warning


@dataclass(frozen=True)
class _Entry:
    """A variable or a definition: the texts of its elements by their names, each with its line."""

    line: int
    texts: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def all(self, element: str) -> list[str]:
        return [text for _, text in self.texts.get(element, [])]


def read_xmlbif(path: Path, max_unpacked: int = MAX_UNPACKED) -> NetworkParts:
    """Read a network in XMLBIF 0.3.

    In the numbers of a TABLE the FOR variable varies fastest, then the GIVEN variables from the last to the first.
    Entities are rejected, so that a file cannot read another. A warning names the evidence with which SamIam saved a
    network (OBSERVED).

    Raises ValueError if the file cannot be read; the message names the file and the line.
    """
    reader = _Reader(path)
    entries, room = reader.entries(max_unpacked), reader.room
    states: dict[str, list[str]] = {}
    evidence: dict[str, str] = {}
    for entry in entries["VARIABLE"]:
        name = _one(path, entry, "NAME")
        if name in states:
            raise ValueError(f"{path}, line {entry.line}: the variable {name!r} must be declared once")
        states[name] = entry.all("OUTCOME")
        if observed := entry.all("OBSERVED"):
            evidence[name] = _observed(path, entry, name, observed)
    if evidence:
        shown = f"{dict(itertools.islice(evidence.items(), _MOST_SHOWN))}"
        more = f" and {len(evidence) - _MOST_SHOWN} more" if len(evidence) > _MOST_SHOWN else ""
        warnings.warn(
            f"{path.name} was saved with evidence, which is not part of the network: {shown:.300}{more}; give it as "
            "evidence={...} where it is to count",
            stacklevel=4,
        )
    parents: dict[str, list[str]] = {}
    tables: dict[str, NDArray[np.float64]] = {}
    lines: dict[str, int] = {}
    for entry in entries["DEFINITION"]:
        name = _one(path, entry, "FOR")
        if name in parents:
            raise ValueError(f"{path}, line {entry.line}: {name!r} must have one definition")
        parents[name], lines[name] = entry.all("GIVEN"), entry.line
        for variable in (*parents[name], name):
            if variable not in states:
                raise ValueError(f"{path}, line {entry.line}: {variable!r} must be declared as a variable")
        shape = [len(states[variable]) for variable in (*parents[name], name)]
        room = checked_shape(f"{path}, line {entry.line}", shape, room)
        tables[name] = _table(path, entry, name, shape)
    if missing := [name for name in states if name not in parents]:
        raise ValueError(f"{path}: every variable must have a definition, got none for {missing[0]!r}")
    return NetworkParts(states, parents, normalised_tables(path, tables, lines.__getitem__, tolerance=TOLERANCE))


def _one(path: Path, entry: _Entry, element: str) -> str:
    texts = entry.all(element)
    if len(texts) != 1 or not texts[0]:
        raise ValueError(f"{path}, line {entry.line}: there must be one {element} with a text, got {texts}")
    return texts[0]


def _observed(path: Path, entry: _Entry, name: str, places: list[str]) -> str:
    """Return the state that SamIam, which counts from 0, has marked as observed."""
    outcomes = entry.all("OUTCOME")
    if len(places) != 1 or places[0] not in map(str, range(len(outcomes))):
        raise ValueError(
            f"{path}, line {entry.line}: OBSERVED of {name!r} must be one place among the {len(outcomes)} outcomes, "
            f"counted from 0, got {places}"
        )
    return outcomes[int(places[0])]


def _table(path: Path, entry: _Entry, name: str, shape: list[int]) -> NDArray[np.float64]:
    numbers = []
    _one(path, entry, "TABLE")
    start, text = entry.texts["TABLE"][0]
    for line, content in enumerate(text.split("\n"), start):
        for word in content.split():
            try:
                numbers.append(probability(word))
            except ValueError as error:
                raise ValueError(f"{path}, line {line}: {word!r} must be a probability ({error})") from error
    if len(numbers) != math.prod(shape):
        raise ValueError(
            f"{path}, line {entry.line}: the table of {name!r} must have {math.prod(shape)} numbers, one for each "
            f"combination of values {tuple(shape)}, got {len(numbers)}"
        )
    return np.array(numbers, dtype=np.float64).reshape(shape)


class _Reader:
    """Collects the variables and definitions of a file, with their lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[str] = [""]
        self._found: dict[str, list[_Entry]] = {"VARIABLE": [], "DEFINITION": []}
        self.room = 0  # for entries of tables
        self._networks = 0
        self._properties = 0  # that are open
        self._attributes = 0  # that are declared
        self._text: list[str] = []
        self._line = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.EntityDeclHandler = self._entity
        self._parser.AttlistDeclHandler = self._attribute

    def entries(self, max_unpacked: int) -> dict[str, list[_Entry]]:
        content = read_bytes(self._path, max_unpacked)
        self.room = max(MAX_UNSTATED, len(content))
        try:
            self._parser.Parse(content, True)
        except (expat.ExpatError, LookupError, UnicodeError) as error:
            raise ValueError(f"{self._path} must be an XML file: {error}; is it cut short?") from error
        except ValueError as error:
            if str(error).startswith(str(self._path)):
                raise
            raise ValueError(f"{self._path} cannot be read: {error}; save it as UTF-8") from error  # Shift_JIS, GBK ...
        if not self._networks or not self._found["VARIABLE"]:
            raise ValueError(f"{self._path} must hold a BIF element with a NETWORK of at least one VARIABLE")
        return self._found

    def _fail(self, message: str) -> NoReturn:
        raise ValueError(f"{self._path}, line {self._parser.CurrentLineNumber}: {message}")

    def _entity(self, name: str, *_: object) -> None:
        self._fail(f"a network must not define entities, got {name!r}")

    def _attribute(self, _: str, name: str, __: str, default: str | None, ___: int) -> None:
        self._attributes += 1
        if self._attributes > MAX_ATTRIBUTES or len(default or "") > LONGEST_DEFAULT:
            self._fail(
                f"a network must declare at most {MAX_ATTRIBUTES} attributes, with defaults of at most "
                f"{LONGEST_DEFAULT} characters, got {name!r}"
            )

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        element, parent = element.upper(), self._open[-1]
        element = "OUTCOME" if element == "VALUE" else element  # its older name
        self._open.append(element)
        self._text.clear()
        self._line = self._parser.CurrentLineNumber
        inside_property = self._properties > 0
        self._properties += element == "PROPERTY"
        if inside_property:
            return
        if element not in INSIDE.get(parent, ()):
            self._fail(f"{parent or 'the file'} must hold {sorted(INSIDE.get(parent, ['text']))}, got {element!r}")
        self._networks += element == "NETWORK"
        if self._networks > 1:
            self._fail("a file must hold one NETWORK, got another")
        if element == "VARIABLE" and attributes.get("TYPE", "nature") != "nature":
            self._fail(f"a VARIABLE must have TYPE 'nature', got {attributes['TYPE']!r}")
        if element in self._found:
            self._found[element].append(_Entry(self._line))

    def _end(self, element: str) -> None:
        element, parent = self._open.pop(), self._open[-1]
        self._properties -= element == "PROPERTY"
        if parent in self._found and element != "PROPERTY":
            text = "".join(self._text)
            # The line on which the text begins; only a table keeps its lines.
            text = text if element == "TABLE" else text.strip()
            self._found[parent][-1].texts.setdefault(element, []).append((self._line, text))
        self._text.clear()
