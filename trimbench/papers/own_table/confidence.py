"""The job of selected features: the error that each method states after a selection, and the one that it makes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix
from trimbench.estimators.selection_corrected import SelectionCorrectedNB
from trimbench.papers.methods.selected_features import (
    PENALTIES,
    THRESHOLDS,
    Fit,
    Labels,
    bias_corrected_error,
    chosen_by_folds,
    held_out_errors,
    nested_error,
    penalised_regression,
    shrunken_centroids,
)
from trimbench.papers.own_table.settings import stored_table
from trimbench.papers.own_table.steps import encoded_once, folds_of, measured
from trimbench.reproduction.execution.code_hash import job_function
from trimbench.reproduction.execution.job import seed_for
from trimbench.reproduction.settings import Json

# Folds of the cross-validations by which a method chooses, calibrates or tests.
FOLDS = 5


@job_function
def judge_confidence(
    table: str, method: str, ks: Sequence[int], test_share: float, rows: int, seed: int
) -> dict[str, Json]:
    """Learn by a method from encoded columns, and compare the error that it states with the one on test rows.

    The methods of `SELECTING` select one number of columns, those of `CHOOSING` choose among the numbers `ks`, or how
    far to shrink.
    """
    data = stored_table(table)
    own, train, test = encoded_once(table, test_share, rows, seed)
    numbers = sorted({min(k, own.train.shape[1]) for k in ks})
    run = (CHOOSING if method in CHOOSING else SELECTING)[method][1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer columns are selected where the others say nothing
        model, selected, stated = run(own.train, data.labels[train], numbers, seed)
        found = model.predict_proba(own.test)
    truth = np.searchsorted(model.classes_, data.labels[test])
    return {
        "n_train": len(train),
        "n_test": len(test),
        "n_columns": own.train.shape[1],
        "selected": [own.outputs[place] for place in selected],
        "expected_error": float(1 - found.max(axis=1).mean()) if stated is None else stated,
        "actual_error": float((found.argmax(axis=1) != truth).mean()),
        **measured(truth, found),
    }


# A method returns its classifier, the columns that this uses, and the error that it states; None if that is what the
# probabilities of the test rows say.
Judged = tuple[Any, Sequence[int], float | None]
Run = Callable[[Matrix, Labels, Sequence[int], int], Judged]


def _naive_bayes(X: NDArray[Any], y: Labels, k: int, correct: bool = False, calibrate: Any = False) -> Any:
    return SelectionCorrectedNB(k=k, correct=correct, calibrate=calibrate).fit(X, y)


def _stated(X: Matrix, y: Labels, ks: Sequence[int], seed: int, **how: Any) -> Judged:
    model = _naive_bayes(X, y, ks[0], **how)
    return model, model.selected_.tolist(), None


def _by_calibrated_classifier(X: Matrix, y: Labels, ks: Sequence[int], seed: int) -> Judged:
    from sklearn.calibration import CalibratedClassifierCV

    model = SelectionCorrectedNB(k=ks[0], correct=False, calibrate=False)
    selected = _naive_bayes(X, y, ks[0]).selected_.tolist()
    return CalibratedClassifierCV(model, cv=folds_of(y, FOLDS, seed)).fit(X, y), selected, None


def _by_nested_validation(X: Matrix, y: Labels, ks: Sequence[int], seed: int) -> Judged:
    places = functools.partial(_places, seed=seed)
    error = nested_error(_naive_bayes, X, y, ks, places(y), places)
    _, model = chosen_by_folds(_naive_bayes, X, y, ks, places(y))
    return model, model.selected_.tolist(), error


def _by_bias_correction(X: Matrix, y: Labels, ks: Sequence[int], seed: int) -> Judged:
    wrong = held_out_errors(_naive_bayes, X, y, ks, _places(y, seed))
    model = _naive_bayes(X, y, ks[int(wrong.sum(axis=0).argmin())])
    rng = np.random.default_rng(seed_for(purpose="bootstrap", seed=seed))
    return model, model.selected_.tolist(), bias_corrected_error(wrong, rng)


def _by_shrinking(X: Matrix, y: Labels, ks: Sequence[int], seed: int) -> Judged:
    _, model = chosen_by_folds(_imputing(shrunken_centroids), X, y, THRESHOLDS, _places(y, seed))
    # A column whose centroids are all that of all rows says nothing.
    return model, np.flatnonzero((model[-1].deviations_ != 0).any(axis=0)).tolist(), None


def _by_penalty(X: Matrix, y: Labels, ks: Sequence[int], seed: int) -> Judged:
    _, model = chosen_by_folds(_imputing(penalised_regression), X, y, PENALTIES, _places(y, seed))
    return model, range(X.shape[1]), None


def _imputing(fit: Fit) -> Fit:
    """Return what fits the same to rows with means, of the rows that it sees, in place of missing values."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    def imputed(X: NDArray[Any], y: Labels, setting: Any) -> Any:
        means = SimpleImputer(keep_empty_features=True).fit(X)
        return make_pipeline(means, fit(means.transform(X), y, setting))

    return imputed


def _places(y: Labels, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row."""
    found = np.zeros(len(y), dtype=np.int64)
    for place, (_, out) in enumerate(folds_of(y, FOLDS, seed)):
        found[out] = place
    return found


UNCORRECTED, CORRECTED, CALIBRATED, PLATT = "uncorrected", "corrected", "calibrated", "platt"
# By name: the title, and what runs.
SELECTING: Mapping[str, tuple[str, Run]] = {
    UNCORRECTED: ("uncorrected", _stated),
    CORRECTED: ("corrected", functools.partial(_stated, correct=True)),
    CALIBRATED: ("corrected and calibrated", functools.partial(_stated, correct=True, calibrate="auto")),
    PLATT: ("CalibratedClassifierCV", _by_calibrated_classifier),
}
CHOOSING: Mapping[str, tuple[str, Run]] = {
    "nested": ("nested cross-validation", _by_nested_validation),
    "bias_corrected": ("bias-corrected cross-validation (BBC-CV)", _by_bias_correction),
    "shrunken": ("nearest shrunken centroids", _by_shrinking),
    "penalised": ("penalised regression", _by_penalty),
}
