"""Cross-validated accuracy of naive Bayes classifiers on many feature subsets at once."""

from __future__ import annotations

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

    A naive Bayes classifier on a subset is that on all features with the weights of the others left out, so one model
    for each fold serves all subsets.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Categories.
    target : Series of length n_rows
        Two classes.
    subsets : ndarray of bool, shape (n_subsets, n_features)
    positive : str
        The class that the threshold speaks of.
    threshold : float in (0, 1)
    n_folds : int
        Between 2 and the number of rows.
    rng : numpy.random.Generator
        Deals the rows to the folds.
    smoothing : float
        Pseudo-count of the naive Bayes classifier.

    Returns
    -------
    ndarray of shape (n_subsets,)

    Raises
    ------
    ValueError
        When there are too few rows for the folds, or the data does not make a classifier.
    """
    if not 2 <= n_folds <= len(features):
        raise ValueError(f"n_folds must be between 2 and the number of rows, {len(features)}, got {n_folds}")
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be strictly between 0 and 1, got {threshold!r}")
    folds = rng.permutation(len(features)) % n_folds
    needed = np.log(threshold) - np.log1p(-threshold)
    accuracies = np.zeros(len(subsets))
    for fold in range(n_folds):
        out = folds == fold
        model = learn_naive_bayes(features[~out], target[~out], smoothing=smoothing)
        classifier = BayesianClassifier(model, positive=positive, threshold=threshold)
        codes = model.encode(features[out])
        weights = np.stack(
            [np.log(table[0] / table[1])[column] for table, column in zip(classifier.tables, codes.T, strict=True)],
            axis=1,
        )
        prior = float(np.log(classifier.prior[0] / classifier.prior[1]))
        predicted = prior + weights @ subsets.T >= needed - TIE_TOLERANCE
        truth = (target[out].astype(str) == positive).to_numpy()
        accuracies += (predicted == truth[:, None]).mean(axis=0)
    return accuracies / n_folds
