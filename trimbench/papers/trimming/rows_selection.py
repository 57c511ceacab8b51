"""Selections of features by model, by rows and by labels, each as a trimmed classifier, on a split of a data set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.trimming.classifiers import CODE, Learning, Split
from trimbench.papers.trimming.many_features import POSITIVE, Sides, split_between
from trimbench.trimming.baselines.information_gain import information_gains
from trimbench.trimming.classifier import BayesianClassifier, feature_indices
from trimbench.trimming.engines.certified import CertifiedEngine
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES
from trimbench.trimming.result import Trimming
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd

_CODE = (*CODE, "trimbench.papers.trimming.many_features", __name__)


@dataclass(frozen=True)
class Task:
    """What a method selects for: a classifier, the rows that it was learned from, a budget, and settings."""

    classifier: BayesianClassifier
    split: Split
    learning: Learning
    budget: int
    evaluation_limit: int | None
    n_folds: int
    candidates: Mapping[str, int]


Selected = tuple[BayesianClassifier, Mapping[str, Json]]


def _by_model(task: Task) -> Selected:
    return _trimmed(trim(task.classifier, task.budget, evaluation_limit=_limit(task)))


def _by_rows(task: Task) -> Selected:
    return _trimmed(trim(task.classifier, task.budget, rows=task.split.train, rows_weight=1.0))


def _by_blend(task: Task) -> Selected:
    return _trimmed(trim(task.classifier, task.budget, rows=task.split.train))


def _by_information_gain(task: Task) -> Selected:
    return _restricted(task.classifier, _most_informative(task, task.budget)), {}


def _by_sequential_selection(task: Task) -> Selected:
    """Scikit-learn's forward selection by the cross-validated accuracy of naive Bayes with Laplace smoothing."""
    from sklearn import config_context
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import CategoricalNB

    names = _most_informative(task, task.candidates["sequential"])
    codes = _codes(task, names)
    sizes = [task.classifier.cardinalities[i] for i in feature_indices(task.classifier.features, names)]
    folds = StratifiedKFold(task.n_folds, shuffle=True, random_state=_seed(task))
    # The number of values is the same for all columns, whichever are tried.
    selector = SequentialFeatureSelector(
        CategoricalNB(alpha=task.learning["smoothing"], min_categories=max(sizes)),
        n_features_to_select=min(task.budget, len(names) - 1),
        cv=folds,
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):  # hundreds of fits on small tables
        selector.fit(codes, task.split.target.to_numpy(dtype=str))
    return _restricted(task.classifier, [names[i] for i in np.flatnonzero(selector.get_support())]), {}


def _by_recursive_elimination(task: Task) -> Selected:
    """Scikit-learn's elimination by the coefficients of logistic regression on the weights of naive Bayes."""
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    names = _most_informative(task, task.candidates["recursive"])
    codes = _codes(task, names)
    columns = []
    for place, column in zip(feature_indices(task.classifier.features, names), codes.T, strict=True):
        table = task.classifier.tables[place]
        columns.append(np.log(table[0] / table[1])[column])
    weights = StandardScaler().fit_transform(np.stack(columns, axis=1))
    selector = RFE(LogisticRegression(max_iter=1000), n_features_to_select=task.budget, step=1)
    selector.fit(weights, task.split.target.to_numpy(dtype=str))
    return _restricted(task.classifier, [names[i] for i in np.flatnonzero(selector.get_support())]), {}


# Title in tables and figures, and how the features and the threshold are selected.
METHODS: Mapping[str, tuple[str, Callable[[Task], Selected]]] = {
    "model": ("model", _by_model),
    "rows": ("rows", _by_rows),
    "blend": ("blend", _by_blend),
    "information_gain": ("information gain", _by_information_gain),
    "sequential": ("SequentialFeatureSelector", _by_sequential_selection),
    "recursive": ("RFE", _by_recursive_elimination),
}


@job_function(code=_CODE)
def compare_selections(
    learning: Learning,
    sides: Sides,
    budget: int,
    evaluation_limit: int | None,
    n_folds: int,
    candidates: dict[str, int],
) -> dict[str, Json]:
    """Learn a naive Bayes classifier of two groups of classes, select by each of the `METHODS`, and test."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE, learning)
    task = Task(classifier, split, learning, budget, evaluation_limit, n_folds, candidates)
    methods = []
    for name, (_, select) in METHODS.items():
        start = time.perf_counter()
        trimmed, more = select(task)
        seconds = time.perf_counter() - start
        tested = split.tested(classifier, trimmed)
        methods.append(
            {"method": name, "features": list(trimmed.features), "method_seconds": seconds, **tested, **more}
        )
    sizes = {"n_features": classifier.n_features, "n_train": len(split.train), "n_test": len(split.test)}
    return {**sizes, "budget": budget, "methods": methods}


def _limit(task: Task) -> int | None:
    """Return the limit of a search that goes on until the optimum is proven; forward selection ends by itself."""
    return task.evaluation_limit if _is_exact(task.classifier) else None


def _trimmed(trimming: Trimming) -> Selected:
    found = trimming.rows_agreement
    if found is None:
        return trimming.classifier, {"agreement": trimming.agreement}
    low, high = found.interval
    return trimming.classifier, {
        "agreement": trimming.agreement,
        "rows_weight": found.weight,
        "cross_fitted": found.value,
        "cross_fitted_low": low,
        "cross_fitted_high": high,
        "apparent": found.apparent,
    }


def _restricted(classifier: BayesianClassifier, names: Sequence[str]) -> BayesianClassifier:
    """Return the classifier on some features, with the threshold at which the model's agreement is highest."""
    places = sorted(feature_indices(classifier.features, names))
    if _is_exact(classifier):
        threshold = make_engine(classifier).best_cut(places).representative(classifier.threshold)
    else:
        threshold = CertifiedEngine(classifier).agreement(places).threshold
    return classifier.with_features([classifier.features[i] for i in places], threshold)


def _is_exact(classifier: BayesianClassifier) -> bool:
    return math.prod(classifier.cardinalities) <= MAX_ENTRIES


def _most_informative(task: Task, most: int) -> list[str]:
    """Return the features of highest information gain, in the order of the classifier."""
    gains = information_gains(task.classifier)
    best = np.sort(np.argsort(-gains, kind="stable")[:most])
    return [task.classifier.features[i] for i in best]


def _codes(task: Task, names: Sequence[str]) -> np.ndarray:
    frame: pd.DataFrame = task.split.train[list(names)]
    return np.stack([frame[name].cat.codes.to_numpy() for name in names], axis=1)


def _seed(task: Task) -> int:
    return seed_for(purpose="folds", split=task.learning["split_seed"]) % 2**32
