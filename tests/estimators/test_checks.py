"""The estimators pass scikit-learn's whole battery of checks, and the battery does not shrink unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from trimbench import estimators
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier

BATTERIES = [
    NaiveConformantClassifier(),
    NaiveConformantClassifier(C=2.0, smoothing=0.0),
    NaiveConformantClassifier(numeric="cut"),
    NaiveConformantClassifier(class_weight="balanced"),
    NaiveConformantClassifier(n_components=2),
    NaiveConformantClassifier(n_components="auto"),
    NaiveConformantClassifier(solver="cvxpy"),
    SelectionCorrectedNB(),
    SelectionCorrectedNB(correct=False, k=1, n_alpha=5),
    SelectionCorrectedNB(features="gaussian", n_alpha=20),
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


ROWS = 60
INDICES = {
    "permuted": np.random.default_rng(0).permutation(ROWS),
    "duplicated": np.arange(ROWS) // 2,
    "text": [f"row {i}" for i in reversed(range(ROWS))],
    "missing": [None, *np.linspace(1.0, -1.0, ROWS - 1)],
    "levels": pd.MultiIndex.from_product([["b", "a"], range(ROWS // 2)]),
}


@pytest.mark.parametrize(
    "estimator",
    [
        NaiveConformantClassifier(),
        SelectionCorrectedNB(k=2, n_alpha=5),
        SelectionCorrectedNB(k=2, features="gaussian", n_alpha=5),
        *(TrimmedClassifier(2, density=density) for density in ("naive_bayes", "tree_augmented", "mixture")),
    ],
    ids=str,
)
@pytest.mark.parametrize("labelled", ["X", "y, sample_weight", "X, y, sample_weight"])
def test_rows_are_matched_by_position_whatever_their_index(estimator: Any, labelled: str) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    given = {"X": X, "y": pd.Series((X["a"] + rng.normal(size=ROWS) > 0).astype(int))}
    if not isinstance(estimator, TrimmedClassifier):
        given["sample_weight"] = pd.Series(rng.integers(1, 4, ROWS))
    expected = clone(estimator).fit(**given)
    for index in INDICES.values():
        moved = {
            name: table.set_axis(index, axis=0) if name in labelled.split(", ") else table
            for name, table in given.items()
        }
        fitted = clone(estimator).fit(**moved)
        assert fitted.predict_proba(moved["X"]).tolist() == expected.predict_proba(X).tolist()
        assert fitted.predict(moved["X"]).tolist() == expected.predict(X).tolist()
        if hasattr(fitted, "transform"):
            kept = fitted.set_output(transform="pandas").transform(moved["X"])
            pd.testing.assert_frame_equal(kept, moved["X"].loc[:, fitted.get_support()])


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
