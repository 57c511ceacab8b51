"""Masked, infinite and half-precision input: honoured or refused by every public fit, never read through its mask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB, TrimmedClassifier

N = 40
RNG = np.random.default_rng(0)
X = (RNG.random((N, 6)) < 0.5).astype(float)
Y = (X[:, 0] + X[:, 1] + RNG.random(N) > 1.2).astype(int)
HIDDEN = RNG.random(X.shape) < 0.2
MASKED, MISSING = np.ma.array(X, mask=HIDDEN), np.where(HIDDEN, np.nan, X)
SOME_MASKED = np.ma.array(Y, mask=np.arange(N) % 5 == 0)
FRAME = pd.DataFrame(X, columns=[f"f{i}" for i in range(6)])
LABELS = pd.Series(Y, name="c")
Fit = Callable[[Any, Any], Any]


def weights(rows: Any, _: Any) -> Any:
    return tb.conform(LogisticRegression().fit(X, Y), rows).predict_proba(rows)


ESTIMATORS: dict[str, Fit] = {
    "trimmed": lambda rows, y: TrimmedClassifier(budget=3).fit(rows, y).predict_proba(MISSING),
    "conformant": lambda rows, y: NaiveConformantClassifier().fit(rows, y).predict_proba(MISSING),
    "corrected": lambda rows, y: SelectionCorrectedNB(k=3).fit(rows, y).predict_proba(MISSING),
}
FITS: dict[str, Fit] = ESTIMATORS | {
    "conform": weights,
    "selection": lambda rows, y: tb.fit_selection_corrected(rows, y, k=3).predict_proba(rows),
    "gaussian": lambda rows, y: tb.fit_selection_corrected(rows, y, k=3, features="gaussian").predict_proba(rows),
}
FORMS: dict[str, Any] = {
    "masked": MASKED,
    "objects": np.where(HIDDEN, None, X.astype(object)),
    "nullable": pd.DataFrame(MISSING).astype("Int64"),
}
COMPLETE: dict[str, Fit] = {
    "logistic": lambda rows, y: tb.fit_logistic_regression(rows, y).coef_,
    "discrete": lambda rows, y: tb.fit_selection_corrected(rows, y, k=3, features="categorical").predict_proba(MISSING),
    "folds": lambda rows, y: tb.cross_validate_selection(rows, y, k=3, features="categorical").corrected,
}
LEARNERS = [partial(tb.learn, structure=name) for name in ("naive_bayes", "mixture", "tree")]


# Estimators take objects for categories.
@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name in FITS for form in FORMS if form == "masked" or name not in ESTIMATORS]
)
def test_what_any_library_calls_missing_is_missing(name: str, form: str) -> None:
    np.testing.assert_array_equal(FITS[name](FORMS[form], Y), FITS[name](MISSING, Y))


@pytest.mark.parametrize("name", sorted((FITS | COMPLETE).keys() - {"conform"}))
def test_masked_labels_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"y must|NaN"):
        (FITS | COMPLETE)[name](X, SOME_MASKED)


@pytest.mark.parametrize("name", COMPLETE)
def test_masked_cells_are_refused_where_none_may_be_missing(name: str) -> None:
    with pytest.raises(ValueError, match="finite numbers only"):
        COMPLETE[name](MASKED, Y)


def test_text_under_a_mask_is_no_label() -> None:
    for estimator in (TrimmedClassifier(budget=3), NaiveConformantClassifier(), SelectionCorrectedNB(k=3)):
        with pytest.raises(ValueError, match=r"y must have a label for every row, got none .* in 8 of 40 rows"):
            estimator.fit(X, np.ma.array(Y.astype(str), mask=SOME_MASKED.mask))


@pytest.mark.parametrize("estimator", [NaiveConformantClassifier(), SelectionCorrectedNB(k=3)])
def test_masked_weights_are_refused(estimator: Any) -> None:
    with pytest.raises(ValueError, match="sample_weight"):
        estimator.fit(X, Y, sample_weight=np.ma.array(np.ones(N), mask=SOME_MASKED.mask))


def test_masked_probabilities_are_refused() -> None:
    table = [[0.9, 0.1], [0.4, 0.6]]
    with pytest.raises(ValueError, match="prior must have no masked entries, got 1; fill them in first"):
        tb.NaiveBayes(np.ma.array([0.3, 0.7], mask=[0, 1]), [table])
    with pytest.raises(ValueError, match="likelihood of 'x0' must have no masked entries"):
        tb.NaiveBayes([0.3, 0.7], [np.ma.array(table, mask=[[0, 1], [0, 0]])])


def classifier() -> tb.BayesianClassifier:
    tables = [[[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.5, 0.5]]]
    return tb.BayesianClassifier(tb.NaiveBayes([0.3, 0.7], tables), positive="0", threshold=0.3)


def test_masked_settings_of_trimming_are_refused() -> None:
    rows = pd.DataFrame({"x0": [0, 1], "x1": [1, 0]})
    for settings in ({"costs": np.ma.array([1, 1], mask=[0, 1])}, {"rows": rows, "rows_weight": np.ma.masked}):
        with pytest.raises(ValueError, match="must be"):
            tb.trim(classifier(), budget=1, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("learn", LEARNERS)
def test_half_precision_is_learned_from_exactly(learn: Any) -> None:
    quarters = FRAME / 4
    assert learn(quarters.astype(np.float16), LABELS).to_dict() == learn(quarters, LABELS).to_dict()


@pytest.mark.parametrize("learn", LEARNERS)
def test_infinity_is_no_category(learn: Any) -> None:
    with pytest.raises(ValueError, match="feature 'f0' must hold finite numbers, got infinity"):
        learn(FRAME.replace(1.0, np.inf), LABELS)


@pytest.mark.parametrize("name", sorted(FITS | COMPLETE))
def test_half_precision_changes_nothing(name: str) -> None:
    fit = (FITS | COMPLETE)[name]
    np.testing.assert_array_equal(fit(X.astype(np.float16), Y.astype(np.float16)), fit(X, Y))


@pytest.mark.parametrize("name", sorted(FITS | COMPLETE))
def test_infinity_and_no_rows_are_refused(name: str) -> None:
    fit = (FITS | COMPLETE)[name]
    with pytest.raises(ValueError, match=r"infinity|finite"):
        fit(np.where(X > 0, np.inf, 0.0), Y)
    with pytest.raises(ValueError, match=r"at least one|sample"):
        fit(X[:0], Y[:0])
