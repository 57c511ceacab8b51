"""Trimming and greedy selection for naive Bayes classifiers with tens to hundreds of features, learned from data."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.inputs import dataset_of
from trimbench.papers.trimming.classifiers import CODE, Learning, Split
from trimbench.trimming.baselines.accuracy import select_by_accuracy
from trimbench.trimming.baselines.information_gain import select_by_information_gain
from trimbench.trimming.classifier import BayesianClassifier, feature_indices
from trimbench.trimming.engines.certified import CertifiedEngine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd

_CODE = (*CODE, __name__)
POSITIVE, NEGATIVE = "positive", "negative"


class Sides(TypedDict):
    """Which classes make up the positive and the negative class, and values that become features of their own.

    Rows of other classes are left out. Where `one_hot` is not empty, each feature becomes one binary feature for each
    of these values.
    """

    positive: Sequence[str]
    negative: Sequence[str]
    one_hot: Sequence[str]


@job_function(code=_CODE)
def trim_many_features(learning: Learning, sides: Sides, budget: int, evaluation_limit: int | None) -> dict[str, Json]:
    """Learn a naive Bayes classifier of two groups of classes and trim it; the limit is that of an exact search."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE, learning)
    # The limit is for searches that may go on for hours; forward selection ends by itself.
    limit = evaluation_limit if _is_exact(classifier) else None
    start = time.perf_counter()
    trimming = trim(classifier, budget, evaluation_limit=limit)
    seconds = time.perf_counter() - start
    low, high = trimming.agreement_interval
    return {
        **_sizes(classifier, split),
        "features": list(trimming.features),
        "agreement_low": low,
        "agreement_high": high,
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        **split.tested(classifier, trimming.classifier),
    }


@dataclass(frozen=True)
class Learned:
    """A learned classifier, its rows, and how it was learned; `n_folds` is that of cross-validation."""

    classifier: BayesianClassifier
    split: Split
    learning: Learning
    n_folds: int


@dataclass(frozen=True)
class Baseline:
    """A selection of features to compare trimming with: its name in tables, and how it selects a number of features.

    `select` returns names in the order of selection, of which the first few are the selection for a smaller budget.
    """

    title: str
    select: Callable[[Learned, int], Sequence[str]]


def _by_information_gain(learned: Learned, most: int) -> Sequence[str]:
    return select_by_information_gain(learned.classifier, most)


def _by_accuracy(learned: Learned, most: int) -> Sequence[str]:
    return select_by_accuracy(
        learned.split.train,
        learned.split.target,
        most,
        positive=POSITIVE,
        threshold=learned.learning["threshold"],
        n_folds=learned.n_folds,
        rng=np.random.default_rng(learned.learning["split_seed"]),
        smoothing=learned.learning["smoothing"],
    )


# Jobs, tables and figures follow from this.
BASELINES: Mapping[str, Baseline] = {
    "information_gain": Baseline("information gain", _by_information_gain),
    "accuracy": Baseline("greedy accuracy", _by_accuracy),
}


@job_function(code=_CODE)
def select_many_features(
    learning: Learning, sides: Sides, budgets: list[int], method: str, n_folds: int
) -> dict[str, Json]:
    """Learn the classifier of `trim_many_features` and select features by one of the `BASELINES`, for all budgets."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE, learning)
    most = min(max(budgets), classifier.n_features)
    start = time.perf_counter()
    selected = BASELINES[method].select(Learned(classifier, split, learning, n_folds), most)
    seconds = time.perf_counter() - start
    points = [{"budget": budget, **_selection(split, classifier, selected[:budget])} for budget in budgets]
    return {**_sizes(classifier, split), "method_seconds": seconds, "points": points}


def split_between(learning: Learning, sides: Sides) -> Split:
    """Split the rows of both groups of classes, each in proportion."""
    import pandas as pd

    loaded = dataset_of(learning["dataset"])
    groups = {**dict.fromkeys(sides["positive"], POSITIVE), **dict.fromkeys(sides["negative"], NEGATIVE)}
    known = list(loaded.target.cat.categories)
    if unknown := sorted(set(groups) - set(known)):
        raise ValueError(f"positive and negative must be classes of {loaded.name!r}, among {known}, got {unknown}")
    target = pd.Series(loaded.target.astype(str).map(groups), name="class").dropna()
    split = Split.of(loaded.features.loc[target.index], target, learning, stratified=True)
    if values := sides["one_hot"]:
        split = dataclasses.replace(split, train=_one_hot(split.train, values), test=_one_hot(split.test, values))
    return split


def _one_hot(frame: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Return one column for each feature and value: "1" where the feature has it, else "0"."""
    import pandas as pd

    columns = {
        f"{name}={value}": pd.Categorical((frame[name] == value).map({False: "0", True: "1"}), ["0", "1"])
        for name in frame.columns
        for value in values
    }
    return pd.DataFrame(columns, index=frame.index)


def _sizes(classifier: BayesianClassifier, split: Split) -> dict[str, int]:
    return {"n_features": classifier.n_features, "n_train": len(split.train), "n_test": len(split.test)}


def _selection(split: Split, classifier: BayesianClassifier, kept: Sequence[str]) -> dict[str, Json]:
    """Bound the agreement of selected features at the same threshold and at the best one, and test them."""
    places = feature_indices(classifier.features, kept)
    threshold = classifier.threshold
    if _is_exact(classifier):
        engine = LogOddsEngine(classifier)
        same_low = same_high = engine.agreement(places, threshold)
        best_low = best_high = engine.best_cut(places).agreement
    else:
        certified = CertifiedEngine(classifier)
        same, best = certified.agreement(places, threshold), certified.agreement(places)
        same_low, same_high = same.low, same.high
        best_low, best_high = best.low, certified.highest_agreement(places)
    return {
        "features": list(kept),
        "same_threshold_low": same_low,
        "same_threshold_high": same_high,
        "best_threshold_low": best_low,
        "best_threshold_high": best_high,
        **split.tested(classifier, classifier.with_features(kept, threshold)),
    }


def _is_exact(classifier: BayesianClassifier) -> bool:
    return math.prod(classifier.cardinalities) <= MAX_ENTRIES
