"""`import trimbench` is quick, the public names are there, and what needs an extra says so."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

import trimbench as tb
from trimbench import __main__ as command
from trimbench import estimators
from trimbench._extras import MissingExtraError, is_installed, required
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.reproduction.execution.ray_executor import RayExecutor
from trimbench.trimming.engines import choice as engines
from trimbench.trimming.engines.circuit import SddEngine
from trimbench.trimming.engines.table import DenseEngine

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
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
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


def test_the_estimators_resolve() -> None:
    assert estimators.__all__ == [
        "EvidenceDisplay",
        "ExpectedClassifier",
        "IdentifierColumnWarning",
        "MissingAsZerosWarning",
        "NaiveConformantClassifier",
        "SelectionCorrectedNB",
        "StabilityDisplay",
        "TrimmedClassifier",
        "TrimmingCurveDisplay",
        "UnseenGapsWarning",
    ]
    for name in estimators.__all__:
        assert getattr(estimators, name).__name__ == name


@pytest.mark.parametrize("module", [tb, estimators])
def test_an_unknown_name_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"No {module.__name__} attribute prune"):
        module.prune  # noqa: B018


def test_the_import_is_quick() -> None:
    code = "import time; start = time.process_time(); import trimbench; print(time.process_time() - start)"
    assert min(float(loaded_by(code)[1]) for _ in range(3)) < 0.5


RAIN = tb.BayesianNetwork(
    {"rain": ["yes", "no"], "wet": ["yes", "no"], "slip": ["yes", "no"]},
    {"wet": ["rain"], "slip": ["wet"]},
    {"rain": [0.2, 0.8], "wet": [[0.9, 0.1], [0.3, 0.7]], "slip": [[0.5, 0.5], [0.1, 0.9]]},
)
ONLY_SDD = "engine='auto' for this network with {} features, too many for a table,"
CLASSIFIER = tb.BayesianClassifier(RAIN, "rain", positive="yes", features=["wet", "slip"])


def missing(what: str, *packages: str, extra: str) -> str:
    """The pattern of the message that names an extra."""
    return re.escape(
        f"{what} needs packages that are not installed ({', '.join(packages)}); run pip install 'trimbench[{extra}]'"
    )


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let packages look as if they were not installed."""
    find_spec = importlib.util.find_spec

    def hide(*hidden: str) -> None:
        def find(name: str, package: str | None = None) -> ModuleSpec | None:
            return None if name in hidden else find_spec(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", find)

    return hide


@pytest.mark.parametrize(
    "call",
    [
        lambda: tb.trim(CLASSIFIER, 1, engine="sdd"),
        lambda: tb.trim(CLASSIFIER, 2, engine="sdd"),  # every feature is affordable, so the answer needs no engine
        lambda: tb.trimming_curve(CLASSIFIER, [1], thresholds=[0.2], engine="sdd"),
        lambda: tb.expected_agreement(CLASSIFIER, ["wet"], 0.5, engine="sdd"),
        lambda: tb.maximum_achievable_agreement(CLASSIFIER, ["wet"], engine="sdd"),
        lambda: tb.maximum_potential_agreement(CLASSIFIER, ["wet"], engine="sdd"),
        lambda: SddEngine.of(CLASSIFIER),
    ],
)
def test_the_sdd_engine_names_its_extra(call: Callable[[], object], hide: Callable[..., None]) -> None:
    hide("pysdd")
    with pytest.raises(MissingExtraError, match=missing("engine='sdd'", "pysdd", extra="sdd")):
        call()


def test_auto_does_without_the_sdd_engine(hide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_MANY_NODES", 1)
    monkeypatch.setattr(engines, "_MOSTLY_DETERMINISTIC", 0.0)
    hide("pysdd")
    assert isinstance(engines.make_engine(CLASSIFIER), DenseEngine)

    def fails(_: object) -> DenseEngine:
        raise ContractionTooLarge("too large")

    monkeypatch.setattr(DenseEngine, "build", fails)
    with pytest.raises(MissingExtraError, match=missing(ONLY_SDD.format(2), "pysdd", extra="sdd")):
        engines.make_engine(CLASSIFIER)
    monkeypatch.setattr(engines, "_MANY_NODES", 100)
    with pytest.raises(ContractionTooLarge):
        engines.make_engine(CLASSIFIER)


def test_auto_names_the_extra_where_a_table_is_impossible(hide: Callable[..., None]) -> None:
    wires = [f"wire{i}" for i in range(30)]
    copy = np.eye(2)
    network = tb.BayesianNetwork(
        {name: ["1", "0"] for name in ("c", "input", *wires)},
        {"input": ["c"], **{wire: ["input"] for wire in wires}},
        {"c": [0.5, 0.5], "input": [[0.9, 0.1], [0.2, 0.8]], **dict.fromkeys(wires, copy)},
    )
    hide("pysdd")
    with pytest.raises(MissingExtraError, match=missing(ONLY_SDD.format(30), "pysdd", extra="sdd")):
        engines.make_engine(tb.BayesianClassifier(network, "c", positive="1", features=wires))


@pytest.mark.parametrize("words", [[], ["--version"], ["--help"], ["experiment=trimming/table4"]])
def test_the_command_names_its_extra(
    words: list[str], hide: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["trimbench", *words])
    hide("hydra", "omegaconf", "pydantic", "yaml")
    with pytest.raises(SystemExit) as ended:
        command.main()
    expected = missing("the command trimbench", "hydra", "omegaconf", "pydantic", "yaml", extra="papers")
    assert re.fullmatch(expected, str(ended.value.code))


def test_the_executor_on_ray_names_its_extra(hide: Callable[..., None]) -> None:
    hide("ray")
    with pytest.raises(ValueError, match=missing("executor=ray", "ray", extra="ray")):
        RayExecutor()


def test_a_package_that_an_import_hook_refuses_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, package: str | None = None) -> ModuleSpec | None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", refuse)
    assert not is_installed("pysdd")


def test_what_is_installed_is_imported() -> None:
    assert required("json", "numpy", extra="papers", what="this test") == [sys.modules["json"], np]
