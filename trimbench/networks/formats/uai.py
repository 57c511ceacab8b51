"""Readers for networks and evidence written as bare numbers: the Ergo format and the UAI competition format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.formats.parsing import (
    MAX_UNPACKED,
    MAX_VARIABLES,
    NetworkParts,
    Words,
    normalised_tables,
    read_text,
    short_errors,
    without_comments,
)

# The networks of the UAI 2008 evaluation have six digits; their distributions are off by up to 7e-6.
TOLERANCE = 1e-4
LARGEST = 10**9


def read_ergo(path: Path, max_unpacked: int = MAX_UNPACKED) -> NetworkParts:
    """Read a network in Ergo format.

    The file holds the number of variables, their cardinalities, the parents of each variable (how many, then their
    indices), the table of each variable (how many entries, then the entries: the last variable, which is the node
    itself, varies fastest), and, if they are known, the names of the variables and then those of their states.

    Raises ValueError if the file cannot be read; the message names the file, the line and the word.
    """
    words = Words(path, without_comments(read_text(path, max_unpacked)))
    count = words.whole("the number of variables", lowest=1, highest=MAX_VARIABLES)
    sizes = words.wholes("a cardinality", count, lowest=1, highest=LARGEST)
    parents = [
        words.wholes(
            f"a parent of variable {i}",
            words.whole(f"the number of parents of variable {i}", highest=count - 1),
            highest=count - 1,
        )
        for i in range(count)
    ]
    places, tables = [], []
    for i in range(count):
        places.append(words.place)
        tables.append(words.table(f"table {i}", [*(sizes[j] for j in parents[i]), sizes[i]]))
    names = words.names([f"the name of variable {i}" for i in range(count)]) if words.left else None
    states = [
        words.names([f"the name of state {k} of variable {i}" for k in range(size)])
        for i, size in enumerate(sizes if words.left else [])
    ]
    words.end()
    return _parts(path, sizes, parents, tables, names, states or None, lambda i: words.line(places[i]))


def read_uai(path: Path, max_unpacked: int = MAX_UNPACKED) -> NetworkParts:
    """Read a network in the format of the UAI competitions.

    The file holds the word BAYES, the number of variables, their cardinalities, the number of tables, the variables of
    each table (how many, then their indices, the node itself last), and the tables (how many entries, then the entries,
    the last variable fastest). It has no names. Lines that begin with c are comments.

    Raises ValueError if the file cannot be read; the message names the file, the line and the word.
    """
    text = read_text(path, max_unpacked)
    if "#" in text:
        raise ValueError(
            f"{path} must have no comments after '#': pyAgrum writes them (3.3.1), beside tables in which the first "
            "parent varies fastest, not the last; write .bif with pyagrum.saveBN, or use BayesianNetwork.from_library"
        )
    words = Words(path, _without_comment_lines(text))
    if words.word("BAYES").upper() != "BAYES":
        words.fail("a network must begin with BAYES (a Markov network has no conditional tables)")
    count = words.whole("the number of variables", lowest=1, highest=MAX_VARIABLES)
    sizes = words.wholes("a cardinality", count, lowest=1, highest=LARGEST)
    words.whole("the number of tables (one for each variable)", lowest=count, highest=count)
    scopes: dict[int, list[int]] = {}
    for i in range(count):
        length = words.whole(f"the number of variables of table {i}", lowest=1, highest=count)
        *above, node = words.wholes(f"a variable of table {i}", length, highest=count - 1)
        if node in scopes:
            words.fail("the last variable of a table must have no other table")
        scopes[node] = above
    tables: dict[int, NDArray[np.float64]] = {}
    places: dict[int, int] = {}
    for node, above in scopes.items():
        places[node] = words.place
        tables[node] = words.table(f"the table of variable {node}", [*(sizes[j] for j in above), sizes[node]])
    words.end()
    parents = [scopes[node] for node in range(count)]
    in_order = [tables[node] for node in range(count)]
    return _parts(path, sizes, parents, in_order, None, None, lambda i: words.line(places[i]))


def _without_comment_lines(text: str) -> str:
    """Return a text with an empty line for each that begins with the letter c, as the competitions define comments."""
    return re.sub(r"^[ \t]*c(?!\w).*$", "", text, flags=re.MULTILINE)


def _parts(
    path: Path,
    sizes: list[int],
    parents: list[list[int]],
    tables: list[NDArray[np.float64]],
    names: list[str] | None,
    states: list[list[str]] | None,
    line: Callable[[int], int],
) -> NetworkParts:
    """Return the network with the names that were given, or "x0", "x1", ... and states "0", "1", ..."""
    nodes = names or [f"x{i}" for i in range(len(sizes))]
    named = dict(zip(nodes, tables, strict=True))
    return NetworkParts(
        dict(zip(nodes, states or [[str(k) for k in range(size)] for size in sizes], strict=True)),
        {node: [nodes[j] for j in above] for node, above in zip(nodes, parents, strict=True)},
        normalised_tables(path, named, lambda node: line(nodes.index(node)), tolerance=TOLERANCE),
    )


# Evidence: which states were observed.

ENDINGS = (".evid", ".evid.gz")


@short_errors()
def read_evidence(path: str | Path, states: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the observed state of each node that a file names; `states` are those of all nodes, in their order."""
    path = Path(path)
    if not path.name.lower().endswith(ENDINGS):
        raise ValueError(f"path must end in {' or '.join(ENDINGS)}, got {str(path)!r}")
    text = _without_comment_lines(without_comments(read_text(path)))
    words = Words(path, text)
    samples = words.whole("the number of samples", lowest=1, highest=LARGEST) if _begins_with_samples(text) else 1
    first, *_ = [_sample(words, states) for _ in range(samples)]
    words.end()
    return first


def _begins_with_samples(text: str) -> bool:
    """Tell whether a file begins with a number of samples, each a count and pairs, by how many numbers there are.

    If both or neither is possible, the lines decide: one for each sample.
    """
    words = text.split()
    numbers = [int(word) if word.isascii() and word.isdecimal() and len(word) <= 18 else -1 for word in words]
    alone = bool(numbers) and len(numbers) == 1 + 2 * numbers[0]
    place = 1
    for _ in range(min(numbers[0], len(numbers)) if numbers else 0):
        place += 1 + 2 * max(numbers[place], 0) if place < len(numbers) else len(numbers) + 1
    several = bool(numbers) and numbers[0] > 0 and place == len(numbers)
    if alone != several:
        return several
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return any(len(line) > 1 for line in lines) and len(lines[0]) == 1 and len(lines[1]) % 2 == 1


def _sample(words: Words, states: Mapping[str, Sequence[str]]) -> dict[str, str]:
    evidence: dict[str, str] = {}
    nodes = list(states)
    last = len(nodes) - 1
    for _ in range(words.whole("the number of observed variables", highest=last + 1)):
        node = nodes[words.whole("the index of an observed variable", highest=last)]
        if node in evidence:
            words.fail("a variable must be observed once")
        what = f"the index of the state of {node!r:.60}"
        evidence[node] = states[node][words.whole(what, highest=len(states[node]) - 1)]
    return evidence
