"""`import trimbench` and `trimbench --help` are quick, and the public names are there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import trimbench as tb

HEAVY = ("numpy", "scipy", "pandas", "sklearn", "matplotlib", "openml", "pebble", "pooch", "pyarrow", "tabulate")
TRACKED = f"""
import json, sys
sys.argv = ["trimbench", *{{words}}]
try:
    {{code}}
finally:
    print(json.dumps(sorted(set(sys.modules) & set({HEAVY}))), file=sys.stderr)
"""


def loaded_by(code: str, *words: str) -> tuple[list[str], str]:
    """Return which heavy packages some code loads in a fresh process, and what it prints."""
    script = TRACKED.format(code=code, words=list(words))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    modules: list[str] = json.loads(ended.stderr)
    return modules, ended.stdout


def test_import_loads_no_heavy_package() -> None:
    assert loaded_by("import trimbench")[0] == []


def test_the_tracking_sees_what_is_loaded() -> None:
    assert "numpy" in loaded_by("import trimbench; trimbench.trim")[0]


def test_help_names_the_commands_and_loads_no_heavy_package() -> None:
    modules, text = loaded_by("from trimbench.papers.commands.cli import main; main()", "--help")
    assert modules == []
    for part in ("experiment=trimming/table6", "task=list", "task=fetch", "task=report", "executor: processes"):
        assert part in text
    for key in ("seed:", "results:", "cache_mode:", "offline:", "profile: paper, quick"):
        assert key in text


@pytest.mark.parametrize("name", tb.__all__)
def test_every_public_name_resolves(name: str) -> None:
    found = getattr(tb, name)
    assert found.__name__ == name
    assert found.__doc__
    assert name in dir(tb)


def test_public_names_are_sorted_and_complete() -> None:
    assert list(tb.__all__) == sorted(set(tb.__all__), key=lambda name: (not name[0].isupper(), name))
    assert set(tb.__all__) == set(tb._HOME)


def test_an_unknown_name_is_told_with_those_that_exist() -> None:
    with pytest.raises(AttributeError, match=r"module 'trimbench' has no attribute 'prune'; it has \[.*'trim', .*\]"):
        tb.prune  # noqa: B018
