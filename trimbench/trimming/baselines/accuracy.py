"""Cross-validated accuracy of naive Bayes classifiers on many feature subsets, and selection by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.learning import learn_naive_bayes
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.thresholds import TIE_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd


def cross_validated_accuracy(
    features: pd.DataFrame,
    target: pd.Series,
    subsets: NDArray[np.bool_],
    *,
    positive: str,
    threshold: float,
    n_folds: int,
    rng: np.random.Generator,
    smoothing: float = 1.0,
) -> NDArray[np.float64]:
    """Return the average accuracy over the folds of a naive Bayes classifier on each feature subset.

    A naive Bayes classifier on a subset equals the one on all features without the weights of the others, so one model
    for each fold serves all subsets.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Categories.
    target : Series of length n_rows
        Two classes.
    subsets : ndarray of bool, shape (n_subsets, n_features)
    positive : str
        The class whose probability is compared with the threshold.
    threshold : float in (0, 1)
    n_folds : int
        Between 2 and the number of rows.
    rng : numpy.random.Generator
        Assigns the rows to the folds.
    smoothing : float
        Pseudo-count of the naive Bayes classifier.

    Returns
    -------
    ndarray of shape (n_subsets,)

    Raises
    ------
    ValueError
        When there are too few rows for the folds, or no classifier can be learned from the data.
    """
    folds = _folds(features, target, positive, threshold, n_folds, rng, smoothing)
    accuracies = np.zeros(len(subsets))
    for fold in folds:
        predicted = fold.weights @ subsets.T >= fold.needed
        accuracies += (predicted == fold.truth[:, None]).mean(axis=0)
    return accuracies / n_folds


def select_by_accuracy(
    features: pd.DataFrame,
    target: pd.Series,
    budget: int,
    *,
    positive: str,
    threshold: float = 0.5,
    n_folds: int = 10,
    rng: np.random.Generator,
    smoothing: float = 1.0,
) -> tuple[str, ...]:
    """Select features one by one, each time the one that gives naive Bayes the highest cross-validated accuracy.

    Parameters
    ----------
    features, target, positive, threshold, n_folds, rng, smoothing
        As in `cross_validated_accuracy`.
    budget : int
        Number of features to select, 0 or more.

    Returns
    -------
    tuple of str
        In the order of their selection: the first m are the selection for the budget m.

    Raises
    ------
    ValueError
        When the budget is negative, there are too few rows for the folds, or no classifier can be learned.
    """
    if budget < 0:
        raise ValueError(f"budget must be a number of features, 0 or more, got {budget!r}")
    folds = _folds(features, target, positive, threshold, n_folds, rng, smoothing)
    scores = [np.zeros(len(fold.truth)) for fold in folds]
    open_ = list(range(features.shape[1]))
    chosen: list[int] = []
    while open_ and len(chosen) < budget:
        accuracies = np.zeros(len(open_))
        for fold, score in zip(folds, scores, strict=True):
            predicted = fold.weights[:, open_] >= (fold.needed - score)[:, None]
            accuracies += (predicted == fold.truth[:, None]).mean(axis=0)
        best = open_.pop(int(np.argmax(accuracies)))
        chosen.append(best)
        scores = [score + fold.weights[:, best] for fold, score in zip(folds, scores, strict=True)]
    return tuple(str(features.columns[i]) for i in chosen)


@dataclass(frozen=True, eq=False)
class _Fold:
    """What a naive Bayes model learned on the other folds says about the rows of this one.

    Attributes
    ----------
    weights : ndarray of shape (n_rows, n_features)
        Log-likelihood ratios.
    needed : float
        Smallest sum of weights of a positive row.
    truth : ndarray of bool, shape (n_rows,)
        Which rows are positive.
    """

    weights: NDArray[np.float64]
    needed: float
    truth: NDArray[np.bool_]


def _folds(
    features: pd.DataFrame,
    target: pd.Series,
    positive: str,
    threshold: float,
    n_folds: int,
    rng: np.random.Generator,
    smoothing: float,
) -> list[_Fold]:
    if not 2 <= n_folds <= len(features):
        raise ValueError(f"n_folds must be between 2 and the number of rows, {len(features)}, got {n_folds}")
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be strictly between 0 and 1, got {threshold!r}")
    # A value that only one fold has is a value in all of them.
    features = features.apply(lambda column: column if column.dtype == "category" else column.astype("category"))
    dealt = rng.permutation(len(features)) % n_folds
    folds = []
    for fold in range(n_folds):
        out = dealt == fold
        model = learn_naive_bayes(features[~out], target[~out], smoothing=smoothing)
        classifier = BayesianClassifier(model, positive=positive, threshold=threshold)
        codes = model.encode(features[out])
        weights = np.stack(
            [np.log(table[0] / table[1])[column] for table, column in zip(classifier.tables, codes.T, strict=True)],
            axis=1,
        )
        prior = float(np.log(classifier.prior[0] / classifier.prior[1]))
        needed = float(np.log(threshold) - np.log1p(-threshold)) - prior - TIE_TOLERANCE
        folds.append(_Fold(weights, needed, (target[out].astype(str) == positive).to_numpy()))
    return folds
