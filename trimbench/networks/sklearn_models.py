"""The tables of scikit-learn's naive Bayes estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def naive_bayes_parts(estimator: Any, feature_names: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of `NaiveBayes` for a fitted BernoulliNB or CategoricalNB.

    Raises TypeError if the estimator is of another class, and ValueError if it is not fitted or the names do not fit.
    """
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB

    if not isinstance(estimator, BernoulliNB | CategoricalNB):
        raise TypeError(f"estimator must be a BernoulliNB or a CategoricalNB, got {type(estimator).__name__}")
    if not hasattr(estimator, "feature_log_prob_"):
        raise ValueError(f"estimator must be fitted, got {type(estimator).__name__} without tables; call fit() first")
    if isinstance(estimator, BernoulliNB):
        ones = np.exp(estimator.feature_log_prob_)
        tables = [np.stack([1.0 - column, column], axis=1) for column in ones.T]
    else:
        tables = [np.exp(table) for table in estimator.feature_log_prob_]
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is not None:
        feature_names = [str(name) for name in feature_names]
        if len(feature_names) != len(tables):
            raise ValueError(f"feature_names must have {len(tables)} names, got {len(feature_names)}")
    return {
        "prior": np.exp(estimator.class_log_prior_),
        "likelihoods": tables,
        "feature_names": feature_names,
        "class_names": [str(name) for name in estimator.classes_.tolist()],
    }
