"""Writer for networks in the Bayesian Interchange Format (``.bif``)."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trimbench.networks.file_parsing import NetworkParts
from trimbench.networks.whole_files import whole_file

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
        yield f"variable {_word(node)} {{\n  type discrete [ {len(states)} ] {{ {_listed(states)} }};\n}}\n"
    for node in parts.states:
        parents, table = parts.parents[node], parts.tables[node]
        yield f"probability ( {' | '.join([_word(node), *([_listed(parents)] if parents else [])])} ) {{\n"
        if not parents:
            yield f"  table {_numbers(table.tolist())};\n"
        else:
            keys = itertools.product(*(parts.states[parent] for parent in parents))
            for key, row in zip(keys, table.reshape(-1, table.shape[-1]), strict=True):
                yield f"  ({_listed(key)}) {_numbers(row.tolist())};\n"
        yield "}\n"


def _numbers(row: Iterable[float]) -> str:
    return ", ".join(map(repr, row))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_word, names))


def _word(name: str) -> str:
    """Return a name as BIF has it; in quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name):
        return name
    if '"' in name or any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError(
            f"names must have no quote and no control character to be written as BIF, got {name[:_SHOWN]!r}; rename "
            "it, or write .json"
        )
    return f'"{name}"'
