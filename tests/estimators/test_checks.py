"""The estimators pass scikit-learn's whole battery of checks, and the battery does not shrink unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from trimbench import estimators
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier

BATTERIES = [
    NaiveConformantClassifier(),
    NaiveConformantClassifier(inverse_penalty=2.0, smoothing=0.0),
    NaiveConformantClassifier(numeric="cut"),
    NaiveConformantClassifier(class_weight="balanced"),
    NaiveConformantClassifier(n_components=2),
    NaiveConformantClassifier(n_components="auto"),
    NaiveConformantClassifier(solver="cvxpy"),
    SelectionCorrectedNB(),
    SelectionCorrectedNB(correct=False, k=1, n_alpha=5),
    SelectionCorrectedNB(numeric="gaussian", n_alpha=20),
    # With cut="median", two cuts do not tell three classes apart well enough for one of the checks.
    TrimmedClassifier(),
    TrimmedClassifier(budget=2, density="tree_augmented", cut="mean", rows_weight=0),
]
# The fewest checks that any version of scikit-learn in the lock files collects for each of them.
FEWEST = {"NaiveConformantClassifier": 58, "SelectionCorrectedNB": 56, "TrimmedClassifier": 60}


def expected_failures(estimator: Any) -> dict[str, str]:
    """Give the checks that fail, and why."""
    if isinstance(estimator, NaiveConformantClassifier) and estimator.solver == "cvxpy":
        return {"check_estimators_pickle": "it fits rows with missing values, for which solver must be 'newton'"}
    return {}


@parametrize_with_checks(BATTERIES, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_every_estimator_has_a_battery() -> None:
    public = {getattr(estimators, name) for name in estimators.__all__}
    assert {type(estimator) for estimator in BATTERIES} == {c for c in public if issubclass(c, BaseEstimator)}
    assert {type(estimator).__name__ for estimator in BATTERIES} == set(FEWEST)


def test_the_batteries_are_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", __file__]
    command += ["-W", "ignore::DeprecationWarning"]  # of pytest, about what older versions of scikit-learn give it
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
        env=surroundings,
    )
    ids = [line.split("::", 1)[1] for line in done.stdout.splitlines() if "::test_scikit_learns_checks[" in line]
    collected = Counter(name[name.index("[") + 1 : name.rindex(")-") + 1] for name in ids)
    for estimator in BATTERIES:
        assert collected.pop("".join(str(estimator).split())) >= FEWEST[type(estimator).__name__]
    assert not collected


@pytest.mark.parametrize("name", FEWEST)
def test_only_checks_of_absent_array_libraries_are_skipped(name: str) -> None:
    results = check_estimator(getattr(estimators, name)(), on_skip=None)
    assert len(results) >= FEWEST[name]
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert all("array_api" in name for name in skipped), skipped
