"""`import trimbench` is quick, and the public names are there."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType

import pytest

import trimbench as tb
from trimbench import estimators

HEAVY = ("numpy", "scipy", "pandas", "sklearn", "matplotlib", "openml", "pebble", "pyarrow", "requests", "tabulate")
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


@pytest.mark.parametrize("name", tb.__all__)
def test_every_public_name_resolves(name: str) -> None:
    found = getattr(tb, name)
    assert found.__name__ == name
    assert found.__doc__
    assert name in dir(tb)


def test_the_estimators_resolve() -> None:
    assert estimators.__all__ == [
        "IdentifierColumnWarning",
        "MissingAsZerosWarning",
        "NaiveConformantClassifier",
        "SelectionCorrectedNB",
        "TrimmedClassifier",
    ]
    for name in estimators.__all__:
        assert getattr(estimators, name).__name__ == name


@pytest.mark.parametrize("module", [tb, estimators])
def test_an_unknown_name_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"No {module.__name__} attribute prune"):
        module.prune  # noqa: B018


def test_the_import_is_quick() -> None:
    code = "import time; start = time.perf_counter(); import trimbench; print(time.perf_counter() - start)"
    assert min(float(loaded_by(code)[1]) for _ in range(3)) < 0.5
