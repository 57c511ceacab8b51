"""The jobs of the trimming experiments: pure functions of their configuration."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from trimbench.networks.learning import learn_naive_bayes
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.encoding import categorize
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.data.splits import split_rows
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.inputs import network_of
from trimbench.trimming.accuracy import cross_validated_accuracy
from trimbench.trimming.agreement import maximum_achievable_agreement
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.curve import potential_agreements
from trimbench.trimming.engines import EngineName, make_engine
from trimbench.trimming.information_gain import select_by_information_gain
from trimbench.trimming.same_decision import select_by_same_decision
from trimbench.trimming.thresholds import best_cut
from trimbench.trimming.trim import trim

# The helpers of this module decide results too.
_CODE = ("trimbench.papers.data", "trimbench.networks", "trimbench.trimming", "trimbench.papers.trimming.jobs")


@job_function(code=_CODE)
def trim_network(
    network: Mapping[str, Json], threshold: float, budget_divisor: int, engine: EngineName
) -> dict[str, Json]:
    """Trim a declared network to a share of its features, at unit costs.

    Parameters
    ----------
    network : mapping
        The fields of an `Input`.
    threshold : float
    budget_divisor : int
        The budget is the number of features divided by this, rounded down.
    engine : str
    """
    classifier = network_classifier(network, threshold)
    budget = classifier.n_features // budget_divisor
    start = time.perf_counter()
    trimming = trim(classifier, budget, engine=engine)
    seconds = time.perf_counter() - start
    return {
        "n_features": classifier.n_features,
        "budget": budget,
        "features": list(trimming.features),
        "agreement": trimming.agreement,
        "new_threshold": trimming.threshold,
        "threshold_low": trimming.threshold_interval[0],
        "threshold_high": trimming.threshold_interval[1],
        "optimal": trimming.optimal,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
    }


@job_function(code=_CODE)
def select_from_network(network: Mapping[str, Json], threshold: float, budget_divisor: int) -> dict[str, Json]:
    """Select features of a declared network by expected same-decision probability (FS-SDD), at unit costs.

    Parameters
    ----------
    network : mapping
        The fields of an `Input`.
    threshold : float
    budget_divisor : int
    """
    classifier = network_classifier(network, threshold)
    budget = classifier.n_features // budget_divisor
    start = time.perf_counter()
    selection = select_by_same_decision(classifier, budget)
    seconds = time.perf_counter() - start
    at_best_threshold = [maximum_achievable_agreement(classifier, features)[0] for features in selection.tied]
    return {
        "n_features": classifier.n_features,
        "budget": budget,
        "features": list(selection.features),
        "agreement": selection.agreement,
        "agreement_at_best_threshold": at_best_threshold[0],
        "agreement_of_best_tie": max(at_best_threshold),
        "n_tied": len(selection.tied),
        "n_evaluations": selection.n_evaluations,
        "method_seconds": seconds,
    }


def network_classifier(
    network: Mapping[str, Json], threshold: float, target: str | None = None, positive: str | None = None
) -> BayesianClassifier:
    """Return the classifier of a declared network, with its own class or another one.

    Raises
    ------
    ValueError
        When it is declared without a class.
    """
    loaded = network_of(network)
    target, positive = target or loaded.target, positive or loaded.positive
    if target is None or positive is None:
        raise ValueError(
            f"network {network['name']!r}: `target` and `positive` must be declared, or set, to make it a "
            f"classifier; its nodes are {', '.join(loaded.nodes[:20])}{', ...' if len(loaded.nodes) > 20 else ''}"
        )
    features = loaded.features_without(target)
    return BayesianClassifier(loaded.model, target, positive=positive, features=features, threshold=threshold)


@job_function(code=_CODE)
def trim_learned(
    dataset: Mapping[str, Any],
    name: str,
    positive: str | None,
    budget: float,
    threshold: float,
    smoothing: float,
    test_fraction: float,
    split_seed: int,
    engine: EngineName,
    evaluation_limit: int | None,
) -> dict[str, Any]:
    """Learn a naive Bayes classifier on a split of a data set, trim it, and test both.

    Parameters
    ----------
    dataset : mapping
        Declaration of the data set. Numbers are cut at their median in the training rows.
    name : str
    positive : str, optional
        Class that the threshold speaks of; default: the rarer one.
    budget : float
        Number of features to keep.
    threshold : float
    smoothing : float
        Pseudo-count of the naive Bayes classifier.
    test_fraction : float
    split_seed : int
    engine : str
    evaluation_limit : int, optional
    """
    loaded = load_dataset(declare_dataset(name, dataset), Cache.from_environment(offline=True))
    train, test = split_rows(len(loaded.features), test_fraction, split_seed)
    train_rows, test_rows = categorize(loaded.features.iloc[train], loaded.features.iloc[test])
    model = learn_naive_bayes(train_rows, loaded.target.iloc[train], smoothing=smoothing)
    rarer = str(loaded.target.value_counts().index[-1])
    classifier = BayesianClassifier(model, positive=positive or rarer, threshold=threshold)
    start = time.perf_counter()
    trimming = trim(classifier, budget, engine=engine, evaluation_limit=evaluation_limit)
    seconds = time.perf_counter() - start
    full = classifier.predict(test_rows)
    trimmed = trimming.classifier.predict(test_rows)
    truth = loaded.target.iloc[test].astype(str).to_numpy()
    return {
        "n_features": classifier.n_features,
        "n_test": len(test),
        "features": list(trimming.features),
        "agreement": trimming.agreement,
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        "test_agreement": float((full == trimmed).mean()),
        "test_accuracy": float((trimmed == truth).mean()),
        "full_test_accuracy": float((full == truth).mean()),
        "log2_instances": math.log2(math.prod(classifier.cardinalities)),
    }


@job_function(code=_CODE)
def agreement_and_accuracy(
    dataset: Mapping[str, Any],
    name: str,
    positive: str,
    budget_divisor: int,
    threshold: float,
    smoothing: float,
    test_fraction: float,
    n_folds: int,
    split_seed: int,
    with_points: bool,
) -> dict[str, Any]:
    """Compare all feature subsets of a learned classifier by agreement and by cross-validated accuracy.

    Parameters
    ----------
    dataset : mapping
        Declaration of the data set. Numbers are cut at their median in the training rows.
    name, positive : str
    budget_divisor : int
        The budget is the number of features divided by this, rounded down.
    threshold, smoothing, test_fraction : float
    n_folds : int
    split_seed : int
    with_points : bool
        Whether the result holds agreement and accuracy of every subset.
    """
    import numpy as np

    loaded = load_dataset(declare_dataset(name, dataset), Cache.from_environment(offline=True))
    train, test = split_rows(len(loaded.features), test_fraction, split_seed)
    train_rows, test_rows = categorize(loaded.features.iloc[train], loaded.features.iloc[test])
    target, truth = loaded.target.iloc[train], loaded.target.iloc[test].astype(str).to_numpy()
    model = learn_naive_bayes(train_rows, target, smoothing=smoothing)
    classifier = BayesianClassifier(model, positive=positive, threshold=threshold)
    kept, agreements = potential_agreements(classifier, classifier.n_features // budget_divisor)
    chosen = np.zeros((len(kept) + 1, classifier.n_features), dtype=bool)
    for row, subset in enumerate(kept):
        chosen[row, list(subset)] = True
    chosen[-1] = True  # the full classifier
    accuracies = cross_validated_accuracy(
        train_rows,
        target,
        chosen,
        positive=positive,
        threshold=threshold,
        n_folds=n_folds,
        rng=np.random.default_rng(split_seed),
        smoothing=smoothing,
    )
    full_accuracy, accuracies = float(accuracies[-1]), accuracies[:-1]
    gain = select_by_information_gain(classifier, classifier.n_features // budget_divisor)
    by_gain = kept.index(tuple(sorted(classifier.features.index(feature) for feature in gain)))
    full = classifier.predict(test_rows)
    result: dict[str, Any] = {
        "n_subsets": len(kept),
        "full_accuracy": full_accuracy,
        "full_test_accuracy": float((full == truth).mean()),
        "better_than_full_percent": 100.0 * float((accuracies > full_accuracy + 1e-12).mean()),
    }
    picks = {
        "optimal_eca": int(np.argmax(agreements)),
        "optimal_accuracy": int(np.argmax(accuracies)),
        "information_gain": by_gain,
    }
    for pick, row in picks.items():
        features = [classifier.features[i] for i in kept[row]]
        # Trimming moves the threshold; selection by accuracy or information gain keeps it.
        cut = best_cut(make_engine(classifier, "dense").instances(kept[row]), threshold)
        level = cut.representative(threshold) if pick == "optimal_eca" else threshold
        predicted = classifier.with_features(features, level).predict(test_rows)
        result |= {
            f"{pick}_features": features,
            f"{pick}_eca": float(agreements[row]),
            f"{pick}_cv_accuracy": float(accuracies[row]),
            f"{pick}_agreement": float((predicted == full).mean()),
            f"{pick}_accuracy": float((predicted == truth).mean()),
        }
    if with_points:
        result["points"] = [[float(a), float(b)] for a, b in zip(agreements, accuracies, strict=True)]
    return result
