"""The jobs of the scaling experiment: naive Bayes classifiers with tens to hundreds of features, learned from data."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimbench.networks.learning import learn_naive_bayes
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.encoding import categorize
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.data.splits import split_rows
from trimbench.papers.execution.functions import job_function
from trimbench.trimming.accuracy import select_by_accuracy
from trimbench.trimming.certified import CertifiedEngine
from trimbench.trimming.classifier import BayesianClassifier, feature_indices
from trimbench.trimming.information_gain import select_by_information_gain
from trimbench.trimming.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd

_CODE = ("trimbench.papers.data", "trimbench.networks", "trimbench.trimming", "trimbench.papers.trimming.scaling_jobs")
_POSITIVE, _NEGATIVE = "positive", "negative"


@job_function(code=_CODE)
def trim_many_features(
    dataset: Mapping[str, Any],
    name: str,
    positive: list[str],
    negative: list[str],
    one_hot: list[str],
    budget: int,
    threshold: float,
    smoothing: float,
    test_fraction: float,
    split_seed: int,
    evaluation_limit: int | None,
) -> dict[str, Any]:
    """Learn a naive Bayes classifier of two groups of classes and trim it.

    Parameters
    ----------
    dataset : mapping
        Declaration of the data set. Numbers are cut at their median in the training rows.
    name : str
    positive, negative : list of str
        Classes that make up the positive and the negative class; rows of other classes are left out.
    one_hot : list of str
        Where it is not empty, each feature becomes one binary feature for each of these values.
    budget : int
        Number of features to keep.
    threshold, smoothing, test_fraction : float
    split_seed : int
    evaluation_limit : int, optional
        Of an exact search.
    """
    train, test, target, truth = _rows(dataset, name, positive, negative, one_hot, test_fraction, split_seed)
    classifier = _classifier(train, target, threshold, smoothing)
    # The limit is for searches that may go on for hours; forward selection ends by itself.
    limit = evaluation_limit if _is_exact(classifier) else None
    start = time.perf_counter()
    trimming = trim(classifier, budget, evaluation_limit=limit)
    seconds = time.perf_counter() - start
    low, high = trimming.agreement_interval
    return _facts(classifier, train, test) | {
        "features": list(trimming.features),
        "agreement_low": low,
        "agreement_high": high,
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        **_tested(classifier, trimming.features, trimming.threshold, test, truth),
    }


@job_function(code=_CODE)
def select_many_features(
    dataset: Mapping[str, Any],
    name: str,
    positive: list[str],
    negative: list[str],
    one_hot: list[str],
    budgets: list[int],
    method: str,
    threshold: float,
    smoothing: float,
    test_fraction: float,
    split_seed: int,
    n_folds: int,
) -> dict[str, Any]:
    """Learn the classifier of `trim_many_features` and select features by information gain or by accuracy.

    Both select one feature after another, so one selection serves all budgets.

    Parameters
    ----------
    dataset, name, positive, negative, one_hot, threshold, smoothing, test_fraction, split_seed
        As in `trim_many_features`.
    budgets : list of int
    method : {"information_gain", "accuracy"}
    n_folds : int
        Of the cross-validated accuracy.
    """
    import numpy as np

    train, test, target, truth = _rows(dataset, name, positive, negative, one_hot, test_fraction, split_seed)
    classifier = _classifier(train, target, threshold, smoothing)
    most = min(max(budgets), classifier.n_features)
    start = time.perf_counter()
    if method == "information_gain":
        selected = select_by_information_gain(classifier, most)
    elif method == "accuracy":
        selected = select_by_accuracy(
            train,
            target,
            most,
            positive=_POSITIVE,
            threshold=threshold,
            n_folds=n_folds,
            rng=np.random.default_rng(split_seed),
            smoothing=smoothing,
        )
    else:
        raise ValueError(f"method must be 'information_gain' or 'accuracy', got {method!r}")
    seconds = time.perf_counter() - start
    points = []
    for budget in budgets:
        kept = selected[:budget]
        low, high = _intervals(classifier, kept, threshold)
        points.append(
            {
                "budget": budget,
                "features": list(kept),
                "same_threshold_low": low[0],
                "same_threshold_high": high[0],
                "best_threshold_low": low[1],
                "best_threshold_high": high[1],
                **_tested(classifier, kept, threshold, test, truth),
            }
        )
    return _facts(classifier, train, test) | {
        "method_seconds": seconds,
        "points": points,
    }


def _intervals(
    classifier: BayesianClassifier, features: Sequence[str], threshold: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return lower and upper values of the agreement at the same threshold, and at the best one."""
    places = feature_indices(classifier.features, features)
    if _is_exact(classifier):
        engine = LogOddsEngine(classifier)
        exact = engine.agreement(places, threshold), engine.best_cut(places).agreement
        return exact, exact
    certified = CertifiedEngine(classifier)
    same, best = certified.agreement(places, threshold), certified.agreement(places)
    return (same.low, best.low), (same.high, certified.highest_agreement(places))


def _is_exact(classifier: BayesianClassifier) -> bool:
    return math.prod(classifier.cardinalities) <= MAX_ENTRIES


def _rows(
    dataset: Mapping[str, Any],
    name: str,
    positive: Sequence[str],
    negative: Sequence[str],
    one_hot: Sequence[str],
    test_fraction: float,
    split_seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    """Return training and test rows as categories, and the class of each."""
    import pandas as pd

    loaded = load_dataset(declare_dataset(name, dataset), Cache.from_environment(offline=True))
    group = {**dict.fromkeys(positive, _POSITIVE), **dict.fromkeys(negative, _NEGATIVE)}
    unknown = sorted(set(group) - set(loaded.target.cat.categories))
    if unknown:
        raise ValueError(
            f"positive and negative must be classes of {name!r}, among {list(loaded.target.cat.categories)}, "
            f"got {unknown}"
        )
    target = pd.Series(loaded.target.astype(str).map(group), name="class").dropna()
    features = loaded.features.loc[target.index]
    train, test = split_rows(len(features), test_fraction, split_seed, stratify=target.to_numpy())
    frames = categorize(features.iloc[train], features.iloc[test])
    if one_hot:
        frames = tuple(_one_hot(frame, one_hot) for frame in frames)
    return frames[0], frames[1], target.iloc[train], target.iloc[test]


def _one_hot(frame: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Return one column for each feature and value: "1" where the feature has it, else "0"."""
    import pandas as pd

    columns = {
        f"{name}={value}": pd.Categorical((frame[name] == value).map({False: "0", True: "1"}), ["0", "1"])
        for name in frame.columns
        for value in values
    }
    return pd.DataFrame(columns, index=frame.index)


def _classifier(train: pd.DataFrame, target: pd.Series, threshold: float, smoothing: float) -> BayesianClassifier:
    model = learn_naive_bayes(train, target, smoothing=smoothing)
    return BayesianClassifier(model, positive=_POSITIVE, threshold=threshold)


def _facts(classifier: BayesianClassifier, train: pd.DataFrame, test: pd.DataFrame) -> dict[str, Any]:
    return {"n_features": classifier.n_features, "n_train": len(train), "n_test": len(test)}


def _tested(
    classifier: BayesianClassifier, features: Sequence[str], threshold: float, test: pd.DataFrame, truth: pd.Series
) -> dict[str, float]:
    """Return how often the classifier on some of its features agrees with the whole one, and with the truth."""
    full = classifier.predict(test)
    part = classifier.with_features(features, threshold).predict(test)
    known = truth.to_numpy(dtype=str)
    return {
        "test_agreement": float((part == full).mean()),
        "test_accuracy": float((part == known).mean()),
        "full_test_accuracy": float((full == known).mean()),
    }
