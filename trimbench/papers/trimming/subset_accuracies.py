"""Agreement and accuracy of every feature subset of a classifier that is learned on a split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.inputs import dataset_of
from trimbench.papers.trimming.classifiers import CODE, Learning, Split, two_classes
from trimbench.trimming.baselines.accuracy import cross_validated_accuracy
from trimbench.trimming.baselines.information_gain import select_by_information_gain
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.curve import potential_agreements
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.thresholds import best_cut


@job_function(code=(*CODE, __name__))
def agreement_and_accuracy(
    learning: Learning, positive: str, budget_divisor: int, n_folds: int, with_points: bool
) -> dict[str, Json]:
    """Compare all feature subsets of a learned classifier by agreement and by cross-validated accuracy.

    All classes but the positive one are one class. Agreement and accuracy of each subset are part of the result where
    `with_points` is set.
    """
    loaded = dataset_of(learning["dataset"])
    split = Split.of(loaded.features, two_classes(loaded.target, positive), learning)
    classifier = split.learned(positive, learning)
    budget = classifier.n_features // budget_divisor
    kept, agreements = potential_agreements(classifier, budget)
    everything = range(classifier.n_features)
    *accuracies, full_accuracy = cross_validated_accuracy(
        split.train,
        split.target,
        np.array([[feature in subset for feature in everything] for subset in (*kept, everything)]),
        positive=positive,
        threshold=learning["threshold"],
        n_folds=n_folds,
        rng=np.random.default_rng(learning["split_seed"]),
        smoothing=learning["smoothing"],
    ).tolist()
    by_gain = sorted(classifier.features.index(name) for name in select_by_information_gain(classifier, budget))
    picks = {
        "optimal_eca": int(np.argmax(agreements)),
        "optimal_accuracy": int(np.argmax(accuracies)),
        "information_gain": kept.index(tuple(by_gain)),
    }
    result: dict[str, Json] = {
        "n_rows": len(loaded.features),
        "n_test_rows": len(split.test),
        "n_subsets": len(kept),
        "full_accuracy": full_accuracy,
        "full_test_accuracy": split.tested(classifier, classifier)["full_test_accuracy"],
        "better_than_full_percent": 100.0 * float((np.array(accuracies) > full_accuracy + 1e-12).mean()),
    }
    for pick, row in picks.items():
        facts = {"eca": float(agreements[row]), "cv_accuracy": accuracies[row]}
        facts |= _on_test_rows(split, classifier, kept[row], moves_threshold=pick == "optimal_eca")
        result[f"{pick}_features"] = [classifier.features[i] for i in kept[row]]
        result |= {f"{pick}_{name}": value for name, value in facts.items()}
    if with_points:
        result["points"] = [[float(x), y] for x, y in zip(agreements, accuracies, strict=True)]
    return result


def _on_test_rows(
    split: Split, classifier: BayesianClassifier, kept: Sequence[int], *, moves_threshold: bool
) -> dict[str, float]:
    """Test a subset. Trimming moves the threshold; selection by accuracy or information gain keeps it."""
    level = classifier.threshold
    if moves_threshold:
        level = best_cut(make_engine(classifier, "dense").instances(kept), level).representative(level)
    tested = split.tested(classifier, classifier.with_features([classifier.features[i] for i in kept], level))
    return {"agreement": tested["test_agreement"], "accuracy": tested["test_accuracy"]}
