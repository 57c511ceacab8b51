"""Estimates of an error after a choice among settings, and classifiers that shrink what they do not select."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
# From rows, their labels and a setting to a fitted classifier.
Fit = Callable[[NDArray[Any], Labels, Any], Any]

_N_BOOTSTRAPS = 500
# From the strongest: of equally good ones, the simplest model is chosen.
THRESHOLDS = (3.0, 2.5, 2.0, 1.5, 1.0, 0.5)
PENALTIES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)


def fitted(fit: Fit, X: NDArray[Any], y: Labels, setting: Any) -> Any:
    """Return a classifier with a setting; where all rows are of one class, one that always says this class."""
    from sklearn.dummy import DummyClassifier

    return fit(X, y, setting) if len(np.unique(y)) > 1 else DummyClassifier().fit(X, y)


def held_out_errors(
    fit: Fit, X: NDArray[Any], y: Labels, settings: Sequence[Any], folds: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which rows are classified wrongly by classifiers that have not seen their fold; (n_rows, n_settings)."""
    wrong = np.zeros((len(y), len(settings)), dtype=bool)
    for fold in np.unique(folds):
        out = folds == fold
        for place, setting in enumerate(settings):
            wrong[out, place] = fitted(fit, X[~out], y[~out], setting).predict(X[out]) != y[out]
    return wrong


def chosen_by_folds(
    fit: Fit, X: NDArray[Any], y: Labels, settings: Sequence[Any], folds: NDArray[np.int64]
) -> tuple[Any, Any]:
    """Return the setting of the lowest cross-validated error, the first of equal ones, and its classifier."""
    chosen = settings[int(held_out_errors(fit, X, y, settings, folds).sum(axis=0).argmin())]
    return chosen, fitted(fit, X, y, chosen)


def nested_error(
    fit: Fit,
    X: NDArray[Any],
    y: Labels,
    settings: Sequence[Any],
    folds: NDArray[np.int64],
    folds_of: Callable[[Labels], NDArray[np.int64]],
) -> float:
    """Return the cross-validated error of the classifier whose setting a cross-validation of its own chooses."""
    wrong = np.zeros(len(y), dtype=bool)
    for fold in np.unique(folds):
        out = folds == fold
        _, model = chosen_by_folds(fit, X[~out], y[~out], settings, folds_of(y[~out]))
        wrong[out] = model.predict(X[out]) != y[out]
    return float(wrong.mean())


def bias_corrected_error(wrong: NDArray[np.bool_], rng: np.random.Generator) -> float:
    """Return the error of the best setting without the bias of its choice, from held-out predictions alone (BBC-CV).

    Parameters
    ----------
    wrong : ndarray of bool, shape (n_rows, n_settings)
        As `held_out_errors` gives it. The setting is chosen on bootstrap samples of the rows, and takes its error from
        the rows outside of each.
    rng : numpy.random.Generator

    References
    ----------
    Tsamardinos, Greasidou and Borboudakis (2018), Bootstrapping the out-of-sample predictions for efficient and
    accurate cross-validation, algorithm 2.
    """
    errors = []
    for _ in range(_N_BOOTSTRAPS):
        drawn = rng.integers(len(wrong), size=len(wrong))
        rest = np.setdiff1d(np.arange(len(wrong)), drawn)
        if len(rest):
            errors.append(wrong[rest, int(wrong[drawn].mean(axis=0).argmin())].mean())
    return float(np.mean(errors))


def shrunken_centroids(X: NDArray[Any], y: Labels, threshold: float) -> Any:
    """Fit nearest shrunken centroids (Tibshirani et al., 2002)."""
    from sklearn.neighbors import NearestCentroid

    class Rounded(NearestCentroid):  # type: ignore[misc]
        """Gives equal scores to the first class: their last digits depend on the processor."""

        def predict(self, X: Any) -> Any:
            return self.classes_[self.predict_proba(X).round(9).argmax(axis=1)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that some features are constant, which does not matter
        return Rounded(shrink_threshold=threshold, priors="empirical").fit(X, y)


def penalised_regression(X: NDArray[Any], y: Labels, inverse_penalty: float) -> Any:
    """Fit a logistic regression of all columns with a penalty on the squares of its weights."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    # The weights are a sum of rows: in a basis of these, few columns are left of thousands.
    basis = np.linalg.svd(X, full_matrices=False)[2].T if X.shape[1] > len(X) else np.eye(X.shape[1])
    in_basis = FunctionTransformer(lambda rows: rows @ basis)
    return make_pipeline(in_basis, LogisticRegression(C=inverse_penalty, max_iter=1000)).fit(X, y)
