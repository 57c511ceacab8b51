"""The numbers of the README and the documentation are those of the published outcome, or of the benchmarks.

`docs/numbers.csv` says of each number that looks measured which cell of `results/published` or of the benchmarks it
rounds, or why it is none. In the findings that goes for every number of a table, and for all from 10 on. What
`conf/reported` says of the papers' statements is held to the same, since the page of results shows it.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from . import pages

DECLARED = pages.ROOT / "docs/numbers.csv"
PUBLISHED = pages.ROOT / "results/published"
# The gallery is written from the published outcome, and the changelog and the notebooks say how things were or run.
_LEFT_OUT = {"gallery.md", "speed.md", "changelog.md", "contributing.md"}
DOCS = [path for path in sorted((pages.ROOT / "docs").rglob("*.md")) if path.name not in _LEFT_OUT]
README = pages.ROOT / "README.md"
REPORTED = sorted((pages.ROOT / "conf/reported").glob("*.yaml"))
PAGES = [README, pages.ROOT / "CONTRIBUTING.md", *DOCS, *REPORTED]
_PYTHONS = {"3.11", "3.12", "3.13"}
# What a number may be that no run computes. "arithmetic" follows from others of the page.
_REASONS = {"setting", "limit", "level", "paper", "name", "example", "arithmetic"}
FINDINGS, SPEED = pages.ROOT / "docs/findings/selection_bias.md", pages.ROOT / "docs/reference/speed.md"


# Numerals of a page that look measured, and the numbers of the files that they should come from.

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


# What stands in a page, held against what is declared.


def declarations(page: Path) -> list[dict[str, str]]:
    with DECLARED.open(encoding="utf-8", newline="") as file:
        return [line for line in csv.DictReader(file) if line["page"] == page.relative_to(pages.ROOT).as_posix()]


def ends_with(text: str, numeral: Numeral, phrase: str) -> bool:
    """Tell whether the page up to the end of a numeral ends with a phrase, however its lines are broken."""
    before = text[max(0, numeral.place - 100) : numeral.place + len(numeral.text)]
    return " ".join(before.split()).endswith(phrase)


@cache
def table(file: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / file, dtype=str, keep_default_na=False)


def declared_numbers(line: Mapping[str, str]) -> set[float]:
    """Return the number of the cell that a declaration names, or all in a file that is no table."""
    if not line["file"].endswith((".csv", ".csv.gz")):
        return numbers_in(PUBLISHED / line["file"])
    rows = table(line["file"])
    for condition in filter(None, line["row"].split("; ")):
        column, _, value = condition.partition("=")
        rows = rows[rows[column] == value]
    assert len(rows) == 1, f"{line['file']}: {len(rows)} rows have {line['row']}"
    texts = [rows.iloc[0][column] for column in re.split(" minus | over ", line["column"])]
    cells = [float(text.partition(" of ")[0]) for text in texts]
    return {cells[0] / cells[1] if " over " in line["column"] else cells[0] - sum(cells[1:])}


def needs_source(page: Path, text: str, numeral: Numeral) -> bool:
    line = text[text.rfind("\n", 0, numeral.place) + 1 : numeral.place]
    if page == README and line.startswith("|"):
        return False  # how many numbers came out as printed: tested beside the page that counts them
    results = "findings" in (page.stem, page.parent.name) and (numeral.value >= 10 or line.startswith("|"))
    return numeral.looks_measured or (results and not re.search(r"(Table|Figure|Algorithm|BN_)\s?$", line))


def missing(page: Path, text: str) -> list[str]:
    """Return what is wrong with the numbers of a page: those that nothing declares, or that are no longer true."""
    found, lines = list(numerals(text)), declarations(page)
    wrong, covered = [], set()
    for line in lines:
        ends = [numeral for numeral in found if ends_with(text, numeral, line["phrase"])]
        if len(ends) != 1:
            wrong.append(f"{len(ends)} places end with {line['phrase']!r}")
            continue
        covered.add(ends[0])
        if line["file"] and not ends[0].is_among(declared_numbers(line)):
            wrong.append(f"line {ends[0].line}: {line['phrase']!r}, but {declared_numbers(line)} in {line['file']}")
    for numeral in found:
        if numeral not in covered and numeral.text not in _PYTHONS and needs_source(page, text, numeral):
            wrong.append(f"line {numeral.line}: {numeral.text} {numeral.unit} has no source in docs/numbers.csv")
    return wrong


def written_by_hand(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page in REPORTED:
        statements = yaml.safe_load(text)["paper"]["statements"].values()
        return "\n".join(said.get("reason") or said.get("limit", "") for said in statements)
    return re.sub("<!-- api: .*?<!-- end -->", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(pages.ROOT).as_posix())
def test_every_number_that_looks_measured_has_a_source_and_is_what_stands_there(page: Path) -> None:
    assert missing(page, written_by_hand(page)) == []


def test_a_wrong_number_and_one_without_a_source_are_noticed() -> None:
    text = FINDINGS.read_text(encoding="utf-8")
    changed = text.replace("0.082 and 0.169", "0.083 and 0.169")
    assert changed != text
    assert len(missing(FINDINGS, changed)) >= 1
    for added in ("12 seconds", "three times", ".040", "1,367", "5e-5"):
        (complaint,) = missing(FINDINGS, f"{text}\nIt takes {added} as long.\n")
        assert f"{added} " in complaint, complaint
        assert "has no source" in complaint


def test_every_declaration_is_of_a_page_and_has_a_source_or_a_reason() -> None:
    with DECLARED.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    names = {page.relative_to(pages.ROOT).as_posix() for page in PAGES}
    for line in lines:
        assert line["page"] in names, line
        assert bool(line["file"]) != (line["why"] in _REASONS), line
    assert sum(bool(line["file"]) for line in lines) > 100


def test_the_sizes_and_speeds_are_those_of_the_benchmarks() -> None:
    numbers = numbers_of("trimming/table6") | numbers_in(SPEED.with_suffix(".csv"))
    text = SPEED.read_text(encoding="utf-8")
    found = [numeral for numeral in numerals(text) if "." in numeral.text or numeral.unit]
    assert [f"line {numeral.line}: {numeral.text}" for numeral in found if not numeral.is_among(numbers)] == []
