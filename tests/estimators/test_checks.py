"""The estimators pass scikit-learn's whole battery of checks, and the battery does not shrink unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from trimbench import estimators
from trimbench.estimators import ExpectedClassifier, NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier
from trimbench.estimators.documented import documentation

ROOT = Path(__file__).parents[2]
BATTERIES = [
    NaiveConformantClassifier(),
    NaiveConformantClassifier(C=2.0, smoothing=0.0, class_weight="balanced", numeric="cut", n_components=2),
    SelectionCorrectedNB(),
    SelectionCorrectedNB(k=1, features="gaussian", n_alpha=5),
    # With cut="median", two cuts do not tell three classes apart well enough for one of the checks.
    TrimmedClassifier(),
    TrimmedClassifier(budget=2, density="tree_augmented", cut="mean", rows_weight=0),
    ExpectedClassifier(LogisticRegression()),
    ExpectedClassifier(DecisionTreeClassifier(random_state=0), density="products", n_draws=10),
]
# The fewest checks that any version of scikit-learn in the lock files collects for each of them.
FEWEST = {
    "ExpectedClassifier": 54,
    "NaiveConformantClassifier": 58,
    "SelectionCorrectedNB": 56,
    "TrimmedClassifier": 60,
}


@parametrize_with_checks(BATTERIES)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    try:
        check(estimator)
    except SkipTest:
        assert "array_api" in repr(check), "only checks of array libraries that are not here may be left out"
        raise


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
def test_rows_are_matched_by_position_whatever_their_index(estimator: Any) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    given = {"X": X, "y": pd.Series((X["a"] + rng.normal(size=ROWS) > 0).astype(int))}
    if not isinstance(estimator, TrimmedClassifier):
        given["sample_weight"] = pd.Series(rng.integers(1, 4, ROWS))
    expected = clone(estimator).fit(**given)
    everything = ("X", "y", "sample_weight")
    for kind, labelled in [*((kind, everything) for kind in INDICES), ("permuted", "X"), ("text", everything[1:])]:
        moved = {name: one.set_axis(INDICES[kind], axis=0) if name in labelled else one for name, one in given.items()}
        fitted = clone(estimator).fit(**moved)
        assert fitted.predict_proba(moved["X"]).tolist() == expected.predict_proba(X).tolist()
        assert fitted.predict(moved["X"]).tolist() == expected.predict(X).tolist()
        if hasattr(fitted, "transform"):
            kept = fitted.set_output(transform="pandas").transform(moved["X"])
            pd.testing.assert_frame_equal(kept, moved["X"].loc[:, fitted.get_support()])


@pytest.mark.parametrize(
    ("estimator", "settings", "load"),
    [
        (NaiveConformantClassifier(), {"C": [0.01, 1.0]}, load_iris),
        (SelectionCorrectedNB(n_alpha=20), {"k": [1, 5], "correct": [True, False]}, load_breast_cancer),
        (TrimmedClassifier(rows_weight=0), {"budget": [0, 1, 2], "cut": ["mdl", "median"]}, load_iris),
    ],
    ids=["NaiveConformantClassifier", "SelectionCorrectedNB", "TrimmedClassifier"],
)
def test_it_is_tuned_by_a_search(estimator: Any, settings: dict[str, list[Any]], load: Any) -> None:
    X, y = load(return_X_y=True)
    search = GridSearchCV(estimator, settings, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    assert search.best_params_.get("budget") != 0
    assert search.best_params_.get("cut") in (None, "mdl")
    again = clone(search.best_estimator_)
    assert again.get_params() == search.best_estimator_.get_params()
    with pytest.raises(NotFittedError):
        again.predict(X)


def test_every_estimator_has_a_battery() -> None:
    public = {getattr(estimators, name) for name in estimators.__all__}
    assert {type(estimator) for estimator in BATTERIES} == {c for c in public if issubclass(c, BaseEstimator)}
    assert {type(estimator).__name__ for estimator in BATTERIES} == set(FEWEST)


@pytest.mark.parametrize("estimator", BATTERIES, ids=str)
def test_no_battery_shrinks_unnoticed(estimator: Any) -> None:
    assert len([*estimator_checks_generator(estimator)]) >= FEWEST[type(estimator).__name__]


@pytest.mark.parametrize("estimator", [SelectionCorrectedNB(k=3), TrimmedClassifier(4, rows_weight=0)], ids=str)
def test_selected_columns_keep_their_types_in_a_data_frame(estimator: Any) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, ROWS)
    columns = {
        "single": (rng.normal(size=ROWS) + y).astype(np.float32),
        "short": (rng.integers(0, 3, ROWS) + y).astype(np.int16),
        "nullable": pd.array(rng.integers(0, 3, ROWS) + y, dtype="Int8"),
        "flag": rng.random(ROWS) < 0.3 + 0.5 * y,
    }
    X = pd.DataFrame(columns, index=np.arange(ROWS)[::-1] * 3)
    fitted = clone(estimator).fit(X, y)
    kept = X[list(fitted.get_feature_names_out())]
    assert isinstance(fitted.transform(X), np.ndarray)
    found = fitted.set_output(transform="pandas").transform(X)
    pd.testing.assert_frame_equal(found, kept)


def test_questions_before_a_fit_say_so() -> None:
    x = pd.Series({"a": 1.0})
    for ask in (NaiveConformantClassifier().contrast, NaiveConformantClassifier().explain):
        with pytest.raises(NotFittedError):
            ask(x)


@pytest.mark.parametrize("estimator", BATTERIES, ids=str)
def test_a_notebook_links_to_the_page_of_the_site_that_the_package_names(
    estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Message()
    named["Project-URL"] = "Documentation, https://example.org/trimbench/"
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: named)
    documentation.cache_clear()
    link = estimator._get_doc_link()
    assert f'href="{link}"' in estimator._repr_html_()
    page = link.removeprefix("https://example.org/trimbench/").replace(".html", ".md")
    assert f"trimbench.estimators.{type(estimator).__name__}`" in (ROOT / "docs" / page).read_text(encoding="utf-8")
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: Message())
    documentation.cache_clear()
    assert estimator._get_doc_link() == ""
    documentation.cache_clear()


def test_a_class_of_ones_own_has_no_page_here() -> None:
    own = type("Own", (TrimmedClassifier,), {})
    assert own()._get_doc_link() == ""
