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
_FIGURES = r"[+−]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?(?![\w]|[.,]\d)"
_WORDS = {
    **{"half a": 0.5, "half an": 0.5, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8},
    **{"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "sixty": 60},
}
# A number in words counts with a unit of time, or as a ratio ("three times as long").
_NUMERAL = re.compile(
    rf"(?<![\w.,−])({_FIGURES})(?: ?({'|'.join(_UNITS)})(?!\w))?"
    rf"|\b({'|'.join(_WORDS)})\s((?:milli|micro)?seconds?|minutes?|hours?|times(?= as))\b"
)
_STORED = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Numeral:
    """A number as a page prints it."""

    text: str
    unit: str
    place: int  # of its first sign in the page
    line: int

    @property
    def looks_measured(self) -> bool:
        """Whether it has a decimal point, an exponent, a unit, or three digits and more, and is no year."""
        n_digits = sum(map(str.isdigit, self.text.replace("e", "000")))
        return "." in self.text or bool(self.unit) or (n_digits > 2 and not re.fullmatch(r"19\d\d|20\d\d", self.text))

    @property
    def value(self) -> float:
        return _WORDS.get(self.text) or abs(float(self.text.replace(",", "").replace("−", "-")))

    def is_among(self, numbers: Iterable[float]) -> bool:
        """Tell whether one of the numbers rounds to this, in the unit that stands here; signs are left aside."""
        digits, _, power = self.text.partition("e")
        half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2])) + 1e-9
        scales = {"%": (1, 100), "points": (1, 100), "ms": (1, 1000)}.get(self.unit, (1,))
        return any(abs(abs(number) * scale - self.value) <= half for number in numbers for scale in scales)


def prose(page: str) -> str:
    """Return a page of the same length whose blocks, code, formulas and links are blank."""
    for pattern in (r"^```.*?^```$", r"\$\$.*?\$\$|\$[^$\n]*\$", r"`[^`]*`|\]\([^)]*\)|<[^>]*>"):
        page = re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), page, flags=re.DOTALL | re.MULTILINE)
    return page


def numerals(page: str) -> Iterator[Numeral]:
    """Yield the numerals of the prose of a page."""
    for match in _NUMERAL.finditer(prose(page)):
        text, unit = (match[1], match[2] or "") if match[1] else (match[3], match[4])
        yield Numeral(text, unit, match.start(), page.count("\n", 0, match.start()) + 1)


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
