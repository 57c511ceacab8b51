"""The README is short, and what it shows is run. Its commands, links and files are tested with the documentation."""

from __future__ import annotations

import re
import tomllib

from . import pages

README = pages.ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 110


def test_the_example_of_each_family_prints_what_the_readme_says() -> None:
    shown = pages.follow(README)
    assert len(shown) == 3
    for line, printed, said in shown:
        assert printed == said, f"line {line}"


def test_it_names_every_extra() -> None:
    project = tomllib.loads((pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(re.findall(r"^\| `trimbench\[(\w+)\]` \|", TEXT, re.MULTILINE)) == set(project["optional-dependencies"])
