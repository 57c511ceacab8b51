"""How often a trimmed classifier agrees with the original (ECA, MAA, MPA)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.engines.bounds import DEFAULT_POINTS, CertifiedEngine
from trimbench.trimming.engines.choice import EngineName, make_engine
from trimbench.trimming.model import checked_threshold, feature_indices


def expected_agreement(
    classifier: BayesianClassifier, features: Sequence[str], threshold: float, *, engine: EngineName = "auto"
) -> float:
    """Return the expected classification agreement (ECA) of a trimming with the original.

    Parameters
    ----------
    classifier : BayesianClassifier
        The original, (C, F, T).
    features : sequence of str
        F', among the features of the classifier; may be empty.
    threshold : float in [0, 1]
        T'.
    engine : {"auto", "dense", "log_odds", "sdd"}

    Returns
    -------
    float
        Probability that both give an instance the same class (Definition 2).

    Raises
    ------
    ValueError
        When a feature is unknown, the threshold is outside [0, 1], or there are too many features for the engine.
    """
    indices = feature_indices(checked_classifier(classifier).features, features)
    level = checked_threshold(threshold)
    return make_engine(classifier, engine).agreement(indices, level)


def expected_agreement_interval(
    classifier: BayesianClassifier, features: Sequence[str], threshold: float, *, n_points: int = DEFAULT_POINTS
) -> tuple[float, float]:
    """Return certified bounds on the expected classification agreement, for any number of features.

    Parameters
    ----------
    classifier : BayesianClassifier
        The original, (C, F, T), with T strictly between 0 and 1 and a prior without zeros.
    features : sequence of str
        F', among the features of the classifier; may be empty.
    threshold : float in (0, 1)
        T'.
    n_points : int
        Size of the grid on which sums of weights are rounded: more points, narrower bounds, more time.

    Returns
    -------
    low, high : float
        The agreement (Definition 2) lies between them.

    Raises
    ------
    ValueError
        When a feature is unknown, or a threshold is not strictly between 0 and 1.
    """
    indices = feature_indices(checked_classifier(classifier).features, features)
    level = checked_threshold(threshold)
    if isinstance(n_points, bool) or not isinstance(n_points, int | np.integer) or n_points < 2:
        raise ValueError(f"n_points must be a whole number, 2 or more, got {n_points!r}; the default is 2^20")
    if level in (0.0, 1.0):
        raise ValueError(f"threshold must be strictly between 0 and 1 for certified bounds, got {threshold!r}")
    found = CertifiedEngine(classifier, n_points).agreement(indices, level)
    return found.low, found.high


def maximum_achievable_agreement(
    classifier: BayesianClassifier, features: Sequence[str], *, engine: EngineName = "auto"
) -> tuple[float, tuple[float, float]]:
    """Return the highest ECA over all thresholds of a feature subset, and where it is reached (MAA).

    Parameters
    ----------
    classifier : BayesianClassifier
    features : sequence of str
        F', among the features of the classifier; may be empty.
    engine : {"auto", "dense", "log_odds", "sdd"}

    Returns
    -------
    agreement : float
        Definition 3.
    (low, high) : tuple of float
        Every T' with ``low < T' <= high`` reaches it; ``(0, 0)`` stands for T' = 0 alone. Of several such intervals
        the one that holds the original threshold is given, else the lowest.

    Raises
    ------
    ValueError
        When a feature is unknown or there are too many features for the engine.
    """
    indices = feature_indices(checked_classifier(classifier).features, features)
    cut = make_engine(classifier, engine).best_cut(indices)
    return cut.agreement, (cut.low, cut.high)


def maximum_potential_agreement(
    classifier: BayesianClassifier, features: Sequence[str], *, engine: EngineName = "auto"
) -> float:
    """Return the agreement if each instance of a feature subset could be given its likelier class (MPA).

    An upper bound on the maximum achievable agreement of the subset and of all its subsets (Corollary 1), and equal to
    it for naive Bayes (Proposition 3).

    Parameters
    ----------
    classifier : BayesianClassifier
    features : sequence of str
        F', among the features of the classifier; may be empty.
    engine : {"auto", "dense", "log_odds", "sdd"}

    Returns
    -------
    float
        Definition 4.

    Raises
    ------
    ValueError
        When a feature is unknown or there are too many features for the engine.
    """
    indices = set(feature_indices(checked_classifier(classifier).features, features))
    measure = make_engine(classifier, engine).root
    for index in measure.features:
        if index not in indices:
            measure = measure.without(index)
    return measure.potential_agreement()
