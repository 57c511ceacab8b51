"""How often a trimmed classifier agrees with the original (ECA, MAA, MPA)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.engines.bounds import DEFAULT_POINTS, CertifiedEngine
from trimbench.trimming.engines.choice import EngineName, make_engine
from trimbench.trimming.model import checked_threshold, feature_indices


@overload
def expected_agreement(
    classifier: BayesianClassifier,
    features: Sequence[str],
    threshold: float,
    *,
    engine: EngineName = ...,
    interval: Literal[False] = ...,
) -> float: ...


@overload
def expected_agreement(
    classifier: BayesianClassifier,
    features: Sequence[str],
    threshold: float,
    *,
    interval: Literal[True],
    n_points: int | None = ...,
) -> tuple[float, float]: ...


def expected_agreement(
    classifier: BayesianClassifier,
    features: Sequence[str],
    threshold: float,
    *,
    engine: EngineName = "auto",
    interval: bool = False,
    n_points: int | None = None,
) -> float | tuple[float, float]:
    """Return the expected classification agreement (ECA) of a trimming with the original.

    Parameters
    ----------
    classifier : BayesianClassifier
        The original, (C, F, T). For bounds it is naive Bayes, with T strictly between 0 and 1 and a prior without
        zeros.
    features : sequence of str
        F', among the features of the classifier; may be empty.
    threshold : float in [0, 1]
        T'; for bounds strictly between 0 and 1.
    engine : {"auto", "dense", "log_odds", "sdd"}
        How the exact value is computed.
    interval : bool
        Whether certified bounds are returned in place of the exact value, which takes any number of features.
    n_points : int, optional
        Size of the grid on which bounds round sums of weights: more points, narrower bounds, more time. Default: 2^20.

    Returns
    -------
    float, or low and high
        Probability that both give an instance the same class (Definition 2), or two values that it lies between.

    Raises
    ------
    ValueError
        When a feature is unknown, a threshold is out of range, or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> tb.expected_agreement(classifier, ["x1"], 0.5)
    0.52
    """
    indices = feature_indices(checked_classifier(classifier).features, features)
    level = checked_threshold(threshold)
    if not interval:
        if n_points is not None:
            raise ValueError(f"n_points must be left out unless interval=True, got {n_points!r}")
        return make_engine(classifier, engine).agreement(indices, level)
    if engine != "auto":
        raise ValueError(f"engine must be left out for interval=True, which needs none, got {engine!r}")
    size = DEFAULT_POINTS if n_points is None else n_points
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2:
        raise ValueError(f"n_points must be a whole number, 2 or more, got {n_points!r}; the default is 2^20")
    if level in (0.0, 1.0):
        raise ValueError(f"threshold must be strictly between 0 and 1 for certified bounds, got {threshold!r}")
    found = CertifiedEngine(classifier, size).agreement(indices, level)
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

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> agreement, (low, high) = tb.maximum_achievable_agreement(classifier, ["x0"])
    >>> agreement, round(low, 4), round(high, 4)
    (1.0, 0.0769, 0.75)
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

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> tb.maximum_potential_agreement(classifier, ["x1"])
    0.532
    """
    indices = set(feature_indices(checked_classifier(classifier).features, features))
    measure = make_engine(classifier, engine).root
    for index in measure.features:
        if index not in indices:
            measure = measure.without(index)
    return measure.potential_agreement()
