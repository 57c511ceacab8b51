"""The job of the classifiers with all features: how accurate they are, and how honest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.own_table.encoded import CODE as ENCODED_CODE
from trimbench.papers.own_table.encoded import encoded
from trimbench.papers.own_table.frontier import CODE as FRONTIER_CODE
from trimbench.papers.own_table.frontier import fitted
from trimbench.papers.own_table.measures import measured, reliability
from trimbench.papers.own_table.stored_table import stored_table

_Probabilities = NDArray[np.float64]


def _naive_bayes(train: pd.DataFrame, answers: NDArray[np.int64], test: pd.DataFrame) -> _Probabilities:
    model = fitted(train, answers, budget=train.shape[1], rows_weight=0)
    found: _Probabilities = model.predict_proba(test)
    return found


def _logistic_regression(train: pd.DataFrame, answers: NDArray[np.int64], test: pd.DataFrame) -> _Probabilities:
    own = encoded(train, test)
    means = np.nanmean(own.train, axis=0)
    filled = [np.where(np.isnan(part), means, part) for part in (own.train, own.test)]
    found: _Probabilities = fit_logistic_regression(filled[0], answers).predict_proba(filled[1])
    return found


def _boosted_trees(train: pd.DataFrame, answers: NDArray[np.int64], test: pd.DataFrame) -> _Probabilities:
    from sklearn.ensemble import HistGradientBoostingClassifier

    own = encoded(train, test)
    found: _Probabilities = (
        HistGradientBoostingClassifier(random_state=0).fit(own.train, answers).predict_proba(own.test)
    )
    return found


CLASSIFIERS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "naive_bayes": ("naive Bayes", _naive_bayes),
    "logistic_regression": ("logistic regression", _logistic_regression),
    "boosted_trees": ("boosted trees", _boosted_trees),
}


@job_function(code=(*FRONTIER_CODE, *ENCODED_CODE, "trimbench.conformant", __name__))
def judge_classifier(table: str, classifier: str, test_share: float, rows: int, seed: int) -> dict[str, Json]:
    """Learn a classifier of all features and all classes, and test it."""
    data = stored_table(table)
    train = data.training_rows(test_share, seed, rows)
    _, test = data.split(test_share, seed)
    start = time.perf_counter()
    found = CLASSIFIERS[classifier][1](data.features.iloc[train], data.labels[train], data.features.iloc[test])
    truth = data.labels[test]
    most_frequent = int(np.bincount(data.labels[train]).argmax())
    return {
        "n_train": len(train),
        "n_test": len(test),
        **measured(truth, found),
        "most_frequent": float((truth == most_frequent).mean()),
        "method_seconds": time.perf_counter() - start,
        "reliability": list(reliability(truth, found)),
    }
