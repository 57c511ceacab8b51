"""Trimmed estimators as JSON files: they predict, select and clone as before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import BernoulliNB

from tests.estimators.test_trimmed import patients
from trimbench.estimators import TrimmedClassifier


def fitted(**settings: Any) -> tuple[TrimmedClassifier, pd.DataFrame]:
    X, y = patients()
    return TrimmedClassifier(**{"budget": 2, "rows_weight": 0} | settings).fit(X, y), X


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"budget": 3, "threshold": 0.25, "cut": "mean"},
        {"costs": {0: 2.0, "ward": 1, "colour": 1, "cough": 1, "grade": np.float64(1), "noise": 1}},
        {"groups": {"visit": ["fever", 2]}, "required": ["cough"], "forbidden": [4]},
        {"costs": pd.Series(dict.fromkeys(patients(20)[0], 1.0))},
        {"budget": np.inf, "density": "tree_augmented"},
        {"density": "tree_augmented"},
        {"density": "mixture", "n_components": 2},
    ],
)
def test_what_was_saved_predicts_the_same(tmp_path: Path, settings: dict[str, Any]) -> None:
    trimmed, X = fitted(**settings)
    trimmed.save(tmp_path / "trimmed.json")
    again = TrimmedClassifier.load(tmp_path / "trimmed.json")
    assert again.predict(X).tolist() == trimmed.predict(X).tolist()
    np.testing.assert_allclose(again.predict_proba(X), trimmed.predict_proba(X), rtol=1e-13)
    assert again.get_support().tolist() == trimmed.get_support().tolist()
    assert again.get_feature_names_out().tolist() == trimmed.get_feature_names_out().tolist()
    assert again.trimming_ is None
    y = patients()[1]
    assert clone(again).fit(X, y).predict(X).tolist() == trimmed.predict(X).tolist()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "trimmed.json").read_text()


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        [True, False],
        [1.5, 2.0],
        ["a", "b"],
        ["a", "b", "c"],
        [np.datetime64("2020-01-31T12:00:00.123456789"), np.datetime64("2021-02-01")],
        [np.timedelta64(90, "s"), np.timedelta64(1, "D")],
    ],
)
def test_labels_keep_their_type(tmp_path: Path, labels: list[Any]) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(labels), size=90)
    X = (rng.random((90, 4)) < 0.2 + 0.3 * codes[:, None]).astype(float)
    y = np.array(labels)[codes] if labels[0] not in (1.5,) else np.array(["1.5", "2"])[codes]
    trimmed = TrimmedClassifier(budget=2, rows_weight=0).fit(X, y)
    trimmed.save(tmp_path / "trimmed.json")
    again = TrimmedClassifier.load(tmp_path / "trimmed.json")
    assert again.classes_.dtype == trimmed.classes_.dtype
    assert again.predict(X).tolist() == trimmed.predict(X).tolist()
    assert not hasattr(again, "feature_names_in_")


def test_labels_of_objects_and_fitted_models(tmp_path: Path) -> None:
    X, y = patients()
    objects = TrimmedClassifier(budget=1, rows_weight=0).fit(X, y.to_numpy(dtype=object))
    objects.save(tmp_path / "objects.json")
    assert TrimmedClassifier.load(tmp_path / "objects.json").predict(X).tolist() == objects.predict(X).tolist()
    table = np.random.default_rng(0).random((50, 3))
    whole = TrimmedClassifier.from_fitted(BernoulliNB(binarize=0.5).fit(table, table[:, 0] > 0.4), budget=1)
    whole.save(tmp_path / "fitted.json")
    again = TrimmedClassifier.load(tmp_path / "fitted.json")
    assert again.predict(table).tolist() == whole.predict(table).tolist()
    with pytest.raises(ValueError, match="must have no missing values"):
        again.predict(np.full((1, 3), np.nan))


def test_only_the_kept_columns_are_written(tmp_path: Path) -> None:
    trimmed, _ = fitted(budget=1)
    trimmed.save(tmp_path / "trimmed.json")
    content = json.loads((tmp_path / "trimmed.json").read_text())
    assert content["format"] == "trimbench.TrimmedClassifier/1"
    assert [column["name"] for column in content["columns"] if "categories" in column] == list(trimmed.features_)
    assert [feature["name"] for feature in content["classifier"]["model"]["features"]] == list(trimmed.features_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "trimbench.TrimmedClassifier/9"}, "must have format 'trimbench.TrimmedClassifier/1', got"),
        ({"columns": [{"name": "fever"}]}, ": columns must have every feature of the classifier, got none called"),
        (
            {"classifier": {"kind": "Forest"}},
            ": kind of classifier must be one of BayesianClassifier, ArgMaxClassifier",
        ),
        ({"classifier": None}, "lacks an entry or has one of the wrong type: TypeError"),
        ({"parameters": {"depth": 3}}, "lacks an entry or has one of the wrong type: TypeError"),
        ({"classes": {"type": "<i8", "labels": [10**30]}}, "has one of the wrong type: OverflowError"),
        ({"classes": {"type": "<U4"}}, "lacks an entry or has one of the wrong type: KeyError('labels')"),
    ],
)
def test_a_file_without_a_trimmed_classifier_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    trimmed, _ = fitted()
    path = tmp_path / "trimmed.json"
    trimmed.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        TrimmedClassifier.load(path)
    assert str(caught.value).startswith(str(path))


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        TrimmedClassifier().save(tmp_path / "trimmed.json")
    assert not list(tmp_path.iterdir())
