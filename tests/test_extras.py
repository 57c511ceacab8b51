"""A call that needs a package of an extra says so before it does any work."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench import __main__ as command
from trimbench._extras import MissingExtraError, is_installed, required
from trimbench.estimators import NaiveConformantClassifier
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.trimming.engines import choice as engines
from trimbench.trimming.engines.circuit import SddEngine
from trimbench.trimming.engines.table import DenseEngine

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
        lambda: SddEngine.build(RAIN, "rain", "yes", ["wet"], 0.5),
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

    def fails(_: object, *, compiled: bool) -> DenseEngine:
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


@pytest.mark.parametrize(("solver", "packages"), [("gpkit", ("gpkit", "cvxopt")), ("cvxpy", ("cvxpy",))])
def test_the_solvers_name_their_extra(solver: str, packages: tuple[str, ...], hide: Callable[..., None]) -> None:
    hide(*packages)
    X, y = np.eye(4), [0, 0, 1, 1]
    message = missing(f"solver={solver!r}", *packages, extra="solvers")
    # The classifier is not fitted: nothing has looked at it yet.
    with pytest.raises(MissingExtraError, match=message):
        tb.conform(LogisticRegression(), X, solver)  # type: ignore[arg-type]
    unfitted = NaiveConformantClassifier(solver=solver)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match=message):
        unfitted.fit(X, y)
    assert not hasattr(unfitted, "logistic_regression_")


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


def test_a_package_that_an_import_hook_refuses_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, package: str | None = None) -> ModuleSpec | None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", refuse)
    assert not is_installed("pysdd")


def test_what_is_installed_is_imported() -> None:
    assert required("json", "numpy", extra="papers", what="this test") == [sys.modules["json"], np]
