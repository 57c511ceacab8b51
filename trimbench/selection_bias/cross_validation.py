"""Cross-validation with the selection of features inside each fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.selection_bias.features import checked_classes, checked_more_cases, checked_table, known_cuts
from trimbench.selection_bias.model import fit_selection_corrected
from trimbench.selection_bias.prior import check_whole


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Predictions for each case by a classifier that was not trained on it.

    Attributes
    ----------
    corrected, uncorrected : ndarray of shape (n_cases, n_classes)
        P(y | x) with and without correction for the selection.
    selected : tuple of ndarray
        The features that were selected in each fold.
    folds : ndarray of shape (n_cases,)
        Fold in which each case was left out.
    """

    corrected: NDArray[np.float64]
    uncorrected: NDArray[np.float64]
    selected: tuple[NDArray[np.int64], ...]
    folds: NDArray[np.int64]


def cross_validate_selection(
    X: ArrayLike, y: ArrayLike, k: int, n_folds: int | None = None, seed: int = 0, **settings: Any
) -> CrossValidated:
    """Predict each case after selecting features on, and learning from, the other folds.

    Parameters
    ----------
    X : array of shape (n_cases, n_features)
        Real values are cut at their medians over the training part of each fold; cut them first to use one cut. Which
        features are binary is decided once, on all cases.
    y : array of shape (n_cases,)
    k : int
    n_folds : int, optional
        Default: leave-one-out. Otherwise each class is dealt out evenly to the folds, in random order.
    seed : int
        Determines that order.
    **settings
        As for `fit_selection_corrected`, apart from `correct` and `selection_rows`.

    Returns
    -------
    CrossValidated

    Raises
    ------
    ValueError
        When an argument is out of range, or a fold leaves no training case of a class.
    """
    for name in ("correct", "selection_rows"):
        if name in settings:
            raise TypeError(f"{name} cannot be set here: both predictions are returned, and each fold selects features")
    check_whole("seed", seed, 0)
    table = checked_table("X", X, allow_missing=True)
    response, n_classes = checked_classes(y, len(table))
    folds = _folds(response, n_folds, seed)
    if settings.get("cuts") is None:
        more = settings.get("unlabelled")
        cases = [table] if more is None else [table, checked_more_cases(more, table.shape[1], allow_missing=True)]
        settings["cuts"] = known_cuts(np.concatenate(cases))
    corrected, uncorrected = np.empty((2, len(table), n_classes))
    selected = []
    for fold in range(int(folds.max()) + 1):
        left_out = folds == fold
        model = fit_selection_corrected(table[~left_out], response[~left_out], k, **settings)
        corrected[left_out] = model.predict_proba(table[left_out])
        uncorrected[left_out] = model.uncorrected().predict_proba(table[left_out])
        selected.append(model.selected)
    return CrossValidated(corrected, uncorrected, tuple(selected), folds)


def _folds(y: NDArray[np.int64], n_folds: int | None, seed: int) -> NDArray[np.int64]:
    smallest = int(np.bincount(y).min())
    if n_folds is None:
        if smallest < 2:
            raise ValueError(f"y must have at least 2 cases of each class for leave-one-out, got {smallest} of one")
        return np.arange(len(y))
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= len(y):
        raise ValueError(f"n_folds must be a whole number from 2 to {len(y)}, or None, got {n_folds!r}")
    if smallest < 2:
        raise ValueError(f"y must have at least 2 cases of each class for {n_folds} folds, got {smallest} of one")
    rng = np.random.default_rng(seed)
    folds = np.empty(len(y), dtype=np.int64)
    dealt = 0
    for label in range(int(y.max()) + 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        folds[rows] = (np.arange(len(rows)) + dealt) % n_folds
        dealt += len(rows)
    return folds
