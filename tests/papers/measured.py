"""Numerals of a page that look measured, and the numbers of the files that they should come from."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import pages

PUBLISHED = pages.ROOT / "results/published"
_UNITS = (
    *("%", "seconds?", "minutes?", "hours?", "milliseconds?", "microseconds?", "m?s", "min", "nats?", "[kMG]i?B"),
    *("times", "points"),
)
_NUMERAL = re.compile(rf"(?<![\w.,−])([+−]?\d+(?:,\d{{3}})*(?:\.\d+)?)(?![\w]|[.,]\d)(?: ?({'|'.join(_UNITS)})(?!\w))?")
_STORED = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_EXPERIMENT = re.compile(r"\b((?:trimming|conformant|selection_bias)/[a-z]\w+)")


@dataclass(frozen=True)
class Numeral:
    """A number as a page prints it."""

    text: str
    unit: str
    place: int  # of its first sign in the page
    line: int

    @property
    def looks_measured(self) -> bool:
        return "." in self.text or bool(self.unit)

    def is_among(self, numbers: Iterable[float]) -> bool:
        """Tell whether one of the numbers rounds to this, or 100 times it before % and points; signs are left aside."""
        value = abs(float(self.text.replace(",", "").replace("−", "-")))
        half = 0.5 * 10.0 ** -len(self.text.partition(".")[2]) + 1e-9
        scales = (1.0, 100.0) if self.unit in ("%", "points") else (1.0,)
        return any(abs(abs(number) * scale - value) <= half for number in numbers for scale in scales)


def prose(page: str) -> str:
    """Return a page of the same length whose blocks, code, formulas and links are blank."""
    for pattern in (r"^```.*?^```$", r"\$\$.*?\$\$|\$[^$\n]*\$", r"`[^`]*`|\]\([^)]*\)|<[^>]*>"):
        page = re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), page, flags=re.DOTALL | re.MULTILINE)
    return page


def numerals(page: str) -> Iterator[Numeral]:
    """Yield the numerals of the prose of a page."""
    for match in _NUMERAL.finditer(prose(page)):
        yield Numeral(match[1], match[2] or "", match.start(), page.count("\n", 0, match.start()) + 1)


def sections(page: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield where each section begins and ends, and the experiments that it names, in commands or in code."""
    starts = [match.start() for match in re.finditer(r"^## ", page, re.MULTILINE)]
    for start, end in zip(starts, [*starts[1:], len(page)], strict=True):
        code = re.sub(r"\]\([^)]*\)", "", page[start:end])
        yield start, end, sorted(set(_EXPERIMENT.findall(code)))


def numbers_of(experiment: str) -> set[float]:
    """Return the numbers in the published tables of an experiment, and those of its settings."""
    family, _, name = experiment.partition("/")
    about = json.loads((PUBLISHED / f"{experiment}.json").read_text(encoding="utf-8"))
    points = {figure["points"] for figure in about["figures"]}
    tables = [file for file in about["files"] if re.search(r"\.csv(\.gz)?$", file) and file not in points]
    found = set(_leaves(about["configuration"]))
    for file in tables:
        if not file.startswith(f"{name}_rows."):
            found |= numbers_in(PUBLISHED / family / file)
    return found


def numbers_in(path: Path) -> set[float]:
    """Return all numbers that stand in a text file."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return {float(token.replace("−", "-")) for token in _STORED.findall(text)}


def _leaves(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
