"""`import trimbench` is quick, and the public names are there."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
from types import ModuleType

import pytest

import trimbench as tb
from trimbench import estimators

HEAVY = (
    "numba",
    "numpy",
    "scipy",
    "pandas",
    "sklearn",
    "matplotlib",
    "openml",
    "pebble",
    "pyarrow",
    "requests",
    "tabulate",
)
TRACKED = """
import json, sys
sys.argv = ["trimbench", *{words}]
try:
    exec({code!r})
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
# The families of methods, and what stands below and above them.
ROOMS = ("conformant", "estimators", "networks", "selection_bias", "trimming")
# Twenty-four features, as they are learned: more than a table of all instances has.
TRIM = """
import numpy as np, trimbench as tb
ones = np.random.default_rng(0).beta(1, 1, size=(24, 2))
model = tb.NaiveBayes([0.4, 0.6], np.stack([1 - ones, ones], axis=-1))
assert tb.trim(tb.BayesianClassifier(model, positive=model.class_names[1]), 8).optimal
"""


def loaded_by(code: str, *words: str) -> tuple[list[str], str]:
    """Return which heavy packages and rooms some code loads in a fresh process, and what it prints."""
    script = TRACKED.format(code=code, words=list(words))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(ended.stderr))
    return sorted(loaded & set(HEAVY)) + [room for room in ROOMS if f"trimbench.{room}" in loaded], ended.stdout


def test_import_loads_no_heavy_package() -> None:
    assert loaded_by("import trimbench")[0] == []


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("import trimbench; trimbench.trim", "trimming"),
        (TRIM, "trimming"),
        ("import trimbench; trimbench.conform", "conformant"),
    ],
)
def test_a_method_loads_its_own_family_and_numpy(code: str, family: str) -> None:
    assert set(loaded_by(code)[0]) == {"numpy", "estimators", "networks", family}


@pytest.mark.parametrize("name", tb.__all__)
def test_every_public_name_resolves(name: str) -> None:
    found = getattr(tb, name)
    assert found.__name__ == name
    assert found.__doc__
    assert name in dir(tb)


@pytest.mark.parametrize(("name", "new"), tb._RENAMED.items())
def test_a_name_from_before_is_answered_with_the_new_one(name: str, new: str) -> None:
    assert name not in tb.__all__
    with pytest.raises(AttributeError, match=re.escape(f"trimbench.{name} has another name now: {new}")):
        getattr(tb, name)
    # What is named exists.
    if path := re.match(r"trimbench\.[\w.]+", new):
        home, _, last = path.group().rpartition(".")
        assert hasattr(pkgutil.resolve_name(home), last)


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
